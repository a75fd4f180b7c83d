/** Reads a document's history: its own actions, and those in the views of mail, delivery and payments. */
import { querying } from '#database/transaction';

export type Happening = Readonly<{
  /** An ISO instant. */
  at: string;
  action: string;
  currency: string;
  facts: Readonly<Record<string, string>>;
  claimed_by: string | null;
  os_user: string | null;
  host: string | null;
  /** The request for approval, and who approved it. */
  request: string | null;
  approver: string | null;
  /** The reason of an event whose facts have none, and its internal note. */
  reason: string | null;
  note: string | null;
}>;

/** The document's own actions. The ranks order actions of the same instant. */
const OWN_ACTIONS = `
       SELECT 1, d.issued_at, 'issued',
              jsonb_build_object('replaces', r.number, 'credits', c.number, 'carried', o.cut_over_on),
              coalesce(o.event_id, (SELECT s.event_id FROM document_emails s
                                    WHERE s.document_id = d.document_id AND s.asked_for <> 'resend'))
       FROM documents d LEFT JOIN openings o USING (opening_id)
       LEFT JOIN documents r ON r.document_id = d.replaces LEFT JOIN documents c ON c.document_id = d.credits
       WHERE d.document_id = :documentId
       UNION ALL
       SELECT 3, n.issued_at, 'credited',
              jsonb_build_object('amount', n.gross::text, 'other', n.number, 'reason', n.reason),
              (SELECT s.event_id FROM document_emails s WHERE s.document_id = n.document_id AND s.asked_for = 'credit')
       FROM documents n WHERE n.credits = :documentId
       UNION ALL
       SELECT 5, rendered_at, 'drawn', jsonb_build_object('bytes', octet_length(pdf)::text, 'sha256', sha256), NULL
       FROM document_pdfs WHERE document_id = :documentId
       UNION ALL
       SELECT 8, held_at, 'held', jsonb_build_object('reason', reason), event_id
       FROM holds WHERE document_id = :documentId
       UNION ALL
       SELECT 8, released_at, 'released', '{}', event_id FROM hold_releases WHERE document_id = :documentId
       UNION ALL
       SELECT 8, recorded_at, 'disputed',
              jsonb_build_object('amount', amount::text, 'reason', reason, 'owner', personal(owner),
                                 'promised_on', promised_on),
              event_id
       FROM invoice_disputes WHERE document_id = :documentId
       UNION ALL
       SELECT 8, recorded_at, 'dispute_closed', jsonb_build_object('reason', reason), event_id
       FROM invoice_dispute_closings WHERE document_id = :documentId
       UNION ALL
       SELECT 8, recorded_at, 'written_off', jsonb_build_object('amount', amount::text, 'reason', reason), event_id
       FROM write_offs WHERE document_id = :documentId
       UNION ALL
       SELECT 8, r.recorded_at, 'write_off_undone', jsonb_build_object('amount', w.amount::text, 'reason', r.reason),
              r.event_id
       FROM write_off_reversals r JOIN write_offs w USING (write_off_id) WHERE w.document_id = :documentId
       UNION ALL
       SELECT 9, recorded_at, 'voided', jsonb_build_object('reason', reason), event_id
       FROM voids WHERE document_id = :documentId
       UNION ALL
       SELECT 11, issued_at, 'replaced', jsonb_build_object('other', number), NULL
       FROM documents WHERE replaces = :documentId`;

/**
 * Credit applied to an invoice or from a credit note, and released by a void or a command. Credit applied when an
 * adjustment was issued is omitted: the invoice has the action `credited` for it.
 */
const CREDIT_ACTIONS = `
       SELECT 2, a.recorded_at, CASE WHEN a.invoice_id = :documentId THEN 'credit_used' ELSE 'credit_given' END,
              jsonb_build_object('amount', a.amount::text, 'other', o.number), a.event_id
       FROM credit_applications a
       JOIN documents o
         ON o.document_id = CASE WHEN a.invoice_id = :documentId THEN a.credit_note_id ELSE a.invoice_id END
       WHERE (a.invoice_id = :documentId OR a.credit_note_id = :documentId)
         AND NOT (a.invoice_id = :documentId AND EXISTS (
           SELECT FROM audit_events e WHERE e.event_id = a.event_id AND e.action = 'invoice.credit'))
       UNION ALL
       SELECT 10, r.recorded_at,
              CASE WHEN a.invoice_id = :documentId
                   THEN CASE WHEN r.document_id IS NULL THEN 'credit_taken_back' ELSE 'credit_returned' END
                   ELSE CASE WHEN r.document_id IS NULL THEN 'credit_recovered' ELSE 'credit_reopened' END END,
              jsonb_build_object('amount', a.amount::text, 'other', o.number), r.event_id
       FROM credit_releases r JOIN credit_applications a USING (credit_application_id)
       JOIN documents o
         ON o.document_id = CASE WHEN a.invoice_id = :documentId THEN a.credit_note_id ELSE a.invoice_id END
       WHERE a.invoice_id = :documentId OR a.credit_note_id = :documentId`;

export const readHappenings = querying<Happening, { documentId: number }>(`
  WITH happenings (rank, at, action, facts, event_id) AS (
    ${OWN_ACTIONS}
    UNION ALL
    ${CREDIT_ACTIONS}
    UNION ALL
    SELECT rank, at, action, facts, event_id FROM document_email_history WHERE document_id = :documentId
    UNION ALL
    SELECT rank, at, action, facts, NULL FROM payment_link_history WHERE document_id = :documentId
    UNION ALL
    SELECT 8, at, action, facts, event_id FROM payment_history WHERE document_id = :documentId
  )
  SELECT h.at, h.action, h.facts, d.currency, personal(e.claimed_by) AS claimed_by, e.os_user, e.host,
         e.details->'approval'->>'request' AS request, personal(e.details->'approval'->>'approved_by') AS approver,
         CASE WHEN e.action = 'payment.unapply' THEN e.details->>'reason' END AS reason, e.details->>'note' AS note
  FROM happenings h
  JOIN documents d ON d.document_id = :documentId
  LEFT JOIN audit_events e ON e.event_id = h.event_id
  ORDER BY h.at, h.rank, h.event_id, h.action`);
