/**
 * Exports for auditors: the requested data, the log that proves it, and a manifest. The data files are views of the log
 * (templates/export/checks.sql) up to the last checkpoint of the pack, and all files are streamed. Refusals:
 * export_exists, file_unwritable, no_checkpoint.
 */

import { needRows } from '#archive/rows';
import { Environment } from '#config/environment';
import { prepareForCopy } from '#database/backup';
import { copyOut, countLines, csvRowCounter } from '#database/copy';
import { Database } from '#database/database';
import { Transaction } from '#database/transaction';
import { Month } from '#month';
import { packageVersion } from '#package';
import { TableFormat, View } from './columns.sql.ts';
import { BilledMonth, readBilledMonths } from './exports.sql.ts';
import { BEANCOUNT, HLEDGER, JournalFormat } from './journal-formats.ts';
import { Pack, PackedFile } from './pack.ts';
import { writeJournalText } from './pack-journal.ts';
import { writeLedger } from './pack-ledger.ts';
import { chooseLeaves, LogOfPack, writeLog } from './pack-log.ts';

import { copyOf, makeViews, readTotals } from './views.sql.ts';

export const EXPORT_KINDS = ['ledger', 'invoices', 'payments', 'partners', 'journal', 'events'] as const;
export type ExportKind = (typeof EXPORT_KINDS)[number];

export const EXPORT_CONTENTS: Readonly<Record<ExportKind, string>> = {
  ledger: 'Ledger rows by posting month',
  invoices: 'Documents and their lines, voids, write-offs and carried-over items',
  payments: 'Payments by entry date with their applications, and bank lines',
  partners: 'Current partners and policies, and every change to them',
  journal: 'Journal entries by entry date, with opening balances and general-ledger exports',
  events: 'Audit events and their details: who did what, and when',
};

export const exportFormats = (kind: ExportKind): readonly ExportFormat[] =>
  kind === 'journal' ? ['csv', 'jsonl', 'hledger', 'beancount'] : ['csv', 'jsonl'];

/** The subject of the audit event of an export. */
export const exportSubject = ({ kind, from, to }: { kind: string; from: Month; to: Month }): string =>
  `${kind} ${from}${to === from ? '' : ` to ${to}`}`;

/** hledger and beancount are only for the journal. */
export type ExportFormat = TableFormat | 'hledger' | 'beancount';

export type ExportRequest = Readonly<{
  kind: ExportKind;
  from: Month;
  to: Month;
  format: ExportFormat;
  /** A folder, or a file that ends in .zip. */
  out: string;
}>;

type ExportSummary = Readonly<{
  out: string;
  files: readonly PackedFile[];
  months: readonly BilledMonth[];
  /** The last checkpoint of the pack. */
  checkpoint: Readonly<{ origin: string; size: number; root: string }>;
  /** Whether the books of any of these months are open, so that facts can still be dated in the month. */
  preliminary: boolean;
  /** The SHA-256 of manifest.json, which covers all files. */
  manifest_sha256: string;
}>;

/** Writes the complete pack or nothing. Data other than the ledger needs a server that allows temporary tables. */
export async function exportPack(
  database: Pick<Database, 'reading' | 'readingBeside'>,
  environment: Environment,
  request: ExportRequest,
  onProgress: (bytes: number) => void = () => {},
): Promise<ExportSummary> {
  const write = (tx: Transaction) => writePack(tx, environment, request, onProgress);
  if (request.kind === 'ledger') return database.reading(write);
  return database.readingBeside((tx, beside) => write(beside ?? tx));
}

async function writePack(
  tx: Transaction,
  environment: Environment,
  request: ExportRequest,
  onProgress: (bytes: number) => void,
) {
  const { kind, from, to, format, out } = request;
  await prepareForCopy(tx);
  // The journal's opening balances include all earlier months.
  await needRows(tx, kind === 'journal' ? { to } : { from, to });
  const months = await readBilledMonths(tx, { from, to });
  const log = await chooseLeaves(tx, { to, previous: months[0]?.previous ?? null });
  await needRows(tx, { numbers: { after: log.from?.last_no ?? 0, to: log.to.last_no } });
  const pack = await Pack.open(out);
  try {
    const writing: Writing = { tx, pack, log, months, request, onProgress };
    if (kind === 'ledger') await writeLedger(writing, tableFormat(writing), onProgress);
    else {
      await writeLog(tx, pack, log, ({ length }) => onProgress(length));
      await writeViews(writing, VIEWS_OF[kind]);
    }
    const preliminary = months.some(({ books_at_size }) => books_at_size === null);
    const manifest_sha256 = await pack.publish({
      format: 'reckoner-pack',
      version: 2,
      kind,
      data_format: format,
      from,
      to,
      origin: log.origin,
      first: log.from?.size ?? 0,
      size: log.to.size,
      created_at: environment.now().toISO(),
      program: packageVersion,
    });
    const checkpoint = { origin: log.origin, size: log.to.size, root: log.to.root.toString('base64') };
    return { out, files: pack.files, months, checkpoint, preliminary, manifest_sha256 };
  } catch (error) {
    await pack.discard();
    throw error;
  }
}

type Writing = Readonly<{
  tx: Transaction;
  pack: Pack;
  log: LogOfPack;
  months: readonly BilledMonth[];
  request: ExportRequest;
  onProgress: (bytes: number) => void;
}>;

const tableFormat = ({ request }: Writing) => (request.format === 'csv' ? 'csv' : 'jsonl');

// --- Views ---

const VIEWS_OF: Readonly<Record<Exclude<ExportKind, 'ledger'>, readonly string[]>> = {
  invoices: ['invoices', 'invoice-lines', 'voids', 'write-offs', 'openings'],
  payments: ['payments', 'payment-moves', 'credit-moves', 'bank-lines'],
  partners: ['partners', 'policies', 'partner-changes'],
  journal: ['opening-balances', 'journal', 'gl-exports', 'gl-lines'],
  events: ['events', 'event-details'],
};

/** The views whose sums are in the manifest. */
const SUMMED = ['invoices', 'payments'];

async function writeViews(writing: Writing, names: readonly string[]) {
  const { tx, log, request } = writing;
  const [first, { size, last_no: lastNo }] = [log.from?.size ?? 0, log.to];
  const views = await makeViews(tx, names, { ...request, first, size, lastNo });
  const text = request.format === 'hledger' ? HLEDGER : request.format === 'beancount' ? BEANCOUNT : undefined;
  for (const [name, view] of views) {
    if (text === undefined) await writeView(writing, view);
    else if (name === 'journal') await writeText(writing, view, text);
  }
}

async function writeView(writing: Writing, view: View) {
  const { tx, pack, onProgress } = writing;
  const format = tableFormat(writing);
  const file = await pack.file(`${view.name}.${format}`);
  const count = format === 'csv' ? csvRowCounter() : countLines;
  let lines = 0;
  await copyOut(tx, copyOf(view, format), (chunk) => {
    lines += count(chunk);
    onProgress(chunk.length);
    return file.write(chunk);
  });
  const totals = SUMMED.includes(view.name) ? await readTotals(tx, view) : undefined;
  await file.end({ rows: format === 'csv' ? lines - 1 : lines, ...(totals && { totals }) });
}

async function writeText({ tx, pack, request, onProgress }: Writing, view: View, text: JournalFormat) {
  const { from, to } = request;
  const file = await pack.file(text.file);
  const title = `Journal of ${from === to ? from : `${from} to ${to}`}, exported by Reckoner ${packageVersion}`;
  const rows = await writeJournalText(tx, view, text, { from, to, title }, (content) => {
    onProgress(content.length);
    return file.write(content);
  });
  await file.end({ rows });
}
