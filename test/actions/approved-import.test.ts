/** Imports of rows under rules of approval: a request keeps the hash of the file, and the requester repeats the import. */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { approveRequest, endRequest, previewRequest } from '../../src/actions/approve.ts';
import { digestOf } from '../../src/actions/consequence.ts';
import { ledgerImport, ledgerImportOf } from '../../src/actions/rows.ts';
import { OutdatedPreview, previewAction, runAction } from '../../src/actions/run.ts';
import { userDeactivate } from '../../src/actions/user.ts';
import type { Settings } from '../../src/config/settings.ts';
import { recordSettingsChanges } from '../../src/people/settings-changes.ts';
import { changeRoles } from '../../src/people/users.ts';
import { foundBy } from '../audit/failing.ts';
import { refusalOf } from '../close/refusal.ts';
import { as, LEE, MARA, openApproving, PAT } from '../support/approving.ts';
import { ADMINISTRATOR, invite } from '../support/console.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { type KeptWorld, openWorld, quote, reversal, type World } from '../support/world.ts';

const SAM = 'sam@issuer.example';
const RULE: Settings['approvals'] = { 'ledger.import': { above: { USD: '5.00' } } };
const ALWAYS: Settings['approvals'] = { 'ledger.import': { always: true } };
const QUIET = { deliver: false } as const;
const SALE = quote({ accepted_at: '2026-07-31T12:00:00Z' });
/** Takes back 7.00 of our share. */
const BACK = reversal(SALE, { accepted_at: '2026-08-01T09:00:00Z' });

let kept: KeptWorld;
let world: World;
beforeAll(async () => {
  const first = await openApproving();
  await invite(first, SAM, { roles: ['finance'] });
  await first.rows([SALE]);
  kept = await first.keep();
});
afterAll(async () => {
  await world.end();
  await kept.discard();
});
beforeEach(async () => {
  await world?.end();
  world = await openWorld({ from: kept });
  world.at('2026-08-01T10:00:00Z');
  world.settings = { ...world.settings, approvals: RULE };
  await recordSettingsChanges(world.database, world);
  world.at('2026-08-01T14:00:00Z');
});

const textOf = (rows: readonly object[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join('');
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const fileOf = (rows: readonly object[], name = 'rows.ndjson') => ({ name, bytes: Buffer.from(textOf(rows)) });
/** As the console imports a file: as a whole. */
const importing = async (rows: readonly object[], { by = MARA, rules = RULE, ...more }: Given = {}) =>
  runAction(await as(world, by, rules), ledgerImport, { files: [fileOf(rows)], ...more }, QUIET);
interface Given {
  readonly by?: string;
  readonly rules?: Settings['approvals'];
  readonly skipInvalid?: boolean;
}
/** As the command imports a file: while it is read. */
async function streaming(rows: readonly object[], by = MARA) {
  const path = join(world.home, 'rows.ndjson');
  writeFileSync(path, textOf(rows));
  const action = ledgerImportOf([{ name: path, format: 'ndjson' }], {});
  return runAction(await as(world, by, RULE), action, { files: [{ name: path, bytes: Buffer.alloc(0) }] }, QUIET);
}
const asked = async (work: Promise<unknown>): Promise<number> => {
  const { code, facts } = await refusalOf(work);
  expect([code, facts['repeats']]).toEqual(['approval_needed', true]);
  return facts['request_id'] as number;
};
const approve = async (requestId: number, by = LEE) =>
  approveRequest(await as(world, by, RULE), requestId, { ...QUIET, reason: null });
const reversals = async () => (await world.sql(`SELECT FROM ledger_rows WHERE kind = 'reversal'`)).length;
const lastImport = async () =>
  (
    await world.sql(
      `SELECT personal(login) AS login, personal_json(details->'approval') AS approval, details->'compared'->'amounts' AS amounts
       FROM audit_events LEFT JOIN users USING (user_id) WHERE action = 'ledger.import' ORDER BY audit_events.event_id DESC LIMIT 1`,
    )
  )[0];
const differences = async () => {
  const { checks } = await world.verify();
  return checks.filter(({ differences: found }) => found.length > 0);
};

describe('an import under a rule with an amount', () => {
  test('needs nobody else if it has sales alone, in any currency, and its event says so', async () => {
    await importing([quote(), quote({ currency: 'EUR' })]);
    expect(await lastImport()).toMatchObject({
      approval: null,
      amounts: [{ currency: 'USD', amount: '0.00', before: '0.00', above: '5.00' }],
    });
    expect(await differences()).toEqual([]);
  });

  test('needs a second person if its reversals take more of our share, also in parts', async () => {
    const [at, other] = ['2026-08-01T09:00:00Z', '2026-08-01T09:30:00Z'];
    const half = { spotPrice: '-5.00', partnerCut: '-1.50', invoiceAmount: '-3.50' };
    await importing([reversal(SALE, { ...half, accepted_at: at })]);
    const rest = [quote(), reversal(SALE, { ...half, accepted_at: other })];
    expect((await refusalOf(importing(rest))).facts['above']).toEqual([
      { currency: 'USD', amount: '3.50', before: '3.50', above: '5.00' },
    ]);
    expect(await reversals()).toBe(1);
    expect(await differences()).toEqual([]);
  });

  test('asks for nothing if it records nothing: bad rows, and rows that are recorded already', async () => {
    await importing([quote(), reversal(SALE, { invoiceAmount: '-6.00' })], { rules: ALWAYS });
    await importing([SALE], { rules: ALWAYS });
    expect(await world.sql('SELECT FROM approval_requests')).toEqual([]);
  });
});

describe('a request to import', () => {
  test('keeps the hash of the file and what it would record, and not the file', async () => {
    const rows = [quote(), quote(), BACK];
    const request = await asked(importing(rows));
    const [row] = await world.sql<{ file: object; subject: string; preview: Record<string, unknown> }>(
      `SELECT input->'files'->0 AS file, subject, preview FROM approval_requests WHERE request_id = $1`,
      [request],
    );
    expect(row?.subject).toBe('rows.ndjson');
    expect(row?.file).toEqual({ name: 'rows.ndjson', sha256: sha256(textOf(rows)) });
    expect(row?.preview).toMatchObject({ amounts: [{ currency: 'USD', amount: '7.00' }], repeats: true });
    const changes = row?.preview['changes'] as { of: string; field: string; after: string }[];
    expect(changes.map(({ of, field, after }) => `${of} ${field} ${after}`)).toEqual(
      expect.arrayContaining([
        'rows recorded 3',
        'rows in USD invoiceAmount 7.00 USD',
        'reversals of p-1 in USD invoiceAmount 7.00 USD',
      ]),
    );
    expect(await previewRequest(await as(world, LEE, RULE), request)).toBeUndefined();
  });

  test('is approved without importing; the requester then imports the same bytes, once', async () => {
    const rows = [quote(), BACK];
    const request = await asked(importing(rows));
    expect(await asked(streaming(rows))).toBe(request);
    const report = await approve(request);
    expect([report.isDone, report.text]).toEqual([
      false,
      `It is done when ${MARA} repeats it with the same files, until 2026-08-15 14:00 UTC.`,
    ]);
    expect(await reversals()).toBe(0);
    expect(await differences()).toEqual([]);
    const { json } = await streaming(rows);
    expect(json).toMatchObject({ accepted: 2 });
    expect(await lastImport()).toEqual({ login: MARA, approval: { request, approved_by: LEE }, amounts: null });
    expect((await importing(rows)).json).toMatchObject({ accepted: 0, duplicates: 2 });
    expect(await differences()).toEqual([]);
  });

  test('is not one to import other bytes, nor for another user, nor with another effect', async () => {
    const rows = [quote(), BACK];
    const request = await asked(importing(rows));
    await approve(request);
    expect(await asked(importing([...rows, quote()]))).toBeGreaterThan(request);
    expect(await asked(importing(rows, { by: SAM }))).toBeGreaterThan(request);
    expect(await asked(importing(rows, { skipInvalid: true }))).toBeGreaterThan(request);
    // A part of the rows was recorded in the meantime.
    await importing(rows.slice(0, 1));
    expect(await asked(importing(rows))).toBeGreaterThan(request);
    expect(await reversals()).toBe(0);
  });

  test('can be used until it expires', async () => {
    const request = await asked(importing([BACK]));
    await approve(request);
    world.at('2026-08-15T14:00:00Z');
    expect(await asked(importing([BACK]))).toBeGreaterThan(request);
  });

  test('that is rejected imports nothing', async () => {
    const request = await asked(importing([BACK]));
    await endRequest(await as(world, LEE, RULE), request, 'reject', 'not agreed');
    expect(await asked(importing([BACK]))).toBeGreaterThan(request);
    expect(await reversals()).toBe(0);
  });

  test('is decided only by an approver for all partners, and not by the requester', async () => {
    const request = await asked(importing([BACK]));
    expect((await refusalOf(approve(request, MARA))).code).toBe('approval_own');
    expect((await refusalOf(approve(request, PAT))).code).toBe('role_needed');
    await approve(request);
    expect((await refusalOf(approve(request))).code).toBe('approval_decided');
  });

  test('of a scheduled import is made once, and each run waits for it', async () => {
    await world.database.transaction(async (tx) => {
      const grant = [{ role: 'finance', partner_id: null }] as const;
      return changeRoles(tx, await as(world, ADMINISTRATOR), { login: 'cron', grant, revoke: [] });
    });
    const request = await asked(importing([BACK], { by: 'cron' }));
    expect(await asked(importing([BACK], { by: 'cron' }))).toBe(request);
    await approve(request);
    await importing([BACK], { by: 'cron' });
    expect(await lastImport()).toMatchObject({ login: 'cron', approval: { request } });
    expect(await differences()).toEqual([]);
  });

  test('used by two imports at once records the rows once', async () => {
    const request = await asked(importing([BACK]));
    await approve(request);
    await Promise.all([importing([BACK]), streaming([BACK])]);
    expect(await reversals()).toBe(1);
    expect(await differences()).toEqual([]);
  });
});

test('with a rule for any amount, sales need a second person too', async () => {
  const rows = [quote()];
  const request = await asked(importing(rows, { rules: ALWAYS }));
  await approve(request);
  expect((await importing(rows, { rules: ALWAYS })).json).toMatchObject({ accepted: 1 });
});

test('an import that was confirmed in the console asks, and is done only as it was shown', async () => {
  const context = await as(world, MARA, RULE);
  const input = { files: [fileOf([BACK])] };
  const shown = digestOf(await previewAction(context, ledgerImport, input));
  await asked(runAction(context, ledgerImport, input, { ...QUIET, shown }));
  await importing([BACK], { rules: {} });
  await expect(runAction(context, ledgerImport, input, { ...QUIET, shown })).rejects.toThrow(OutdatedPreview);
  expect(await world.sql('SELECT FROM approval_requests')).toHaveLength(1);
});

test('while nobody else can approve, a person imports alone, and the event says so', async () => {
  await invite(world, 'kim@issuer.example', { roles: ['approver'] });
  const request = await asked(importing([BACK], { by: SAM }));
  for (const login of [MARA, LEE, PAT, 'kim@issuer.example']) {
    await runAction(await as(world, ADMINISTRATOR, {}), userDeactivate, { login, reason: 'has left' }, QUIET);
  }
  await importing([BACK], { by: SAM });
  expect(
    await world.sql(
      `SELECT details->'one_person'->>'action' AS alone FROM audit_events WHERE action = 'ledger.import'
       ORDER BY event_id DESC LIMIT 1`,
    ),
  ).toEqual([{ alone: 'ledger.import' }]);
  expect(await world.sql('SELECT request_id::int, decision FROM approval_decisions')).toEqual([
    { request_id: request, decision: 'withdraw' },
  ]);
  expect(await differences()).toEqual([]);
});

test('the rules find an approved import of another file, and one after the request expired', async () => {
  await approve(await asked(importing([BACK])));
  await importing([BACK]);
  expect(await differences()).toEqual([]);
  const found = async (change: string, table = 'audit_events', where = `action = 'ledger.import'`) => {
    await world.sql(GUARDS_OFF);
    await world.sql(`UPDATE ${table} SET ${change} WHERE ${where} AND event_id =
      (SELECT max(event_id) FROM ${table} WHERE ${where})`);
    await world.sql(GUARDS_ON);
    return foundBy(await world.verify(), 'act_approved').map(({ detail }) => detail.replace(/.* Found: /, ''));
  };
  expect(await found(`details = jsonb_set(details, '{sha256,0}', '"${sha256('other')}"')`)).toEqual([
    expect.stringContaining(`event_names ${sha256('other')}`),
  ]);
  await found(`details = jsonb_set(details, '{sha256,0}', '"${sha256(textOf([BACK]))}"')`);
  expect(
    await found(`expires_at = requested_at + interval '1 second'`, 'approval_requests', `action = 'ledger.import'`),
  ).toEqual([]);
  world.at('2026-08-01T15:00:00Z');
  expect(await found(`occurred_at = '2026-08-01T15:00:00Z'`)).toEqual([
    expect.stringContaining('action ledger.import'),
  ]);
});
