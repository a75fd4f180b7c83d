/**
 * What must be true of the books at any moment, asked of the tables themselves and not of the program: each check names
 * what it looked at, how many there were of it, and how many of them break the rule.
 */
import type { World } from '../support/world.ts';

/** Rows with the closed month that bills them; NULL while they are open. */
const BILLED = `
  SELECT e.*, m.month AS billed_in,
         (SELECT count(*) FROM closed_months c
          WHERE e.posted_month <= c.month AND (c.previous IS NULL OR e.posted_month > c.previous)) AS times_billed
  FROM ledger_rows e
  LEFT JOIN closed_months m
    ON e.posted_month <= m.month AND (m.previous IS NULL OR e.posted_month > m.previous)`;

/** Documents with the sign that turns their sums into those of their rows. */
const SIGNED = `
  SELECT d.*, document_sign(document) AS sign FROM documents d WHERE purpose = 'month'`;

/** Credit in use: what was applied, without what a void gave back. */
const USED = `
  SELECT a.* FROM credit_applications a
  WHERE NOT EXISTS (SELECT FROM credit_releases r WHERE r.credit_application_id = a.credit_application_id)`;

const VOID = 'EXISTS (SELECT FROM voids v WHERE v.document_id = d.document_id)';

/** Partners of whom no correction has opened credit, and no hold has kept it, out of its turn. */
const UNCORRECTED = `
  SELECT partner_id, currency FROM documents EXCEPT
  SELECT d.partner_id, d.currency FROM documents d
  WHERE d.purpose = 'adjustment' OR ${VOID} OR EXISTS (SELECT FROM holds h WHERE h.document_id = d.document_id) OR EXISTS (
    SELECT FROM credit_applications a LEFT JOIN credit_releases r USING (credit_application_id)
    WHERE a.credit_note_id = d.document_id AND (NOT a.at_issue OR r.credit_application_id IS NOT NULL))`;

const CHECKS: Readonly<Record<string, string>> = {
  'every row is billed by exactly one closed month or is open': `
    SELECT times_billed = CASE WHEN posted_month <= (SELECT max(month) FROM closed_months) THEN 1 ELSE 0 END AS good
    FROM (${BILLED}) AS rows`,
  'documents are their rows, by partner, month, currency and arrangement': `
    SELECT (r.entries, r.enrollments, r.spot_price, r.partner_cut, r.invoice_amount)
           IS NOT DISTINCT FROM
           (d.entries, d.enrollments, d.sign * d.spot_price, d.sign * d.partner_cut, d.sign * d.invoice_amount) AS good
    FROM (
      SELECT partner_id, billed_in AS month, currency, arrangement, count(*) AS entries,
             count(*) FILTER (WHERE kind = 'quote_accepted') AS enrollments, sum(spot_price) AS spot_price,
             sum(partner_cut) AS partner_cut, sum(invoice_amount) AS invoice_amount
      FROM (${BILLED}) AS rows WHERE billed_in IS NOT NULL
      GROUP BY partner_id, billed_in, currency, arrangement
    ) AS r
    FULL JOIN (${SIGNED}) AS d USING (partner_id, month, currency, arrangement)`,
  'of each partner, month, currency and arrangement there is one chain, and only its end is live': `
    SELECT count(*) FILTER (WHERE d.replaces IS NULL) = 1
           AND count(*) FILTER (WHERE NOT EXISTS (SELECT FROM documents l WHERE l.replaces = d.document_id)) = 1
           AND count(*) FILTER (WHERE NOT ${VOID}) <= 1
           AND bool_and(${VOID} OR NOT EXISTS (SELECT FROM documents l WHERE l.replaces = d.document_id)) AS good
    FROM (${SIGNED}) AS d GROUP BY partner_id, month, currency, arrangement`,
  'lines are their rows, by policy, kind and own month': `
    SELECT (r.count, r.spot_price, r.partner_cut, r.invoice_amount)
           IS NOT DISTINCT FROM (l.count, l.spot_price, l.partner_cut, l.invoice_amount) AS good
    FROM (
      SELECT partner_id, billed_in, currency, arrangement, policy_id, kind, month, count(*) AS count,
             sum(spot_price) AS spot_price, sum(partner_cut) AS partner_cut, sum(invoice_amount) AS invoice_amount
      FROM (${BILLED}) AS rows WHERE billed_in IS NOT NULL
      GROUP BY partner_id, billed_in, currency, arrangement, policy_id, kind, month
    ) AS r
    FULL JOIN (
      SELECT d.partner_id, d.month AS billed_in, d.currency, d.arrangement, l.policy_id, l.kind, l.month,
             sum(l.count)::bigint AS count, sum(sign * l.spot_price) AS spot_price, sum(sign * l.partner_cut) AS partner_cut,
             sum(sign * l.invoice_amount) AS invoice_amount
      FROM (${SIGNED}) AS d JOIN document_lines l USING (document_id)
      GROUP BY d.document_id, d.partner_id, d.month, d.currency, d.arrangement, l.policy_id, l.kind, l.month
    ) AS l USING (partner_id, billed_in, currency, arrangement, policy_id, kind, month)`,
  'lines add up to their document': `
    SELECT (sum(l.count), sum(l.spot_price), sum(l.partner_cut), sum(l.invoice_amount))
           IS NOT DISTINCT FROM (d.entries, d.spot_price, d.partner_cut, d.invoice_amount) AS good
    FROM documents d LEFT JOIN document_lines l USING (document_id) WHERE d.purpose = 'month' GROUP BY d.document_id`,
  'a document owes in the direction of its kind': `
    SELECT CASE document WHEN 'credit_note' THEN gross > 0 WHEN 'invoice' THEN gross >= 0
                         ELSE credit_applied = 0 END AS good
    FROM documents`,
  'numbers begin at one and have no gap in their series': `
    SELECT min(sequence) = 1 AND max(sequence) = count(*) AS good FROM documents GROUP BY series`,
  'later numbers of a series are of later dates': `
    SELECT issued_on >= coalesce(lag(issued_on) OVER (PARTITION BY series ORDER BY sequence), '-infinity') AS good
    FROM documents`,
  'a credit note is never applied or paid out beyond its amount, and what is left is its balance': `
    SELECT a.applied + f.refunded <= d.gross AND b.balance = d.gross - a.applied - f.refunded
           AND b.status = CASE WHEN a.applied + f.refunded = d.gross THEN 'paid' ELSE 'open' END AS good
    FROM documents d JOIN document_balances b USING (document_id)
    CROSS JOIN LATERAL (SELECT coalesce(sum(amount), 0) AS applied FROM (${USED}) AS u
                        WHERE u.credit_note_id = d.document_id) AS a
    CROSS JOIN LATERAL (SELECT coalesce(sum(amount), 0) AS refunded FROM credit_refunds f
                        WHERE f.document_id = d.document_id AND f.credit_refund_id NOT IN (
                          SELECT credit_refund_id FROM credit_refund_returns)) AS f
    WHERE d.document = 'credit_note' AND NOT ${VOID}`,
  'an invoice was issued with the credit that was applied to it then': `
    SELECT a.applied = d.credit_applied AND d.credit_applied <= d.gross AS good
    FROM documents d
    CROSS JOIN LATERAL (SELECT coalesce(sum(amount), 0) AS applied FROM credit_applications c
                        WHERE c.invoice_id = d.document_id AND c.applied_on = d.issued_on AND c.at_issue) AS a
    WHERE d.document = 'invoice'`,
  'what is open on an invoice is its amount less all credit, write-offs and payments, never below zero': `
    SELECT b.balance = d.gross - u.used - w.given_up - p.paid AND b.balance >= 0
           AND b.status = CASE WHEN d.gross = u.used + w.given_up + p.paid THEN 'paid' ELSE 'open' END AS good
    FROM documents d JOIN document_balances b USING (document_id)
    CROSS JOIN LATERAL (SELECT coalesce(sum(amount), 0) AS used FROM (${USED}) AS u
                        WHERE u.invoice_id = d.document_id) AS u
    CROSS JOIN LATERAL (SELECT coalesce(sum(amount), 0) AS given_up FROM live_write_offs w
                        WHERE w.document_id = d.document_id) AS w
    CROSS JOIN LATERAL (
      SELECT coalesce(sum(a.amount + coalesce(s.amount, 0)), 0) AS paid
      FROM payment_applications a LEFT JOIN small_differences s USING (payment_application_id)
      WHERE a.document_id = d.document_id AND NOT EXISTS (
        SELECT FROM payment_unapplications x WHERE x.payment_application_id = a.payment_application_id)) AS p
    WHERE d.document = 'invoice' AND NOT ${VOID}`,
  'credit goes to a later invoice of the same partner and currency, an adjustment to the one it is against, unless placed': `
    SELECT n.document = 'credit_note' AND i.document = 'invoice' AND (n.partner_id, n.currency) = (i.partner_id, i.currency)
           AND CASE WHEN a.at_issue THEN n.document_id < i.document_id AND a.applied_on = i.issued_on
                    WHEN e.action = 'invoice.credit' THEN n.credits = i.document_id AND a.applied_on = n.issued_on
                    ELSE e.action IN ('credit.apply', 'payment.apply', 'payment.import')
                         AND a.applied_on >= greatest(n.issued_on, i.issued_on) END AS good
    FROM credit_applications a JOIN audit_events e USING (event_id)
    JOIN documents n ON n.document_id = a.credit_note_id JOIN documents i ON i.document_id = a.invoice_id`,
  'no invoice asks for money while the partner had older credit in that currency': `
    SELECT NOT EXISTS (
      SELECT FROM documents n JOIN document_balances b USING (document_id)
      WHERE n.document = 'credit_note' AND (n.partner_id, n.currency) = (i.partner_id, i.currency)
        AND n.document_id < i.document_id AND b.balance > 0) AS good
    FROM documents i JOIN (${UNCORRECTED}) AS u USING (partner_id, currency)
    WHERE i.document = 'invoice' AND i.gross > i.credit_applied`,
  'no credit was used between the hold of its credit note and the release': `
    SELECT NOT EXISTS (
      SELECT FROM holds h LEFT JOIN hold_releases r USING (hold_id)
      WHERE h.document_id = u.document_id AND u.log_no BETWEEN h.log_no AND coalesce(r.log_no, u.log_no)) AS good
    FROM (SELECT credit_note_id AS document_id, log_no FROM credit_applications
          UNION ALL SELECT document_id, log_no FROM credit_refunds) AS u`,
  'a credit note is used only when older ones are used up': `
    SELECT NOT EXISTS (
      SELECT FROM documents older JOIN document_balances b USING (document_id)
      WHERE older.document = 'credit_note' AND (older.partner_id, older.currency) = (n.partner_id, n.currency)
        AND older.document_id < n.document_id AND b.balance > 0) AS good
    FROM documents n JOIN (${UNCORRECTED}) AS u USING (partner_id, currency)
    WHERE n.document = 'credit_note' AND EXISTS (SELECT FROM credit_applications WHERE credit_note_id = n.document_id)`,
  'the journal of credit: notes less applications and refunds are what is open, by partner and currency': `
    SELECT sum(notes) - sum(applied) = sum(open) AS good
    FROM (
      SELECT d.partner_id, d.currency, CASE WHEN ${VOID} THEN 0 ELSE d.gross END AS notes, 0 AS applied,
             b.balance AS open
      FROM documents d JOIN document_balances b USING (document_id) WHERE d.document = 'credit_note'
      UNION ALL
      SELECT i.partner_id, i.currency, 0, a.amount, 0
      FROM (${USED}) AS a JOIN documents i ON i.document_id = a.invoice_id
      UNION ALL
      SELECT partner_id, currency, 0, amount, 0 FROM live_credit_refunds
    ) AS movements
    GROUP BY partner_id, currency`,
  'every document was to be sent once by its issue, and while it waits somebody is to look at it': `
    SELECT (SELECT count(*) FROM document_emails s WHERE s.document_id = d.document_id AND s.asked_for <> 'resend') = 1
           AND (NOT EXISTS (SELECT FROM document_emails s WHERE s.document_id = d.document_id AND s.status = 'queued')
                OR (SELECT count(*) FROM emails s
                     WHERE s.document_id = d.document_id AND s.status = 'queued' AND s.due_at < 'infinity') = 1) AS good
    FROM documents d`,
  'a closed month counted its rows and its late ones': `
    SELECT (m.entries, m.late_entries) = (r.entries, r.late_entries) AS good
    FROM closed_months m
    CROSS JOIN LATERAL (
      SELECT count(*) AS entries, count(*) FILTER (WHERE r.month < m.month) AS late_entries
      FROM (${BILLED}) AS r WHERE r.billed_in = m.month) AS r`,
};

/** What only corrections can break. */
const OF_CORRECTIONS: Readonly<Record<string, string>> = {
  'a replacement is later than what it replaces, in number within a year and in date': `
    SELECT d.document_id > r.document_id AND d.issued_on >= v.voided_on AND v.voided_on >= r.issued_on
           AND (d.series <> r.series OR d.sequence > r.sequence) AS good
    FROM documents d JOIN documents r ON r.document_id = d.replaces LEFT JOIN voids v ON v.document_id = r.document_id`,
  'a void document owes nothing, uses no credit and lends none': `
    SELECT b.status = 'void' AND b.balance = 0
           AND NOT EXISTS (SELECT FROM (${USED}) AS u WHERE d.document_id IN (u.invoice_id, u.credit_note_id))
           AND NOT EXISTS (SELECT FROM live_write_offs w WHERE w.document_id = d.document_id)
           AND NOT EXISTS (SELECT FROM document_emails s WHERE s.document_id = d.document_id AND s.status = 'held') AS good
    FROM documents d JOIN document_balances b USING (document_id) WHERE ${VOID}`,
  'credit is given back by the void of the invoice that used it, on its day': `
    SELECT v.document_id IS NOT NULL AND r.document_id = a.invoice_id AND r.released_on = v.voided_on AS good
    FROM credit_releases r JOIN credit_applications a USING (credit_application_id)
    LEFT JOIN voids v ON v.document_id = a.invoice_id WHERE r.document_id IS NOT NULL`,
  'an adjustment is against an invoice of its partner, month and currency, and bills no rows': `
    SELECT d.document = 'credit_note' AND i.document = 'invoice' AND (d.entries, d.enrollments) = (0, 0)
           AND (d.partner_id, d.month, d.currency) = (i.partner_id, i.month, i.currency) AND d.issued_on >= i.issued_on
           AND NOT EXISTS (SELECT FROM document_lines l WHERE l.document_id = d.document_id) AS good
    FROM documents d LEFT JOIN documents i ON i.document_id = d.credits WHERE d.purpose = 'adjustment'`,
  'credits against an invoice and all that it replaced stay within it': `
    SELECT d.gross >= (
      WITH RECURSIVE chain AS (
        SELECT d.document_id AS id, d.replaces UNION ALL
        SELECT e.document_id, e.replaces FROM documents e JOIN chain c ON e.document_id = c.replaces)
      SELECT coalesce(sum((SELECT sum(n.gross) FROM documents n JOIN document_balances b USING (document_id)
                           WHERE n.credits = c.id AND b.status <> 'void')), 0) FROM chain c) AS good
    FROM documents d WHERE d.document = 'invoice'`,
};

const ALL = Object.entries({ ...CHECKS, ...OF_CORRECTIONS })
  .map(
    ([name, sql]) =>
      `SELECT '${name}' AS name, count(*)::int AS looked, (count(*) FILTER (WHERE good IS NOT TRUE))::int AS broken FROM (${sql}) AS c`,
  )
  .join('\nUNION ALL\n');

export interface Inspection {
  /** How many things each check looked at: one that never looks at anything proves nothing. */
  readonly looked: Readonly<Record<string, number>>;
  /** The rules that are broken, with how often. */
  readonly broken: Readonly<Record<string, number>>;
}

/** The checks that look at nothing while nothing is corrected. */
export const CHECKS_OF_CORRECTIONS: readonly string[] = Object.keys(OF_CORRECTIONS);

export async function inspect(world: World): Promise<Inspection> {
  const rows = await world.prepared<{ name: string; looked: number; broken: number }>('inspection', ALL);
  return {
    looked: Object.fromEntries(rows.map(({ name, looked }) => [name, looked])),
    broken: Object.fromEntries(rows.filter(({ broken }) => broken > 0).map(({ name, broken }) => [name, broken])),
  };
}
