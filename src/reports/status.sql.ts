import { querying, queryingOne } from '#database/transaction';
import { Month } from '#month';

export const readInstalled = queryingOne<{ environment: string; app_role: boolean; partners: number }>(`
  SELECT environment, current_user = 'reckoner_app' AS app_role, (SELECT count(*) FROM partners) AS partners
  FROM installation`);

// Unfinished documents are selected first. Otherwise, all documents would be read in number order until there are
// enough.
export const readWaiting = querying<
  { number: string; partner_id: string; status: string; reason: string | null },
  { listed: number }
>(`
  WITH unfinished AS MATERIALIZED (
    SELECT d.number, d.partner_id, s.status, s.reason, d.series, d.sequence
    FROM unfinished_emails JOIN document_emails s USING (email_id, document_id) JOIN documents d USING (document_id)
  )
  SELECT number, partner_id, status, reason FROM unfinished ORDER BY series, sequence LIMIT :listed`);

// The rows of a void document are unbilled until a replacement bills them.
export const countOpenEntries = queryingOne<{ readonly open_entries: number }, { last: Month | null }>(`
  SELECT (count(*) + (
           SELECT coalesce(sum(d.entries), 0) FROM documents d JOIN voids v USING (document_id)
           WHERE d.purpose = 'month' AND NOT EXISTS (
             SELECT FROM documents later WHERE later.replaces = d.document_id)))::bigint AS open_entries
  FROM ledger_rows WHERE posted_month > coalesce(:last::text, '')`);
