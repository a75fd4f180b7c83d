/**
 * What the modules of processor events share: an event, its outcome, and the context in which its facts are recorded.
 */
import type { DateTime } from 'luxon';
import type { Caller, PaymentContext } from '../context.ts';

export interface StorableEvent {
  /** The connected account; empty for our own. */
  readonly account: string;
  readonly id: string;
  readonly type: string;
  /** ISO instant. */
  readonly created: string;
  readonly livemode: boolean;
  /** JSON. */
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

/** `manual_review`: finance decides. */
export interface EventOutcome {
  readonly outcome: 'effect' | 'nothing' | 'manual_review';
  readonly payment_id: number | null;
  readonly reason: string;
}

/** The event cannot be processed yet; states why. */
export interface PendingEvent {
  readonly waits: string;
}

export interface EventContext {
  readonly caller: Caller;
  /** Opened by the first fact that changes anything. Events that only wait therefore leave no audit event. */
  readonly open: () => Promise<PaymentContext>;
  readonly event: Pick<WaitingEvent, 'id' | 'created'>;
  /** The account of the event. */
  readonly account: string;
  /** The day of the event in the issuer's zone, `YYYY-MM-DD`. */
  readonly on: string;
  /** When the event was stored. */
  readonly receivedAt: DateTime;
  readonly installation: string;
}

export const waitsForPayment = (id: string | undefined): PendingEvent => ({
  waits: `for the payment ${id}, which is not recorded yet`,
});
