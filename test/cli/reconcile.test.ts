/** Connected accounts by the real program, as people and cron see them. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { importBalanceTransactions } from '../../src/splits/import.ts';
import { accountFee, ndjson, payout, share, type Told } from '../splits/balance-transactions.ts';
import { sellThroughProcessor } from '../splits/processor-world.ts';
import { command, job, type Ran } from '../support/program.ts';
import { openWorld, partner, type World } from '../support/world.ts';

let world: World;
const env = () => ({
  RECKONER_HOME: world.home,
  DATABASE_URL: world.databaseUrl,
  RECKONER_NOW: '2026-08-20T10:00:00Z',
});
const run = (...args: string[]): Promise<Ran> => command(args, { env: env() });

beforeAll(async () => {
  world = await openWorld();
  await sellThroughProcessor(world, '2026-07-10');
  const text = ndjson([
    ...[share(1234, '2026-07-11T12:00:00Z'), accountFee(30, '2026-07-11T12:00:00Z')],
    payout(700, '2026-07-12T12:00:00Z'),
  ]);
  await world.database.transaction((tx) => importBalanceTransactions(tx, world, { name: 'more', text }, 'acct_split'));
  await world.close();
});
afterAll(() => world.end());

const fits = (text: string) =>
  expect(text.split('\n').filter((line) => line.length > 80 && !line.includes(': '))).toEqual([]);

test('the report shows what is open, and exits 4', async () => {
  const { status, stdout } = await run('reconcile', '2026-07');
  expect(status).toBe(4);
  expect(stdout).toMatch(/p-split +USD +5 +3 +28\.00 +21\.00 +7\.00 +0\.00 +7\.00/);
  expect(stdout).toMatch(/missing +split-missing of p-split +USD +7\.00 +40/);
  expect(stdout).toMatch(/unknown .* -12\.34/);
  expect(stdout).toMatch(/acct_split .* in the bank on [\d-]+ +7\.00 USD/);
  expect(stdout).toMatch(/acct_split .* contents unknown/);
  expect(stdout).toContain('Other balance transactions:\n  1 stripe_fee on acct_split, -0.30 USD\n');
  expect(stdout).toContain("'reckoner reconcile 2026-07 --bill-missing' bills 1 of them.");
  fits(stdout);
});

test('the report says why money is not matched to the quote that it names, and what is not billed for it', async () => {
  const other = { partner_id: 'p-other', arrangement: 'connected_account', connected_account_id: 'acct_other' };
  await world.partners([partner({ ...other, merchant_of_record: 'platform', split: 'real_time' })]);
  const take = (account: string, ...told: readonly Told[]) =>
    world.database.transaction((tx) =>
      importBalanceTransactions(tx, world, { name: 'x', text: ndjson(told) }, account),
    );
  const at = '2026-07-13T12:00:00Z';
  const [wrong, euros] = [
    share(700, at, { quote_id: 'split-missing' }),
    share(650, at, { quote_id: 'split-missing' }, 'eur'),
  ];
  const none = share(1, at, { quote_id: 'q-none' });
  await take('acct_other', wrong);
  await take('acct_split', euros, none);
  const { stdout } = await run('reconcile', '2026-07');
  const text = stdout.replace(/\s+/g, ' ');
  expect(text).toContain(
    `${wrong.id} on acct_other: 7.00 USD names quote split-missing, which belongs to p-split, whose account is not ` +
      `acct_other. Match to split-missing with 'reckoner processor match ${wrong.id} --quote split-missing ` +
      `--partner p-split --account acct_other --other-account --reason REASON'. ` +
      `Close without a quote with 'reckoner processor close ${wrong.id} --account acct_other --reason REASON'.`,
  );
  expect(text).toContain(
    `${euros.id} on acct_split: 6.50 EUR names quote split-missing, which is in USD, so a match states what it counts ` +
      `as. Match to split-missing with 'reckoner processor match ${euros.id} --quote split-missing --partner p-split`,
  );
  expect(text).toContain('0.01 USD names quote q-none, which is not in the ledger yet.');
  expect(text).toMatch(/Not billed until finance decides: split-missing of p-split, 7\.00 USD: .* names it/);
  expect(text).not.toContain('--bill-missing');
  fits(stdout);
  const of = ['--account', 'acct_other', '--quote', 'split-missing', '--reason', 'R'];
  const matched = await run('processor', 'match', wrong.id, ...of, '--other-account');
  expect(matched.stdout).toContain('7.00 USD of');
  const undone = await run('processor', 'unmatch', wrong.id, ...of);
  expect([matched.status, undone.status]).toEqual([0, 0]);
  const closed = await run('processor', 'close', wrong.id, euros.id, none.id, '--reason', 'given back by wire');
  expect(closed.stdout).toContain('Closed 3 balance transactions. They leave 7.01 USD and 6.50 EUR not explained');
});

test('the plan of a quote is a list of requests', async () => {
  const { status, stdout } = await run('split', 'plan', 'split-routed');
  expect(status).toBe(0);
  expect(stdout).toContain('    transfer_data[amount]=700\n');
  fits(stdout);
});

test('the job logs what is open, and exits 4', async () => {
  const { status, stderr } = await job('reconcile', { env: env() });
  expect(status).toBe(4);
  const lines = stderr
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(
    lines
      .filter(({ msg }) => msg === 'open')
      .map(({ status: found }) => found)
      .sort(),
  ).toEqual(['missing', 'unknown']);
});
