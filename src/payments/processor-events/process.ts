/**
 * Processes stored events of the processor. Events may be repeated and arrive in any order: each is compared with the
 * recorded facts, states only move forward, and an event about an unknown payment waits for that payment.
 */

import { DateTime } from 'luxon';
import { readInstallation } from '#database/installation.sql';
import { Transaction } from '#database/transaction';
import { parseExactJson } from '#json';
import { Caller, lockPayments, openPaymentContext, PaymentContext } from '#payments/context';
import { PaymentFact, SessionProgress } from '#processors/processor';
import { PROCESSOR } from '#processors/processors';
import { EventContext, EventOutcome, PendingEvent, WaitingEvent } from './event.ts';
import { insertEventOutcome, readEventsForReview, readWaitingEvents } from './events.sql.ts';
import { recordReceipt } from './receipt.ts';
import { recordDispute, recordRefund } from './reversals.ts';
import { recordProgress } from './session.ts';

export type EventsReport = Readonly<{
  effects: number;
  without_effect: number;
  waiting: readonly { id: string; type: string; reason: string }[];
  manual_review: readonly { id: string; type: string; reason: string }[];
}>;

/** Processes the waiting events in rounds, until no event unblocks another. */
export async function processEvents(tx: Transaction, caller: Caller): Promise<EventsReport> {
  await lockPayments(tx);
  let waiting: readonly WaitingEvent[] = await readWaitingEvents(tx);
  const counts = { effects: 0, without_effect: 0 };
  if (waiting.length === 0) return { ...counts, waiting: [], manual_review: await readEventsForReview(tx) };
  const details = { waiting: waiting.length };
  let opened: Promise<PaymentContext> | undefined;
  const open = () => {
    opened ??= openPaymentContext(tx, caller, { action: 'payment.events', subject: 'inbox', details });
    return opened;
  };
  const { installation_id: installation } = await readInstallation(tx);
  const reasons = new Map<WaitingEvent, string>();
  for (let progress = true; progress && waiting.length > 0; ) {
    const round = waiting;
    reasons.clear();
    // Events are processed one by one, because each event depends on the records of earlier events.
    for (const event of round) {
      const outcome = await processEvent(tx, { caller, open, installation }, event);
      if ('waits' in outcome) {
        reasons.set(event, outcome.waits);
        continue;
      }
      if (outcome.outcome === 'effect') counts.effects += 1;
      if (outcome.outcome === 'nothing') counts.without_effect += 1;
      await insertEventOutcome(tx, { ...(await open()), ...event, ...outcome });
    }
    waiting = round.filter((event) => reasons.has(event));
    progress = waiting.length < round.length;
  }
  return {
    ...counts,
    waiting: waiting.map((event) => ({ id: event.id, type: event.type, reason: reasons.get(event) as string })),
    manual_review: await readEventsForReview(tx),
  };
}

async function processEvent(
  tx: Transaction,
  shared: Pick<EventContext, 'caller' | 'open' | 'installation'>,
  event: WaitingEvent,
): Promise<EventOutcome | PendingEvent> {
  const nothing = (reason: string): EventOutcome => ({ outcome: 'nothing', payment_id: null, reason });
  if (event.account !== '') {
    return nothing(`a hint to read connected account ${event.account}: its balance transactions show what happened`);
  }
  const payload = parseExactJson(event.payload) as { data: { object: unknown } };
  const reading = PROCESSOR.events.read(event.type, payload.data.object);
  if ('nothing' in reading && reading.session === undefined) return nothing(reading.nothing);
  if ('manual_review' in reading) return { outcome: 'manual_review', payment_id: null, reason: reading.manual_review };
  const on = DateTime.fromISO(event.created).setZone(shared.caller.settings.time_zone).toFormat('yyyy-MM-dd');
  const receivedAt = DateTime.fromISO(event.received_at);
  const context: EventContext = { ...shared, event, account: event.account, on, receivedAt };
  if ('nothing' in reading) return recordProgress(tx, context, reading.session as SessionProgress, reading.nothing);
  let changed: EventOutcome | undefined;
  let paymentId: number | null = null;
  for (const fact of reading.facts) {
    const outcome = await recordFact(tx, context, fact);
    // If the receipt belongs to a different installation, its other facts do too.
    if ('waits' in outcome || (fact.kind === 'received' && outcome.payment_id === null)) return outcome;
    paymentId = outcome.payment_id ?? paymentId;
    if (outcome.outcome !== 'nothing' && changed?.outcome !== 'manual_review') changed = outcome;
  }
  return changed ?? { outcome: 'nothing', payment_id: paymentId, reason: 'recorded already' };
}

function recordFact(tx: Transaction, context: EventContext, fact: PaymentFact) {
  switch (fact.kind) {
    case 'received':
      return recordReceipt(tx, context, fact);
    case 'refunded':
    case 'refund_undone':
      return recordRefund(tx, context, fact);
    case 'disputed':
      return recordDispute(tx, context, fact);
  }
}
