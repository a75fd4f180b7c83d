import {
  execute,
  executing,
  query,
  querying,
  queryingColumn,
  queryingOne,
  queryingValue,
  Transaction,
} from '#database/transaction';
import { Month } from '#month';
import { GlFormat } from './accounts.ts';
import { GlFile, Journal } from './files.ts';
import { GlLine, Posting } from './journal.ts';

/** The postings of a month by account, partner, policy and currency. The first month includes everything earlier. */
export const readPostings = querying<Posting, { after: Month | ''; month: Month }>(`
  SELECT control, account, partner_id, policy_id, currency, sum(amount) AS amount
  FROM journal WHERE month > :after AND month <= :month
  GROUP BY control, account, partner_id, policy_id, currency HAVING sum(amount) <> 0
  ORDER BY account COLLATE "C", currency, partner_id COLLATE "C" NULLS FIRST, policy_id COLLATE "C" NULLS FIRST`);

export const readUnknownIds = querying<
  { field: 'partner' | 'policy'; id: string },
  { partners: readonly string[]; policies: readonly string[] }
>(`
  SELECT 'partner' AS field, id FROM unnest(:partners::text[]) AS given (id)
  WHERE NOT EXISTS (SELECT FROM partners p WHERE p.partner_id = given.id)
  UNION ALL
  SELECT 'policy', id FROM unnest(:policies::text[]) AS given (id)
  WHERE NOT EXISTS (SELECT FROM policies p WHERE p.policy_id = given.id)`);

/** The roots of the checkpoints that close a month and its books, in hexadecimal; null while the books are open. */
export const readRoots = queryingOne<{ root: string; books_root: string | null }, { month: Month }>(`
  SELECT encode(m.root, 'hex') AS root, encode(b.root, 'hex') AS books_root
  FROM log_checkpoints m LEFT JOIN log_checkpoints b ON b.closes = 'books ' || :month
  WHERE m.closes = 'month ' || :month`);

export type GlExport = Omit<Journal, 'accounts' | 'lines'> & Readonly<{ gl_export_id: number; recorded_at: string }>;

export const readParts = querying<GlExport, { month: Month; format: GlFormat }>(`
  SELECT gl_export_id, month, format, part, kind, checkpoint, books_closed, recorded_at
  FROM gl_exports WHERE month = :month AND format = :format ORDER BY part`);

export const readLines = querying<GlLine, { ids: readonly number[] }>(`
  SELECT control, account, partner_id, policy_id, currency, amount, to_account, class, location, name, memo
  FROM gl_export_lines WHERE gl_export_id = ANY (:ids::bigint[]) ORDER BY gl_export_id, line`);

export type StoredFile = GlFile &
  Readonly<{
    sha256: string;
  }>;

export const readFiles = querying<StoredFile, { id: number }>(
  `SELECT name, sha256, content FROM gl_export_files WHERE gl_export_id = :id::bigint ORDER BY position`,
);

export const readFile = querying<Pick<StoredFile, 'content'> & { month: Month }, { id: number; name: string }>(`
  SELECT f.content, e.month FROM gl_export_files f JOIN gl_exports e USING (gl_export_id)
  WHERE gl_export_id = :id::bigint AND f.name = :name`);

export const insertExport = queryingValue<
  number,
  Omit<GlExport, 'gl_export_id'> &
    Readonly<{
      accounts: string;
      writer: number;
      eventId: number;
    }>
>(`
  INSERT INTO gl_exports (month, format, part, previous, kind, checkpoint, books_closed, accounts, writer,
                          recorded_at, event_id)
  VALUES (:month, :format, :part::integer, nullif(:part::integer - 1, 0), :kind, :checkpoint,
          :books_closed::boolean, :accounts::jsonb, :writer::integer, :recorded_at::timestamptz, :eventId::bigint)
  RETURNING gl_export_id`);

export const insertLines = executing<{ id: number; lines: readonly GlLine[] }>(`
  INSERT INTO gl_export_lines (gl_export_id, line, control, account, partner_id, policy_id, currency, amount,
                               to_account, class, location, name, memo)
  SELECT :id::bigint, line, control, account, partner_id, policy_id, currency, trim_scale(amount), to_account,
         class, location, name, memo
  FROM ROWS FROM (json_to_recordset(:lines::json) AS (
         control text, account text, partner_id text, policy_id text, currency text, amount numeric, to_account text,
         class text, location text, name text, memo text))
    WITH ORDINALITY AS given (control, account, partner_id, policy_id, currency, amount, to_account, class, location,
                              name, memo, line)
  ORDER BY line`);

export async function insertFiles(tx: Transaction, id: number, files: readonly GlFile[]) {
  await execute(
    tx,
    `INSERT INTO gl_export_files (gl_export_id, position, name, sha256, content)
     SELECT :id::bigint, position, name, encode(sha256(content), 'hex'), content
     FROM ROWS FROM (json_to_recordset(:files::json) AS (name text, hex text))
       WITH ORDINALITY AS given (name, hex, position)
     CROSS JOIN LATERAL (SELECT decode(hex, 'hex') AS content) AS decoded
     ORDER BY position`,
    { id, files: files.map(({ name, content }) => ({ name, hex: content.toString('hex') })) },
  );
}

export type ListedExport = GlExport &
  Readonly<{
    login: string | null;
    /**
     * The state of a month's parts in a format. `final` matches the month's closed books, `preliminary` waits for the
     * books to close, and `outdated` no longer matches them.
     */
    state: 'final' | 'preliminary' | 'outdated';
    totals: readonly Readonly<{ currency: string; debit: string }>[];
    files: readonly Readonly<{ name: string; sha256: string; bytes: number }>[];
  }>;

export function readExports(
  tx: Transaction,
  { month = null, limit }: { month?: Month | null | undefined; limit: number },
): Promise<ListedExport[]> {
  return query(
    tx,
    `WITH shown AS (
       SELECT * FROM gl_exports WHERE :month::text IS NULL OR month = :month
       ORDER BY month DESC, format, part DESC LIMIT :limit
     )
     SELECT s.gl_export_id, s.month, s.format, s.part, s.kind, s.checkpoint, s.books_closed, s.recorded_at,
            coalesce(personal(u.login), personal(a.claimed_by)) AS login,
            states.state, coalesce(t.totals, '[]') AS totals, coalesce(f.files, '[]') AS files
     FROM shown s JOIN audit_events a USING (event_id) LEFT JOIN users u USING (user_id)
     JOIN gl_export_states states ON (states.month, states.format) = (s.month, s.format)
     CROSS JOIN LATERAL (
       SELECT json_agg(json_build_object('currency', currency, 'debit', debit::text) ORDER BY currency) AS totals
       FROM (SELECT currency, sum(greatest(amount, 0)) AS debit
             FROM (SELECT currency, sum(amount) AS amount FROM gl_export_lines l
                   WHERE l.gl_export_id = s.gl_export_id
                   GROUP BY currency, to_account, class, location, name, memo) AS written
             GROUP BY currency) AS sums) AS t
     CROSS JOIN LATERAL (
       SELECT json_agg(json_build_object('name', name, 'sha256', sha256, 'bytes', length(content)) ORDER BY position)
         AS files
       FROM gl_export_files f WHERE f.gl_export_id = s.gl_export_id) AS f
     ORDER BY s.month DESC, s.format, s.part DESC`,
    { month, limit },
  );
}

export const readUnexported = queryingColumn<Month, { limit: number }>(
  `SELECT month FROM gl_unexported_months ORDER BY month DESC LIMIT :limit`,
);
