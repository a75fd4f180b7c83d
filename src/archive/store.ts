/**
 * What a cold store does with the rows of archived months, outside the database: it keeps, proves and reads them. Each
 * month has a statement, a text that proves what its close stated (docs/auditors.md).
 */
import { hash } from 'node:crypto';
import { basename } from 'node:path';
import { Refusal, reasonOf } from '#errors/refusals';
import { LOG_FORMS } from '#log/forms';
import { LeafRange } from '#log/tree';
import { Amount, sumsOf } from '#money';
import { Month } from '#month';
import { ArchivedFile, Stated, StoredFile } from './archive.sql.ts';

export const COLUMNS = LOG_FORMS.find(({ kind }) => kind === 'ledger_rows')?.columns ?? [];
/** The columns of a line of `copy`. */
export const LINE_COLUMNS: readonly string[] = ['entry_id', ...COLUMNS.map(({ name }) => name)];

/** The fields of a line, as the log and COPY write them, in the SQL of every store. */
export const FIELDS = COLUMNS.map(({ name, nullable }) =>
  nullable ? `coalesce(replace(${name}, '\\', '\\\\'), '\\N')` : name,
).join(', ');

export const SUMS = ['spot_price', 'partner_cut', 'invoice_amount']
  .map((name) => `rtrim(rtrim(sum(${name}::DECIMAL(38, 4))::VARCHAR, '0'), '.')`)
  .join(', ');

export const text = (value: string) => `'${value.replaceAll("'", "''")}'`;
export const texts = (values: readonly string[]) => values.map(text).join(', ');

export type Take = (piece: Buffer) => Promise<void> | void;
export type Fill = (take: Take) => Promise<void>;

/** All rows of a month of some partners. `copy` passes their lines, each with its line end, in no order. */
export type Part = Readonly<{ from: string; last: string; entries: number; copy: Fill }>;

/** Files of a store that are open for reading. Queries are SQL that DuckDB and PostgreSQL both run. */
export interface Reading {
  /** What follows FROM: all rows of the files, with the archived month as `billed`. */
  readonly rows: string;
  readonly leaf: string;
  /** The functions that make an array of rows, and a JSON object. */
  readonly json: readonly [array: string, object: string];
  /** Keeps lines of a partner and an id while the files are open. Returns what follows FROM. */
  readonly list: (fill: Fill) => Promise<string>;
  readonly query: (sql: string) => Promise<readonly (readonly unknown[])[]>;
  /** The lines of the rows of a condition, in pieces: the values of LINE_COLUMNS in the text format of COPY. */
  readonly copy: (where: string) => AsyncGenerator<Buffer>;
}

/** The only partners whose rows are read, and what the closes stated of them. If `counted`, only numbers are compared. */
export type Scope = Readonly<{
  partnerIds?: readonly string[] | undefined;
  stated: readonly Stated[];
  counted?: true;
}>;

export type Named = Pick<StoredFile, 'month' | 'name'>;

export interface Store {
  /** Whether the store has ever been written to. Refuses a store that cannot be read here. */
  readonly isThere: () => Promise<boolean>;
  /**
   * Writes the rows of a month, and its statement, which names the files. Safe to repeat: the same rows make the same
   * files. Another file of the same name is never replaced.
   */
  readonly write: (
    month: Month,
    parts: readonly Part[],
    stateOf: (files: readonly ArchivedFile[]) => Promise<string>,
  ) => Promise<void>;
  /** Reads a month back, and compares it with its statement. */
  readonly prove: (month: Month) => Promise<Proof>;
  /** The files and statements that are missing or cut, as far as this is known without reading all of them. */
  readonly lost: (files: readonly StoredFile[], scope: Scope) => Promise<readonly Named[]>;
  /** Opens files that are what was archived. */
  readonly reading: <Result>(
    files: readonly StoredFile[],
    scope: Scope,
    work: (reading: Reading) => Promise<Result>,
  ) => Promise<Result>;
}

/** Thrown if a store cannot be read or written, for a reason that a person can mend. */
export class StoreError extends Error {}

/** A month or a pack: its checkpoint in three lines, what is wrong, and what is not proved. */
export type Proof = Readonly<{
  path: string;
  months: string;
  checkpoint?: string;
  /** The SHA-256 of the statement. */
  statement?: string;
  rows?: number;
  totals?: Readonly<Record<string, { readonly invoiceAmount: string }>>;
  files: readonly ArchivedFile[];
  wrong: readonly string[];
  open: readonly string[];
}>;

export const unproved = (path: string, ...wrong: readonly string[]): Proof => ({
  ...{ path, months: basename(path, '.statement'), files: [], wrong, open: [] },
});

/** What is wrong with files if a close stated these partners. */
type FaultsOf = (files: readonly ArchivedFile[], stated: readonly string[]) => Promise<readonly string[]>;

/** Proves the rows of a month by its statement. This is the only description of the proof. */
export const proveStatement = (path: string, text: Promise<string>, faultsOf: FaultsOf): Promise<Proof> =>
  proved(path, text, faultsOf).catch((error: unknown) => {
    if (error instanceof Refusal) throw error;
    return unproved(path, `${basename(path)} does not prove its rows: ${reasonOf(error)}`);
  });

async function proved(path: string, text: Promise<string>, faultsOf: FaultsOf): Promise<Proof> {
  const months = basename(path, '.statement');
  const statement = await text;
  const [head = '', edge, lines, named] = statement.split('\n\n');
  const split = (part = '') => part.split('\n').filter(Boolean);
  const facts = split(lines);
  if (!RegExp(`^closed_months\\t\\d+\\t${months}\\t`).test(facts[0] ?? '')) throw new Error('it states another close');
  // The facts are the last leaves of the checkpoint.
  const [, size, root] = split(head);
  const subtrees = Buffer.concat(split(edge).map((each) => Buffer.from(each, 'base64')));
  const tree = LeafRange.read(0, Number(size) - facts.length, subtrees);
  for (const line of facts) tree.add(hash('sha256', `\0${line}`, 'buffer'));
  if (tree.root().toString('base64') !== root) throw new Error('its facts do not give the root of its checkpoint');
  const partners = facts.filter((line) => line.startsWith('month_partners')).map((line) => line.split('\t').slice(3));
  const totals = sumsOf(partners.map(([, currency = '', , , , , amount = '']) => Amount.of(amount, currency)));
  const files = split(named).map((line) => JSON.parse(line) as ArchivedFile);
  const stated = partners.map((columns) => columns.join(' '));
  return {
    ...{
      path,
      months,
      checkpoint: `${head}\n`,
      files,
      open: [],
      wrong: await faultsOf(files, stated),
    },
    statement: hash('sha256', statement),
    rows: partners.reduce((sum, [, , , entries]) => sum + Number(entries), 0),
    totals: Object.fromEntries(totals.map((sum) => [sum.currency, { invoiceAmount: sum.toString() }])),
  };
}

/** Compares the totals and roots of partners that were found with those that the close stated. */
export function otherTotals(found: readonly string[], stated: readonly string[]) {
  const [are, were] = [new Set(found), new Set(stated)];
  if (are.size !== found.length) return ['the store has a partner twice'];
  return [
    ...found.filter((each) => !were.has(each)).map((each) => `the store has ${each}`),
    ...stated.filter((each) => !are.has(each)).map((each) => `the close stated ${each}`),
  ];
}

/** Compares the checkpoint of a month with the three lines of those that are held elsewhere. */
export function compareHeld(proof: Proof, held: readonly string[]) {
  const { checkpoint, wrong } = proof;
  if (checkpoint === undefined) return proof;
  const [origin, size] = checkpoint.split('\n');
  const own = held.filter((each) => each.startsWith(`${origin}\n${size}\n`));
  const isOther = own.some((each) => each !== checkpoint);
  return {
    ...proof,
    wrong: isOther ? [...wrong, `the held checkpoint of ${size} facts is another`] : wrong,
    open: own.length > 0 ? [] : [`no held checkpoint has ${size} facts`],
  };
}
