/** Account statements by e-mail: after a close to whoever wants them, on request to anyone, once for a month. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { simpleParser } from 'mailparser';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Month } from '../../src/month.ts';
import { sendStatements } from '../../src/month-end/emails/account-statement.ts';
import { sendEmails } from '../../src/month-end/month-end.ts';
import { refusalOf } from '../close/refusal.ts';
import { command } from '../support/program.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  const contact = (partner_id: string) => ({ name: 'AP', email: `${partner_id}@partner.example`, cc: [] });
  await world.partners([
    partner({ account_statement: 'monthly', invoicing_contact: contact('p-1') }),
    partner({ partner_id: 'p-2', invoicing_contact: contact('p-2') }),
    partner({ partner_id: 'p-3', account_statement: 'monthly', invoicing_contact: contact('p-3') }),
  ]);
  await world.rows([quote(), quote({ partner_id: 'p-2' })]);
  await world.close();
  world.at('2026-09-01T12:00:00Z');
  await world.close();
});
afterAll(() => world.end());

const statements = () =>
  world.sql<{ partner_id: string; status: string; day: string }>(
    `SELECT partner_id, status, day::text AS day FROM emails WHERE kind = 'account_statement' ORDER BY email_id`,
  );

test('after a close each partner that wants a statement gets one, and none where there was never anything', async () => {
  await sendEmails(world, {});
  await sendEmails(world, {});
  expect(await statements()).toEqual([
    { partner_id: 'p-1', status: 'sent', day: '2026-08-31' },
    { partner_id: 'p-3', status: 'withdrawn', day: '2026-08-31' },
  ]);
  const outbox = join(world.home, 'outbox');
  const [file] = readdirSync(outbox).filter((name) => name.startsWith('account-statement'));
  const mail = await simpleParser(readFileSync(join(outbox, file as string)));
  expect(mail.subject).toBe('[SANDBOX] Account statement for August 2026 from Sandbox Protection Services, Inc.');
  expect(mail.text).toContain(
    '- INV-2026-000001: USD 7.00, due August 31, 2026\nTotal due: USD 7.00\nCurrent: USD 7.00',
  );
  expect(mail.attachments.map(({ filename }) => filename)).toEqual(['account-statement-2026-08.pdf']);
  expect(mail.attachments[0]?.content.subarray(0, 5).toString()).toBe('%PDF-');
});

test('statement send mails any partner once, whether it asked for statements or not', async () => {
  const run = (...args: string[]) =>
    command(['--json', 'statement', 'send', ...args], {
      env: { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: '2026-09-02T12:00:00Z' },
    });
  const sent = await run('--month', '2026-08', '--partner', 'p-2');
  expect(sent.json()).toMatchObject({ month: '2026-08', emails: [{ partner_id: 'p-2', status: 'sent' }] });
  expect((await run('--partner', 'p-2')).json()).toEqual({ month: '2026-08', emails: [] });
});

test('an open month and an unknown partner are refused, and nothing is recorded', async () => {
  const before = await statements();
  const send = (request: { month?: Month; partnerId?: string }) =>
    world.database.transaction((tx) => sendStatements(tx, world, request));
  expect(await refusalOf(send({ month: '2026-09' as Month }))).toMatchObject({ code: 'month_not_closed' });
  expect(await refusalOf(send({ partnerId: 'p-9' }))).toMatchObject({ code: 'partner_unknown' });
  expect(await statements()).toEqual(before);
});
