/**
 * Accepting quotes and requotes: what was offered becomes a ledger row at that instant, once. Whoever accepts again, or
 * at the same time, gets the same answer, and nothing more is recorded. Refusals: quote_unknown, requote_unknown,
 * partner_inactive, policy_inactive, quote_reversed, requote_stale, recorded_otherwise.
 */
import { randomUUID } from 'node:crypto';
import { DateTime } from 'luxon';
import type { Transaction } from '../database/transaction.ts';
import { refuse } from '../errors.ts';
import { lockLedgerShared } from '../ledger/lock.ts';
import { monthsAround } from '../ledger/posting.ts';
import { type Acceptance, type EntryKey, insertEntry } from '../ledger/queries.ts';
import { Amount } from '../money.ts';
import { monthOf } from '../month.ts';
import {
  insertQuoteAcceptance,
  insertRequoteAcceptance,
  type QuoteState,
  type RequoteFacts,
  type RequoteState,
  readRequote,
} from './queries.ts';
import { type Asked, quoteOf, refuseInactive } from './quote.ts';

/** What an acceptance answers: the quote's prices, or the increments of a requote. */
export interface Accepted {
  readonly quoteId: string;
  readonly requoteId: string | null;
  readonly enrollmentId: string;
  readonly currency: string;
  /** ISO instant in UTC. */
  readonly acceptedAt: string;
  readonly spotPrice: string;
  readonly partnerCut: string;
  readonly invoiceAmount: string;
}

/**
 * How often an acceptance looks again: a row that it found taken, or a partner whose zone changed meanwhile, is settled
 * when it looks the second time.
 */
const LOOKS = 3;

export async function acceptQuote(tx: Transaction, quoteId: string, asked: Asked): Promise<Accepted> {
  for (let look = 1; look <= LOOKS; look += 1) {
    const quote = await quoteOf(tx, quoteId, asked);
    const done = acceptedQuote(quote);
    if (done !== undefined) return done;
    if (quote.imported) throw refuse('recorded_otherwise', { id: quoteId });
    refuseInactive(quote, quote.partner_id, quote.policy_id);
    const accepted: Accepted = {
      quoteId,
      requoteId: null,
      enrollmentId: `e-${randomUUID()}`,
      currency: quote.currency,
      acceptedAt: instant(asked.now.toISO()),
      spotPrice: quote.spot_price,
      partnerCut: quote.partner_cut,
      invoiceAmount: quote.invoice_amount,
    };
    const entry = await record(tx, accepted, quote, asked.now);
    if (entry === undefined) continue;
    await insertQuoteAcceptance(tx, { quoteId, ...asked.caller, ...entry });
    return accepted;
  }
  throw new Error(`quote ${quoteId} could not be recorded and is not recorded`);
}

export async function acceptRequote(tx: Transaction, requoteId: string, asked: Asked): Promise<Accepted> {
  for (let look = 1; look <= LOOKS; look += 1) {
    const requote = await readRequote(tx, { partnerId: asked.caller.partnerId, requoteId });
    if (requote === undefined) throw refuse('requote_unknown', { requote_id: requoteId });
    const increments = incrementsOf(requote);
    if (requote.enrollment_id !== null && requote.accepted_at !== null) {
      return { ...increments, enrollmentId: requote.enrollment_id, acceptedAt: instant(requote.accepted_at) };
    }
    if (requote.imported) throw refuse('recorded_otherwise', { id: requoteId });
    const quote = await quoteOf(tx, requote.quote_id, asked);
    refuseOvertaken(requote, quote);
    const accepted: Accepted = {
      ...increments,
      // The enrollment is the quote's: a requote changes its price, not whom it protects.
      enrollmentId: quote.enrollment_id ?? '',
      acceptedAt: instant(asked.now.toISO()),
    };
    const entry = await record(tx, accepted, quote, asked.now);
    if (entry === undefined) continue;
    const { quote_id: quoteId, step } = requote;
    const first = await insertRequoteAcceptance(tx, { requoteId, quoteId, step, ...asked.caller, ...entry });
    // Another requote of this quote was first. Throwing undoes the row.
    if (!first) throw refuse('requote_stale', { requote_id: requoteId, quote_id: quoteId });
    return accepted;
  }
  throw new Error(`requote ${requoteId} could not be recorded and is not recorded`);
}

/** The answer that the acceptance of a quote gave; undefined while it is not accepted. */
export function acceptedQuote(quote: QuoteState): Accepted | undefined {
  if (quote.enrollment_id === null || quote.accepted_at === null) return undefined;
  return {
    quoteId: quote.quote_id,
    requoteId: null,
    enrollmentId: quote.enrollment_id,
    currency: quote.currency,
    acceptedAt: instant(quote.accepted_at),
    spotPrice: quote.spot_price,
    partnerCut: quote.partner_cut,
    invoiceAmount: quote.invoice_amount,
  };
}

/** One text for an instant, whether it was just taken or read back: the same answer is the same bytes. */
const instant = (text: string): string => DateTime.fromISO(text, { zone: 'utc' }).toISO() ?? text;

/** What a requote adds to the price that it starts from. */
export function incrementsOf(requote: RequoteFacts): Omit<Accepted, 'enrollmentId' | 'acceptedAt'> {
  const { currency } = requote;
  const more = (now: string, before: string) => Amount.of(now, currency).minus(Amount.of(before, currency)).toString();
  return {
    quoteId: requote.quote_id,
    requoteId: requote.requote_id,
    currency,
    spotPrice: more(requote.spot_price, requote.accepted_spot_price),
    partnerCut: more(requote.partner_cut, requote.accepted_partner_cut),
    invoiceAmount: more(requote.invoice_amount, requote.accepted_invoice_amount),
  };
}

/** A requote stands on the price that was accepted last when it was made; on no other, and not on a reversed quote. */
function refuseOvertaken(requote: RequoteState, quote: QuoteState): void {
  const { quote_id, requote_id, currency } = requote;
  if (quote.reversed) throw refuse('quote_reversed', { quote_id });
  const same = (one: string, other: string) => Amount.of(one, currency).equals(Amount.of(other, currency));
  const stands =
    requote.step === quote.steps + 1 &&
    same(requote.accepted_spot_price, quote.accepted_spot_price) &&
    same(requote.accepted_partner_cut, quote.accepted_partner_cut);
  if (!stands) throw refuse('requote_stale', { requote_id, quote_id });
}

/** Records the row under the ledger's lock, which is held from here to the end of the transaction. */
async function record(
  tx: Transaction,
  accepted: Accepted,
  quote: QuoteState,
  now: DateTime<true>,
): Promise<EntryKey | undefined> {
  const row: Acceptance = {
    kind: accepted.requoteId === null ? 'quote_accepted' : 'requote_accepted',
    partnerId: quote.partner_id,
    policyId: quote.policy_id,
    ...accepted,
  };
  const months = monthsAround(quote.time_zone, monthOf(now, 'utc'));
  await lockLedgerShared(tx);
  return insertEntry(tx, months, row, now.toISO());
}
