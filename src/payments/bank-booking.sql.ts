import { query, querying, Transaction } from '#database/transaction';
import { PaymentContext } from './context.ts';
import { BankLineState } from './enums.ts';

export type BookableLine = Readonly<{
  bank_line_id: number;
  account: string;
  currency: string;
  /** The amount of a debit is negative. */
  amount: string;
  booked_on: string;
  state: BankLineState;
  payment_id: number | null;
  booked_to: string | null;
  booking: number | null;
}>;

export const readBookableLines = querying<BookableLine, { bankLineIds: readonly number[] }>(`
  SELECT l.bank_line_id, l.account, l.currency, signed_amount(l)::text AS amount, l.bank_booked_on AS booked_on,
         s.state, s.payment_id, s.booked_to,
         (SELECT max(bank_booking_id) FROM bank_bookings b WHERE b.bank_line_id = l.bank_line_id) AS booking
  FROM bank_lines l JOIN bank_line_states s USING (bank_line_id)
  WHERE l.bank_line_id = ANY (:bankLineIds::bigint[])`);

export type NewBooking = Readonly<{
  bank_line_id: number;
  previous: number | null;
  booked_to: string | null;
  reason: string;
  /** A first booking is dated like its line. A later booking is dated on the day on which it is made. */
  later: boolean;
}>;

export async function insertBookings(
  tx: Transaction,
  { now, today, eventId, earliest }: PaymentContext,
  rows: readonly NewBooking[],
) {
  if (rows.length === 0) return;
  await query(
    tx,
    `INSERT INTO bank_bookings (
       bank_line_id, previous, account, currency, amount, direction, booked_to, reason, booked_on, entry_on,
       recorded_at, event_id)
     SELECT l.bank_line_id, r.previous, l.account, l.currency, l.amount, l.direction, r.booked_to, r.reason,
            day.booked_on, greatest(day.booked_on, p.entry_on, :earliest::date), :now::timestamptz, :eventId::bigint
     FROM json_to_recordset(:rows::json)
       AS r (bank_line_id bigint, previous bigint, booked_to text, reason text, later boolean)
     JOIN bank_lines l USING (bank_line_id) LEFT JOIN bank_bookings p ON p.bank_booking_id = r.previous
     CROSS JOIN LATERAL (
       SELECT greatest(l.bank_booked_on, CASE WHEN r.later THEN :today::date END) AS booked_on) AS day
     RETURNING bank_booking_id`,
    { rows, now, today, eventId, earliest },
  );
}
