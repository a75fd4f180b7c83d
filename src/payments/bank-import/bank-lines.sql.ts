import { execute, executing, query, querying, Transaction } from '#database/transaction';
import { BankLine } from '#payments/bank/statement';
import { PaymentContext } from '#payments/context';
import { inserting } from '#payments/insert.sql';

/** Returns undefined if the file was never imported. */
export async function readImportedAt(tx: Transaction, sha256: string) {
  const [file] = await query<{ recorded_at: string }>(tx, `SELECT recorded_at FROM bank_files WHERE sha256 = :sha256`, {
    sha256,
  });
  return file?.recorded_at;
}

type NewBankFile = Readonly<{
  sha256: string;
  name: string;
  format: string;
  bytes: number;
  statements: readonly NewStatement[];
}>;

export type NewStatement = Readonly<{
  position: number;
  account: string;
  currency: string;
  reference: string;
  opening: string | null;
  closing: string | null;
  closed_on: string | null;
  credits: string;
  debits: string;
  lines: number;
}>;

/** Records a file with its statements, to which lines are added then. */
export async function insertBankFile(tx: Transaction, context: PaymentContext, file: NewBankFile) {
  const { now, eventId } = context;
  const { sha256, name, format, bytes, statements } = file;
  await execute(
    tx,
    `INSERT INTO bank_files (sha256, name, format, bytes, recorded_at, event_id)
     VALUES (:sha256, :name, :format, :bytes, :now::timestamptz, :eventId::bigint)`,
    { sha256, name, format, bytes, now, eventId },
  );
  await execute(
    tx,
    `INSERT INTO bank_statements (
       bank_file_id, position, account, currency, reference, opening, closing, closed_on, credits, debits, lines)
     SELECT f.bank_file_id, r.position, r.account, r.currency, r.reference, r.opening, r.closing, r.closed_on,
            r.credits, r.debits, r.lines
     FROM json_populate_recordset(NULL::bank_statements, :rows::json) AS r JOIN bank_files f ON f.sha256 = :sha256
     ORDER BY r.position`,
    { rows: statements, sha256 },
  );
}

/** Describes the lines, the payments and what joins them to the planner. */
export const analyzeImport = executing('SELECT analyze_bank_import()');

type NewStatementLine = Readonly<{
  line: BankLine;
  identity: string;
  account: string;
  /** The numbers of the statement in the file, and of the line in the statement. */
  statement: number;
  place: number;
}>;

/**
 * Records lines of the statements of a file. Returns the ids of the new lines by account and identity (`lineKey`). A line
 * that an earlier file contains is not new: only its place on the new statement is recorded.
 */
export async function insertBankLines(tx: Transaction, sha256: string, lines: readonly NewStatementLine[]) {
  const inserted = await query<{ bank_line_id: number; account: string; identity: string }>(
    tx,
    `INSERT INTO bank_lines (
       account, identity, currency, direction, amount, bank_booked_on, value_on, bank_reference, "references", text,
       payer_name, payer_account, type, is_reversal, return_code, raw)
     SELECT account, identity, currency, direction, amount, bank_booked_on, value_on, bank_reference, "references",
            text, payer_name, payer_account, type, is_reversal, return_code, raw
     -- A known line must not even be tried: its texts would be kept, and no line would name them.
     FROM (SELECT DISTINCT ON (account, identity) *
           FROM json_populate_recordset(NULL::bank_lines, :rows::json) WITH ORDINALITY
           ORDER BY account, identity, ordinality) AS r
     WHERE NOT EXISTS (SELECT FROM bank_lines l WHERE l.account = r.account AND l.identity = r.identity)
     ORDER BY ordinality
     ON CONFLICT ON CONSTRAINT bank_line_once DO NOTHING
     RETURNING bank_line_id, account, identity`,
    { rows: lines.map(lineRow) },
  );
  await execute(
    tx,
    `INSERT INTO bank_statement_lines (bank_statement_id, position, bank_line_id, account, currency)
     SELECT s.bank_statement_id, r.place, l.bank_line_id, l.account, l.currency
     FROM json_to_recordset(:rows::json) AS r (statement integer, place integer, account text, identity text)
     JOIN bank_files f ON f.sha256 = :sha256
     JOIN bank_statements s ON s.bank_file_id = f.bank_file_id AND s.position = r.statement
     JOIN bank_lines l ON l.account = r.account AND l.identity = r.identity`,
    { rows: lines.map(({ line: _, ...place }) => place), sha256 },
  );
  return new Map(inserted.map((row) => [lineKey(row.account, row.identity), row.bank_line_id]));
}

function lineRow({
  line: { booked_on, reversal, amount, references, particulars = [], ...line },
  ...of
}: NewStatementLine) {
  return {
    references: [...references, ...particulars.map(({ field, text }) => ({ field, states: text }))],
    ...{ ...line, ...of, currency: amount.currency, amount: amount.toString() },
    ...{ bank_booked_on: booked_on, is_reversal: reversal },
  };
}

/** Recorded lines. Each may be the same as a line. */
export type EqualSet<Row> = Readonly<{
  /** Whether the line is in another file than these. Otherwise, it is on another account with the same reference. */
  in_other_file: boolean;
  rows: readonly Row[];
}>;

/** By the ids of lines. Equal lines share a set: a day may have thousands of them. */
export type EqualSets<Row> = ReadonlyMap<number, readonly EqualSet<Row>[]>;

/** A recorded line that a line of a file may report again. */
export type EqualLineRow = Readonly<{
  bank_line_id: number;
  account: string;
  bank_reference: string | null;
  /** The name of the first file with the line. */
  file: string;
  /** The outcome is null if the earlier line is in the same file and is not decided yet. */
  outcome: NewOutcome['outcome'] | null;
  /**
   * The payment that the earlier line reported. If that payment was reversed as a duplicate of another payment: this
   * other payment.
   */
  payment_id: number | null;
  sent_back: boolean;
  /** The amount of the earlier line if the bank states the same line again with another amount. Otherwise null. */
  corrected: string | null;
}>;

/** The name of the first file with a line. */
export const fileOf = (line: string) => `(SELECT regexp_replace(f.name, '^.*[/\\\\]', '')
              FROM bank_statement_lines x JOIN bank_statements s USING (bank_statement_id)
              JOIN bank_files f USING (bank_file_id)
              WHERE x.bank_line_id = ${line}.bank_line_id ORDER BY f.bank_file_id LIMIT 1)`;

/** What the bank wrote of a line, in a line of text. */
export const textOf = (line: string) =>
  `concat_ws(' · ', nullif(personal(${line}.text), ''), personal(${line}.payer_name), ${line}.bank_reference)`;

/** The identity of a line without its amount (lineIdentities in bank/statement.ts). */
const sameButAmount = (line: string) => `regexp_replace(${line}.identity, '\\|[0-9.]+(\\|[0-9]+)?$', '')`;

const readSets = querying<
  { line_ids: number[]; equal_ids: number[]; in_other_file: boolean },
  { lineIds: readonly number[] }
>(`
  SELECT to_json(line_ids) AS line_ids, to_json(equal_ids) AS equal_ids, in_other_file
  FROM equal_bank_lines(:lineIds::bigint[])`);

/** Reads the lines that may be the same as the given lines (SQL function equal_bank_lines). */
export async function readEqualSets<Row extends { readonly bank_line_id: number }>(
  tx: Transaction,
  lineIds: readonly number[],
  readRows: (tx: Transaction, given: { lineIds: readonly number[] }) => Promise<Row[]>,
  isLeftOut: (row: Row, inOtherFile: boolean) => boolean = () => false,
) {
  const sets = await readSets(tx, { lineIds });
  const equalIds = new Set<number>();
  for (const { equal_ids } of sets) for (const id of equal_ids) equalIds.add(id);
  const rowOf = new Map((await readRows(tx, { lineIds: [...equalIds] })).map((row) => [row.bank_line_id, row]));
  const found = new Map<number, EqualSet<Row>[]>();
  for (const { line_ids, equal_ids, in_other_file } of sets) {
    const rows = equal_ids.flatMap((id) => rowOf.get(id) ?? []).filter((row) => !isLeftOut(row, in_other_file));
    if (rows.length === 0) continue;
    const set = { in_other_file, rows };
    for (const id of line_ids) found.set(id, [...(found.get(id) ?? []), set]);
  }
  return found;
}

/** `is_mistake`: its payment was reversed as a mistake, or as a duplicate. */
type EqualRow = EqualLineRow & { readonly is_mistake: boolean };

const readEqualRows = querying<EqualRow, { lineIds: readonly number[] }>(`
  SELECT t.bank_line_id, t.account, t.bank_reference, o.outcome, b.payment_id,
         coalesce(NOT b.stays, false) AS sent_back, ${fileOf('t')} AS file, NULL AS corrected,
         EXISTS (SELECT FROM live_payment_reversals r
                 WHERE r.payment_id = b.payment_id AND r.kind IN ('mistake', 'duplicate')) AS is_mistake
  FROM unnest(:lineIds::bigint[]) AS i (bank_line_id) JOIN bank_lines t USING (bank_line_id)
  LEFT JOIN bank_line_outcomes o ON o.bank_line_id = t.bank_line_id
  LEFT JOIN LATERAL (
    SELECT r.duplicate_of FROM live_payment_reversals r WHERE r.payment_id = o.payment_id AND r.kind = 'duplicate'
    LIMIT 1) AS d ON true
  LEFT JOIN payment_balances b ON b.payment_id = coalesce(d.duplicate_of, o.payment_id)`);

const readCorrectedRows = querying<EqualLineRow & { readonly corrects: number }, { lineIds: readonly number[] }>(`
  SELECT l.bank_line_id AS corrects, t.bank_line_id, t.account, t.bank_reference, o.outcome, o.payment_id,
         false AS sent_back, ${fileOf('t')} AS file, round(t.amount, minor_digits(t.currency))::text AS corrected
  FROM bank_lines l JOIN bank_lines t USING (account, currency, direction, bank_booked_on)
  JOIN bank_line_outcomes o ON o.bank_line_id = t.bank_line_id
  LEFT JOIN payment_balances b ON b.payment_id = o.payment_id
  WHERE l.bank_line_id = ANY (:lineIds::bigint[]) AND t.amount <> l.amount AND b.stays IS NOT FALSE
    AND ${sameButAmount('t')} = ${sameButAmount('l')}
    AND NOT EXISTS (
      SELECT FROM bank_statement_lines x JOIN bank_statements s USING (bank_statement_id)
      JOIN bank_statements n ON n.bank_file_id = s.bank_file_id
      JOIN bank_statement_lines y ON y.bank_statement_id = n.bank_statement_id
      WHERE x.bank_line_id = t.bank_line_id AND y.bank_line_id = l.bank_line_id)
    AND (l.bank_reference IS NOT NULL OR EXISTS (
      SELECT FROM bank_statement_lines x JOIN bank_statements s USING (bank_statement_id)
      JOIN bank_statements n ON (n.account, n.currency, n.closed_on) = (s.account, s.currency, s.closed_on)
      JOIN bank_statement_lines y ON y.bank_statement_id = n.bank_statement_id
      WHERE x.bank_line_id = t.bank_line_id AND y.bank_line_id = l.bank_line_id
        AND (s.reference = nullif(n.reference, '') OR s.opening = n.opening)))
  ORDER BY t.bank_line_id`);

/**
 * Reads the lines that the given lines may report again, or correct: the bank issues a statement again, in which a line
 * has the same reference and day but another amount. Without a reference, the whole statement must be the same. Lines
 * whose payment was reversed as a mistake are left out.
 */
export async function readEqualLines(tx: Transaction, lineIds: readonly number[]): Promise<EqualSets<EqualLineRow>> {
  const isLeftOut = ({ sent_back, is_mistake }: EqualRow, inOtherFile: boolean) =>
    sent_back && (!inOtherFile || is_mistake);
  const sets = await readEqualSets(tx, lineIds, readEqualRows, isLeftOut);
  const found = new Map<number, readonly EqualSet<EqualLineRow>[]>(sets);
  for (const { corrects, ...row } of await readCorrectedRows(tx, { lineIds })) {
    found.set(corrects, [...(found.get(corrects) ?? []), { in_other_file: true, rows: [row] }]);
  }
  return found;
}

export const lineKey = (account: string, identity: string) => `${account} ${identity}`;

export type NewOutcome = Readonly<{
  bank_line_id: number;
  outcome: 'payment' | 'payout' | 'return' | 'refund' | 'ignored';
  payment_id?: number;
  payout_id?: number;
  payment_reversal_id?: number;
  needs_review?: boolean;
  reason: string;
}>;

export const insertOutcomes = inserting<NewOutcome>(
  `INSERT INTO bank_line_outcomes (
     bank_line_id, outcome, payment_id, payout_id, payment_reversal_id, needs_review, reason, recorded_at, event_id)
   SELECT bank_line_id, outcome, payment_id, payout_id, payment_reversal_id, coalesce(needs_review, false), reason,
          :now::timestamptz, :eventId::bigint
   FROM json_populate_recordset(NULL::bank_line_outcomes, :rows::json)`,
);
