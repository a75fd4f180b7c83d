/**
 * kill -9 around approvals and the people who decide: a request is made once and told once, an approval is there only with
 * its action, and whoever goes on after a kill is done once or refused rightly.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { LEE, MARA, openApproving, RULES } from '../support/approving.ts';
import { ADMINISTRATOR } from '../support/console.ts';
import { type MailServer, startMailServer } from '../support/mail-server.ts';
import { command, type Ran, reckoner } from '../support/program.ts';
import { someOf, times } from '../support/sweep.ts';
import { tally } from '../support/tally.ts';
import { type KeptWorld, openWorld, quote, type World } from '../support/world.ts';

let kept: KeptWorld;
let mail: MailServer;
let world: World;
let survived = 0;
beforeAll(async () => {
  const made = await openApproving();
  // Two months are due: what an approved close does in two transactions.
  made.at('2026-10-01T10:00:00Z');
  const { rejected } = await made.rows(
    ['2026-08-10T12:00:00Z', '2026-09-10T12:00:00Z'].flatMap((accepted_at) => [
      quote({ accepted_at }),
      quote({ partner_id: 'p-2', accepted_at }),
    ]),
  );
  expect(rejected).toBe(0);
  kept = await made.keep();
  mail = await startMailServer();
});
afterAll(async () => {
  tally('kills survived', 'around approvals', survived);
  await mail.close();
  await kept.discard();
});
beforeEach(async () => {
  mail.mails.length = 0;
  world = await openWorld({ from: kept });
  const { logo: _, ...issuer } = world.settings.issuer;
  const settings = { ...world.settings, sections: undefined, issuer, approvals: RULES };
  writeFileSync(join(world.home, 'settings.json'), JSON.stringify(settings));
});
afterEach(async () => {
  const { checks } = await world.verify();
  const wrong = checks.filter(({ differences }) => differences.length > 0);
  await world.end();
  expect(wrong).toEqual([]);
});

const run = (by: string, args: readonly string[], failpoint?: string): Promise<Ran> =>
  (failpoint === undefined ? command : reckoner)(['--json', '--by', by, ...args], {
    env: {
      ...{ RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: '2026-10-02T10:00:00Z' },
      ...{ SMTP_URL: mail.url, ...(failpoint && { RECKONER_FAILPOINT: failpoint }) },
    },
  });
const kill = async (by: string, args: readonly string[], failpoint: string): Promise<void> => {
  expect([failpoint, (await run(by, args, failpoint)).signal]).toEqual([failpoint, 'SIGKILL']);
  survived += 1;
};
const code = (ran: Ran): string | undefined => (ran.json() as { error?: { code: string } }).error?.code;
const rows = (text: string) => world.sql(text);

const VOID = ['invoice', 'void', 'INV-2026-000002', '--reason', 'wrong price'];
const counts = () =>
  rows(
    `SELECT (SELECT count(*)::int FROM approval_requests) AS requests,
            (SELECT count(*)::int FROM approval_decisions) AS decisions, (SELECT count(*)::int FROM voids) AS voids`,
  );

describe('a request', () => {
  test('whose making is killed is not there, and is made once by asking again', async () => {
    await kill(MARA, VOID, 'approval.requested');
    expect(await counts()).toEqual([{ requests: 0, decisions: 0, voids: 0 }]);
    for (const _ of [1, 2]) expect(code(await run(MARA, VOID))).toBe('approval_needed');
    expect(await counts()).toEqual([{ requests: 1, decisions: 0, voids: 0 }]);
  });

  const SENDING = ['delivery.composed', 'delivery.offered', 'delivery.sent', 'delivery.recorded'] as const;
  test.each(someOf(SENDING, times({ few: 2, short: 2, long: SENDING.length })))(
    'whose e-mail is killed at %s reaches its approver, as one message',
    async (failpoint) => {
      expect(code(await run(MARA, VOID))).toBe('approval_needed');
      // The other e-mails of the day go first, so that the kill strikes that of the request.
      await kill('cron', ['deliver'], failpoint);
      await run('cron', ['deliver']);
      const told = mail.mails.filter(({ raw }) => /^Message-ID: <approval[-_]request/im.test(raw.toString()));
      expect(told.length).toBeGreaterThan(0);
      expect(new Set(told.map(({ raw }) => raw.toString())).size).toBe(1);
      expect(told[0]?.parsed.text).toContain('INV-2026-000002');
      const emails = await rows(`SELECT status FROM emails WHERE kind = 'approval_request'`);
      expect(emails).toEqual([{ status: 'sent' }]);
    },
  );
});

describe('an approval', () => {
  test('that is killed after it is recorded is not there, nor its action, and approving again does both once', async () => {
    expect(code(await run(MARA, VOID))).toBe('approval_needed');
    const approve = ['approval', 'approve', '1', '--no-deliver'];
    for (const failpoint of ['approval.decided', 'void.recorded']) {
      await kill(LEE, approve, failpoint);
      expect(await counts()).toEqual([{ requests: 1, decisions: 0, voids: 0 }]);
    }
    expect((await run(LEE, approve)).status).toBe(0);
    expect(await counts()).toEqual([{ requests: 1, decisions: 1, voids: 1 }]);
  });

  const closed = () =>
    rows(
      `SELECT m.month, count(d.document_id)::int AS documents FROM closed_months m
       LEFT JOIN documents d USING (month) WHERE m.month > '2026-07' GROUP BY 1 ORDER BY 1`,
    );
  const BOTH = [
    { month: '2026-08', documents: 2 },
    { month: '2026-09', documents: 2 },
  ];
  const OF_EACH = ['close.locked', 'close.issued', 'close.recorded', 'close.checkpointed'];
  const CLOSING = ['approval.decided', ...OF_EACH, ...OF_EACH.map((each) => `${each}:2`), 'close.committed'];
  test.each(someOf(CLOSING, times({ few: 3, short: 3, long: CLOSING.length })))(
    'of the close of two months that is killed at %s: each month is closed once, by somebody who asked and another who approved',
    async (failpoint) => {
      expect(code(await run(MARA, ['close', '--no-deliver']))).toBe('approval_needed');
      await kill(LEE, ['approval', 'approve', '1', '--no-deliver'], failpoint);
      const decided = (await counts())[0]?.['decisions'] as number;
      // The approval and both of its months are there together, or none of them.
      expect([decided, await closed()]).toEqual([decided, decided === 1 ? BOTH : []]);
      const again = await run(LEE, ['approval', 'approve', '1', '--no-deliver']);
      expect(decided === 1 ? code(again) : again.status).toBe(decided === 1 ? 'approval_decided' : 0);
      expect((await run(MARA, ['close', '--no-deliver'])).status).toBe(0);
      expect(await closed()).toEqual(BOTH);
      const events = await rows(
        `SELECT DISTINCT personal(u.login) AS login, personal(details->'approval'->>'approved_by') AS by FROM audit_events JOIN users u USING (user_id)
         WHERE action = 'month.close' AND subject > '2026-07'`,
      );
      expect(events).toEqual([{ login: MARA, by: LEE }]);
    },
  );
});

describe('a change of users', () => {
  const people = () =>
    rows(
      `SELECT login, (SELECT json_agg(role ORDER BY role) FROM present_roles r WHERE r.user_id = u.user_id) AS roles
       FROM active_users u WHERE kind = 'person' ORDER BY login`,
    );
  const NEW = 'new@issuer.example';
  test.each([
    ['user.invited', ['user', 'invite', NEW, '--role', 'finance']],
    ['user.role_changed', ['user', 'role', LEE, '--grant', 'finance', '--revoke', 'approver']],
    ['user.deactivated', ['user', 'deactivate', MARA]],
  ] as const)(
    'that is killed at %s has changed nobody, and is done once by doing it again',
    async (failpoint, args) => {
      const before = await people();
      await kill(ADMINISTRATOR, args, failpoint);
      expect(await people()).toEqual(before);
      expect((await run(ADMINISTRATOR, args)).status).toBe(0);
      expect(await people()).not.toEqual(before);
      const [, action = ''] = args;
      expect(await rows(`SELECT count(*)::int AS events FROM audit_events WHERE action = 'user.${action}'`)).toEqual([
        { events: action === 'invite' ? before.length + 1 : 1 },
      ]);
    },
  );
});

test('an assignment that is killed leaves its item to nobody, and is made once by doing it again', async () => {
  expect(code(await run(MARA, VOID))).toBe('approval_needed');
  const assign = ['work', 'assign', 'approval:1', '--to', LEE];
  await kill(MARA, assign, 'work.assigned');
  expect(await rows('SELECT FROM present_work_assignments')).toEqual([]);
  expect((await run(MARA, assign)).status).toBe(0);
  expect(code(await run(MARA, assign))).toBe('work_assigned_already');
  expect(await rows('SELECT item FROM present_work_assignments')).toEqual([{ item: 'approval:1' }]);
});
