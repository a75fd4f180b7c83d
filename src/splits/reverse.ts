/**
 * Records a transfer that the Merchant of Record reversed as a reversal in the ledger (service.md 7.5). The row goes
 * through the ledger's import, and the balance transaction is its evidence. The reversed amount is a fact and is never
 * recomputed. The refunded price is known if the whole remaining share was reversed, or if the partner's settlement
 * file states it. In all other cases, finance must state the refunded price. Refusals: balance_transaction_unknown,
 * account_needed, balance_transaction_not_reversible, argument_invalid.
 */

import { lockImporters } from '#database/ledger-lock';
import { Transaction } from '#database/transaction';
import { IssueContext } from '#documents/issue/context';
import { typedAmount } from '#errors/amounts';
import { refuse, refuseField } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { fieldName } from '#field-names';
import { decideRecorded, heldLine, TAKEN_BACK } from '#ledger/held';
import { HeldRow, readHeldRows } from '#ledger/held.sql';
import { importRows } from '#ledger/import';
import { IDENTIFIER } from '#partners/file';
import { recordEvent } from '#people/audit-events';
import { Amount, amountProblem, Month, minorDigits } from '#values';
import { lockProcessor } from './accounts.sql.ts';
import { findBalanceTransaction } from './match.ts';
import { recordRequestedReversals } from './requested.ts';
import { insertReversalEvidence, ReversedTransfer, readReversedTransfers, readStanding } from './reverse.sql.ts';

type RecordedReversal = Readonly<{
  partner_id: string;
  quote_id: string;
  reversal_id: string;
  /** Null if a request of the partner was recorded, which all transfers of the quote together cover. */
  balance_transaction: string | null;
  currency: string;
  /** The price is negative, as in the ledger row. */
  spotPrice: string;
  partnerCut: string;
  invoiceAmount: string;
}>;

type UnpricedReversal = Readonly<{
  partner_id: string;
  quote_id: string;
  balance_transaction: string;
  currency: string;
  amount: string;
  reason: string;
}>;

export type ReversalReport = Readonly<{
  recorded: readonly RecordedReversal[];
  manual_review: readonly UnpricedReversal[];
}>;

/** Records only reversed transfers whose refunded price is known. */
export async function recordReversals(tx: Transaction, acting: IssueContext, month: Month): Promise<ReversalReport> {
  await lockProcessor(tx);
  // The lock waits for imports by the partner, because they may contain the reversals.
  await lockImporters(tx);
  const requested = recordedRequests(await recordRequestedReversals(tx, acting));
  const { recorded, manual_review } = await record(tx, acting, await readReversedTransfers(tx, { month }), {
    subject: month,
  });
  return { recorded: [...requested, ...recorded], manual_review };
}

const recordedRequests = (rows: readonly HeldRow[]): RecordedReversal[] =>
  rows
    .filter(({ kind }) => kind === 'reversal')
    .map((row) => ({
      ...{ partner_id: row.partner_id, quote_id: row.quote_id, reversal_id: row.own_id, balance_transaction: null },
      ...{ currency: row.currency, spotPrice: row.spot_price, partnerCut: row.partner_cut },
      invoiceAmount: row.invoice_amount,
    }));

export async function reverseManually(
  tx: Transaction,
  acting: IssueContext,
  request: { balance_transaction: string; account?: string | undefined; spotPrice: string },
): Promise<ReversalReport> {
  await lockProcessor(tx);
  await lockImporters(tx);
  const balance_transaction = await findBalanceTransaction(tx, request);
  const refuseIt = (reason: string) =>
    refuse('balance_transaction_not_reversible', { balance_transaction: balance_transaction.id, reason });
  const requested = await recordRequestedReversals(tx, acting);
  const [share, ...others] = await readReversedTransfers(tx, { balance_transaction });
  if (share === undefined && requested.length > 0) {
    return { recorded: recordedRequests(requested), manual_review: [] };
  }
  if (
    share === undefined ||
    amountOf(share.beyond_processor, share).minus(amountOf(share.amount, share)).isNegative()
  ) {
    throw refuseIt('the ledger already has everything that it reversed');
  }
  if (others.length > 0) throw refuseIt('it belongs to several quotes, and one price cannot apply to all of them');
  if (share.of_requotes > 1) throw refuseIt(OF_WHICH_REQUOTE);
  const { spotPrice } = request;
  typedAmount(spotPrice, share.currency, fieldName('spotPrice'));
  if (priced(share, leftOf(share), spotPrice) === undefined) {
    const reason = `must be from the reversed amount (${share.amount}) to the remaining price and cut of the quote`;
    throw refuseField('spotPrice', spotPrice, reason);
  }
  return record(tx, acting, [{ ...share, refunded: spotPrice }], { subject: balance_transaction.id, byFinance: true });
}

type Row = RecordedReversal &
  Readonly<{
    balance_transaction: string;
    share_allocation_id: number;
    held_row_id: number | null;
    price_from: 'whole' | 'settlement_file' | 'finance';
    line: object;
  }>;

async function record(
  tx: Transaction,
  acting: IssueContext,
  reversedTransfers: readonly ReversedTransfer[],
  { subject, byFinance = false }: { subject: string; byFinance?: boolean },
): Promise<ReversalReport> {
  const { environment, actor, settings } = acting;
  const { rows, unpriced } = price(reversedTransfers, byFinance);
  if (rows.length === 0) return { recorded: [], manual_review: unpriced };
  const now = environment.now();
  const requests = await requestsOf(tx, rows);
  const text = rows.map((row) => `${JSON.stringify(lineOf(row, requests))}\n`).join('');
  const action = {
    action: 'processor.reverse',
    subject,
    details: { reversals: rows.map(({ reversal_id }) => reversal_id), accepted: 0 },
  };
  const report = await importRows(tx, [{ name: 'reversed transfers', format: 'ndjson', text }], {
    skipInvalid: true,
    now,
    actor,
    action,
    ceilings: settings.reversals,
    environment,
    allowedBy: 'processor',
  });
  failpoint('processor.reversed');
  // If the ledger refuses every row, there is nothing to record.
  const isRecorded = report.event_id !== null || (await readStanding(tx, { rows })).length > 0;
  const eventId =
    report.event_id ?? (isRecorded ? await recordEvent(tx, actor, { ...action, now: now.toISO() }) : null);
  const stand = eventId === null ? [] : await insertReversalEvidence(tx, { rows, now: now.toISO(), eventId });
  const standing = new Set(stand.map((each) => each.share_allocation_id));
  const refused = new Map(report.errors.map((each) => [rows[each.line - 1]?.share_allocation_id, each.reason]));
  const recorded = rows.filter((row) => standing.has(row.share_allocation_id));
  const decided = recorded.flatMap(({ held_row_id }) => (held_row_id === null ? [] : [{ held_row_id }]));
  if (eventId !== null) await decideRecorded(tx, acting, decided, { reason: TAKEN_BACK, eventId });
  return {
    recorded: recorded.map(({ share_allocation_id: _, price_from: __, held_row_id: ___, line: ____, ...row }) => row),
    manual_review: [
      ...unpriced,
      ...rows
        .filter((row) => !standing.has(row.share_allocation_id))
        .map((row) => ({
          partner_id: row.partner_id,
          quote_id: row.quote_id,
          balance_transaction: row.balance_transaction,
          currency: row.currency,
          amount: row.invoiceAmount.replace('-', ''),
          reason: `the ledger refuses it: ${refused.get(row.share_allocation_id) ?? 'it has another row with that id'}`,
        })),
    ],
  };
}

async function requestsOf(tx: Transaction, rows: readonly Row[]): Promise<ReadonlyMap<number | null, HeldRow>> {
  const ids = rows.flatMap(({ held_row_id }) => (held_row_id === null ? [] : [held_row_id]));
  const requests = ids.length === 0 ? [] : await readHeldRows(tx, { ids });
  return new Map(requests.map((row) => [row.held_row_id, row]));
}

/** A request is recorded as it was sent, but with what was reversed. */
function lineOf(
  { held_row_id, line, spotPrice, partnerCut, invoiceAmount }: Row,
  requests: Awaited<ReturnType<typeof requestsOf>>,
) {
  const request = requests.get(held_row_id);
  return request === undefined ? line : { ...heldLine(request), spotPrice, partnerCut, invoiceAmount };
}

/** Each row reduces the remaining amounts of its quote for the next row. */
function price(
  reversedTransfers: readonly ReversedTransfer[],
  byFinance: boolean,
): { rows: Row[]; unpriced: UnpricedReversal[] } {
  const rows: Row[] = [];
  const unpriced: UnpricedReversal[] = [];
  for (const shares of byQuote(reversedTransfers)) {
    const { chosen, others } = byFinance ? { chosen: shares, others: [] } : notInTheLedger(shares);
    for (const share of others)
      unpriced.push(manualReview(share, 'it is unclear which of them are already in the ledger'));
    let left: RemainingAmounts | undefined;
    for (const share of chosen) {
      if (share.of_requotes > 1) {
        unpriced.push(manualReview(share, OF_WHICH_REQUOTE));
        continue;
      }
      left ??= leftOf(share);
      const whole = amountOf(share.amount, share).equals(left.invoiceAmount);
      // A stated price has priority even if the whole share was reversed, because the partner may keep its cut.
      const said = share.refunded !== null;
      const sums = said ? priced(share, left, share.refunded) : whole ? left : undefined;
      if (sums === undefined) {
        unpriced.push(manualReview(share, 'it is unknown how much of the price the customer got back'));
        continue;
      }
      left = {
        spotPrice: left.spotPrice.minus(sums.spotPrice),
        partnerCut: left.partnerCut.minus(sums.partnerCut),
        invoiceAmount: left.invoiceAmount.minus(sums.invoiceAmount),
      };
      rows.push(rowOf(share, sums, byFinance ? 'finance' : said ? 'settlement_file' : 'whole'));
    }
  }
  return { rows, unpriced };
}

const OF_WHICH_REQUOTE =
  'its quote was invoiced and several requotes were routed: name the requote in a settlement file with requote_id';

type RemainingAmounts = Readonly<{
  spotPrice: Amount;
  partnerCut: Amount;
  invoiceAmount: Amount;
}>;

const amountOf = (text: string, { currency }: { currency: string }) => Amount.of(text, currency);

const leftOf = (share: ReversedTransfer): RemainingAmounts => ({
  spotPrice: amountOf(share.spot_price_left, share),
  partnerCut: amountOf(share.partner_cut_left, share),
  invoiceAmount: amountOf(share.invoice_amount_left, share),
});

/**
 * Returns the three amounts of a reversal at that price, above zero; undefined if they exceed the remaining amounts of
 * the quote.
 */
function priced(
  share: ReversedTransfer,
  left: RemainingAmounts,
  spotPrice: string | null,
): RemainingAmounts | undefined {
  if (spotPrice === null || amountProblem(spotPrice, minorDigits(share.currency) as number) !== undefined)
    return undefined;
  const invoiceAmount = amountOf(share.amount, share);
  const price = amountOf(spotPrice, share);
  const partnerCut = price.minus(invoiceAmount);
  const within = (part: Amount, most: Amount) => !part.isNegative() && !most.minus(part).isNegative();
  const fits =
    within(price, left.spotPrice) && within(partnerCut, left.partnerCut) && within(invoiceAmount, left.invoiceAmount);
  return fits ? { spotPrice: price, partnerCut, invoiceAmount } : undefined;
}

/**
 * Partners also import their refunds themselves. Only the reversed amount that exceeds the ledger's reversals must
 * still be recorded. This amount is recorded from all of the shares, or from the single share with exactly that amount.
 */
function notInTheLedger(shares: readonly ReversedTransfer[]): {
  chosen: readonly ReversedTransfer[];
  others: readonly ReversedTransfer[];
} {
  const [first] = shares;
  if (first === undefined) return { chosen: [], others: [] };
  const beyond = amountOf(first.beyond_ledger, first);
  const all = Amount.sum(first.currency, shares, (share) => amountOf(share.amount, share));
  if (all.equals(beyond)) return { chosen: shares, others: [] };
  const one = shares.findLast((share) => amountOf(share.amount, share).equals(beyond));
  return one === undefined ? { chosen: [], others: shares } : { chosen: [one], others: [] };
}

function byQuote(shares: readonly ReversedTransfer[]) {
  const quotes = new Map<string, ReversedTransfer[]>();
  for (const share of shares) {
    const key = `${share.partner_id} ${share.quote_id}`;
    quotes.set(key, [...(quotes.get(key) ?? []), share]);
  }
  return [...quotes.values()];
}

const manualReview = (
  { partner_id, quote_id, balance_transaction, currency, amount }: ReversedTransfer,
  reason: string,
): UnpricedReversal => ({
  partner_id,
  quote_id,
  balance_transaction,
  currency,
  amount: Amount.of(amount, currency).toString(),
  reason,
});

function rowOf(share: ReversedTransfer, sums: RemainingAmounts, price_from: Row['price_from']): Row {
  const { share_allocation_id, partner_id, quote_id, currency, balance_transaction } = share;
  const named = share.shares > 1 ? `${balance_transaction}:${quote_id}` : balance_transaction;
  const reversal_id = share.reversal_id ?? (IDENTIFIER.test(named) ? named : `share:${share_allocation_id}`);
  const amounts = {
    spotPrice: sums.spotPrice.negated().toString(),
    partnerCut: sums.partnerCut.negated().toString(),
    invoiceAmount: sums.invoiceAmount.negated().toString(),
  };
  const line = {
    kind: 'reversal',
    partner_id,
    quote_id,
    ...(share.requote_id === null ? {} : { requote_id: share.requote_id }),
    reversal_id,
    ...(share.enrollment_id === null ? {} : { enrollment_id: share.enrollment_id }),
    policy_id: share.policy_id,
    currency,
    accepted_at: share.occurred_at,
    ...amounts,
  };
  return {
    share_allocation_id,
    held_row_id: share.held_row_id,
    partner_id,
    quote_id,
    reversal_id,
    balance_transaction,
    currency,
    ...amounts,
    price_from,
    line,
  };
}
