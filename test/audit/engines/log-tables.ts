/** Reads checks.sql and a log.tsv into typed tables, as a verifier does, for the engines that the rules must agree in. */
import { withCopies } from '../../../src/log/forms.ts';
import { minorDigits } from '../../../src/money.ts';

export interface Rule {
  readonly name: string;
  readonly sentence: string;
  /** It looks back before the first leaf of a pack. */
  readonly whole: boolean;
  readonly query: string;
}

interface Column {
  readonly name: string;
  readonly type: string;
}

export interface Checks {
  readonly forms: ReadonlyMap<string, readonly Column[]>;
  readonly prepare: readonly string[];
  readonly rules: readonly Rule[];
}

type Value = string | bigint | null;

export interface Table {
  readonly name: string;
  readonly columns: readonly { readonly name: string; readonly isText: boolean }[];
  readonly rows: Value[][];
}

export function readChecks(file: string): Checks {
  const text = withCopies(file);
  const [head = '', rest = ''] = text.split('-- PREPARE\n');
  const [prepare = '', checks = ''] = rest.split(/-- CHECKS\n|-- VIEWS\n/);
  const forms = head.split('\n').filter((line) => line.startsWith('-- FORM '));
  return {
    forms: new Map(forms.map(readForm)),
    prepare: prepare.split(/;\n/).filter((statement) => statement.trim() !== ''),
    rules: checks.trim().split('\n\n').map(readRule),
  };
}

function readForm(line: string): [kind: string, columns: Column[]] {
  const [, , kind = '', ...columns] = line.split(' ');
  return [
    kind,
    columns.map((text) => {
      const [name = '', type = 'text'] = text.split(':');
      return { name: name.replace(/[?!]+$/, ''), type };
    }),
  ];
}

function readRule(block: string): Rule {
  const [first = '', ...lines] = block.split('\n');
  const [, name, sentence] = /^-- (\w+): (.+)$/.exec(first) ?? [];
  if (name === undefined || sentence === undefined) throw new Error(`not the first line of a rule: ${first}`);
  const whole = lines[0] === '-- whole';
  return {
    name,
    sentence,
    whole,
    query: lines
      .slice(whole ? 1 : 0)
      .join('\n')
      .replace(/;$/, ''),
  };
}

const TEXT_TYPES = ['text', 'time', 'map', 'hex', 'number', 'personal'];
const ESCAPED: Readonly<Record<string, string>> = { '\\\\': '\\', '\\t': '\t', '\\n': '\n', '\\r': '\r' };
const withoutEscapes = (text: string) => text.replace(/\\[\\tnr]/g, (found) => ESCAPED[found] as string);

/** A decimal as a whole number of its smallest unit. */
function units(text: string, digits: number): bigint {
  const [whole = '', part = ''] = text.split('.');
  if (part.length > digits) throw new Error(`${text} has more than ${digits} decimals`);
  return BigInt(whole + part.padEnd(digits, '0'));
}

function* mapItems(text: string): Generator<[path: string, value: string | null]> {
  for (const item of withoutEscapes(text).split('&')) {
    const place = item.search(/[=:]/);
    const value = item.slice(place + 1);
    if (item[place] === '=') yield [item.slice(0, place), value.replaceAll('%26', '&').replaceAll('%25', '%')];
    else yield [item.slice(0, place), value === 'null' ? null : value];
  }
}

function typedValue(text: string, type: string, currencyOf: (column: string) => string): Value {
  if (text === '\\N') return null;
  if (type === 'int') return BigInt(text);
  if (type.startsWith('amount')) return units(text, minorDigits(currencyOf(type.slice(7) || 'currency')) ?? 2);
  if (type === 'rate') return units(text, 4);
  if (type === 'day') return BigInt(Date.parse(`${text}T00:00:00Z`) / 86_400_000);
  if (type === 'flag') return text === 'true' ? 1n : 0n;
  return type === 'time' || type === 'map' ? text : withoutEscapes(text);
}

const text = (name: string) => ({ name, isText: true });
const whole = (name: string) => ({ name, isText: false });

/** The table of each kind, the values of maps, the currencies, and the pack, which is the whole log. */
export function logTables({ forms }: Checks, log: string): Table[] {
  const tables = new Map<string, Table>(
    [...forms].map(([kind, columns]) => [
      kind,
      {
        name: kind,
        columns: [whole('log_no'), ...columns.map(({ name, type }) => ({ name, isText: TEXT_TYPES.includes(type) }))],
        rows: [],
      },
    ]),
  );
  const maps: Value[][] = [];
  const codes = new Set<string>();
  const lines = log.split('\n').slice(0, -1);
  for (const line of lines) {
    const [kind = '', number = '', ...fields] = line.split('\t');
    const columns = forms.get(kind) ?? [];
    if (fields.length !== columns.length) throw new Error(`${kind} ${number} has ${fields.length} fields`);
    const field = (name: string) => fields[columns.findIndex((column) => column.name === name)] as string;
    const row = columns.map(({ type }, index) => typedValue(fields[index] as string, type, field));
    tables.get(kind)?.rows.push([BigInt(number), ...row]);
    columns.forEach(({ name, type }, index) => {
      const found = fields[index] as string;
      if (type === 'map' && found !== '\\N') {
        for (const item of mapItems(found)) maps.push([BigInt(number), name, ...item]);
      }
      if (name.includes('currency') && found !== '\\N') codes.add(found);
    });
  }
  const months = (tables.get('closed_months')?.rows ?? []).map(([, month]) => month as string).sort();
  return [
    ...tables.values(),
    { name: 'map_values', columns: [whole('log_no'), text('column_name'), text('path'), text('value')], rows: maps },
    {
      name: 'currencies',
      columns: [text('code'), whole('digits')],
      rows: [...codes].map((code) => [code, BigInt(minorDigits(code) ?? 2)]),
    },
    {
      name: 'pack',
      columns: [whole('first'), whole('size'), text('from_month'), text('to_month')],
      rows: [[0n, BigInt(lines.length), months[0] ?? null, months.at(-1) ?? null]],
    },
  ];
}

/** A line for each thing that is wrong, in the order of their bytes: engines order rows and texts differently. */
export const answerLines = (rule: Rule, rows: readonly (readonly unknown[])[]): string[] =>
  rows.map((row) => [rule.name, ...row.map((value) => (value === null ? '' : String(value)))].join('\t'));
