/**
 * The inbox of the processor's events: stored first, as they came, then worked off. Each is safe to repeat and to reorder:
 * what it tells is compared with what is recorded, states only move forward, and what tells of a payment that is not known
 * yet waits for it. Refusals: processor_events_invalid, processor_environment.
 */
import { DateTime } from 'luxon';
import { z } from 'zod';
import { execute, query, type Transaction } from '../database/transaction.ts';
import { type FieldProblem, reasonOf, refuse } from '../errors/refusals.ts';
import { parseExactJson } from '../json.ts';
import { Amount } from '../money.ts';
import { type Fact, readEvent } from '../processors/stripe/events.ts';
import { applyTo, money, whyNotPayable, whyTakesNoPayment } from './apply.ts';
import { type Caller, enqueueDeliveries, lockPayments, openPaymentContext, type PaymentContext } from './context.ts';
import { sameReference } from './duplicates.ts';
import { processorIdentity } from './import.ts';
import {
  insertPaymentSources,
  insertPayments,
  insertSuggestions,
  type PaymentState,
  readCandidates,
  readPayable,
  readStates,
} from './queries.ts';
import { reinstate, reverseAll } from './reverse.ts';

const eventSchema = z.object({
  id: z.string().min(1).max(255),
  object: z.literal('event'),
  type: z.string().min(1).max(255),
  created: z.string().regex(/^\d{1,12}$/, 'must be seconds since 1970'),
  livemode: z.boolean(),
  account: z.string().min(1).max(255).nullish(),
  data: z.object({ object: z.record(z.string(), z.unknown()) }),
});

export interface StoredEvents {
  readonly stored: number;
  readonly known: number;
  /** Connected accounts on which something new happened. */
  readonly accounts: readonly string[];
}

/**
 * Stores events from NDJSON, all or none. The door for webhooks gives one line, and the account where the event itself
 * names none: Stripe leaves it out of what it tells an account of itself.
 */
export async function storeEvents(
  tx: Transaction,
  caller: Pick<Caller, 'environment'>,
  file: { name: string; text: string; account?: string | undefined },
): Promise<StoredEvents> {
  const problems: FieldProblem[] = [];
  const latest = caller.environment.now().plus({ days: 1 });
  const rows = storable(file.text)
    .split('\n')
    .flatMap((line, index) => {
      if (line.trim() === '') return [];
      const path = `line ${index + 1}`;
      let parsed: ReturnType<typeof eventSchema.safeParse>;
      try {
        parsed = eventSchema.safeParse(parseExactJson(line));
      } catch (error) {
        problems.push({ path, reason: `is not JSON: ${reasonOf(error)}` });
        return [];
      }
      if (!parsed.success) {
        const [issue] = parsed.error.issues;
        problems.push({ path, reason: `is no event: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}` });
        return [];
      }
      const { id, type, created, livemode, account } = parsed.data;
      const at = DateTime.fromSeconds(Number(created), { zone: 'utc' });
      if (at > latest) {
        problems.push({ path, reason: `is no event: created ${created} lies in the future` });
        return [];
      }
      return [
        {
          account: account ?? file.account ?? '',
          id,
          type,
          created: at.toISO(),
          livemode,
          payload: line,
          place: index,
        },
      ];
    });
  if (problems.length > 0)
    throw refuse('processor_events_invalid', { file: file.name, problems: problems.slice(0, 20) });
  const live = caller.environment.name === 'production';
  const stranger = rows.find((row) => row.livemode !== live);
  if (stranger !== undefined) {
    throw refuse('processor_environment', {
      event: stranger.id,
      livemode: stranger.livemode,
      environment: caller.environment.name,
    });
  }
  const stored = await query<{ account: string }>(
    tx,
    `INSERT INTO processor_events (account, id, type, livemode, created, payload, received_at)
     SELECT r.account, r.id, r.type, r.livemode, r.created, r.payload::jsonb, :now::timestamptz
     FROM json_to_recordset(:rows::json) AS r (
       account text, id text, type text, livemode boolean, created timestamptz, payload text, place bigint)
     ORDER BY r.place
     ON CONFLICT ON CONSTRAINT processor_event_once DO NOTHING
     RETURNING account`,
    { rows: JSON.stringify(rows), now: caller.environment.now().toISO() },
  );
  const accounts = [...new Set(stored.map(({ account }) => account))].filter((account) => account !== '').sort();
  return { stored: stored.length, known: rows.length - stored.length, accounts };
}

/** Escapes of JSON; a character in two halves is one of them. */
const ESCAPE = /\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\u(0000|[dD][89a-fA-F][\da-fA-F]{2})|\\./g;

/** JSON may name characters that PostgreSQL keeps in no text, NUL and halves: U+FFFD stands for them. */
const storable = (text: string): string =>
  text.replace(ESCAPE, (written, lost: string | undefined) => (lost === undefined ? written : '\\ufffd'));

interface WaitingEvent {
  readonly processor_event_id: number;
  readonly account: string;
  readonly id: string;
  readonly type: string;
  readonly created: string;
  readonly payload: string;
}

/** What became of one event; undefined: it waits. */
type Outcome =
  | { readonly outcome: 'effect' | 'nothing' | 'person'; readonly payment_id: number | null; readonly reason: string }
  | { readonly waits: string };

export interface InboxReport {
  readonly effects: number;
  readonly without_effect: number;
  readonly waiting: readonly { id: string; type: string; reason: string }[];
  readonly for_person: readonly { id: string; type: string; reason: string }[];
}

/** Works off what waits, round after round, until no event brings another one on. */
export async function processEvents(tx: Transaction, caller: Caller): Promise<InboxReport> {
  await lockPayments(tx);
  let waiting = await readWaiting(tx);
  const report = { effects: 0, without_effect: 0, for_person: [] as { id: string; type: string; reason: string }[] };
  if (waiting.length === 0) return { ...report, waiting: [], for_person: await readForPerson(tx) };
  // Begun by the first event that does not wait: where all do, nothing changes and nothing is to be told of.
  const details = { waiting: waiting.length };
  let begun: Promise<PaymentContext> | undefined;
  const begin: Begin = () => {
    begun ??= openPaymentContext(tx, caller, { action: 'payment.events', subject: 'inbox', details });
    return begun;
  };
  const { installation_id: installation } = (
    await query<{ installation_id: string }>(tx, `SELECT installation_id FROM installation`)
  )[0] as { installation_id: string };
  let reasons = new Map<number, string>();
  for (let progress = true; progress && waiting.length > 0; ) {
    progress = false;
    reasons = new Map();
    const still: WaitingEvent[] = [];
    // One after the other: each is judged by what those before it recorded.
    for (const event of waiting) {
      const outcome = await processEvent(tx, begin, caller, installation, event);
      if ('waits' in outcome) {
        still.push(event);
        reasons.set(event.processor_event_id, outcome.waits);
        continue;
      }
      progress = true;
      if (outcome.outcome === 'effect') report.effects += 1;
      if (outcome.outcome === 'nothing') report.without_effect += 1;
      await insertOutcome(await begin(), event, outcome);
    }
    waiting = still;
  }
  return {
    ...report,
    waiting: waiting.map(({ id, type, processor_event_id }) => ({
      id,
      type,
      reason: reasons.get(processor_event_id) as string,
    })),
    for_person: await readForPerson(tx),
  };
}

type Begin = () => Promise<PaymentContext>;

function readWaiting(tx: Transaction): Promise<WaitingEvent[]> {
  return query(
    tx,
    `SELECT e.processor_event_id, e.account, e.id, e.type, e.created, e.payload::text AS payload
     FROM processor_events e LEFT JOIN processor_event_outcomes o USING (processor_event_id)
     WHERE o.processor_event_id IS NULL ORDER BY e.processor_event_id`,
  );
}

/** Events that nobody could read: they stay until somebody has looked. */
function readForPerson(tx: Transaction): Promise<{ id: string; type: string; reason: string }[]> {
  return query(
    tx,
    `SELECT e.id, e.type, o.reason FROM processor_events e JOIN processor_event_outcomes o USING (processor_event_id)
     WHERE o.outcome = 'person'
       AND NOT EXISTS (SELECT FROM payment_exception_closings c WHERE c.processor_event_id = e.processor_event_id)
     ORDER BY e.processor_event_id`,
  );
}

async function insertOutcome(
  context: PaymentContext,
  event: WaitingEvent,
  outcome: Exclude<Outcome, { waits: string }>,
): Promise<void> {
  await execute(
    context.tx,
    `INSERT INTO processor_event_outcomes (processor_event_id, outcome, payment_id, reason, recorded_at, event_id)
     VALUES (:id, :outcome, :payment_id, :reason, :now::timestamptz, :eventId::bigint)`,
    { id: event.processor_event_id, ...outcome, now: context.now, eventId: context.eventId },
  );
}

async function processEvent(
  tx: Transaction,
  begin: Begin,
  caller: Caller,
  installation: string,
  event: WaitingEvent,
): Promise<Outcome> {
  const nothing = (reason: string): Outcome => ({ outcome: 'nothing', payment_id: null, reason });
  if (event.account !== '')
    return nothing(`a hint to read the connected account ${event.account}: what moved there is told by its balance`);
  const payload = parseExactJson(event.payload) as { data: { object: unknown } };
  const reading = readEvent(event.type, payload.data.object);
  if ('nothing' in reading) return nothing(reading.nothing);
  if ('person' in reading) return { outcome: 'person', payment_id: null, reason: reading.person };
  const on = DateTime.fromISO(event.created).setZone(caller.settings.time_zone).toFormat('yyyy-MM-dd');
  let changed: Outcome | undefined;
  let paymentId: number | null = null;
  for (const fact of reading.facts) {
    if (fact.kind === 'received' && fact.installation !== undefined && fact.installation !== installation) {
      return nothing(`of another installation, ${fact.installation}`);
    }
    const found = await takeFact(tx, begin, caller, event.account, fact, on);
    if ('waits' in found) return found;
    paymentId = found.payment_id ?? paymentId;
    if (found.outcome !== 'nothing') changed = found;
  }
  return changed ?? { outcome: 'nothing', payment_id: paymentId, reason: 'it was told already' };
}

async function takeFact(
  tx: Transaction,
  begin: Begin,
  caller: Caller,
  account: string,
  fact: Fact,
  on: string,
): Promise<Outcome> {
  switch (fact.kind) {
    case 'received':
      return takeReceipt(await begin(), caller, account, fact, on);
    case 'refunded':
      return takeRefund(tx, begin, account, fact, on);
    case 'disputed':
      return takeDispute(tx, begin, account, fact, on);
  }
}

/** The payment that one of these ids stands for. */
async function paymentKnownAs(
  tx: Transaction,
  account: string,
  ids: readonly string[],
): Promise<PaymentState | undefined> {
  const rows = await query<{ payment_id: number }>(
    tx,
    `SELECT payment_id FROM payment_sources WHERE identity = ANY (:identities::text[]) ORDER BY payment_id LIMIT 1`,
    { identities: ids.map((id) => processorIdentity(account, id)) },
  );
  return rows[0] === undefined ? undefined : (await readStates(tx, [rows[0].payment_id]))[0];
}

async function takeReceipt(
  context: PaymentContext,
  caller: Caller,
  account: string,
  fact: Extract<Fact, { kind: 'received' }>,
  on: string,
): Promise<Outcome> {
  const { tx } = context;
  const known = (await paymentKnownAs(tx, account, fact.ids)) ?? (await toldByOthers(tx, fact));
  if (
    known !== undefined &&
    (known.currency !== fact.amount.currency || !money(known.amount, known).equals(fact.amount))
  ) {
    const reason = `${fact.ids[0]} is payment ${known.payment_id} over ${money(known.amount, known).forPeople()}, and this says ${fact.amount.forPeople()}`;
    return { outcome: 'person', payment_id: known.payment_id, reason };
  }
  const document = fact.invoice === undefined ? undefined : await readPayable(tx, fact.invoice);
  const paymentId = known?.payment_id ?? (await receive(context, account, fact, on, document?.partner_id ?? null));
  await insertPaymentSources(
    context,
    fact.ids.map((id) => ({
      identity: processorIdentity(account, id),
      payment_id: paymentId,
      source: 'processor' as const,
      reference: id,
      bank_line_id: null,
    })),
  );
  const applied = document === undefined ? false : await applyOnce(context, caller, paymentId, document.number, on);
  if (known !== undefined && !applied)
    return { outcome: 'nothing', payment_id: paymentId, reason: `payment ${paymentId} is known already` };
  const paid = applied
    ? `applied to ${document?.number}`
    : document === undefined
      ? 'it names no document of ours'
      : `${document.number} takes no payment any more`;
  return {
    outcome: 'effect',
    payment_id: paymentId,
    reason: `payment ${paymentId} of ${fact.amount.forPeople()}: ${paid}`,
  };
}

/** A person or the bank told of it first, under the processor's id. */
async function toldByOthers(
  tx: Transaction,
  fact: Extract<Fact, { kind: 'received' }>,
): Promise<PaymentState | undefined> {
  const candidates = await readCandidates(tx, {
    money: [{ currency: fact.amount.currency, amount: fact.amount.toString() }],
    references: [],
  });
  const found = candidates.find(
    (each) =>
      !each.seen_by_processor && each.references.some((known) => fact.ids.some((id) => sameReference(id, [known]))),
  );
  return found === undefined ? undefined : (await readStates(tx, [found.payment_id]))[0];
}

async function receive(
  context: PaymentContext,
  account: string,
  fact: Extract<Fact, { kind: 'received' }>,
  on: string,
  partnerId: string | null,
): Promise<number> {
  const reference = fact.ids[0] as string;
  const identity = processorIdentity(account, reference);
  const ids = await insertPayments(context, [
    {
      identity,
      source: 'processor',
      partner_id: partnerId,
      currency: fact.amount.currency,
      amount: fact.amount.toString(),
      method: 'link',
      account: '',
      received_on: on,
      reference,
      payer_name: fact.payer_name ?? null,
      payer_account: null,
    },
  ]);
  return ids.get(identity) as number;
}

/**
 * Applies a payment to the document that its link was made for, unless something has been done with it already. The link
 * of a document that was replaced meanwhile pays for what replaced it only when a person says so.
 */
async function applyOnce(
  context: PaymentContext,
  caller: Caller,
  paymentId: number,
  number: string,
  on: string,
): Promise<boolean> {
  const { tx } = context;
  const [state] = await readStates(tx, [paymentId]);
  const document = await readPayable(tx, number);
  const touched = await query(tx, `SELECT FROM payment_applications WHERE payment_id = :paymentId LIMIT 1`, {
    paymentId,
  });
  if (state === undefined || document === undefined || touched.length > 0) return false;
  if (whyNotPayable(state, document) !== undefined) {
    const successor = document.replaced_by === null ? undefined : await readPayable(tx, document.replaced_by);
    if (successor !== undefined && whyTakesNoPayment(successor) === undefined) {
      await insertSuggestions(context, [
        {
          payment_id: paymentId,
          document_id: successor.document_id,
          same_as: null,
          amount: state.unapplied,
          confidence: '0.80',
          evidence: { why: `the link of ${number} was paid, and ${successor.number} replaces it` },
        },
      ]);
    }
    return false;
  }
  const unapplied = money(state.unapplied, state);
  const balance = money(document.balance, state);
  await applyTo(context, caller.settings, state, document, {
    amount: unapplied.minus(balance).isPositive() ? balance : unapplied,
    whole: true,
    evidence: {
      rule: 'processor',
      reference: { number, field: 'metadata.invoice', found: number },
      why: `the processor took it by the payment link of ${number}`,
    },
    appliedOn: on,
    confidence: '1',
  });
  await enqueueDeliveries(context, [document.document_id]);
  return true;
}

async function takeRefund(
  tx: Transaction,
  begin: Begin,
  account: string,
  fact: Extract<Fact, { kind: 'refunded' }>,
  on: string,
): Promise<Outcome> {
  const state = await paymentKnownAs(tx, account, fact.ids);
  if (state === undefined) return { waits: `for the payment ${fact.ids[0]}, which nothing has told of yet` };
  // Each event says how much was refunded in all: what is new is the rest, whichever comes first.
  const rows = await query<{ amount: string }>(
    tx,
    `SELECT coalesce(sum(amount), 0) AS amount FROM payment_reversals WHERE payment_id = :id AND kind = 'refunded'`,
    { id: state.payment_id },
  );
  const more = fact.total.minus(Amount.of(rows[0]?.amount ?? '0', state.currency));
  if (!more.isPositive())
    return {
      outcome: 'nothing',
      payment_id: state.payment_id,
      reason: `the refund of ${fact.total.forPeople()} is known`,
    };
  const left = money(state.amount, state).minus(money(state.reversed, state));
  if (more.minus(left).isPositive()) {
    return {
      waits: `only ${left.forPeople()} of payment ${state.payment_id} is left to refund ${more.forPeople()} of`,
    };
  }
  await reverseAll(await begin(), [
    {
      identity: processorIdentity(account, `${fact.charge}|refunded|${fact.total.toString()}`),
      payment_id: state.payment_id,
      amount: more.toString(),
      kind: 'refunded',
      code: null,
      reason: `refunded by the processor, ${fact.total.forPeople()} in all`,
      bank_line_id: null,
      duplicate_of: null,
      reversed_on: on,
    },
  ]);
  return {
    outcome: 'effect',
    payment_id: state.payment_id,
    reason: `${more.forPeople()} of payment ${state.payment_id} was refunded`,
  };
}

interface DisputeState {
  readonly dispute_id: number;
  readonly outcome: 'won' | 'lost' | 'closed' | null;
  readonly payment_reversal_id: number | null;
  readonly reinstated: boolean;
}

/** Opened, then decided, never back: what comes late is known to be late. */
async function takeDispute(
  tx: Transaction,
  begin: Begin,
  account: string,
  fact: Extract<Fact, { kind: 'disputed' }>,
  on: string,
): Promise<Outcome> {
  const state = await paymentKnownAs(tx, account, fact.ids);
  if (state === undefined) return { waits: `for the payment ${fact.ids[0]}, which nothing has told of yet` };
  if (fact.amount.currency !== state.currency) {
    return {
      outcome: 'person',
      payment_id: state.payment_id,
      reason: `the dispute is in ${fact.amount.currency}, the payment in ${state.currency}`,
    };
  }
  const identity = processorIdentity(account, fact.dispute);
  const before = await readDispute(tx, identity);
  const outcome = (reason: string, kind: 'effect' | 'nothing' = 'effect'): Outcome => ({
    outcome: kind,
    payment_id: state.payment_id,
    reason,
  });
  if (before?.outcome) return outcome(`dispute ${fact.dispute} is ${before.outcome}`, 'nothing');
  const context = await begin();
  const disputeId = before?.dispute_id ?? (await openDispute(context, identity, state.payment_id, fact, on));
  const decided = fact.state === 'won' || fact.state === 'lost' || fact.state === 'closed';
  // Money goes with an open dispute, or is gone with a lost one; an inquiry takes none.
  const takes = (fact.state === 'open' || fact.state === 'lost') && before?.payment_reversal_id == null;
  if (takes) await withdraw(context, identity, state, fact, on);
  if (decided) {
    await decideDispute(context, disputeId, fact.state as 'won' | 'lost' | 'closed', on);
    if (fact.state !== 'lost' && before?.payment_reversal_id != null && !before.reinstated) {
      await reinstate(context, before.payment_reversal_id, on);
    }
  }
  if (before !== undefined && !takes && !decided) return outcome(`dispute ${fact.dispute} is known`, 'nothing');
  return outcome(`dispute ${fact.dispute} of payment ${state.payment_id} is ${fact.state}`);
}

async function readDispute(tx: Transaction, identity: string): Promise<DisputeState | undefined> {
  const rows = await query<DisputeState>(
    tx,
    `SELECT d.dispute_id, o.outcome, r.payment_reversal_id, i.payment_reversal_id IS NOT NULL AS reinstated
     FROM disputes d LEFT JOIN dispute_outcomes o USING (dispute_id)
     LEFT JOIN payment_reversals r ON r.identity = d.identity
     LEFT JOIN payment_reinstatements i ON i.payment_reversal_id = r.payment_reversal_id
     WHERE d.identity = :identity`,
    { identity },
  );
  return rows[0];
}

async function openDispute(
  context: PaymentContext,
  identity: string,
  paymentId: number,
  fact: Extract<Fact, { kind: 'disputed' }>,
  on: string,
): Promise<number> {
  const rows = await query<{ dispute_id: number }>(
    context.tx,
    `INSERT INTO disputes (identity, payment_id, amount, reason, opened_on, recorded_at, event_id)
     VALUES (:identity, :paymentId, :amount::numeric, :reason, :on::date, :now::timestamptz,
             :eventId::bigint)
     RETURNING dispute_id`,
    {
      identity,
      paymentId,
      amount: fact.amount.toString(),
      reason: fact.reason,
      on,
      now: context.now,
      eventId: context.eventId,
    },
  );
  return (rows[0] as { dispute_id: number }).dispute_id;
}

async function decideDispute(
  context: PaymentContext,
  disputeId: number,
  outcome: 'won' | 'lost' | 'closed',
  on: string,
): Promise<void> {
  await execute(
    context.tx,
    `INSERT INTO dispute_outcomes (dispute_id, outcome, decided_on, recorded_at, event_id)
     SELECT d.dispute_id, :outcome, greatest(:on::date, d.opened_on), :now::timestamptz, :eventId::bigint
     FROM disputes d WHERE d.dispute_id = :disputeId`,
    { disputeId, outcome, on, now: context.now, eventId: context.eventId },
  );
}

/** No more than is left: what was refunded before can't be disputed away again. */
async function withdraw(
  context: PaymentContext,
  identity: string,
  state: PaymentState,
  fact: Extract<Fact, { kind: 'disputed' }>,
  on: string,
): Promise<void> {
  const left = money(state.amount, state).minus(money(state.reversed, state));
  const amount = fact.amount.minus(left).isPositive() ? left : fact.amount;
  if (!amount.isPositive()) return;
  await reverseAll(context, [
    {
      identity,
      payment_id: state.payment_id,
      amount: amount.toString(),
      kind: 'disputed',
      code: fact.reason,
      reason: `disputed by the payer: ${fact.reason}`,
      bank_line_id: null,
      duplicate_of: null,
      reversed_on: on,
    },
  ]);
}
