/**
 * Records a partner's reversals: refunds or cancellations of a quote, in whole or in part. The rules of imported ledger
 * rows apply (contract.md, Amounts). The partner assigns the reversal's id, so a repeated request is safe. Refusals:
 * quote_unknown, quote_not_accepted, reversal_reused, reversal_exceeds, request_invalid.
 */
import { isDeepStrictEqual } from 'node:util';
import { lockImporters, lockLedgerWhole } from '../database/ledger-lock.ts';
import type { Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import { importRows } from '../ledger/import.ts';
import type { OrderFacts } from '../ledger/rows.sql.ts';
import { Amount, isZero } from '../money.ts';
import { thisProcess } from '../people/audit-events.ts';
import type { PartnerCall } from './quote.ts';
import { orderOf, quoteOf } from './quote.ts';
import { type ReversalRow, readLeftOfQuote, readReversal } from './quotes.sql.ts';

/** The amounts are decimals at or below zero. */
interface ReversalAmounts {
  readonly spotPrice: string;
  readonly partnerCut: string;
  readonly invoiceAmount: string;
}

interface WantedReversal {
  readonly quoteId: string;
  readonly reversalId: string;
  /** The reversed requote; undefined for the whole quote. */
  readonly requoteId: string | undefined;
  /** If undefined, the whole remainder of the quote is reversed. */
  readonly amounts: ReversalAmounts | undefined;
  readonly order: OrderFacts;
}

export async function reverseQuote(tx: Transaction, wanted: WantedReversal, asked: PartnerCall): Promise<ReversalRow> {
  const { caller, now } = asked;
  const { partnerId, clientId } = caller;
  const { quoteId, reversalId, requoteId, order } = wanted;
  // The locks exclude other reversals, and acceptances of requotes, between this read and the insertion of the new row.
  // An import needs no such lock, because its rows state their amounts.
  await lockImporters(tx);
  await lockLedgerWhole(tx);
  const known = await readReversal(tx, { partnerId, reversalId });
  const left = await readLeftOfQuote(tx, { partnerId, quoteId, requoteId: requoteId ?? null });
  const nothingLeft = left === undefined || [left.spot_price, left.partner_cut, left.invoice_amount].every(isZero);
  if (known !== undefined) return sameReversal(known, wanted, { nothingLeft });
  if (left === undefined) {
    const { quote_id } = await quoteOf(tx, quoteId, asked);
    if (requoteId === undefined) throw refuse('quote_not_accepted', { quote_id });
    throw invalid('requote_id', `is not an accepted requote of ${quote_id}`);
  }
  const { policy_id, currency, enrollment_id, spot_price, partner_cut, invoice_amount } = left;
  const negated = (amount: string) => Amount.of(amount, currency).negated().toString();
  const amounts = wanted.amounts ?? {
    spotPrice: negated(spot_price),
    partnerCut: negated(partner_cut),
    invoiceAmount: negated(invoice_amount),
  };
  if (wanted.amounts === undefined && nothingLeft) {
    throw refuse('reversal_exceeds', { quote_id: quoteId, reason: 'nothing is left of it' });
  }
  if (Object.values(amounts).every(isZero)) throw invalid('spotPrice', 'is zero: a reversal must reduce an amount');
  const row = {
    ...{ kind: 'reversal', partner_id: partnerId, quote_id: quoteId, requote_id: requoteId, reversal_id: reversalId },
    ...{ enrollment_id: enrollment_id ?? undefined, policy_id, currency, accepted_at: now.toUTC().toISO(), ...amounts },
    ...order,
  };
  const file = { name: 'the reversal', format: 'ndjson', text: JSON.stringify(row) } as const;
  const details = { reversal_id: reversalId, client_id: clientId };
  const action = { action: 'quote.reverse', subject: quoteId, details };
  const { accepted, errors } = await importRows(tx, [file], {
    skipInvalid: false,
    now,
    actor: thisProcess('http'),
    action,
  });
  const [error] = errors;
  if (error?.code === 'quote_exceeded') throw refuse('reversal_exceeds', { quote_id: quoteId, reason: error.reason });
  if (error !== undefined) throw invalid(error.field, error.reason);
  if (accepted !== 1) throw new Error(`reversal ${reversalId} was neither recorded nor refused`);
  return (await readReversal(tx, { partnerId, reversalId })) as ReversalRow;
}

const invalid = (path: string, reason: string) => refuse('request_invalid', { problems: [{ path, reason }] });

/**
 * The recorded reversal, if its content equals that of the request. A request without amounts matches a recorded
 * reversal after which nothing was left of the quote.
 */
function sameReversal(
  known: ReversalRow,
  { quoteId, reversalId, requoteId, amounts, order }: WantedReversal,
  { nothingLeft }: { nothingLeft: boolean },
): ReversalRow {
  const same = (text: string | undefined, amount: string) =>
    text === undefined || Amount.of(text, known.currency).equals(Amount.of(amount, known.currency));
  const repeated =
    (amounts !== undefined || nothingLeft) &&
    known.quote_id === quoteId &&
    known.requote_id === (requoteId ?? null) &&
    isDeepStrictEqual(orderOf(known), order) &&
    same(amounts?.spotPrice, known.spot_price) &&
    same(amounts?.partnerCut, known.partner_cut) &&
    same(amounts?.invoiceAmount, known.invoice_amount);
  if (!repeated) throw refuse('reversal_reused', { reversal_id: reversalId, quote_id: known.quote_id });
  return known;
}
