import { querying } from '#database/transaction';
import { textOf } from '#payments/bank-import/bank-lines.sql';
import { BankLineState } from '#payments/enums';

export type BankAccountRow = Readonly<{
  /** Empty for money that was recorded without an account. */
  account: string;
  currency: string;
  books: string;
  /** The first stated opening balance, without the postings before it. Null if no statement gives balances. */
  opening: string | null;
  opened_on: string | null;
  reported_to: string | null;
  /** The stated closing balance, plus the lines since then. Null if no statement gives balances. */
  stated: string | null;
  lines: string;
}>;

export type BankItemRow = Readonly<{
  account: string;
  currency: string;
  dated_on: string;
  /** The amount on the bank's side, less the amount in the books. */
  amount: string;
  bank_line_id: number | null;
  /** Whether the bank issued the line's statement again without the line. */
  is_withdrawn: boolean;
  state: BankLineState | null;
  payment_id: number | null;
  document: string | null;
  text: string | null;
}>;

/**
 * The postings to our bank accounts up to a day, each with the bank line that shows it, if known. A duplicate that was
 * reversed is counted with the payment that it duplicates, and a mistake with its own payment. What was booked before
 * the first opening balance is part of it.
 */
const BOOKED = `statements AS (
  SELECT s.*, coalesce((
           SELECT min(l.bank_booked_on) FROM bank_statement_lines x JOIN bank_lines l USING (bank_line_id)
           WHERE x.bank_statement_id = s.bank_statement_id), s.closed_on) AS first_on,
         EXISTS (
           SELECT FROM bank_statements n
           WHERE (n.account, n.currency, n.closed_on, n.opening) = (s.account, s.currency, s.closed_on, s.opening)
             AND n.bank_file_id > s.bank_file_id AND n.closing <> s.closing) AS is_replaced,
         array_agg(opening) OVER day AS openings, array_agg(closing) OVER day AS closings
  FROM bank_statements s
  WHERE s.opening IS NOT NULL AND s.closing IS NOT NULL AND s.closed_on <= :day::date
    AND (:account::text IS NULL OR s.account = :account)
  WINDOW day AS (PARTITION BY account, currency, closed_on)
), firsts AS (
  SELECT DISTINCT ON (account, currency) account, currency, opening, first_on FROM statements
  -- A statement follows the statement of its day that closes with its opening balance.
  ORDER BY account, currency, first_on, opening = ANY (closings), bank_statement_id
), withdrawn AS (
  -- The lines that the bank left out when it issued their statement again.
  SELECT x.bank_line_id FROM bank_statement_lines x JOIN statements s USING (bank_statement_id)
  GROUP BY x.bank_line_id HAVING bool_and(s.is_replaced)
), line_of (log_no, bank_line_id) AS (
  SELECT p.log_no, coalesce(min(s.bank_line_id) FILTER (WHERE w.bank_line_id IS NULL), min(s.bank_line_id))
  FROM payments p JOIN payment_sources s USING (payment_id) LEFT JOIN withdrawn w USING (bank_line_id)
  WHERE s.bank_line_id IS NOT NULL GROUP BY p.log_no
  UNION ALL
  SELECT p.log_no, min(s.bank_line_id) FROM placed_payments p JOIN payment_sources s USING (payment_id)
  GROUP BY p.log_no
  UNION ALL SELECT log_no, bank_line_id FROM payouts
  UNION ALL SELECT log_no, bank_line_id FROM bank_bookings
  UNION ALL SELECT log_no, bank_line_id FROM refund_matches
  UNION ALL SELECT log_no, bank_line_id FROM payment_reversals WHERE bank_line_id IS NOT NULL
  UNION ALL SELECT log_no, bank_line_id FROM credit_refund_returns WHERE bank_line_id IS NOT NULL
  UNION ALL SELECT f.log_no, m.bank_line_id FROM credit_refunds f JOIN refund_matches m USING (credit_refund_id)
  UNION ALL
  SELECT r.log_no, m.bank_line_id FROM payment_reversals r JOIN refund_matches m USING (payment_reversal_id)
), posted AS (
  SELECT a.account, j.currency, a.amount, j.dated_on, j.document, j.reference, w.bank_line_id AS withdrawn_id,
         CASE WHEN w.bank_line_id IS NULL THEN o.bank_line_id END AS bank_line_id,
         CASE WHEN o.bank_line_id IS NOT NULL AND w.bank_line_id IS NULL THEN NULL
              WHEN j.fact = 'payment_received' THEN 'payment ' || j.log_no
              WHEN r.payment_id IS NOT NULL THEN 'payment ' || coalesce(r.duplicate_of, r.payment_id)
              WHEN w.bank_line_id IS NOT NULL THEN 'line ' || w.bank_line_id
              WHEN j.fact LIKE 'credit_refund%' THEN 'refund ' || j.log_no
              ELSE j.fact || ' ' || j.log_no END AS item,
         CASE WHEN j.fact = 'payment_received' THEN j.log_no
              ELSE coalesce(r.duplicate_of, r.payment_id) END AS payment_id
  FROM journal_entries j
  CROSS JOIN LATERAL (VALUES (j.debit, j.debit_detail, j.amount), (j.credit, j.credit_detail, -j.amount))
    AS side (control, detail, amount)
  CROSS JOIN LATERAL (SELECT coalesce(side.detail, '') AS account, side.amount) AS a
  LEFT JOIN line_of o ON o.log_no = j.recorded LEFT JOIN withdrawn w ON w.bank_line_id = o.bank_line_id
  LEFT JOIN payment_reversals r
    ON j.fact IN ('payment_reversed', 'payment_reinstated') AND r.payment_reversal_id = j.log_no
  WHERE side.control = 'assets:bank' AND j.entry_on <= :day::date
    AND (:account::text IS NULL OR a.account = :account)
), stated_lines AS (
  SELECT l.bank_line_id, l.account, l.currency, signed_amount(l) AS amount, l.bank_booked_on,
         l.bank_line_id IN (SELECT bank_line_id FROM bank_statement_lines JOIN statements USING (bank_statement_id))
           AS in_balance
  FROM bank_lines l LEFT JOIN firsts f USING (account, currency)
  WHERE l.bank_booked_on <= :day::date AND (:account::text IS NULL OR l.account = :account)
    AND (f.first_on IS NULL OR l.bank_booked_on >= f.first_on)
    AND l.bank_line_id NOT IN (SELECT bank_line_id FROM withdrawn)
), booked AS (
  SELECT p.*, coalesce(coalesce(l.bank_booked_on, p.dated_on) < f.first_on AND NOT is_withdrawn, false) AS in_opening
  FROM (SELECT account, currency, bank_line_id, item, sum(amount) AS amount, min(dated_on) AS dated_on,
               max(withdrawn_id) IS NOT NULL AS is_withdrawn, max(payment_id) AS payment_id, max(document) AS document,
               max(reference) AS reference
        FROM posted GROUP BY account, currency, bank_line_id, item) AS p
  LEFT JOIN bank_lines l USING (bank_line_id) LEFT JOIN firsts f ON (f.account, f.currency) = (p.account, p.currency)
)`;

type Asked = Readonly<{
  day: string;
  account: string | null;
}>;

export const readBankAccounts = querying<BankAccountRow, Asked>(`
  WITH ${BOOKED}, lasts AS (
    SELECT DISTINCT ON (account, currency) account, currency, closing, closed_on FROM statements
    WHERE NOT is_replaced
    ORDER BY account, currency, closed_on DESC, closing = ANY (openings), bank_statement_id DESC
  ), accounts AS (
    SELECT account, currency FROM booked UNION SELECT account, currency FROM bank_lines
    WHERE bank_booked_on <= :day::date AND (:account::text IS NULL OR account = :account)
    UNION SELECT account, currency FROM statements
  )
  SELECT a.account, a.currency,
         coalesce((
           SELECT sum(p.amount) FROM booked p
           WHERE (p.account, p.currency) = (a.account, a.currency)), 0)::text AS books,
         (f.opening - coalesce((
           SELECT sum(p.amount) FROM booked p
           WHERE (p.account, p.currency) = (a.account, a.currency) AND p.in_opening), 0))::text AS opening,
         f.first_on AS opened_on,
         greatest(t.closed_on, (
           SELECT max(l.bank_booked_on) FROM stated_lines l WHERE (l.account, l.currency) = (a.account, a.currency)))
           AS reported_to,
         (t.closing + coalesce((
           SELECT sum(l.amount) FROM stated_lines l
           WHERE (l.account, l.currency) = (a.account, a.currency) AND l.bank_booked_on > t.closed_on
             AND NOT l.in_balance), 0))::text
           AS stated,
         coalesce((
           SELECT sum(l.amount) FROM stated_lines l
           WHERE (l.account, l.currency) = (a.account, a.currency)), 0)::text AS lines
  FROM accounts a LEFT JOIN firsts f USING (account, currency) LEFT JOIN lasts t USING (account, currency)
  ORDER BY a.account = '', a.account COLLATE "C", a.currency`);

/** The bank lines that the books do not have in that amount, and the postings that no bank line shows. */
export const readBankItems = querying<BankItemRow, Asked>(`
  WITH ${BOOKED}
  SELECT account, currency, coalesce(l.bank_booked_on, b.dated_on) AS dated_on,
         (coalesce(l.amount, 0) - coalesce(b.amount, 0))::text AS amount, bank_line_id,
         coalesce(b.is_withdrawn, false) AS is_withdrawn, s.state,
         coalesce(b.payment_id, s.payment_id) AS payment_id, b.document,
         CASE WHEN bank_line_id IS NULL THEN personal(b.reference) ELSE (
           SELECT ${textOf('x')} FROM bank_lines x WHERE x.bank_line_id = s.bank_line_id) END AS text
  FROM stated_lines l FULL JOIN (SELECT * FROM booked WHERE NOT in_opening) AS b
    USING (account, currency, bank_line_id)
  LEFT JOIN bank_line_states s USING (bank_line_id)
  WHERE coalesce(l.amount, 0) <> coalesce(b.amount, 0)
  ORDER BY account COLLATE "C", currency, dated_on, bank_line_id, b.item`);
