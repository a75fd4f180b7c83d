/**
 * The lines of the log as SQL, generated from their forms. The database writes and hashes the lines: a million rows
 * take 1.3 s there, and 3 s in this process. The SQL relies on the time zone UTC and on ISO dates, which the program
 * sets for each connection.
 */
import { createHash } from 'node:crypto';
import { copyBinary } from '../database/copy.ts';
import { execute, prepared, query, type Transaction } from '../database/transaction.ts';
import { COMPUTED, LOG_FORMS, type LogColumn, type LogForm, numberOf } from './forms.ts';

/** The numbers above `after`, up to `to`. */
export interface NumberRange {
  readonly after: number;
  readonly to: number;
}

const inRange = (number: string, { after, to }: NumberRange): string => `${number} > ${after} AND ${number} <= ${to}`;

const escaped = (text: string): string =>
  `replace(replace(replace(replace(${text}, '\\', '\\\\'), E'\\t', '\\t'), E'\\n', '\\n'), E'\\r', '\\r')`;

/**
 * The identifiers of a row contain nothing to escape (`is_identifier`), so only a text that looks like NULL is escaped
 * to distinguish it from NULL. Even if the constraints were dropped, no row has the line of another row: a line has as
 * many tabs as columns, and a tab in an identifier would be one too many.
 */
function written({ kind }: LogForm, { name, type, nullable }: LogColumn): string {
  const value = COMPUTED[`${kind}.${name}`] ?? `f."${name}"`;
  const text = (() => {
    switch (type.split('@')[0]) {
      case 'amount':
      case 'rate':
      case 'number':
        return `trim_scale(${value})`;
      case 'time':
        return `to_char(${value}, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
      case 'flag':
      case 'day':
        return `${value}::text`;
      case 'hex':
        return `encode(${value}, 'hex')`;
      case 'map':
        return escaped(`log_map(to_jsonb(${value}))`);
      case 'int':
      case 'personal':
        return value;
      default:
        return kind === 'ledger_rows' ? (nullable ? `replace(${value}, '\\', '\\\\')` : value) : escaped(value);
    }
  })();
  return nullable || kind === 'ledger_rows' ? `coalesce((${text})::text, '\\N')` : text;
}

const lineOf = (form: LogForm): string =>
  `concat_ws(E'\\t', '${form.kind}', f.${numberOf(form.kind)},
     ${form.columns.map((column) => written(form, column)).join(', ')})`;

const leafOf = (line: string): string => `sha256('\\x00'::bytea || convert_to(${line}, 'UTF8'))`;

const [ROWS, ...FACTS] = LOG_FORMS as [LogForm, ...LogForm[]];
const LINE_OF_ROW = lineOf(ROWS);
const LINES = new Map(FACTS.map((form) => [form.kind, lineOf(form)]));

const FILLED = FACTS.map(
  ({ kind }) =>
    `SELECT '${kind}' AS kind
     WHERE EXISTS (SELECT FROM ${kind} WHERE log_no > :after::bigint AND log_no <= :to::bigint)`,
).join(' UNION ALL ');

/**
 * This query finds the tables that have facts in a range. Planning a query over all tables takes longer than reading
 * the few tables that have such facts.
 */
const filled = prepared(`log_filled_${createHash('sha256').update(FILLED).digest('hex').slice(0, 16)}`, FILLED);

async function selectFacts(tx: Transaction, range: NumberRange, column: (line: string) => string): Promise<string> {
  const kinds = await query<{ kind: string }>(tx, filled, { ...range });
  const parts = kinds.map(
    ({ kind }) =>
      `SELECT f.log_no, ${column(LINES.get(kind) ?? '')} AS leaf FROM ${kind} f WHERE ${inRange('f.log_no', range)}`,
  );
  return parts.length === 0 ? '' : `SELECT log_no, leaf FROM (${parts.join(' UNION ALL ')}) AS facts ORDER BY log_no`;
}

/** Takes the leaf of one fact: the fact's number, and the bytes of `content` from `from` to `to`. */
type TakeLeaf = (number: number, content: Buffer, from: number, to: number) => void;

// A row of COPY's binary format: the number of fields (2 bytes), and each field after its length (4).
const FIELDS = 2;
const LENGTH = 4;
const NUMBER = 8;

/** Reads a COPY whose rows consist of a number and some further fields. */
async function readCopy(
  tx: Transaction,
  select: string,
  fields: number,
  take: (number: number, content: Buffer, from: number, ends: readonly number[]) => void,
): Promise<void> {
  const ends = new Array<number>(fields).fill(0);
  await copyBinary(tx, `COPY (${select}) TO STDOUT (FORMAT binary)`, (content) => {
    for (let at = 0; ; ) {
      const number = at + FIELDS + LENGTH;
      const first = number + NUMBER;
      let next = first;
      for (let field = 0; field < fields; field += 1) {
        if (next + LENGTH > content.length) return at;
        next += LENGTH + content.readInt32BE(next);
        ends[field] = next;
      }
      if (next > content.length) return at;
      take(Number(content.readBigInt64BE(number)), content, first + LENGTH, ends);
      at = next;
    }
  });
}

/** What to read of the facts of a range, in the order of their numbers and including ledger rows. */
interface Parts {
  /** Returns the SQL of the column to read, given the SQL of the line. */
  readonly column: (line: string) => string;
  readonly onFact: TakeLeaf;
  /** `key` is the row's posting month, partner, currency and arrangement, separated by tabs. */
  readonly onRow: (number: number, content: Buffer, from: number, to: number, key: string) => void;
}

/** How many log numbers are read at once, because a range may not fit in memory. */
const AT_ONCE = 200_000;

async function readParts(tx: Transaction, range: NumberRange, { column, onFact, onRow }: Parts): Promise<void> {
  // The planner underestimates the cost of hashing. Without this setting, PostgreSQL uses one process, and a million
  // rows take 3.1 s instead of 1.8 s.
  await execute(tx, `SET LOCAL parallel_tuple_cost TO 0.001`);
  for (let after = range.after; after < range.to; after += AT_ONCE) {
    const part = { after, to: Math.min(after + AT_ONCE, range.to) };
    const facts: { number: number; content: Buffer }[] = [];
    const select = await selectFacts(tx, part, column);
    if (select !== '') {
      await readCopy(tx, select, 1, (number, content, from, [to = 0]) =>
        facts.push({ number, content: Buffer.from(content.subarray(from, to)) }),
      );
    }
    let next = 0;
    const passTo = (number: number) => {
      for (let fact = facts[next]; fact !== undefined && fact.number < number; fact = facts[next]) {
        onFact(fact.number, fact.content, 0, fact.content.length);
        next += 1;
      }
    };
    const rows = `SELECT f.entry_id, ${column(LINE_OF_ROW)},
        concat_ws(E'\\t', f.posted_month, f.partner_id, f.currency, f.arrangement)
      FROM ledger_rows f WHERE ${inRange('f.entry_id', part)} ORDER BY f.entry_id`;
    await readCopy(tx, rows, 2, (number, content, from, [to = 0, end = 0]) => {
      passTo(number);
      onRow(number, content, from, to, content.toString('latin1', to + LENGTH, end));
    });
    passTo(Number.POSITIVE_INFINITY);
  }
  await execute(tx, `SET LOCAL parallel_tuple_cost TO DEFAULT`);
}

/** Reads the leaf hashes of a range in order. */
export const readLeaves = (tx: Transaction, range: NumberRange, take: Omit<Parts, 'column'>): Promise<void> =>
  readParts(tx, range, { column: leafOf, ...take });

/** Reads the leaf hashes of a range without ledger rows. */
export async function readFactLeaves(tx: Transaction, range: NumberRange, onFact: TakeLeaf): Promise<void> {
  const select = await selectFacts(tx, range, leafOf);
  if (select === '') return;
  await readCopy(tx, select, 1, (number, content, from, [to = 0]) => onFact(number, content, from, to));
}

/** Reads the lines of a range in order, each line without its line end. */
export const readLines = (tx: Transaction, range: NumberRange, onLine: TakeLeaf): Promise<void> =>
  readParts(tx, range, { column: (line) => `convert_to(${line}, 'UTF8')`, onFact: onLine, onRow: onLine });

/** The posting months after `after`, up to `to`. */
export interface PostedMonths {
  readonly after: string;
  readonly to: string;
}

/** Reads the leaf hashes of the rows that are posted to these months, in the order of the log. */
export async function readRowLeaves(
  tx: Transaction,
  { after, to }: PostedMonths,
  onRow: Parts['onRow'],
): Promise<void> {
  await execute(tx, `SET LOCAL parallel_tuple_cost TO 0.001`);
  const rows = `SELECT f.entry_id, ${leafOf(LINE_OF_ROW)},
      concat_ws(E'\\t', f.posted_month, f.partner_id, f.currency, f.arrangement)
    FROM ledger_rows f WHERE posted_month > '${after}' AND posted_month <= '${to}' ORDER BY f.entry_id`;
  await readCopy(tx, rows, 2, (number, content, from, [end = 0, last = 0]) =>
    onRow(number, content, from, end, content.toString('latin1', end + LENGTH, last)),
  );
  await execute(tx, `SET LOCAL parallel_tuple_cost TO DEFAULT`);
}

/** A COPY of the lines of the rows up to a number that are posted to some months, in the order of the log. */
export const copyRowLines = ({ after, to }: PostedMonths, lastNo: number): string =>
  `COPY (SELECT ${LINE_OF_ROW} FROM ledger_rows f
         WHERE posted_month > '${after}' AND posted_month <= '${to}' AND f.entry_id <= ${lastNo}
         ORDER BY f.entry_id) TO STDOUT (FORMAT csv, QUOTE E'\\x01', DELIMITER E'\\x02')`;

/** The facts in which a close states the totals of a partner's rows: the number and the line of each fact. */
export const readMonthPartnerLines = (
  tx: Transaction,
  given: { readonly month: string; readonly partnerId: string },
): Promise<
  { readonly number: number; readonly line: string; readonly currency: string; readonly arrangement: string }[]
> =>
  query(
    tx,
    `SELECT f.log_no AS number, ${LINES.get('month_partners')} AS line, f.currency, f.arrangement FROM month_partners f
     WHERE f.month = :month AND f.partner_id = :partnerId ORDER BY f.log_no`,
    given,
  );

/** Reads the lines of a partner's rows of a month, in the order of the log, by currency and arrangement. */
export async function readPartnerLines(
  tx: Transaction,
  { after, to }: PostedMonths,
  partnerId: string,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const rows = await query<{ billed_as: string; line: string }>(
    tx,
    `SELECT currency || ' ' || arrangement AS billed_as, ${LINE_OF_ROW} AS line FROM ledger_rows f
     WHERE partner_id = :partnerId AND posted_month > :after AND posted_month <= :to ORDER BY entry_id`,
    { after, to, partnerId },
  );
  const lines = new Map<string, string[]>();
  for (const { billed_as, line } of rows) {
    const known = lines.get(billed_as);
    if (known === undefined) lines.set(billed_as, [line]);
    else known.push(line);
  }
  return lines;
}
