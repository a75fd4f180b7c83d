import { query, querying, Transaction } from '#database/transaction';
import { Month } from '#month';

export type ClosedMonth = Readonly<{
  month: Month;
  closed_at: string;
  books_closed: boolean;
  /** The number of facts of the checkpoint that closes the month. */
  checkpoint: number | null;
  totals: readonly Readonly<{ currency: string; invoice_amount: string; rows: number }>[];
}>;

export const MONTHS_SHOWN = 11;

/** The latest closed months up to `until`, and the month before them. */
export const readClosedMonths = (tx: Transaction, until: Month | null = null): Promise<ClosedMonth[]> =>
  query(
    tx,
    `SELECT m.month, m.closed_at, b.month IS NOT NULL AS books_closed, k.size AS checkpoint,
            coalesce(t.totals, '[]') AS totals
     FROM (SELECT * FROM closed_months WHERE :until::text IS NULL OR month <= :until::text
           ORDER BY month DESC LIMIT :shown) AS m
     LEFT JOIN book_closes b USING (month)
     LEFT JOIN log_checkpoints k ON k.closes = 'month ' || m.month
     CROSS JOIN LATERAL (
       SELECT json_agg(json_build_object('currency', currency, 'invoice_amount', invoice_amount::text,
                                         'rows', entries) ORDER BY currency) AS totals
       FROM month_totals WHERE month = m.month) AS t
     ORDER BY m.month`,
    { shown: MONTHS_SHOWN + 1, until },
  );

export const readPostedSums = querying<
  { month: Month; currency: string; invoice_amount: string; rows: number },
  { month: Month }
>(`
  SELECT posted_month AS month, currency, sum(invoice_amount)::text AS invoice_amount, count(*) AS rows
  FROM ledger_rows WHERE posted_month >= :month GROUP BY 1, 2 ORDER BY 1, 2`);

export type Signature = Readonly<{
  close: 'month' | 'books';
  by: string;
  at: string;
  approver: string | null;
}>;

export const readSignatures = querying<Signature, { month: Month }>(`
  SELECT c.close, coalesce(personal(u.login), personal(e.claimed_by), e.os_user) AS by, c.closed_at AS at,
         personal(e.details -> 'approval' ->> 'approved_by') AS approver
  FROM (SELECT 'month' AS close, m.closed_at, max(e.event_id) AS event_id
        FROM closed_months m JOIN audit_events e ON e.subject = m.month AND e.action = 'month.close'
        WHERE m.month = :month GROUP BY m.month
        UNION ALL SELECT 'books', closed_at, event_id FROM book_closes WHERE month = :month) AS c
  JOIN audit_events e USING (event_id)
  LEFT JOIN users u USING (user_id)
  ORDER BY c.close DESC`);
