/** Checks of the general-ledger hand-off: exported journals match the closed books, and their files are unchanged. */
import { createHash } from 'node:crypto';
import { query, type Transaction } from '../../database/transaction.ts';
import { type GlFormat, storedAccounts } from '../../general-ledger/accounts.ts';
import { filesOf, type GlKind, type Journal, WRITER } from '../../general-ledger/files.ts';
import type { GlLine } from '../../general-ledger/journal.ts';
import type { Month } from '../../month.ts';
import type { CheckContext } from './check.ts';
import { type Difference, type Finding, inMonth } from './query.ts';

/**
 * Each exported part balances in every currency. If the last part of a month was exported after the books closed, the
 * parts of the month add up to each account's change between the balances of the closed books.
 */
export const GL_EXPORTS_TIE = `parts AS (
  SELECT gl_export_id, month, format, part, books_closed FROM gl_exports WHERE ${inMonth('month')}
), tying AS (
  SELECT * FROM (SELECT DISTINCT ON (month, format) month, format, books_closed FROM parts
                 ORDER BY month, format, part DESC) AS last
  WHERE books_closed
), moved AS (
  SELECT c.month, b.account, b.currency, b.amount FROM book_closes c JOIN book_balances b ON b.month = c.month
  WHERE c.month IN (SELECT month FROM tying)
  UNION ALL
  SELECT c.month, b.account, b.currency, -b.amount FROM book_closes c JOIN book_balances b ON b.month = c.previous
  WHERE c.month IN (SELECT month FROM tying)
), sides AS (
  SELECT t.month, t.format, l.account, l.currency, l.amount AS exported, 0 AS booked
  FROM tying t JOIN parts p USING (month, format) JOIN gl_export_lines l USING (gl_export_id)
  UNION ALL
  SELECT t.month, t.format, m.account, m.currency, 0, m.amount FROM tying t JOIN moved m USING (month)
), inspected AS (
  SELECT format('%s of %s for %s', account, month, format) AS subject, currency, sum(exported) AS exported,
         sum(booked) AS expected
  FROM sides GROUP BY month, format, account, currency
  UNION ALL
  SELECT format('part %s of %s for %s', part, month, format), currency, sum(amount), 0
  FROM parts JOIN gl_export_lines USING (gl_export_id) GROUP BY month, format, part, currency
  UNION ALL
  SELECT format('part %s of %s for %s', part, month, format), 'lines', 0, 1 FROM parts p
  WHERE NOT EXISTS (SELECT FROM gl_export_lines l WHERE l.gl_export_id = p.gl_export_id)
), differences AS (
  SELECT subject, format('was exported as %s %s; the closed books give %s', trim_scale(exported), currency,
                         trim_scale(expected)) AS detail
  FROM inspected WHERE exported <> expected
)`;

interface StoredExport {
  readonly month: Month;
  readonly format: GlFormat;
  readonly part: number;
  readonly kind: GlKind;
  readonly checkpoint: string;
  readonly books_closed: boolean;
  readonly accounts: unknown;
  readonly writer: number;
  readonly lines: readonly GlLine[];
  readonly files: readonly { readonly name: string; readonly sha256: string; readonly hex: string }[];
}

/** Each export in scope, with its lines and files. */
const readStored = (tx: Transaction, month: Month | null): Promise<StoredExport[]> =>
  query(
    tx,
    `SELECT e.month, e.format, e.part, e.kind, e.checkpoint, e.books_closed, e.accounts, e.writer,
            coalesce(l.lines, '[]') AS lines, coalesce(f.files, '[]') AS files
     FROM gl_exports e
     CROSS JOIN LATERAL (
       SELECT json_agg(json_build_object(
                'control', control, 'account', account, 'partner_id', partner_id, 'policy_id', policy_id,
                'currency', currency, 'amount', amount::text, 'to_account', to_account, 'class', class,
                'location', location, 'name', name, 'memo', memo) ORDER BY line) AS lines
       FROM gl_export_lines l WHERE l.gl_export_id = e.gl_export_id) AS l
     CROSS JOIN LATERAL (
       SELECT json_agg(json_build_object('name', name, 'sha256', sha256, 'hex', encode(content, 'hex'))
                       ORDER BY position) AS files
       FROM gl_export_files f WHERE f.gl_export_id = e.gl_export_id) AS f
     WHERE :month::text IS NULL OR e.month = :month
     ORDER BY e.month, e.format, e.part`,
    { month },
  );

/**
 * Writes the files of each export again from its lines, and compares their bytes. If an older writer made the files,
 * only their hash is checked.
 */
export async function findChangedGlFiles(tx: Transaction, { month }: Pick<CheckContext, 'month'>): Promise<Finding> {
  const exports = await readStored(tx, month);
  const differences = exports.flatMap((stored) => [...changedIn(stored)]);
  return { inspected: exports.reduce((sum, { files }) => sum + files.length, 0), differences };
}

function* changedIn(stored: StoredExport): Generator<Difference> {
  const subject = `part ${stored.part} of ${stored.month} for ${stored.format}`;
  for (const { name, sha256, hex } of stored.files) {
    const is = createHash('sha256').update(Buffer.from(hex, 'hex')).digest('hex');
    if (is !== sha256) yield { subject, detail: `${name} has SHA-256 ${is}; it was written with ${sha256}` };
  }
  if (stored.writer !== WRITER) return;
  const written = writtenAgain(stored);
  if (typeof written === 'string') {
    yield { subject, detail: `cannot be written again: ${written}` };
    return;
  }
  const again = new Map(written.map(({ name, content }) => [name, content.toString('hex')]));
  for (const { name, hex } of stored.files) {
    if (again.get(name) !== hex) yield { subject, detail: `${name} is not what its lines give` };
    again.delete(name);
  }
  for (const name of again.keys()) yield { subject, detail: `${name} is missing` };
}

/** The files, or the reason why no files can be written from the lines. */
function writtenAgain({ accounts, ...stored }: StoredExport): ReturnType<typeof filesOf> | string {
  try {
    return filesOf({ ...stored, accounts: storedAccounts(accounts) } satisfies Journal);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
