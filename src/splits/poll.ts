/**
 * Reading our connected accounts at the processor: balance transactions from a little before the end of the last
 * reading, since what is created earlier may be seen later, and of each payout what it paid out. Webhooks are a hint to
 * read sooner and no source: what they tell is told here again. Network calls happen outside transactions; the cursor
 * moves when all of a reading is kept.
 * Refusals: account_unknown, account_key_missing, balance_transactions_invalid, processor_unreachable.
 */
import { DateTime } from 'luxon';
import type Stripe from 'stripe';
import type { Environment } from '../config/environment.ts';
import type { Database } from '../database/database.ts';
import type { IssueContext } from '../documents/issue/context.ts';
import { reasonOf, refuse } from '../errors/refusals.ts';
import { failpoint } from '../failpoint.ts';
import { parseExactJson } from '../json.ts';
import { settlePayoutsOfAccounts } from '../payments/settle.ts';
import { type BalanceTransaction, readBalanceTransaction } from '../processors/stripe/balance-transactions.ts';
import { insertReading, readAccountOwners, readCursor, WATCHED_DAYS } from './accounts.sql.ts';
import { allocateShares, beginRecording, type ImportReport, recordBalanceTransactions } from './import.ts';
import { insertPayoutContents, readPayoutsWithoutContents } from './payouts.sql.ts';

/** How far before the end of the last reading the next one begins. */
export const OVERLAP_HOURS = 72;

/** A page is the most that the processor gives at once. */
const PAGE = 100;
/** So many are kept in one transaction, and in memory at once. */
const KEPT_AT_ONCE = 1000;

export interface AccountReading extends ImportReport {
  readonly account: string;
}

export interface AccountAccess {
  readonly account: string;
  /** Of the account itself: it is ours, and is read with its own key. */
  readonly key: string;
  /** Another server in the processor's place, in sandbox only. */
  readonly base?: string | undefined;
}

/** With which key an account is read. */
export function accessTo({ connectedKeys, stripeBase }: Environment, account: string): AccountAccess {
  const key = connectedKeys.get(account);
  if (key === undefined) throw refuse('account_key_missing', { account });
  return { account, key, base: stripeBase };
}

/** Reads one account whole from its cursor on. Cut off, it begins there again, and what was kept is known. */
export async function readAccount(
  database: Database,
  acting: IssueContext,
  { account, key, base }: AccountAccess,
): Promise<AccountReading> {
  if ((await database.reading((tx) => readAccountOwners(tx, account))).length === 0) {
    throw refuse('account_unknown', { account });
  }
  const to = acting.environment.now();
  const cursor = await database.reading((tx) => readCursor(tx, account));
  const from = cursor === null ? null : DateTime.fromISO(cursor, { zone: 'utc' }).minus({ hours: OVERLAP_HOURS });
  const stripe = await openStripe(key, base);
  const created = from === null ? {} : { created: { gte: Math.floor(from.toSeconds()) } };
  const sum = { read: 0, recorded: 0, matched: 0 };
  let batch: BalanceTransaction[] = [];
  const keep = async (last: boolean): Promise<void> => {
    const kept = await database.transaction(async (tx) => {
      const recording = await beginRecording(tx, acting, {
        action: 'processor.read',
        subject: account,
        details: { balance_transactions: batch.length, from: from?.toISO() ?? null },
      });
      const recorded = await recordBalanceTransactions(tx, { account, source: account }, batch, recording);
      if (last) {
        const total = { balance_transactions: sum.read, fresh: sum.recorded + recorded };
        await insertReading(tx, { account, from: from?.toISO() ?? null, to: to.toISO(), ...total }, recording);
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
  for (let after: string | undefined; ; ) {
    const page = await pageOf(stripe, account, {
      ...created,
      ...(after === undefined ? {} : { starting_after: after }),
    });
    for (const transaction of page.data) batch.push(balanceTransactionOf(transaction, account, acting));
    sum.read += page.data.length;
    after = page.data.at(-1)?.id;
    if (!page.has_more || after === undefined) break;
    if (batch.length >= KEPT_AT_ONCE) await keep(false);
  }
  await keep(true);
  const paidOut = await readContents(database, acting, { account, stripe });
  sum.read += paidOut.recorded;
  sum.recorded += paidOut.recorded;
  sum.matched += paidOut.matched;
  return { account, ...sum, duplicates: sum.read - sum.recorded };
}

/**
 * Asks of each payout what it paid out, once it tells. What is told only here, such as what was created before the
 * overlap and seen after it, is kept as well.
 */
async function readContents(
  database: Database,
  acting: IssueContext,
  { account, stripe }: { account: string; stripe: Stripe },
): Promise<{ recorded: number; matched: number }> {
  const since = acting.environment.now().minus({ days: WATCHED_DAYS }).toISO();
  const sum = { recorded: 0, matched: 0 };
  for (const { balance_transaction_id, payout } of await database.reading((tx) =>
    readPayoutsWithoutContents(tx, { account, since }),
  )) {
    const listed: BalanceTransaction[] = [];
    for (let after: string | undefined; ; ) {
      const page = await pageOf(stripe, account, { payout, ...(after === undefined ? {} : { starting_after: after }) });
      for (const transaction of page.data) listed.push(balanceTransactionOf(transaction, account, acting));
      after = page.data.at(-1)?.id;
      if (!page.has_more || after === undefined) break;
    }
    // The processor gives an empty list where it cannot tell, or not yet.
    if (listed.length === 0) continue;
    const kept = await database.transaction(async (tx) => {
      const details = { account, balance_transactions: listed.length };
      const recording = await beginRecording(tx, acting, { action: 'processor.paid_out', subject: payout, details });
      const recorded = await recordBalanceTransactions(tx, { account, source: account }, listed, recording);
      const ids = listed.map((each) => each.id);
      await insertPayoutContents(tx, { account, payoutTransactionId: balance_transaction_id, ids }, recording);
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

async function pageOf(
  stripe: Stripe,
  account: string,
  params: Stripe.BalanceTransactionListParams,
): Promise<Stripe.ApiList<Stripe.BalanceTransaction>> {
  try {
    return await stripe.balanceTransactions.list({ ...params, limit: PAGE, expand: ['data.source'] });
  } catch (error) {
    // The processor repeats the key that it refuses; none of it goes into a log.
    const reason = reasonOf(error).replace(/\b[sr]k_(test|live)_\S+/g, '(key)');
    throw refuse('processor_unreachable', { account, reason }, error);
  }
}

function balanceTransactionOf(
  transaction: Stripe.BalanceTransaction,
  account: string,
  { environment }: IssueContext,
): BalanceTransaction {
  // Its numbers are whole and small enough to be exact; from here on they are texts.
  const payload = JSON.stringify(transaction);
  const read = readBalanceTransaction(parseExactJson(payload), payload, environment.name === 'production');
  if ('balance_transaction' in read) return read.balance_transaction;
  throw refuse('balance_transactions_invalid', {
    source: account,
    problems: [{ path: transaction.id, reason: read.problem }],
  });
}

async function openStripe(key: string, base: string | undefined): Promise<Stripe> {
  // Loaded when it is needed: most commands never ask a processor.
  const { default: StripeClient } = await import('stripe');
  const url = base === undefined ? undefined : new URL(base);
  return new StripeClient(key, {
    maxNetworkRetries: 2,
    timeout: 30_000,
    telemetry: false,
    ...(url === undefined
      ? {}
      : { protocol: url.protocol === 'http:' ? 'http' : 'https', host: url.hostname, port: url.port || undefined }),
  } as Stripe.StripeConfig);
}
