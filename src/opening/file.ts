/**
 * Parses the previous system's open items: invoices, credits and unapplied cash. The file is CSV, or a JSON array of
 * objects with the same names (docs/files.md). A file with mistakes is refused as a whole, and the refusal lists the
 * first mistakes with their lines. All functions are pure. Refusals: opening_invalid, file_items_too_many.
 */
import { z } from 'zod';
import { LineProblem, reasonOf, refuse } from '#errors/refusals';
import { parseExactJson } from '#json';
import { IDENTIFIER } from '#partners/file';
import { GivenFile, readerOf } from '#reading/aside';
import { csvLines } from '#reading/csv';
import { PROBLEMS_TOLD, readUntilTold, refuseTooMany } from '#reading/limits';
import { Amount, amountProblem, isCurrency, isDate, minorDigits } from '#values';

const OPENING_KINDS = ['invoice', 'credit', 'cash'] as const;
type OpeningKind = (typeof OPENING_KINDS)[number];

/** An item of the previous system that was open at the end of the cut-over day. */
export type OpeningItem = Readonly<{
  line: number;
  kind: OpeningKind;
  /** The number in the previous system, which the document or payment keeps. */
  number: string;
  /** The partner; null if the payer of cash is unknown. */
  partner_id: string | null;
  date: string;
  /** The due date of an invoice. Null for credits and cash. */
  due_on: string | null;
  currency: string;
  amount: string;
  original_amount: string;
  /** The payer's remittance text, for cash. */
  reference: string;
}>;

const NEEDED = ['kind', 'number', 'partner_id', 'date', 'due_on', 'currency', 'amount'];
const OPTIONAL = ['original_amount', 'reference'];
const MOST_ITEMS = 50_000;

type Cells = Readonly<Record<string, string>>;

interface Row {
  /** The line in a CSV file; in a JSON file, the place in the array. */
  readonly line: number;
  readonly cells: Cells;
}

const NUMBER = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$/;
/**
 * A document number in this ledger's own format. The ledger may still assign such a number if the number's year is the
 * cut-over's year or later.
 */
const OURS = /^(?:INV|CN|ST)-(\d{4})-\d{6,}$/i;

export const openingFile = readerOf(
  import.meta.url,
  'openingFile',
  ({ cutOverOn, ...file }: GivenFile & { readonly cutOverOn: string }) => parseOpening(file, cutOverOn),
);

export function parseOpening({ name, bytes }: GivenFile, cutOverOn: string): OpeningItem[] {
  const text = decoded(name, bytes);
  const rows = /^\s*\[/.test(text) ? rowsOfJson(name, text) : rowsOfCsv(name, text);
  if (rows.length === 0) throw invalid(name, [whole('has no items')]);
  refuseTooMany(name, rows.length, MOST_ITEMS);
  const problems: LineProblem[] = [];
  const items = readUntilTold(rows, problems, (row) => readItem(row, cutOverOn, problems));
  problems.push(...repeatedNumbers(items));
  if (problems.length > 0)
    throw invalid(
      name,
      problems.sort((a, b) => (a.line ?? 0) - (b.line ?? 0)),
    );
  return items;
}

const invalid = (file: string, problems: readonly LineProblem[]) =>
  refuse('opening_invalid', { file, problems: problems.slice(0, PROBLEMS_TOLD) });

export const problemAt = (line: number, field: string, code: string, reason: string): LineProblem => ({
  path: `line ${line}, ${field}`,
  ...{ line, field, code, reason },
});
const whole = (reason: string, line: number | null = null) => ({
  path: line === null ? '' : `line ${line}`,
  ...{ line, code: 'file_malformed', reason },
});

function decoded(name: string, bytes: Uint8Array) {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw invalid(name, [whole('is not UTF-8: save it as "CSV UTF-8"')]);
  }
}

function rowsOfCsv(name: string, text: string) {
  const problems: LineProblem[] = [];
  const rows = csvLines(text, { needed: NEEDED, optional: OPTIONAL, most: MOST_ITEMS + 2 }, (reason, line) => {
    problems.push(whole(reason, line));
  });
  if (problems.length > 0) throw invalid(name, problems);
  return rows;
}

// Numbers arrive as their source texts (see parseExactJson).
const JSON_ITEM = z.strictObject(
  Object.fromEntries(
    [...NEEDED, ...OPTIONAL].map((each) => [
      each,
      z
        .string('must be text or a number')
        .nullish()
        .transform((value) => value ?? ''),
    ]),
  ),
);

function rowsOfJson(name: string, text: string) {
  let value: unknown;
  try {
    value = parseExactJson(text);
  } catch (error) {
    throw invalid(name, [whole(`is not JSON: ${reasonOf(error)}`)]);
  }
  refuseTooMany(name, (value as unknown[]).length, MOST_ITEMS);
  const problems: LineProblem[] = [];
  const rows = readUntilTold(value as unknown[], problems, (each, index) => {
    const read = JSON_ITEM.safeParse(each);
    if (!read.success) problems.push(whole(read.error.issues[0]?.message ?? 'is not an item', index + 1));
    return { line: index + 1, cells: read.success ? (read.data as Cells) : {} };
  });
  if (problems.length > 0) throw invalid(name, problems);
  return rows;
}

function readItem({ line, cells }: Row, cutOverOn: string, problems: LineProblem[]) {
  const cell = (field: string) => (cells[field] ?? '').trim();
  const complain = (field: string, code: string, reason: string) => {
    problems.push(problemAt(line, field, code, reason));
  };
  const kind = cell('kind') as OpeningKind;
  if (!OPENING_KINDS.includes(kind))
    complain('kind', 'kind_unknown', `'${kind}' is not one of ${OPENING_KINDS.join(', ')}`);
  checkNumber(cell('number'), cutOverOn, (code, reason) => complain('number', code, reason));
  const partner = cell('partner_id');
  if (partner === '' ? kind !== 'cash' : !IDENTIFIER.test(partner)) {
    complain('partner_id', 'partner_malformed', partner === '' ? 'is missing' : `'${partner}' is not a partner's id`);
  }
  const [date, due] = [cell('date'), cell('due_on')];
  if (!isDate(date)) complain('date', 'date_malformed', `'${date}' is not a date such as 2026-06-30`);
  else if (date > cutOverOn) {
    complain('date', 'date_after_cut_over', `${date} is after the cut-over of ${cutOverOn}: leave the item out`);
  }
  if (kind === 'invoice' && !isDate(due))
    complain('due_on', 'date_malformed', `'${due}' is not a date such as 2026-07-30`);
  else if (kind === 'invoice' && due < date)
    complain('due_on', 'due_before_issue', `${due} is before its date, ${date}`);
  else if (kind !== 'invoice' && due !== '')
    complain('due_on', 'due_of_no_invoice', 'belongs to invoices only: leave it empty');
  const money = readMoney(cells, complain);
  const reference = cell('reference');
  if (reference.length > 500) complain('reference', 'text_too_long', 'has more than 500 characters');
  return {
    ...{ line, kind, number: cell('number'), partner_id: partner || null, date, reference, ...money },
    due_on: kind === 'invoice' ? due : null,
  };
}

function checkNumber(number: string, cutOverOn: string, complain: (code: string, reason: string) => void) {
  if (!NUMBER.test(number)) {
    const reason =
      `'${number}' is not 1 to 64 letters, digits, dots, dashes and underscores. Write - for another character, such as ` +
      'a slash: matching ignores separators between digits and letters';
    complain('number_malformed', reason);
    return;
  }
  const year = OURS.exec(number)?.[1];
  if (year !== undefined && year >= cutOverOn.slice(0, 4)) {
    complain(
      'number_ours',
      `${number} is a number that Reckoner itself may assign: write a letter before it, such as X-${number}`,
    );
  }
}

function readMoney(cells: Cells, complain: (field: string, code: string, reason: string) => void) {
  const currency = (cells['currency'] ?? '').trim();
  const original = (cells['original_amount'] ?? '').trim();
  const open = (cells['amount'] ?? '').trim();
  if (!isCurrency(currency)) {
    complain('currency', 'currency_unknown', `'${currency}' is not an ISO 4217 currency such as USD`);
    return { currency, amount: '0', original_amount: '0' };
  }
  const read = (field: string, text: string) => {
    const problem = amountProblem(text, minorDigits(currency) as number);
    if (problem !== undefined) {
      complain(field, problem.code, `'${text}' ${problem.reason}`);
      return undefined;
    }
    const amount = Amount.of(text, currency);
    if (amount.isPositive()) return amount;
    complain(
      field,
      'amount_not_positive',
      `'${text}' is not above zero. The column kind states whether the amount is owed or a credit`,
    );
    return undefined;
  };
  const amount = read('amount', open);
  const whole = original === '' ? amount : read('original_amount', original);
  if (amount !== undefined && whole?.isLessThan(amount)) {
    complain('original_amount', 'original_below_open', `${whole} is less than the open ${amount}`);
  }
  return {
    currency,
    amount: (amount ?? Amount.zero(currency)).toString(),
    original_amount: (whole ?? Amount.zero(currency)).toString(),
  };
}

function repeatedNumbers(items: readonly OpeningItem[]) {
  const first = new Map<string, OpeningItem>();
  return items.flatMap((item) => {
    const key = `${item.kind === 'cash'} ${item.number.toLowerCase()}`;
    const earlier = first.get(key);
    if (earlier === undefined) {
      first.set(key, item);
      return [];
    }
    return [problemAt(item.line, 'number', 'number_repeated', `${item.number} is on line ${earlier.line} already`)];
  });
}
