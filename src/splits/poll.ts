/**
 * Reads our connected accounts at the processor: balance transactions, and the contents of each payout. A reading
 * begins a little before the end of the previous reading, because earlier balance transactions may become visible late.
 * A webhook only causes an earlier reading; its data is not used. Network calls are made outside database transactions.
 * The cursor moves only when a whole reading is stored.
 */
import { DateTime } from 'luxon';
import { accountKeyVariable, Environment } from '#config/environment';
import { Database } from '#database/database';
import { IssueContext } from '#documents/issue/context';
import { refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { settlePayoutsOfAccounts } from '#payments/settle-payouts';
import { BalanceTransaction, BalanceTransactionSource, ProcessorAccess, Unavailable } from '#processors/processor';
import { PROCESSOR } from '#processors/processors';
import { insertReading, readAccountOwners, readCursor, WATCHED_DAYS } from './accounts.sql.ts';
import { allocateShares, beginRecording, ImportReport, recordBalanceTransactions } from './import.ts';
import { insertPayoutContents, readPayoutsWithoutContents } from './payouts.sql.ts';
import { recordRequestedReversals } from './requested.ts';

export const OVERLAP_HOURS = 72;

/** The largest number of balance transactions in one database transaction, and in memory. */
const KEPT_AT_ONCE = 1000;

export type AccountReading = ImportReport &
  Readonly<{
    account: string;
  }>;

type AccountAccess = ProcessorAccess &
  Readonly<{
    account: string;
  }>;

/** Returns the account's own key. We have this key because the account is ours. */
export function accessTo({ connectedKeys, stripeBase }: Environment, account: string): AccountAccess {
  const key = connectedKeys.get(account);
  if (key === undefined) throw refuse('account_key_missing', { account, variable: accountKeyVariable(account) });
  return { account, key, base: stripeBase };
}

/**
 * Reads one account completely, starting from its cursor. An interrupted reading starts at the same cursor again and
 * skips the balance transactions that are already stored.
 */
export async function readAccount(
  database: Database,
  acting: IssueContext,
  access: AccountAccess,
): Promise<AccountReading> {
  const { account } = access;
  if ((await database.reading((tx) => readAccountOwners(tx, { account }))).length === 0) {
    throw refuse('account_unknown', { account });
  }
  const to = acting.environment.now();
  const cursor = await database.reading((tx) => readCursor(tx, { account }));
  const from = cursor === null ? null : DateTime.fromISO(cursor, { zone: 'utc' }).minus({ hours: OVERLAP_HOURS });
  if (from !== null && to <= from) {
    const [today, latest] = [to, from].map((each) => each.toISODate() as string) as [string, string];
    throw refuse('clock_behind', { today, latest, number: account, action: 'read' });
  }
  const sum = { read: 0, recorded: 0, matched: 0 };
  let batch: BalanceTransaction[] = [];
  const keep = async (last: boolean) => {
    const kept = await database.transaction(async (tx) => {
      const recording = await beginRecording(tx, acting, {
        action: 'processor.read',
        subject: account,
        details: { balance_transactions: batch.length, from: from?.toISO() ?? null },
      });
      const recorded = await recordBalanceTransactions(tx, { account, source: account }, batch, recording);
      if (last) {
        const total = { balance_transactions: sum.read, fresh: sum.recorded + recorded };
        await insertReading(tx, {
          account,
          from: from?.toISO() ?? null,
          to: to.toISO(),
          file: null,
          ...total,
          ...recording,
        });
      }
      const matched = await allocateShares(tx, acting, recording);
      if (last) await settlePayoutsOfAccounts(tx, acting);
      return { recorded, matched };
    });
    sum.recorded += kept.recorded;
    sum.matched += kept.matched;
    batch = [];
    failpoint('processor.read');
  };
  for await (const each of listed(access, { since: from?.toJSDate() ?? null }, acting)) {
    if (batch.length >= KEPT_AT_ONCE) await keep(false);
    batch.push(each);
    sum.read += 1;
  }
  await keep(true);
  const paidOut = await readContents(database, acting, access);
  await database.transaction((tx) => recordRequestedReversals(tx, acting));
  sum.read += paidOut.recorded;
  sum.recorded += paidOut.recorded;
  sum.matched += paidOut.matched;
  return { account, ...sum, duplicates: sum.read - sum.recorded };
}

/**
 * Requests the contents of each payout until the contents are known. Balance transactions that became visible only
 * after the overlap are recorded too.
 */
async function readContents(database: Database, acting: IssueContext, access: AccountAccess) {
  const { account } = access;
  const since = acting.environment.now().minus({ days: WATCHED_DAYS }).toISO();
  const sum = { recorded: 0, matched: 0 };
  for (const { balance_transaction_id, payout } of await database.reading((tx) =>
    readPayoutsWithoutContents(tx, { account, since }),
  )) {
    const contents: BalanceTransaction[] = [];
    for await (const each of listed(access, { payout }, acting)) contents.push(each);
    // The processor returns an empty list if it cannot list the contents yet, or never.
    if (contents.length === 0) continue;
    const kept = await database.transaction(async (tx) => {
      const details = { account, balance_transactions: contents.length };
      const recording = await beginRecording(tx, acting, { action: 'processor.paid_out', subject: payout, details });
      const recorded = await recordBalanceTransactions(tx, { account, source: account }, contents, recording);
      const ids = contents.map((each) => each.id);
      await insertPayoutContents(tx, { account, payoutTransactionId: balance_transaction_id, ids, ...recording });
      failpoint('processor.paid_out');
      const matched = await allocateShares(tx, acting, recording);
      await settlePayoutsOfAccounts(tx, acting);
      return { recorded, matched };
    });
    sum.recorded += kept.recorded;
    sum.matched += kept.matched;
  }
  return sum;
}

async function* listed(
  access: AccountAccess,
  which: Parameters<BalanceTransactionSource['list']>[1],
  { environment }: IssueContext,
): AsyncGenerator<BalanceTransaction> {
  const { account } = access;
  try {
    for await (const each of PROCESSOR.balanceTransactions.list(access, which, environment.name === 'production')) {
      if ('balance_transaction' in each) yield each.balance_transaction;
      else {
        const problems = [{ path: each.id, reason: each.problem }];
        throw refuse('balance_transactions_invalid', { source: account, problems });
      }
    }
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
    throw refuse('processor_unreachable', { account, reason: error.message }, error);
  }
}
