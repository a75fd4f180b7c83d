/**
 * Reads a bank's CSV with a column map from the settings ("bank_csv"). If a column has the running balance, each amount
 * must lead from the previous balance to the balance of its row. The oldest or the newest row may be first.
 */
import { CsvError, parse } from 'csv-parse/sync';
import { DateTime } from 'luxon';
import { BankCsvMap } from '#config/bank-csv';
import { FieldProblem, refuse } from '#errors/refusals';
import { Amount, amountProblem, isCurrency, minorDigits } from '#money';
import { LINE_TOO_LONG, MOST_ITEMS, readUntilTold, tooLongLine } from '#reading/limits';
import { methodOfCode } from './bai2.ts';
import { BankFile, BankFormat, decode } from './format.ts';
import { BankLine, invalidFile, meaningful, methodInWords, references, Totals } from './statement.ts';

type NamedMap = BankCsvMap &
  Readonly<{
    name: string;
  }>;

type Row = Readonly<{
  line: number;
  cells: Readonly<Record<string, string>>;
  raw: string;
}>;

type ParsedRow = Readonly<{
  account: string;
  line: BankLine;
  balance: Amount | undefined;
}>;

export const csv: BankFormat = {
  name: 'csv',
  title: 'CSV',
  matches: ({ name }) => /\.(csv|txt)$/i.test(name),
  read(file, maps) {
    const map = columnMap(maps, file);
    return readStatements(decode(file, map.encoding), file.name, map);
  },
};

function columnMap(maps: Readonly<Record<string, BankCsvMap>>, file: BankFile) {
  const names = Object.keys(maps);
  const name = file.map ?? (names.length === 1 ? (names[0] as string) : '');
  const map = Object.hasOwn(maps, name) ? maps[name] : undefined;
  if (map === undefined) throw refuse('bank_map_unknown', { file: file.name, map: name, maps: names });
  return { ...map, name };
}

function readStatements(text: string, file: string, map: NamedMap) {
  const problems: FieldProblem[] = [];
  const rows = readRows(text, file, map);
  const read = readUntilTold(rows, problems, (row) => readRow(row, map, problems));
  if (problems.length > 0) throw invalidFile(file, problems, map.name);
  const accounts = new Map<string, ParsedRow[]>();
  for (const each of read) {
    const name = `${each.account} ${each.line.amount.currency}`;
    const lines = accounts.get(name);
    if (lines === undefined) accounts.set(name, [each]);
    else lines.push(each);
  }
  const totals = new Totals();
  const statements = [...accounts.values()].map((lines) => {
    const { account, line } = lines[0] as ParsedRow;
    const balances = checkBalances(lines, totals);
    const { currency } = line.amount;
    return {
      account,
      currency,
      reference: '',
      ...balances,
      closed_on: undefined,
      lines: lines.map((each) => each.line),
      pending: 0,
    };
  });
  totals.refuse(file);
  return statements;
}

function readRows(text: string, file: string, map: NamedMap) {
  let records: { record: Record<string, string>; raw: string; info: { lines: number } }[];
  let header: string[] = [];
  const body = text
    .replace(/^\uFEFF/, '')
    .split(/\r\n|\n|\r/)
    .slice(map.skip_lines)
    .join('\n');
  const long = tooLongLine(body);
  if (long !== undefined) {
    throw invalidFile(file, [{ path: `line ${long + map.skip_lines}`, reason: LINE_TOO_LONG }], map.name);
  }
  try {
    records = parse(body, {
      columns: (names: string[]) => {
        header = names.map((name) => name.trim());
        return header;
      },
      delimiter: map.delimiter,
      skip_empty_lines: true,
      to: MOST_ITEMS + 1,
      trim: true,
      info: true,
      raw: true,
    }) as unknown as typeof records;
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const reason = `is not CSV as the column map describes it: ${error.message}`;
    throw invalidFile(file, [{ path: '', reason }], map.name);
  }
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
  return records.map(({ record, raw, info }) => ({
    line: info.lines + map.skip_lines,
    cells: record,
    raw: raw.trimEnd(),
  }));
}

function columnsOf({ columns }: BankCsvMap) {
  const { text, ...others } = columns;
  return [...Object.values(others).filter((name) => name !== undefined), ...text];
}

function readRow(row: Row, map: BankCsvMap, problems: FieldProblem[]) {
  const { columns } = map;
  const cell = (name: string | undefined) => (name === undefined ? '' : (row.cells[name] ?? '').trim());
  const complain = (reason: string) => {
    problems.push({ path: `line ${row.line}`, reason });
    return undefined;
  };
  const account = (cell(columns.account) || map.account).replace(/\s/g, '');
  if (account === '') return complain('names no account, and neither does the column map');
  const currency = (cell(columns.currency) || map.currency).toUpperCase();
  if (!isCurrency(currency)) return complain(`'${currency}' is not a currency`);
  const bookedOn = day(cell(columns.date), map.date_format);
  if (bookedOn === undefined) return complain(`'${cell(columns.date)}' is not a date of the form ${map.date_format}`);

  const number = (name: string | undefined) => {
    const written = cell(name);
    if (written === '') return undefined;
    const plain = plainAmount(written, map.decimal);
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
  const signed = signedAmount(single, credit, debit, map.negate);
  if (signed === undefined) return complain('has no amount');
  // A row with the amount zero is a remark of the bank.
  if (signed.isZero()) return undefined;

  const fields = [columns.customer_reference, ...columns.text, columns.bank_reference].filter(
    (each) => each !== undefined,
  );
  const text = columns.text
    .map(cell)
    .filter((each) => each !== '')
    .join(' ');
  const direction = signed.isNegative() ? 'debit' : 'credit';
  const code = cell(columns.return_code) || (direction === 'debit' ? (/\bR\d\d\b/.exec(text)?.[0] ?? '') : '');
  const line: BankLine = {
    position: row.line,
    booked_on: bookedOn,
    value_on: day(cell(columns.value_date), map.date_format),
    direction,
    amount: signed.isNegative() ? signed.negated() : signed,
    bank_reference: meaningful(cell(columns.bank_reference)),
    references: references(fields.map((name) => [name, cell(name)])),
    text,
    payer_name: meaningful(cell(columns.payer)),
    payer_account: meaningful(cell(columns.payer_account).replace(/\s/g, '')),
    type: cell(columns.type),
    // Banks in the USA write BAI2 codes in this column.
    method: methodOfCode(cell(columns.type)) ?? methodInWords(cell(columns.type), text),
    reversal: code !== '' || /\b(return|reversal|chargeback)/i.test(cell(columns.type)),
    return_code: code || undefined,
    raw: row.raw,
  };
  return { account, line, balance };
}

/**
 * Returns the amount from one signed column, or from two columns. Debits in a separate column may have a minus sign.
 */
function signedAmount(
  single: Amount | undefined,
  credit: Amount | undefined,
  debit: Amount | undefined,
  negate: boolean,
) {
  if (single !== undefined) return negate ? single.negated() : single;
  if (credit !== undefined && !credit.isZero()) return credit;
  if (debit !== undefined) return debit.isNegative() ? debit : debit.negated();
  return credit;
}

/**
 * Returns `1,234.50`, `1.234,50`, `(12.00)`, `12.00-`, `$ 12.00` or `12.00 DR` as a plain decimal, or undefined for any
 * other form. Digits must be grouped in threes or not at all, so that a wrong decimal separator is detected.
 */
function plainAmount(written: string, decimal: '.' | ',') {
  let text = written.replace(/[\s\u00A0\u202F]/g, '').replace(/^([+-]?)(?:[A-Z]{3}|[$€£¥])/, '$1');
  let negative = false;
  const marks: readonly [RegExp, boolean][] = [
    [/^\((.*)\)$/, true],
    [/^[-−](.*)$/, true],
    [/^(.*)[-−]$/, true],
    [/^(.*)DR$/i, true],
    [/^(.*)CR$/i, false],
    [/^\+(.*)$/, false],
  ];
  for (const [mark, minus] of marks) {
    const found = mark.exec(text);
    if (found === null) continue;
    text = found[1] as string;
    negative = minus;
    break;
  }
  const group = decimal === '.' ? ',' : '.';
  const [whole = '', fraction, more] = text.split(decimal);
  if (more !== undefined || (fraction !== undefined && !/^\d+$/.test(fraction))) return undefined;
  const grouped = new RegExp(`^\\d{1,3}(?:[${group}'’]\\d{3})+$`);
  if (!/^\d+$/.test(whole) && !grouped.test(whole)) return undefined;
  const plain = whole.replace(/\D/g, '');
  return `${negative ? '-' : ''}${plain}${fraction === undefined ? '' : `.${fraction}`}`;
}

function day(text: string, format: string) {
  if (text === '') return undefined;
  const at = DateTime.fromFormat(text, format, { zone: 'utc', locale: 'en' });
  return at.isValid ? at.toFormat('yyyy-MM-dd') : undefined;
}

function checkBalances(lines: readonly ParsedRow[], totals: Totals) {
  if (lines.some((each) => each.balance === undefined)) return { opening: undefined, closing: undefined };
  const signed = ({ line }: ParsedRow) => (line.direction === 'credit' ? line.amount : line.amount.negated());
  const faults = (ordered: readonly ParsedRow[]) =>
    ordered.flatMap((each, index) => {
      const before = ordered[index - 1]?.balance;
      const expected = before?.plus(signed(each));
      return expected === undefined || expected.equals(each.balance as Amount) ? [] : [{ each, expected }];
    });
  const newestFirst = [...lines].reverse();
  const [ordered, wrong] = [lines, newestFirst]
    .map((order) => [order, faults(order)] as const)
    .reduce((best, each) => (each[1].length < best[1].length ? each : best));
  for (const { each, expected } of wrong) {
    totals.expect(`line ${each.line.position}: running balance`, each.balance?.toString(), expected.toString());
  }
  const first = ordered[0] as ParsedRow;
  return { opening: first.balance?.minus(signed(first)), closing: ordered.at(-1)?.balance };
}
