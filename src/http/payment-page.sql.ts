/** SQL of the HTTP server: the payment page, signing keys and metrics. */

import type { JWK } from 'jose';
import type { Instructions } from '../config/instructions.ts';
import { execute, query, queryOne, type Transaction } from '../database/transaction.ts';
import { type DocumentRow, readDocuments } from '../documents/documents.sql.ts';

/** What lowered the balance of an invoice: a credit or a payment applied to it, bank charges, a write-off. */
export interface Reduction {
  readonly kind: 'payment' | 'credit' | 'bank_charges' | 'written_off';
  /** `YYYY-MM-DD`; for a payment the day on which it was received. */
  readonly on: string;
  readonly amount: string;
  /** The number of the credit note; null for anything else. */
  readonly credit_note: string | null;
}

export interface PaymentPage {
  readonly document: DocumentRow;
  /** The instructions printed on the document. */
  readonly instructions: Instructions | null;
  /** The document says that they differ from those of the partner's invoice before it. */
  readonly instructions_changed: boolean;
  /** In the order in which they were recorded. */
  readonly reductions: readonly Reduction[];
  /** The processor's payment page; null if there is none. */
  readonly processor_url: string | null;
  /** A payment that was ordered and is on its way: the day, `YYYY-MM-DD`, and its amount. */
  readonly ordered: { readonly on: string; readonly amount: string } | null;
  readonly replacement_number: string | null;
  /** Since when nothing is asked for, `YYYY-MM-DD`; null while it is open. */
  readonly settled_on: string | null;
}

const SETTLED_ON = `CASE WHEN b.status <> 'open' THEN greatest(
              d.issued_on,
              (SELECT max(applied_on) FROM payment_applications a WHERE a.document_id = d.document_id),
              (SELECT max(applied_on) FROM credit_applications a WHERE a.invoice_id = d.document_id),
              (SELECT max(written_off_on) FROM write_offs w WHERE w.document_id = d.document_id),
              (SELECT max(voided_on) FROM voids v WHERE v.document_id = d.document_id)) END`;

/** The document of a link's token, with the document that replaced it. */
export async function readPaymentPage(tx: Transaction, token: string): Promise<PaymentPage | undefined> {
  const rows = await query<Omit<PaymentPage, 'document' | 'reductions'> & { document_id: number }>(
    tx,
    `SELECT k.document_id, v.content AS instructions,
            coalesce(w.instructions_changed, false) AS instructions_changed, o.url AS processor_url,
            (SELECT json_build_object('on', min(o.ordered_on), 'amount', sum(o.amount)::text)
             FROM ordered_payments o WHERE o.document_id = k.document_id HAVING count(*) > 0) AS ordered,
            r.number AS replacement_number, ${SETTLED_ON} AS settled_on
     FROM (
       SELECT document_id FROM payment_links WHERE token = :token
       UNION SELECT document_id FROM payment_link_changes WHERE token = :token) AS t
     JOIN current_links k ON k.document_id = t.document_id AND k.token = :token
     LEFT JOIN document_pdfs w ON w.document_id = k.document_id
     LEFT JOIN instruction_versions v ON v.instruction_version_id = w.instruction_version_id
     JOIN document_balances b ON b.document_id = k.document_id
     JOIN documents d ON d.document_id = k.document_id
     LEFT JOIN documents r ON r.replaces = k.document_id
     LEFT JOIN LATERAL (
       -- For the current balance: after a payment or a credit, delivery creates another link.
       SELECT o.url
       FROM payment_link_objects o JOIN payment_link_intents i USING (document_id, version)
       WHERE o.document_id = k.document_id AND (i.amount, i.currency) = (b.balance, d.currency)
         AND NOT EXISTS (
           SELECT FROM payment_link_closings c WHERE c.document_id = o.document_id AND c.version = o.version)
       ORDER BY o.version DESC LIMIT 1) AS o ON true`,
    { token },
  );
  const [found] = rows;
  if (found === undefined) return undefined;
  const { document_id: documentId, ...facts } = found;
  const [document] = await readDocuments(tx, { ids: [documentId] });
  return document === undefined ? undefined : { ...facts, document, reductions: await readReductions(tx, documentId) };
}

export const readReductions = (tx: Transaction, documentId: number): Promise<Reduction[]> =>
  query(
    tx,
    `SELECT kind, "on", amount, credit_note FROM (
       SELECT 'credit' AS kind, a.applied_on AS "on", a.amount, n.number AS credit_note, a.recorded_at
       FROM live_credit_applications a JOIN documents n ON n.document_id = a.credit_note_id
       WHERE a.invoice_id = :documentId
       UNION ALL
       SELECT 'payment', p.received_on, a.amount, NULL, a.recorded_at
       FROM live_payment_applications a JOIN payments p USING (payment_id) WHERE a.document_id = :documentId
       UNION ALL
       SELECT 'bank_charges', a.applied_on, s.amount, NULL, s.recorded_at
       FROM live_small_differences s JOIN payment_applications a USING (payment_application_id)
       WHERE s.document_id = :documentId
       UNION ALL
       SELECT 'written_off', written_off_on, amount, NULL, recorded_at
       FROM live_write_offs WHERE document_id = :documentId
     ) AS r ORDER BY recorded_at, kind = 'written_off', kind DESC`,
    { documentId },
  );

export interface SigningKeyRow {
  readonly kid: string;
  /** The public key as JSON. */
  readonly jwk: string;
  // In seconds since 1970.
  readonly at: number;
  readonly signsUntil: number;
  readonly until: number;
}

export async function insertSigningKey(tx: Transaction, row: SigningKeyRow): Promise<void> {
  await execute(
    tx,
    `INSERT INTO signing_keys (kid, public_jwk, published_at, signs_until, published_until)
     VALUES (:kid, :jwk::jsonb, to_timestamp(:at), to_timestamp(:signsUntil), to_timestamp(:until))`,
    { ...row },
  );
}

/** The keys that have not expired at an instant, in seconds since 1970. */
export async function readSigningKeys(tx: Transaction, at: number): Promise<{ public_jwk: JWK; until: number }[]> {
  return query(
    tx,
    `SELECT public_jwk, extract(epoch FROM published_until)::float8 AS until FROM signing_keys
     WHERE published_until > to_timestamp(:at)`,
    { at },
  );
}

export async function readMigrationNames(tx: Transaction): Promise<string[]> {
  const { names } = await queryOne<{ names: string[] }>(
    tx,
    `SELECT array_agg(name ORDER BY id) AS names FROM migrations`,
  );
  return names;
}

export interface Backlog {
  readonly depth: number;
  /** Seconds. */
  readonly age: number;
  readonly open: number;
  /** Seconds since 1970; null if no month is closed. */
  readonly closed: number | null;
}

/** Emails that are waiting, open ledger rows, and the latest close. */
export async function readBacklog(tx: Transaction, now: string): Promise<Backlog> {
  return queryOne(
    tx,
    `SELECT (SELECT count(*) FROM document_emails WHERE status IN ('queued', 'sending')) AS depth,
            (SELECT coalesce(extract(epoch FROM :now::timestamptz - min(queued_at)), 0)::float8
             FROM document_emails WHERE status IN ('queued', 'sending')) AS age,
            (SELECT count(*) FROM ledger_rows
             WHERE posted_month > coalesce((SELECT max(month) FROM closed_months), '')) AS open,
            (SELECT extract(epoch FROM max(closed_at))::float8 FROM closed_months) AS closed`,
    { now },
  );
}

export interface JobHealth {
  readonly job: string;
  /** Days since its last run. */
  readonly days: number;
  readonly exit: number;
  /** What needed attention at its last run; of a verify, the differences. */
  readonly attention: number;
  /** In seconds since 1970: when it last ended with exit status 0; null before it ever did. */
  readonly succeeded: number | null;
}

export function readJobHealth(tx: Transaction, now: string): Promise<JobHealth[]> {
  return query(
    tx,
    `SELECT job, (extract(epoch FROM :now::timestamptz - max(finished_at)) / 86400)::float8 AS days,
            (array_agg(exit_status ORDER BY finished_at DESC, job_run_id DESC))[1] AS exit,
            extract(epoch FROM max(finished_at) FILTER (WHERE exit_status = 0))::float8 AS succeeded,
            (SELECT coalesce(sum(count), 0)::bigint FROM job_attention a WHERE a.job = j.job) AS attention
     FROM job_runs j GROUP BY job`,
    { now },
  );
}

/** Counts one more failure of each key, from one on where its window has ended, and forgets some keys that ended. */
export function countFailures(
  tx: Transaction,
  given: { readonly keys: readonly string[]; readonly now: string; readonly endsAt: string },
): Promise<{ readonly key: string; readonly failures: number; readonly ends_at: string }[]> {
  return query(
    tx,
    `WITH ended AS (
       SELECT key FROM failed_exchanges WHERE ends_at <= :now::timestamptz AND key <> ALL (:keys::text[])
       ORDER BY ends_at LIMIT 1000 FOR UPDATE SKIP LOCKED
     ), forgotten AS (DELETE FROM failed_exchanges WHERE key IN (SELECT key FROM ended))
     INSERT INTO failed_exchanges AS f (key, failures, ends_at)
     SELECT key, 1, :endsAt::timestamptz FROM unnest(:keys::text[]) AS key
     ON CONFLICT (key) DO UPDATE SET
       failures = CASE WHEN f.ends_at <= :now::timestamptz THEN 1 ELSE f.failures + 1 END,
       ends_at = CASE WHEN f.ends_at <= :now::timestamptz THEN excluded.ends_at ELSE f.ends_at END
     RETURNING key, failures, ends_at`,
    given,
  );
}

/** Adds to counts of a minute, from nothing where one has ended, and forgets some that ended. Gives the totals. */
export function addRequestCounts(
  tx: Transaction,
  given: { readonly keys: readonly string[]; readonly requests: readonly number[]; readonly seconds: number },
): Promise<{ readonly key: string; readonly requests: number; readonly milliseconds: number }[]> {
  return query(
    tx,
    `WITH ended AS (
       SELECT key FROM request_counts WHERE ends_at <= now() AND key <> ALL (:keys::text[])
       ORDER BY ends_at LIMIT 1000 FOR UPDATE SKIP LOCKED
     ), forgotten AS (DELETE FROM request_counts WHERE key IN (SELECT key FROM ended))
     INSERT INTO request_counts AS c (key, requests, ends_at)
     SELECT key, requests, now() + :seconds::integer * interval '1 second'
     FROM unnest(:keys::text[], :requests::integer[]) AS added (key, requests)
     -- In one order, so that servers do not wait for each other in a circle.
     ORDER BY key
     ON CONFLICT (key) DO UPDATE SET
       requests = CASE WHEN c.ends_at <= now() THEN excluded.requests ELSE c.requests + excluded.requests END,
       ends_at = CASE WHEN c.ends_at <= now() THEN excluded.ends_at ELSE c.ends_at END
     RETURNING key, requests, (extract(epoch FROM ends_at - now()) * 1000)::float8 AS milliseconds`,
    given,
  );
}
