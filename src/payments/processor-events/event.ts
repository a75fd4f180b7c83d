import type { DateTime } from 'luxon';
import type { Caller, PaymentContext } from '../context.ts';

export interface StorableEvent {
  /** The connected account. Empty for our own account. */
  readonly account: string;
  readonly id: string;
  readonly type: string;
  readonly created: string;
  readonly livemode: boolean;
  readonly payload: string;
}

export interface WaitingEvent {
  readonly processor_event_id: number;
  readonly account: string;
  readonly id: string;
  readonly type: string;
  readonly created: string;
  readonly received_at: string;
  readonly payload: string;
}

export interface EventOutcome {
  readonly outcome: 'effect' | 'nothing' | 'manual_review';
  readonly payment_id: number | null;
  readonly reason: string;
}

export interface PendingEvent {
  readonly waits: string;
}

export interface EventContext {
  readonly caller: Caller;
  /** Opens the audit event when the first fact is recorded. Events that only wait therefore leave no audit event. */
  readonly open: () => Promise<PaymentContext>;
  readonly event: Pick<WaitingEvent, 'id' | 'created'>;
  readonly account: string;
  readonly on: string;
  readonly receivedAt: DateTime;
  readonly installation: string;
}

export const waitsForPayment = (id: string | undefined): PendingEvent => ({
  waits: `for the payment ${id}, which is not recorded yet`,
});
