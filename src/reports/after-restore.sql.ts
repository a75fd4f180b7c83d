import { querying, queryingOne } from '#database/transaction';

export type LastRecorded = Readonly<{
  ledger_row: string | null;
  payment: string | null;
  processor_event: string | null;
  payment_link: string | null;
}>;

const LISTED = 10;

export const readLastStatements = querying<{ account: string; reported_to: string }>(`
  SELECT account, max(closed_on) AS reported_to FROM bank_statements WHERE closed_on IS NOT NULL
  GROUP BY account ORDER BY account`);

export const readLastRecorded = queryingOne<LastRecorded>(`
  SELECT (SELECT recorded_at FROM ledger_rows ORDER BY entry_id DESC LIMIT 1) AS ledger_row,
         (SELECT max(recorded_at) FROM payments) AS payment,
         (SELECT max(created) FROM processor_events) AS processor_event,
         (SELECT max(created_at) FROM (SELECT created_at FROM payment_link_objects UNION ALL
                SELECT created_at FROM checkout_sessions) AS made) AS payment_link`);

export const readUnsent = queryingOne<{ unsent: number; documents: string[] }>(`
  SELECT count(*) AS unsent,
         coalesce((array_agg(d.number ORDER BY d.document_id) FILTER (WHERE d.number IS NOT NULL))[1:${LISTED}],
                  '{}') AS documents
  FROM unfinished_emails u JOIN emails e USING (email_id) LEFT JOIN documents d ON d.document_id = u.document_id
  WHERE e.status IN ('queued', 'sending', 'held')`);
