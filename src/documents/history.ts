/** The story of a document: what happened to it, in order, from its issue to its payment or its void. */
import { query, type Transaction } from '../database/transaction.ts';
import { Amount } from '../money.ts';

export interface HistoryLine {
  /** ISO instant. */
  readonly at: string;
  /** What happened, in a word that programs can go by. */
  readonly act: Act;
  /** The same for people. */
  readonly says: string;
  /** Who asked for it: what `--by` claimed, and the user and host that the machine tells. */
  readonly by: { readonly claimed_by: string | null; readonly os_user: string; readonly host: string } | null;
}

type Act = keyof typeof SENTENCES;

interface Happening {
  readonly at: string;
  readonly act: Act;
  readonly currency: string;
  readonly facts: Readonly<Record<string, string>>;
  readonly claimed_by: string | null;
  readonly os_user: string | null;
  readonly host: string | null;
}

/** One sentence for each kind of happening; its facts are those that the query below gives. */
const SENTENCES = {
  issued: (f: Facts) =>
    `issued${f['replaces'] ? ` in place of ${f['replaces']}` : ''}${f['credits'] ? ` as a credit against ${f['credits']}` : ''}`,
  credit_used: (f: Facts) => `${f['amount']} of credit from ${f['other']} used for it`,
  credit_given: (f: Facts) => `${f['amount']} of it used for ${f['other']}`,
  credit_returned: (f: Facts) => `${f['amount']} of credit given back to ${f['other']} by its void`,
  credit_reopened: (f: Facts) => `${f['amount']} open again by the void of ${f['other']}`,
  credited: (f: Facts) => `${f['amount']} credited by ${f['other']}: ${f['reason']}`,
  linked: (f: Facts) => `payment link ${f['url']}`,
  link_made: (f: Facts) =>
    `${f['found'] === 'true' ? 'found' : 'made'} at ${f['provider']}: link ${f['version']} over ${f['amount']}, ${f['url']}`,
  link_closed: (f: Facts) =>
    `${CLOSINGS[f['why'] as keyof typeof CLOSINGS]}: link ${f['version']} over ${f['amount']}` +
    `${f['sessions'] === '0' ? '' : `, with ${f['sessions']} session(s) that were open`}${f['detail'] ? `; ${f['detail']}` : ''}`,
  link_waits: (f: Facts) => `payment link waits: ${f['reason']}`,
  drawn: (f: Facts) => `drawn: ${f['bytes']} bytes, sha256 ${f['sha256']}`,
  sending_asked: (f: Facts) =>
    `sending asked for by ${f['asked_for']}${f['to'] ? ` to ${f['to']}` : ''}: ${f['message_id']}`,
  sending: (f: Facts) =>
    `e-mail ${f['status']}${f['to'] ? ` to ${f['to']}` : ''}${Number(f['attempts']) > 1 ? `, attempt ${f['attempts']}` : ''}` +
    `${f['reply'] ? `; ${f['reply']}` : ''}${f['sha256'] ? `; sha256 ${f['sha256']}` : ''}`,
  held: (f: Facts) => `put on hold${f['reason'] ? `: ${f['reason']}` : ''}`,
  released: () => 'hold released',
  written_off: (f: Facts) => `${f['amount']} written off: ${f['reason']}`,
  paid: (f: Facts) => `${f['amount']} paid, reference ${f['reference']}: ${f['why']}`,
  unpaid: (f: Facts) => `payment of ${f['amount']}, reference ${f['reference']}, taken off again`,
  voided: (f: Facts) => `voided: ${f['reason']}`,
  replaced: (f: Facts) => `replaced by ${f['other']}`,
} as const;

type Facts = Happening['facts'];

/** What ended a link at a processor. */
const CLOSINGS = {
  void: 'switched off, for the document is void',
  paid: 'switched off, for nothing is owed any more',
  amount_changed: 'switched off, for the balance changed',
  used_up: 'used up, and no money came of it',
  refused: 'refused by the processor',
  not_made: 'not made, and no longer wanted',
} as const;

/** In the order in which it happened. */
export async function readHistory(tx: Transaction, documentId: number): Promise<HistoryLine[]> {
  const happenings = await query<Happening>(
    tx,
    `WITH happenings (rank, at, act, facts, event_id) AS (
       SELECT 1, d.issued_at, 'issued', jsonb_build_object('replaces', r.number, 'credits', c.number),
              (SELECT s.event_id FROM sendings s WHERE s.document_id = d.document_id AND s.asked_for <> 'resend')
       FROM documents d
       LEFT JOIN documents r ON r.document_id = d.replaces LEFT JOIN documents c ON c.document_id = d.credits
       WHERE d.document_id = :documentId
       UNION ALL
       SELECT 2, a.recorded_at,
              CASE WHEN a.invoice_id = :documentId THEN 'credit_used' ELSE 'credit_given' END,
              jsonb_build_object('amount', a.amount::text, 'other', o.number), NULL
       FROM credit_applications a
       JOIN documents o ON o.document_id = CASE WHEN a.invoice_id = :documentId THEN a.credit_note_id ELSE a.invoice_id END
       WHERE (a.invoice_id = :documentId OR a.credit_note_id = :documentId)
         AND NOT (a.invoice_id = :documentId AND o.credits IS NOT DISTINCT FROM a.invoice_id)
       UNION ALL
       SELECT 10, r.recorded_at,
              CASE WHEN a.invoice_id = :documentId THEN 'credit_returned' ELSE 'credit_reopened' END,
              jsonb_build_object('amount', a.amount::text, 'other', o.number), NULL
       FROM credit_releases r JOIN credit_applications a USING (credit_application_id)
       JOIN documents o ON o.document_id = CASE WHEN a.invoice_id = :documentId THEN a.credit_note_id ELSE a.invoice_id END
       WHERE a.invoice_id = :documentId OR a.credit_note_id = :documentId
       UNION ALL
       SELECT 3, n.issued_at, 'credited', jsonb_build_object('amount', n.invoice_amount::text, 'other', n.number, 'reason', n.reason),
              (SELECT s.event_id FROM sendings s WHERE s.document_id = n.document_id AND s.asked_for = 'credit')
       FROM documents n WHERE n.credits = :documentId
       UNION ALL
       SELECT 4, created_at, 'linked', jsonb_build_object('url', url), NULL FROM payment_links WHERE document_id = :documentId
       UNION ALL
       SELECT 12 + i.version * 0.002, o.created_at, 'link_made', jsonb_build_object('version', i.version::text, 'amount', i.amount::text,
              'provider', initcap(i.provider), 'url', o.url, 'found', o.found::text), NULL
       FROM payment_link_objects o JOIN payment_link_intents i USING (document_id, version)
       WHERE i.document_id = :documentId
       UNION ALL
       SELECT 12.001 + i.version * 0.002, c.closed_at, 'link_closed', jsonb_build_object('version', i.version::text, 'amount', i.amount::text,
              'why', c.why, 'detail', c.detail, 'sessions', c.sessions_expired::text), NULL
       FROM payment_link_closings c JOIN payment_link_intents i USING (document_id, version)
       WHERE i.document_id = :documentId
       UNION ALL
       SELECT 99, noted_at, 'link_waits', jsonb_build_object('reason', reason), NULL
       FROM payment_link_waits WHERE document_id = :documentId
       UNION ALL
       SELECT 5, rendered_at, 'drawn', jsonb_build_object('bytes', octet_length(pdf)::text, 'sha256', sha256), NULL
       FROM document_pdfs WHERE document_id = :documentId
       UNION ALL
       SELECT 6, queued_at, 'sending_asked',
              jsonb_build_object('asked_for', CASE asked_for WHEN 'resend' THEN 'a person' WHEN 'credit' THEN 'its issue'
                                              WHEN 'missing_shares' THEN 'its issue'
                                              WHEN 'rerun' THEN 'the rerun' ELSE 'the close' END,
                                 'to', addressed_to, 'message_id', message_id), event_id
       FROM sendings WHERE document_id = :documentId
       UNION ALL
       SELECT 7, coalesce(sent_at, attempted_at, queued_at), 'sending',
              jsonb_build_object('status', status, 'to', array_to_string(recipients, ', '), 'attempts', attempts::text,
                                 'reply', reason, 'sha256', message_sha256), NULL
       FROM sendings WHERE document_id = :documentId AND (status <> 'queued' OR attempts > 0)
       UNION ALL
       SELECT 8, held_at, 'held', jsonb_build_object('reason', reason), event_id FROM holds WHERE document_id = :documentId
       UNION ALL
       SELECT 8, released_at, 'released', '{}', event_id FROM hold_releases WHERE document_id = :documentId
       UNION ALL
       SELECT 8, recorded_at, 'written_off', jsonb_build_object('amount', amount::text, 'reason', reason), event_id
       FROM write_offs WHERE document_id = :documentId
       UNION ALL
       SELECT 8, a.recorded_at, 'paid',
              jsonb_build_object('amount', a.amount::text, 'reference', p.reference, 'why', a.evidence->>'why'), a.event_id
       FROM payment_applications a JOIN payments p USING (payment_id) WHERE a.document_id = :documentId
       UNION ALL
       SELECT 8, u.recorded_at, 'unpaid', jsonb_build_object('amount', a.amount::text, 'reference', p.reference), u.event_id
       FROM payment_unapplications u JOIN payment_applications a USING (payment_application_id)
       JOIN payments p USING (payment_id) WHERE a.document_id = :documentId
       UNION ALL
       SELECT 9, recorded_at, 'voided', jsonb_build_object('reason', reason), event_id FROM voids WHERE document_id = :documentId
       UNION ALL
       SELECT 11, issued_at, 'replaced', jsonb_build_object('other', number), NULL FROM documents WHERE replaces = :documentId
     )
     SELECT h.at, h.act, h.facts, d.currency, e.claimed_by, e.os_user, e.host
     FROM happenings h
     JOIN documents d ON d.document_id = :documentId
     LEFT JOIN audit_events e ON e.event_id = h.event_id
     ORDER BY h.at, h.rank, h.event_id`,
    { documentId },
  );
  return happenings.map(({ at, act, currency, facts, claimed_by, os_user, host }) => {
    const amount = facts['amount'];
    const told = amount === undefined ? facts : { ...facts, amount: Amount.of(amount, currency).forPeople() };
    return {
      at,
      act,
      says: SENTENCES[act](told),
      by: os_user === null || host === null ? null : { claimed_by, os_user, host },
    };
  });
}
