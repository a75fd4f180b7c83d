/**
 * Reads a bank's CSV with a column map from the settings ("bank_csv"). If a column has the running balance, each amount
 * must lead from the previous balance to the balance of its row. The oldest or the newest row may be first.
 */
import { CsvError, parse } from 'csv-parse/sync';
import { DateTime } from 'luxon';
import { BankCsvMap, knownBankMaps } from '#config/bank-csv';
import { FieldProblem, refuse } from '#errors/refusals';
import { Amount, amountProblem, isCurrency, minorDigits } from '#money';
import { LINE_TOO_LONG, MOST_ITEMS, readUntilTold, tooLongLine } from '#reading/limits';
import { BankFile, BankFormat, decode, HEAD_BYTES } from './format.ts';
import {
  ambiguousAmount,
  BankLine,
  balanceRemarks,
  compact,
  invalidFile,
  isAmbiguousAmount,
  joined,
  meaningful,
  methodOf,
  references,
  returnCodeIn,
  signed,
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

type ParsedRow = Readonly<{
  account: string;
  line: BankLine;
  balance: Amount | undefined;
}>;

export const csv: BankFormat = {
  name: 'csv',
  title: 'CSV',
  matches: ({ name }) => /\.(csv|txt)$/i.test(name),
  *read(file, maps) {
    const map = columnMap(maps, file);
    for (const [of, { lines, ...statement }] of readStatements(decode(file, map.encoding), file.name, map).entries()) {
      for (const line of lines) yield { of, line };
      yield { of, statement };
    }
  },
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
  const head = new TextDecoder(map.encoding).decode(bytes.subarray(0, HEAD_BYTES));
  const line = head.split(LINE_END)[map.skip_lines] ?? '';
  try {
    const [headings = []] = parse(line, { delimiter: map.delimiter, trim: true }) as string[][];
    return columnsOf(map).every((name) => headings.includes(name));
  } catch {
    return false;
  }
}

const LINE_END = /\r\n|\n|\r/;

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
      ...{ account, currency, ...balances, reference: '', closed_on: undefined, pending: 0 },
      remarks: balanceRemarks({ account, ...balances }),
      lines: lines.map((each) => each.line),
    };
  });
  totals.refuse(file);
  return statements;
}

function readRows(text: string, file: string, map: NamedMap) {
  let records: { record: readonly string[]; raw: string; info: { lines: number } }[];
  const body = text
    .replace(/^\uFEFF/, '')
    .split(LINE_END)
    .slice(map.skip_lines)
    .join('\n');
  const long = tooLongLine(body);
  if (long !== undefined) {
    throw invalidFile(file, [{ path: `line ${long + map.skip_lines}`, reason: LINE_TOO_LONG }], map.name);
  }
  try {
    records = parse(body, {
      // Footers may have other columns. Other rows must have all columns of the map, and no more (`readRow`).
      relax_column_count: true,
      delimiter: map.delimiter,
      skip_empty_lines: true,
      to: MOST_ITEMS + 2,
      trim: true,
      info: true,
      raw: true,
    }) as unknown as typeof records;
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const reason = `is not CSV as the column map describes it: ${error.message}`;
    throw invalidFile(file, [{ path: '', reason }], map.name);
  }
  const first = (map.header === false ? records[0] : records.shift())?.record ?? [];
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
  const rows = records.map(({ record, raw, info }) => ({
    line: info.lines + map.skip_lines,
    cells: Object.fromEntries(record.slice(0, header.length).map((cell, index) => [header[index] as string, cell])),
    more: record.slice(header.length),
    raw: raw.trimEnd(),
  }));
  return rows.filter(({ cells }) => !isSkipped(cells, map));
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

function readRow(row: Row, map: BankCsvMap, problems: FieldProblem[]) {
  const { columns } = map;
  const cell = (name: string | undefined) => (name === undefined ? '' : (row.cells[name] ?? '').trim());
  const complain = (reason: string) => {
    problems.push({ path: `line ${row.line}`, reason });
    return undefined;
  };
  const missing = columnsOf(map).find((name) => row.cells[name] === undefined);
  if (missing !== undefined) return complain(`has no column '${missing}'`);
  // A comma in an amount without quotes moves what is after it.
  if (row.more.some((each) => each.trim() !== '')) return complain('has more cells than the file has columns');
  const account = compact(cell(columns.account) || map.account);
  if (account === '') return complain('names no account, and neither does the column map: add account=… to the map');
  const currency = (cell(columns.currency) || map.currency).toUpperCase();
  if (!isCurrency(currency)) return complain(`'${currency}' is not a currency`);
  const bookedOn = day(cell(columns.date), map.date_format);
  if (bookedOn === undefined) return complain(`'${cell(columns.date)}' is not a date of the form ${map.date_format}`);

  const number = (name: string | undefined) => {
    const written = cell(name);
    if (written === '') return undefined;
    const plain = plainAmount(written, map.decimal);
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
  if (columns.indicator !== undefined && sign === undefined) {
    return complain(`'${cell(columns.indicator)}' in the column '${columns.indicator}' means neither credit nor debit`);
  }
  if (sign !== undefined && single?.isNegative()) {
    return complain(`has a minus sign, but the column '${columns.indicator}' gives the direction`);
  }
  if (credit?.isZero() === false && debit?.isZero() === false) return complain('has a credit and a debit');
  const sum = signedAmount(sign === 'debit' ? single?.negated() : single, credit, debit, map.negate);
  if (sum === undefined) return complain('has no amount');
  // A row with the amount zero is a remark of the bank.
  if (sum.isZero()) return undefined;

  const fields = [columns.customer_reference, ...columns.text, columns.bank_reference].filter(
    (each) => each !== undefined,
  );
  const text = joined(columns.text.map(cell));
  const direction = sum.isNegative() ? 'debit' : 'credit';
  const code = cell(columns.return_code) || returnCodeIn(direction, text);
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
    reversal: code !== undefined || /\b(return|reversal|chargeback)/i.test(cell(columns.type)),
    return_code: code,
    raw: row.raw,
  };
  return { account, line, balance };
}

const CREDIT_VALUES = ['C', 'CR', 'CRDT', 'CREDIT'];
const DEBIT_VALUES = ['D', 'DR', 'DBIT', 'DEBIT'];

function directionIn(value: string, { credit_values = CREDIT_VALUES, debit_values = DEBIT_VALUES }: BankCsvMap) {
  const isOneOf = (of: readonly string[]) => of.some((each) => each.toLowerCase() === value.toLowerCase());
  if (isOneOf(credit_values)) return 'credit';
  return isOneOf(debit_values) ? 'debit' : undefined;
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

/** Some banks write a balance only beside the last line of a day: it must include the lines since the balance before. */
function checkBalances(lines: readonly ParsedRow[], totals: Totals) {
  const check = (ordered: readonly ParsedRow[]) => {
    let opening: Amount | undefined;
    let at: Amount | undefined;
    let sum = Amount.zero((ordered[0] as ParsedRow).line.amount.currency);
    let compared = 0;
    const faults: { each: ParsedRow; expected: Amount }[] = [];
    for (const each of ordered) {
      sum = sum.plus(signed(each.line));
      const expected: Amount | undefined = at?.plus(signed(each.line));
      at = each.balance ?? expected;
      if (each.balance === undefined) continue;
      opening ??= each.balance.minus(sum);
      if (expected !== undefined) compared += 1;
      if (expected?.equals(each.balance) === false) faults.push({ each, expected });
    }
    // The only balance of several lines proves none of them.
    if (compared === 0 && ordered.length > 1) opening = undefined;
    return { faults, opening, closing: ordered.at(-1)?.balance };
  };
  const best = [check(lines), check([...lines].reverse())].reduce((one, other) =>
    other.faults.length < one.faults.length ? other : one,
  );
  const { faults, opening, closing } = best;
  const hasAll = lines.every(({ balance }) => balance !== undefined);
  const byDay = faults.length === 0 || !hasAll ? undefined : orderedWithinDays(lines);
  if (byDay !== undefined) return byDay;
  for (const { each, expected } of faults) {
    const path = `line ${each.line.position}: running balance (of a bank that orders its lines otherwise, leave out the map's column 'balance')`;
    totals.expect(path, each.balance?.toString(), expected.toString());
  }
  return { opening, closing };
}

/**
 * Some banks list the lines of a day in another order than their balances. Each line leads from one balance to the
 * next, so all lines of a day must form one path through the day's balances (Euler), and a day begins where the day
 * before ended. Returns undefined if they do not.
 */
function orderedWithinDays(lines: readonly ParsedRow[]) {
  const days = new Map<string, ParsedRow[]>();
  for (const row of lines) days.set(row.line.booked_on, [...(days.get(row.line.booked_on) ?? []), row]);
  let opening: Amount | undefined;
  let at: Amount | undefined;
  for (const [, rows] of [...days].sort(([one], [other]) => (one < other ? -1 : 1))) {
    // By balance: the balances that follow it, and how many more lines leave it than lead to it.
    const next = new Map<string, string[]>();
    const surplus = new Map<string, number>();
    const froms = rows.map(({ line, balance }) => (balance as Amount).minus(signed(line)));
    for (const [index, { balance }] of rows.entries()) {
      const [from, to] = [String(froms[index]), String(balance)];
      surplus.set(from, (surplus.get(from) ?? 0) + 1);
      surplus.set(to, (surplus.get(to) ?? 0) - 1);
      if (next.get(from)?.push(to) === undefined) next.set(from, [to]);
    }
    const start = at ?? ((froms.find((from) => surplus.get(String(from)) === 1) ?? froms[0]) as Amount);
    opening ??= start;
    at = start.plus(Amount.sum(start.currency, rows, ({ line }) => signed(line)));
    const reached = new Set([String(start)]);
    for (const each of reached) for (const to of next.get(each) ?? []) reached.add(to);
    const uneven = [...surplus].flatMap(([each, count]) => (count === 0 ? [] : `${each} ${count}`));
    const ends = start.equals(at) ? [] : [`${start} 1`, `${at} -1`];
    if (uneven.sort().join() !== ends.sort().join() || ![...next.keys()].every((each) => reached.has(each)))
      return undefined;
  }
  return { opening, closing: at };
}
