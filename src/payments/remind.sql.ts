import { executing, query, querying, queryingColumn, Transaction } from '#database/transaction';

export type SkipReason =
  | 'on_hold'
  | 'disputed'
  /** The partner's contact has ordered a bank debit that is not complete yet. */
  | 'payment_ordered'
  | 'card_dispute'
  | 'payment_to_confirm'
  /** A possible duplicate may pay the invoice. */
  | 'possible_duplicate'
  | 'not_sent'
  | 'covered_by_credit'
  /** Unapplied cash covers the invoice. The cash belongs to a partner that pays for this partner. */
  | 'covered_by_parent'
  /** Payments left no more open than a bank keeps as its charges (the setting `small_difference`). */
  | 'bank_charges'
  | 'paused'
  /** A bank account of the currency has no report of the working day before. */
  | 'awaits_bank_file'
  /** The letter's sum is below `reminder_minimum`. */
  | 'below_minimum';

export type OwedRow = Readonly<{
  document_id: number;
  number: string;
  partner_id: string;
  partner_name: string;
  /** The partner that gets the reminder: the payer of the whole family, or the partner if it has no parent. */
  payer_id: string;
  month: string;
  currency: string;
  /**
   * The issue date of an invoice that an opening carried over, and that therefore has no month. Null for other
   * invoices.
   */
  carried_issued_on: string | null;
  due_on: string;
  gross: string;
  balance: string;
  amount_paid: string;
  disputed: string;
  /** What the open credit and unapplied cash of the partner and its payers leave to pay. Null if it is not counted. */
  left_to_pay: string | null;
  payment_link: string | null;
  /**
   * The latest dunning level reached, in days after `counted_from`; null if the partner was already reminded of this
   * level.
   */
  dunning_level: number | null;
  reminded_level: number | null;
  /** The day of the first level that waits for the report of a bank account. */
  waits_since: string | null;
  /** The day through which the reminders of the partner or one of its payers are paused. */
  paused_until: string | null;
  /** The due date, or the later day when the debt was reopened or carried over. */
  counted_from: string;
  /** If the bank returned the last payment: the days on which the payment was received and returned. */
  returned_payment_on: string | null;
  returned_on: string | null;
  skip_reason: SkipReason | null;
}>;

/** The partners that this partner pays for, and the partner. */
const FAMILY = `(SELECT partner_id FROM partner_payers WHERE payer_id = :partnerId UNION SELECT :partnerId)`;

/** Open invoices, each with the reason not to dun it, if any. This query does not consider credit and cash yet. */
const OWED = `payers AS (
     SELECT DISTINCT ON (partner_id) partner_id, payer_id FROM partner_payers ORDER BY partner_id, distance DESC
   ), paused AS (
     SELECT u.partner_id, max(until) AS until
     FROM (SELECT partner_id, payer_id FROM partner_payers UNION SELECT partner_id, partner_id FROM partners) AS u
     JOIN present_reminder_pauses s ON s.partner_id = u.payer_id
     WHERE until >= :day::date GROUP BY 1
   ), owed AS (
     SELECT d.document_id, d.series, d.sequence, d.number, d.partner_id, d.partner_name, d.month,
            coalesce(y.payer_id, d.partner_id) AS payer_id, d.currency, d.due_on,
            CASE WHEN d.opening_id IS NOT NULL THEN d.issued_on END AS carried_issued_on,
            d.gross, b.balance, b.amount_paid, least(coalesce(t.amount, 0), b.balance) AS disputed,
            (SELECT url FROM current_links k WHERE k.document_id = d.document_id) AS payment_link,
            reached.dunning_level, told.reminded_level, p.payment_id AS to_confirm,
            since.counted_from + reached.waiting_level AS waits_since, z.until AS paused_until,
            since.counted_from, since.returned_payment_on, since.returned_on,
            CASE WHEN EXISTS (SELECT FROM current_holds h WHERE h.document_id = d.document_id) THEN 'on_hold'
                 WHEN t.amount >= b.balance THEN 'disputed'
                 WHEN EXISTS (SELECT FROM ordered_payments o WHERE o.document_id = d.document_id)
                 THEN 'payment_ordered'
                 WHEN EXISTS (
                   SELECT FROM payment_applications a JOIN disputes c ON c.payment_id = a.payment_id
                   WHERE a.document_id = d.document_id
                     AND NOT EXISTS (SELECT FROM dispute_outcomes o WHERE o.dispute_id = c.dispute_id))
                 THEN 'card_dispute'
                 WHEN p.is_duplicate THEN 'possible_duplicate'
                 WHEN p.payment_id IS NOT NULL THEN 'payment_to_confirm'
                 WHEN d.purpose <> 'opening' AND NOT EXISTS (
                   SELECT FROM emails e WHERE e.document_id = d.document_id AND e.status = 'sent') THEN 'not_sent'
            END AS skip_reason
     FROM documents d JOIN document_balances b USING (document_id)
     LEFT JOIN open_invoice_disputes t USING (document_id)
     LEFT JOIN openings g USING (opening_id)
     LEFT JOIN payers y ON y.partner_id = d.partner_id
     LEFT JOIN paused z ON z.partner_id = d.partner_id
     -- The last event that reopened the debt. A late record of it counts from the day of recording.
     LEFT JOIN LATERAL (
       SELECT r.kind, day.reopened_on, m.received_on,
              greatest(day.reopened_on, (c.undone_at AT TIME ZONE :timeZone::text)::date) AS known_on
       FROM balance_changes c LEFT JOIN payment_unapplications u ON u.log_no = c.undone_recorded
       LEFT JOIN live_payment_reversals r USING (payment_reversal_id)
       LEFT JOIN payments m ON m.payment_id = c.payment_id
       CROSS JOIN LATERAL (SELECT coalesce(r.reversed_on, c.undone_dated_on) AS reopened_on) AS day
       WHERE c.document_id = d.document_id AND c.document = 'invoice' AND c.undone
         AND c.fact NOT IN ('document_issued', 'small_difference')
         AND (u.payment_reversal_id IS NULL OR r.payment_reversal_id IS NOT NULL)
       ORDER BY c.undone_recorded DESC LIMIT 1) AS back ON true
     CROSS JOIN LATERAL (
       SELECT greatest(d.due_on, back.known_on, g.cut_over_on, (g.recorded_at AT TIME ZONE :timeZone::text)::date)
                AS counted_from,
              CASE back.kind WHEN 'returned' THEN back.received_on END AS returned_payment_on,
              CASE back.kind WHEN 'returned' THEN back.reopened_on END AS returned_on) AS since
     CROSS JOIN LATERAL (
       SELECT max(r.dunning_level) AS reminded_level FROM reminders r
       WHERE r.document_id = d.document_id AND r.counted_from = since.counted_from) AS told
     CROSS JOIN LATERAL (
       SELECT CASE WHEN d.currency <> ALL (:awaited::text[]) THEN max(level) END AS dunning_level,
              CASE WHEN d.currency = ANY (:awaited::text[]) THEN min(level) END AS waiting_level
       FROM unnest(:levels::integer[]) AS level
       WHERE since.counted_from + level <= :day::date AND since.counted_from + level > d.issued_on
         -- A debt that counts from a day after its due date starts with the first overdue level.
         AND (level > 0 OR since.counted_from = d.due_on)
         AND level > coalesce(told.reminded_level, level - 1)) AS reached
     LEFT JOIN LATERAL (
       SELECT s.payment_id, s.payment_id IN (SELECT payment_id FROM possible_duplicates) AS is_duplicate
       FROM payment_suggestions s JOIN payment_balances p ON p.payment_id = s.payment_id AND p.unapplied > 0
       WHERE s.document_id = d.document_id
       ORDER BY is_duplicate, s.confidence DESC, s.payment_suggestion_id LIMIT 1) AS p ON true
     WHERE d.document = 'invoice' AND b.status = 'open'
       AND (:partnerId::text IS NULL OR d.partner_id IN ${FAMILY})
     )`;

/** The money that covers debts: credit that is not on hold, and unapplied cash that is not suggested for an invoice. */
const MONEY = `cash AS (
       SELECT partner_id, currency, sum(amount) AS amount
       FROM (SELECT b.partner_id, b.currency,
                    greatest(b.unapplied - coalesce(sum(o.balance - o.disputed), 0), 0) AS amount
             FROM payment_balances b LEFT JOIN owed o
               ON o.to_confirm = b.payment_id AND o.skip_reason = 'payment_to_confirm'
             WHERE b.unapplied > 0 AND b.payment_id NOT IN (SELECT payment_id FROM possible_duplicates)
             GROUP BY b.payment_id, b.partner_id, b.currency, b.unapplied) AS payments
       WHERE partner_id IS NOT NULL GROUP BY partner_id, currency
     ), money AS (
       SELECT partner_id, currency, coalesce(c.amount, 0) AS cash,
              coalesce(c.amount, 0) + coalesce(n.amount, 0) AS amount
       FROM cash c FULL JOIN (
         SELECT partner_id, currency, sum(balance) AS amount FROM applicable_credit
         GROUP BY partner_id, currency) AS n
         USING (partner_id, currency)
     )`;

/**
 * What is left of the debts after the money that covers them: first the partner's own money, then the cash of its
 * payers, the nearest payer first.
 */
const REMAINING = `counted AS (
       SELECT o.document_id, o.partner_id, o.currency, o.due_on, o.series, o.sequence, o.balance - o.disputed AS amount,
              sum(o.balance - o.disputed) OVER (
                PARTITION BY o.partner_id, o.currency ORDER BY o.due_on, o.series, o.sequence) AS owed_up_to,
              coalesce(m.amount, 0) AS own
       FROM owed o LEFT JOIN money m USING (partner_id, currency) WHERE o.skip_reason IS NULL
     ), surplus AS (
       SELECT m.partner_id, m.currency, least(m.cash, m.amount - coalesce(sum(n.amount), 0)) AS amount
       FROM money m LEFT JOIN counted n USING (partner_id, currency)
       GROUP BY m.partner_id, m.currency, m.cash, m.amount
     ), left_to_parents AS (
       SELECT DISTINCT ON (n.document_id)
              n.document_id, n.currency, n.due_on, n.series, n.sequence,
              least(n.amount, n.owed_up_to - n.own) AS amount,
              s.partner_id AS payer_id, s.amount AS surplus
       FROM counted n JOIN partner_payers u USING (partner_id)
       JOIN surplus s ON s.partner_id = u.payer_id AND s.currency = n.currency AND s.amount > 0
       WHERE n.owed_up_to > n.own
       ORDER BY n.document_id, u.distance
     ), remaining AS (
       SELECT n.document_id, coalesce(p.amount, greatest(least(n.amount, n.owed_up_to - n.own), 0)) AS amount,
              CASE WHEN n.owed_up_to <= n.own THEN 'covered_by_credit' WHEN p.amount = 0 THEN 'covered_by_parent' END
                AS covered
       FROM counted n LEFT JOIN (
         SELECT document_id, greatest(least(amount, sum(amount) OVER (
                  PARTITION BY payer_id, currency ORDER BY due_on, series, sequence) - surplus), 0) AS amount
         FROM left_to_parents) AS p USING (document_id)
     )`;

/**
 * Reads open invoices in number order.
 *
 * A dunning level counts only if its day is after the issue date: a replacement with the old due date does not repeat
 * the levels of the replaced document.
 *
 * The partner's open credit and unapplied cash cover its debts in that currency, the earliest due date first. The
 * remaining cash of the partner's parents covers the other debts. Covered debts are not dunned. Cash suggested for an
 * invoice covers that invoice first. A possible duplicate covers nothing.
 */
export const readOwed = querying<
  OwedRow,
  Readonly<{
    day: string;
    timeZone: string;
    levels: readonly number[];
    /** The currencies whose levels wait for a bank file. */
    awaited: readonly string[];
    /** The payer of the family whose invoices are read. Null reads all. */
    partnerId: string | null;
  }>
>(`
  WITH ${OWED}, ${MONEY}, ${REMAINING}
  SELECT o.document_id, o.number, o.partner_id, o.partner_name, o.payer_id, o.month, o.currency, o.due_on, o.gross,
         o.balance, o.amount_paid, o.disputed, o.payment_link, o.dunning_level, o.reminded_level, o.waits_since,
         o.paused_until, o.counted_from, o.returned_payment_on, o.returned_on, o.carried_issued_on,
         r.amount AS left_to_pay, coalesce(r.covered, o.skip_reason) AS skip_reason
  FROM owed o LEFT JOIN remaining r USING (document_id)
  WHERE :partnerId::text IS NULL OR o.payer_id = :partnerId
  ORDER BY o.series, o.sequence`);

export const readRemindedOn = queryingColumn<string, { day: string }>(
  `SELECT partner_id FROM emails WHERE kind = 'reminder' AND day = :day::date`,
);

export const insertReminders = executing<{
  levels: readonly { number: string; payer_id: string; dunning_level: number; counted_from: string }[];
  emailIds: readonly number[];
}>(`
  INSERT INTO reminders (document_id, dunning_level, email_id, payer_id, partner_id, currency, counted_from)
  SELECT d.document_id, r.dunning_level, e.email_id, r.payer_id, d.partner_id, d.currency, r.counted_from
  FROM json_to_recordset(:levels::json) AS r (number text, payer_id text, dunning_level integer, counted_from date)
  JOIN documents d USING (number)
  JOIN emails e ON e.partner_id = r.payer_id AND e.email_id = ANY (:emailIds::bigint[])`);

export async function readReminded(tx: Transaction, emailId: number) {
  const rows = await query<{ document_id: number; dunning_level: number }>(
    tx,
    // A repeated reminder has the documents of the original reminder.
    `SELECT r.document_id, r.dunning_level FROM emails e
     JOIN emails first ON (first.partner_id, first.day) = (e.partner_id, e.day)
                      AND first.kind = 'reminder' AND first.asked_for IS NULL
     JOIN reminders r ON r.email_id = first.email_id
     WHERE e.email_id = :emailId`,
    { emailId },
  );
  return new Map(rows.map((row) => [row.document_id, row.dunning_level]));
}

export const readPdfsToAttach = querying<{ number: string; pdf: Buffer }, { documentIds: readonly number[] }>(`
  SELECT d.number, w.pdf FROM document_pdfs w JOIN documents d USING (document_id)
  WHERE w.document_id = ANY (:documentIds::bigint[]) ORDER BY d.series, d.sequence`);

export type OpenCredit = Readonly<{
  currency: string;
  number: string | null;
  amount: string;
}>;

/**
 * Credit notes on hold are left out, because their partner has not received them. Possible duplicates are left out,
 * because they may not be real money.
 */
export const readOpenCredits = querying<OpenCredit, { partnerId: string }>(`
  SELECT currency, number, balance AS amount FROM applicable_credit WHERE partner_id = :partnerId
  UNION ALL
  SELECT currency, NULL, sum(unapplied) FROM payment_balances
  WHERE partner_id = :partnerId AND unapplied > 0 AND payment_id NOT IN (SELECT payment_id FROM possible_duplicates)
  GROUP BY currency
  ORDER BY currency, number NULLS LAST`);
