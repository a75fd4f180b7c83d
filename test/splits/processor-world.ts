/** A partner with a connected account and one record of each kind, for tests of everything that is stored. */
import type { Month } from '../../src/month.ts';
import { settlePayoutsOfAccounts } from '../../src/payments/settle-payouts.ts';
import { billMissingShares } from '../../src/splits/bill.ts';
import { beginRecording, importBalanceTransactions, importSettlement } from '../../src/splits/import.ts';
import { readBalanceTransactions } from '../../src/splits/match.sql.ts';
import { closeBalanceTransactions } from '../../src/splits/match.ts';
import { insertPayoutContents } from '../../src/splits/payouts.sql.ts';
import { recordReversals } from '../../src/splits/reverse.ts';
import { booksOf } from '../payments/books.ts';
import { partner, quote, type World } from '../support/world.ts';
import { converted, ndjson, payout, reversedTransfers, share, type Told } from './balance-transactions.ts';

/** An account pays out these balance transactions, as its readings report. */
export async function payOut(world: World, account: string, out: Told, ids: readonly string[]): Promise<void> {
  await world.database.transaction(async (tx) => {
    const text = ndjson([out]);
    await importBalanceTransactions(tx, world, { name: 'paid-out.ndjson', text }, account);
    const recording = await beginRecording(tx, world, {
      action: 'processor.paid_out',
      subject: out.source.id,
      details: {},
    });
    const [known] = await readBalanceTransactions(tx, { id: out.id, account });
    await insertPayoutContents(tx, {
      account,
      payoutTransactionId: known?.balance_transaction_id as number,
      ids,
      ...recording,
    });
    await settlePayoutsOfAccounts(tx, world);
  });
}

/**
 * Sells five quotes on that day: one by metadata, one by settlement file, one reversed, one converted, one missing. What
 * came for none is closed.
 */
export async function sellThroughProcessor(world: World, day: string): Promise<void> {
  const at = `${day}T12:00:00Z`;
  const connected = { arrangement: 'connected_account', merchant_of_record: 'platform', split: 'real_time' };
  await world.partners([partner({ partner_id: 'p-split', ...connected, connected_account_id: 'acct_split' })]);
  const ids = ['split-routed', 'split-told', 'split-pulled', 'split-missing', 'split-converted'];
  await world.rows(ids.map((quote_id) => quote({ partner_id: 'p-split', quote_id, accepted_at: at })));
  const told = share(700, at);
  const pulled = share(700, at, { quote_id: 'split-pulled' });
  const stray = share(300, at);
  const text = ndjson([
    ...[share(700, at, { quote_id: 'split-routed' }), told, pulled, reversedTransfers(pulled, 700, at)],
    ...[converted(share(700, at, { quote_id: 'split-converted' }), 642, '0.917', 'eur'), stray],
  ]);
  await world.database.transaction((tx) =>
    importBalanceTransactions(tx, world, { name: 'moved.ndjson', text }, 'acct_split'),
  );
  await world.database.transaction((tx) =>
    closeBalanceTransactions(tx, world, { balance_transactions: [stray.id], reason: 'given back by wire' }),
  );
  const settlement = `quote_id,transfer,payment,amount\nsplit-told,,${told.source.id},7.00\n`;
  await world.database.transaction((tx) =>
    importSettlement(tx, world, { name: 'settlement.csv', text: settlement }, 'p-split'),
  );
  await world.database.transaction((tx) => recordReversals(tx, world, day.slice(0, 7) as Month));
  await payOut(world, 'acct_split', payout(700, at), [told.id]);
  const head = 'date,amount,currency,account,bank_reference,text,payer,payer_account';
  const line = `${day},7.00,USD,0001,B-SPLIT,STRIPE TRANSFER,STRIPE,`;
  await booksOf(world).bankText('paid-out.csv', `${head}\n${line}\n`);
  await world.sql(
    `INSERT INTO processor_readings (account, read_from, read_to, balance_transactions, new_balance_transactions, recorded_at, event_id)
     SELECT 'acct_split', NULL, $1::timestamptz + interval '9 days', count(*), 0, now(), event_id
     FROM balance_transactions GROUP BY event_id ORDER BY event_id DESC LIMIT 1`,
    [at],
  );
}

/** Bills the missing quote of a closed month. Half of its share is received then and pays for it. */
export async function billThroughProcessor(world: World, month: string): Promise<string[]> {
  const numbers = await world.database.transaction((tx) => billMissingShares(tx, world, month as Month));
  const late = share(350, world.environment.now().toISO(), { quote_id: 'split-missing' });
  await world.database.transaction((tx) =>
    importBalanceTransactions(tx, world, { name: 'late.ndjson', text: ndjson([late]) }, 'acct_split'),
  );
  return numbers;
}
