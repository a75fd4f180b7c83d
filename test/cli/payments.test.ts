/** What the commands on payments say and how they exit: a person reads what is to be judged, within 80 columns. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { command } from '../support/program.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
let folder: string;
beforeAll(async () => {
  world = await openWorld();
  folder = mkdtempSync(join(tmpdir(), 'reckoner-payments-'));
  await world.partners([
    partner({ partner_id: 'p-1', name: 'Harbour Lights Ticketing' }),
    partner({
      partner_id: 'p-2',
      arrangement: 'connected_account',
      connected_account_id: 'acct_1PLATFORM000000',
      merchant_of_record: 'platform',
      split: 'sequential',
    }),
  ]);
  await world.rows(['p-1', 'p-2'].map((partner_id) => quote({ partner_id, ...HUNDRED })));
  await world.close();
});
afterAll(async () => {
  await world.end();
  rmSync(folder, { recursive: true, force: true });
});

const HUNDRED = { spotPrice: '100.00', partnerCut: '0', invoiceAmount: '100.00' };
const INVOICE = 'INV-2026-000001';
const STATEMENT = 'ST-2026-000001';

const payment = (...args: readonly string[]) =>
  command(['payment', ...args], {
    env: { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: '2026-08-10T10:00:00Z' },
  });
const record = (amount: string, reference: string, ...whose: readonly string[]) =>
  payment(
    ...['record', '--amount', amount, '--currency', 'USD', '--method', 'wire', '--received-on', '2026-08-09'],
    ...['--reference', reference, ...whose],
  );
const bankFile = (name: string, ...lines: readonly string[]) => {
  const path = join(folder, name);
  const head = 'date,amount,currency,account,bank_reference,text,payer,payer_account';
  writeFileSync(path, `${[head, ...lines].join('\n')}\n`);
  return path;
};
const widest = (text: string) => Math.max(...text.split('\n').map((line) => line.length));

test('a statement takes no payment, paid or not: the refusal says why', { timeout: 120_000 }, async () => {
  const ran = await record('5', 'FT-1', '--invoice', STATEMENT);
  expect(ran).toMatchObject({ status: 2 });
  expect(ran.stderr).toMatch(/it is a statement: the processor routes its payments/);
});

test('a reversal says how much was reversed and which invoices are open again', { timeout: 120_000 }, async () => {
  await record('40', 'FT-2', '--partner', 'p-1');
  const part = await payment('reverse', '1', '--as', 'returned', '--reason', 'R01', '--amount', '15');
  expect(part.stdout).toMatch(/^15\.00 USD of payment 1 is reversed; it was taken from unapplied cash\.$/m);
  await payment('apply', '1', '--invoice', INVOICE);
  const rest = await payment('reverse', '1', '--as', 'returned', '--reason', 'R01', '--amount', '10');
  expect(rest.stdout).toMatch(
    /^10\.00 USD of payment 1 is reversed; the amount it paid on INV-2026-000001 is owed again\.$/m,
  );
});

test('a payment for a paid invoice is kept as unapplied cash, and possible duplicates are listed', {
  timeout: 120_000,
}, async () => {
  expect(await record('85', 'confirmed by phone', '--invoice', INVOICE)).toMatchObject({ status: 0 });
  const kept = await record('3', 'FT-4', '--invoice', INVOICE);
  expect(kept.stdout).toMatch(/^Payment 3 is recorded; INV-2026-000001 is paid: it is kept as unapplied cash\.$/m);
  expect(kept).toMatchObject({ status: 4 });
  const line = `2026-08-10,85.00,USD,0001,B-1,${INVOICE},Harbour Lights Ticketing,`;
  const imported = await payment('import', bankFile('phone.csv', line));
  expect(imported).toMatchObject({ status: 4 });
  expect(imported.stdout).toMatch(/= 2\?/);
  const again = await record('3', 'FT-5', '--invoice', INVOICE);
  expect(again.stdout).toMatch(/perhaps +the same as payment 3: received on 2026-08-09 with the same/);
  for (const { stdout } of [kept, imported, again]) expect(widest(stdout)).toBeLessThanOrEqual(80);
});

test('a payment is found by amount, by a reference in the bank file, by payer and by day', async () => {
  const found = async (...options: string[]) => {
    const { stdout } = await payment('list', '--format', 'csv', ...options);
    return stdout
      .split('\r\n')
      .slice(1, -1)
      .map((line) => line.split(',')[0]);
  };
  expect(await found('--amount', '85.00')).toEqual(['2', '4']);
  expect(await found('--text', 'ft-4')).toEqual(['3']);
  // As in the console, the partner's name counts as the payer's.
  expect(await found('--text', 'harbour lights')).toEqual(['1', '2', '3', '4', '5']);
  expect(await found('--amount', '85', '--from', '2026-08-10', '--to', '2026-08-10')).toEqual(['4']);
  expect(await found('--to', '2026-08-01')).toEqual([]);
  expect(await payment('list', '--amount', '85,00')).toMatchObject({ status: 2 });
});

test('a dry run reports no payment ids that a later payment will get', { timeout: 120_000 }, async () => {
  const lines = [
    '2026-08-10,7.00,USD,0001,B-2,FT-70707070,,',
    '2026-08-10,-7.00,USD,0001,B-3,RETURN R01 FT-70707070,,',
  ];
  const preview = await payment('import', bankFile('dry.csv', ...lines), '--dry-run');
  expect(preview.stdout.replace(/\s+/g, ' ')).toMatch(/the payment of line 2 is returned/);
  expect(preview.stdout).not.toMatch(/payment \d/);
});
