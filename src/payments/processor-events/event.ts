import { DateTime } from 'luxon';
import { Caller, PaymentContext } from '#payments/context';

export type StorableEvent = Readonly<{
  /** The connected account. Empty for our own account. */
  account: string;
  id: string;
  type: string;
  created: string;
  livemode: boolean;
  payload: string;
}>;

export type WaitingEvent = Readonly<{
  processor_event_id: number;
  account: string;
  id: string;
  type: string;
  created: string;
  received_at: string;
  payload: string;
}>;

export type EventOutcome = Readonly<{
  outcome: 'effect' | 'nothing' | 'manual_review';
  payment_id: number | null;
  reason: string;
}>;

export type PendingEvent = Readonly<{
  waits: string;
}>;

export type EventContext = Readonly<{
  caller: Caller;
  /** Opens the audit event when the first fact is recorded. Events that only wait therefore leave no audit event. */
  open: () => Promise<PaymentContext>;
  event: Pick<WaitingEvent, 'id' | 'created'>;
  account: string;
  on: string;
  receivedAt: DateTime;
  installation: string;
}>;

export const waitsForPayment = (id: string | undefined): PendingEvent => ({
  waits: `for the payment ${id}, which is not recorded yet`,
});
