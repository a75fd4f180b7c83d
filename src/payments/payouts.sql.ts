import { execute, query, querying, queryingValue, Transaction } from '#database/transaction';
import { PaymentContext } from './context.ts';
import { REVERSALS } from './payments.sql.ts';
import { leftOn, TakenBack, WithProcessor } from './payout-contents.ts';

/** Returns the ids of the payouts, by bank line id. */
export async function insertPayouts(
  tx: Transaction,
  context: PaymentContext,
  lineIds: readonly number[],
): Promise<Map<number, number>> {
  if (lineIds.length === 0) return new Map();
  const rows = await query<{ payout_id: number; bank_line_id: number }>(
    tx,
    `INSERT INTO payouts (
       bank_line_id, account, currency, amount, direction, received_on, entry_on, recorded_at, event_id)
     SELECT bank_line_id, account, currency, amount, direction, bank_booked_on,
            greatest(bank_booked_on, :earliest::date), :now::timestamptz, :eventId::bigint
     FROM bank_lines WHERE bank_line_id = ANY (:lineIds::bigint[]) ORDER BY bank_booked_on, bank_line_id
     RETURNING payout_id, bank_line_id`,
    { lineIds, earliest: context.earliest, now: context.now, eventId: context.eventId },
  );
  return new Map(rows.map((row) => [row.bank_line_id, row.payout_id]));
}

export type NewSettlement = Readonly<{
  payout_id: number;
  gross: string;
  fees: string;
  why: string;
  payments: readonly Readonly<{ payment_id: number; amount: string }>[];
}>;

export async function insertSettlements(
  tx: Transaction,
  context: PaymentContext,
  settlements: readonly NewSettlement[],
) {
  if (settlements.length === 0) return;
  const bindings = {
    rows: settlements,
    earliest: context.earliest,
    now: context.now,
    eventId: context.eventId,
  };
  await execute(
    tx,
    `INSERT INTO payout_settlements (payout_id, gross, fees, entry_on, evidence, recorded_at, event_id)
     SELECT r.payout_id, r.gross, r.fees, greatest(o.entry_on, :earliest::date), jsonb_build_object('why', r.why),
            :now::timestamptz, :eventId::bigint
     FROM json_to_recordset(:rows::json) AS r (payout_id bigint, gross numeric, fees numeric, why text)
     JOIN payouts o USING (payout_id)`,
    bindings,
  );
  await execute(
    tx,
    `INSERT INTO payout_payments (payment_id, payout_id, amount)
     SELECT p.payment_id, r.payout_id, p.amount
     FROM json_to_recordset(:rows::json) AS r (payout_id bigint, payments json)
     CROSS JOIN LATERAL json_to_recordset(r.payments) AS p (payment_id bigint, amount numeric)`,
    bindings,
  );
}

export type AccountPayout = Readonly<{
  payout_id: number;
  balance_transaction_id: number;
  account: string;
  payout: string | null;
  currency: string;
  amount: string;
  /** The processor's fees for the contents of the payout; zero if unknown. */
  fees: string;
  /**
   * Whether the match is certain: no other payout matches the line, no other line matches the payout, and all contents
   * of the payout are known.
   */
  certain: boolean;
}>;

/** A payout reaches the bank within a few days, or later if there are holidays. */
const BANK_LINE_WITHIN_DAYS = 10;
/**
 * The contents of a payout are requested when the payout is reported. After this time, the payout is settled even if
 * its contents are unknown.
 */
const CONTENTS_WITHIN_DAYS = 3;

/**
 * Reads unsettled payouts of bank lines, with the payouts of connected accounts that may match. A matching payout has
 * the same currency and amount, and was made shortly before. A failed payout never arrives at the bank.
 */
export const readAccountPayouts = querying<AccountPayout, { now: string }>(`
  WITH waiting AS MATERIALIZED (
    SELECT * FROM payouts o WHERE NOT EXISTS (SELECT FROM payout_settlements s WHERE s.payout_id = o.payout_id)
  ), pairs AS (
    SELECT o.payout_id, e.*,
           e.fees IS NOT NULL OR e.is_manual
             OR e.occurred_at < :now::timestamptz - ${CONTENTS_WITHIN_DAYS} * interval '1 day' AS is_complete,
           count(*) OVER (PARTITION BY o.payout_id) AS payouts,
           count(*) OVER (PARTITION BY e.balance_transaction_id) AS lines
    FROM waiting o
    JOIN expected_account_payouts e ON e.amount = o.amount AND e.currency = o.currency
      AND o.received_on - (e.occurred_at AT TIME ZONE 'UTC')::date BETWEEN -1 AND ${BANK_LINE_WITHIN_DAYS}
  )
  SELECT payout_id, balance_transaction_id, account, payout, currency, amount::text,
         coalesce(fees, 0)::text AS fees,
         payouts = 1 AND lines = 1 AND is_complete AND NOT has_unknown AS certain
  FROM pairs ORDER BY payout_id, balance_transaction_id`);

export async function insertAccountPayouts(
  tx: Transaction,
  context: PaymentContext,
  rows: readonly { payout_id: number; account: string; currency: string; balance_transaction_id: number | null }[],
) {
  if (rows.length === 0) return;
  await execute(tx, `SELECT record_account_payouts(:rows::json, :now::timestamptz, :eventId::bigint)`, {
    rows,
    now: context.now,
    eventId: context.eventId,
  });
}

export const isConnectedAccount = queryingValue<boolean, { account: string }>(
  'SELECT EXISTS (SELECT FROM partner_arrangements WHERE connected_account_id = :account)',
);

export type PayoutRow = Readonly<{
  payout_id: number;
  account: string;
  currency: string;
  amount: string;
  received_on: string;
  text: string;
  gross: string | null;
  fees: string | null;
  why: string | null;
  payments: readonly number[];
  of_account: string | null;
  of_payout: string | null;
}>;

export function readPayouts(tx: Transaction, payoutId?: number): Promise<PayoutRow[]> {
  return query(
    tx,
    `SELECT o.payout_id, o.account, o.currency, o.amount, o.received_on, personal(l.text) AS text, s.gross, s.fees,
            s.evidence->>'why' AS why,
            ARRAY(SELECT p.payment_id::int FROM payout_payments p
                  WHERE p.payout_id = o.payout_id ORDER BY 1) AS payments,
            a.account AS of_account, a.payout AS of_payout
     FROM payouts o JOIN bank_lines l USING (bank_line_id) LEFT JOIN payout_settlements s USING (payout_id)
     LEFT JOIN arrived_account_payouts a USING (payout_id)
     WHERE :payoutId::bigint IS NULL OR o.payout_id = :payoutId
     ORDER BY o.received_on, o.payout_id`,
    { payoutId: payoutId ?? null },
  );
}

/**
 * Reads link payments that a payout on this day could contain, the oldest first. Payments to a connected account are
 * paid out from that account, so these payments are left out.
 */
export async function readWithProcessor(tx: Transaction, currency: string, day: string): Promise<WithProcessor[]> {
  const rows = await query<{
    payment_id: number;
    currency: string;
    amount: string;
    received_on: string;
    taken_back: TakenBack[];
  }>(
    tx,
    `SELECT p.payment_id, p.currency, p.amount, p.received_on, ${REVERSALS} AS taken_back
     FROM payments p
     WHERE p.method = 'link' AND p.account = '' AND p.currency = :currency
       AND NOT EXISTS (SELECT FROM payout_payments o WHERE o.payment_id = p.payment_id)
     ORDER BY p.received_on, p.payment_id`,
    { currency },
  );
  return rows
    .map((row) => ({ payment_id: row.payment_id, amount: leftOn(row, day) }))
    .filter((each) => each.amount.isPositive());
}
