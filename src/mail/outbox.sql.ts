/**
 * The outbox: queueing, reading and offering e-mails. Offers are prepared and take several at once, because a month's
 * delivery offers one for every document.
 */
import { CLAIMED, DueItems, itemHash } from '#database/claims';
import {
  execute,
  executing,
  prepared,
  query,
  querying,
  queryingOne,
  queryingValue,
  Transaction,
} from '#database/transaction';
import { mailDomain } from '#documents/issue/context';
import { Installation } from '#people/audit-events';
import { EmailState, EmailSubject } from './email.ts';
import { OtherEmailKind } from './kinds.ts';

/** The columns that say what an e-mail without a document is about. */
const subjectOf = (of = '') =>
  `${of}kind, ${of}partner_id, ${of}month, ${of}day, ${of}payment_id, ${of}credit_refund_id, ${of}void_document_id,
   ${of}checkpoint_size, ${of}approval_request_id, ${of}user_event_id`;

// --- Queueing ---

type EmailToQueue = Partial<Omit<EmailSubject, 'kind'>> &
  Readonly<{
    kind: OtherEmailKind;
    /** The event that the e-mail reports. By default, the caller's event for all of them. */
    event_id?: number;
    name: string;
  }>;

/** Queues e-mails, each with a permanent Message-ID. One that is already queued does not change. */
export async function queueEmails(
  tx: Transaction,
  emails: readonly EmailToQueue[],
  { environment, settings }: Installation,
  eventId: number | null = null,
): Promise<EmailSubject[]> {
  return query(
    tx,
    `INSERT INTO emails (${subjectOf()}, preliminary, message_id, status, queued_at, event_id)
     SELECT ${subjectOf('q.')}, coalesce(q.preliminary, false),
            format('<%s.%s@%s>', each->>'name', i.installation_id, :mailDomain::text), 'queued', :now,
            coalesce(q.event_id, :eventId)
     FROM json_array_elements(:emails::json) AS each
     CROSS JOIN json_populate_record(NULL::emails, each) AS q
     CROSS JOIN installation i
     ON CONFLICT DO NOTHING
     RETURNING email_id, document_id, ${subjectOf()}, preliminary, addressed_to`,
    { now: environment.now().toISO(), mailDomain: mailDomain(settings), eventId, emails },
  );
}

// --- Reading ---

export const EMAIL_STATE = `
  e.email_id, e.message_id, e.status, e.reason, e.message, e.recipients, e.envelope_from, e.attempts,
  e.unclear_attempts`;

export const readOtherEmail = queryingOne<EmailState & EmailSubject, { emailId: number }>(`
  SELECT ${EMAIL_STATE}, e.document_id, ${subjectOf('e.')}, e.preliminary, e.addressed_to
  FROM emails e WHERE e.email_id = :emailId`);

/** The newest e-mail of the outbox; 0 if there is none. */
export const readLastEmail = queryingValue<number>('SELECT coalesce(max(email_id), 0) AS last FROM emails');

/** The e-mails that were queued after that one. */
export const readQueuedAfter = querying<EmailSubject, { last: number }>(`
  SELECT e.email_id, e.document_id, ${subjectOf('e.')}, e.preliminary, e.addressed_to
  FROM emails e WHERE e.email_id > :last ORDER BY e.email_id`);

/** Makes the unfinished e-mails without a document due now: all, or only the named ones. Returns their number. */
export const wakeOtherEmails = executing<{ only: readonly number[] | null }>(`
  UPDATE emails SET due_at = least(due_at, now())
  WHERE document_id IS NULL AND status IN ('queued', 'sending', 'held')
    AND (:only::bigint[] IS NULL OR email_id = ANY (:only))`);

export const dueOtherEmails = (only: readonly number[] | null): DueItems => ({
  kind: 'email',
  due: (free) => `
    SELECT e.email_id AS key FROM emails e
    WHERE e.document_id IS NULL AND e.status IN ('queued', 'sending', 'held') AND e.due_at <= now()
      AND (:only::bigint[] IS NULL OR e.email_id = ANY (:only::bigint[])) AND ${free('e.email_id')}
    ORDER BY e.email_id LIMIT :most FOR UPDATE SKIP LOCKED`,
  bindings: () => ({ only }),
});

export type EmailCounts = Readonly<{
  /** Including documents that were delivered by portal. */
  sent: number;
  pending: number;
  held: number;
  /** Including bounced ones. */
  failed: number;
  uncertain: number;
}>;

const countsOf = (status: 'status' | 'delivery') => `
  count(*) FILTER (WHERE ${status} IN ('sent', 'portal')) AS sent,
  count(*) FILTER (WHERE ${status} IN ('queued', 'sending')) AS pending,
  count(*) FILTER (WHERE ${status} = 'held') AS held,
  count(*) FILTER (WHERE ${status} IN ('failed', 'bounced')) AS failed,
  count(*) FILTER (WHERE ${status} = 'uncertain') AS uncertain`;

export const countDeliveries = queryingOne<EmailCounts>(
  `SELECT ${countsOf('delivery')} FROM latest_emails WHERE document_id IN (SELECT document_id FROM live_documents)`,
);

/** The live documents that a person put on hold. Those held by a rule of the close still need a decision. */
export const countOnHold = queryingValue<number>(`
  SELECT count(*) FROM latest_emails e JOIN current_holds h USING (document_id)
  JOIN audit_events v ON v.event_id = h.event_id
  WHERE e.status = 'held' AND v.details->>'by' IS DISTINCT FROM 'close'
    AND document_id IN (SELECT document_id FROM live_documents)`);

/** Counts the latest e-mails without a document, except the status e-mail and dismissed ones. */
export const countOtherEmails = queryingOne<EmailCounts>(
  `SELECT ${countsOf('status')} FROM latest_other_emails WHERE kind <> 'status' AND dismissal_reason IS NULL`,
);

const DOCUMENTS_NEEDING_ATTENTION = `
  FROM unfinished_emails JOIN document_emails e USING (email_id, document_id) JOIN documents d USING (document_id)
  WHERE e.status IN ('held', 'failed', 'uncertain', 'bounced')
    AND NOT (e.status = 'held' AND EXISTS (SELECT FROM current_holds h WHERE h.document_id = e.document_id))`;
const OTHERS_NEEDING_ATTENTION = `
  FROM latest_other_emails
  WHERE status IN ('held', 'failed', 'uncertain', 'bounced') AND kind <> 'status' AND dismissal_reason IS NULL`;

/** The e-mails that need attention, each with its name, state and number, except documents that finance put on hold. */
export async function nameNeedingAttention(tx: Transaction) {
  const rows = await query<{ item: string; of_document: boolean }>(
    tx,
    `SELECT format('%s %s (e-mail %s)', d.number, e.status, e.email_id) AS item, true AS of_document
     ${DOCUMENTS_NEEDING_ATTENTION}
     UNION ALL
     SELECT format('%s %s (e-mail %s)', kind, status, email_id), false ${OTHERS_NEEDING_ATTENTION}`,
  );
  const named = (documents: boolean) => rows.flatMap((each) => (each.of_document === documents ? [each.item] : []));
  return { documents: named(true), others: named(false) };
}

/** Consecutive e-mails that the mail server refused, which suggests a fault of the server. */
export type RefusedInARow = Readonly<{
  /** When the first one was refused. */
  since: string;
  documents: readonly number[];
  others: readonly number[];
  reason: string;
}>;

/**
 * The failed e-mails that the server refused in a row, to at least three recipients. A wrong address affects only its
 * own e-mails, but a mail server that is set up wrongly refuses every one.
 */
export async function readRefusedInARow(tx: Transaction) {
  const [refused] = await query<RefusedInARow>(
    tx,
    `WITH failed AS MATERIALIZED (
       SELECT e.email_id, e.document_id, e.attempts, e.attempted_at
       FROM emails e JOIN unfinished_emails USING (email_id) WHERE e.status = 'failed'),
     attempts AS (
       SELECT email_id, attempt, outcome, ended_at, personal(recipients) AS recipients, personal(reply) AS reply,
              count(*) FILTER (WHERE outcome = 'sent') OVER (ORDER BY ended_at, email_id, attempt) AS row_of
       FROM email_attempts WHERE ended_at >= (SELECT min(attempted_at) FROM failed)),
     in_a_row AS (
       SELECT row_of FROM attempts WHERE outcome = 'refused' GROUP BY row_of HAVING count(DISTINCT recipients) >= 3)
     SELECT min(f.attempted_at) AS since,
            coalesce(json_agg(f.email_id ORDER BY f.email_id) FILTER (WHERE f.document_id IS NOT NULL),
                     '[]') AS documents,
            coalesce(json_agg(f.email_id ORDER BY f.email_id) FILTER (WHERE f.document_id IS NULL),
                     '[]') AS others,
            (array_agg(a.reply ORDER BY a.ended_at DESC, a.email_id DESC))[1] AS reason
     FROM failed f JOIN attempts a ON a.email_id = f.email_id AND a.attempt = f.attempts
     WHERE a.row_of IN (SELECT row_of FROM in_a_row)
     HAVING count(*) > 0`,
  );
  return refused ?? null;
}

/**
 * Since when all e-mail has failed, with the last reply; null while mail works. Every attempt since the last success
 * must have failed, and either no mail server answered or several recipients were refused. A single recipient whose
 * server defers e-mails does not count.
 */
export async function readMailFailure(tx: Transaction) {
  const [failure] = await query<{ since: string; reason: string }>(
    tx,
    `SELECT min(ended_at) AS since, personal((array_agg(reply ORDER BY ended_at DESC))[1]) AS reason
     FROM email_attempts
     WHERE ended_at > coalesce((SELECT max(ended_at) FROM email_attempts WHERE outcome = 'sent'), '-infinity')
     HAVING count(DISTINCT personal(recipients)) > 1
         OR bool_or(personal(reply) !~ ' was rejected: |^Message failed|^[45][0-9]{2}')`,
  );
  return failure ?? null;
}

// --- Attempts ---

export type AttemptFacts = Readonly<{
  emailId: number;
  /** If another attempt was made after the e-mail was read, its bytes may have to be repeated. */
  attempt: number;
  recipients: readonly string[];
  envelopeFrom: string;
  sha256: string;
  /** An ISO instant. */
  startedAt: string;
}>;

export type Offer = AttemptFacts &
  Readonly<{
    holder: number;
    message: Buffer;
    /** If this worker rendered the PDF. Another may have stored a different one first. */
    pdfSha256?: string | undefined;
    eInvoiceSha256?: string | undefined;
  }>;

const OFFER = prepared(
  'mail.offer',
  `WITH claimed AS MATERIALIZED (${CLAIMED})
     UPDATE emails e SET status = 'sending', recipients = c.recipients,
            envelope_from = c."envelopeFrom", message = substring(:bytes::bytea FROM c.start FOR c.length),
            message_sha256 = c.sha256, attempts = c.attempt, attempted_at = c."startedAt", reason = NULL,
            due_at = now()
     FROM json_to_recordset(:offers::json) AS c (
       "emailId" bigint, attempt integer, holder integer, recipients text[], "envelopeFrom" text, start integer,
       length integer, sha256 text, "pdfSha256" text, "eInvoiceSha256" text, "startedAt" timestamptz)
     WHERE e.email_id = c."emailId" AND e.status IN ('queued', 'held') AND e.attempts = c.attempt - 1
       AND NOT EXISTS (SELECT FROM current_holds h WHERE h.document_id = e.document_id)
       AND (c."pdfSha256" IS NULL
            OR EXISTS (SELECT FROM document_pdfs w WHERE w.document_id = e.document_id AND w.sha256 = c."pdfSha256"))
       AND (c."eInvoiceSha256" IS NULL
            OR EXISTS (SELECT FROM document_e_invoices x
                       WHERE x.document_id = e.document_id AND x.sha256 = c."eInvoiceSha256"))
       AND (c.holder, CASE WHEN e.document_id IS NULL THEN ${itemHash('email', 'e.email_id')}
                           ELSE ${itemHash('document', 'e.document_id')} END) IN (SELECT holder, item FROM claimed)
     RETURNING e.email_id, c.sha256`,
);

/**
 * Records which e-mails are offered to the mail server, right before their first bytes are sent. False if the claim is
 * lost, the stored PDF differs, or the e-mail was voided, put on hold or tried by another worker meanwhile.
 */
export async function offerEmails(tx: Transaction, offers: readonly Offer[]) {
  const { bytes, places } = packed(offers.map(({ message }) => message));
  const facts = offers.map(({ message: _, ...offer }, index) => ({ ...offer, ...places[index] }));
  const [, offered] = await Promise.all([
    // Locks the rows first. Only a later statement sees a hold by the previous owner of the lock.
    lockEmails(tx, offers),
    query<{ email_id: number; sha256: string }>(tx, OFFER, { bytes, offers: facts }),
  ]);
  const hashes = new Map(offered.map((row) => [row.email_id, row.sha256]));
  return offers.map(({ emailId, sha256 }) => hashes.get(emailId) === sha256);
}

/** Concatenates buffers into one parameter. Positions count from 1, as in `substring`. */
export function packed(contents: readonly Buffer[]): { bytes: Buffer; places: { start: number; length: number }[] } {
  let start = 1;
  const places = contents.map(({ length }) => {
    const place = { start, length };
    start += length;
    return place;
  });
  return { bytes: Buffer.concat(contents), places };
}

const LOCK = prepared('mail.lock', `SELECT FROM emails WHERE email_id = ANY (:ids) ORDER BY email_id FOR UPDATE`);

/** Locks e-mails in a fixed order, so that two workers cannot deadlock. */
export const lockEmails = (tx: Transaction, emails: readonly { readonly emailId: number }[]) =>
  execute(tx, LOCK, { ids: emails.map(({ emailId }) => emailId) });

export const offerEmail = async (tx: Transaction, offer: Offer) => (await offerEmails(tx, [offer]))[0] === true;

/** Holds or withdraws an e-mail that no worker is sending. False if another attempt was made since it was read. */
export async function setAside(
  tx: Transaction,
  email: Readonly<{
    emailId: number;
    attempts: number;
    status: 'held' | 'withdrawn';
    reason: string;
  }>,
) {
  const changed = await execute(
    tx,
    `UPDATE emails SET status = :status, reason = :reason, due_at = 'infinity',
            message = CASE WHEN :status = 'held' THEN message END
     WHERE email_id = :emailId AND attempts = :attempts AND status IN ('queued', 'held')`,
    email,
  );
  return changed === 1;
}

/** The failed, bounced and uncertain e-mails that would now go to a different address. */
export const readNewAddresses = querying<
  { email_id: number; address: string },
  { finance: string; auditor: string; operations: string }
>(`
  SELECT e.email_id, a.address
  FROM latest_other_emails e LEFT JOIN partners p USING (partner_id)
  CROSS JOIN LATERAL (
    SELECT CASE e.kind WHEN 'checkpoint' THEN :auditor
                       WHEN 'close_report' THEN :finance
                       WHEN 'feed_doubts' THEN coalesce(nullif(:finance, ''), :operations)
                       WHEN 'instructions_changed' THEN coalesce(nullif(:finance, ''), :operations)
                       WHEN 'reminder' THEN coalesce(nullif(p.reminder_email, ''), p.contact_email)
                       WHEN 'account_statement' THEN coalesce(nullif(p.statement_email, ''), p.contact_email)
                       ELSE p.contact_email END AS address) AS a
  WHERE e.status IN ('failed', 'uncertain', 'bounced') AND e.dismissal_reason IS NULL AND e.addressed_to IS NULL
    AND a.address <> '' AND a.address <> ALL (e.recipients)
  ORDER BY e.email_id`);

export const readLatest = queryingValue<number, { emailId: number }>(`
  SELECT max(l.email_id) AS email_id FROM emails e JOIN latest_other_emails l
    ON (${subjectOf('l.')}) IS NOT DISTINCT FROM (${subjectOf('e.')})
  WHERE e.email_id = :emailId`);

/** The new Message-ID names the previous e-mail, so each is repeated only once. */
export const insertRepetitions = querying<
  EmailSubject,
  {
    askedFor: 'resend' | 'new_address';
    eventId: number;
    /** `addressed_to` is an address that replaces the usual recipients. */
    emails: readonly Readonly<{ email_id: number; addressed_to: string | null }>[];
    mailDomain: string;
    now: string;
  }
>(`
  INSERT INTO emails (${subjectOf()}, preliminary, asked_for, addressed_to, event_id, message_id, status, queued_at)
  SELECT ${subjectOf('e.')}, e.preliminary,
         :askedFor, r.addressed_to, :eventId,
         format('<%s.again-%s.%s@%s>', e.kind, e.email_id, i.installation_id, :mailDomain::text), 'queued',
         :now
  FROM json_to_recordset(:emails::json) AS r (email_id bigint, addressed_to text)
  JOIN emails e ON e.email_id = r.email_id CROSS JOIN installation i
  ON CONFLICT DO NOTHING
  RETURNING email_id, document_id, ${subjectOf()}, preliminary, addressed_to`);

/** Unfinished e-mails whose last attempt began at an instant or later, except those on hold. */
export const readToRetry = querying<
  { email_id: number; document_id: number | null; addressed_to: string | null },
  { status: string; since: string | null }
>(`
  SELECT e.email_id, e.document_id, e.addressed_to
  FROM emails e JOIN unfinished_emails USING (email_id)
  WHERE e.status = :status AND e.attempted_at >= coalesce(:since::timestamptz, '-infinity')
    AND e.kind <> 'status'
    AND NOT EXISTS (SELECT FROM current_holds h WHERE h.document_id = e.document_id)
  ORDER BY e.email_id`);
