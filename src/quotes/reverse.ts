/**
 * Records a partner's reversals: refunds or cancellations of a quote, in whole or in part. The rules of imported ledger
 * rows apply (contract.md, Amounts). A reversal outside the cancellation terms becomes a request, which is a held row. The
 * partner assigns the reversal's id, so a repeated call is safe. Refusals: quote_unknown, quote_not_accepted,
 * quote_archived, reversal_reused, reversal_exceeds, request_invalid.
 */
import { isDeepStrictEqual } from 'node:util';
import { lockImporters, lockLedgerWhole } from '#database/ledger-lock';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { Ground, isMoreThanLeft, Outside, offered, QuoteRow } from '#ledger/cancellation';
import { Ceilings, judgeRows, termsOfQuote } from '#ledger/grounds';
import { RowOfQuote, readQuoteRows, readTermsOf } from '#ledger/grounds.sql';
import { HeldRow, readHeldRows } from '#ledger/held.sql';
import { importRows } from '#ledger/import';
import { amountsProblem } from '#ledger/row';
import { OrderFacts, OVERDRAWN } from '#ledger/rows.sql';
import { Amount, isZero } from '#money';
import { cancellationText, termsOn } from '#partners/cancellation';
import { thisProcess } from '#people/audit-events';
import { orderOf, PartnerCall, quoteOf, refuseArchived } from './quote.ts';
import { ReversalRow, readReversal } from './quotes.sql.ts';

/** The amounts are decimals at or below zero. */
type ReversalAmounts = Readonly<{
  spotPrice: string;
  partnerCut: string;
  invoiceAmount: string;
}>;

type AskedReversal = Readonly<{
  quoteId: string;
  /** The reversed requote; undefined for the whole quote. */
  requoteId: string | undefined;
  /** If undefined, what the terms give is reversed, or all that is left if they give nothing. */
  amounts: ReversalAmounts | undefined;
}>;

type WantedReversal = AskedReversal &
  Readonly<{
    reversalId: string;
    order: OrderFacts;
  }>;

export type ReversalCall = PartnerCall &
  Readonly<{
    ceilings: Ceilings;
  }>;

/** A recorded reversal, or a request for one, which a person has not granted. */
export type AnsweredReversal = Readonly<{
  row: Omit<ReversalRow, 'ground' | 'stated'>;
  ground: Ground | null;
  request: HeldRow | undefined;
}>;

export async function reverseQuote(tx: Transaction, wanted: WantedReversal, asked: ReversalCall) {
  const { caller, now, ceilings } = asked;
  const { partnerId, clientId } = caller;
  const { quoteId, reversalId, requoteId, order } = wanted;
  // The locks exclude other reversals, and acceptances of requotes, between this read and the insertion of the new row.
  // An import needs no such lock, because its rows state their amounts.
  await lockImporters(tx);
  await lockLedgerWhole(tx);
  const known = await readAnswered(tx, { partnerId, reversalId });
  const sold = await readSold(tx, wanted, asked);
  if (known !== undefined)
    return sameReversal(known, wanted, { nothingLeft: sold === undefined || isNothing(sold.left) });
  const { amounts, left } = await prepare(tx, wanted, asked, sold);
  const row = {
    ...{ kind: 'reversal', partner_id: partnerId, quote_id: quoteId, requote_id: requoteId, reversal_id: reversalId },
    ...{ enrollment_id: left.enrollment_id ?? undefined, policy_id: left.policy_id, currency: left.currency },
    ...{ accepted_at: now.toUTC().toISO(), ...amounts, ...order },
  };
  const file = { name: 'the reversal', format: 'ndjson', text: JSON.stringify(row) } as const;
  const details = {
    ...{ reversal_id: reversalId, client_id: clientId },
    ...(wanted.amounts === undefined && { all_that_is_given: true }),
  };
  const { errors, event_id } = await importRows(tx, [file], {
    ...{ skipInvalid: false, now, actor: thisProcess('http'), ceilings, environment: null },
    action: { action: 'quote.reverse', subject: quoteId, details },
    request: { action: 'reversal.request', subject: quoteId, details },
  });
  const [error] = errors;
  if (error !== undefined) throw invalid(error.field, error.reason);
  const answered = event_id === null ? undefined : await readAnswered(tx, { partnerId, reversalId });
  if (answered === undefined) throw new Error(`reversal ${reversalId} was neither recorded nor refused`);
  return answered.answer;
}

/** What a reversal would be now. The amounts are at or below zero. */
export type ForeseenReversal = Readonly<{
  /** The row of the quote or of the requote, with the amounts that are left of it. */
  left: RowOfQuote;
  amounts: ReversalAmounts;
  ground: Ground | null;
  outside: Outside | null;
  /** The terms of the sale in words; null without terms. */
  terms: string | null;
}>;

/** Judges a reversal without recording anything. Refusals: those of `reverseQuote`. */
export async function previewReversal(
  tx: Transaction,
  wanted: AskedReversal,
  asked: ReversalCall,
): Promise<ForeseenReversal> {
  const prepared = await prepare(tx, wanted, asked, await readSold(tx, wanted, asked));
  const { rows, reversal, terms } = prepared;
  const [verdict] = await judgeRows(tx, [...rows, reversal], terms, asked.ceilings);
  const { requote_id } = reversal;
  const sold = rows.find((row) => row.kind !== 'reversal' && (requote_id === null || row.requote_id === requote_id));
  const ofSale = sold && termsOn(termsOfQuote(rows, terms), sold.day);
  return {
    ...{ left: prepared.left, amounts: prepared.amounts },
    ...{ ground: verdict?.ground ?? null, outside: verdict?.outside ?? null },
    terms: ofSale === undefined ? null : cancellationText([{ ...ofSale, from: null }]),
  };
}

type Sold = Readonly<{
  rows: readonly RowOfQuote[];
  left: RowOfQuote;
}>;

/**
 * The rows of an accepted quote, and what its requotes and reversals leave of it, or its reversals of one requote.
 * Undefined if the ledger has no such row. Refusal: quote_archived.
 */
async function readSold(
  tx: Transaction,
  { quoteId, requoteId }: AskedReversal,
  asked: PartnerCall,
): Promise<Sold | undefined> {
  const rows = await readQuoteRows(tx, { partnerId: asked.caller.partnerId, quoteId, now: asked.now.toISO() });
  const sale = rows.find(({ kind, requote_id }) => kind !== 'reversal' && requote_id === (requoteId ?? null));
  if (sale === undefined || rows.every(({ kind }) => kind !== 'quote_accepted')) {
    await refuseArchived(tx, quoteId, asked);
    return undefined;
  }
  const { currency } = sale;
  const own = rows.filter(({ requote_id }) => requoteId === undefined || requote_id === requoteId);
  const sum = (field: 'spot_price' | 'partner_cut' | 'invoice_amount') =>
    Amount.sum(currency, own, (row) => Amount.of(row[field], currency)).toString();
  const sums = {
    spot_price: sum('spot_price'),
    partner_cut: sum('partner_cut'),
    invoice_amount: sum('invoice_amount'),
  };
  return { rows, left: { ...sale, ...sums } };
}

/** A reversal that can be judged, with its amounts, and what it is judged by. */
type Prepared = Sold &
  Readonly<{
    amounts: ReversalAmounts;
    reversal: QuoteRow;
    terms: Awaited<ReturnType<typeof readTermsOf>>;
  }>;

async function prepare(
  tx: Transaction,
  { quoteId, requoteId, amounts: stated }: AskedReversal,
  asked: ReversalCall,
  sold: Sold | undefined,
): Promise<Prepared> {
  if (sold === undefined) {
    const { quote_id } = await quoteOf(tx, quoteId, asked);
    if (requoteId === undefined) throw refuse('quote_not_accepted', { quote_id });
    throw invalid('requote_id', `is not an accepted requote of ${quote_id}`);
  }
  const { rows, left } = sold;
  if (stated === undefined && isNothing(left)) {
    throw refuse('reversal_exceeds', { quote_id: quoteId, reason: 'nothing is left of it' });
  }
  if (stated !== undefined && Object.values(stated).every(isZero)) {
    throw invalid('spotPrice', 'is zero: a reversal must reduce an amount');
  }
  const { currency } = left;
  const problem = stated && amountsProblem({ kind: 'reversal', currency, ...stated });
  if (problem !== undefined) throw invalid(problem.field, problem.reason);
  const terms = await readTermsOf(tx, rows);
  const day = asked.now.setZone(left.time_zone).toFormat('yyyy-MM-dd');
  const requote_id = requoteId ?? null;
  const amounts =
    stated ?? decimals(offered({ requote_id, judged_on: day }, rows, termsOfQuote(rows, terms)), currency);
  const reversal: QuoteRow = {
    ...(rows[0] as QuoteRow),
    ...{ seq: 0, kind: 'reversal', requote_id, day, judged_on: day, ground: null },
    posted_month: [day.slice(0, 7), left.open_month ?? ''].sort()[1] as string,
    ...{ spot_price: amounts.spotPrice, partner_cut: amounts.partnerCut, invoice_amount: amounts.invoiceAmount },
  };
  if (isMoreThanLeft(reversal, rows)) {
    throw refuse('reversal_exceeds', { quote_id: quoteId, reason: OVERDRAWN.replace('%s', quoteId) });
  }
  return { left, amounts, rows, reversal, terms };
}

const isNothing = (left: QuoteRow) => [left.spot_price, left.partner_cut, left.invoice_amount].every(isZero);

function decimals({ cut, share }: { cut: bigint; share: bigint }, currency: string): ReversalAmounts {
  const of = (units: bigint) => Amount.ofMinorUnits(-units, currency).toString();
  return { spotPrice: of(cut + share), partnerCut: of(cut), invoiceAmount: of(share) };
}

const invalid = (path: string, reason: string) => refuse('request_invalid', { problems: [{ path, reason }] });

type Known = Readonly<{
  /** What was recorded, or what was requested and is not recorded. */
  answer: AnsweredReversal;
  /** What the partner asked for. A person may have granted other amounts. */
  asked: Omit<ReversalRow, 'ground' | 'stated'>;
  stated: boolean;
}>;

async function readAnswered(
  tx: Transaction,
  { partnerId, reversalId }: { partnerId: string; reversalId: string },
): Promise<Known | undefined> {
  const row = await readReversal(tx, { partnerId, reversalId });
  const [request] = await readHeldRows(tx, { partner: partnerId, reversal: reversalId });
  const asked = request === undefined ? row : { ...request, reversal_id: reversalId };
  if (asked === undefined) return undefined;
  const stated = request === undefined ? (row?.stated ?? true) : request.stated;
  return { asked, stated, answer: { row: row ?? asked, ground: row?.ground ?? null, request } };
}

/**
 * The answer to a known reversal, if its content equals that of the call. A call without amounts equals a reversal whose
 * call had none, or after which nothing was left of the quote.
 */
function sameReversal(
  { asked: known, stated, answer }: Known,
  { quoteId, reversalId, requoteId, amounts, order }: WantedReversal,
  { nothingLeft }: { nothingLeft: boolean },
) {
  const same = (text: string | undefined, amount: string) =>
    text === undefined || Amount.of(text, known.currency).equals(Amount.of(amount, known.currency));
  const repeated =
    (amounts !== undefined || !stated || nothingLeft) &&
    known.quote_id === quoteId &&
    known.requote_id === (requoteId ?? null) &&
    isDeepStrictEqual(orderOf(known), order) &&
    same(amounts?.spotPrice, known.spot_price) &&
    same(amounts?.partnerCut, known.partner_cut) &&
    same(amounts?.invoiceAmount, known.invoice_amount);
  if (!repeated) throw refuse('reversal_reused', { reversal_id: reversalId, quote_id: known.quote_id });
  return answer;
}
