/**
 * SQL of the console's ledger (console-ledger.ts). What happens to a document follows from its id: of a hundred, 88 are paid
 * whole, two in part, two without a reference, one by a payer whom nobody knows; such cash is paid back after two
 * months. The others stay open until they are written off after 18 months. Triggers and constraints judge all of it as they judge the program's own statements.
 */

const EVENT = `audit_events (occurred_at, action, subject, details, os_user, host, via)`;

/** How the e-mails of a closed month went: all were sent, except some of the latest months. The month is a literal. */
export const deliveries = (month: string): string[] => [
  `INSERT INTO payment_links (document_id, provider, token, url, created_at)
   SELECT document_id, 'page', token, 'http://127.0.0.1:8080/pay/' || token, issued_on + interval '13 hours'
   FROM (SELECT document_id, issued_on, md5(number) || md5(partner_id) AS token FROM documents
         WHERE document = 'invoice' AND month = '${month}') AS made`,
  `UPDATE emails e
   SET status = CASE WHEN failed THEN 'failed' ELSE 'sent' END, attempts = 1, attempted_at = at,
       sent_at = CASE WHEN NOT failed THEN at END, reason = CASE WHEN failed THEN '550 no such user' ELSE '250 queued' END,
       recipients = ARRAY['ap@' || d.partner_id || '.example'],
       message_sha256 = encode(sha256(message_id::bytea), 'hex')
   FROM (SELECT document_id, d.partner_id, issued_on + interval '13 hours' AS at,
                document_id % 100 = 97 AND d.month >= '2026-08' AS failed
         FROM documents d WHERE d.month = '${month}') AS d
   WHERE e.document_id = d.document_id AND e.status = 'queued'`,
  `INSERT INTO email_attempts (email_id, attempt, started_at, ended_at, outcome, reply, kind, message_id, recipients,
                               message_sha256)
   SELECT email_id, 1, attempted_at, attempted_at, CASE e.status WHEN 'sent' THEN 'sent' ELSE 'refused' END, e.reason, e.kind,
          e.message_id, e.recipients, e.message_sha256
   FROM emails e JOIN documents d USING (document_id) WHERE d.month = '${month}' AND e.attempts = 1`,
];

/** The lines of a bank file that pays the invoices of a month (:1), by ACH and wire, 17 days after their issue. */
export const BANK_LINES = `
  SELECT concat_ws(',', issued_on + 16, CASE kind WHEN 'part' THEN round(balance * 0.9, digits) ELSE balance END, currency,
                   'operating-' || lower(currency), 'BR' || document_id,
                   CASE kind WHEN 'whole' THEN 'Invoice ' || number WHEN 'part' THEN 'Invoice ' || number || ' less 10%'
                             ELSE 'Remittance ' || document_id END,
                   CASE kind WHEN 'unknown' THEN 'Stranger ' || document_id ELSE partner_name END,
                   CASE kind WHEN 'unknown' THEN 'XX' || document_id ELSE 'ACCT' || partner_id || currency END) AS line
  FROM (SELECT d.*, b.balance, minor_digits(d.currency) AS digits,
               CASE WHEN d.document_id % 100 < 88 THEN 'whole' WHEN d.document_id % 100 < 90 THEN 'part'
                    WHEN d.document_id % 100 < 92 THEN 'plain' ELSE 'unknown' END AS kind
        FROM documents d JOIN document_balances b USING (document_id)
        WHERE d.document = 'invoice' AND d.month = $1 AND b.balance > 0 AND d.document_id % 100 < 93) AS due
  ORDER BY document_id`;

/** Disputes, holds and write-offs, and the reminders of every month. */
export const corrections = (now: string): string[] => [
  `WITH of AS (SELECT d.document_id, d.number, b.balance FROM documents d JOIN document_balances b USING (document_id)
               WHERE d.document = 'invoice' AND b.balance > 0 AND d.document_id % 100 = 93),
   event AS (INSERT INTO ${EVENT}
     SELECT '${now}', 'dispute.open', number, '{}', 'bench', 'bench', 'command' FROM of RETURNING event_id, subject)
   INSERT INTO invoice_disputes (document_id, amount, reason, owner, disputed_on, recorded_at, event_id)
   SELECT document_id, balance, 'rows are missing', '', '${now}', '${now}', event_id FROM of JOIN event ON subject = number`,
  `WITH event AS (INSERT INTO ${EVENT}
     SELECT '${now}', 'dispute.close', d.number, '{}', 'bench', 'bench', 'command'
     FROM invoice_disputes t JOIN documents d USING (document_id) WHERE t.invoice_dispute_id % 5 > 0
     RETURNING event_id, subject)
   INSERT INTO invoice_dispute_closings (invoice_dispute_id, document_id, reason, closed_on, recorded_at, event_id)
   SELECT t.invoice_dispute_id, t.document_id, 'they were found', '${now}', '${now}', event.event_id
   FROM invoice_disputes t JOIN documents d USING (document_id) JOIN event ON subject = number`,
  `WITH of AS (SELECT d.document_id, d.number, b.balance FROM documents d JOIN document_balances b USING (document_id)
               WHERE d.document = 'invoice' AND b.balance > 0 AND d.document_id % 100 > 93
                 AND d.issued_on < '${now}'::date - 540),
   event AS (INSERT INTO ${EVENT}
     SELECT '${now}', 'invoice.write_off', number, '{}', 'bench', 'bench', 'command' FROM of RETURNING event_id, subject)
   INSERT INTO write_offs (document_id, amount, reason, written_off_on, recorded_at, event_id)
   SELECT document_id, balance, 'insolvent', '${now}', '${now}', event_id FROM of JOIN event ON subject = number`,
  `WITH of AS (SELECT p.payment_id, b.partner_id, p.currency, b.unapplied, (p.received_on + 60)::timestamptz AS at
               FROM payments p JOIN payment_balances b USING (payment_id) JOIN unapplied_payments USING (payment_id)
               WHERE p.received_on + 60 < '${now}'::date),
   event AS (INSERT INTO ${EVENT}
     SELECT at, 'payment.reverse', payment_id::text, '{}', 'bench', 'bench', 'command' FROM of RETURNING event_id, subject)
   INSERT INTO payment_reversals (identity, payment_id, partner_id, currency, amount, kind, reason, reversed_on, entry_on,
                                  recorded_at, event_id)
   SELECT 'paid back ' || payment_id, payment_id, partner_id, currency, unapplied, 'refunded', 'nobody knew what for',
          at::date, at::date, at, event_id
   FROM of JOIN event ON subject = payment_id::text`,
  `WITH of AS (SELECT document_id, number FROM documents
               WHERE document = 'invoice' AND month >= '2026-08' AND document_id % 100 = 96),
   event AS (INSERT INTO ${EVENT}
     SELECT '${now}', 'invoice.hold', number, '{}', 'bench', 'bench', 'command' FROM of RETURNING event_id, subject)
   INSERT INTO holds (document_id, reason, held_at, event_id)
   SELECT document_id, 'ask first', '${now}', event_id FROM of JOIN event ON subject = number`,
  `WITH of AS (SELECT DISTINCT d.partner_id, (d.issued_on + 40)::date AS day FROM documents d
               WHERE d.document = 'invoice' AND d.document_id % 100 > 88 AND d.issued_on + 40 < '${now}'::date),
   event AS (INSERT INTO ${EVENT}
     SELECT day + interval '12 hours', 'reminder.record', day::text, '{}', 'bench', 'bench', 'job'
     FROM (SELECT DISTINCT day FROM of) AS days RETURNING event_id, subject)
   INSERT INTO emails (kind, partner_id, day, event_id, message_id, status, queued_at, attempted_at, sent_at, attempts,
                       recipients, message_sha256)
   SELECT 'reminder', partner_id, day, event_id, format('<%s.%s@bench>', partner_id, day), 'sent', at, at, at, 1,
          ARRAY['ap@' || partner_id || '.example'], encode(sha256(partner_id::bytea), 'hex')
   FROM of JOIN event ON subject = day::text CROSS JOIN LATERAL (SELECT day + interval '12 hours' AS at) AS sent`,
];

/**
 * What the processor reported of connected accounts: of a hundred rows, 94 were routed or taken back whole, two in part, two
 * under no name, two not at all. Finance closes what nobody explains after three months.
 */
export const shares = (now: string): string[] => [
  `WITH event AS (INSERT INTO ${EVENT}
     VALUES ('${now}', 'processor.poll', 'accounts', '{}', 'bench', 'bench', 'job') RETURNING event_id)
   INSERT INTO balance_transactions (account, id, reported_by, type, kind, currency, amount, fee, net, occurred_at, payment,
                                     quote_id, payload, recorded_at, event_id)
   SELECT a.connected_account_id, 'txn_' || e.entry_id, 'processor',
          CASE WHEN share > 0 THEN 'charge' ELSE 'refund' END, CASE WHEN share > 0 THEN 'share' ELSE 'reversal' END,
          e.currency, share, 0, share, e.accepted_at + interval '1 hour', 'py_' || e.entry_id,
          CASE WHEN e.entry_id % 100 < 96 THEN e.quote_id END, '{}', '${now}', event.event_id
   FROM event CROSS JOIN ledger_rows e JOIN partner_arrangements a USING (partner_id)
   CROSS JOIN LATERAL (
     SELECT CASE WHEN e.entry_id % 100 IN (94, 95) THEN round(e.invoice_amount / 2, minor_digits(e.currency))
                 ELSE e.invoice_amount END AS share) AS s
   WHERE e.arrangement = 'connected_account' AND e.entry_id % 100 < 98 AND share <> 0
   ORDER BY e.accepted_at, e.entry_id`,
  `WITH event AS (INSERT INTO ${EVENT}
     VALUES ('${now}', 'processor.match', 'accounts', '{}', 'bench', 'bench', 'job') RETURNING event_id)
   INSERT INTO share_allocations (balance_transaction_id, partner_id, posted_month, entry_id, quote_id, requote_id, currency,
                                  amount, settled_currency, settled_amount, matched_by, occurred_on, entry_on, recorded_at,
                                  event_id)
   SELECT m.balance_transaction_id, q.partner_id, q.posted_month, q.entry_id, q.quote_id, e.requote_id, e.currency, m.net,
          m.currency, m.net, 'metadata', m.occurred_at::date, m.occurred_at::date, '${now}', event.event_id
   FROM event CROSS JOIN balance_transactions m
   JOIN ledger_rows e ON e.entry_id = substr(m.id, 5)::bigint AND e.arrangement = 'connected_account'
   JOIN ledger_rows q ON q.partner_id = e.partner_id AND own_id(q) = e.quote_id AND q.kind = 'quote_accepted'
   WHERE m.quote_id IS NOT NULL ORDER BY m.balance_transaction_id`,
  `WITH event AS (INSERT INTO ${EVENT}
     VALUES ('${now}', 'reconcile.close', 'accounts', '{}', 'bench', 'bench', 'command') RETURNING event_id)
   INSERT INTO balance_transaction_closings (balance_transaction_id, currency, amount, reason, recorded_at, event_id)
   SELECT m.balance_transaction_id, m.currency, m.net, 'nobody knows of what', '${now}', event.event_id
   FROM event CROSS JOIN balance_transactions m
   WHERE m.quote_id IS NULL AND m.occurred_at < '${now}'::timestamptz - interval '3 months'`,
];

/** The events of as many rows as if 300,000 of the ledger's had been accepted over HTTP, at the times of the rows. */
export const acceptances = (now: string): string[] => [
  `INSERT INTO ${EVENT}
   SELECT accepted_at, 'quote.accept', quote_id, jsonb_build_object('partner_id', partner_id), 'bench', 'bench', 'http'
   FROM ledger_rows WHERE kind = 'quote_accepted' AND accepted_at < '${now}' ORDER BY entry_id DESC LIMIT 300000`,
];
