/**
 * What a document's link at the processor lacks, and doing that: make it, find it again after an answer was lost, switch
 * it off when it is paid, void or of another amount. Each step is written down before the call or after it, in a
 * transaction of its own, so that all of this may end anywhere and be begun again.
 */
import { DateTime } from 'luxon';
import type { Environment } from '../../config/environment.ts';
import type { Database } from '../../database/database.ts';
import { failpoint } from '../../failpoint.ts';
import { Amount } from '../../money.ts';
import { Unavailable } from '../../processors/pace.ts';
import { methodsFor, stripeAmount } from '../../processors/stripe/amounts.ts';
import {
  idempotencyKey,
  KeySpent,
  type LinkMark,
  linkRequest,
  type MadeLink,
  RefusedByStripe,
  type StripeLinks,
} from '../../processors/stripe/payment-links.ts';
import {
  type ClosingReason,
  clearWait,
  isAnyOlder,
  type LinkFacts,
  noteWait,
  readLinkFacts,
  recordAttempt,
  recordClosing,
  recordIntent,
  recordObject,
  type WaitKind,
} from './queries.ts';

export interface Settler {
  readonly environment: Environment;
  readonly database: Database;
  /** Undefined where no key is at hand. */
  readonly stripeLinks: StripeLinks | undefined;
  /** Links are to be made, by these methods; undefined where they are only to be switched off. */
  readonly wanted: { readonly methods: readonly string[] } | undefined;
}

export type LinkState =
  /** As it should be: the URL of the active link, or null where there is to be none. */
  | { readonly status: 'settled'; readonly url: string | null }
  | { readonly status: 'waiting'; readonly kind: WaitKind; readonly reason: string; readonly waitedSeconds: number };

/** Stripe remembers a key for a day; before that is over, the same key gives the same link. */
const KEY_GOOD_FOR_HOURS = 20;

/** Each step brings the facts forward by one; a balance that changes meanwhile adds some. */
const MOST_STEPS = 12;

export async function settleLink(settler: Settler, documentId: number): Promise<LinkState> {
  const { database } = settler;
  const read = () => database.reading((tx) => readLinkFacts(tx, documentId));
  let facts = await read();
  let wanted = wantedOf(settler, facts);
  try {
    for (let step = 1; step <= MOST_STEPS; step += 1) {
      const next = nextStep(facts, wanted);
      if (next === 'none') return await done(settler, facts, wanted);
      await take(next, settler, facts, wanted);
      facts = await read();
      wanted = wantedOf(settler, facts);
    }
    throw new Error(`the payment link of ${facts.number} does not come to rest`);
  } catch (error) {
    if (error instanceof Unavailable) return await wait(settler, facts, wanted, 'unavailable', error.message);
    if (error instanceof RefusedByStripe) return await wait(settler, facts, wanted, 'refused', error.message);
    throw error;
  }
}

// --- What is wanted, and what comes next: decided from facts alone ------------------------------------------------------

type Wanted =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'impossible'; readonly reason: string; readonly text: string }
  | { readonly kind: 'link'; readonly unitAmount: number; readonly methods: readonly string[]; readonly text: string };

function wantedOf({ wanted }: Settler, facts: LinkFacts): Wanted {
  if (!facts.payable) return { kind: 'nothing' };
  if (wanted === undefined) {
    // A link that was made stays while its amount is owed; the settings only say that no new one is made.
    return isOpen(facts) && isSameAmount(facts)
      ? { kind: 'link', unitAmount: 0, methods: [], text: '' }
      : { kind: 'nothing' };
  }
  const amount = Amount.of(facts.balance, facts.currency);
  const methods = methodsFor(wanted.methods, facts.currency);
  const text = `${amount.forPeople()} by ${wanted.methods.join(', ')}`;
  if (methods.length === 0) {
    return { kind: 'impossible', reason: `none of ${wanted.methods.join(', ')} can pay in ${facts.currency}`, text };
  }
  const units = stripeAmount(amount);
  if ('reason' in units) return { kind: 'impossible', reason: units.reason, text };
  return { kind: 'link', unitAmount: units.unitAmount, methods, text };
}

type Step = 'none' | 'intend' | 'make' | 'close';

const isOpen = (facts: LinkFacts): boolean => facts.version !== null && !facts.closed;
const isSameAmount = (facts: LinkFacts): boolean =>
  facts.amount !== null && Amount.of(facts.amount, facts.currency).equals(Amount.of(facts.balance, facts.currency));

function nextStep(facts: LinkFacts, wanted: Wanted): Step {
  if (isOpen(facts)) {
    // Whether an unanswered attempt made a link is found out even where none is wanted any more: to switch it off.
    if (facts.provider_id === null) return 'make';
    return wanted.kind === 'link' && isSameAmount(facts) ? 'none' : 'close';
  }
  if (wanted.kind !== 'link') return 'none';
  return facts.noted !== null && facts.noted.wanted === wanted.text ? 'none' : 'intend';
}

// --- The steps --------------------------------------------------------------------------------------------------------

async function take(step: Exclude<Step, 'none'>, settler: Settler, facts: LinkFacts, wanted: Wanted): Promise<void> {
  if (settler.stripeLinks === undefined) throw new Unavailable('STRIPE_SECRET_KEY is not set');
  if (step === 'intend') await intend(settler, facts, wanted);
  else if (step === 'make') await make(settler, settler.stripeLinks, facts, wanted);
  else await close(settler, settler.stripeLinks, facts, wanted);
}

const ISO = ({ environment }: Settler): string => environment.now().toISO();

const markOf = (facts: LinkFacts, version: number): LinkMark => ({
  installation: facts.installation_id,
  invoice: facts.number,
  version,
});

async function intend(settler: Settler, facts: LinkFacts, wanted: Wanted): Promise<void> {
  if (wanted.kind !== 'link') throw new Error('nothing is wanted');
  const version = (facts.version ?? 0) + 1;
  const mark = markOf(facts, version);
  const request = linkRequest({
    ...mark,
    partnerId: facts.partner_id,
    month: facts.month,
    currency: facts.currency,
    unitAmount: wanted.unitAmount,
    methods: wanted.methods,
  });
  await settler.database.transaction((tx) =>
    recordIntent(tx, {
      documentId: facts.document_id,
      version,
      provider: 'stripe',
      amount: facts.balance,
      currency: facts.currency,
      request,
      key: idempotencyKey(mark, 1),
      now: ISO(settler),
    }),
  );
  failpoint('delivery.link_intended');
}

/** Gets the link of the open intent: by its key while Stripe remembers that, else by looking for it. */
async function make(settler: Settler, stripe: StripeLinks, facts: LinkFacts, wanted: Wanted): Promise<void> {
  const { document_id: documentId } = facts;
  const version = facts.version as number;
  const age = settler.environment.now().diff(DateTime.fromISO(facts.attempted_at as string));
  if (age.as('hours') >= KEY_GOOD_FOR_HOURS) return look(settler, stripe, facts, wanted);
  try {
    const made = await stripe.make(facts.request as object, facts.idempotency_key as string);
    failpoint('delivery.link_made');
    await settler.database.transaction((tx) =>
      recordObject(tx, { documentId, version, ...made, found: false, now: ISO(settler) }),
    );
    failpoint('delivery.link_stored');
  } catch (error) {
    if (error instanceof KeySpent) return look(settler, stripe, facts, wanted, error);
    if (!(error instanceof RefusedByStripe)) throw error;
    await recordEnd(settler, facts, 'refused', error.message, 0);
    // Where the link is not wanted any more, that it was refused is what was wanted.
    if (wanted.kind === 'link' && isSameAmount(facts)) throw error;
  }
}

/** Looks for a link that an attempt without an answer may have made; makes way for another attempt where there is none. */
async function look(
  settler: Settler,
  stripe: StripeLinks,
  facts: LinkFacts,
  wanted: Wanted,
  failure?: KeySpent,
): Promise<void> {
  const { document_id: documentId } = facts;
  const version = facts.version as number;
  const mark = markOf(facts, version);
  const [first, ...others] = await find(settler, stripe, facts);
  // Two attempts that both came through: one link stays, before it is known as the document's.
  for (const { providerId } of others) await stripe.close(providerId);
  if (first !== undefined) {
    await settler.database.transaction((tx) =>
      recordObject(tx, { documentId, version, ...first, found: true, now: ISO(settler) }),
    );
    failpoint('delivery.link_stored');
    return;
  }
  if (wanted.kind !== 'link' || !isSameAmount(facts)) return recordEnd(settler, facts, 'not_made', null, 0);
  const attempt = (facts.attempt as number) + 1;
  const key = idempotencyKey(mark, attempt);
  await settler.database.transaction((tx) =>
    recordAttempt(tx, { documentId, version, attempt, key, now: ISO(settler) }),
  );
  // One new key a look: Stripe has just failed, and what fails again is left for later.
  if (failure !== undefined) throw new Unavailable(failure.message, { cause: failure });
}

function find(settler: Settler, stripe: StripeLinks, facts: LinkFacts): Promise<MadeLink[]> {
  return stripe.find(markOf(facts, facts.version as number), (providerIds) =>
    settler.database.reading((tx) => isAnyOlder(tx, providerIds, facts.intended_at as string)),
  );
}

async function close(settler: Settler, stripe: StripeLinks, facts: LinkFacts, wanted: Wanted): Promise<void> {
  // A failed attempt may have come through after it was looked for.
  if (facts.attempt !== 1)
    for (const { providerId } of await find(settler, stripe, facts)) await stripe.close(providerId);
  const expired = await stripe.close(facts.provider_id as string);
  failpoint('delivery.link_switched_off');
  const why = facts.status === 'open' ? 'amount_changed' : facts.status;
  const detail = wanted.kind === 'impossible' ? wanted.reason : null;
  await recordEnd(settler, facts, why, detail, expired);
  failpoint('delivery.link_closed');
}

function recordEnd(
  settler: Settler,
  facts: LinkFacts,
  why: ClosingReason,
  detail: string | null,
  sessionsExpired: number,
): Promise<void> {
  return settler.database.transaction((tx) =>
    recordClosing(tx, {
      documentId: facts.document_id,
      version: facts.version as number,
      why,
      detail,
      sessionsExpired,
      now: ISO(settler),
    }),
  );
}

// --- How it ended -----------------------------------------------------------------------------------------------------

async function done(settler: Settler, facts: LinkFacts, wanted: Wanted): Promise<LinkState> {
  if (wanted.kind === 'impossible') return wait(settler, facts, wanted, 'limit', wanted.reason);
  const standing = facts.noted;
  if (wanted.kind === 'link' && !isOpen(facts) && standing !== null) {
    return {
      status: 'waiting',
      kind: standing.kind,
      reason: standing.reason,
      waitedSeconds: facts.waited_seconds ?? 0,
    };
  }
  if (facts.waited_seconds !== null) await settler.database.transaction((tx) => clearWait(tx, facts.document_id));
  return { status: 'settled', url: isOpen(facts) ? facts.url : null };
}

async function wait(
  { database }: Settler,
  facts: LinkFacts,
  wanted: Wanted,
  kind: WaitKind,
  reason: string,
): Promise<LinkState> {
  const text = wanted.kind === 'nothing' ? 'no link' : wanted.text;
  await database.transaction((tx) => noteWait(tx, { documentId: facts.document_id, kind, reason, wanted: text }));
  return { status: 'waiting', kind, reason, waitedSeconds: facts.waited_seconds ?? 0 };
}
