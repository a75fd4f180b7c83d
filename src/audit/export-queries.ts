/** SQL of the exports: COPY statements, and the totals of their rows. */
import { query, queryOne, type Transaction } from '../database/transaction.ts';
import type { Month } from '../month.ts';
import { type DocumentNumbers, documentKey } from './ledger-rows.ts';

/** One billing month: the rows posted after the month before it and up to it. */
export interface BilledMonth {
  readonly month: Month;
  /** The previous month; null for the first closed one, which bills all earlier rows. */
  readonly previous: Month | null;
  /** Null while the month is open. */
  readonly seal: string | null;
  readonly record: string | null;
  readonly facts_after: number | null;
  readonly facts_to: number | null;
}

/** The months of a range that have rows or are closed, in order. */
export function readBilledMonths(tx: Transaction, from: Month, to: Month): Promise<BilledMonth[]> {
  return query(
    tx,
    `WITH months AS (
       SELECT month::text AS month, previous::text AS previous, true AS closed FROM closed_months
       UNION ALL
       SELECT DISTINCT posted_month, to_char((posted_month || '-01')::date - 1, 'YYYY-MM'), false FROM ledger_rows
       WHERE posted_month > coalesce((SELECT max(month) FROM closed_months), '')
     )
     SELECT m.month, m.previous, s.seal, s.record, s.facts_to,
            CASE WHEN s.month IS NOT NULL THEN coalesce(p.facts_to, 0) END AS facts_after
     FROM months m LEFT JOIN seals s ON s.month = m.month LEFT JOIN seals p ON p.month = s.previous
     WHERE m.month BETWEEN :from AND :to ORDER BY m.month`,
    { from, to },
  );
}

export function readInstallation(tx: Transaction): Promise<{ installation_id: string; environment: string }> {
  return queryOne(tx, `SELECT installation_id, environment FROM installation`);
}

const time = (column: string) => `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

// The same as `cellOf` in csv.ts. Most texts begin with a letter, so that is compared first.
export const cell = (column: string) =>
  `CASE WHEN ${column} COLLATE "C" >= 'A' THEN ${column}
        WHEN ${column} ~ '^[=+@''\\t\\r-]' THEN '''' || ${column} ELSE ${column} END`;
const plain = (column: string) => column;

/**
 * The numbers of the documents that bill a month's rows: the last in each chain of replacements, even if it is void. None
 * while the month is open.
 */
export async function readDocumentNumbers(tx: Transaction, month: Month): Promise<DocumentNumbers> {
  const documents = await query<{ number: string; partner_id: string; currency: string; arrangement: string }>(
    tx,
    `SELECT number, partner_id, currency, arrangement FROM documents d
     WHERE month = :month AND purpose = 'month'
       AND NOT EXISTS (SELECT FROM documents later WHERE later.replaces = d.document_id)`,
    { month },
  );
  return new Map(documents.map((each) => [documentKey(each.partner_id, each.currency, each.arrangement), each.number]));
}

/** COPY options that write JSON unchanged: JSON escapes control characters, so none can be a quote or delimiter. */
export const AS_IT_IS = `FORMAT csv, QUOTE E'\\x01', DELIMITER E'\\x02'`;

/** Sums of a billing month's rows. */
export function readLedgerTotals(
  tx: Transaction,
  { month, previous }: BilledMonth,
): Promise<{ currency: string; rows: number; spotPrice: string; partnerCut: string; invoiceAmount: string }[]> {
  return query(
    tx,
    `SELECT currency, count(*) AS rows, sum(spot_price)::text AS "spotPrice", sum(partner_cut)::text AS "partnerCut",
            sum(invoice_amount)::text AS "invoiceAmount"
     FROM ledger_rows WHERE posted_month > :previous AND posted_month <= :month
     GROUP BY currency ORDER BY currency`,
    { month, previous: previous ?? '' },
  );
}

/** Ids of the documents of months, in number order. */
export async function readDocumentIds(tx: Transaction, from: Month, to: Month): Promise<number[]> {
  const rows = await query<{ document_id: number }>(
    tx,
    `SELECT document_id FROM documents WHERE month BETWEEN :from AND :to ORDER BY series, sequence`,
    { from, to },
  );
  return rows.map((row) => row.document_id);
}

/** A range of fact numbers. */
export interface FactRange {
  readonly after: number;
  readonly to: number | null;
}

/** The facts under the seals of these months, and if one of them is open also the facts that no seal covers yet. */
export function readFactsOf(tx: Transaction, from: Month, to: Month): Promise<FactRange> {
  return queryOne(
    tx,
    `SELECT coalesce((SELECT max(facts_to) FROM seals WHERE month < :from), 0) AS after,
            CASE WHEN EXISTS (SELECT FROM seals WHERE month >= :to)
                 THEN (SELECT coalesce(max(facts_to), 0) FROM seals WHERE month <= :to) END AS to`,
    { from, to },
  );
}

const EVENTS = (text: (column: string) => string) =>
  [
    ['event_id', 'event_id'],
    ['occurred_at', time('occurred_at')],
    ['action', text('action')],
    ['subject', text('subject')],
    ['details', 'details'],
    ['claimed_by', text('claimed_by')],
    ['os_user', text('os_user')],
    ['host', text('host')],
    ['via', text('via')],
  ] as const;

const eventRows = ({ after, to }: FactRange) =>
  `FROM audit_events WHERE fact_id > ${after} ${to === null ? '' : `AND fact_id <= ${to}`} ORDER BY fact_id`;

export function copyEventsCsv(range: FactRange): string {
  const list = EVENTS(cell).map(([name, value]) => `${value} AS ${name}`);
  return `COPY (SELECT ${list.join(', ')} ${eventRows(range)}) TO STDOUT (FORMAT csv, HEADER)`;
}

export function copyEventsJson(range: FactRange): string {
  const list = EVENTS(plain).map(([name, value]) => `'${name}', ${value}`);
  return `COPY (SELECT json_build_object(${list.join(', ')}) ${eventRows(range)}) TO STDOUT (${AS_IT_IS})`;
}

export async function countEvents(tx: Transaction, range: FactRange): Promise<number> {
  const { events } = await queryOne<{ events: number }>(
    tx,
    `SELECT count(*) AS events FROM audit_events
     WHERE fact_id > :after AND (:to::bigint IS NULL OR fact_id <= :to::bigint)`,
    { ...range },
  );
  return events;
}

// --- Payments ---------------------------------------------------------------------------------------------------------

/** By the month of the entry date, so an export of months whose books are closed never changes. */
const inMonths = (from: Month, to: Month) => `to_char(entry_on, 'YYYY-MM') BETWEEN '${from}' AND '${to}'`;
const exactly = (column: string) => `round(${column}, minor_digits(currency))::text`;

type Columns = readonly (readonly [name: string, value: string])[];

/** Payments by entry date, with their status now. */
const PAYMENTS = (text: (column: string) => string): Columns => [
  ['payment_id', 'payment_id'],
  ['received_on', 'received_on'],
  ['entry_on', 'entry_on'],
  ['partner_id', text('partner_id')],
  ['currency', 'currency'],
  ['amount', exactly('amount')],
  ['method', 'method'],
  ['account', text('account')],
  ['reference', text('reference')],
  ['payer_name', text('payer_name')],
  ['payer_account', text('payer_account')],
  ['source', 'source'],
  ['identity', text('identity')],
  ['recorded_at', time('recorded_at')],
  ['applied', exactly('applied')],
  ['reversed', exactly('reversed')],
  ['unapplied', exactly('unapplied')],
  ['status', 'status'],
];

const paymentRows = (from: Month, to: Month) => `
  FROM (SELECT p.payment_id, p.received_on, p.entry_on, b.partner_id, p.currency, p.amount, p.method, p.account,
               p.reference, p.payer_name, p.payer_account, p.source, p.identity, p.recorded_at, b.applied, b.reversed,
               b.unapplied, b.status
        FROM payments p JOIN payment_balances b USING (payment_id)) AS payment
  WHERE ${inMonths(from, to)} ORDER BY payment_id`;

/** The columns that moves of payments and of credit have alike. */
const MOVES = (text: (column: string) => string): Columns => [
  ['move', 'move'],
  ['document', 'document'],
  ['currency', 'currency'],
  ['amount', exactly('amount')],
  ['dated_on', 'dated_on'],
  ['entry_on', 'entry_on'],
  ['why', text('why')],
  ['recorded_at', time('recorded_at')],
];

/**
 * Applications and bank charges by entry date, and unapplied, reversed and refunded amounts as negative numbers. An
 * assigned amount changes hands between partners.
 */
const PAYMENT_MOVES = (text: (column: string) => string): Columns => [['payment_id', 'payment_id'], ...MOVES(text)];

const paymentMoveRows = (from: Month, to: Month) => `
  FROM (
    SELECT a.payment_id, 'applied' AS move, d.number AS document, a.currency, a.amount, a.applied_on AS dated_on,
           a.entry_on, a.evidence->>'why' AS why, a.recorded_at
    FROM payment_applications a JOIN documents d USING (document_id)
    UNION ALL
    SELECT a.payment_id, 'unapplied', d.number, a.currency, -a.amount, u.unapplied_on, u.entry_on,
           CASE WHEN u.payment_reversal_id IS NULL THEN 'unapplied by a user' ELSE 'payment reversed' END,
           u.recorded_at
    FROM payment_unapplications u JOIN payment_applications a USING (payment_application_id)
    JOIN documents d USING (document_id)
    UNION ALL
    SELECT a.payment_id, 'bank_charges', d.number, s.currency, s.amount, a.applied_on, s.entry_on,
           'a difference too small to pursue', s.recorded_at
    FROM small_differences s JOIN payment_applications a USING (payment_application_id)
    JOIN documents d ON d.document_id = s.document_id
    UNION ALL
    SELECT a.payment_id, 'bank_charges_reversed', d.number, s.currency, -s.amount, u.unapplied_on, u.entry_on,
           CASE WHEN u.payment_reversal_id IS NULL THEN 'unapplied by a user' ELSE 'payment reversed' END,
           u.recorded_at
    FROM payment_unapplications u JOIN small_differences s USING (payment_application_id)
    JOIN payment_applications a USING (payment_application_id) JOIN documents d ON d.document_id = s.document_id
    UNION ALL
    SELECT r.payment_id, r.kind, NULL, r.currency, -r.amount, r.reversed_on, r.entry_on,
           concat_ws(': ', r.code, r.reason), r.recorded_at
    FROM payment_reversals r
    UNION ALL
    SELECT g.payment_id, 'assigned', NULL, p.currency, g.amount, g.assigned_on, g.entry_on,
           format('from %s to %s', coalesce(g.from_partner_id, 'an unknown payer'), g.partner_id), g.recorded_at
    FROM payment_assignments g JOIN payments p USING (payment_id)
  ) AS moved
  WHERE ${inMonths(from, to)} ORDER BY recorded_at, payment_id, move, document`;

const CREDIT_MOVES = (text: (column: string) => string): Columns => [['credit_note', 'credit_note'], ...MOVES(text)];

/** What became of open credit: above zero it is used, below zero it is open again. */
const creditMoveRows = (from: Month, to: Month) => `
  FROM (
    SELECT n.number AS credit_note, 'applied' AS move, d.number AS document, n.currency, a.amount,
           a.applied_on AS dated_on, a.entry_on, e.action AS why, a.recorded_at, a.fact_id
    FROM credit_applications a JOIN documents n ON n.document_id = a.credit_note_id
    JOIN documents d ON d.document_id = a.invoice_id JOIN audit_events e USING (event_id)
    UNION ALL
    SELECT n.number, 'released', d.number, n.currency, -a.amount, r.released_on, r.entry_on, e.action, r.recorded_at,
           r.fact_id
    FROM credit_releases r JOIN credit_applications a USING (credit_application_id)
    JOIN documents n ON n.document_id = a.credit_note_id JOIN documents d ON d.document_id = a.invoice_id
    JOIN audit_events e ON e.event_id = r.event_id
    UNION ALL
    SELECT n.number, 'refunded', NULL, f.currency, f.amount, f.refunded_on, f.entry_on, f.reference, f.recorded_at,
           f.fact_id
    FROM credit_refunds f JOIN documents n USING (document_id)
    UNION ALL
    SELECT n.number, 'refund_returned', NULL, f.currency, -f.amount, b.returned_on, b.entry_on, b.reason, b.recorded_at,
           b.fact_id
    FROM credit_refund_returns b JOIN credit_refunds f USING (credit_refund_id) JOIN documents n USING (document_id)
  ) AS moved
  WHERE ${inMonths(from, to)} ORDER BY fact_id`;

const csvCopy = (columns: Columns, rows: string) => {
  const list = columns.map(([name, value]) => `${value} AS ${name}`).join(', ');
  return `COPY (SELECT ${list} ${rows}) TO STDOUT (FORMAT csv, HEADER)`;
};
const jsonCopy = (columns: Columns, rows: string) => {
  const pairs = columns.map(([name, value]) => `'${name}', ${value}`).join(', ');
  return `COPY (SELECT json_build_object(${pairs}) ${rows}) TO STDOUT (${AS_IT_IS})`;
};

export const copyPayments = (from: Month, to: Month, format: 'csv' | 'jsonl'): string =>
  format === 'csv' ? csvCopy(PAYMENTS(cell), paymentRows(from, to)) : jsonCopy(PAYMENTS(plain), paymentRows(from, to));

export const copyPaymentMoves = (from: Month, to: Month, format: 'csv' | 'jsonl'): string =>
  format === 'csv'
    ? csvCopy(PAYMENT_MOVES(cell), paymentMoveRows(from, to))
    : jsonCopy(PAYMENT_MOVES(plain), paymentMoveRows(from, to));

export const copyCreditMoves = (from: Month, to: Month, format: 'csv' | 'jsonl'): string =>
  format === 'csv'
    ? csvCopy(CREDIT_MOVES(cell), creditMoveRows(from, to))
    : jsonCopy(CREDIT_MOVES(plain), creditMoveRows(from, to));

/** Sums of payments by currency. */
export function readPaymentTotals(
  tx: Transaction,
  from: Month,
  to: Month,
): Promise<{ currency: string; rows: number; amount: string }[]> {
  return query(
    tx,
    `SELECT currency, count(*) AS rows, sum(amount)::text AS amount FROM payments
     WHERE to_char(entry_on, 'YYYY-MM') BETWEEN :from AND :to GROUP BY currency ORDER BY currency`,
    { from, to },
  );
}
