/**
 * Writes the files of a journal for each general-ledger program. All functions are pure: equal journals give equal
 * bytes, because `verify` writes the files again. Names are written unchanged, because the importer must recognize
 * them. accounts.ts and journal.ts have already refused names that a spreadsheet could run.
 */
import { stringify } from 'csv-stringify/sync';
import { DateTime } from 'luxon';
import { Accounts } from '#config/accounts';
import { lastDay, Month, monthName } from '#month';
import { GlFormat } from './accounts.ts';
import { balancedParts, CurrencyJournal, GlLine, JournalLine, summarise } from './journal.ts';

/**
 * Increase this number whenever the content of the files changes. Files that an older writer wrote keep their bytes and
 * are not rewritten.
 */
export const WRITER = 3;

export type GlKind = 'journal' | 'difference' | 'reclassification';

export type Journal = Readonly<{
  month: Month;
  format: GlFormat;
  part: number;
  kind: GlKind;
  /** The root of the checkpoint that closes the month's books, or the month while they are open. In hexadecimal. */
  checkpoint: string;
  books_closed: boolean;
  accounts: Accounts;
  lines: readonly GlLine[];
}>;

export type GlFile = Readonly<{
  name: string;
  content: Buffer;
}>;

/**
 * The journal's id in the general-ledger program, `2026-09-1-USD-3f9a2c`: month, part, currency and root. The id
 * reveals a second import of the same journal.
 */
export const externalId = (
  { month, part, checkpoint }: Pick<Journal, 'month' | 'part' | 'checkpoint'>,
  currency: string,
) => `${month}-${part}-${currency}-${checkpoint.slice(0, 6)}`;

export const XERO_LINES = 300;

/**
 * QuickBooks Online accepts 1,000 rows in a file, including the heading, and this many characters in a journal number.
 */
const QUICKBOOKS_LINES = 999;
const QUICKBOOKS_NUMBER = 21;
/**
 * NetSuite warns of timeouts in transactions of more lines (Oracle, "Limitations for Creating Transactions", NetSuite
 * help, article_159361107074).
 */
export const NETSUITE_LINES = 1000;

const WRITERS: Readonly<Record<GlFormat, (journal: Journal, of: readonly CurrencyJournal[]) => GlFile[]>> = {
  generic: genericFiles,
  quickbooks: quickbooksFiles,
  xero: xeroFiles,
  netsuite: (journal, of) => [csvFile(journal, '', netsuiteRows(journal, of))],
};

/** The files of a journal; none if all lines cancel out. */
export function filesOf(journal: Journal): GlFile[] {
  const of = summarise(journal.lines);
  return of.length === 0 ? [] : WRITERS[journal.format](journal, of);
}

const nameOf = ({ month, part, format }: Journal, ending: string) => `gl-${month}-${part}-${format}${ending}`;

const csvFile = (journal: Journal, suffix: string, rows: readonly (readonly string[])[]): GlFile => ({
  name: nameOf(journal, `${suffix}.csv`),
  content: Buffer.from(stringify(rows.map((row) => [...row]))),
});

const dateOf = ({ month, accounts, format }: Journal) =>
  DateTime.fromISO(lastDay(month), { zone: 'utc' }).setLocale('en').toFormat(accounts[format].date_format);

/** The title `Reckoner September 2026`, with the kind of journal. */
const titleOf = ({ month, kind, books_closed }: Journal) =>
  `Reckoner ${monthName(month)}${kind === 'journal' ? '' : ` ${kind}`}${books_closed ? '' : ' (books open)'}`;

const sidesOf = ({ amount }: JournalLine): [debit: string, credit: string] =>
  amount.isNegative() ? ['', amount.negated().toString()] : [amount.toString(), ''];

const GENERIC = [
  ...['external_id', 'date', 'month', 'part', 'kind', 'currency', 'account', 'class', 'location', 'name', 'debit'],
  ...['credit', 'memo'],
] as const;

function genericFiles(journal: Journal, of: readonly CurrencyJournal[]): GlFile[] {
  const { month, part, kind } = journal;
  const date = dateOf(journal);
  const rows = of.flatMap(({ currency, lines }) =>
    lines.map((line) => [
      ...[externalId(journal, currency), date, month, String(part), kind, currency],
      ...[line.to_account, line.class, line.location, line.name, ...sidesOf(line), line.memo],
    ]),
  );
  return [csvFile(journal, '', [GENERIC, ...rows])];
}

const QUICKBOOKS =
  'Journal No.,Journal Date,Account Name,Debits,Credits,Description,Name,Currency,Location,Class'.split(',');

/**
 * A QuickBooks journal has one currency, so each currency has its own journal. A journal that is too long for a file
 * becomes several journals, each balanced and with its own number. Otherwise a file contains as many whole journals as
 * fit.
 */
function quickbooksFiles(journal: Journal, of: readonly CurrencyJournal[]): GlFile[] {
  const files: string[][][] = [];
  for (const { currency, lines } of of) {
    const parts = balancedParts(lines, QUICKBOOKS_LINES);
    for (const [at, part] of parts.entries()) {
      const ending = parts.length === 1 ? '' : `-${at + 1}`;
      const number = externalId(journal, currency).slice(0, QUICKBOOKS_NUMBER - ending.length) + ending;
      const rows = part.map((line) => [
        ...[number, dateOf(journal), line.to_account, ...sidesOf(line)],
        ...[`${titleOf(journal)}: ${line.memo}`, line.name, currency, line.location, line.class],
      ]);
      const last = files.at(-1);
      if (last !== undefined && last.length + rows.length <= QUICKBOOKS_LINES) last.push(...rows);
      else files.push(rows);
    }
  }
  return files.map((rows, at) => csvFile(journal, files.length === 1 ? '' : `-${at + 1}`, [QUICKBOOKS, ...rows]));
}

const XERO = [
  ...['*Narration', '*Date', 'Description', '*AccountCode', '*TaxRate', '*Amount'],
  ...['TrackingName1', 'TrackingOption1', 'TrackingName2', 'TrackingOption2'],
];

/**
 * A Xero journal is in the organization's currency, so each currency has its own files. A Xero journal has no name
 * field, so the description names the partner. Rows with the same narration become one journal, so each file has its
 * own narration.
 */
function xeroFiles(journal: Journal, of: readonly CurrencyJournal[]): GlFile[] {
  return of.flatMap(({ currency, lines }) => {
    const { class: kind, location, tax_rate } = journal.accounts.xero;
    const parts = balancedParts(lines, XERO_LINES);
    return parts.map((part, at) => {
      const place = parts.length === 1 ? '' : ` ${at + 1} of ${parts.length}`;
      const narration = `${titleOf(journal)} ${currency}, ${externalId(journal, currency)}${place}`;
      const rows = part.map((line) => [
        ...[narration, dateOf(journal), line.name === '' ? line.memo : `${line.memo}: ${line.name}`],
        ...[line.to_account, tax_rate, line.amount.toString()],
        ...(line.class === '' ? ['', ''] : [kind, line.class]),
        ...(line.location === '' ? ['', ''] : [location, line.location]),
      ]);
      return csvFile(journal, `-${currency}${parts.length === 1 ? '' : `-${at + 1}`}`, [XERO, ...rows]);
    });
  });
}

const NETSUITE = [
  ...['External ID', 'Date', 'Posting Period', 'Subsidiary', 'Currency', 'Exchange Rate', 'Memo', 'Account', 'Debit'],
  ...['Credit', 'Line Memo', 'Name', 'Class', 'Location'],
];

/**
 * The rows of a NetSuite file. The rows contain no exchange rate, because NetSuite applies its own rates for the date. A
 * longer journal becomes several, each balanced and with its own external id.
 */
const netsuiteRows = (journal: Journal, of: readonly CurrencyJournal[]) => {
  const period = DateTime.fromISO(lastDay(journal.month), { zone: 'utc' }).setLocale('en').toFormat('LLL yyyy');
  const { subsidiary } = journal.accounts.netsuite;
  return [
    NETSUITE,
    ...of.flatMap(({ currency, lines }) =>
      balancedParts(lines, NETSUITE_LINES).flatMap((part, at, { length }) => {
        const id = `${externalId(journal, currency)}${length === 1 ? '' : `-${at + 1}`}`;
        return part.map((line) => [
          ...[id, dateOf(journal), period, subsidiary, currency, '', titleOf(journal)],
          ...[line.to_account, ...sidesOf(line), line.memo, line.name, line.class, line.location],
        ]);
      }),
    ),
  ];
};
