/** What a cold store does with the rows of archived months, outside the database: it keeps, proves and reads them. */
import { LOG_FORMS } from '../log/forms.ts';
import type { Month } from '../month.ts';
import type { ArchivedFile, StoredFile } from './archive.sql.ts';
import type { Proof } from './statement.ts';

/** The columns of a row's line in the log. A store has them as texts, with the number of the row. */
export const COLUMNS = LOG_FORMS.find(({ kind }) => kind === 'ledger_rows')?.columns ?? [];
/** The columns of a line of `copy`. */
export const LINE_COLUMNS: readonly string[] = ['entry_id', ...COLUMNS.map(({ name }) => name)];

/** The fields of a line, as the log and COPY write them, in the SQL of every store. */
export const FIELDS = COLUMNS.map(({ name, nullable }) =>
  nullable ? `coalesce(replace(${name}, '\\', '\\\\'), '\\N')` : name,
).join(', ');

export const AMOUNT = 'DECIMAL(38, 4)';
/** The sum of an amount, as the log writes it. */
export const sumOf = (name: string): string => `rtrim(rtrim(sum(${name}::${AMOUNT})::VARCHAR, '0'), '.')`;

export const SUMS = ['spot_price', 'partner_cut', 'invoice_amount'].map(sumOf).join(', ');

export const text = (value: string): string => `'${value.replaceAll("'", "''")}'`;
export const texts = (values: readonly string[]): string => values.map(text).join(', ');

export type Take = (piece: Buffer) => Promise<void> | void;
export type Fill = (take: Take) => Promise<void>;

/** All rows of a month of some partners. `copy` passes their lines, each with its line end, in no order. */
export type Part = Readonly<{ from: string; last: string; entries: number; copy: Fill }>;

/** Files of a store that are open for reading. Queries are SQL that DuckDB and PostgreSQL both run. */
export interface Reading {
  /** What follows FROM: all rows of the files, with the archived month as `billed`. */
  readonly rows: string;
  /** The leaf of a row as a text. */
  readonly leaf: string;
  /** The functions that make an array of rows, and a JSON object. */
  readonly json: readonly [array: string, object: string];
  /** Keeps lines of a partner and an id while the files are open. Returns what follows FROM. */
  readonly list: (fill: Fill) => Promise<string>;
  readonly query: (sql: string) => Promise<readonly (readonly unknown[])[]>;
  /** The lines of the rows of a condition, in pieces: the values of LINE_COLUMNS in the text format of COPY. */
  readonly copy: (where: string) => AsyncGenerator<Buffer>;
}

export interface Store {
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
  /** The files that are missing or cut, as far as this is known without reading all of them. */
  readonly lost: (files: readonly StoredFile[]) => Promise<readonly string[]>;
  /**
   * Opens files that are what was archived. `partnerIds` are the only partners whose rows are read, and `stated` the
   * numbers of rows that the closes counted: by month and, if partners are given, by partner.
   */
  readonly reading: <Result>(
    files: readonly StoredFile[],
    scope: { readonly partnerIds?: readonly string[] | undefined; readonly stated: () => Promise<readonly string[]> },
    work: (reading: Reading) => Promise<Result>,
  ) => Promise<Result>;
}

/** Thrown if a store cannot be read or written, for a reason that a person can mend. */
export class StoreError extends Error {}
