/**
 * Exports for auditors: the requested data, the sealed evidence of its months, and a manifest. Everything is read in one snapshot and streamed. Refusals: export_exists, file_unwritable.
 */

import type { Environment } from '../config/environment.ts';
import { prepareForCopy } from '../database/backup.ts';
import { copyOut, countLines, csvRowCounter, wholeLines } from '../database/copy.ts';
import { readInstallation } from '../database/installation.sql.ts';
import { execute, type Transaction } from '../database/transaction.ts';
import { type DocumentJson, documentJson, withoutTax } from '../documents/document.ts';
import { readDocuments } from '../documents/documents.sql.ts';
import { Amount } from '../money.ts';
import type { Month } from '../month.ts';
import { packageVersion } from '../package.ts';
import { type ClosedBooks, copyBookBalances, copyBookEntries, readClosedBooks } from '../seals/books.sql.ts';
import { copiesOfFacts, copyRows } from '../seals/canonical.ts';
import { signatureLine } from '../seals/signature.ts';
import { readSignature, readTimeStamp, type SealName } from '../seals/signatures.sql.ts';
import { cellOf } from '../text.ts';
import { csvLine } from './csv.ts';
import { copyOf, ROWS } from './data-files.sql.ts';
import { columnNames, type DataFile, dictionaryOf, headerOf, type TableFormat } from './dictionary.ts';
import {
  type BilledMonth,
  readBilledMonths,
  readDocumentIds,
  readDocumentNumbers,
  readFactsOf,
  readLedgerTotals,
  readPaymentTotals,
} from './exports.sql.ts';
import { BEANCOUNT, HLEDGER } from './journal-formats.ts';
import { ledgerRows } from './ledger-rows.ts';
import { type FileInPack, Pack, type PackedFile, type Totals } from './pack.ts';
import { readOpeningBalances, writeJournalText } from './pack-journal.ts';

export const EXPORT_KINDS = ['ledger', 'invoices', 'payments', 'partners', 'journal', 'events'] as const;
export type ExportKind = (typeof EXPORT_KINDS)[number];

export const EXPORT_CONTENTS: Readonly<Record<ExportKind, string>> = {
  ledger: 'Ledger rows by posting month',
  invoices: 'Documents and their lines, voids, write-offs and carried-over items',
  payments: 'Payments by entry date with their applications, and bank lines',
  partners: 'Current partners and policies, and every change to them',
  journal: 'Journal entries by entry date, with opening balances and general-ledger exports',
  events: 'Audit events: who did what, and when',
};

export const exportFormats = (kind: ExportKind): readonly ExportFormat[] =>
  kind === 'journal' ? ['csv', 'jsonl', 'hledger', 'beancount'] : ['csv', 'jsonl'];

/** hledger and beancount are only for the journal. */
export type ExportFormat = TableFormat | 'hledger' | 'beancount';

export interface ExportRequest {
  readonly kind: ExportKind;
  readonly from: Month;
  readonly to: Month;
  readonly format: ExportFormat;
  /** A folder, or a file that ends in .zip. */
  readonly out: string;
  /** Adds each data file as Parquet. Only with csv and jsonl. */
  readonly parquet?: boolean;
}

interface ExportSummary {
  readonly out: string;
  readonly files: readonly PackedFile[];
  readonly months: readonly {
    readonly month: Month;
    readonly seal: string | null;
    readonly previous: Month | null;
    /** Null while the books of the month are open. */
    readonly books_seal: string | null;
  }[];
  /** Whether books of these months are open, so that facts can still be dated in them. */
  readonly preliminary: boolean;
  /** The SHA-256 of manifest.json, which covers all files. */
  readonly manifest_sha256: string;
}

/** Writes the complete pack or nothing. The transaction must be one snapshot. */
export async function exportPack(
  tx: Transaction,
  environment: Environment,
  request: ExportRequest,
  onProgress: (bytes: number) => void = () => {},
): Promise<ExportSummary> {
  const { kind, from, to, format, out } = request;
  await prepareForCopy(tx);
  const months = await readBilledMonths(tx, from, to);
  const pack = await Pack.open(out);
  try {
    const writing: Writing = { tx, pack, months, request, onProgress };
    await WRITERS[kind](writing);
    if (request.parquet) await writeParquetFiles(pack, tableFormat(writing));
    await writeDictionary(pack);
    for (const month of months) await writeEvidence(writing, month);
    const books = new Map((await readClosedBooks(tx)).map((each) => [each.month, each]));
    for (const { month } of months) await writeBooksEvidence(writing, books.get(month));
    const sealed = months.map(({ month, seal, previous }) => {
      return { month, seal, previous, books_seal: books.get(month)?.seal ?? null };
    });
    const preliminary = to > ([...books.keys()].at(-1) ?? '');
    const { installation_id, environment: belongsTo } = await readInstallation(tx);
    const manifest_sha256 = await pack.publish({
      format: 'reckoner-export',
      version: 1,
      kind,
      data_format: format,
      from,
      to,
      program: packageVersion,
      installation: installation_id,
      environment: belongsTo,
      created_at: environment.now().toISO(),
      months: sealed,
      preliminary,
    });
    return { out, files: pack.files, months: sealed, preliminary, manifest_sha256 };
  } catch (error) {
    await pack.discard();
    throw error;
  }
}

interface Writing {
  readonly tx: Transaction;
  readonly pack: Pack;
  readonly months: readonly BilledMonth[];
  readonly request: ExportRequest;
  readonly onProgress: (bytes: number) => void;
}

const WRITERS: Record<ExportKind, (writing: Writing) => Promise<void>> = {
  ledger: writeLedger,
  invoices: writeInvoices,
  payments: writePayments,
  partners: writePartners,
  events: (writing) => writeTable(writing, 'events'),
  journal: writeJournal,
};

/** Streams a COPY in text format to a file and returns its number of lines. */
async function streamTo(writing: Writing, file: FileInPack, statement: string, count = countLines): Promise<number> {
  let lines = 0;
  await copyOut(writing.tx, statement, (chunk) => {
    lines += count(chunk);
    writing.onProgress(chunk.length);
    return file.write(chunk);
  });
  return lines;
}

const tableFormat = ({ request }: Writing): TableFormat => (request.format === 'csv' ? 'csv' : 'jsonl');

/** Streams the rows of a data file that the database writes. */
async function writeTable(writing: Writing, name: keyof typeof ROWS, totals?: Totals): Promise<void> {
  const { tx, pack, request } = writing;
  const format = tableFormat(writing);
  const file = await pack.file(`${name}.${format}`);
  const facts = await readFactsOf(tx, request.from, request.to);
  const statement = copyOf(name, format, ROWS[name]({ ...request, facts }));
  const lines = await streamTo(writing, file, statement, format === 'csv' ? csvRowCounter() : countLines);
  await file.end({ rows: format === 'csv' ? lines - 1 : lines, ...(totals && { totals }) });
}

/** Writes each data file as Parquet, from the file that was just written. */
async function writeParquetFiles(pack: Pack, format: TableFormat): Promise<void> {
  const { writeParquet } = await import('./parquet.ts');
  for (const { name, rows } of pack.files.filter((each) => !each.name.includes('/'))) {
    const file = name.slice(0, name.lastIndexOf('.')) as DataFile;
    const out = await pack.file(`${file}.parquet`);
    await writeParquet({ file, path: pack.pathOf(name), format }, out);
    await out.end({ rows });
  }
}

/** Writes the meanings of the data files' columns. */
async function writeDictionary(pack: Pack): Promise<void> {
  const { text, rows } = dictionaryOf(pack.files.map(({ name }) => name));
  const file = await pack.file('dictionary.csv');
  await file.write(text);
  await file.end({ rows });
}

// --- Ledger -----------------------------------------------------------------------------------------------------------

/** Reads a month's rows once for two files: the sealed lines, and the ledger rows generated from them. */
async function writeLedger(writing: Writing): Promise<void> {
  const { tx, pack, months, onProgress } = writing;
  const format = tableFormat(writing);
  const file = await pack.file(`ledger.${format}`);
  if (format === 'csv') await file.write(headerOf('ledger'));
  const totals = new Map<string, Record<'spotPrice' | 'partnerCut' | 'invoiceAmount', Amount>>();
  let rows = 0;
  // Enough to sort half a million rows in memory in each of the server's processes.
  await execute(tx, `SET LOCAL work_mem = '128MB'`);
  for (const billed of months) {
    const { month, previous, seal } = billed;
    const sealed = seal === null ? undefined : await pack.file(`sealed/${month}/ledger_rows.tsv`);
    const toRows = ledgerRows(format, month, await readDocumentNumbers(tx, month));
    let lines = 0;
    const take = wholeLines(async (content) => {
      await sealed?.write(content);
      // The first line names the columns.
      const made = toRows(lines === 0 ? content.subarray(content.indexOf('\n') + 1) : content);
      lines += countLines(content);
      onProgress(content.length + made.length);
      await file.write(made);
    });
    await copyOut(tx, copyRows({ after: previous ?? '', to: month }), take);
    await sealed?.end({ rows: lines - 1 });
    for (const { currency, rows: counted, ...sums } of await readLedgerTotals(tx, billed)) {
      rows += counted;
      const before = totals.get(currency);
      const add = (name: keyof typeof sums) => {
        const sum = Amount.of(sums[name], currency);
        return before ? before[name].plus(sum) : sum;
      };
      totals.set(currency, {
        spotPrice: add('spotPrice'),
        partnerCut: add('partnerCut'),
        invoiceAmount: add('invoiceAmount'),
      });
    }
  }
  await execute(tx, `SET LOCAL work_mem TO DEFAULT`);
  await file.end({ rows, totals: totalsJson(totals) });
}

const totalsJson = (totals: ReadonlyMap<string, Readonly<Record<string, Amount>>>): Totals =>
  Object.fromEntries(
    [...totals]
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([currency, sums]) => [
        currency,
        Object.fromEntries(Object.entries(sums).map(([name, sum]) => [name, sum.toString()])),
      ]),
  );

// --- Invoices ---------------------------------------------------------------------------------------------------------

/** How many documents are in memory at once. */
const BATCH = 500;

const SUMMED = [
  'spotPrice',
  'partnerCut',
  'invoiceAmount',
  'credit_applied',
  'amount_due',
  'credited',
  'amount_paid',
  'balance',
] as const;

const DOCUMENT_COLUMNS = columnNames('invoices');
const LINE_COLUMNS = columnNames('invoice-lines');

/**
 * The documents of the months in their current state. CSV: headers and lines in two files. JSON Lines: the shape of the
 * API.
 */
async function writeInvoices(writing: Writing): Promise<void> {
  const { tx, pack, request, onProgress } = writing;
  const { from, to, format } = request;
  const ids = await readDocumentIds(tx, from, to);
  const documents = await pack.file(`invoices.${format}`);
  const lines = format === 'csv' ? await pack.file('invoice-lines.csv') : undefined;
  await documents.write(format === 'csv' ? headerOf('invoices') : '');
  await lines?.write(headerOf('invoice-lines'));
  const totals = new Map<string, Record<string, Amount>>();
  let lineCount = 0;
  for (let at = 0; at < ids.length; at += BATCH) {
    for (const row of await readDocuments(tx, { ids: ids.slice(at, at + BATCH) })) {
      // Anyone who has a payment link can open its invoice, so no export includes it. The columns of a pack stay as
      // they are, without tax, which is in its sealed facts (document_taxes).
      const { payment_link: _, ...json } = withoutTax(documentJson(row));
      addUp(totals, json);
      const { pdf, email, lines: own, ...flat } = json;
      const text =
        format === 'jsonl'
          ? `${JSON.stringify(json)}\n`
          : csvOf(DOCUMENT_COLUMNS, {
              ...flat,
              partner_name: row.partner_name,
              arrangement: row.arrangement,
              pdf_sha256: pdf?.sha256,
              email_status: email?.status,
              sent_at: email?.sent_at,
              reason: row.reason,
              voided_on: row.voided_on,
            });
      await documents.write(text);
      onProgress(text.length);
      for (const [index, line] of own.entries()) {
        const { number, currency } = json;
        const { policy_name } = row.lines[index] as (typeof row.lines)[number];
        await lines?.write(csvOf(LINE_COLUMNS, { number, currency, position: index + 1, policy_name, ...line }));
        lineCount += 1;
      }
    }
  }
  await documents.end({ rows: ids.length, totals: totalsJson(totals) });
  await lines?.end({ rows: lineCount });
  await writeTable(writing, 'voids');
  await writeTable(writing, 'write-offs');
  await writeTable(writing, 'openings');
}

function addUp(totals: Map<string, Record<string, Amount>>, json: Omit<DocumentJson, 'payment_link'>): void {
  const before = totals.get(json.currency);
  totals.set(
    json.currency,
    Object.fromEntries(
      SUMMED.map((name) => {
        const amount = Amount.of(json[name], json.currency);
        return [name, before?.[name]?.plus(amount) ?? amount];
      }),
    ),
  );
}

const csvOf = (columns: readonly string[], values: Readonly<Record<string, unknown>>): string =>
  csvLine(columns.map((column) => cellOf(values[column])));

// --- Payments ---------------------------------------------------------------------------------------------------------

/** Payments by entry date, their applications and reversals, uses of open credit, and bank lines. */
async function writePayments(writing: Writing): Promise<void> {
  const { tx, request } = writing;
  const totals = (await readPaymentTotals(tx, request.from, request.to)).map(
    ({ currency, amount }) => [currency, { amount: Amount.of(amount, currency) }] as const,
  );
  await writeTable(writing, 'payments', totalsJson(new Map(totals)));
  for (const name of ['payment-moves', 'credit-moves', 'bank-lines'] as const) await writeTable(writing, name);
}

// --- Partners ---------------------------------------------------------------------------------------------------------

/** Current partners and policies, and every change to them that the months' seals cover. */
async function writePartners(writing: Writing): Promise<void> {
  for (const name of ['partners', 'policies', 'partner-changes'] as const) await writeTable(writing, name);
}

// --- Journal ----------------------------------------------------------------------------------------------------------

/** The journal by entry date, with opening balances: a table of postings, or a file for an accounting program. */
async function writeJournal(writing: Writing): Promise<void> {
  const { tx, pack, request, onProgress } = writing;
  const { from, to, format } = request;
  if (format === 'hledger' || format === 'beancount') {
    const text = format === 'hledger' ? HLEDGER : BEANCOUNT;
    const file = await pack.file(text.file);
    const title = `Journal of ${from === to ? from : `${from} to ${to}`}, exported by Reckoner ${packageVersion}`;
    const rows = await writeJournalText(tx, text, { from, to, title }, (content) => {
      onProgress(content.length);
      return file.write(content);
    });
    await file.end({ rows });
    return;
  }
  const opening = await pack.file(`opening-balances.${format}`);
  const balances = await readOpeningBalances(tx, from);
  if (format === 'csv') await opening.write(headerOf('opening-balances'));
  for (const balance of balances) {
    await opening.write(
      format === 'csv' ? csvOf(columnNames('opening-balances'), balance) : `${JSON.stringify(balance)}\n`,
    );
  }
  await opening.end({ rows: balances.length });
  for (const name of ['journal', 'gl-exports', 'gl-lines'] as const) await writeTable(writing, name);
}

// --- Evidence ---------------------------------------------------------------------------------------------------------

/**
 * The evidence to recompute a month's seal: its seal record and the facts under it in the canonical form that was hashed.
 * An export of the ledger adds the rows.
 */
async function writeEvidence(writing: Writing, month: BilledMonth): Promise<void> {
  const { seal, record, facts_after, facts_to } = month;
  if (seal === null || record === null || facts_after === null || facts_to === null) return;
  const folder = `sealed/${month.month}`;
  await writeRecord(writing, folder, record, { kind: 'month', name: month.month });
  const covered = new Set([...record.matchAll(/^facts_of (\w+) /gm)].map(([, name]) => name));
  for (const { name, copy } of await copiesOfFacts(writing.tx, { after: facts_after, to: facts_to })) {
    if (!covered.has(name)) continue;
    const file = await writing.pack.file(`${folder}/${name}.tsv`);
    const lines = await streamTo(writing, file, copy);
    await file.end({ rows: lines - 1 });
  }
}

/** The record of a seal, with its signature if it is signed. */
async function writeRecord({ tx, pack }: Writing, folder: string, record: string, seal: SealName): Promise<void> {
  const write = async (name: string, content: string | Buffer) => {
    const file = await pack.file(`${folder}/record.${name}`);
    await file.write(content);
    await file.end({ rows: 1 });
  };
  await write('txt', record);
  const signature = await readSignature(tx, seal);
  if (signature !== undefined) await write('sig', signatureLine(signature));
  const stamp = await readTimeStamp(tx, seal);
  if (stamp !== undefined) await write('tsr', stamp);
}

/**
 * What the seal of a month's books covers: its record, the entries dated in the month, and the balances at the end of
 * the month.
 */
async function writeBooksEvidence(writing: Writing, books: ClosedBooks | undefined): Promise<void> {
  if (books === undefined) return;
  const { month, previous, record } = books;
  await writeRecord(writing, `books/${month}`, record, { kind: 'books', name: month });
  const copies = { entries: copyBookEntries(previous, month), accounts: copyBookBalances(month) };
  for (const [name, copy] of Object.entries(copies)) {
    const file = await writing.pack.file(`books/${month}/${name}.tsv`);
    const lines = await streamTo(writing, file, copy);
    await file.end({ rows: lines - 1 });
  }
}
