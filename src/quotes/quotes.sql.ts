import {
  columnsOf,
  constraintOf,
  execute,
  executing,
  insertInto,
  prepared,
  query,
  queryingFirst,
  Transaction,
} from '#database/transaction';
import { Ground } from '#ledger/cancellation';
import { ROW_FACTS, RowFacts } from '#ledger/row';
import { Acceptance, addAcceptances, OrderFacts } from '#ledger/rows.sql';
import { ZoneMonth } from '#ledger/zone-months';
import { clientLives } from '#partners/clients.sql';
import { Actor } from '#people/audit-events';
import { Terms } from './price.ts';

export type Caller = Readonly<{
  partnerId: string;
  clientId: string;
}>;

/** The highest total price of a quote of this policy, in the partner's currency; null if the policy has no limit. */
export type PolicyLimit = Readonly<{
  largest_price: string | null;
  partner_currency: string;
}>;

/** The terms of a policy's quotes at an instant. The rates are null if the policy has no price. */
type PolicyTerms = PolicyLimit &
  Readonly<{
    currency: string;
    price_rate: string | null;
    price_minimum: string | null;
    partner_cut_rate: string;
    partner_inactive: boolean;
    policy_inactive: boolean;
  }>;

export const readPolicyTerms = queryingFirst<PolicyTerms, { partnerId: string; policyId: string; now: string }>(`
  SELECT p.currency, p.currency AS partner_currency, o.price_rate, o.price_minimum, o.largest_price,
         cut_rate_on(o, (:now::timestamptz AT TIME ZONE p.time_zone)::date) AS partner_cut_rate,
         coalesce(p.inactive_since <= :now, false) AS partner_inactive,
         coalesce(o.inactive_since <= :now, false) AS policy_inactive
  FROM policies o JOIN partners p USING (partner_id)
  WHERE o.partner_id = :partnerId AND o.policy_id = :policyId`);

/** Whether the partner uses a connected account in the month of an ISO instant, in the partner's time zone. */
export async function isConnected(tx: Transaction, facts: { partnerId: string; now: string }) {
  const [found] = await query<{ arrangement: string }>(
    tx,
    `SELECT a.arrangement
     FROM partners p JOIN partner_arrangements a USING (partner_id)
     WHERE p.partner_id = :partnerId
       AND a.from_month <= to_char(:now::timestamptz AT TIME ZONE p.time_zone, 'YYYY-MM') COLLATE "C"
     ORDER BY a.from_month DESC LIMIT 1`,
    facts,
  );
  return found?.arrangement === 'connected_account';
}

export type QuoteFacts = Terms &
  OrderFacts &
  Readonly<{
    quote_id: string;
    partner_id: string;
    policy_id: string;
    insured_amount: string;
    spot_price: string;
    partner_cut: string;
    invoice_amount: string;
    quoted_at: string;
    expires_at: string | null;
  }>;

/** A quote with the sums of its ledger rows and all facts that its acceptance depends on. */
export type QuoteState = QuoteFacts &
  PolicyLimit &
  Readonly<{
    time_zone: string;
    partner_inactive: boolean;
    policy_inactive: boolean;
    enrollment_id: string | null;
    accepted_at: string | null;
    imported: boolean;
    /** Whether the ledger row of the acceptance is in the archive, so that the sums lack it. */
    archived: boolean;
    reversed: boolean;
    /** The last accepted price: the quote's own, plus the increments of all accepted requotes. */
    accepted_spot_price: string;
    accepted_partner_cut: string;
    accepted_invoice_amount: string;
    steps: number;
  }>;

/** A client's request for a quote, by the id of the quote or of a requote, at an ISO instant. */
type AskedQuote = Caller & { readonly now: string } & ({ readonly quoteId: string } | { readonly requoteId: string });

type Nullable<Row> = { readonly [Column in keyof Row]: Row[Column] | null };

/** The enrollment of a quote that the API accepts. Thus an acceptance can be answered again without its ledger row. */
export const enrollmentOf = (quoteId: string) => `e-${quoteId.slice(2)}`;
const enrollment = (offer: string) => `coalesce(e.enrollment_id, 'e-' || substr(${offer}.quote_id, 3))`;

/** The time of an acceptance. If its row is archived, that of its event, which has the same time. */
const acceptedAt = (offer: string, event: string) => `coalesce(e.accepted_at, (
               SELECT v.occurred_at FROM audit_events v
               WHERE v.subject = ${offer}.quote_id AND v.action = ${event} LIMIT 1))`;
const QUOTE_ACCEPTED_AT = acceptedAt('q', `'quote.accept'`);
const REQUOTE_ACCEPTED_AT = acceptedAt('r', `'requote.accept' AND v.details ->> 'requote_id' = r.requote_id`);

const OF_QUOTE = `quote_id, partner_id, policy_id, currency, insured_amount, price_rate, price_minimum,
  partner_cut_rate, spot_price, partner_cut, invoice_amount, quoted_at, expires_at, order_reference, cover_from, cover_to`;

const READ_QUOTES = prepared(
  'read_quotes',
  // LIMIT forces one index lookup for each quote: 16 quotes take 0.4 ms. Without LIMIT, and with old statistics,
  // PostgreSQL scanned the tables, and 7 quotes took 3.8 ms.
  `
    SELECT ${clientLives('w."clientId"', 'w."partnerId"')} AS client_lives, f.*
    FROM ROWS FROM (
      json_to_recordset(:asked::json) AS (
        "partnerId" text, "clientId" text, "quoteId" text, "requoteId" text, now timestamptz)
    ) WITH ORDINALITY AS w ("partnerId", "clientId", "quoteId", "requoteId", now, nth)
    LEFT JOIN LATERAL (
      SELECT ${columnsOf('q', OF_QUOTE)}, p.time_zone, o.largest_price, p.currency AS partner_currency,
             coalesce(p.inactive_since <= w.now, false) AS partner_inactive,
             coalesce(o.inactive_since <= w.now, false) AS policy_inactive,
             CASE WHEN a.quote_id IS NOT NULL THEN ${enrollment('q')} END AS enrollment_id,
             CASE WHEN a.quote_id IS NOT NULL THEN ${QUOTE_ACCEPTED_AT} END AS accepted_at,
             a.quote_id IS NULL AND e.entry_id IS NOT NULL AS imported,
             a.quote_id IS NOT NULL AND e.entry_id IS NULL AS archived,
             coalesce(l.reversals, 0) > 0 AS reversed,
             coalesce(e.spot_price, 0) + coalesce(l.spot_price, 0) AS accepted_spot_price,
             coalesce(e.partner_cut, 0) + coalesce(l.partner_cut, 0) AS accepted_partner_cut,
             coalesce(e.invoice_amount, 0) + coalesce(l.invoice_amount, 0) AS accepted_invoice_amount,
             (SELECT coalesce(max(r.step), 0) FROM requote_acceptances r WHERE r.quote_id = q.quote_id) AS steps
      FROM quotes q
      JOIN partners p ON p.partner_id = q.partner_id
      JOIN policies o ON o.partner_id = q.partner_id AND o.policy_id = q.policy_id
      LEFT JOIN quote_acceptances a ON a.quote_id = q.quote_id
      LEFT JOIN ledger_rows e ON e.partner_id = q.partner_id AND e.kind = 'quote_accepted'
        AND own_id(e) = q.quote_id
      CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE x.kind = 'reversal') AS reversals,
               sum(x.spot_price) FILTER (WHERE x.kind <> 'reversal') AS spot_price,
               sum(x.partner_cut) FILTER (WHERE x.kind <> 'reversal') AS partner_cut,
               sum(x.invoice_amount) FILTER (WHERE x.kind <> 'reversal') AS invoice_amount
        FROM ledger_rows x
        WHERE x.partner_id = q.partner_id AND x.quote_id = q.quote_id AND x.kind <> 'quote_accepted') AS l
      WHERE q.quote_id = coalesce(
              w."quoteId" COLLATE "C",
              (SELECT r.quote_id FROM requotes r WHERE r.requote_id = w."requoteId" COLLATE "C"))
        AND q.partner_id = w."partnerId" COLLATE "C"
      LIMIT 1) AS f ON true
    ORDER BY w.nth`,
);

/**
 * For each request, in order: the quote, and whether the client is live. The quote of a different partner is undefined,
 * like an unknown quote.
 */
export async function readQuotes(tx: Transaction, asked: readonly AskedQuote[]) {
  const rows = await query<{ client_lives: boolean } & Nullable<QuoteState>>(tx, READ_QUOTES, {
    asked: JSON.stringify(asked),
  });
  return rows.map(({ client_lives, ...quote }) => ({
    client_lives,
    quote: quote.quote_id === null ? undefined : (quote as QuoteState),
  }));
}

/** Whether a file of an archived month may have rows of this partner. */
export async function hasArchivedRows(tx: Transaction, partnerId: string) {
  const found = await query(
    tx,
    'SELECT FROM archived_files WHERE :partnerId::text COLLATE "C" BETWEEN partner_from AND partner_to LIMIT 1',
    { partnerId },
  );
  return found.length > 0;
}

export const insertQuote = executing<QuoteFacts & { client_id: string }>(
  insertInto('quotes', `${OF_QUOTE}, client_id`),
);

export type RequoteFacts = OrderFacts &
  Readonly<{
    requote_id: string;
    quote_id: string;
    partner_id: string;
    step: number;
    currency: string;
    insured_amount: string;
    accepted_spot_price: string;
    accepted_partner_cut: string;
    accepted_invoice_amount: string;
    spot_price: string;
    partner_cut: string;
    invoice_amount: string;
    requoted_at: string;
    expires_at: string | null;
  }>;

export type RequoteState = RequoteFacts &
  Readonly<{
    enrollment_id: string | null;
    accepted_at: string | null;
    imported: boolean;
  }>;

const OF_REQUOTE = `requote_id, quote_id, partner_id, step, currency, insured_amount, accepted_spot_price,
  accepted_partner_cut, accepted_invoice_amount, spot_price, partner_cut, invoice_amount, requoted_at, expires_at,
  order_reference, cover_from, cover_to`;

const READ_REQUOTES = prepared(
  'read_requotes',
  `
    SELECT f.*
    FROM json_populate_recordset(NULL::requotes, :asked::json) AS w
    CROSS JOIN LATERAL (
      SELECT ${columnsOf('r', OF_REQUOTE)},
             CASE WHEN a.requote_id IS NOT NULL THEN ${enrollment('r')} END AS enrollment_id,
             CASE WHEN a.requote_id IS NOT NULL THEN ${REQUOTE_ACCEPTED_AT} END AS accepted_at,
             a.requote_id IS NULL AND e.entry_id IS NOT NULL AS imported
      FROM requotes r
      LEFT JOIN requote_acceptances a ON a.requote_id = r.requote_id
      LEFT JOIN ledger_rows e ON e.partner_id = r.partner_id AND e.kind = 'requote_accepted'
        AND own_id(e) = r.requote_id
      WHERE r.requote_id = w.requote_id AND r.partner_id = w.partner_id
      LIMIT 1) AS f`,
);

/** Reads requotes, keyed by `partner requote`. Unknown requotes and requotes of other partners are omitted. */
export async function readRequotes(
  tx: Transaction,
  asked: readonly { partnerId: string; requoteId: string }[],
): Promise<ReadonlyMap<string, RequoteState>> {
  if (asked.length === 0) return new Map();
  const rows = await query<RequoteState>(tx, READ_REQUOTES, {
    asked: JSON.stringify(asked.map(({ partnerId, requoteId }) => ({ partner_id: partnerId, requote_id: requoteId }))),
  });
  return new Map(rows.map((requote) => [`${requote.partner_id} ${requote.requote_id}`, requote]));
}

export const insertRequote = executing<RequoteFacts & { client_id: string }>(
  insertInto('requotes', `${OF_REQUOTE}, client_id`),
);

/** `step` is the number of the requote within its quote; null for the quote itself. */
type NewAcceptance = Acceptance &
  Readonly<{
    clientId: string;
    step: number | null;
  }>;

const RECORD_ACCEPTANCES = prepared(
  'record_acceptances',
  `
    WITH wanted AS MATERIALIZED (
      SELECT * FROM json_to_recordset(:acceptances::json) AS w (
        kind text, "partnerId" text, "clientId" text, "quoteId" text, "requoteId" text, step integer,
        "enrollmentId" text, "policyId" text, currency text, "acceptedAt" timestamptz, "spotPrice" numeric,
        "partnerCut" numeric, "invoiceAmount" numeric, "recordedAt" timestamptz, order_reference text, cover_from date,
        cover_to date)
    ), standing AS MATERIALIZED (
      -- An import may have reversed or raised the quote since the requote was made.
      SELECT w.* FROM wanted w
      WHERE w.step IS NULL OR EXISTS (
        SELECT FROM requotes r
        JOIN ledger_rows e ON e.partner_id = r.partner_id AND e.kind = 'quote_accepted'
          AND own_id(e) = r.quote_id
        CROSS JOIN LATERAL (
          SELECT count(*) FILTER (WHERE x.kind = 'reversal') AS reversals, coalesce(sum(x.spot_price), 0) AS spot_price,
                 coalesce(sum(x.partner_cut), 0) AS partner_cut
          FROM ledger_rows x
          WHERE x.partner_id = r.partner_id AND x.quote_id = r.quote_id AND x.kind <> 'quote_accepted') AS l
        WHERE r.requote_id = w."requoteId" COLLATE "C" AND l.reversals = 0
          AND (r.accepted_spot_price, r.accepted_partner_cut)
              = (e.spot_price + l.spot_price, e.partner_cut + l.partner_cut))
    ), ${addAcceptances('standing', ':zoneMonths', ':partnerIds')}, events AS (
      INSERT INTO audit_events (event_id, occurred_at, action, subject, details, claimed_by, os_user, host, via)
      OVERRIDING SYSTEM VALUE
      SELECT a.event_id, a.recorded_at, CASE WHEN a.requote_id IS NULL THEN 'quote.accept' ELSE 'requote.accept' END,
             a.quote_id,
             jsonb_strip_nulls(jsonb_build_object('client_id', w."clientId", 'partner_id', a.partner_id,
                                                  'requote_id', a.requote_id)),
             :claimedBy, :osUser, :host, :via
      FROM added a
      JOIN wanted w ON a.quote_id = w."quoteId" COLLATE "C" AND a.requote_id IS NOT DISTINCT FROM w."requoteId"
      ORDER BY a.event_id
    ), of_quotes AS (
      INSERT INTO quote_acceptances (quote_id, partner_id, client_id, posted_month, entry_id)
      SELECT a.quote_id, a.partner_id, w."clientId", a.posted_month, a.entry_id
      FROM added a JOIN wanted w ON a.quote_id = w."quoteId" COLLATE "C" AND w.step IS NULL
      WHERE a.requote_id IS NULL
    ), of_requotes AS (
      INSERT INTO requote_acceptances (quote_id, step, requote_id, partner_id, client_id, posted_month, entry_id)
      SELECT a.quote_id, w.step, a.requote_id, a.partner_id, w."clientId", a.posted_month, a.entry_id
      FROM added a JOIN wanted w ON a.requote_id = w."requoteId" COLLATE "C"
      ORDER BY a.quote_id
    )
    SELECT kind, coalesce(requote_id, quote_id) AS own_id FROM added`,
);

/**
 * Records the ledger rows, acceptances and events of different quotes in one statement. The caller must hold the
 * ledger's lock. Returns the `kind id` of each recorded row (see addAcceptances). Fails with isOvertaken if a different
 * requote of a quote was accepted at the same step. Waits while such an acceptance is in progress.
 */
export async function recordAcceptances(
  tx: Transaction,
  actor: Actor,
  zoneMonths: readonly ZoneMonth[],
  acceptances: readonly NewAcceptance[],
): Promise<ReadonlySet<string>> {
  const recorded = await query<{ kind: string; own_id: string }>(tx, RECORD_ACCEPTANCES, {
    acceptances: JSON.stringify(acceptances),
    zoneMonths: JSON.stringify(zoneMonths),
    partnerIds: [...new Set(acceptances.map(({ partnerId }) => partnerId))],
    ...actor,
  });
  return new Set(recorded.map(({ kind, own_id: ownId }) => `${kind} ${ownId}`));
}

export const isOvertaken = (error: unknown) => constraintOf(error) === 'requote_one_accepted_per_step';

// --- Reversals ---

export type ReversalRow = Omit<RowFacts, 'reversal_id'> &
  Readonly<{
    reversal_id: string;
    ground: Ground;
    /** Whether the request stated the amounts. */
    stated: boolean;
  }>;

export const readReversal = queryingFirst<ReversalRow, { partnerId: string; reversalId: string }>(`
  SELECT ${columnsOf('e', ROW_FACTS)}, g.ground, NOT jsonb_exists(a.details, 'all_that_is_given') AS stated
  FROM ledger_rows e JOIN reversal_grounds g USING (partner_id, reversal_id)
  JOIN audit_events a ON a.event_id = e.event_id
  WHERE e.partner_id = :partnerId AND e.kind = 'reversal' AND own_id(e) = :reversalId`);

// --- Idempotency keys ---

type KeptAnswer = Readonly<{
  request_sha256: string;
  status: number;
  answer: string;
}>;

export const readKeptAnswer = queryingFirst<KeptAnswer, { partnerId: string; key: string }>(`
  SELECT request_sha256, status, answer FROM idempotency_keys
  WHERE partner_id = :partnerId AND idempotency_key = :key`);

/** Returns false if the key already has an answer. Waits for a concurrent request with the same key. */
export async function keepAnswer(
  tx: Transaction,
  facts: { partnerId: string; key: string; requestSha256: string; status: number; answer: string; now: string },
) {
  const kept = await execute(
    tx,
    `INSERT INTO idempotency_keys (partner_id, idempotency_key, request_sha256, status, answer, recorded_at)
     VALUES (:partnerId, :key, :requestSha256, :status, :answer, :now)
     ON CONFLICT (partner_id, idempotency_key) DO NOTHING`,
    facts,
  );
  return kept === 1;
}
