/** SQL of the exports: their months, facts and totals. */
import { query, queryOne, type Transaction } from '../database/transaction.ts';
import type { Month } from '../month.ts';
import { type DocumentNumbers, documentKey } from './ledger-rows.ts';

/** One billing month: the rows posted after the previous month and up to it. */
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

/**
 * The numbers of the documents that bill a month's rows: the last in each chain of replacements, even if it is void.
 * Empty while the month is open.
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

/** Ids of the documents of months, in number order. Carried-over documents belong to no month, whatever their date. */
export async function readDocumentIds(tx: Transaction, from: Month, to: Month): Promise<number[]> {
  const rows = await query<{ document_id: number }>(
    tx,
    `SELECT document_id FROM documents WHERE month BETWEEN :from AND :to AND purpose <> 'opening'
     ORDER BY series, sequence`,
    { from, to },
  );
  return rows.map((row) => row.document_id);
}

/** A range of fact numbers. */
export interface FactRange {
  readonly after: number;
  readonly to: number | null;
}

/** The facts under the seals of these months and, if one of them is open, also the facts that no seal covers yet. */
export function readFactsOf(tx: Transaction, from: Month, to: Month): Promise<FactRange> {
  return queryOne(
    tx,
    `SELECT coalesce((SELECT max(facts_to) FROM seals WHERE month < :from), 0) AS after,
            CASE WHEN EXISTS (SELECT FROM seals WHERE month >= :to)
                 THEN (SELECT coalesce(max(facts_to), 0) FROM seals WHERE month <= :to) END AS to`,
    { from, to },
  );
}

/** Sums of payments by currency. */
export function readPaymentTotals(
  tx: Transaction,
  from: Month,
  to: Month,
): Promise<{ currency: string; amount: string }[]> {
  return query(
    tx,
    `SELECT currency, sum(amount)::text AS amount FROM payments
     WHERE to_char(entry_on, 'YYYY-MM') BETWEEN :from AND :to GROUP BY currency ORDER BY currency`,
    { from, to },
  );
}

export const readEmptiness = (tx: Transaction): Promise<{ empty: boolean }> =>
  queryOne(tx, `SELECT NOT EXISTS (SELECT FROM ledger_rows) AND NOT EXISTS (SELECT FROM openings) AS empty`);
