/** SQL of the exports: their months, documents and totals. */
import { query, querying, queryingOne, queryingValue, Transaction } from '#database/transaction';
import { Month } from '#month';
import { DocumentNumbers, documentKey } from './ledger-rows.ts';

/** One billing month: the rows that were posted after the previous billing month, up to and including this one. */
export type BilledMonth = Readonly<{
  month: Month;
  /** The previous month; null for the first closed month, which bills all earlier rows. */
  previous: Month | null;
  /** The sizes of the log when the month closed and when its books closed; null while they are open. */
  closed_at_size: number | null;
  books_at_size: number | null;
}>;

/** The months of a range that have rows or are closed, in order. */
export const readBilledMonths = querying<BilledMonth, { from: Month; to: Month }>(`
  WITH months AS (
    SELECT month::text AS month, previous::text AS previous, true AS closed FROM closed_months
    UNION ALL
    SELECT DISTINCT posted_month, to_char((posted_month || '-01')::date - 1, 'YYYY-MM'), false FROM ledger_rows
    WHERE posted_month > coalesce((SELECT max(month) FROM closed_months), '')
  )
  SELECT m.month, m.previous,
         (SELECT size FROM log_checkpoints WHERE closes = 'month ' || m.month) AS closed_at_size,
         (SELECT size FROM log_checkpoints WHERE closes = 'books ' || m.month) AS books_at_size
  FROM months m
  WHERE m.month BETWEEN :from AND :to ORDER BY m.month`);

/**
 * The numbers of the documents that bill a month's rows: the last in each chain of replacements, even if it is void.
 * The list is empty while the month is open.
 */
export async function readDocumentNumbers(tx: Transaction, month: Month, lastNo: number): Promise<DocumentNumbers> {
  const documents = await query<{ number: string; partner_id: string; currency: string; arrangement: string }>(
    tx,
    `SELECT number, partner_id, currency, arrangement FROM documents d
     WHERE month = :month AND purpose = 'month' AND log_no <= :lastNo
       AND NOT EXISTS (SELECT FROM documents later WHERE later.replaces = d.document_id AND later.log_no <= :lastNo)`,
    { month, lastNo },
  );
  return new Map(documents.map((each) => [documentKey(each.partner_id, each.currency, each.arrangement), each.number]));
}

/** Sums of a billing month's rows. The close of a month states them. */
export function readLedgerTotals(
  tx: Transaction,
  { month, previous, closed_at_size }: BilledMonth,
  lastNo: number,
): Promise<{ currency: string; rows: number; spotPrice: string; partnerCut: string; invoiceAmount: string }[]> {
  const stated = `
    SELECT currency, entries, spot_price, partner_cut, invoice_amount FROM month_totals WHERE month = :month`;
  const summed = `
    SELECT currency, count(*) AS entries, sum(spot_price) AS spot_price, sum(partner_cut) AS partner_cut,
           sum(invoice_amount) AS invoice_amount
    FROM ledger_rows
    WHERE posted_month > :previous AND posted_month <= :month AND entry_id <= :lastNo
    GROUP BY currency`;
  return query(
    tx,
    `SELECT currency, entries AS rows, spot_price::text AS "spotPrice", partner_cut::text AS "partnerCut",
            invoice_amount::text AS "invoiceAmount"
     FROM (${closed_at_size === null ? summed : stated}) AS totals ORDER BY currency`,
    { month, previous: previous ?? '', lastNo },
  );
}

/** The number of the first row that these months bill; null if they have none. */
export const readFirstRow = queryingValue<number | null, Readonly<{ to: Month; previous: Month | null }>>(`
  SELECT min(entry_id) AS first FROM ledger_rows
  WHERE posted_month > coalesce(:previous::text, '') AND posted_month <= :to`);

export const readEmptiness = queryingOne<{ empty: boolean }>(
  `SELECT NOT EXISTS (SELECT FROM ledger_rows) AND NOT EXISTS (SELECT FROM openings) AS empty`,
);
