import { querying, queryingColumn, queryingOne, queryOne, Transaction } from '#database/transaction';
import { Month } from '#month';

/** The expected and received amounts of a quote over its whole life, in its currency. */
export type QuotePosition = Readonly<{
  partner_id: string;
  quote_id: string;
  currency: string;
  /** The amount of the quote's acceptances under a connected account. */
  accepted: string;
  /** The amount of the quote's reversals in the ledger, above zero. */
  reversed: string;
  received: string;
  /** The amount of reversed transfers, above zero. */
  transfers_reversed: string;
  /** The amount on valid invoices for missing shares. */
  billed: string;
  /** The part of the amount received, less reversed transfers, that arrived after billing and that pays the invoice. */
  paid: string;
  misrouted: boolean;
  disputed: boolean;
  /** Whether a share arrived too long after its acceptance. */
  late: boolean;
  other_accounts: readonly string[];
  first_accepted_at: string;
  last_accepted_at: string;
  balance_transactions: readonly string[];
}>;

/** The number of quotes that are as expected, and their sums. */
export type MatchedQuotes = Pick<
  QuotePosition,
  'partner_id' | 'currency' | 'accepted' | 'reversed' | 'received' | 'transfers_reversed' | 'billed'
> & { readonly quotes: number };

type PositionQuestion = Readonly<{
  month: Month;
  lateAfterDays: number;
}>;

/**
 * Returns SQL with all facts about quotes as one list of rows with a time. The rows are sorted and summed, never joined
 * to each other. `scope` restricts the quotes. A match that was undone counts as zero. A dispute concerns the platform.
 * Our account shows only a reversed transfer, and the partner's file shows that a dispute was the cause.
 */
export function quoteFacts(of: 'all' | 'scope') {
  const row = `SELECT e.partner_id, e.quote_id, e.currency, e.requote_id, e.kind, e.accepted_at AS at,
    e.invoice_amount AS amount,
              0 AS paid, NULL::text AS id, false AS misrouted, false AS disputed`;
  const routed = `e.arrangement = 'connected_account'`;
  const scoped = (table: string) =>
    of === 'all' ? '' : `JOIN scope s ON s.partner_id = ${table}.partner_id AND s.quote_id = ${table}.quote_id`;
  // With a scope, acceptances and other rows are each read by a separate index.
  const rows =
    of === 'all'
      ? `${row} FROM ledger_rows e WHERE ${routed}`
      : `${row}
       FROM scope s JOIN ledger_rows e ON e.partner_id = s.partner_id AND e.kind = 'quote_accepted'
         AND own_id(e) = s.quote_id
       WHERE ${routed}
       UNION ALL
       ${row}
       FROM ledger_rows e ${scoped('e')} WHERE e.kind <> 'quote_accepted' AND ${routed}`;
  return `${rows}
       UNION ALL
       SELECT r.partner_id, r.quote_id, r.currency, r.requote_id, 'share', m.occurred_at, sum(r.amount),
              coalesce(sum(p.amount), 0), m.id, m.kind = 'misrouted',
              m.kind = 'dispute' OR (sum(r.amount) < 0 AND EXISTS (
                SELECT FROM settlement_lines l WHERE l.kind = 'dispute' AND l.partner_id = r.partner_id
                  AND l.quote_id = r.quote_id AND l.payment = m.payment))
       FROM share_allocations r ${scoped('r')}
       JOIN balance_transactions m USING (balance_transaction_id)
       LEFT JOIN (SELECT share_allocation_id, sum(amount) AS amount FROM share_payments
         GROUP BY share_allocation_id) AS p
         USING (share_allocation_id)
       GROUP BY r.partner_id, r.quote_id, r.currency, r.requote_id, m.balance_transaction_id HAVING sum(r.amount) <> 0
       UNION ALL
       SELECT b.partner_id, b.quote_id, b.currency, NULL, 'billed', NULL, b.amount, 0, NULL, false, false
       FROM live_missing_shares b ${scoped('b')}`;
}

/** The positions of the quotes in `scope`, as the part of a WITH that follows `scope`. */
const POSITIONS = `facts AS (
       ${quoteFacts('scope')}
     ), measured AS (
       -- The delay of a share: from the acceptance that it names, or else from the last acceptance before its arrival.
       SELECT facts.*, kind LIKE '%\\_accepted' AS accepts,
              max(at) FILTER (WHERE kind LIKE '%\\_accepted')
                OVER (PARTITION BY partner_id, quote_id ORDER BY at) AS last_accepted,
              max(at) FILTER (WHERE kind = 'requote_accepted')
                OVER (PARTITION BY partner_id, quote_id, requote_id ORDER BY at) AS own_accepted
       FROM facts
     ), strays AS (
       -- Only quotes that finance matched, or whose partners have several accounts, can have other accounts.
       SELECT partner_id, quote_id, json_agg(account ORDER BY account) AS other_accounts
       FROM (
         SELECT DISTINCT r.partner_id, r.quote_id, m.account
         FROM share_allocations r JOIN balance_transactions m USING (balance_transaction_id)
         JOIN scope s ON s.partner_id = r.partner_id AND s.quote_id = r.quote_id
         WHERE (r.other_account OR r.partner_id IN (
             SELECT partner_id FROM account_partners GROUP BY partner_id HAVING count(*) > 1))
           AND NOT EXISTS (
             SELECT FROM ledger_rows e
             CROSS JOIN LATERAL (
               SELECT a.connected_account_id FROM partner_arrangements a
               WHERE a.partner_id = e.partner_id AND a.from_month <= e.month COLLATE "C"
               ORDER BY a.from_month DESC LIMIT 1) AS a
             WHERE e.partner_id = r.partner_id AND e.arrangement = 'connected_account'
               AND a.connected_account_id = m.account
               AND ((e.kind = 'quote_accepted' AND own_id(e) = r.quote_id)
                 OR (e.kind = 'requote_accepted' AND e.quote_id = r.quote_id)))
         GROUP BY r.partner_id, r.quote_id, m.account, m.balance_transaction_id HAVING sum(r.amount) <> 0
       ) AS received GROUP BY partner_id, quote_id
     ), positions AS MATERIALIZED (
       SELECT sums.*, coalesce(strays.other_accounts, '[]') AS other_accounts,
              accepted - reversed = received AND NOT was_billed AND transfers_reversed = 0 AND paid = 0
                AND NOT misrouted AND NOT late AND strays.other_accounts IS NULL AS plain
       FROM (
         SELECT partner_id, quote_id, currency,
                coalesce(sum(amount) FILTER (WHERE accepts), 0) AS accepted,
                coalesce(-sum(amount) FILTER (WHERE kind = 'reversal'), 0) AS reversed,
                min(at) FILTER (WHERE accepts) AS first_accepted_at, max(at) FILTER (WHERE accepts) AS last_accepted_at,
                coalesce(sum(amount) FILTER (WHERE kind = 'share' AND amount > 0), 0) AS received,
                coalesce(-sum(amount) FILTER (WHERE kind = 'share' AND amount < 0), 0) AS transfers_reversed,
                sum(paid) AS paid, coalesce(sum(amount) FILTER (WHERE kind = 'billed'), 0) AS billed,
                bool_or(kind = 'billed') AS was_billed, bool_or(misrouted) AS misrouted, bool_or(disputed) AS disputed,
                coalesce(bool_or(kind = 'share' AND amount > 0
                  AND at > :lateAfterDays * interval '1 day' + coalesce(own_accepted, last_accepted)), false) AS late,
                coalesce(json_agg(id ORDER BY at, id) FILTER (WHERE kind = 'share'), '[]') AS balance_transactions
         FROM measured GROUP BY partner_id, quote_id, currency
         HAVING bool_or(kind NOT IN ('share', 'billed'))) AS sums
       LEFT JOIN strays USING (partner_id, quote_id)
     )`;

const POSITION = `partner_id, quote_id, currency, accepted::text, reversed::text, received::text,
  transfers_reversed::text, billed::text, paid::text, misrouted, disputed, late, other_accounts, first_accepted_at, last_accepted_at,
  balance_transactions`;

/** Reads the quotes of a month. Quotes that are as expected are summed. The other quotes are listed. */
export async function readPositions(
  tx: Transaction,
  question: PositionQuestion,
): Promise<{ matched: MatchedQuotes[]; others: QuotePosition[] }> {
  const { matched, others } = await queryOne<{ matched: MatchedQuotes[]; others: QuotePosition[] }>(
    tx,
    `WITH scope AS MATERIALIZED (
       SELECT DISTINCT partner_id, quote_id FROM ledger_rows WHERE posted_month = :month
         AND arrangement = 'connected_account'
     ), ${POSITIONS}
     SELECT coalesce((
              SELECT json_agg(m ORDER BY m.partner_id COLLATE "C", m.currency) FROM (
                SELECT partner_id, currency, count(*) AS quotes, sum(accepted)::text AS accepted,
                       sum(reversed)::text AS reversed, sum(received)::text AS received,
                         sum(transfers_reversed)::text AS transfers_reversed,
                       sum(billed)::text AS billed
                FROM positions WHERE plain GROUP BY partner_id, currency) AS m), '[]') AS matched,
            coalesce((
              SELECT json_agg(o ORDER BY o.partner_id COLLATE "C", o.quote_id COLLATE "C") FROM (
                SELECT ${POSITION} FROM positions WHERE NOT plain) AS o), '[]') AS others`,
    { ...question },
  );
  return { matched, others };
}

/**
 * Reads the quotes on the statements of these months whose received amount is not the expected amount, with the months
 * of their rows. The earliest month is first. For most quotes only sums are compared; the few quotes that differ are
 * examined.
 */
export const readUnevenPositions = queryingOne<
  {
    positions: QuotePosition[];
    statements: Readonly<{ partner_id: string; quote_id: string; month: Month }>[];
  },
  Readonly<{ months: readonly Month[]; lateAfterDays: number }>
>(`
  WITH own AS MATERIALIZED (
    SELECT partner_id, quote_id, currency, kind, posted_month, invoice_amount FROM ledger_rows
    WHERE posted_month >= (:months::text[])[1] AND arrangement = 'connected_account'
      -- Later sales are on no statement of these months. Later requotes and reversals may belong to a sale that is
      -- on such a statement.
      AND (posted_month = ANY (:months) OR kind <> 'quote_accepted')
  ), uneven AS MATERIALIZED (
    SELECT partner_id, quote_id FROM (
      SELECT partner_id, quote_id, currency, kind, invoice_amount AS amount FROM own
      UNION ALL
      SELECT partner_id, quote_id, currency, NULL, -amount FROM share_allocations
      WHERE posted_month = ANY (:months)
      UNION ALL
      SELECT r.partner_id, r.quote_id, r.currency, NULL, p.amount
      FROM share_payments p JOIN share_allocations r USING (share_allocation_id)
      WHERE r.posted_month = ANY (:months)
      UNION ALL
      SELECT partner_id, quote_id, currency, NULL, -amount FROM live_missing_shares
    ) AS facts
    GROUP BY partner_id, quote_id, currency
    -- A quote whose acceptance is not here has more rows in earlier months.
    HAVING sum(amount) <> 0 OR coalesce(bool_and(kind <> 'quote_accepted'), true)
  ), statements AS MATERIALIZED (
    SELECT DISTINCT partner_id, quote_id, posted_month AS month FROM own JOIN uneven USING (partner_id, quote_id)
    WHERE posted_month = ANY (:months)
  ), scope AS MATERIALIZED (
    SELECT DISTINCT partner_id, quote_id FROM statements
  ), ${POSITIONS}
  SELECT coalesce((
           SELECT json_agg(p) FROM (
             SELECT ${POSITION} FROM positions
             WHERE accepted - reversed <> received - transfers_reversed - paid + billed) AS p), '[]') AS positions,
         coalesce((SELECT json_agg(s) FROM statements s), '[]') AS statements`);

export type NamedQuote = Readonly<{
  partner_id: string;
  currency: string;
  /** Whether any part of the quote was accepted under a connected account. */
  is_routed: boolean;
  /** Whether the partner has or had the balance transaction's account. */
  own_account: boolean;
  /** If the quote is not routed: the month's invoice, if it was issued. */
  invoice: string | null;
}>;

/** SQL of the facts of NamedQuote about a quote, whose row has the column `own_id`, and an account. */
export const namedQuote = (quote: string, account: string) => `
  EXISTS (SELECT FROM routed_quotes r
          WHERE r.partner_id = ${quote}.partner_id AND r.own_id = ${quote}.own_id) AS is_routed,
  EXISTS (SELECT FROM account_partners p
          WHERE p.account = ${account} AND p.partner_id = ${quote}.partner_id) AS own_account,
  (SELECT d.number FROM live_documents d JOIN closed_months m USING (month)
   WHERE d.partner_id = ${quote}.partner_id AND d.currency = ${quote}.currency AND d.arrangement = ${quote}.arrangement
     AND d.document = 'invoice' AND d.purpose = 'month'
     AND ${quote}.posted_month > coalesce(m.previous, '') AND ${quote}.posted_month <= d.month
   ORDER BY d.document_id DESC LIMIT 1) AS invoice`;

export type UnmatchedBalanceTransaction = Readonly<{
  account: string;
  id: string;
  type: string;
  kind: string;
  currency: string;
  amount: string;
  /** The amount sent, if the processor converted it; otherwise the net amount. */
  share_currency: string;
  share_amount: string;
  /** `returned`: reversals took the money back. `closed`: finance closed it. Null: open. */
  ended: 'returned' | 'closed' | null;
  reason: string | null;
  occurred_at: string;
  payment: string | null;
  transfer: string | null;
  /** The quote_id in the metadata. */
  quote_id: string | null;
  of_month: boolean;
  /** Whether the balance transaction is open, brought money and names a requested quote. */
  names_asked: boolean;
  /**
   * The quotes of the ledger with the `quote_id` of the metadata. This field is read only for balance transactions of
   * the month, like `candidates`.
   */
  named: readonly NamedQuote[];
  partners: readonly string[];
  /**
   * Quotes of these partners for which exactly this amount is open, for manual review. The quote that is nearest in
   * time comes first.
   */
  candidates: readonly Readonly<{ partner_id: string; quote_id: string }>[];
}>;

/**
 * Reads two kinds of balance transactions without a quote.
 *
 * The first kind belongs to one month in the issuer's time zone, and is read with candidates for manual review. The
 * second kind may be of any date: it is open, has received money, and names a requested quote in its metadata. One
 * statement reads both kinds, because finding unexplained amounts takes longest.
 */
export const readUnmatchedBalanceTransactions = querying<
  UnmatchedBalanceTransaction,
  { startsAt: string; endsAt: string; quoteIds: readonly string[] }
>(`
  WITH unknown AS MATERIALIZED (
    SELECT * FROM (
      SELECT u.*, occurred_at >= :startsAt AND occurred_at < :endsAt AS of_month,
             coalesce(ended IS NULL AND unexplained > 0 AND quote_id = ANY (:quoteIds), false) AS names_asked
      FROM unexplained_balance_transactions u
      WHERE balance_transaction_id = ANY (ARRAY(
        SELECT balance_transaction_id FROM balance_transactions
        WHERE occurred_at >= :startsAt AND occurred_at < :endsAt
        UNION
        SELECT balance_transaction_id FROM balance_transactions WHERE quote_id = ANY (:quoteIds)))
      OFFSET 0
    ) AS asked
    WHERE of_month OR names_asked
  ), named AS MATERIALIZED (
    SELECT e.partner_id, e.currency, e.posted_month, e.arrangement, own_id(e) AS own_id
    -- Uses the key of each partner's rows, because no index has only the quote's id.
    FROM partners p JOIN ledger_rows e ON e.partner_id = p.partner_id
    WHERE e.kind = 'quote_accepted'
      AND own_id(e) = ANY (ARRAY(SELECT quote_id FROM unknown WHERE of_month AND quote_id IS NOT NULL))
  ), near AS MATERIALIZED (
    SELECT e.partner_id, e.quote_id, e.currency, min(e.accepted_at) AS accepted_at,
           sum(e.invoice_amount) - coalesce((
             SELECT sum(r.amount) FROM share_allocations r
             WHERE r.partner_id = e.partner_id AND r.quote_id = e.quote_id), 0) AS open
    FROM ledger_rows e
    WHERE e.arrangement = 'connected_account'
      AND e.partner_id = ANY (ARRAY(
        SELECT o.partner_id FROM account_partners o JOIN unknown u ON u.account = o.account WHERE u.of_month))
      -- Money arrives within months of its quote.
      AND e.posted_month >= to_char(:startsAt::timestamptz - interval '3 months', 'YYYY-MM') COLLATE "C"
      AND e.posted_month <= to_char(:endsAt::timestamptz + interval '3 months', 'YYYY-MM') COLLATE "C"
    GROUP BY e.partner_id, e.quote_id, e.currency
  )
  SELECT u.account, u.id, u.type, u.kind, u.currency, u.unexplained::text AS amount, u.share_currency,
         u.share_amount::text, u.ended, u.occurred_at, u.payment, u.transfer, u.quote_id, u.of_month, u.names_asked,
         (SELECT c.reason FROM balance_transaction_closings c
           WHERE c.balance_transaction_id = u.balance_transaction_id AND c.amount = u.unexplained) AS reason,
         coalesce((
           SELECT json_agg(q ORDER BY q.partner_id)
           FROM (SELECT n.partner_id, n.currency, ${namedQuote('n', 'u.account')}
                 FROM named n WHERE u.of_month AND n.own_id = u.quote_id) AS q), '[]') AS named,
         coalesce((SELECT json_agg(o.partner_id ORDER BY o.partner_id) FROM account_partners o
           WHERE o.account = u.account), '[]') AS partners,
         coalesce((
           SELECT json_agg(json_build_object('partner_id', c.partner_id, 'quote_id', c.quote_id)
             ORDER BY c.distance, c.quote_id)
           FROM (
             SELECT n.partner_id, n.quote_id, abs(extract(epoch FROM n.accepted_at - u.occurred_at)) AS distance
             FROM near n JOIN account_partners o ON o.account = u.account AND o.partner_id = n.partner_id
             WHERE u.of_month AND n.currency = u.rest_currency AND n.open = u.rest_amount
             ORDER BY distance, n.quote_id LIMIT 5) AS c), '[]') AS candidates
  FROM unknown u ORDER BY u.occurred_at, u.id`);

export type OtherBalanceTransactions = Readonly<{
  account: string;
  currency: string;
  type: string;
  count: number;
  net: string;
}>;

/** Reads balance transactions that are not shares, such as payouts. */
export const readOtherBalanceTransactions = querying<OtherBalanceTransactions, { startsAt: string; endsAt: string }>(`
  SELECT account, currency, type, count(*) AS count, sum(net)::text AS net FROM balance_transactions
  WHERE kind = 'other' AND occurred_at >= :startsAt AND occurred_at < :endsAt
  GROUP BY account, currency, type ORDER BY account, currency, type`);

/** Reads the latest months that have a statement, the oldest month first. */
export const readStatementMonths = queryingColumn<Month, { months: number }>(`
  SELECT month FROM (
    SELECT DISTINCT month FROM documents WHERE document = 'statement' ORDER BY month DESC LIMIT :months) AS latest
  ORDER BY month`);

/** Reads the statements of a month. `invoice_amount` is the amount that should be routed. */
export const readStatements = querying<
  { partner_id: string; currency: string; number: string; invoice_amount: string },
  { month: Month }
>(`
  SELECT d.partner_id, d.currency, d.number, d.invoice_amount::text
  FROM live_documents d
  WHERE d.month = :month AND d.document = 'statement' AND d.purpose = 'month'
  ORDER BY d.partner_id, d.currency`);
