/**
 * The frame of every act on payments: one at a time, within one month of the journal, under one audit event.
 *
 * Order of the locks, always: ledger (shared, so that no month closes and no document is issued or voided meanwhile), then
 * payments. A close holds the ledger's whole, so it never waits for an act that waits for it.
 */

import type { Environment } from '../config/environment.ts';
import type { Settings } from '../config/settings.ts';
import { todayOf } from '../config/today.ts';
import { lockLedgerShared } from '../database/ledger-lock.ts';
import { execute, queryOne, type Transaction } from '../database/transaction.ts';
import { type Actor, recordEvent } from '../people/audit-events.ts';

export interface Caller {
  readonly environment: Environment;
  readonly settings: Settings;
  readonly actor: Actor;
}

/** What the facts of one act have in common. */
export interface PaymentContext {
  readonly tx: Transaction;
  /** ISO instant. */
  readonly now: string;
  /** `YYYY-MM-DD` in the issuer's zone. */
  readonly today: string;
  readonly eventId: number;
  /** The first day of the earliest open month; null before the first close. */
  readonly earliest: string | null;
}

const PAYMENTS = '7310::integer, 51::integer';

export async function lockPayments(tx: Transaction): Promise<void> {
  await lockLedgerShared(tx);
  await execute(tx, `SELECT pg_advisory_xact_lock(${PAYMENTS})`);
}

/** Records the event of an act; the caller holds the payments' lock, so that what it has looked at still holds. */
export async function openPaymentContext(
  tx: Transaction,
  caller: Caller,
  event: { action: string; subject: string; details: Readonly<Record<string, unknown>> },
): Promise<PaymentContext> {
  const now = caller.environment.now().toISO();
  const eventId = await recordEvent(tx, caller.actor, { ...event, now });
  const { earliest } = await queryOne<{ earliest: string | null }>(
    tx,
    `SELECT (month_after(max(month)) || '-01')::date AS earliest FROM closed_months`,
  );
  return { tx, now, today: todayOf(caller), eventId, earliest };
}

/** Delivery looks at these documents again: the payment link of a paid one is closed, that of a reopened one opened. */
export async function enqueueDeliveries(context: PaymentContext, documentIds: Iterable<number>): Promise<void> {
  const ids = [...new Set(documentIds)];
  if (ids.length > 0) {
    await execute(context.tx, `SELECT enqueue_deliveries(:ids::bigint[])`, { ids });
  }
}
