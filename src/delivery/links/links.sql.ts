/** Stores links made at a payment processor: intents, attempts, objects, closings, and links that wait. */
import { execute, executing, query, querying, queryingOne, queryingValue, Transaction } from '#database/transaction';
import { HAS_CHANGED_CHECKOUT } from '#delivery/checkouts/checkouts.sql';

/** The latest version of a document's link, and the document's current amounts. */
export type LinkFacts = Readonly<{
  document_id: number;
  number: string;
  partner_id: string;
  month: string;
  currency: string;
  payable: boolean;
  status: 'open' | 'paid' | 'void';
  balance: string;
  installation_id: string;
  /** The latest version; null if no link was ever intended. */
  version: number | null;
  provider: string | null;
  amount: string | null;
  request: Readonly<Record<string, unknown>> | null;
  intended_at: string | null;
  closed: boolean;
  provider_id: string | null;
  url: string | null;
  attempt: number | null;
  idempotency_key: string | null;
  attempted_at: string | null;
  /** A refusal or limit noted within the last day, with the link that was wanted then. */
  noted: Readonly<{ kind: WaitKind; reason: string; wanted: string }> | null;
  waited_seconds: number | null;
  is_ordered: boolean;
  /** Whether its only session was completed without money. */
  is_used_up: boolean;
  /** Whether an open session for several invoices asks for another amount than the balance. */
  has_changed_checkout: boolean;
}>;

export type WaitKind = 'limit' | 'refused' | 'unavailable';

/** A refusal of the processor stays valid for a day, unless a different link is wanted sooner. */
const REFUSAL_STANDS = `interval '1 day'`;

const USED_UP = `(SELECT document_id, version FROM payment_link_orders
     UNION ALL SELECT document_id, version FROM payment_link_outcomes WHERE outcome = 'failed')`;

export const readLinkFacts = queryingOne<LinkFacts, { documentId: number }>(`
  SELECT d.document_id, d.number, d.partner_id, d.month, d.currency, b.status, b.balance,
         d.document = 'invoice' AND b.status = 'open' AND b.balance > 0 AS payable,
         (SELECT installation_id FROM installation) AS installation_id,
         i.version, i.provider, i.amount, i.request, i.intended_at, c.version IS NOT NULL AS closed,
           o.provider_id, o.url,
         a.attempt, a.idempotency_key, a.attempted_at,
         CASE WHEN w.kind <> 'unavailable' AND w.noted_at > now() - ${REFUSAL_STANDS}
              THEN json_build_object('kind', w.kind, 'reason', w.reason, 'wanted', w.wanted) END AS noted,
         extract(epoch FROM now() - w.since)::float8 AS waited_seconds,
         EXISTS (SELECT FROM ordered_payments x WHERE x.document_id = d.document_id) AS is_ordered,
         EXISTS (SELECT FROM ${USED_UP} AS x WHERE (x.document_id, x.version) = (i.document_id, i.version))
           AS is_used_up,
         ${HAS_CHANGED_CHECKOUT} AS has_changed_checkout
  FROM documents d
  JOIN document_balances b ON b.document_id = d.document_id
  LEFT JOIN LATERAL (
    SELECT * FROM payment_link_intents i WHERE i.document_id = d.document_id
      ORDER BY version DESC LIMIT 1) AS i ON true
  LEFT JOIN payment_link_closings c ON c.document_id = i.document_id AND c.version = i.version
  LEFT JOIN payment_link_objects o ON o.document_id = i.document_id AND o.version = i.version
  LEFT JOIN LATERAL (
    SELECT * FROM payment_link_attempts a WHERE a.document_id = i.document_id AND a.version = i.version
    ORDER BY attempt DESC LIMIT 1) AS a ON true
  LEFT JOIN payment_link_waits w ON w.document_id = d.document_id
  WHERE d.document_id = :documentId`);

type Intent = Readonly<{
  documentId: number;
  version: number;
  provider: string;
  amount: string;
  currency: string;
  request: object;
  key: string;
  now: string;
}>;

/**
 * Records the link before the processor is called. If another worker recorded the same version first, the next read
 * finds its link.
 */
export async function recordIntent(tx: Transaction, intent: Intent) {
  const recorded = await execute(
    tx,
    `INSERT INTO payment_link_intents (document_id, version, provider, amount, currency, request, intended_at)
     VALUES (:documentId, :version, :provider, :amount, :currency, :request::jsonb, :now)
     ON CONFLICT (document_id, version) DO NOTHING`,
    intent,
  );
  if (recorded === 1) await recordAttempt(tx, { ...intent, attempt: 1 });
}

// Workers on the same document write identical rows. Both tables have two unique indexes. ON CONFLICT names none,
// because PostgreSQL would then tolerate a concurrent insert only for that one.

export const recordAttempt = executing<{
  documentId: number;
  version: number;
  attempt: number;
  key: string;
  now: string;
}>(`
  INSERT INTO payment_link_attempts (document_id, version, attempt, idempotency_key, attempted_at)
  VALUES (:documentId, :version, :attempt, :key, :now)
  ON CONFLICT DO NOTHING`);

export const recordObject = executing<{
  documentId: number;
  version: number;
  providerId: string;
  url: string;
  found: boolean;
  now: string;
}>(`
  INSERT INTO payment_link_objects (document_id, version, provider_id, url, found, created_at)
  VALUES (:documentId, :version, :providerId, :url, :found, :now)
  ON CONFLICT DO NOTHING`);

export type ClosingReason = 'void' | 'paid' | 'amount_changed' | 'used_up' | 'ordered' | 'refused' | 'not_made';

export const recordClosing = executing<{
  documentId: number;
  version: number;
  why: ClosingReason;
  detail: string | null;
  sessionsExpired: number;
  now: string;
}>(`
  INSERT INTO payment_link_closings (document_id, version, why, detail, sessions_expired, closed_at)
  VALUES (:documentId, :version, :why, :detail, :sessionsExpired, :now)
  ON CONFLICT (document_id, version) DO NOTHING`);

/** Whether any of these links was recorded well before an instant, by any machine's clock. */
export const isAnyOlder = queryingValue<boolean, { providerIds: readonly string[]; than: string }>(`
  SELECT EXISTS (SELECT FROM payment_link_objects
    WHERE provider_id = ANY (:providerIds)
      AND created_at < :than::timestamptz - interval '1 hour') AS older`);

/** Notes why the link is not in the wanted state. `since` stays the same while the same link is wanted. */
export const noteWait = executing<{ documentId: number; kind: WaitKind; reason: string; wanted: string }>(`
  INSERT INTO payment_link_waits AS w (document_id, kind, reason, wanted)
  VALUES (:documentId, :kind, :reason, :wanted)
  ON CONFLICT (document_id) DO UPDATE SET
    kind = excluded.kind, reason = excluded.reason, wanted = excluded.wanted, noted_at = now(),
    since = CASE WHEN w.wanted = excluded.wanted THEN w.since ELSE now() END`);

export const clearWait = executing<{ documentId: number }>(
  `DELETE FROM payment_link_waits WHERE document_id = :documentId`,
);

// --- Due work ---

const OPEN_INTENTS = `
  SELECT i.document_id, i.version, i.amount, o.provider_id
  FROM payment_link_intents i
  LEFT JOIN payment_link_objects o ON o.document_id = i.document_id AND o.version = i.version
  WHERE NOT EXISTS (SELECT FROM payment_link_closings c WHERE c.document_id = i.document_id AND c.version = i.version)`;

const STANDING_REFUSAL = `
  SELECT document_id FROM payment_link_waits WHERE kind <> 'unavailable' AND noted_at > now() - ${REFUSAL_STANDS}`;

/** Whether link `i` of a document with balance `b` must not be paid any more. */
const MUST_CLOSE = `b.status <> 'open' OR b.balance <> i.amount
       OR EXISTS (SELECT FROM ordered_payments x WHERE x.document_id = i.document_id)
       OR EXISTS (SELECT FROM ${USED_UP} AS x WHERE (x.document_id, x.version) = (i.document_id, i.version))`;

/**
 * The kinds of work that links may need. Without a key of the processor, nothing can be done. With a key, links are
 * ended, and links are made if they are wanted.
 */
export type LinkWork = 'nothing' | 'end' | 'make';

/**
 * Documents whose link is incomplete, active for an outdated amount, or missing although links are wanted. Those with a
 * current refusal are skipped.
 */
export const linksOutOfSync = (work: Exclude<LinkWork, 'nothing'>) => `
  SELECT i.document_id
  FROM (${OPEN_INTENTS}) AS i JOIN document_balances b ON b.document_id = i.document_id
  WHERE (i.provider_id IS NULL OR ${MUST_CLOSE})
    AND i.document_id NOT IN (${STANDING_REFUSAL})
  ${
    work === 'make'
      ? `UNION
  SELECT d.document_id
  FROM documents d JOIN document_balances b ON b.document_id = d.document_id
  WHERE d.document = 'invoice' AND d.gross > d.credit_applied AND b.status = 'open' AND b.balance > 0
    AND NOT EXISTS (SELECT FROM (${OPEN_INTENTS}) AS i WHERE i.document_id = d.document_id)
    AND d.document_id NOT IN (${STANDING_REFUSAL})
    AND NOT EXISTS (SELECT FROM ordered_payments x WHERE x.document_id = d.document_id)`
      : ''
  }`;

export type LinkTrouble = Readonly<{
  number: string;
  /** Whether it is still active although the balance has changed. */
  active: boolean;
  kind: WaitKind | null;
  reason: string | null;
  waited_seconds: number;
}>;

/**
 * Links that wait, and links that are active but must not be. Amounts outside the processor's limits are not a problem.
 */
export const readLinkTroubles = querying<LinkTrouble>(`
  WITH wrong AS (
    SELECT i.document_id FROM (${OPEN_INTENTS}) AS i JOIN document_balances b ON b.document_id = i.document_id
    WHERE i.provider_id IS NOT NULL AND (${MUST_CLOSE})
  )
  SELECT d.number, wrong.document_id IS NOT NULL AS active, w.kind, w.reason,
         coalesce(extract(epoch FROM now() - w.since), 0)::float8 AS waited_seconds
  FROM wrong
  FULL JOIN (SELECT * FROM payment_link_waits WHERE kind <> 'limit') AS w ON w.document_id = wrong.document_id
  JOIN documents d ON d.document_id = coalesce(wrong.document_id, w.document_id)
  ORDER BY d.series, d.sequence`);

export async function readLinkTokens(tx: Transaction, documents: readonly { readonly document_id: number }[]) {
  const links = await query<{ document_id: number; token: string }>(
    tx,
    `SELECT document_id, token FROM current_links WHERE token IS NOT NULL AND document_id = ANY (:ids)`,
    { ids: documents.map(({ document_id }) => document_id) },
  );
  return new Map(links.map(({ document_id, token }) => [document_id, token]));
}
