/**
 * Accepts quotes and requotes. Each acceptance becomes one ledger row. A repeated or concurrent acceptance gets the
 * same answer and records nothing. Several acceptances can be checked and recorded together. Refusals: token_invalid
 * (the client was revoked), quote_unknown, requote_unknown, partner_inactive, policy_inactive, quote_expired,
 * policy_price_exceeded, quote_reversed, requote_stale, recorded_otherwise.
 */
import { DateTime } from 'luxon';
import { lockLedgerShared } from '#database/ledger-lock';
import { Transaction } from '#database/transaction';
import { Refusal, refuse } from '#errors/refusals';
import { OrderFacts } from '#ledger/rows.sql';
import { monthsAround, ZoneMonth } from '#ledger/zone-months';
import { Amount } from '#money';
import { monthOf } from '#month';
import { thisProcess } from '#people/audit-events';
import { orderOf, PartnerCall, refuseAbove, refuseInactive } from './quote.ts';
import {
  enrollmentOf,
  isOvertaken,
  QuoteState,
  RequoteFacts,
  RequoteState,
  readQuotes,
  readRequotes,
  recordAcceptances,
} from './quotes.sql.ts';

export type AcceptanceRequest = PartnerCall &
  Readonly<{
    kind: 'quote' | 'requote';
    id: string;
  }>;

/** The prices of a quote, or the increments of a requote. */
export type AcceptanceAnswer = Readonly<{
  partnerId: string;
  quoteId: string;
  requoteId: string | null;
  enrollmentId: string;
  currency: string;
  /** An ISO instant in UTC. */
  acceptedAt: string;
  spotPrice: string;
  partnerCut: string;
  invoiceAmount: string;
}>;

export type Due = Readonly<{
  wanted: AcceptanceRequest;
  accepted: AcceptanceAnswer;
  policyId: string;
  /** The partner's time zone at the time of the check. */
  timeZone: string;
  step: number | null;
  order: OrderFacts;
}>;

type Verdict = { readonly accepted: AcceptanceAnswer } | { readonly refusal: Refusal } | { readonly due: Due };

/**
 * How often an acceptance is attempted. A second attempt finds a row that was recorded in the meantime. A third attempt
 * is needed if the partner's time zone changed too.
 */
export const MOST_TRIES = 3;

export async function accept(tx: Transaction, wanted: AcceptanceRequest) {
  for (let tries = 1; tries <= MOST_TRIES; tries += 1) {
    const [verdict] = await judge(tx, [wanted]);
    if (verdict === undefined) break;
    if ('refusal' in verdict) throw verdict.refusal;
    if ('accepted' in verdict) return verdict.accepted;
    await lockLedgerShared(tx);
    try {
      const [accepted] = await record(tx, [verdict.due]);
      if (accepted !== undefined) return accepted;
    } catch (error) {
      if (!isOvertaken(error)) throw error;
      throw refuse('requote_stale', { requote_id: wanted.id, quote_id: verdict.due.accepted.quoteId }, error);
    }
  }
  throw unsettled(wanted);
}

/** The error reports a bug, because the next read always sees a row that was recorded in the meantime. */
export const unsettled = ({ kind, id }: AcceptanceRequest) =>
  new Error(`${kind} ${id} could not be recorded and is not recorded`);

// --- Judging ---

/**
 * Checks each acceptance without writing and without a lock. The statements are sent without waiting for each answer.
 */
export async function judge(tx: Transaction, wanted: readonly AcceptanceRequest[]): Promise<Verdict[]> {
  const [requotes, states] = await Promise.all([
    readRequotes(
      tx,
      wanted.filter(({ kind }) => kind === 'requote').map(({ id, caller }) => ({ requoteId: id, ...caller })),
    ),
    readQuotes(
      tx,
      wanted.map(({ kind, id, caller, now }) => ({
        ...caller,
        ...(kind === 'quote' ? { quoteId: id } : { requoteId: id }),
        now: now.toISO(),
      })),
    ),
  ]);
  return wanted.map((each, index) => {
    const { client_lives: lives, quote } = states[index] ?? { client_lives: false, quote: undefined };
    try {
      if (!lives) throw refuse('token_invalid', { reason: 'its client was revoked' });
      if (each.kind === 'quote') return judgeQuote(each, quote);
      return judgeRequote(each, requotes.get(`${each.caller.partnerId} ${each.id}`), quote);
    } catch (error) {
      if (error instanceof Refusal) return { refusal: error };
      throw error;
    }
  });
}

function judgeQuote(wanted: AcceptanceRequest, quote: QuoteState | undefined) {
  if (quote === undefined) throw refuse('quote_unknown', { quote_id: wanted.id });
  const accepted = acceptedQuote(quote);
  if (accepted !== undefined) return { accepted };
  if (quote.imported) throw refuse('recorded_otherwise', { id: wanted.id });
  refuseInactive(quote, quote.partner_id, quote.policy_id);
  refuseExpired(quote.quote_id, quote.expires_at, wanted);
  refuseAbove(quote, Amount.of(quote.spot_price, quote.currency));
  return {
    due: {
      wanted,
      accepted: { ...pricesOf(quote), enrollmentId: enrollmentOf(wanted.id), acceptedAt: wanted.now.toUTC().toISO() },
      policyId: quote.policy_id,
      timeZone: quote.time_zone,
      step: null,
      order: orderOf(quote),
    },
  };
}

function judgeRequote(wanted: AcceptanceRequest, requote: RequoteState | undefined, quote: QuoteState | undefined) {
  if (requote === undefined) throw refuse('requote_unknown', { requote_id: wanted.id });
  const increments = incrementsOf(requote);
  if (requote.enrollment_id !== null && requote.accepted_at !== null) {
    const { enrollment_id: enrollmentId, accepted_at: acceptedAt } = requote;
    return { accepted: { ...increments, enrollmentId, acceptedAt: instant(acceptedAt) } };
  }
  if (requote.imported) throw refuse('recorded_otherwise', { id: wanted.id });
  if (quote === undefined) throw refuse('quote_unknown', { quote_id: requote.quote_id });
  refuseOvertaken(requote, quote);
  refuseInactive(quote, quote.partner_id, quote.policy_id);
  refuseExpired(requote.requote_id, requote.expires_at, wanted);
  refuseAbove(quote, Amount.of(requote.spot_price, requote.currency));
  return {
    due: {
      wanted,
      // A requote keeps the quote's enrollment, because only the price changes.
      accepted: { ...increments, enrollmentId: quote.enrollment_id ?? '', acceptedAt: wanted.now.toUTC().toISO() },
      policyId: quote.policy_id,
      timeZone: quote.time_zone,
      step: requote.step,
      order: orderOf(requote),
    },
  };
}

export const hasExpired = (expiresAt: string | null, now: DateTime): expiresAt is string =>
  expiresAt !== null && DateTime.fromISO(expiresAt) <= now;

function refuseExpired(id: string, expiresAt: string | null, { now }: AcceptanceRequest) {
  if (hasExpired(expiresAt, now)) throw refuse('quote_expired', { id, expired_at: instant(expiresAt) });
}

/** The answer that was given when the quote was accepted; undefined while the quote is open. */
export function acceptedQuote(quote: QuoteState): AcceptanceAnswer | undefined {
  if (quote.enrollment_id === null || quote.accepted_at === null) return undefined;
  return { ...pricesOf(quote), enrollmentId: quote.enrollment_id, acceptedAt: instant(quote.accepted_at) };
}

const pricesOf = (quote: QuoteState) => ({
  partnerId: quote.partner_id,
  quoteId: quote.quote_id,
  requoteId: null,
  currency: quote.currency,
  spotPrice: quote.spot_price,
  partnerCut: quote.partner_cut,
  invoiceAmount: quote.invoice_amount,
});

/** Writes an instant in the same form whether it is new or was read back, so that equal answers have equal bytes. */
export const instant = (text: string) => DateTime.fromISO(text, { zone: 'utc' }).toISO() ?? text;

export function incrementsOf(requote: RequoteFacts): Omit<AcceptanceAnswer, 'enrollmentId' | 'acceptedAt'> {
  const { currency } = requote;
  const more = (now: string, before: string) => Amount.of(now, currency).minus(Amount.of(before, currency)).toString();
  return {
    partnerId: requote.partner_id,
    quoteId: requote.quote_id,
    requoteId: requote.requote_id,
    currency,
    spotPrice: more(requote.spot_price, requote.accepted_spot_price),
    partnerCut: more(requote.partner_cut, requote.accepted_partner_cut),
    invoiceAmount: more(requote.invoice_amount, requote.accepted_invoice_amount),
  };
}

/** Refuses a requote if its quote was reversed, or if a different price was accepted after the requote was made. */
function refuseOvertaken(requote: RequoteState, quote: QuoteState) {
  const { quote_id, requote_id } = requote;
  if (quote.reversed) throw refuse('quote_reversed', { quote_id });
  if (isStale(requote, quote)) throw refuse('requote_stale', { requote_id, quote_id });
}

export function isStale(requote: RequoteState, quote: QuoteState) {
  const same = (one: string, other: string) =>
    Amount.of(one, requote.currency).equals(Amount.of(other, requote.currency));
  return !(
    requote.step === quote.steps + 1 &&
    same(requote.accepted_spot_price, quote.accepted_spot_price) &&
    same(requote.accepted_partner_cut, quote.accepted_partner_cut)
  );
}

// --- Recording ---

/**
 * Records acceptances of different quotes in one statement, by the posting rule. The caller must hold the ledger's
 * lock. An acceptance is undefined if the ledger already has its row, or if the partner has changed its time zone. The
 * caller then checks the acceptance again. The function fails with isOvertaken if a different requote of a quote was
 * accepted in the meantime.
 */
export async function record(tx: Transaction, dues: readonly Due[]) {
  const recorded = await recordAcceptances(
    tx,
    thisProcess('http'),
    monthsOf(dues),
    dues.map(({ wanted, accepted, policyId, step, order }) => ({
      ...accepted,
      ...order,
      kind: kindOf(accepted),
      clientId: wanted.caller.clientId,
      policyId,
      step,
      recordedAt: wanted.now.toISO(),
    })),
  );
  return dues.map(({ accepted }) => {
    const key = `${kindOf(accepted)} ${accepted.requoteId ?? accepted.quoteId}`;
    return recorded.has(key) ? accepted : undefined;
  });
}

const kindOf = ({ requoteId }: AcceptanceAnswer) => (requoteId === null ? 'quote_accepted' : 'requote_accepted');

/**
 * The months that the acceptances may belong to in their time zones. There are only a few such months for any number of
 * acceptances.
 */
function monthsOf(dues: readonly Due[]) {
  const months = new Map<string, ZoneMonth>();
  for (const { wanted, timeZone } of dues) {
    for (const month of monthsAround(timeZone, monthOf(wanted.now, 'utc'))) {
      months.set(`${timeZone} ${month.month}`, month);
    }
  }
  return [...months.values()];
}
