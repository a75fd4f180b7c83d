/** kill -9 while connected accounts are read, paid out, matched, reversed and billed: run again, and it ends the same. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { ndjson, payout, reversedTransfers, share } from '../splits/balance-transactions.ts';
import { FAILPOINTS, type Failpoint } from '../support/failpoints.ts';
import { type Ran, reckoner, command as stayed } from '../support/program.ts';
import { startStripe } from '../support/stripe/stand-in.ts';
import { someOf, times } from '../support/sweep.ts';
import { tally } from '../support/tally.ts';
import { openWorld, partner, quote, reversal } from '../support/world.ts';

const AT = '2026-07-10T12:00:00Z';
const pulled = share(700, AT, { quote_id: 'q-pulled' });
const nameless = share(700, AT);
const stray = share(300, AT);
/** What the partner has asked to reverse, and the processor has. */
const asked = share(700, AT, { quote_id: 'q-asked' });
const MOVED = ndjson([
  ...[pulled, reversedTransfers(pulled, 700, AT), nameless, stray, asked],
  reversedTransfers(asked, 700, AT),
]);
const LATE = share(700, '2026-08-02T12:00:00Z', { quote_id: 'q-missing' });
const READ = share(700, AT, { quote_id: 'q-read' });
const OUT = payout(700, '2026-07-12T12:00:00Z');

const COMMANDS = {
  import: ['processor', 'import', 'moved.ndjson', '--account', 'acct_1'],
  match: ['processor', 'match', nameless.id, '--quote', 'q-nameless', '--reason', 'as told'],
  close: ['processor', 'close', stray.id, '--reason', 'given back by wire'],
  poll: ['processor', 'poll'],
  reverse: ['reconcile', '2026-07', '--reverse'],
  bill: ['reconcile', '2026-07', '--bill-missing'],
  pay: ['processor', 'import', 'late.ndjson', '--account', 'acct_1'],
  reconcile: ['reconcile', '2026-07'],
} as const;
type Command = keyof typeof COMMANDS;

const KILLED: Partial<Record<Failpoint, Command>> = {
  'processor.recorded': 'import',
  'processor.matched': 'match',
  'processor.closed': 'close',
  'processor.read': 'poll',
  'processor.paid_out': 'poll',
  'processor.reversed': 'reverse',
  'processor.covered': 'import',
  'shares.billed': 'bill',
  'shares.paid': 'pay',
};

/** Goes through the commands, one of them killed and run again, and gives what they came to. */
async function run(failpoint?: Failpoint): Promise<unknown> {
  const stripe = await startStripe();
  const world = await openWorld();
  try {
    for (const each of [READ, OUT]) {
      stripe.state.balanceTransactions.set(each.id, { ...each });
      stripe.state.paidOut.set(each.id, OUT.source.id);
    }
    await world.partners([
      partner({
        ...{ arrangement: 'connected_account', connected_account_id: 'acct_1' },
        ...{ merchant_of_record: 'platform', split: 'real_time' },
      }),
    ]);
    await world.rows(
      ['q-pulled', 'q-read', 'q-missing', 'q-nameless', 'q-asked'].map((quote_id) =>
        quote({ quote_id, accepted_at: AT, enrollment_id: '' }),
      ),
    );
    await world.close();
    const request = reversal(quote({ quote_id: 'q-asked', enrollment_id: '' }), { reversal_id: 'rv-asked' });
    const refund = {
      spotPrice: '-7.00',
      partnerCut: '0.00',
      invoiceAmount: '-7.00',
      accepted_at: '2026-07-20T12:00:00Z',
    };
    expect(await world.rows([{ ...request, ...refund }], { holds: true })).toMatchObject({ held: 1 });
    writeFileSync(join(world.home, 'moved.ndjson'), MOVED);
    writeFileSync(join(world.home, 'late.ndjson'), ndjson([LATE]));
    const reckon = (command: Command, env: Record<string, string> = {}): Promise<Ran> =>
      (env['RECKONER_FAILPOINT'] ? reckoner : stayed)(['--json', ...COMMANDS[command]], {
        cwd: world.home,
        env: {
          ...{ RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: '2026-08-03T10:00:00Z' },
          ...{ STRIPE_SECRET_KEY_acct_1: 'sk_test_acct1', STRIPE_API_BASE: stripe.url, ...env },
        },
      });
    let last: Ran | undefined;
    for (const command of Object.keys(COMMANDS) as Command[]) {
      if (failpoint !== undefined && KILLED[failpoint] === command) {
        expect((await reckon(command, { RECKONER_FAILPOINT: failpoint })).signal).toBe('SIGKILL');
      }
      last = await reckon(command);
      expect({ command, status: last.status, stderr: last.stderr }).toMatchObject({ command, stderr: '' });
    }
    expect(last?.status).toBe(0);
    const { differences } = await world.verify();
    expect(differences).toBe(0);
    const found = { ...(last?.json() as object), invoices: undefined };
    const counts = await world.sql(
      `SELECT (SELECT count(*)::int FROM balance_transactions) AS balance_transactions, (SELECT count(*)::int FROM share_allocations) AS shares,
              (SELECT count(*)::int FROM payout_contents) AS paid_out,
              (SELECT count(*)::int FROM reversal_evidence) AS reversals, (SELECT count(*)::int FROM missing_shares) AS billed,
              (SELECT count(*)::int FROM balance_transaction_closings) AS closed,
              (SELECT count(*)::int FROM reversal_grounds WHERE ground = 'processor') AS by_processor,
              (SELECT count(*)::int FROM undecided_rows) AS undecided,
              (SELECT count(*)::int FROM share_payments) AS paid, (SELECT count(*)::int FROM payment_applications) AS applied`,
    );
    return { found, counts };
  } finally {
    await world.end();
    await stripe.close();
  }
}

let survived = 0;
let undisturbed: Promise<unknown> | undefined;

test('these tests kill at every failpoint of connected accounts', () => {
  expect(FAILPOINTS.filter((each) => /^(processor|shares)[.]/.test(each)).sort()).toEqual(Object.keys(KILLED).sort());
});

const KILLS = Object.keys(KILLED) as Failpoint[];
for (const failpoint of someOf(KILLS, times({ few: 2, short: 3, long: KILLS.length }))) {
  test(`a command killed at ${failpoint} and repeated ends as an undisturbed one`, async () => {
    undisturbed ??= run();
    expect(await undisturbed).toMatchObject({
      counts: [
        {
          ...{
            balance_transactions: 9,
            shares: 7,
            paid_out: 1,
            reversals: 1,
            billed: 1,
            closed: 1,
            paid: 1,
            applied: 1,
          },
          ...{ by_processor: 2, undecided: 0 },
        },
      ],
    });
    expect(await run(failpoint)).toEqual(await undisturbed);
    survived += 1;
  }, 300_000);
}

afterAll(() => tally('kills survived', 'at failpoints', survived));
