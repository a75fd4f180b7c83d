/**
 * Reads a bank's CSV with a column map from the settings ("bank_csv"). If a column has the running balance, each amount
 * must lead from the previous balance to the balance of its row. The oldest or the newest row or day may be first.
 */
import { CsvError, parse } from 'csv-parse/sync';
import { DateTime } from 'luxon';
import { BankCsvMap, knownBankMaps } from '#config/bank-csv';
import { FieldProblem, refuse } from '#errors/refusals';
import { Amount, amountProblem, isCurrency, minorDigits } from '#money';
import { LINE_TOO_LONG, LONGEST_LINE, PROBLEMS_TOLD, tooLongLine } from '#reading/limits';
import { plainAmount, SignCounts, Signs } from './csv-amounts.ts';
import { BankFile, BankFormat, decode, HEAD_BYTES, markedEncoding, newlines, withSingleBytes } from './format.ts';
import { RunningBalances } from './running-balances.ts';
import {
  ambiguousAmount,
  BankLine,
  BankPart,
  balanceRemarks,
  compact,
  invalidFile,
  isAmbiguousAmount,
  joined,
  meaningful,
  methodOf,
  references,
  returnCodeIn,
  Totals,
} from './statement.ts';

type NamedMap = BankCsvMap &
  Readonly<{
    name: string;
  }>;

type Row = Readonly<{
  line: number;
  cells: Readonly<Record<string, string>>;
  /** Cells after those that the headings name. */
  more: readonly string[];
  raw: string;
}>;

export const csv: BankFormat = {
  name: 'csv',
  title: 'CSV',
  matches: ({ name }) => /\.(csv|txt)$/i.test(name),
  read: (file, maps) => readStatements(file, columnMap(maps, file)),
};

/**
 * The map with the name, from the settings or from those that are delivered. Without a name: the only map with the
 * columns of the file, where a map of the settings precedes; else the only map of the settings.
 */
function columnMap(maps: Readonly<Record<string, BankCsvMap>>, file: BankFile): NamedMap {
  const all = { ...knownBankMaps(), ...maps };
  const names = Object.keys(maps);
  if (file.map === undefined) {
    const fitting = (of: readonly string[]) => of.filter((each) => fits(all[each] as BankCsvMap, file));
    const [name, ...others] = [fitting(names), fitting(Object.keys(all))].find((each) => each.length > 0) ?? names;
    if (name !== undefined && others.length === 0) return { ...(all[name] as BankCsvMap), name };
  }
  const name = file.map ?? '';
  const map = Object.hasOwn(all, name) ? all[name] : undefined;
  if (map === undefined) throw refuse('bank_map_unknown', { file: file.name, map: name, maps: Object.keys(all) });
  return { ...map, name };
}

/** Whether the line of headings has all columns of a map. */
function fits(map: BankCsvMap, { bytes }: BankFile) {
  if (map.header === false) return false;
  const head = new TextDecoder(markedEncoding(bytes) ?? map.encoding).decode(bytes.subarray(0, HEAD_BYTES));
  const line =
    head
      .split(LINE_END)
      .slice(map.skip_lines)
      .find((each) => each.trim() !== '') ?? '';
  try {
    const [headings = []] = parse(line, { delimiter: map.delimiter, trim: true }) as string[][];
    return columnsOf(map).every((name) => headings.includes(name));
  } catch {
    return false;
  }
}

const LINE_END = /\r\n|\n|\r/;

function* readStatements(file: BankFile, map: NamedMap): Generator<BankPart> {
  const problems: FieldProblem[] = [];
  const accounts = new Map<string, Account>();
  // An account that has only remarks has no statement.
  const statementNumbers = new Map<Account, number>();
  const signs = usualSigns(file, map);
  for (const [row, at] of rowsOf(file, map)) {
    const read = readRow(row, map, signs, problems);
    if (problems.length >= PROBLEMS_TOLD) break;
    if (read === undefined) continue;
    const known = addMovement(accounts, read);
    const { line } = read;
    if (line === undefined) continue;
    const of = statementNumbers.get(known) ?? statementNumbers.size;
    statementNumbers.set(known, of);
    yield { of, at, line };
  }
  if (problems.length > 0) throw invalidFile(file.name, problems, map.name);
  const totals = new Totals();
  const statements = [...statementNumbers.keys()].map(({ account, balances }) => {
    const checked = balances.check(totals);
    return {
      ...{ account, currency: balances.currency, ...checked, reference: '', closed_on: undefined, pending: 0 },
      remarks: balanceRemarks({ account, ...checked }),
    };
  });
  totals.refuse(file.name);
  for (const [of, statement] of statements.entries()) yield { of, statement };
}

/** The signs of the columns for credits and debits, decided from all rows and their running balances. */
function usualSigns(file: BankFile, map: NamedMap): Signs {
  const counts = new SignCounts(map);
  const hasSides = map.columns.credit !== undefined || map.columns.debit !== undefined;
  if (hasSides) for (const [row] of rowsOf(file, map)) counts.add(row);
  const [usual, ...others] = counts.possible();
  if (others.length === 0) return usual;
  const explained = [usual, ...others].filter(
    (each) => map.columns.balance === undefined || explainsBalances(file, map, each),
  );
  const problem = explained.length > 1 ? counts.undecided() : undefined;
  if (problem !== undefined) throw invalidFile(file.name, [problem], map.name);
  return explained[0] ?? usual;
}

function explainsBalances(file: BankFile, map: NamedMap, signs: Signs) {
  const accounts = new Map<string, Account>();
  for (const [row] of rowsOf(file, map)) {
    const read = readRow(row, map, signs, []);
    if (read !== undefined) addMovement(accounts, read);
  }
  const totals = new Totals();
  for (const { balances } of accounts.values()) balances.check(totals);
  return totals.agree;
}

type Account = Readonly<{ account: string; balances: RunningBalances }>;

/** Adds the movement of a row to the account in its currency, which it returns. */
function addMovement(
  accounts: Map<string, Account>,
  { account, balance, movement }: NonNullable<ReturnType<typeof readRow>>,
): Account {
  const { currency } = movement.sum;
  const name = `${account} ${currency}`;
  const known = accounts.get(name) ?? { account, balances: new RunningBalances(currency) };
  accounts.set(name, known);
  known.balances.add(movement, balance);
  return known;
}

function* rowsOf(file: BankFile, map: NamedMap): Generator<readonly [row: Row, at: number]> {
  let header: readonly string[] | undefined;
  for (const [{ record, raw, line }, at] of recordsOf(file, map)) {
    const isHeading = header === undefined && map.header !== false;
    header ??= headerOf(record, file.name, map);
    if (isHeading) continue;
    const named = header;
    const cells = Object.fromEntries(
      record.slice(0, named.length).map((cell, index) => [named[index] as string, cell]),
    );
    if (!isSkipped(cells, map)) yield [{ line, cells, more: record.slice(named.length), raw: raw.trimEnd() }, at];
  }
  if (header === undefined) headerOf([], file.name, map);
}

function headerOf(first: readonly string[], file: string, map: NamedMap) {
  // Without headings, columns are named by their numbers, from 1.
  const header = first.map((name, index) => (map.header === false ? String(index + 1) : name.trim()));
  const missing = columnsOf(map).filter((name) => !header.includes(name));
  if (missing.length > 0) {
    throw refuse('bank_columns_missing', {
      file,
      map: map.name,
      line: map.skip_lines + 1,
      missing,
      columns: header.slice(0, 50),
    });
  }
  const twice = columnsOf(map).find((name) => header.indexOf(name) !== header.lastIndexOf(name));
  if (twice !== undefined) {
    const reason = `has the column '${twice}' twice`;
    throw invalidFile(file, [{ path: `line ${map.skip_lines + 1}`, reason }], map.name);
  }
  return header;
}

type CsvRecord = Readonly<{ record: readonly string[]; raw: string; line: number }>;

/** Yields the records with the position after the piece of the file that has them. */
function* recordsOf(file: BankFile, map: NamedMap): Generator<readonly [record: CsvRecord, at: number]> {
  let rest = '';
  let skip = map.skip_lines;
  // The lines before `rest`.
  let before = skip;
  const refuseLine = (line: number, reason: string) => {
    throw invalidFile(file.name, [{ path: `line ${line}`, reason }], map.name);
  };
  for (const [text, at, isLast] of piecesOf(file, map)) {
    rest += text;
    for (; skip > 0 && (isLast || rest.includes('\n')); skip -= 1) {
      rest = rest.includes('\n') ? rest.slice(rest.indexOf('\n') + 1) : '';
    }
    if (skip > 0) continue;
    const long = tooLongLine(rest);
    if (long !== undefined) refuseLine(long + before, LINE_TOO_LONG);
    const end = isLast ? rest.length : endOfRecords(rest);
    const body = rest.slice(0, end);
    for (const { record, raw, info } of parsed(body, file.name, map, before)) {
      // The parser states a record's last line.
      yield [{ record, raw, line: info.lines + before - newlines(raw.trim()) }, at];
    }
    before += newlines(body);
    rest = rest.slice(end);
    // Each further piece would search it again.
    if (rest.length > LONGEST_LINE)
      refuseLine(before + 1, `has a quote (") that is not closed in ${LONGEST_LINE} characters`);
  }
}

/** The end of the last line that ends outside quotes. */
function endOfRecords(text: string) {
  const quotesIn = (part: string) => part.split('"').length - 1;
  let isInside = quotesIn(text) % 2 === 1;
  for (let to = text.length; ; ) {
    const at = text.lastIndexOf('\n', to - 1);
    if (at < 0) return 0;
    if (quotesIn(text.slice(at, to)) % 2 === 1) isInside = !isInside;
    if (!isInside) return at + 1;
    to = at;
  }
}

function parsed(body: string, file: string, map: NamedMap, before: number) {
  try {
    return parse(body, {
      // Footers may have other columns. Other rows must have all columns of the map, and no more (`readRow`).
      relax_column_count: true,
      delimiter: map.delimiter,
      skip_empty_lines: true,
      trim: true,
      info: true,
      raw: true,
    }) as unknown as readonly Readonly<{ record: readonly string[]; raw: string; info: { lines: number } }>[];
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const message = error.message.replace(/\bline (\d+)/g, (_, line: string) => `line ${Number(line) + before}`);
    const reason = `is not CSV as the column map describes it: ${message}`;
    throw invalidFile(file, [{ path: '', reason }], map.name);
  }
}

const PIECE_BYTES = 64 * 1024;
const NEWLINE = 0x0a;

/** Yields the text in pieces of whole lines, with line feeds only, and the position after each piece. */
function* piecesOf(file: BankFile, map: NamedMap): Generator<readonly [text: string, at: number, isLast: boolean]> {
  const isWide = /^(?:utf-?16|ucs-?2|unicode)/i.test(map.encoding);
  const { name, bytes } = isWide ? { ...file, bytes: Buffer.from(decode(file, map.encoding)) } : withSingleBytes(file);
  const encoding = isWide || bytes !== file.bytes ? 'utf-8' : (markedEncoding(bytes) ?? map.encoding);
  for (let from = 0; from < bytes.length || from === 0; ) {
    const end = bytes.indexOf(NEWLINE, from + PIECE_BYTES) + 1;
    const to = end === 0 ? bytes.length : end;
    const text = decode({ name, bytes: bytes.subarray(from, to) }, encoding);
    yield [text.replace(/\r\n?/g, '\n'), to, to === bytes.length];
    from = Math.max(to, 1);
  }
}

/** A rule of the map skips a row by a value, or by the beginning of a value: `Total*`. */
const isSkipped = (cells: Row['cells'], { skip_rows = [] }: BankCsvMap) =>
  skip_rows.some(({ column, values }) => {
    const cell = (cells[column] ?? '').trim().toLowerCase();
    return values.some((each) => {
      const value = each.toLowerCase();
      return value.endsWith('*') ? cell.startsWith(value.slice(0, -1)) : cell === value;
    });
  });

function columnsOf({ columns, skip_rows }: BankCsvMap) {
  const { text, ...others } = columns;
  return [
    ...Object.values(others).filter((name) => name !== undefined),
    ...text,
    ...(skip_rows ?? []).map(({ column }) => column),
  ];
}

function readRow(row: Row, map: BankCsvMap, signs: Signs, problems: FieldProblem[]) {
  const { columns } = map;
  const cell = (name: string | undefined) => (name === undefined ? '' : (row.cells[name] ?? '').trim());
  const complain = (reason: string) => {
    problems.push({ path: `line ${row.line}`, reason });
    return undefined;
  };
  const missing = columnsOf(map).find((name) => row.cells[name] === undefined);
  if (missing !== undefined) return complain(`has no column '${missing}'. ${SKIP}`);
  // A comma in an amount without quotes moves what is after it.
  if (row.more.some((each) => each.trim() !== '')) return complain('has more cells than the file has columns');
  const account = compact(cell(columns.account) || map.account);
  if (account === '') return complain('names no account, and neither does the column map: add account=… to the map');
  const currency = (cell(columns.currency) || map.currency).toUpperCase();
  if (!isCurrency(currency)) return complain(`'${currency}' is not a currency`);
  const bookedOn = day(cell(columns.date), map.date_format);
  if (bookedOn === undefined)
    return complain(`'${cell(columns.date)}' is not a date of the form ${map.date_format}. ${SKIP}`);

  const number = (name: string | undefined) => {
    const written = cell(name);
    if (written === '') return undefined;
    const { plain, currency: stated = currency } = plainAmount(written, map.decimal);
    if (stated !== currency)
      return complain(
        `'${written}' is in ${stated}, but the column map says ${currency}: add currency=${stated} to the map`,
      );
    // Without separators of thousands, which no decimals are: `1,500` with the decimal separator `.` is fifteen hundred.
    if (plain !== undefined && isAmbiguousAmount(plain, currency)) return complain(ambiguousAmount(written));
    if (plain !== undefined && amountProblem(plain, minorDigits(currency) as number) === undefined) {
      return Amount.of(plain, currency);
    }
    return complain(`'${written}' is not an amount in ${currency} with the decimal separator '${map.decimal}'`);
  };
  const before = problems.length;
  const single = number(columns.amount);
  const credit = number(columns.credit);
  const debit = number(columns.debit);
  const balance = number(columns.balance);
  if (problems.length > before) return undefined;
  const sign = columns.indicator === undefined ? undefined : directionIn(cell(columns.indicator), map);
  if (columns.indicator !== undefined && sign === undefined)
    return complain(`'${cell(columns.indicator)}' in the column '${columns.indicator}' means neither credit nor debit`);
  if (sign !== undefined && single?.isNegative()) {
    return complain(`has a minus sign, but the column '${columns.indicator}' gives the direction`);
  }
  if (credit?.isZero() === false && debit?.isZero() === false) return complain('has a credit and a debit');
  const sum = signedAmount(sign === 'debit' ? single?.negated() : single, credit, debit, { signs, ...map });
  if (sum === undefined) return complain('has no amount');
  const movement = { position: row.line, bookedOn, sum };
  // A row with the amount zero is a remark of the bank.
  if (sum.isZero()) return balance && { account, balance, movement };

  const fields = [columns.customer_reference, ...columns.text, columns.bank_reference].filter(
    (each) => each !== undefined,
  );
  const text = joined(columns.text.map(cell));
  const direction = sum.isNegative() ? 'debit' : 'credit';
  const code = cell(columns.return_code) || returnCodeIn(direction, text);
  const isReturn = code !== undefined || /\b(return|reversal|chargeback)/i.test(cell(columns.type));
  const line: BankLine = {
    position: row.line,
    booked_on: bookedOn,
    value_on: day(cell(columns.value_date), map.date_format),
    direction,
    amount: sum.isNegative() ? sum.negated() : sum,
    bank_reference: meaningful(cell(columns.bank_reference)),
    references: references(fields.map((name) => [name, cell(name)])),
    text,
    payer_name: meaningful(cell(columns.payer)),
    payer_account: meaningful(compact(cell(columns.payer_account))),
    type: cell(columns.type),
    // Banks in the USA write BAI2 codes in this column.
    method: methodOf(cell(columns.type), text),
    reversal: isReturn || isGivenBack(single, credit, sum),
    return_code: code,
    raw: row.raw,
  };
  return { account, line, balance, movement };
}

const SKIP = 'If it is a footer, add a rule to the map that skips such rows (skip_rows)';
const CREDIT_VALUES = ['C', 'CR', 'CRDT', 'CREDIT'];
const DEBIT_VALUES = ['D', 'DR', 'DBIT', 'DEBIT'];

function directionIn(value: string, { credit_values = CREDIT_VALUES, debit_values = DEBIT_VALUES }: BankCsvMap) {
  const isOneOf = (of: readonly string[]) => of.some((each) => each.toLowerCase() === value.toLowerCase());
  if (isOneOf(credit_values)) return 'credit';
  return isOneOf(debit_values) ? 'debit' : undefined;
}

/** Whether it is a debit in the column for credits, which was taken back, or a credit in the column for debits. */
const isGivenBack = (single: Amount | undefined, credit: Amount | undefined, sum: Amount) =>
  single === undefined && (credit?.isZero() === false) === sum.isNegative();

/** Returns the amount from one signed column, or from two columns, which may have a minus sign. */
function signedAmount(
  single: Amount | undefined,
  credit: Amount | undefined,
  debit: Amount | undefined,
  { signs, negate }: Readonly<{ signs: Signs; negate: boolean }>,
) {
  if (single !== undefined) return negate ? single.negated() : single;
  if (credit?.isZero() === false) return signs.credit ? credit.negated() : credit;
  if (debit !== undefined) return signs.debit ? debit : debit.negated();
  return credit;
}

function day(text: string, format: string) {
  if (text === '') return undefined;
  const at = DateTime.fromFormat(text, format, { zone: 'utc', locale: 'en' });
  return at.isValid ? at.toFormat('yyyy-MM-dd') : undefined;
}
