/** SQL of splits: what was accepted and how its share is routed, what moved on our accounts, and what it was of. */
import { type Issue, OPEN_CREDIT } from '../close/queries.ts';
import { execute, query, queryOne, type Send, type Transaction } from '../database/transaction.ts';
import type { Month } from '../month.ts';
import type { Movement } from '../processors/stripe/balance-transactions.ts';
import type { SettlementLine } from './settlement.ts';

export interface AcceptedRow {
  readonly partner_id: string;
  readonly quote_id: string;
  readonly requote_id: string | null;
  readonly enrollment_id: string | null;
  readonly currency: string;
  readonly accepted_at: string;
  readonly month: Month;
  readonly spot_price: string;
  readonly partner_cut: string;
  readonly invoice_amount: string;
  readonly arrangement: 'invoicing' | 'connected_account';
  /** Those of the row's own month; null under invoicing. */
  readonly split: 'real_time' | 'sequential' | null;
  readonly merchant_of_record: 'platform' | 'third_party' | null;
  readonly connected_account_id: string | null;
}

const ACCEPTED = `e.partner_id, e.quote_id, e.requote_id, e.enrollment_id, e.currency, e.accepted_at, e.month,
            e.spot_price::text, e.partner_cut::text, e.invoice_amount::text, e.arrangement,
            a.split, a.merchant_of_record, a.connected_account_id`;

/** The arrangement of a row's own month. */
const ARRANGED = `LEFT JOIN LATERAL (
       SELECT * FROM partner_arrangements a
       WHERE a.partner_id = e.partner_id AND a.from_month <= e.month COLLATE "C"
       ORDER BY a.from_month DESC LIMIT 1) AS a ON e.arrangement = 'connected_account'`;

/** The acceptances of a quote, its own before those of its requotes; of one partner or of every partner that has such an id. */
export function readAcceptances(
  tx: Transaction,
  { quoteId, partnerId }: { quoteId: string; partnerId?: string | undefined },
): Promise<AcceptedRow[]> {
  return query(
    tx,
    `WITH rows AS (
       SELECT * FROM ledger_rows
       WHERE kind = 'quote_accepted' AND coalesce(reversal_id, requote_id, quote_id) = :quoteId
       UNION ALL
       SELECT * FROM ledger_rows WHERE kind = 'requote_accepted' AND quote_id = :quoteId
     )
     SELECT ${ACCEPTED}
     FROM rows e ${ARRANGED}
     WHERE :partnerId::text IS NULL OR e.partner_id = :partnerId
     ORDER BY e.partner_id, e.kind = 'requote_accepted', e.entry_id`,
    { quoteId, partnerId: partnerId ?? null },
  );
}

const READ_CONNECTED_ACCEPTANCES = {
  name: 'read_connected_acceptances',
  // Most partners have no connected account, and then no row is looked for.
  text: `
    SELECT w.nth, r.*
    FROM ROWS FROM (
      json_to_recordset($1::json) AS ("partnerId" text, kind text, id text)
    ) WITH ORDINALITY AS w ("partnerId", kind, id, nth)
    CROSS JOIN LATERAL (
      SELECT ${ACCEPTED}
      FROM ledger_rows e ${ARRANGED}
      WHERE EXISTS (SELECT FROM partner_arrangements p
                    WHERE p.partner_id = w."partnerId" COLLATE "C" AND p.arrangement = 'connected_account')
        AND e.partner_id = w."partnerId" COLLATE "C" AND e.kind = w.kind
        AND coalesce(e.reversal_id, e.requote_id, e.quote_id) = w.id COLLATE "C"
        AND e.arrangement = 'connected_account'
      LIMIT 1) AS r`,
};

/** Of acceptances, by their place, those under a connected account. */
export async function readConnectedAcceptances(
  send: Send,
  accepted: readonly { partnerId: string; quoteId: string; requoteId: string | null }[],
): Promise<ReadonlyMap<number, AcceptedRow>> {
  const asked = accepted.map(({ partnerId, quoteId, requoteId }) =>
    requoteId === null
      ? { partnerId, kind: 'quote_accepted', id: quoteId }
      : { partnerId, kind: 'requote_accepted', id: requoteId },
  );
  const rows = await send<AcceptedRow & { nth: number }>(READ_CONNECTED_ACCEPTANCES, [JSON.stringify(asked)]);
  return new Map(rows.map(({ nth, ...row }) => [nth - 1, row]));
}

// --- Taking in --------------------------------------------------------------------------------------------------------

const PROCESSOR = '7310::integer, 81::integer';

/**
 * One at a time takes in what moved and says whose it is. Order of the locks, always: this one, then importers, then the
 * ledger (shared, so that no month closes while entries are dated), then payments.
 */
export async function lockProcessor(tx: Transaction): Promise<void> {
  await execute(tx, `SELECT pg_advisory_xact_lock(${PROCESSOR})`);
}

/** What the facts of one act have in common. */
export interface Taking {
  /** ISO instant. */
  readonly now: string;
  readonly eventId: number;
  /** The issuer's, in which days are counted. */
  readonly timeZone: string;
}

/** The partners that have, or had, an account of ours on their platform. Of a standard account there may be several. */
export function readAccountOwners(tx: Transaction, account: string): Promise<{ partner_id: string }[]> {
  return query(
    tx,
    `SELECT DISTINCT partner_id FROM partner_arrangements WHERE connected_account_id = :account ORDER BY partner_id`,
    { account },
  );
}

export interface ConnectedPartner {
  readonly partner_id: string;
  readonly currency: string;
  readonly account: string;
}

/** The connected account of a partner in a month: by the latest arrangement of that kind until then, else by one to come. */
export async function readConnectedPartner(
  tx: Transaction,
  { partnerId, month }: { partnerId: string; month: string },
): Promise<ConnectedPartner | undefined> {
  const rows = await query<ConnectedPartner>(
    tx,
    `SELECT p.partner_id, p.currency, a.connected_account_id AS account
     FROM partners p JOIN partner_arrangements a USING (partner_id)
     WHERE a.connected_account_id IS NOT NULL AND p.partner_id = :partnerId
     ORDER BY a.from_month <= :month COLLATE "C" DESC, a.from_month DESC LIMIT 1`,
    { partnerId, month },
  );
  return rows[0];
}

/** Every account of ours that any arrangement has or had: money still comes to one that another has followed. */
export function readConnectedAccounts(tx: Transaction): Promise<{ account: string }[]> {
  return query(
    tx,
    `SELECT DISTINCT connected_account_id AS account FROM partner_arrangements
     WHERE connected_account_id IS NOT NULL ORDER BY account`,
    {},
  );
}

/** Movements of these that are kept already with another currency or amount; a balance transaction never changes. */
export function findChangedMovements(
  tx: Transaction,
  account: string,
  movements: readonly Movement[],
): Promise<{ id: string; net: string; currency: string }[]> {
  return query(
    tx,
    `SELECT m.id, m.net::text, m.currency
     FROM json_to_recordset(:movements::json) AS n (id text, currency text, amount numeric, net numeric)
     JOIN balance_transactions m ON m.account = :account AND m.id = n.id
     WHERE (m.currency, m.amount, m.net) <> (n.currency, n.amount, n.net)
     ORDER BY m.id`,
    { account, movements: JSON.stringify(movements) },
  );
}

/** Keeps movements, each once, and says how many are new. */
export function insertMovements(
  tx: Transaction,
  account: string,
  movements: readonly Movement[],
  taking: Taking,
): Promise<number> {
  return execute(
    tx,
    `INSERT INTO balance_transactions (
       account, id, reported_by, type, kind, currency, amount, fee, net, moved_at, payment, of_payment, transfer, quote_id,
       requote_id, enrollment_id, payload, recorded_at, event_id)
     SELECT :account, n.id, 'processor', n.type, n.kind, n.currency, n.amount, n.fee, n.net, n.moved_at, n.payment,
            n.of_payment, n.transfer, n.quote_id, n.requote_id, n.enrollment_id, n.payload::jsonb,
            :now::timestamptz, :eventId::bigint
     FROM json_to_recordset(:movements::json) AS n (
       id text, type text, kind text, currency text, amount numeric, fee numeric, net numeric, moved_at timestamptz,
       payment text, of_payment text, transfer text, quote_id text, requote_id text, enrollment_id text, payload text)
     ORDER BY n.moved_at, n.id
     ON CONFLICT ON CONSTRAINT balance_transaction_once DO NOTHING`,
    { account, movements: JSON.stringify(movements), ...taking },
  );
}

/** Keeps a settlement file; undefined where this very file was kept before. */
export async function insertSettlementFile(
  tx: Transaction,
  file: { partnerId: string; sha256: string; name: string; lines: number },
  taking: Taking,
): Promise<number | undefined> {
  const rows = await query<{ settlement_file_id: number }>(
    tx,
    `INSERT INTO settlement_files (partner_id, sha256, name, lines, recorded_at, event_id)
     VALUES (:partnerId, :sha256, :name, :lines, :now::timestamptz, :eventId::bigint)
     ON CONFLICT ON CONSTRAINT settlement_file_once DO NOTHING RETURNING settlement_file_id`,
    { ...file, ...taking },
  );
  return rows[0]?.settlement_file_id;
}

const LINES = `json_to_recordset(:lines::json) AS n (
       line bigint, quote_id text, requote_id text, reversal_id text, transfer text, payment text, kind text,
       currency text, amount numeric, refunded numeric, moved_at timestamptz)`;

// Two lines of a quote tell of the same money where both name its payment, or the transfer that brought it: one may know
// less of it than the other. What was pulled back by several reversals of one transfer is each its own.
const SAME_LINE = `l.quote_id = n.quote_id AND l.requote_id IS NOT DISTINCT FROM n.requote_id AND (
         (l.payment, l.transfer) IS NOT DISTINCT FROM (n.payment, n.transfer)
         OR ((l.kind, sign(l.amount)) = (n.kind, sign(n.amount)) AND (
           (l.payment = n.payment AND coalesce(l.transfer, n.transfer) IS NOT DISTINCT FROM coalesce(n.transfer, l.transfer))
           OR (l.transfer = n.transfer AND n.amount > 0 AND num_nulls(l.payment, n.payment) > 0))))`;

/** Lines of these of whose money lines that are kept, or that stand above them, tell another amount, kind or currency. */
export function findChangedSettlementLines(
  tx: Transaction,
  partnerId: string,
  lines: readonly SettlementLine[],
): Promise<{ line: number; known: string }[]> {
  return query(
    tx,
    `WITH told AS (SELECT * FROM ${LINES})
     SELECT DISTINCT ON (n.line) n.line, format('%s %s', l.currency, l.amount) AS known
     FROM told n
     JOIN (SELECT 0 AS line, quote_id, requote_id, transfer, payment, kind, currency, amount FROM settlement_lines
           WHERE partner_id = :partnerId
           UNION ALL
           SELECT line, quote_id, requote_id, transfer, payment, kind, currency, amount FROM told) AS l
       ON l.line < n.line AND ${SAME_LINE}
     WHERE (l.kind, l.currency, l.amount) <> (n.kind, n.currency, n.amount)
     ORDER BY n.line, l.line`,
    { partnerId, lines: JSON.stringify(lines) },
  );
}

/** Keeps the lines of whose money no line tells yet, and says how many. */
export function insertSettlementLines(
  tx: Transaction,
  file: { fileId: number; partnerId: string },
  lines: readonly SettlementLine[],
): Promise<number> {
  return execute(
    tx,
    `WITH told AS (SELECT * FROM ${LINES})
     INSERT INTO settlement_lines (
       settlement_file_id, line, partner_id, quote_id, requote_id, reversal_id, transfer, payment, kind, currency, amount,
       refunded, moved_at)
     SELECT :fileId, n.line, :partnerId, n.quote_id, n.requote_id, n.reversal_id, n.transfer, n.payment, n.kind,
            n.currency, trim_scale(n.amount), n.refunded, n.moved_at
     FROM told n
     WHERE NOT EXISTS (SELECT FROM settlement_lines l WHERE l.partner_id = :partnerId AND ${SAME_LINE})
       AND NOT EXISTS (SELECT FROM told l WHERE l.line < n.line AND ${SAME_LINE})
     ORDER BY n.line
     ON CONFLICT ON CONSTRAINT settlement_line_once DO NOTHING`,
    { ...file, lines: JSON.stringify(lines) },
  );
}

// Two tellers tell of the same money: a file may name its payment, its transfer or both. What was pulled back may name
// the transfer of the share that it is of, and is other money. Each side is looked for in a set that is hashed once.
const alsoTold = (one: string, same: readonly string[], tellings: string) =>
  (['payment', 'transfer'] as const)
    .map((id) => {
      const tuple = (of: string, named: string) => [
        ...same.map((each) => `${of}.${each}`),
        named,
        `sign(${of}.amount)`,
      ];
      return `(${tuple(one, `coalesce(${one}.${id}, '')`).join(', ')}) IN (
           SELECT ${tuple('told', `told.${id}`).join(', ')} FROM balance_transactions told
           WHERE told.${id} IS NOT NULL AND ${tellings})`;
    })
    .join('\n         OR ');

/**
 * Where the processor lets us read nothing, each line of the partner's files is a movement: those of earlier files, too,
 * from the time when it was read, unless the processor told of them itself. It is on the account under which what it names
 * was accepted (its requote, else the last of its quote before the money moved), whichever the partner has now; of a
 * quote that is not known, on the account of its own month.
 */
export function insertToldMovements(
  tx: Transaction,
  whose: { partnerId: string; account: string },
  taking: Taking,
): Promise<number> {
  return execute(
    tx,
    `WITH tellers AS (
       SELECT DISTINCT ON (connected_account_id) connected_account_id AS account, balance_transactions_from
       FROM partner_arrangements
       WHERE partner_id = :partnerId AND connected_account_id IS NOT NULL
       ORDER BY connected_account_id, from_month DESC
     ), lines AS (
       SELECT l.*, coalesce(a.connected_account_id, :account) AS account
       FROM settlement_lines l
       CROSS JOIN LATERAL (SELECT coalesce(l.moved_at, :now::timestamptz) AS at) AS moved
       LEFT JOIN LATERAL (
         SELECT e.month FROM (
           SELECT month, arrangement, requote_id, accepted_at FROM ledger_rows
           WHERE partner_id = l.partner_id AND kind = 'quote_accepted' AND coalesce(reversal_id, requote_id, quote_id) = l.quote_id
           UNION ALL
           SELECT month, arrangement, requote_id, accepted_at FROM ledger_rows
           WHERE partner_id = l.partner_id AND kind = 'requote_accepted' AND quote_id = l.quote_id) AS e
         WHERE e.arrangement = 'connected_account'
         ORDER BY e.requote_id = l.requote_id DESC NULLS LAST, e.accepted_at <= moved.at DESC,
                  CASE WHEN e.accepted_at <= moved.at THEN e.accepted_at END DESC, e.accepted_at
         LIMIT 1) AS accepted ON true
       LEFT JOIN LATERAL (
         SELECT p.connected_account_id FROM partner_arrangements p
         WHERE p.partner_id = l.partner_id AND p.connected_account_id IS NOT NULL
           AND p.from_month <= coalesce(accepted.month, to_char(moved.at, 'YYYY-MM')) COLLATE "C"
         ORDER BY p.from_month DESC LIMIT 1) AS a ON true
       WHERE l.partner_id = :partnerId
         AND 'line:' || l.settlement_line_id NOT IN (SELECT id FROM balance_transactions WHERE reported_by = 'settlement_file')
     )
     INSERT INTO balance_transactions (
       account, id, reported_by, type, kind, currency, amount, fee, net, moved_at, payment, transfer, quote_id, requote_id,
       payload, recorded_at, event_id)
     SELECT l.account, 'line:' || l.settlement_line_id, 'settlement_file', 'settlement_line', l.kind, l.currency, l.amount,
            0, l.amount, coalesce(l.moved_at, :now::timestamptz), l.payment, l.transfer, l.quote_id, l.requote_id,
            (SELECT to_jsonb(s) FROM settlement_lines s WHERE s.settlement_line_id = l.settlement_line_id),
            :now::timestamptz, :eventId::bigint
     FROM lines l JOIN tellers t ON t.account = l.account AND t.balance_transactions_from = 'settlement_file'
     WHERE NOT (${alsoTold(
       'l',
       [],
       `told.reported_by = 'processor' AND told.kind <> 'other' AND told.account IN (
             SELECT connected_account_id FROM partner_arrangements WHERE partner_id = :partnerId)`,
     )})
     ORDER BY l.settlement_line_id`,
    { ...whose, ...taking },
  );
}

export async function insertReading(
  tx: Transaction,
  reading: { account: string; from: string | null; to: string; movements: number; fresh: number },
  taking: Taking,
): Promise<void> {
  await execute(
    tx,
    `INSERT INTO processor_readings (account, read_from, read_to, movements, new_balance_transactions, recorded_at, event_id)
     VALUES (:account, :from::timestamptz, :to::timestamptz, :movements, :fresh,
             :now::timestamptz, :eventId::bigint)`,
    { ...reading, ...taking },
  );
}

/** Up to when an account was read whole; null before its first reading. */
export async function readCursor(tx: Transaction, account: string): Promise<string | null> {
  const { read_to } = await queryOne<{ read_to: string | null }>(
    tx,
    `SELECT max(read_to) AS read_to FROM processor_readings WHERE account = :account`,
    { account },
  );
  return read_to;
}

// --- What a payout paid out ---------------------------------------------------------------------------------------------

/** The payouts of an account since then of which it is not known what they paid out, and whose processor may tell. */
export function readUntoldPayouts(
  tx: Transaction,
  { account, since }: { account: string; since: string },
): Promise<{ balance_transaction_id: number; payout: string }[]> {
  return query(
    tx,
    `SELECT m.balance_transaction_id, m.payment AS payout FROM balance_transactions m
     WHERE m.account = :account AND m.type = 'payout' AND m.payment IS NOT NULL AND m.moved_at >= :since::timestamptz
       AND m.payload->'source'->>'automatic' IS DISTINCT FROM 'false'
       AND NOT EXISTS (SELECT FROM payout_contents c WHERE c.payout_transaction_id = m.balance_transaction_id)
     ORDER BY m.moved_at, m.balance_transaction_id`,
    { account, since },
  );
}

/**
 * Keeps which movements a payout paid out, where these are known, paid out by no other and add up to it: a list that is
 * not complete yet is asked for again. What moves by the payout itself, or its failure, is none of them. Gives how many
 * they are.
 */
export function insertPayoutContents(
  tx: Transaction,
  contents: { account: string; payoutMovementId: number; ids: readonly string[] },
  taking: Taking,
): Promise<number> {
  return execute(
    tx,
    `WITH payout AS (
       SELECT * FROM balance_transactions WHERE balance_transaction_id = :payoutMovementId::bigint
     ), contents AS MATERIALIZED (
       SELECT m.balance_transaction_id, m.net FROM balance_transactions m JOIN payout USING (account, currency)
       WHERE m.account = :account AND m.id = ANY (:ids::text[]) AND m.payment IS DISTINCT FROM payout.payment
         AND NOT EXISTS (SELECT FROM payout_contents c WHERE c.balance_transaction_id = m.balance_transaction_id)
     )
     INSERT INTO payout_contents (balance_transaction_id, payout_transaction_id, account, currency, recorded_at, event_id)
     SELECT c.balance_transaction_id, p.balance_transaction_id, p.account, p.currency, :now::timestamptz, :eventId::bigint
     FROM payout p CROSS JOIN contents c
     WHERE (SELECT sum(net) FROM contents) = -p.net
     ORDER BY c.balance_transaction_id`,
    { ...contents, now: taking.now, eventId: taking.eventId },
  );
}

// --- Which quote a movement is of -------------------------------------------------------------------------------------

// Movements of shares that nobody has said anything about. What a settlement file told before the processor itself could
// be read is not taken twice (the other way round, its line is no movement), nor what was taken in as of another account.
const WAITING = `waiting AS MATERIALIZED (
       SELECT m.* FROM balance_transactions m
       WHERE m.kind <> 'other' AND m.net <> 0
         AND NOT EXISTS (SELECT FROM share_allocations r WHERE r.balance_transaction_id = m.balance_transaction_id)
         AND NOT (m.reported_by = 'processor' AND (${alsoTold('m', ['account'], `told.reported_by = 'settlement_file'`)}))
         AND NOT EXISTS (
           SELECT FROM balance_transactions other
           WHERE other.id = m.id AND other.payment = m.payment AND other.account <> m.account
             AND (SELECT sum(amount) FROM share_allocations r WHERE r.balance_transaction_id = other.balance_transaction_id) <> 0)
     )`;

const STILL_WAITING = `waiting AS (
       SELECT w.* FROM pg_temp.waiting_movements w
       WHERE NOT EXISTS (SELECT FROM share_allocations r WHERE r.balance_transaction_id = w.balance_transaction_id)
     )`;

const OWNERS = `owners AS (
       SELECT DISTINCT connected_account_id AS account, partner_id FROM partner_arrangements
       WHERE connected_account_id IS NOT NULL
     )`;

// A quote of which something was accepted under a connected account, by the row of its own acceptance.
const ofAcceptedQuote = (quoteId: string, partnerId: string, currency: string) => `
       JOIN ledger_rows q ON q.partner_id = ${partnerId} AND q.kind = 'quote_accepted'
         AND coalesce(q.reversal_id, q.requote_id, q.quote_id) = ${quoteId} AND q.currency = ${currency}
         AND (q.arrangement = 'connected_account' OR EXISTS (
           SELECT FROM ledger_rows r WHERE r.partner_id = q.partner_id AND r.quote_id = q.quote_id
             AND r.kind = 'requote_accepted' AND r.arrangement = 'connected_account'))`;

// A way of finding quotes: of those that a join (as q) gives a waiting movement (as w), all where there are as many as
// there must be, each with its part.
const insertFound = (
  by: 'metadata' | 'payment' | 'settlement_file',
  quotes: string,
  {
    requoteId = 'w.requote_id',
    amount = 'w.net',
    line = 'NULL::bigint',
    wanted = '1',
    before = '',
  }: { requoteId?: string; amount?: string; line?: string; wanted?: string; before?: string } = {},
) => `
     WITH ${STILL_WAITING}, ${OWNERS}, ${before} found AS (
       SELECT w.balance_transaction_id, w.moved_at, q.partner_id, q.posted_month, q.entry_id, q.quote_id, ${requoteId} AS requote_id,
              w.currency, ${amount} AS amount, ${line} AS settlement_line_id,
              count(*) OVER (PARTITION BY w.balance_transaction_id) AS quotes, ${wanted} AS wanted
       FROM waiting w ${quotes}
     )
     INSERT INTO share_allocations (
       balance_transaction_id, partner_id, posted_month, entry_id, quote_id, requote_id, currency, amount, matched_by,
       settlement_line_id, moved_on, entry_on, recorded_at, event_id)
     SELECT f.balance_transaction_id, f.partner_id, f.posted_month, f.entry_id, f.quote_id, f.requote_id, f.currency,
            trim_scale(f.amount), '${by}', f.settlement_line_id, day.moved_on,
            greatest(day.moved_on, (SELECT (month_after(max(month)) || '-01')::date FROM closed_months)),
            :now::timestamptz, :eventId::bigint
     FROM found f
     CROSS JOIN LATERAL (SELECT (f.moved_at AT TIME ZONE :timeZone)::date AS moved_on) AS day
     WHERE f.quotes = f.wanted`;

// In this order: each way looks at what those before it left.
const WAYS_OF_FINDING = [
  // What the partner's file told, where there is no other source.
  insertFound(
    'settlement_file',
    `JOIN settlement_lines l ON w.reported_by = 'settlement_file' AND w.id = 'line:' || l.settlement_line_id
       ${ofAcceptedQuote('l.quote_id', 'l.partner_id', 'l.currency')}`,
    { requoteId: 'l.requote_id', line: 'l.settlement_line_id' },
  ),
  insertFound(
    'metadata',
    `JOIN owners o ON w.reported_by = 'processor' AND o.account = w.account
       ${ofAcceptedQuote('w.quote_id', 'o.partner_id', 'w.currency')}`,
  ),
  insertFound(
    'metadata',
    `JOIN owners o ON o.account = w.account
       JOIN ledger_rows q ON q.partner_id = o.partner_id AND q.kind = 'quote_accepted' AND q.enrollment_id = w.enrollment_id
         AND q.currency = w.currency AND q.arrangement = 'connected_account' AND w.quote_id IS NULL`,
  ),
  // The lines that name a payment, where they add up to it and the quote of each is known.
  insertFound(
    'settlement_file',
    `JOIN named l USING (balance_transaction_id)
       ${ofAcceptedQuote('l.quote_id', 'l.partner_id', 'w.currency')} AND l.told = w.net`,
    {
      ...{ requoteId: 'l.requote_id', amount: 'l.amount', line: 'l.settlement_line_id', wanted: 'l.lines' },
      before: `named AS (
       SELECT w.balance_transaction_id, l.settlement_line_id, l.quote_id, l.requote_id, l.partner_id, l.amount,
              sum(l.amount) OVER (PARTITION BY w.balance_transaction_id) AS told, count(*) OVER (PARTITION BY w.balance_transaction_id) AS lines
       FROM waiting w JOIN owners o ON o.account = w.account
       JOIN LATERAL (
         SELECT settlement_line_id, partner_id, quote_id, requote_id, currency, amount
         FROM settlement_lines WHERE payment = w.payment
         UNION
         SELECT settlement_line_id, partner_id, quote_id, requote_id, currency, amount
         FROM settlement_lines WHERE transfer = w.transfer
       ) AS l ON l.partner_id = o.partner_id AND l.currency = w.currency AND sign(l.amount) = sign(w.net)
       WHERE w.reported_by = 'processor'
     ),`,
    },
  ),
  // What was taken from a payment is of the quote of that.
  insertFound(
    'payment',
    `JOIN balance_transactions paid ON paid.account = w.account AND paid.payment = w.of_payment
         AND paid.kind IN ('share', 'misrouted') AND paid.currency = w.currency
       JOIN LATERAL (
         SELECT partner_id, posted_month, entry_id, quote_id, requote_id FROM share_allocations s
         WHERE s.balance_transaction_id = paid.balance_transaction_id
         GROUP BY partner_id, posted_month, entry_id, quote_id, requote_id HAVING sum(amount) <> 0) AS q ON true`,
    { requoteId: 'q.requote_id' },
  ),
];

/**
 * Matches every movement that names its quote, or whose quote the settlement file names, or that takes from a payment
 * which is matched. Never by its amount. Gives how many shares were found. Needs the ledger's lock.
 */
export async function insertFoundShares(tx: Transaction, taking: Taking): Promise<number> {
  // Looked for once among all that ever moved; each way of finding then looks at what those before it left.
  await execute(tx, `DROP TABLE IF EXISTS pg_temp.waiting_movements`);
  await execute(tx, `CREATE TEMPORARY TABLE waiting_movements ON COMMIT DROP AS WITH ${WAITING} SELECT * FROM waiting`);
  await execute(tx, `ANALYZE pg_temp.waiting_movements`);
  let found = 0;
  for (const way of WAYS_OF_FINDING) found += await execute(tx, way, { ...taking });
  return found;
}

// --- What came after it was billed ------------------------------------------------------------------------------------

export interface ShareOfBilled {
  readonly share_allocation_id: number;
  readonly account: string;
  /** The processor's id of what moved. */
  readonly movement: string;
  readonly balance_transaction_id: number;
  /** What moved was pulled back; a share above zero of it takes a match back. */
  readonly below: boolean;
  /** The payment on our account that it was pulled back from. */
  readonly of_payment: string | null;
  readonly disputed: boolean;
  /** With its sign. */
  readonly amount: string;
  /** Of it, what pays an invoice, or takes that back. */
  readonly paid: string;
  readonly moved_on: string;
}

/** What of a share became a payment. */
export interface SharePayment {
  readonly payment_id: number;
  readonly balance_transaction_id: number;
  readonly payment: string | null;
  /** Of it, what nothing has taken back. */
  readonly left: string;
  /** What took it back and was not taken back itself, above zero. */
  readonly taken_by: readonly {
    readonly payment_reversal_id: number;
    readonly balance_transaction_id: number;
    readonly amount: string;
  }[];
}

/** A quote that was billed as missing, with the shares that one act has found of it. */
export interface BilledQuote {
  readonly partner_id: string;
  readonly quote_id: string;
  readonly currency: string;
  /** Before these: what is to come and was not billed; below zero where too much came. */
  readonly owed: string;
  /** Billed by live invoices, and not paid by a share yet. */
  readonly uncovered: string;
  /** Before these: what came and is a share, less what was pulled back. */
  readonly as_shares: string;
  readonly shares: readonly ShareOfBilled[];
  readonly payments: readonly SharePayment[];
  /** Of the live invoices, the oldest first. */
  readonly numbers: readonly string[];
}

/** Of the shares that an act has found, those of quotes that were billed as missing, by quote. */
export function readBilledQuotes(tx: Transaction, eventId: number): Promise<BilledQuote[]> {
  return query(
    tx,
    `WITH of_act AS MATERIALIZED (
       SELECT r.*, m.account, m.id, m.net, m.kind, m.payment AS own_payment, m.of_payment, m.moved_at
       FROM share_allocations r JOIN balance_transactions m USING (balance_transaction_id)
       WHERE r.event_id = :eventId::bigint
         AND EXISTS (SELECT FROM missing_shares b WHERE b.partner_id = r.partner_id AND b.quote_id = r.quote_id)
     ), quotes AS MATERIALIZED (
       SELECT DISTINCT partner_id, quote_id, currency FROM of_act
     ), sums AS (
       SELECT q.*,
              (SELECT coalesce(sum(e.invoice_amount), 0) FROM ledger_rows e
               WHERE e.partner_id = q.partner_id AND e.quote_id = q.quote_id AND e.arrangement = 'connected_account') AS expected,
              (SELECT coalesce(sum(b.amount), 0) FROM missing_shares b
               WHERE b.partner_id = q.partner_id AND b.quote_id = q.quote_id
                 AND NOT EXISTS (SELECT FROM voids v WHERE v.document_id = b.document_id)) AS billed,
              (SELECT coalesce(sum(r.amount), 0) FROM share_allocations r
               WHERE r.partner_id = q.partner_id AND r.quote_id = q.quote_id AND r.event_id <> :eventId::bigint) AS came,
              (SELECT coalesce(sum(p.amount), 0) FROM share_allocations r JOIN share_payments p USING (share_allocation_id)
               WHERE r.partner_id = q.partner_id AND r.quote_id = q.quote_id AND r.event_id <> :eventId::bigint) AS paid_before,
              (SELECT coalesce(sum(p.amount), 0) FROM share_allocations r JOIN share_payments p USING (share_allocation_id)
               WHERE r.partner_id = q.partner_id AND r.quote_id = q.quote_id) AS paid
       FROM quotes q
     )
     SELECT s.partner_id, s.quote_id, s.currency, (s.expected - (s.came - s.paid_before) - s.billed)::text AS owed,
            (s.billed - s.paid)::text AS uncovered, (s.came - s.paid_before)::text AS as_shares,
            (SELECT json_agg(json_build_object(
                      'share_allocation_id', r.share_allocation_id, 'account', r.account, 'movement', r.id,
                      'balance_transaction_id', r.balance_transaction_id, 'below', r.net < 0, 'of_payment', r.of_payment,
                      'amount', r.amount::text, 'moved_on', r.moved_on,
                      'paid', (SELECT coalesce(sum(p.amount), 0)::text FROM share_payments p
                               WHERE p.share_allocation_id = r.share_allocation_id),
                      'disputed', r.kind = 'dispute' OR EXISTS (
                        SELECT FROM settlement_lines l WHERE l.kind = 'dispute' AND l.partner_id = r.partner_id
                          AND l.quote_id = r.quote_id AND l.payment = r.own_payment))
                    ORDER BY r.moved_at, r.share_allocation_id)
             FROM of_act r WHERE r.partner_id = s.partner_id AND r.quote_id = s.quote_id) AS shares,
            coalesce((
              SELECT json_agg(json_build_object(
                       'payment_id', p.payment_id, 'balance_transaction_id', m.balance_transaction_id, 'payment', m.payment,
                       'left', (b.amount - b.reversed)::text,
                       'taken_by', coalesce((
                         SELECT json_agg(json_build_object('payment_reversal_id', t.payment_reversal_id,
                                  'balance_transaction_id', o.balance_transaction_id, 'amount', (-t.amount)::text))
                         FROM share_payments t JOIN share_allocations o USING (share_allocation_id)
                         WHERE t.payment_id = p.payment_id AND t.amount < 0 AND NOT EXISTS (
                           SELECT FROM payment_reinstatements i WHERE i.payment_reversal_id = t.payment_reversal_id)), '[]'))
                     ORDER BY p.payment_id)
              FROM share_payments p JOIN share_allocations r USING (share_allocation_id) JOIN balance_transactions m USING (balance_transaction_id)
              JOIN payment_balances b USING (payment_id)
              WHERE p.payment_reversal_id IS NULL AND r.partner_id = s.partner_id AND r.quote_id = s.quote_id), '[]') AS payments,
            coalesce((
              SELECT json_agg(d.number ORDER BY d.document_id)
              FROM missing_shares b JOIN documents d USING (document_id)
              WHERE b.partner_id = s.partner_id AND b.quote_id = s.quote_id
                AND NOT EXISTS (SELECT FROM voids v WHERE v.document_id = b.document_id)), '[]') AS numbers
     FROM sums s ORDER BY s.partner_id, s.quote_id`,
    { eventId },
  );
}

export interface NewSharePayment {
  readonly share_allocation_id: number;
  readonly payment_id: number;
  /** Null: it is the payment itself. */
  readonly payment_reversal_id: number | null;
  readonly currency: string;
  /** Of the share's sign. */
  readonly amount: string;
}

export async function insertSharePayments(
  { tx, now, eventId }: { tx: Transaction; now: string; eventId: number },
  rows: readonly NewSharePayment[],
): Promise<void> {
  if (rows.length === 0) return;
  await execute(
    tx,
    `INSERT INTO share_payments (
       share_allocation_id, payment_id, payment_reversal_id, currency, amount, recorded_at, event_id)
     SELECT share_allocation_id, payment_id, payment_reversal_id, currency, trim_scale(amount), :now::timestamptz,
            :eventId::bigint
     FROM json_to_recordset(:rows::json) AS r (
       share_allocation_id bigint, payment_id bigint, payment_reversal_id bigint, currency text, amount numeric)`,
    { rows: JSON.stringify(rows), now, eventId },
  );
}

// --- Reconciling ------------------------------------------------------------------------------------------------------

/** What the ledger expects of one quote and what came of it, over all its life. Amounts are sums of its own currency. */
export interface QuotePosition {
  readonly partner_id: string;
  readonly quote_id: string;
  readonly currency: string;
  /** Quotes and requotes accepted under a connected account. */
  readonly accepted: string;
  /** What the ledger reversed of them, above zero. */
  readonly reversed: string;
  readonly came: string;
  /** What was pulled back, above zero. */
  readonly pulled_back: string;
  /** On live invoices for missing shares. */
  readonly billed: string;
  /** Of what came less what was pulled back, what came after it was billed and pays the invoice. */
  readonly paid: string;
  readonly misrouted: boolean;
  readonly disputed: boolean;
  /** A share came later after its acceptance than it should. */
  readonly late: boolean;
  readonly first_accepted_at: string;
  readonly last_accepted_at: string;
  /** Of the movements, the processor's ids. */
  readonly movements: readonly string[];
}

/** The quotes of a partner that are plainly as expected, counted and summed. */
export interface MatchedQuotes {
  readonly partner_id: string;
  readonly currency: string;
  readonly quotes: number;
  readonly accepted: string;
  readonly reversed: string;
  readonly came: string;
  readonly pulled_back: string;
  readonly billed: string;
}

export interface PositionQuestion {
  readonly month: Month;
  readonly lateAfterDays: number;
}

/**
 * All that is known of quotes in one column of time: facts are sorted and summed, never joined to each other. Of all
 * quotes, or of those in `scope`. What a person matched and took back again is nothing. A dispute is the platform's, and
 * our account sees a share pulled back: that it was one, the partner's file tells.
 */
export function quoteFacts(of: 'all' | 'scope'): string {
  const row = `SELECT e.partner_id, e.quote_id, e.currency, e.requote_id, e.kind, e.accepted_at AS at, e.invoice_amount AS amount,
              0 AS paid, NULL::text AS id, false AS misrouted, false AS disputed`;
  const routed = `e.arrangement = 'connected_account'`;
  const scoped = (table: string) =>
    of === 'all' ? '' : `JOIN scope s ON s.partner_id = ${table}.partner_id AND s.quote_id = ${table}.quote_id`;
  // Of a scope, acceptances and other rows by the index of each.
  const rows =
    of === 'all'
      ? `${row} FROM ledger_rows e WHERE ${routed}`
      : `${row}
       FROM scope s JOIN ledger_rows e ON e.partner_id = s.partner_id AND e.kind = 'quote_accepted'
         AND coalesce(e.reversal_id, e.requote_id, e.quote_id) = s.quote_id
       WHERE ${routed}
       UNION ALL
       ${row}
       FROM ledger_rows e ${scoped('e')} WHERE e.kind <> 'quote_accepted' AND ${routed}`;
  return `${rows}
       UNION ALL
       SELECT r.partner_id, r.quote_id, r.currency, r.requote_id, 'share', m.moved_at, sum(r.amount),
              coalesce(sum(p.amount), 0), m.id, m.kind = 'misrouted',
              m.kind = 'dispute' OR (sum(r.amount) < 0 AND EXISTS (
                SELECT FROM settlement_lines l WHERE l.kind = 'dispute' AND l.partner_id = r.partner_id
                  AND l.quote_id = r.quote_id AND l.payment = m.payment))
       FROM share_allocations r ${scoped('r')}
       JOIN balance_transactions m USING (balance_transaction_id)
       LEFT JOIN (SELECT share_allocation_id, sum(amount) AS amount FROM share_payments GROUP BY share_allocation_id) AS p
         USING (share_allocation_id)
       GROUP BY r.partner_id, r.quote_id, r.currency, r.requote_id, m.balance_transaction_id HAVING sum(r.amount) <> 0
       UNION ALL
       SELECT b.partner_id, b.quote_id, b.currency, NULL, 'billed', NULL, b.amount, 0, NULL, false, false
       FROM missing_shares b ${scoped('b')}
       WHERE NOT EXISTS (SELECT FROM voids v WHERE v.document_id = b.document_id)`;
}

/** How the quotes with a row of `:month` stand. Inside of a WITH. */
const POSITIONS = `scope AS MATERIALIZED (
       SELECT DISTINCT partner_id, quote_id FROM ledger_rows WHERE posted_month = :month AND arrangement = 'connected_account'
     ), facts AS (
       ${quoteFacts('scope')}
     ), measured AS (
       -- How long a share took: from its own acceptance where it names it, else from the last one before it came.
       SELECT facts.*, kind LIKE '%\\_accepted' AS accepts,
              max(at) FILTER (WHERE kind LIKE '%\\_accepted') OVER (PARTITION BY partner_id, quote_id ORDER BY at) AS last_accepted,
              max(at) FILTER (WHERE kind = 'requote_accepted')
                OVER (PARTITION BY partner_id, quote_id, requote_id ORDER BY at) AS own_accepted
       FROM facts
     ), positions AS MATERIALIZED (
       SELECT sums.*, accepted - reversed = came AND NOT was_billed AND pulled_back = 0 AND paid = 0
                      AND NOT misrouted AND NOT late AS plain
       FROM (
         SELECT partner_id, quote_id, currency,
                coalesce(sum(amount) FILTER (WHERE accepts), 0) AS accepted,
                coalesce(-sum(amount) FILTER (WHERE kind = 'reversal'), 0) AS reversed,
                min(at) FILTER (WHERE accepts) AS first_accepted_at, max(at) FILTER (WHERE accepts) AS last_accepted_at,
                coalesce(sum(amount) FILTER (WHERE kind = 'share' AND amount > 0), 0) AS came,
                coalesce(-sum(amount) FILTER (WHERE kind = 'share' AND amount < 0), 0) AS pulled_back,
                sum(paid) AS paid, coalesce(sum(amount) FILTER (WHERE kind = 'billed'), 0) AS billed,
                bool_or(kind = 'billed') AS was_billed, bool_or(misrouted) AS misrouted, bool_or(disputed) AS disputed,
                coalesce(bool_or(kind = 'share' AND amount > 0
                  AND at > :lateAfterDays * interval '1 day' + coalesce(own_accepted, last_accepted)), false) AS late,
                coalesce(json_agg(id ORDER BY at, id) FILTER (WHERE kind = 'share'), '[]') AS movements
         FROM measured GROUP BY partner_id, quote_id, currency
         HAVING bool_or(kind NOT IN ('share', 'billed'))) AS sums
     )`;

/** The quotes with a row on the month's statements: those that are plainly as expected in sums, each of the others. */
export async function readPositions(
  tx: Transaction,
  question: PositionQuestion,
): Promise<{ matched: MatchedQuotes[]; others: QuotePosition[] }> {
  const { matched, others } = await queryOne<{ matched: MatchedQuotes[]; others: QuotePosition[] }>(
    tx,
    `WITH ${POSITIONS}
     SELECT coalesce((
              SELECT json_agg(m ORDER BY m.partner_id COLLATE "C", m.currency) FROM (
                SELECT partner_id, currency, count(*) AS quotes, sum(accepted)::text AS accepted,
                       sum(reversed)::text AS reversed, sum(came)::text AS came, sum(pulled_back)::text AS pulled_back,
                       sum(billed)::text AS billed
                FROM positions WHERE plain GROUP BY partner_id, currency) AS m), '[]') AS matched,
            coalesce((
              SELECT json_agg(o ORDER BY o.partner_id COLLATE "C", o.quote_id COLLATE "C") FROM (
                SELECT partner_id, quote_id, currency, accepted::text, reversed::text, came::text, pulled_back::text,
                       billed::text, paid::text, misrouted, disputed, late, first_accepted_at, last_accepted_at, movements
                FROM positions WHERE NOT plain) AS o), '[]') AS others`,
    { ...question },
  );
  return { matched, others };
}

export interface UnknownMovement {
  readonly account: string;
  readonly id: string;
  readonly type: string;
  readonly kind: string;
  readonly currency: string;
  /** What of it no quote explains. */
  readonly amount: string;
  readonly moved_at: string;
  readonly payment: string | null;
  readonly transfer: string | null;
  /** As its metadata says, although no such quote is known. */
  readonly quote_id: string | null;
  readonly partners: readonly string[];
  /** For a person to choose from: quotes of these partners of which just as much is open, the nearest in time first. */
  readonly candidates: readonly { readonly partner_id: string; readonly quote_id: string }[];
}

/** Movements of a month, in the issuer's zone, of which nobody knows the quote, with what a person may look at. */
export function readUnknownMovements(
  tx: Transaction,
  { startsAt, endsAt }: { startsAt: string; endsAt: string },
): Promise<UnknownMovement[]> {
  return query(
    tx,
    `WITH ${WAITING}, ${OWNERS}, partly AS (
       SELECT m.*, m.net - sum(r.amount) AS unexplained
       FROM balance_transactions m JOIN share_allocations r USING (balance_transaction_id)
       WHERE m.moved_at >= :startsAt::timestamptz AND m.moved_at < :endsAt::timestamptz
       GROUP BY m.balance_transaction_id HAVING m.net <> sum(r.amount)
     ), unknown AS MATERIALIZED (
       SELECT balance_transaction_id, account, id, type, kind, currency, net AS amount, moved_at, payment, transfer, quote_id
       FROM waiting WHERE moved_at >= :startsAt::timestamptz AND moved_at < :endsAt::timestamptz
       UNION ALL
       SELECT balance_transaction_id, account, id, type, kind, currency, unexplained, moved_at, payment, transfer, quote_id FROM partly
     ), near AS MATERIALIZED (
       SELECT e.partner_id, e.quote_id, e.currency, min(e.accepted_at) AS accepted_at,
              sum(e.invoice_amount) - coalesce((
                SELECT sum(r.amount) FROM share_allocations r
                WHERE r.partner_id = e.partner_id AND r.quote_id = e.quote_id), 0) AS open
       FROM ledger_rows e
       WHERE e.arrangement = 'connected_account' AND EXISTS (SELECT FROM unknown)
         AND e.posted_month >= to_char(:startsAt::timestamptz - interval '3 months', 'YYYY-MM') COLLATE "C"
       GROUP BY e.partner_id, e.quote_id, e.currency
     )
     SELECT u.account, u.id, u.type, u.kind, u.currency, u.amount::text, u.moved_at, u.payment, u.transfer, u.quote_id,
            coalesce((SELECT json_agg(o.partner_id ORDER BY o.partner_id) FROM owners o WHERE o.account = u.account), '[]') AS partners,
            coalesce((
              SELECT json_agg(json_build_object('partner_id', c.partner_id, 'quote_id', c.quote_id) ORDER BY c.distance, c.quote_id)
              FROM (
                SELECT n.partner_id, n.quote_id, abs(extract(epoch FROM n.accepted_at - u.moved_at)) AS distance
                FROM near n JOIN owners o ON o.account = u.account AND o.partner_id = n.partner_id
                WHERE n.currency = u.currency AND n.open = u.amount
                ORDER BY distance, n.quote_id LIMIT 5) AS c), '[]') AS candidates
     FROM unknown u ORDER BY u.moved_at, u.id`,
    { startsAt, endsAt },
  );
}

export interface OtherMovements {
  readonly account: string;
  readonly currency: string;
  readonly type: string;
  readonly count: number;
  readonly net: string;
}

/** What moved on the accounts and was no share: payouts, fees. */
export function readOtherMovements(
  tx: Transaction,
  { startsAt, endsAt }: { startsAt: string; endsAt: string },
): Promise<OtherMovements[]> {
  return query(
    tx,
    `SELECT account, currency, type, count(*) AS count, sum(net)::text AS net FROM balance_transactions
     WHERE kind = 'other' AND moved_at >= :startsAt::timestamptz AND moved_at < :endsAt::timestamptz
     GROUP BY account, currency, type ORDER BY account, currency, type`,
    { startsAt, endsAt },
  );
}

/** Movements of which nobody knows the quote, of the whole or of a part. */
export async function countUnknownMovements(tx: Transaction): Promise<number> {
  const { unknown } = await queryOne<{ unknown: number }>(
    tx,
    `WITH ${WAITING}
     SELECT (SELECT count(*) FROM waiting)
            + (SELECT count(*) FROM (
                 SELECT FROM balance_transactions m JOIN share_allocations r USING (balance_transaction_id)
                 GROUP BY m.balance_transaction_id HAVING m.net <> sum(r.amount)) AS partly) AS unknown`,
  );
  return unknown;
}

export interface AccountCursor {
  readonly account: string;
  readonly partners: readonly string[];
  readonly balance_transactions_from: 'processor' | 'settlement_file';
  readonly read_to: string | null;
  /** Something was accepted under it. */
  readonly sold: boolean;
  /** Every partner of it has another now. */
  readonly followed: boolean;
}

/** How long after the last sale under it, and the last money on it, an account that another has followed is watched. */
export const WATCHED_DAYS = 180;

/**
 * The connected accounts on which money may still move, with how far each was read: those that partners have now, and
 * those that others have followed, for WATCHED_DAYS.
 */
export function readAccountCursors(tx: Transaction, now: string): Promise<AccountCursor[]> {
  return query(
    tx,
    `WITH eras AS (
       SELECT a.partner_id, a.connected_account_id AS account, coalesce(a.balance_transactions_from, 'processor') AS balance_transactions_from,
              row_number() OVER (PARTITION BY a.partner_id, a.connected_account_id ORDER BY a.from_month DESC) = 1 AS tells,
              EXISTS (SELECT FROM partner_arrangements f
                      WHERE f.partner_id = a.partner_id AND f.connected_account_id <> a.connected_account_id
                        AND f.from_month > a.from_month
                        AND f.from_month <= to_char(:now::timestamptz, 'YYYY-MM') COLLATE "C") AS followed,
              (SELECT max(e.accepted_at) FROM ledger_rows e
               WHERE e.partner_id = a.partner_id AND e.arrangement = 'connected_account'
                 AND e.month >= a.from_month COLLATE "C" AND e.month < coalesce((
                   SELECT min(n.from_month) FROM partner_arrangements n
                   WHERE n.partner_id = a.partner_id AND n.from_month > a.from_month), '9999-99') COLLATE "C") AS sold_at
       FROM partner_arrangements a WHERE a.connected_account_id IS NOT NULL
     ), accounts AS (
       SELECT account, json_agg(DISTINCT partner_id) AS partners, array_agg(partner_id) AS partner_ids,
              -- Of several partners, the processor where one says so.
              min(balance_transactions_from) FILTER (WHERE tells) AS balance_transactions_from, max(sold_at) AS sold_at, bool_and(followed) AS followed
       FROM eras GROUP BY account
     )
     SELECT account, partners, balance_transactions_from, sold_at IS NOT NULL AS sold, followed,
            CASE balance_transactions_from
              WHEN 'processor' THEN (SELECT max(r.read_to) FROM processor_readings r WHERE r.account = a.account)
              ELSE (SELECT max(f.recorded_at) FROM settlement_files f WHERE f.partner_id = ANY (a.partner_ids))
            END AS read_to
     FROM accounts a
     WHERE NOT followed OR :now::timestamptz - :watchedDays * interval '1 day'
       < greatest(sold_at, (SELECT max(m.moved_at) FROM balance_transactions m WHERE m.account = a.account))
     ORDER BY account`,
    { now, watchedDays: WATCHED_DAYS },
  );
}

/** The latest months that gave a statement, the oldest first. */
export async function readStatementMonths(tx: Transaction, months: number): Promise<Month[]> {
  const rows = await query<{ month: Month }>(
    tx,
    `SELECT month FROM (
       SELECT DISTINCT month FROM documents WHERE document = 'statement' ORDER BY month DESC LIMIT :months) AS latest
     ORDER BY month`,
    { months },
  );
  return rows.map((row) => row.month);
}

/** The statements of a month: what each of them says was to be routed. */
export function readStatements(
  tx: Transaction,
  month: Month,
): Promise<{ partner_id: string; currency: string; number: string; invoice_amount: string }[]> {
  return query(
    tx,
    `SELECT d.partner_id, d.currency, d.number, d.invoice_amount::text
     FROM documents d
     WHERE d.month = :month AND d.document = 'statement' AND d.purpose = 'month'
       AND NOT EXISTS (SELECT FROM voids v WHERE v.document_id = d.document_id)
     ORDER BY d.partner_id, d.currency`,
    { month },
  );
}

// --- Payouts ----------------------------------------------------------------------------------------------------------

/** A payout of one of our accounts, as far as it is known. */
export interface PayoutState {
  readonly account: string;
  readonly currency: string;
  /** The processor's id: `po_…`. */
  readonly payout: string;
  readonly moved_at: string;
  /** Above zero. */
  readonly amount: string;
  /** How many movements it paid out; null where that is not told. */
  readonly movements: number | null;
  /** The processor can say what it paid out, and we read that account there. */
  readonly to_be_told: boolean;
  /** The day on which it was in the bank. */
  readonly arrived_on: string | null;
  readonly failed: boolean;
  /** Bank files of its currency tell of days so many after it. */
  readonly bank_days_after: number | null;
}

// Of a span of time; its end may be open.
const PAYOUT_STATES = `
     SELECT m.account, m.currency, coalesce(m.payment, m.id) AS payout, m.moved_at, (-m.net)::text AS amount,
            (SELECT nullif(count(*), 0) FROM payout_contents c WHERE c.payout_transaction_id = m.balance_transaction_id) AS movements,
            m.payload->'source'->>'automatic' IS DISTINCT FROM 'false'
              AND coalesce((SELECT max(r.read_to) FROM processor_readings r WHERE r.account = m.account)
                BETWEEN m.moved_at AND m.moved_at + ${WATCHED_DAYS} * interval '1 day', false) AS to_be_told,
            (SELECT o.received_on FROM account_payouts a JOIN payouts o USING (payout_id)
             WHERE a.balance_transaction_id = m.balance_transaction_id) AS arrived_on,
            EXISTS (SELECT FROM balance_transactions f
                    WHERE f.account = m.account AND f.payment = m.payment AND f.type IN ('payout_failure', 'payout_cancel')) AS failed,
            (SELECT max(l.bank_booked_on) FROM bank_lines l WHERE l.currency = m.currency)
              - (m.moved_at AT TIME ZONE 'UTC')::date AS bank_days_after
     FROM balance_transactions m
     WHERE m.type = 'payout' AND m.net < 0
       AND m.moved_at >= :startsAt::timestamptz
       AND (:endsAt::timestamptz IS NULL OR m.moved_at < :endsAt::timestamptz)
     ORDER BY m.account, m.moved_at, m.balance_transaction_id`;

/** The payouts of a month in the issuer's zone, or since then. */
export function readPayoutStates(
  tx: Transaction,
  { startsAt, endsAt }: { startsAt: string; endsAt: string | null },
): Promise<PayoutState[]> {
  return query(tx, PAYOUT_STATES, { startsAt, endsAt });
}

/** Movements of one account and currency that payouts passed over. */
export interface NotPaidOut {
  readonly account: string;
  readonly currency: string;
  readonly count: number;
  readonly net: string;
  readonly since: string;
  /** The first of them, by the processor's ids. */
  readonly movements: readonly string[];
}

/**
 * What moved within a month, or since then, and was in no payout, although one of so many days later says what it paid out. Of
 * accounts whose payouts say that, from the first movement on that one of them names.
 */
export function readNotPaidOut(
  tx: Transaction,
  { startsAt, endsAt, afterDays }: { startsAt: string; endsAt: string | null; afterDays: number },
): Promise<NotPaidOut[]> {
  return query(
    tx,
    `WITH told AS (
       SELECT c.account, c.currency, min(m.moved_at) AS first_at, max(p.moved_at) AS last_at
       FROM payout_contents c JOIN balance_transactions m USING (balance_transaction_id)
       JOIN balance_transactions p ON p.balance_transaction_id = c.payout_transaction_id
       GROUP BY c.account, c.currency
     )
     SELECT m.account, m.currency, count(*) AS count, sum(m.net)::text AS net, min(m.moved_at) AS since,
            (array_agg(m.id ORDER BY m.moved_at, m.id))[1:20] AS movements
     FROM told t JOIN balance_transactions m USING (account, currency)
     WHERE m.reported_by = 'processor' AND m.net <> 0 AND m.type <> 'payout'
       AND m.moved_at >= t.first_at AND m.moved_at < t.last_at - :afterDays * interval '1 day'
       AND m.moved_at >= :startsAt::timestamptz
       AND (:endsAt::timestamptz IS NULL OR m.moved_at < :endsAt::timestamptz)
       AND NOT EXISTS (SELECT FROM payout_contents c WHERE c.balance_transaction_id = m.balance_transaction_id)
     GROUP BY m.account, m.currency ORDER BY m.account, m.currency`,
    { startsAt, endsAt, afterDays },
  );
}

/** Of the quotes with a row on a month's statements, what of their shares payouts have brought to the bank. */
export function readInBank(
  tx: Transaction,
  month: Month,
): Promise<{ partner_id: string; currency: string; amount: string }[]> {
  return query(
    tx,
    `SELECT r.partner_id, r.currency, sum(r.amount)::text AS amount
     FROM account_payouts a JOIN payout_contents c ON c.payout_transaction_id = a.balance_transaction_id
     JOIN share_allocations r ON r.balance_transaction_id = c.balance_transaction_id
     WHERE EXISTS (SELECT FROM ledger_rows e WHERE e.partner_id = r.partner_id AND e.quote_id = r.quote_id
                     AND e.posted_month = :month AND e.arrangement = 'connected_account')
     GROUP BY r.partner_id, r.currency`,
    { month },
  );
}

// --- Reversals --------------------------------------------------------------------------------------------------------

/** A share that was pulled back and that no row of the ledger stands for, with all that a row of it needs. */
export interface PulledBack {
  readonly share_allocation_id: number;
  readonly account: string;
  readonly movement: string;
  /** How many quotes the movement is of. */
  readonly shares: number;
  readonly partner_id: string;
  readonly quote_id: string;
  /** Only where the ledger has such a requote. Of a quote that was invoiced, its routed requote where nothing names one. */
  readonly requote_id: string | null;
  /** How many routed requotes it may be of, where the quote itself was invoiced and nothing names one; else 0. */
  readonly of_requotes: number;
  readonly enrollment_id: string | null;
  readonly policy_id: string;
  readonly currency: string;
  /** Above zero. */
  readonly amount: string;
  readonly moved_at: string;
  /** By the partner's settlement file. */
  readonly refunded: string | null;
  readonly reversal_id: string | null;
  /** Of the quote: pulled back so far and not in the ledger as reversed, above zero. */
  readonly beyond_ledger: string;
  readonly spot_price_left: string;
  readonly partner_cut_left: string;
  readonly invoice_amount_left: string;
}

/** Shares pulled back from quotes of which more was pulled back than the ledger has reversed, in the order of time. */
export function readPulledBack(
  tx: Transaction,
  { month, movement }: { month?: Month | undefined; movement?: { account: string; id: string } | undefined },
): Promise<PulledBack[]> {
  return query(
    tx,
    `WITH pulled AS MATERIALIZED (
       SELECT r.partner_id, r.quote_id, -sum(r.amount) FILTER (WHERE m.kind IN ('reversal', 'dispute')) AS pulled_back
       FROM share_allocations r JOIN balance_transactions m USING (balance_transaction_id)
       WHERE :month::text IS NULL OR EXISTS (
         SELECT FROM ledger_rows e WHERE e.partner_id = r.partner_id AND e.posted_month = :month AND e.quote_id = r.quote_id)
       GROUP BY r.partner_id, r.quote_id
       HAVING sum(r.amount) FILTER (WHERE m.kind IN ('reversal', 'dispute')) < 0
     ), left_of AS (
       SELECT p.partner_id, p.quote_id, p.pulled_back, sum(e.spot_price) AS spot_price, sum(e.partner_cut) AS partner_cut,
              sum(e.invoice_amount) AS invoice_amount,
              coalesce(-sum(e.invoice_amount) FILTER (WHERE e.kind = 'reversal'), 0) AS reversed
       FROM pulled p
       JOIN ledger_rows e ON e.partner_id = p.partner_id AND e.quote_id = p.quote_id AND e.arrangement = 'connected_account'
       GROUP BY p.partner_id, p.quote_id, p.pulled_back
     )
     SELECT r.share_allocation_id, m.account, m.id AS movement,
            (SELECT count(DISTINCT o.quote_id) FROM share_allocations o WHERE o.balance_transaction_id = m.balance_transaction_id) AS shares,
            r.partner_id, r.quote_id, coalesce(rq.requote_id, o.requote_id) AS requote_id, o.of_requotes, q.enrollment_id, q.policy_id, r.currency, (-r.amount)::text AS amount,
            m.moved_at, s.refunded::text, s.reversal_id, (l.pulled_back - l.reversed)::text AS beyond_ledger,
            l.spot_price::text AS spot_price_left, l.partner_cut::text AS partner_cut_left,
            l.invoice_amount::text AS invoice_amount_left
     FROM left_of l
     JOIN share_allocations r ON r.partner_id = l.partner_id AND r.quote_id = l.quote_id AND r.amount < 0
     JOIN balance_transactions m ON m.balance_transaction_id = r.balance_transaction_id AND m.kind IN ('reversal', 'dispute')
     JOIN ledger_rows q ON q.partner_id = r.partner_id AND q.posted_month = r.posted_month AND q.entry_id = r.entry_id
     LEFT JOIN ledger_rows rq ON rq.partner_id = r.partner_id AND rq.kind = 'requote_accepted' AND rq.quote_id = r.quote_id
       AND coalesce(rq.reversal_id, rq.requote_id, rq.quote_id) = r.requote_id
     CROSS JOIN LATERAL (
       SELECT min(x.requote_id) AS requote_id, count(*) AS of_requotes FROM ledger_rows x
       WHERE q.arrangement <> 'connected_account' AND rq.requote_id IS NULL AND x.partner_id = r.partner_id
         AND x.quote_id = r.quote_id AND x.kind = 'requote_accepted' AND x.arrangement = 'connected_account') AS o
     LEFT JOIN LATERAL (
       SELECT refunded, reversal_id FROM settlement_lines s
       WHERE s.settlement_line_id = r.settlement_line_id
          OR (s.partner_id = r.partner_id AND s.quote_id = r.quote_id AND s.payment = m.payment)
          OR (s.partner_id = r.partner_id AND s.quote_id = r.quote_id AND s.transfer = m.transfer AND s.amount = r.amount)
       ORDER BY s.settlement_line_id LIMIT 1) AS s ON true
     WHERE l.pulled_back > l.reversed
       AND NOT EXISTS (SELECT FROM reversal_evidence v WHERE v.share_allocation_id = r.share_allocation_id)
       -- A match is taken back whole: what was said before that is nothing.
       AND NOT EXISTS (
         SELECT FROM share_allocations back WHERE back.balance_transaction_id = r.balance_transaction_id AND back.partner_id = r.partner_id
           AND back.quote_id = r.quote_id AND back.amount > 0 AND back.share_allocation_id > r.share_allocation_id)
       AND (:account::text IS NULL OR (m.account = :account AND m.id = :id))
     ORDER BY r.partner_id, r.quote_id, m.moved_at, r.share_allocation_id`,
    { month: month ?? null, account: movement?.account ?? null, id: movement?.id ?? null },
  );
}

/** Names the ledger's row of each share, where there is one of just that amount; gives the shares that have one now. */
export function insertReversalEvidence(
  tx: Transaction,
  rows: readonly { share_allocation_id: number; partner_id: string; reversal_id: string; price_from: string }[],
  taking: Omit<Taking, 'timeZone'>,
): Promise<{ share_allocation_id: number }[]> {
  return query(
    tx,
    `INSERT INTO reversal_evidence (share_allocation_id, partner_id, posted_month, entry_id, price_from, recorded_at, event_id)
     SELECT n.share_allocation_id, e.partner_id, e.posted_month, e.entry_id, n.price_from, :now::timestamptz,
            :eventId::bigint
     FROM json_to_recordset(:rows::json) AS n (
       share_allocation_id bigint, partner_id text, reversal_id text, price_from text)
     JOIN share_allocations r ON r.share_allocation_id = n.share_allocation_id
     JOIN ledger_rows e ON e.partner_id = n.partner_id COLLATE "C" AND e.kind = 'reversal'
       AND coalesce(e.reversal_id, e.requote_id, e.quote_id) = n.reversal_id COLLATE "C"
       AND e.quote_id = r.quote_id AND e.invoice_amount = r.amount
     ON CONFLICT DO NOTHING
     RETURNING share_allocation_id`,
    { rows: JSON.stringify(rows), now: taking.now, eventId: taking.eventId },
  );
}

// --- By a person ------------------------------------------------------------------------------------------------------

export interface MovementState {
  readonly balance_transaction_id: number;
  readonly account: string;
  readonly id: string;
  readonly kind: string;
  readonly currency: string;
  readonly net: string;
  /** Of it, what no quote explains yet. */
  readonly unexplained: string;
  readonly moved_at: string;
}

/** Movements of an id; more than one only where two accounts have the same. */
export function readMovements(
  tx: Transaction,
  { id, account }: { id: string; account?: string | undefined },
): Promise<MovementState[]> {
  return query(
    tx,
    `SELECT m.balance_transaction_id, m.account, m.id, m.kind, m.currency, m.net::text, m.moved_at,
            (m.net - coalesce((SELECT sum(amount) FROM share_allocations r WHERE r.balance_transaction_id = m.balance_transaction_id), 0))::text AS unexplained
     FROM balance_transactions m
     WHERE m.id = :id AND (:account::text IS NULL OR m.account = :account)
     ORDER BY m.account`,
    { id, account: account ?? null },
  );
}

/** What of a movement a quote has now, by person or otherwise. */
export async function readShareOf(
  tx: Transaction,
  share: { balanceTransactionId: number; partnerId: string; quoteId: string },
): Promise<string> {
  const { amount } = await queryOne<{ amount: string }>(
    tx,
    `SELECT coalesce(sum(amount), 0)::text AS amount FROM share_allocations
     WHERE balance_transaction_id = :balanceTransactionId AND partner_id = :partnerId AND quote_id = :quoteId`,
    share,
  );
  return amount;
}

/** A person says of which quote a movement is, or takes that back by the opposite amount. */
export function insertShareByPerson(
  tx: Transaction,
  share: { balanceTransactionId: number; partnerId: string; quoteId: string; amount: string; reason: string },
  taking: Taking,
): Promise<number> {
  return execute(
    tx,
    `INSERT INTO share_allocations (
       balance_transaction_id, partner_id, posted_month, entry_id, quote_id, currency, amount, matched_by, reason, moved_on, entry_on,
       recorded_at, event_id)
     SELECT m.balance_transaction_id, q.partner_id, q.posted_month, q.entry_id, q.quote_id, m.currency,
            trim_scale(:amount::numeric), 'person', :reason, day.moved_on,
            greatest(day.moved_on, (SELECT (month_after(max(month)) || '-01')::date FROM closed_months)),
            :now::timestamptz, :eventId::bigint
     FROM balance_transactions m
     ${ofAcceptedQuote(':quoteId', ':partnerId', 'm.currency')}
     CROSS JOIN LATERAL (SELECT (m.moved_at AT TIME ZONE :timeZone)::date AS moved_on) AS day
     WHERE m.balance_transaction_id = :balanceTransactionId
       AND EXISTS (SELECT FROM partner_arrangements a WHERE a.partner_id = q.partner_id AND a.connected_account_id = m.account)`,
    { ...share, ...taking },
  );
}

// --- Billing ----------------------------------------------------------------------------------------------------------

/**
 * Issues an invoice for each partner and currency of these, with a line for each policy and month of its quotes, and
 * gives the numbers. Leaves `issued_documents` for what follows an issue. Needs the ledger's lock.
 */
export async function insertMissingShares(
  tx: Transaction,
  issue: Issue,
  billable: readonly { partner_id: string; currency: string; quote_id: string; amount: string }[],
): Promise<string[]> {
  await execute(tx, `DROP TABLE IF EXISTS pg_temp.missing, pg_temp.issued_documents`);
  await execute(
    tx,
    `CREATE TEMPORARY TABLE missing ON COMMIT DROP AS
     SELECT b.partner_id COLLATE "C" AS partner_id, b.currency COLLATE "C" AS currency, b.quote_id, b.amount,
            e.policy_id, e.month
     FROM json_to_recordset(:billable::json) AS b (partner_id text, currency text, quote_id text, amount numeric)
     JOIN ledger_rows e ON e.partner_id = b.partner_id COLLATE "C" AND e.kind = 'quote_accepted'
       AND coalesce(e.reversal_id, e.requote_id, e.quote_id) = b.quote_id COLLATE "C"`,
    { billable: JSON.stringify(billable) },
  );
  await execute(
    tx,
    `CREATE TEMPORARY TABLE issued_documents (
       document_id bigint NOT NULL, partner_id text COLLATE "C" NOT NULL, currency text COLLATE "C" NOT NULL,
       arrangement text NOT NULL, sign integer NOT NULL
     ) ON COMMIT DROP`,
  );
  const issued = await query<{ number: string }>(
    tx,
    `WITH totals AS (
       SELECT partner_id, currency, count(*) AS quotes, sum(amount) AS amount
       FROM pg_temp.missing GROUP BY partner_id, currency
     ), ${OPEN_CREDIT}, issued AS (
       INSERT INTO documents (
         series, sequence, document, purpose, partner_id, month, currency, arrangement, issued_on, due_on, terms_days,
         enrollments, entries, spot_price, partner_cut, invoice_amount, credit_applied, partner_name, address_line1,
         address_line2, address_city, address_region, address_postal_code, address_country, tax_id, purchase_order,
         legal_note, issuer_version_id, sandbox, issued_at)
       SELECT series.series,
              row_number() OVER (ORDER BY t.partner_id, t.currency)
                + coalesce((SELECT max(d.sequence) FROM documents d WHERE d.series = series.series), 0),
              'invoice', 'missing_shares', t.partner_id, :month, t.currency, 'connected_account',
              :issuedOn::date, :issuedOn::date + terms.days, terms.days, t.quotes, 0, t.amount, 0, t.amount,
              least(coalesce(c.balance, 0), t.amount), p.name, p.address_line1, p.address_line2, p.address_city,
              p.address_region, p.address_postal_code, p.address_country, p.tax_id, p.purchase_order, p.legal_note,
              :issuerVersionId::bigint, :sandbox::boolean, :now::timestamptz
       FROM totals t
       JOIN partners p ON p.partner_id = t.partner_id
       LEFT JOIN open_credit c ON c.partner_id = t.partner_id AND c.currency = t.currency
       CROSS JOIN (SELECT 'INV-' || left(:issuedOn, 4) COLLATE "C" AS series) AS series
       CROSS JOIN LATERAL (SELECT coalesce(p.payment_terms_days, :termsDays::integer) AS days) AS terms
       ORDER BY t.partner_id, t.currency
       RETURNING document_id, number, partner_id, currency, arrangement
     ), kept AS (
       INSERT INTO pg_temp.issued_documents
       SELECT document_id, partner_id, currency, arrangement, 1 FROM issued RETURNING document_id
     )
     SELECT number FROM issued ORDER BY document_id`,
    { ...issue },
  );
  await execute(
    tx,
    `INSERT INTO missing_shares (document_id, partner_id, month, currency, arrangement, quote_id, amount)
     SELECT d.document_id, m.partner_id, :month, m.currency, d.arrangement, m.quote_id, trim_scale(m.amount)
     FROM pg_temp.missing m JOIN pg_temp.issued_documents d USING (partner_id, currency)`,
    { month: issue.month },
  );
  await execute(
    tx,
    `INSERT INTO document_lines (
       document_id, position, policy_id, policy_name, kind, month, count, spot_price, partner_cut, invoice_amount)
     SELECT d.document_id,
            row_number() OVER (PARTITION BY d.document_id ORDER BY m.month < :month, m.month, m.policy_id),
            m.policy_id, o.name, 'quote_accepted', m.month, count(*), sum(m.amount), 0, sum(m.amount)
     FROM pg_temp.missing m
     JOIN pg_temp.issued_documents d USING (partner_id, currency)
     JOIN policies o ON o.partner_id = m.partner_id AND o.policy_id = m.policy_id
     GROUP BY d.document_id, m.policy_id, o.name, m.month`,
    { month: issue.month },
  );
  return issued.map(({ number }) => number);
}
