/**
 * The lines of the log as SQL, generated from their forms. The database writes and hashes the lines: a million rows
 * take 1.3 s there, and 3 s in this process. The SQL relies on the time zone UTC and on ISO dates, which the program
 * sets for each connection.
 */
import { hash } from 'node:crypto';
import { copyJoined } from '#database/copy';
import { execute, prepared, query, querying, Transaction } from '#database/transaction';
import { COMPUTED, LOG_FORMS, LogColumn, LogForm, numberOf } from './forms.ts';

/** The numbers above `after`, up to `to`. */
export interface NumberRange {
  readonly after: number;
  readonly to: number;
}

const inRange = (number: string, { after, to }: NumberRange) => `${number} > ${after} AND ${number} <= ${to}`;

const escaped = (text: string) =>
  `replace(replace(replace(replace(${text}, '\\', '\\\\'), E'\\t', '\\t'), E'\\n', '\\n'), E'\\r', '\\r')`;

/** A time as the log writes it. The session's time zone must be UTC. */
export const time = (value: string) => `to_char(${value}, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

/**
 * The identifiers of a row contain nothing to escape (`is_identifier`), so only a text that looks like NULL is escaped
 * to distinguish it from NULL. Even if the constraints were dropped, no row has the line of another row: a line has as
 * many tabs as columns, and a tab in an identifier would be one too many.
 */
function written({ kind }: LogForm, { name, type, nullable }: LogColumn) {
  const value = COMPUTED[`${kind}.${name}`] ?? `f."${name}"`;
  const text = (() => {
    switch (type.split('@')[0]) {
      case 'amount':
      case 'rate':
      case 'number':
        return `trim_scale(${value})`;
      case 'time':
        return time(value);
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

const lineOf = (form: LogForm) =>
  `concat_ws(E'\\t', '${form.kind}', f.${numberOf(form.kind)},
     ${form.columns.map((column) => written(form, column)).join(', ')})`;

const leafOf = (line: string) => `sha256('\\x00'::bytea || convert_to(${line}, 'UTF8'))`;

const ROWS = 'ledger_rows';
const FACTS = LOG_FORMS.map(({ kind }) => kind).filter((kind) => kind !== ROWS);
const LINES = new Map(LOG_FORMS.map((form) => [form.kind, lineOf(form)]));

const FILLED = FACTS.map(
  (kind) =>
    `SELECT '${kind}' AS kind
     WHERE EXISTS (SELECT FROM ${kind} WHERE log_no > :after::bigint AND log_no <= :to::bigint)`,
).join(' UNION ALL ');

/**
 * This query finds the tables that have facts in a range. Planning a query over all tables takes longer than reading
 * the few tables that have such facts.
 */
const filled = prepared(`log_filled_${hash('sha256', FILLED).slice(0, 16)}`, FILLED);

async function filledKinds(tx: Transaction, range: NumberRange) {
  return (await query<{ kind: string }>(tx, filled, { ...range })).map(({ kind }) => kind);
}

/** How many log numbers share a row of what is read: each row is a message, and a million messages take a second. */
const IN_A_ROW = 256;

/** A query of a value aggregated over facts with neighbouring numbers, in the order of the numbers. */
const aggregated = (value: string, facts: readonly string[]) => {
  const group = `log_no / ${IN_A_ROW}`;
  return `SELECT string_agg(${value} ORDER BY log_no)
          FROM (${facts.join(' UNION ALL ')}) AS facts GROUP BY ${group} ORDER BY ${group}`;
};

const selectFacts = (kind: string, columns: string, where: string) =>
  `SELECT f.${numberOf(kind)} AS log_no, ${columns} FROM ${kind} f WHERE ${where}`;

const numbered = (kind: string, range: NumberRange) => inRange(`f.${numberOf(kind)}`, range);

/** How many log numbers are read at once, because a range may not fit in memory. */
const AT_ONCE = 200_000;

function* partsOf({ after: first, to }: NumberRange): Generator<NumberRange> {
  for (let after = first; after < to; after += AT_ONCE) yield { after, to: Math.min(after + AT_ONCE, to) };
}

/** Reads the lines of a range in order, each with its line end. A piece may begin and end inside a line. */
export async function copyLines(tx: Transaction, range: NumberRange, take: (piece: Buffer) => Promise<void> | void) {
  for (const part of partsOf(range)) {
    const lines = [ROWS, ...(await filledKinds(tx, part))].map((kind) =>
      selectFacts(kind, `${LINES.get(kind)} || E'\\n' AS line`, numbered(kind, part)),
    );
    await copyJoined(tx, aggregated(`line, ''`, lines), take);
  }
}

/** Takes the leaf hash of one fact: the fact's number, and the bytes of `content` from `from` to `to`. */
type TakeLeaf = (number: number, content: Buffer, from: number, to: number) => void;

/** What to do with the leaf hashes of facts, in the order of their numbers and including ledger rows. */
interface TakeLeaves {
  readonly onFact: TakeLeaf;
  /** `key` is the row's posting month, partner, currency and arrangement, separated by tabs. */
  readonly onRow: (number: number, content: Buffer, from: number, to: number, key: string) => void;
}

const NUMBER = 8;
const HASH = 32;
const LINE_END = 0x0a;

/**
 * Each fact is its number (8 bytes), its leaf hash (32), and the key of a ledger row with a line end. (With convert_to
 * instead of textsend, reading takes a tenth longer.)
 */
const leaves = (kind: string, where: string) => {
  const key = kind === ROWS ? `concat_ws(E'\\t', f.posted_month, f.partner_id, f.currency, f.arrangement)` : `''`;
  const end = `textsend(${key} || E'\\n')`;
  const leaf = leafOf(LINES.get(kind) ?? '');
  return selectFacts(kind, `int8send(f.${numberOf(kind)}) || ${leaf} || ${end} AS leaf`, where);
};

async function readHashes(tx: Transaction, facts: readonly string[], { onFact, onRow }: TakeLeaves) {
  if (facts.length === 0) return;
  // The planner underestimates the cost of hashing. Without this setting, PostgreSQL uses one process, and a million
  // rows take 3.1 s instead of 1.8 s.
  await execute(tx, `SET LOCAL parallel_tuple_cost TO 0.001`);
  let rest: Buffer = Buffer.alloc(0);
  await copyJoined(tx, aggregated(`leaf, ''::bytea`, facts), (piece) => {
    const content = rest.length > 0 ? Buffer.concat([rest, piece]) : piece;
    let at = 0;
    for (;;) {
      const from = at + NUMBER;
      const key = from + HASH;
      const end = content.indexOf(LINE_END, key);
      if (end < 0) break;
      const number = content.readInt32BE(at) * 2 ** 32 + content.readUInt32BE(at + 4);
      if (end === key) onFact(number, content, from, key);
      else onRow(number, content, from, key, content.toString('latin1', key, end));
      at = end + 1;
    }
    rest = Buffer.from(content.subarray(at));
  });
  await execute(tx, `SET LOCAL parallel_tuple_cost TO DEFAULT`);
}

/** Reads the leaf hashes of a range in order. */
export async function readLeaves(tx: Transaction, range: NumberRange, take: TakeLeaves) {
  for (const part of partsOf(range)) {
    const kinds = [ROWS, ...(await filledKinds(tx, part))];
    const facts = kinds.map((kind) => leaves(kind, numbered(kind, part)));
    await readHashes(tx, facts, take);
  }
}

/** Reads the leaf hashes of a range without ledger rows. */
export async function readFactLeaves(tx: Transaction, range: NumberRange, onFact: TakeLeaf) {
  const facts = (await filledKinds(tx, range)).map((kind) => leaves(kind, numbered(kind, range)));
  await readHashes(tx, facts, { onFact, onRow: onFact });
}

/** The posting months after `after`, up to `to`. */
export interface PostedMonths {
  readonly after: string;
  readonly to: string;
}

/**
 * Reads the leaf hashes of the rows that are posted to any of these months, in the order of the log. If a range is
 * given, reads only its rows.
 */
export async function readRowLeaves(
  tx: Transaction,
  { months, range }: Readonly<{ months: readonly PostedMonths[]; range?: NumberRange }>,
  onRow: TakeLeaves['onRow'],
) {
  const posted = months
    .map(({ after, to }) => `f.posted_month > '${after}' AND f.posted_month <= '${to}'`)
    .join(' OR ');
  const where = range === undefined ? posted : `(${posted}) AND ${numbered(ROWS, range)}`;
  await readHashes(tx, [leaves(ROWS, where)], { onFact: () => {}, onRow });
}

/** Reads the lines of the rows that these months and partners have, each with its line end, in no order. */
export const copyRowLines = (
  tx: Transaction,
  { after, to }: PostedMonths,
  { from, last }: Readonly<{ from: string; last: string }>,
  take: (piece: Buffer) => Promise<void> | void,
) =>
  copyJoined(
    tx,
    aggregated(`line, ''`, [
      selectFacts(
        ROWS,
        `${LINES.get(ROWS)} || E'\n' AS line`,
        `f.posted_month > '${after}' AND f.posted_month <= '${to}' AND f.partner_id BETWEEN '${from}' AND '${last}'`,
      ),
    ]),
    take,
  );

/** The facts in which a close states the totals of a partner's rows: the number and the line of each fact. */
export const readMonthPartnerLines = querying<
  Readonly<{ number: number; line: string; currency: string; arrangement: string }>,
  { month: string; partnerId: string }
>(`
  SELECT f.log_no AS number, ${LINES.get('month_partners')} AS line, f.currency, f.arrangement FROM month_partners f
  WHERE f.month = :month AND f.partner_id = :partnerId ORDER BY f.log_no`);

/** Reads the lines of a partner's rows of a month, in the order of the log, by currency and arrangement. */
export async function readPartnerLines(
  tx: Transaction,
  { after, to }: PostedMonths,
  partnerId: string,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const rows = await query<{ billed_as: string; line: string }>(
    tx,
    `SELECT currency || ' ' || arrangement AS billed_as, ${LINES.get(ROWS)} AS line FROM ledger_rows f
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
