/** Changed bank details are the classic invoice fraud: finance and operations are told at once. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { firstSettings } from '../../src/config/first-settings.ts';
import { readSettings } from '../../src/config/settings.ts';
import { sendEmails } from '../../src/month-end/month-end.ts';
import { recordSettingsChanges } from '../../src/people/settings-changes.ts';
import { adopt, readAgain } from '../support/adopting.ts';
import type { MailServer } from '../support/mail-server.ts';
import { freshMailWorld } from '../support/mail-world.ts';
import type { World } from '../support/world.ts';

let server: MailServer;
let world: World;
freshMailWorld((opened) => {
  ({ world, server } = opened);
});

const first = firstSettings('sandbox');
const wire = first.instructions['USD']?.wire as Record<string, unknown>;

/** What the next command or job does with these settings. */
async function run(change: object): Promise<void> {
  writeFileSync(join(world.home, 'settings.json'), JSON.stringify({ ...first, ...change }));
  world.settings = readSettings(world.environment);
  await readAgain(world);
  await recordSettingsChanges(world.database, world);
  await sendEmails(world, {});
}
const elsewhere = { USD: { wire: { ...wire, account_number: '987654321' } } };

test('a new account number is mailed to finance and operations, once, with what it was', async () => {
  await run({});
  expect(server.mails).toEqual([]);
  await run({ payment_terms_days: 10 });
  expect(server.mails).toEqual([]);
  await run({ instructions: { ...first.instructions, ...elsewhere } });
  expect(server.mails).toHaveLength(1);
  expect(server.mails[0]?.to).toEqual([first.finance_email, first.operations_email]);
  expect(server.mails[0]?.parsed.subject).toBe('[SANDBOX] Bank details on invoices have changed');
  const text = server.mails[0]?.parsed.text ?? '';
  expect(text).toMatch(/Bank details, USD, wire, account number\n {2}before: \S+\n {2}now: 987654321/);
  expect(text).toContain('by Ada, as ada on desk');
  await sendEmails(world, {});
  expect(server.mails).toHaveLength(1);
});

test('once they were adopted, a changed file mails nothing, and adopting it does', async () => {
  await run({});
  await adopt(world, 'instructions', first.instructions);
  await run({ instructions: { ...first.instructions, ...elsewhere } });
  expect(server.mails).toEqual([]);
  await adopt(world, 'instructions', { ...first.instructions, ...elsewhere });
  await sendEmails(world, {});
  expect(server.mails).toHaveLength(1);
  expect(server.mails[0]?.parsed.text).toContain('987654321');
});

test('whoever also changes who is told does not keep it from those who were told before', async () => {
  await run({});
  const friend = { finance_email: 'friend@evil.test', operations_email: '' };
  await run({ instructions: { ...first.instructions, ...elsewhere }, ...friend });
  expect(server.mails[0]?.to).toEqual(['friend@evil.test', first.finance_email, first.operations_email]);
});

test('nor by changing first who is told, and then the bank details', async () => {
  await run({});
  await run({ finance_email: 'friend@evil.test' });
  await run({ instructions: { ...first.instructions, ...elsewhere }, finance_email: 'friend@evil.test' });
  expect(server.mails[0]?.to).toContain(first.finance_email);
});
