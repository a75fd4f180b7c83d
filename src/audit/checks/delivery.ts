/** Checks of e-mails and payment links. */
import { inMonth } from './query.ts';

/**
 * A sent e-mail has a time, recipients and the hash of its message. An e-mail that is being sent or will be resent has
 * the message. A bounced e-mail was returned from its first recipient. Every finished attempt is in the log, and the
 * last attempt agrees with the state of the e-mail. Each document of a month has an e-mail, and none of a void document
 * is held.
 */
export const EMAILS_CONSISTENT = `inspected AS (
  SELECT e.*, coalesce(d.number, concat_ws(' ', e.partner_id, e.month, e.day, e.payment_id)) AS about,
         (SELECT count(*) FROM email_attempts a WHERE a.email_id = e.email_id) AS logged,
         (SELECT a FROM email_attempts a WHERE a.email_id = e.email_id ORDER BY a.attempt DESC LIMIT 1) AS latest,
         EXISTS (SELECT FROM email_bounces b
                 WHERE b.email_id = e.email_id AND personal(b.recipient) = e.recipients[1]) AS returned,
         EXISTS (SELECT FROM voids v WHERE v.document_id = e.document_id) AS is_void
  FROM emails e LEFT JOIN documents d USING (document_id)
  WHERE ${inMonth('coalesce(d.month, e.month)')}
), differences AS (
  SELECT format('e-mail %s, %s %s', email_id, kind, about) AS subject,
    format('is %s: %s', status, coalesce(reason, 'no reason')) AS detail
  FROM inspected
  WHERE CASE status
          WHEN 'bounced' THEN NOT returned
          WHEN 'sent' THEN returned OR sent_at IS NULL OR message_sha256 IS NULL
                           OR coalesce(cardinality(recipients), 0) = 0
                           OR (document_id IS NOT NULL
                               AND NOT EXISTS (SELECT FROM document_pdfs w WHERE w.document_id = inspected.document_id))
          WHEN 'sending' THEN message IS NULL
          WHEN 'held' THEN reason IS NULL OR is_void
          ELSE sent_at IS NOT NULL END
     OR unclear_attempts > attempts
     OR (latest).kind <> kind OR (latest).message_id <> message_id OR (latest).attempt > attempts
     OR (status = 'sent'
         AND ((latest).outcome, personal((latest).recipients), (latest).message_sha256, (latest).ended_at)
                             IS DISTINCT FROM ('sent', recipients, message_sha256, sent_at))
     OR (status NOT IN ('sent', 'bounced') AND (latest).outcome = 'sent')
     OR (status = 'bounced' AND sent_at IS DISTINCT FROM CASE (latest).outcome WHEN 'sent' THEN (latest).ended_at END)
     OR logged <> attempts - CASE status WHEN 'sending' THEN 1 ELSE 0 END
     OR (message IS NOT NULL AND message_sha256 IS DISTINCT FROM encode(sha256(message), 'hex'))
  UNION ALL
  SELECT number, 'has no e-mail' FROM documents d
  WHERE purpose = 'month' AND ${inMonth('month')}
    AND NOT EXISTS (SELECT FROM emails e WHERE e.document_id = d.document_id)
  UNION ALL
  SELECT format('e-mail %s, %s', email_id, min(kind)), 'is missing, though attempts to send it are recorded'
  FROM email_attempts a WHERE NOT EXISTS (SELECT FROM emails e WHERE e.email_id = a.email_id) GROUP BY email_id
  UNION ALL
  SELECT format('e-mail %s', b.email_id), format('was returned from %s, but was not sent there', personal(b.recipient))
  FROM email_bounces b JOIN inspected e USING (email_id)
  WHERE personal(b.recipient) <> ALL (coalesce(e.recipients, '{}'))
)`;

/**
 * A payment through a link was applied only to the link's document. A payment for several invoices in one session was
 * applied only to these invoices, each for at most the amount recorded for it.
 */
export const LINK_PAYMENTS_PROVED = `inspected AS (
  SELECT a.payment_id, d.number, a.evidence->'reference'->>'found' AS link, made.number AS made_for
  FROM payment_applications a JOIN documents d USING (document_id)
  LEFT JOIN payment_link_objects o ON o.provider_id = a.evidence->'reference'->>'found'
  LEFT JOIN documents made ON made.document_id = o.document_id
  WHERE a.evidence->>'rule' = 'processor' AND a.evidence->'reference'->>'field' = 'payment_link'
    AND ${inMonth('d.month')}
  UNION ALL
  SELECT a.payment_id, d.number, a.evidence->'reference'->>'found',
         CASE WHEN a.amount <= i.amount THEN d.number ELSE i.amount || ' of ' || d.number END
  FROM payment_applications a JOIN documents d USING (document_id)
  LEFT JOIN checkout_sessions s ON s.provider_id = a.evidence->'reference'->>'found'
  LEFT JOIN checkout_invoices i ON i.checkout_id = s.checkout_id AND i.document_id = a.document_id
  WHERE a.evidence->>'rule' = 'processor' AND a.evidence->'reference'->>'field' = 'checkout_session'
    AND ${inMonth('d.month')}
), differences AS (
  SELECT format('payment %s', payment_id) AS subject,
         format('paid %s by the link %s, which was made for %s', number, coalesce(link, '(none)'),
                coalesce(made_for, 'no document')) AS detail
  FROM inspected WHERE made_for IS DISTINCT FROM number
)`;

/**
 * The invoices of a checkout add up to its amount, belong to its partner and are charged at most their totals. At most
 * one checkout of an invoice has not ended yet. A paid checkout had a session; a refused checkout had none.
 */
export const CHECKOUTS_CONSISTENT = `inspected AS (
  SELECT c.checkout_id, c.amount, c.currency, s.provider_id, e.why,
         (SELECT sum(i.amount) FROM checkout_invoices i WHERE i.checkout_id = c.checkout_id) AS invoices,
         (SELECT string_agg(d.number, ', ' ORDER BY d.number)
          FROM checkout_invoices i JOIN documents d USING (document_id)
          WHERE i.checkout_id = c.checkout_id AND i.amount > d.gross) AS above,
         e.checkout_id IS NULL AND EXISTS (
           SELECT FROM checkout_invoices mine JOIN checkout_invoices other USING (document_id)
           WHERE mine.checkout_id = c.checkout_id AND other.checkout_id <> c.checkout_id
             AND NOT EXISTS (SELECT FROM checkout_endings x WHERE x.checkout_id = other.checkout_id)) AS twice
  FROM checkouts c
  LEFT JOIN checkout_sessions s USING (checkout_id) LEFT JOIN checkout_endings e USING (checkout_id)
  WHERE EXISTS (SELECT FROM checkout_invoices i JOIN documents d USING (document_id)
                WHERE i.checkout_id = c.checkout_id AND ${inMonth('d.month')})
     OR NOT EXISTS (SELECT FROM checkout_invoices i WHERE i.checkout_id = c.checkout_id)
), differences AS (
  SELECT format('checkout %s', checkout_id) AS subject,
         format('for %s %s, its invoices for %s, above their totals: %s, another over one of them: %s, %s, ended: %s',
                amount, currency, coalesce(invoices, 0), coalesce(above, 'none'), twice,
                coalesce(provider_id, 'no session'), coalesce(why, 'no')) AS detail
  FROM inspected
  WHERE invoices IS DISTINCT FROM amount OR above IS NOT NULL OR twice
     OR (why IN ('refused', 'not_made')) = (provider_id IS NOT NULL)
)`;

/**
 * A document has at most one open payment link. The link is in the document's currency and for at most its total,
 * because credit applied at issue may be taken back. A deactivated link had been created, a refused link was never
 * created, and attempts are numbered from 1.
 */
export const PAYMENT_LINKS_CONSISTENT = `inspected AS (
  SELECT d.number, d.currency AS document_currency, d.gross, i.*,
         o.provider_id, c.why, v.document_id IS NOT NULL AS void,
         count(*) FILTER (WHERE c.version IS NULL) OVER (PARTITION BY i.document_id) AS open_links,
         (SELECT count(*) FROM payment_link_attempts a
           WHERE (a.document_id, a.version) = (i.document_id, i.version)) AS attempts,
         (SELECT max(attempt) FROM payment_link_attempts a
           WHERE (a.document_id, a.version) = (i.document_id, i.version)) AS last_attempt
  FROM payment_link_intents i JOIN documents d ON d.document_id = i.document_id
  LEFT JOIN payment_link_objects o ON (o.document_id, o.version) = (i.document_id, i.version)
  LEFT JOIN payment_link_closings c ON (c.document_id, c.version) = (i.document_id, i.version)
  LEFT JOIN voids v ON v.document_id = i.document_id
  WHERE ${inMonth('d.month')}
), differences AS (
  SELECT format('link %s of %s', version, number) AS subject,
         format('for %s %s of %s %s, %s open, %s of %s attempts, %s, closed: %s', amount, currency, gross,
                document_currency, open_links, attempts, coalesce(last_attempt, 0),
                coalesce(provider_id, 'not created'),
                coalesce(why, 'no')) AS detail
  FROM inspected
  WHERE open_links > 1 OR amount > gross OR currency <> document_currency
     OR last_attempt IS DISTINCT FROM attempts
     OR (why IN ('refused', 'not_made') AND provider_id IS NOT NULL)
     OR (why IN ('void', 'paid', 'amount_changed', 'used_up', 'ordered') AND provider_id IS NULL)
     OR (why = 'void' AND NOT void)
)`;
