/** The check of the general-ledger hand-off: the files of exported journals are unchanged. */
import { hash } from 'node:crypto';
import { storedAccounts } from '#config/accounts';
import { querying, Transaction } from '#database/transaction';
import { GlFormat } from '#general-ledger/accounts';
import { filesOf, GlKind, Journal, WRITER } from '#general-ledger/files';
import { GlLine } from '#general-ledger/journal';
import { Month } from '#month';
import { CheckContext } from './check.ts';
import { Difference, Finding } from './query.ts';

type StoredExport = Readonly<{
  month: Month;
  format: GlFormat;
  part: number;
  kind: GlKind;
  checkpoint: string;
  books_closed: boolean;
  accounts: unknown;
  writer: number;
  lines: readonly GlLine[];
  files: readonly Readonly<{ name: string; sha256: string; hex: string }>[];
}>;

/** Each export in scope, with its lines and files. */
const readStored = querying<StoredExport, { month: Month | null }>(`
  SELECT e.month, e.format, e.part, e.kind, e.checkpoint, e.books_closed, e.accounts, e.writer,
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
  ORDER BY e.month, e.format, e.part`);

/**
 * Writes the files of each export again from its lines, and compares their bytes. If an older writer made the files,
 * only their hash is checked.
 */
export async function findChangedGlFiles(tx: Transaction, { month }: Pick<CheckContext, 'month'>): Promise<Finding> {
  const exports = await readStored(tx, { month });
  const differences = exports.flatMap((stored) => [...changedIn(stored)]);
  return { inspected: exports.reduce((sum, { files }) => sum + files.length, 0), differences };
}

function* changedIn(stored: StoredExport): Generator<Difference> {
  const subject = `part ${stored.part} of ${stored.month} for ${stored.format}`;
  for (const { name, sha256, hex } of stored.files) {
    const is = hash('sha256', Buffer.from(hex, 'hex'));
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
function writtenAgain({ accounts, ...stored }: StoredExport) {
  try {
    return filesOf({ ...stored, accounts: storedAccounts(accounts) } satisfies Journal);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
