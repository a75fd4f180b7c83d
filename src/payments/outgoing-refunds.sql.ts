import { query, querying, Transaction } from '#database/transaction';
import { fileOf } from './bank-import/bank-lines.sql.ts';
import { inserting } from './insert.sql.ts';

export type OutgoingLine = Readonly<{
  bank_line_id: number;
  account: string;
  booked_on: string;
  currency: string;
  amount: string;
  texts: readonly string[];
  payee: string | null;
  /** Whether the line paid a refund that was undone later. */
  freed: boolean;
}>;

/** A line that may be the same as a debit. */
export type EqualDebit = Readonly<{
  bank_line_id: number;
  account: string;
  bank_reference: string | null;
  texts: readonly string[];
  file: string;
  /**
   * The refund that the equal line pays: the number of a credit note, or a payment. Null if the line pays no refund.
   */
  pays: string | null;
}>;

/** A refund that finance recorded, of a credit note or of a payment other than a link payment. */
export type RecordedRefund = Readonly<{
  credit_refund_id: number | null;
  payment_reversal_id: number | null;
  document: string | null;
  payment_id: number | null;
  partner_id: string | null;
  payee: string | null;
  currency: string;
  amount: string;
  refunded_on: string;
  /** The account that received the payment; null for a credit note. */
  received_by: string | null;
  /**
   * The refund's reference, or the reason for the reversal. If the payer is unknown, the payment's reference is
   * included.
   */
  texts: readonly string[];
}>;

/** Reads refunds, the oldest first. `open` selects refunds that no bank line has paid yet. */
export function readRefunds(
  tx: Transaction,
  money: readonly { currency: string; amount: string }[],
  { open }: { open: boolean },
): Promise<RecordedRefund[]> {
  return query(
    tx,
    `WITH money AS (
       SELECT DISTINCT currency, amount FROM json_to_recordset(:money::json) AS m (currency text, amount numeric)
     )
     SELECT f.credit_refund_id, NULL::bigint AS payment_reversal_id, d.number AS document, NULL::bigint AS payment_id,
            f.partner_id, n.name AS payee, f.currency, f.amount, f.refunded_on,
            NULL::text AS received_by, ARRAY[personal(f.reference)] AS texts
     FROM live_credit_refunds f JOIN money m USING (currency, amount) JOIN documents d ON d.document_id = f.document_id
     JOIN partners n ON n.partner_id = f.partner_id
     WHERE NOT (:open AND EXISTS (SELECT FROM refund_matches x WHERE x.credit_refund_id = f.credit_refund_id))
     UNION ALL
     SELECT NULL, r.payment_reversal_id, NULL, r.payment_id, r.partner_id,
            coalesce(n.name, personal(p.payer_name)), r.currency, r.amount, r.reversed_on, p.account,
            array_remove(ARRAY[r.reason, CASE WHEN r.partner_id IS NULL THEN personal(p.reference) END], NULL)
     FROM live_payment_reversals r JOIN money m USING (currency, amount) JOIN payments p ON p.payment_id = r.payment_id
     LEFT JOIN partners n ON n.partner_id = r.partner_id
     WHERE r.kind = 'refunded' AND p.method <> 'link' AND r.bank_line_id IS NULL
       AND NOT (:open AND EXISTS (SELECT FROM refund_matches x WHERE x.payment_reversal_id = r.payment_reversal_id))
     ORDER BY refunded_on, credit_refund_id, payment_reversal_id`,
    { money: money.map(({ currency, amount }) => ({ currency, amount })), open },
  );
}

const TEXTS_OF_LINE = `array_remove(ARRAY[l.bank_reference, personal(l.text)], NULL)
              || ARRAY(SELECT personal(f.text) FROM jsonb_to_recordset(l."references") AS f (text text)
                       WHERE f.text IS NOT NULL) AS texts`;

/** Reads the debits that are neither returns nor payments of a refund. */
export const readUnmatchedDebits = querying<OutgoingLine, { currency: string; amount: string }>(`
  SELECT l.bank_line_id, l.account, l.bank_booked_on AS booked_on, l.currency, l.amount,
         personal(l.payer_name) AS payee,
         EXISTS (SELECT FROM refund_matches x WHERE x.bank_line_id = l.bank_line_id) AS freed,
         ${TEXTS_OF_LINE}
  FROM bank_lines l JOIN bank_line_outcomes o USING (bank_line_id)
  WHERE l.currency = :currency AND l.amount = :amount::numeric AND l.direction = 'debit'
    AND o.outcome IN ('ignored', 'refund') AND NOT l.is_reversal AND l.return_code IS NULL
    AND (SELECT state FROM bank_line_states s WHERE s.bank_line_id = l.bank_line_id) = 'unbooked'
  ORDER BY l.bank_booked_on, l.bank_line_id`);

export const readEqualDebits = querying<EqualDebit, { lineIds: readonly number[] }>(`
  SELECT l.bank_line_id, l.account, l.bank_reference, ${TEXTS_OF_LINE}, ${fileOf('l')} AS file,
         coalesce(d.number, 'payment ' || v.payment_id) AS pays
  FROM unnest(:lineIds::bigint[]) AS i (bank_line_id) JOIN bank_lines l USING (bank_line_id)
  LEFT JOIN live_refund_matches m ON m.bank_line_id = l.bank_line_id
  LEFT JOIN credit_refunds c ON c.credit_refund_id = m.credit_refund_id
  LEFT JOIN documents d ON d.document_id = c.document_id
  LEFT JOIN payment_reversals v ON v.payment_reversal_id = m.payment_reversal_id`);

export type NewRefundMatch = Readonly<{
  bank_line_id: number;
  credit_refund_id: number | null;
  payment_reversal_id: number | null;
  evidence: Readonly<{ why: string; apart_from?: readonly number[] }>;
}>;

export const insertRefundMatches = inserting<NewRefundMatch>(
  `INSERT INTO refund_matches (
     bank_line_id, account, currency, amount, direction, credit_refund_id, payment_reversal_id, paid_on, entry_on,
     evidence, recorded_at, event_id)
   SELECT l.bank_line_id, l.account, l.currency, l.amount, l.direction, r.credit_refund_id, r.payment_reversal_id,
          l.bank_booked_on, greatest(l.bank_booked_on, f.entry_on, v.entry_on, :earliest::date), r.evidence,
          :now::timestamptz, :eventId::bigint
   FROM json_populate_recordset(NULL::refund_matches, :rows::json) AS r
   JOIN bank_lines l USING (bank_line_id)
   LEFT JOIN credit_refunds f ON f.credit_refund_id = r.credit_refund_id
   LEFT JOIN payment_reversals v ON v.payment_reversal_id = r.payment_reversal_id`,
);
