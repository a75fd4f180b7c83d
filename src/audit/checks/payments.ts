/**
 * Checks of payments, bank files, payouts, processor events and disputes. `:month` is the month of the journal entry.
 */
import { inMonth } from './query.ts';

const IN_SCOPE = (entryOn: string) => inMonth(`to_char(${entryOn}, 'YYYY-MM')`);

/**
 * A payment is applied and reversed for at most its amount, to documents in its currency. A part of a payment that paid
 * another partner's document was assigned to that partner; the rest belongs to the payer.
 */
export const PAYMENTS_WITHIN_THEIR_AMOUNTS = `inspected AS (
  SELECT p.payment_id, p.currency, p.amount,
         coalesce((SELECT sum(a.amount) FROM live_payment_applications a WHERE a.payment_id = p.payment_id), 0)
           AS applied,
         coalesce((SELECT sum(r.amount) FROM live_payment_reversals r WHERE r.payment_id = p.payment_id), 0)
           AS reversed,
         (SELECT count(*) FROM live_payment_applications a JOIN documents d USING (document_id)
          WHERE a.payment_id = p.payment_id
            AND (d.currency, d.partner_id, a.currency) IS DISTINCT FROM (p.currency, a.partner_id, p.currency))
         + (SELECT count(*) FROM payment_cash c
            WHERE c.payment_id = p.payment_id AND c.amount <> 0 AND c.partner_id IS DISTINCT FROM b.partner_id)
           AS mismatches
  FROM payments p JOIN payment_balances b USING (payment_id)
  WHERE ${IN_SCOPE('p.entry_on')}
), differences AS (
  SELECT format('payment %s', payment_id) AS subject,
         format('of %s %s, %s is applied and %s reversed; cash of another partner or applied in another currency: %s',
                amount, currency, applied, reversed, mismatches) AS detail
  FROM inspected WHERE amount <= 0 OR applied + reversed > amount OR mismatches > 0
)`;

/**
 * Payments go to live invoices and refunds to live credit notes, never for more than is due. The amount due is the
 * document's amount less its write-offs and less the credit that is still applied to it.
 */
export const DOCUMENTS_NOT_OVERPAID = `settled AS (
  SELECT document_id, amount, 'invoice' AS kind FROM live_payment_applications
  UNION ALL
  SELECT document_id, amount, 'invoice' FROM live_small_differences
  UNION ALL
  SELECT document_id, amount, 'credit_note' FROM live_credit_refunds
), inspected AS (
  SELECT d.number, d.document, o.status, sum(s.amount) AS settled,
         d.gross
         - (SELECT coalesce(sum(a.amount), 0) FROM live_credit_applications a
            WHERE d.document_id IN (a.invoice_id, a.credit_note_id))
         - (SELECT coalesce(sum(w.amount), 0) FROM live_write_offs w WHERE w.document_id = d.document_id) AS due,
         count(*) FILTER (WHERE s.kind <> d.document) AS mismatched
  FROM settled s JOIN documents d USING (document_id) JOIN document_balances o USING (document_id)
  WHERE ${inMonth('d.month')}
  GROUP BY d.document_id, o.status
), differences AS (
  SELECT number AS subject, format('is %s, %s; %s is due and %s was paid',
                CASE document WHEN 'invoice' THEN 'an invoice' WHEN 'credit_note' THEN 'a credit note'
                              ELSE 'a ' || document END, status, due, settled) AS detail
  FROM inspected WHERE settled > due OR mismatched > 0 OR status = 'void'
)`;

/** Every bank line has one outcome, and the payment, payout or return has the amount of its line. */
export const BANK_LINES_ACCOUNTED_FOR = `inspected AS (
  SELECT l.bank_line_id, l.account, l.bank_booked_on, l.direction, l.amount, l.currency, o.outcome,
         CASE o.outcome
           WHEN 'payment' THEN EXISTS (
             SELECT FROM payment_sources s JOIN payments p USING (payment_id)
             WHERE s.bank_line_id = l.bank_line_id AND s.payment_id = o.payment_id AND l.direction = 'credit'
               AND (p.amount, p.currency) = (l.amount, l.currency))
           WHEN 'payout' THEN EXISTS (
             SELECT FROM payouts p WHERE p.payout_id = o.payout_id AND p.bank_line_id = l.bank_line_id
               AND l.direction = 'credit' AND (p.amount, p.currency) = (l.amount, l.currency))
           WHEN 'return' THEN EXISTS (
             SELECT FROM payment_reversals r WHERE r.payment_reversal_id = o.payment_reversal_id
               AND r.bank_line_id = l.bank_line_id AND l.direction = 'debit'
               AND (r.amount, r.currency) = (l.amount, l.currency))
           WHEN 'refund' THEN EXISTS (SELECT FROM refund_matches m WHERE m.bank_line_id = l.bank_line_id)
           WHEN 'ignored' THEN o.reason <> ''
           ELSE false END AS good
  FROM bank_lines l LEFT JOIN bank_line_outcomes o USING (bank_line_id)
  WHERE ${IN_SCOPE('l.bank_booked_on')}
), differences AS (
  SELECT format('bank line %s of %s', bank_line_id, account) AS subject,
         format('%s of %s %s on %s is %s', direction, amount, currency, bank_booked_on,
                coalesce('recorded as a ' || outcome || ' that does not match', 'not accounted for')) AS detail
  FROM inspected WHERE NOT good
)`;

/**
 * A bank debit pays one refund of the same amount. The same debit may occur in two files. Two equal debits count as
 * payments of two refunds only if their references differ.
 */
export const REFUND_MATCHES = `equals AS (
  SELECT bank_line_id, equal_line_id
  FROM equal_bank_lines(ARRAY(SELECT bank_line_id FROM live_refund_matches))
), inspected AS (
  SELECT m.refund_match_id, m.bank_line_id, m.account,
         (SELECT count(*) FROM live_refund_matches o WHERE o.bank_line_id = m.bank_line_id) AS refunds,
         (SELECT string_agg('line ' || e.equal_line_id, ', ' ORDER BY e.equal_line_id)
          FROM equals e JOIN live_refund_matches o ON o.bank_line_id = e.equal_line_id
          WHERE e.bank_line_id = m.bank_line_id
            AND NOT coalesce(m.evidence->'apart_from' @> to_jsonb(e.equal_line_id), false)
            AND NOT coalesce(o.evidence->'apart_from' @> to_jsonb(m.bank_line_id), false)) AS equal
  FROM live_refund_matches m
), differences AS (
  SELECT format('bank line %s of %s', bank_line_id, account) AS subject,
         CASE WHEN refunds > 1 THEN format('pays %s refunds', refunds)
              ELSE format('pays a refund, as does %s, which may be the same line', equal) END AS detail
  FROM inspected WHERE refunds > 1 OR equal IS NOT NULL
)`;

/**
 * All lines of a bank statement are recorded. The lines add up to the statement's totals, and the totals agree with its
 * balances.
 */
export const BANK_FILES_ADD_UP = `found AS (
  SELECT s.bank_statement_id, count(l.bank_line_id) AS lines,
         coalesce(sum(l.amount) FILTER (WHERE l.direction = 'credit'), 0) AS credits,
         coalesce(sum(l.amount) FILTER (WHERE l.direction = 'debit'), 0) AS debits
  FROM bank_statements s LEFT JOIN bank_statement_lines p USING (bank_statement_id)
  LEFT JOIN bank_lines l ON l.bank_line_id = p.bank_line_id
  GROUP BY s.bank_statement_id
), inspected AS (
  SELECT f.name, s.*, n.lines AS found_lines, n.credits AS found_credits, n.debits AS found_debits
  FROM bank_files f LEFT JOIN bank_statements s USING (bank_file_id) LEFT JOIN found n USING (bank_statement_id)
), differences AS (
  SELECT format('bank statement %s of %s in %s', position, account, name) AS subject,
         format('states %s lines, credits %s, debits %s, from %s to %s; it has %s lines, credits %s, debits %s', lines,
                credits, debits, opening, closing, found_lines, found_credits, found_debits) AS detail
  FROM inspected
  WHERE (lines, credits, debits) IS DISTINCT FROM (found_lines, found_credits, found_debits)
     OR opening + credits - debits <> closing
)`;

/** Each payment has the source record that created it, and no two payments share a processor reference or bank line. */
export const PAYMENTS_RECORDED_ONCE = `links AS MATERIALIZED (
  SELECT p.payment_id, p.currency, t.text AS reference
  FROM payments p JOIN personal_texts t ON t.commitment = p.reference WHERE p.method = 'link'
), same AS (
  SELECT p.payment_id, string_agg(format('payment %s', o.payment_id), ', ') AS duplicates
  FROM links p JOIN links o USING (reference, currency) JOIN payment_balances b ON b.payment_id = o.payment_id
  WHERE o.payment_id < p.payment_id AND b.status <> 'reversed'
    -- A balance transaction for several quotes creates one payment for each quote that was billed.
    AND NOT EXISTS (SELECT FROM share_payments s WHERE s.payment_id = p.payment_id)
  GROUP BY p.payment_id
), inspected AS (
  SELECT p.payment_id, p.identity,
         (SELECT count(*) FROM payment_sources s WHERE s.payment_id = p.payment_id AND s.identity = p.identity) AS own,
         d.duplicates,
         (SELECT count(*) FROM payment_sources s JOIN bank_lines l USING (bank_line_id)
          WHERE s.payment_id = p.payment_id AND (l.currency <> p.currency OR l.amount <> p.amount)) AS mismatched
  FROM payments p LEFT JOIN same d USING (payment_id) WHERE ${IN_SCOPE('p.entry_on')}
), differences AS (
  SELECT format('payment %s', payment_id) AS subject,
         format('%s source records as %s; same reference as %s; bank lines of another amount: %s', own, identity,
                coalesce(duplicates, 'no payment'), mismatched) AS detail
  FROM inspected WHERE own <> 1 OR duplicates IS NOT NULL OR mismatched > 0
)`;

/** A duplicate has the amount and payer of its original, and every chain of duplicates ends in a live payment. */
export const DUPLICATES_MATCH_PAYMENTS = `duplicate AS (
  SELECT r.payment_id, r.duplicate_of
  FROM live_payment_reversals r
  WHERE r.kind = 'duplicate' AND ${IN_SCOPE('r.entry_on')}
), chains AS (
  WITH RECURSIVE chain AS (
    SELECT payment_id, duplicate_of AS leads_to FROM duplicate
    UNION
    SELECT c.payment_id, d.duplicate_of FROM chain c JOIN duplicate d ON d.payment_id = c.leads_to
  )
  SELECT * FROM chain
), inspected AS (
  SELECT d.payment_id, d.duplicate_of, p.amount, p.currency, o.amount AS other_amount, o.currency AS other_currency,
         p.partner_id <> o.partner_id AS mismatches,
         EXISTS (SELECT FROM chains c WHERE c.payment_id = d.payment_id AND c.leads_to = d.payment_id) AS in_a_circle
  FROM duplicate d JOIN payments p ON p.payment_id = d.payment_id JOIN payments o ON o.payment_id = d.duplicate_of
), differences AS (
  SELECT format('payment %s', payment_id) AS subject,
         format('of %s %s is reversed as a duplicate of payment %s of %s %s%s%s', amount, currency, duplicate_of,
                other_amount, other_currency, CASE WHEN mismatches THEN ', which has another payer' END,
                CASE WHEN in_a_circle THEN ', which is reversed as a duplicate of it' END) AS detail
  FROM inspected
  WHERE (amount, currency) <> (other_amount, other_currency) OR coalesce(mismatches, false) OR in_a_circle
)`;

/** A payout is the sum of its payments less fees, and the processor received its payments before the payout. */
export const PAYOUTS_ADD_UP = `inspected AS (
  SELECT o.payout_id, o.currency, o.amount, s.gross, s.fees,
         CASE WHEN EXISTS (SELECT FROM account_payouts a WHERE a.payout_id = o.payout_id) THEN s.gross ELSE 0 END
           + (SELECT coalesce(sum(p.amount), 0) FROM payout_payments p WHERE p.payout_id = o.payout_id) AS found,
         (SELECT count(*) FROM payout_payments p JOIN payments y USING (payment_id)
          WHERE p.payout_id = o.payout_id
            AND (y.method <> 'link' OR y.currency <> o.currency OR p.amount > y.amount
              OR y.received_on > o.received_on)) AS mismatched
  FROM payouts o LEFT JOIN payout_settlements s USING (payout_id)
  WHERE ${IN_SCOPE('o.entry_on')}
), differences AS (
  SELECT format('payout %s', payout_id) AS subject,
         format('%s %s plus fees %s is stated as %s; its payments are %s, %s of them invalid', amount, currency, fees,
           gross, found, mismatched) AS detail
  FROM inspected WHERE amount + coalesce(fees, 0) <> coalesce(gross, amount) OR found <> coalesce(gross, 0)
    OR mismatched > 0
)`;

/**
 * A bank receipt from a connected account is a payout of that account with the same amount. The fees of the payout are
 * the fees of its contents. The contents of a payout add up to its amount and belong to its account.
 */
export const ACCOUNT_PAYOUTS_ADD_UP = `settled AS (
  SELECT a.payout_id, o.currency, o.amount, a.currency AS stated_currency, s.fees, m.balance_transaction_id, m.type,
    -m.net AS reported,
         (SELECT greatest(0, coalesce(-sum(p.net) FILTER (WHERE p.kind = 'other' AND p.type NOT LIKE 'payout%'), 0))
          FROM payout_contents c JOIN balance_transactions p USING (balance_transaction_id)
          WHERE c.payout_transaction_id = a.balance_transaction_id AND c.event_id <= s.event_id) AS kept
  FROM account_payouts a JOIN payouts o USING (payout_id) JOIN payout_settlements s USING (payout_id)
  LEFT JOIN balance_transactions m ON m.balance_transaction_id = a.balance_transaction_id
  WHERE ${IN_SCOPE('o.entry_on')}
), contents AS (
  SELECT c.payout_transaction_id, p.id, p.account, p.type, p.net, sum(m.net) AS paid_out,
         count(*) FILTER (WHERE (m.account, m.currency) <> (p.account, p.currency)) AS mismatched
  FROM payout_contents c JOIN balance_transactions m USING (balance_transaction_id)
  JOIN balance_transactions p ON p.balance_transaction_id = c.payout_transaction_id
  WHERE ${inMonth("to_char(p.occurred_at, 'YYYY-MM')")}
  GROUP BY c.payout_transaction_id, p.id, p.account, p.type, p.net
), inspected AS (
  SELECT payout_id FROM settled UNION ALL SELECT payout_transaction_id FROM contents
), differences AS (
  SELECT format('payout %s', payout_id) AS subject,
         format('of %s %s, fees %s; the account paid out %s with fees of %s', amount, currency, fees,
                coalesce(reported::text, 'an unreported amount'), kept) AS detail
  FROM settled WHERE currency <> stated_currency OR fees <> kept
    OR (balance_transaction_id IS NOT NULL AND (type <> 'payout' OR reported <> amount))
  UNION ALL
  SELECT format('payout %s of %s', id, account),
    format('a %s of %s contains %s, %s of them on another account or currency', type, net, paid_out, mismatched)
  FROM contents WHERE type <> 'payout' OR paid_out <> -net OR mismatched > 0
)`;

/**
 * A payout contains each of its payments, less the payment's reversals. Only reversals that are dated up to the
 * payout's day and were known when the payout was settled are deducted.
 */
export const PAYOUTS_COVER_REMAINING_AMOUNTS = `inspected AS (
  SELECT p.payment_id, p.payout_id, o.currency, p.amount,
         y.amount - coalesce((
           SELECT sum(r.amount) FROM payment_reversals r LEFT JOIN payment_reinstatements i USING (payment_reversal_id)
           WHERE r.payment_id = y.payment_id AND r.event_id < s.event_id
             AND (r.kind IN ('mistake', 'duplicate')
                  OR r.reversed_on <= o.received_on
                     AND NOT coalesce(i.event_id < s.event_id AND i.reinstated_on <= o.received_on, false))), 0)
           AS remaining
  FROM payout_payments p JOIN payout_settlements s USING (payout_id) JOIN payouts o USING (payout_id)
  JOIN payments y USING (payment_id)
  WHERE ${IN_SCOPE('s.entry_on')}
), differences AS (
  SELECT format('payment %s', payment_id) AS subject,
         format('payout %s contains %s %s of it; %s was not reversed', payout_id, amount, currency, remaining) AS detail
  FROM inspected WHERE amount <> remaining
)`;

/**
 * At the end of each day, by entry date, no partner had used more of a payment than it had, and no document had been
 * paid more than was due. Reports as of a past day rely on this check.
 */
export const DAILY_BALANCES_NOT_NEGATIVE = `changes AS (
  SELECT 'payment ' || payment_id AS subject, partner_id, entry_on, amount FROM payments
  UNION ALL
  SELECT 'payment ' || g.payment_id, side.partner_id, g.entry_on, side.amount FROM payment_assignments g
  CROSS JOIN LATERAL (VALUES (g.from_partner_id, -g.amount), (g.partner_id, g.amount)) AS side (partner_id, amount)
  UNION ALL
  SELECT 'payment ' || payment_id, partner_id, entry_on, -amount FROM payment_applications
  UNION ALL
  SELECT 'payment ' || a.payment_id, a.partner_id, u.entry_on, a.amount
  FROM payment_unapplications u JOIN payment_applications a USING (payment_application_id)
  UNION ALL
  SELECT 'payment ' || payment_id, partner_id, entry_on, -amount FROM payment_reversals
  UNION ALL
  SELECT 'payment ' || r.payment_id, i.partner_id, i.entry_on, r.amount
  FROM payment_reinstatements i JOIN payment_reversals r USING (payment_reversal_id)
  UNION ALL
  SELECT d.number, d.partner_id, c.entry_on, c.amount FROM balance_changes c JOIN documents d USING (document_id)
  UNION ALL
  SELECT d.number, d.partner_id, c.undone_on, -c.amount FROM balance_changes c JOIN documents d USING (document_id)
  WHERE c.undone AND c.changes <> 'amount_due'
), days AS (
  SELECT subject, partner_id, entry_on, sum(amount) AS change FROM changes GROUP BY subject, partner_id, entry_on
), inspected AS (
  SELECT subject, partner_id, entry_on, balance FROM (
    SELECT *, sum(change) OVER (PARTITION BY subject, partner_id ORDER BY entry_on) AS balance FROM days) AS running
  WHERE ${IN_SCOPE('entry_on')}
), differences AS (
  SELECT subject, format('on %s its balance was %s%s', entry_on, balance,
                         ' for ' || partner_id) AS detail
  FROM inspected WHERE balance < 0
)`;

/**
 * Processor events belong to this environment, and a payment named by their outcome has a processor source record. A
 * payload matches the hash taken when it was received. A payload is missing if and only if its erasure is recorded. An
 * audit event of erasures states how many payloads were erased.
 */
export const PROCESSOR_EVENTS_RECORDED = `inspected AS (
  SELECT e.id, e.type, e.livemode, o.outcome, o.payment_id, i.environment,
         CASE WHEN e.payload IS NULL AND x.processor_event_id IS NULL
              THEN 'its data is missing, and no erasure is recorded'
              WHEN e.payload IS NOT NULL AND x.processor_event_id IS NOT NULL THEN 'its data is there, but was erased'
              WHEN payload_hash(e.payload) <> e.payload_sha256 THEN 'its data is not what was received' END AS damage,
         o.payment_id IS NULL OR EXISTS (SELECT FROM payment_sources s WHERE s.payment_id = o.payment_id
           AND s.source = 'processor') AS seen
  FROM processor_events e CROSS JOIN installation i LEFT JOIN processor_event_outcomes o USING (processor_event_id)
  LEFT JOIN processor_event_erasures x USING (processor_event_id)
), differences AS (
  SELECT format('event %s', id) AS subject,
         format('%s, %s, in %s, payment %s', type, coalesce(outcome, 'waiting'),
                CASE WHEN livemode THEN 'live mode' ELSE 'test mode' END, coalesce(payment_id::text, 'none')) AS detail
  FROM inspected
  WHERE livemode <> (environment = 'production') OR NOT seen OR (outcome = 'effect' AND payment_id IS NULL)
  UNION ALL
  SELECT format('event %s', id), damage FROM inspected WHERE damage IS NOT NULL
  UNION ALL
  SELECT format('erasures of event %s', a.event_id),
         format('%s recorded, and the event says %s', n.recorded, coalesce(a.details->>'erased', 'nothing'))
  FROM audit_events a CROSS JOIN LATERAL (
    SELECT count(*) AS recorded FROM processor_event_erasures x WHERE x.event_id = a.event_id) AS n
  WHERE a.action = 'processor_event.erase' AND n.recorded::text IS DISTINCT FROM a.details->>'erased'
)`;

/** The reversal of a won dispute was reinstated; that of an open or lost dispute was not. */
export const DISPUTES_MATCH_OUTCOMES = `inspected AS (
  SELECT d.identity, d.amount, o.outcome, r.amount AS taken, i.payment_reversal_id IS NOT NULL AS given_back,
    p.amount AS paid
  FROM disputes d JOIN payments p USING (payment_id) LEFT JOIN last_dispute_outcomes o USING (dispute_id)
  LEFT JOIN payment_reversals r ON r.identity = d.identity
  LEFT JOIN payment_reinstatements i ON i.payment_reversal_id = r.payment_reversal_id
), differences AS (
  SELECT format('dispute %s', identity) AS subject,
         format('over %s is %s; %s was reversed, %s', amount, coalesce(outcome, 'open'), coalesce(taken, 0),
                CASE WHEN given_back THEN 'and reinstated' ELSE 'and not reinstated' END) AS detail
  FROM inspected
  WHERE taken > amount OR (taken IS NOT NULL AND given_back <> (coalesce(outcome, 'open') IN ('won', 'closed')))
)`;
