/**
 * Syncs a document's link at the processor with its balance. The link is made, found again after a lost answer, and
 * closed when the document is paid or void or its balance changes. Each step is recorded before or after its call, in
 * its own transaction, so the process can be stopped at any point.
 */
import { DateTime } from 'luxon';
import { Environment } from '#config/environment';
import { Database } from '#database/database';
import { endChangedCheckouts } from '#delivery/checkouts/end';
import { LinkProvider, WantedLinks } from '#delivery/payment-link';
import { failpoint } from '#failpoint';
import { Amount } from '#money';
import { KeySpent, LinkMark, PaymentLinks, RefusedByProcessor, Unavailable } from '#processors/processor';
import { processorOf } from '#processors/processors';
import {
  ClosingReason,
  clearWait,
  isAnyOlder,
  LinkFacts,
  noteWait,
  readLinkFacts,
  recordAttempt,
  recordClosing,
  recordIntent,
  recordObject,
  WaitKind,
} from './links.sql.ts';

export type LinkContext = Readonly<{
  environment: Environment;
  database: Database;
  links: Pick<LinkProvider, 'wanted' | 'processors'>;
}>;

type LinkState =
  /** The URL of the active link; null if there should be no link. */
  | Readonly<{ status: 'in_sync'; url: string | null }>
  | Readonly<{ status: 'waiting'; kind: WaitKind; reason: string; waitedSeconds: number }>;

/** Each step advances the link by one state. A balance that changes meanwhile adds a few. */
const MOST_STEPS = 12;

export async function syncPaymentLink(context: LinkContext, documentId: number) {
  const { database } = context;
  const read = () => database.reading((tx) => readLinkFacts(tx, { documentId }));
  let facts = await read();
  let wanted = wantedOf(context, facts);
  if (facts.has_changed_checkout) await endChangedCheckouts(context, documentId);
  try {
    for (let step = 1; step <= MOST_STEPS; step += 1) {
      const next = nextStep(facts, wanted);
      if (next === 'none') return await done(context, facts, wanted);
      await take(next, context, facts, wanted);
      facts = await read();
      wanted = wantedOf(context, facts);
    }
    throw new Error(`the payment link of ${facts.number} does not settle`);
  } catch (error) {
    if (error instanceof Unavailable) return await wait(context, facts, wanted, 'unavailable', error.message);
    if (error instanceof RefusedByProcessor) return await wait(context, facts, wanted, 'refused', error.message);
    throw error;
  }
}

// --- The plan, derived from facts alone ---

type LinkPlan =
  | { readonly kind: 'nothing' }
  | Readonly<{ kind: 'impossible'; reason: string; text: string }>
  | Readonly<{
      kind: 'link';
      provider: string;
      unitAmount: number;
      methods: readonly string[];
      text: string;
    }>;

const makerOf = ({ provider }: Pick<WantedLinks, 'provider'>) => processorOf(provider).paymentLinks;

function wantedOf({ links: { wanted } }: LinkContext, facts: LinkFacts): LinkPlan {
  // The ordered bank debit will pay the balance. If it fails, a new link asks for it.
  if (!facts.payable || facts.is_ordered) return { kind: 'nothing' };
  if (wanted === undefined) {
    // An existing link stays while its amount is owed, whatever the settings.
    return isOpen(facts) && isSameAmount(facts) && !facts.is_used_up
      ? { kind: 'link', provider: facts.provider as string, unitAmount: 0, methods: [], text: '' }
      : { kind: 'nothing' };
  }
  const amount = Amount.of(facts.balance, facts.currency);
  const methods = makerOf(wanted).methodsFor(wanted.methods, facts.currency);
  const text = `${amount.forPeople()} by ${wanted.methods.join(', ')}`;
  if (methods.length === 0) {
    return { kind: 'impossible', reason: `none of ${wanted.methods.join(', ')} can pay in ${facts.currency}`, text };
  }
  const units = makerOf(wanted).units(amount);
  if ('reason' in units) return { kind: 'impossible', reason: units.reason, text };
  return { kind: 'link', provider: wanted.provider, unitAmount: units.unitAmount, methods, text };
}

type Step = 'none' | 'intend' | 'make' | 'close';

const isOpen = (facts: LinkFacts) => facts.version !== null && !facts.closed;
const isSameAmount = (facts: LinkFacts) =>
  facts.amount !== null && Amount.of(facts.amount, facts.currency).equals(Amount.of(facts.balance, facts.currency));

function nextStep(facts: LinkFacts, wanted: LinkPlan): Step {
  if (isOpen(facts)) {
    // An unanswered attempt may have made a link, which must be deactivated even if none is wanted.
    if (facts.provider_id === null) return 'make';
    return wanted.kind === 'link' && isSameAmount(facts) && !facts.is_used_up ? 'none' : 'close';
  }
  if (wanted.kind !== 'link') return 'none';
  return facts.noted !== null && facts.noted.wanted === wanted.text ? 'none' : 'intend';
}

// --- Steps ---

async function take(step: Exclude<Step, 'none'>, context: LinkContext, facts: LinkFacts, wanted: LinkPlan) {
  const provider = isOpen(facts) ? facts.provider : wanted.kind === 'link' ? wanted.provider : null;
  const links = provider === null ? undefined : context.links.processors.get(provider);
  if (links === undefined) {
    throw new Unavailable(
      provider === null ? 'no processor makes this link' : `${processorOf(provider).keyVariable} is not set`,
    );
  }
  if (step === 'intend') await intend(context, facts, wanted);
  else if (step === 'make') await make(context, links, facts, wanted);
  else await close(context, links, facts, wanted);
}

const ISO = ({ environment }: LinkContext) => environment.now().toISO();

const markOf = (facts: LinkFacts, version: number): LinkMark => ({
  installation: facts.installation_id,
  invoice: facts.number,
  version,
});

const openProviderOf = (facts: LinkFacts) => ({ provider: facts.provider as string });

async function intend(context: LinkContext, facts: LinkFacts, wanted: LinkPlan) {
  if (wanted.kind !== 'link') throw new Error('nothing is wanted');
  const version = (facts.version ?? 0) + 1;
  const mark = markOf(facts, version);
  const { request, idempotencyKey } = makerOf(wanted);
  const order = request({
    ...mark,
    partnerId: facts.partner_id,
    month: facts.month,
    currency: facts.currency,
    unitAmount: wanted.unitAmount,
    methods: wanted.methods,
  });
  await context.database.transaction((tx) =>
    recordIntent(tx, {
      documentId: facts.document_id,
      version,
      provider: wanted.provider,
      amount: facts.balance,
      currency: facts.currency,
      request: order,
      key: idempotencyKey(mark, 1),
      now: ISO(context),
    }),
  );
  failpoint('delivery.link_intended');
}

/** Gets the link of the open intent by its key, or searches for it once the processor has forgotten the key. */
async function make(context: LinkContext, links: PaymentLinks, facts: LinkFacts, wanted: LinkPlan) {
  const { document_id: documentId } = facts;
  const version = facts.version as number;
  const age = context.environment.now().diff(DateTime.fromISO(facts.attempted_at as string));
  if (age.as('hours') >= makerOf(openProviderOf(facts)).keyValidHours) return look(context, links, facts, wanted);
  try {
    const made = await links.make(facts.request as object, facts.idempotency_key as string);
    failpoint('delivery.link_made');
    await context.database.transaction((tx) =>
      recordObject(tx, { documentId, version, ...made, found: false, now: ISO(context) }),
    );
    failpoint('delivery.link_stored');
  } catch (error) {
    if (error instanceof KeySpent) return look(context, links, facts, wanted, error);
    if (!(error instanceof RefusedByProcessor)) throw error;
    await recordEnd(context, facts, 'refused', error.message, 0);
    // If the link is no longer wanted, its refusal does not matter.
    if (wanted.kind === 'link' && isSameAmount(facts)) throw error;
  }
}

/** Searches for the link of an unanswered attempt. Records another attempt if there is none. */
async function look(context: LinkContext, links: PaymentLinks, facts: LinkFacts, wanted: LinkPlan, failure?: KeySpent) {
  const { document_id: documentId } = facts;
  const version = facts.version as number;
  const mark = markOf(facts, version);
  const [first, ...others] = await find(context, links, facts);
  // If two attempts both succeeded, only one link stays.
  for (const { providerId } of others) await links.close(providerId);
  if (first !== undefined) {
    await context.database.transaction((tx) =>
      recordObject(tx, { documentId, version, ...first, found: true, now: ISO(context) }),
    );
    failpoint('delivery.link_stored');
    return;
  }
  if (wanted.kind !== 'link' || !isSameAmount(facts)) return recordEnd(context, facts, 'not_made', null, 0);
  const attempt = (facts.attempt as number) + 1;
  const key = makerOf(openProviderOf(facts)).idempotencyKey(mark, attempt);
  await context.database.transaction((tx) =>
    recordAttempt(tx, { documentId, version, attempt, key, now: ISO(context) }),
  );
  // Each run uses only one new key. A second failure leaves the link for later.
  if (failure !== undefined) throw new Unavailable(failure.message, { cause: failure });
}

function find(context: LinkContext, links: PaymentLinks, facts: LinkFacts) {
  return links.find(markOf(facts, facts.version as number), (providerIds) =>
    context.database.reading((tx) => isAnyOlder(tx, { providerIds, than: facts.intended_at as string })),
  );
}

async function close(context: LinkContext, links: PaymentLinks, facts: LinkFacts, wanted: LinkPlan) {
  // A failed attempt may have succeeded after the search.
  if (facts.attempt !== 1)
    for (const { providerId } of await find(context, links, facts)) await links.close(providerId);
  const expired = await links.close(facts.provider_id as string);
  failpoint('delivery.link_switched_off');
  const why = facts.status === 'open' ? whyClosed(facts) : facts.status;
  const detail = wanted.kind === 'impossible' ? wanted.reason : null;
  await recordEnd(context, facts, why, detail, expired);
  failpoint('delivery.link_closed');
}

const whyClosed = ({ is_used_up, is_ordered }: LinkFacts): ClosingReason =>
  is_used_up ? 'used_up' : is_ordered ? 'ordered' : 'amount_changed';

async function recordEnd(
  context: LinkContext,
  facts: LinkFacts,
  why: ClosingReason,
  detail: string | null,
  sessionsExpired: number,
) {
  await context.database.transaction((tx) =>
    recordClosing(tx, {
      documentId: facts.document_id,
      version: facts.version as number,
      why,
      detail,
      sessionsExpired,
      now: ISO(context),
    }),
  );
}

// --- Results ---

async function done(context: LinkContext, facts: LinkFacts, wanted: LinkPlan): Promise<LinkState> {
  if (wanted.kind === 'impossible') return wait(context, facts, wanted, 'limit', wanted.reason);
  const standing = facts.noted;
  if (wanted.kind === 'link' && !isOpen(facts) && standing !== null) {
    return {
      status: 'waiting',
      kind: standing.kind,
      reason: standing.reason,
      waitedSeconds: facts.waited_seconds ?? 0,
    };
  }
  if (facts.waited_seconds !== null)
    await context.database.transaction((tx) => clearWait(tx, { documentId: facts.document_id }));
  return { status: 'in_sync', url: isOpen(facts) ? facts.url : null };
}

async function wait(
  { database }: LinkContext,
  facts: LinkFacts,
  wanted: LinkPlan,
  kind: WaitKind,
  reason: string,
): Promise<LinkState> {
  const text = wanted.kind === 'nothing' ? 'no link' : wanted.text;
  await database.transaction((tx) => noteWait(tx, { documentId: facts.document_id, kind, reason, wanted: text }));
  return { status: 'waiting', kind, reason, waitedSeconds: facts.waited_seconds ?? 0 };
}
