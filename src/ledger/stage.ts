/** Staging: rows go by COPY into a table of this transaction only, good and bad alike, in file order. */

import { once } from 'node:events';
import { finished } from 'node:stream/promises';
import { from as copyFrom } from 'pg-copy-streams';
import { connectionOf, execute, type Transaction } from '../database/transaction.ts';
import { IDENTIFIER } from '../partners/file.ts';
import type { SourceRecord } from './read.ts';
import type { RowProblem } from './row.ts';

export async function createStaging(tx: Transaction): Promise<void> {
  // Enough for the hash joins of a million rows; the rest of a larger import goes to disk, not to memory.
  await execute(tx, `SET LOCAL work_mem = '96MB'`);
  await execute(
    tx,
    `CREATE TEMPORARY TABLE staged (
       seq bigint NOT NULL, file integer NOT NULL, line bigint NOT NULL,
       kind text COLLATE "C", partner_id text COLLATE "C", quote_id text COLLATE "C", requote_id text COLLATE "C",
       reversal_id text COLLATE "C", enrollment_id text COLLATE "C", policy_id text COLLATE "C", currency text COLLATE "C",
       accepted_at timestamptz, spot_price numeric, partner_cut numeric, invoice_amount numeric,
       -- Set where the row is bad by itself.
       field text, code text, reason text,
       raw text,
       own_id text COLLATE "C" GENERATED ALWAYS AS (coalesce(reversal_id, requote_id, quote_id)) STORED
     ) ON COMMIT DROP`,
  );
  // What the queries find: a duplicate is not recorded, anything else is reported. One finding a row; without the index
  // a statement that finds thousands while it looks for those there are took 14 s for 50,000 duplicates.
  await execute(
    tx,
    `CREATE TEMPORARY TABLE findings (seq bigint PRIMARY KEY, field text, code text NOT NULL, reason text)
     ON COMMIT DROP`,
  );
}

const COLUMNS = `seq, file, line, kind, partner_id, quote_id, requote_id, reversal_id, enrollment_id, policy_id, currency,
  accepted_at, spot_price, partner_cut, invoice_amount, field, code, reason, raw`;

/** Bytes gathered before they are handed to the connection. */
const CHUNK = 128 * 1024;

export interface Staged {
  readonly rows: number;
  /** Of these, bad by themselves. */
  readonly bad: number;
}

export interface Stager {
  readonly add: (file: number, record: SourceRecord, problem: RowProblem | undefined) => void;
  /** Waits while the server is slower than the reader. To be called between batches. */
  readonly drained: () => Promise<void>;
  readonly finish: () => Promise<Staged>;
  /** Gives the COPY up, so that the connection can undo the transaction. */
  readonly abandon: () => Promise<void>;
}

/** Opens the COPY. Raw records are staged only where rejects are to be written: they double the bytes. */
export async function openStager(tx: Transaction, keepRaw: boolean): Promise<Stager> {
  const connection = await connectionOf(tx);
  const stream = connection.query(copyFrom(`COPY staged (${COLUMNS}) FROM STDIN`));
  let failure: unknown;
  const ended = finished(stream);
  ended.catch((error) => {
    failure = error; // thrown to whoever writes or waits next
  });
  let seq = 0;
  let bad = 0;
  let pending = '';
  let full = false;
  const flush = () => {
    if (failure !== undefined) throw failure;
    full = !stream.write(pending);
    pending = '';
  };
  return {
    add(file, record, problem) {
      seq += 1;
      if (problem !== undefined) bad += 1;
      pending += stagedLine(seq, file, record, problem, keepRaw);
      if (pending.length > CHUNK) flush();
    },
    async drained() {
      if (pending.length > 0) flush();
      if (full) await Promise.race([once(stream, 'drain'), ended]);
    },
    async finish() {
      flush();
      stream.end();
      await ended;
      // What the queries join and filter by.
      await execute(tx, 'ANALYZE staged (seq, kind, partner_id, quote_id, policy_id, own_id, code)');
      return { rows: seq, bad };
    },
    async abandon() {
      if (failure === undefined) stream.destroy();
      await ended.catch(() => {});
    },
  };
}

/** One line of COPY's text format. Of a bad row only ids are kept, so that rows that follow it find what they name. */
function stagedLine(
  seq: number,
  file: number,
  { line, texts, raw }: SourceRecord,
  problem: RowProblem | undefined,
  keepRaw: boolean,
): string {
  const place = `${seq}\t${file}\t${line}\t`;
  const end = keepRaw ? `${escaped(raw)}\n` : '\\N\n';
  if (problem === undefined) {
    // A good row's texts hold nothing that COPY would read otherwise.
    return (
      `${place}${texts.kind}\t${texts.partner_id}\t${texts.quote_id}\t${texts.requote_id || '\\N'}\t` +
      `${texts.reversal_id || '\\N'}\t${texts.enrollment_id || '\\N'}\t${texts.policy_id}\t${texts.currency}\t` +
      `${texts.accepted_at}\t${amount(texts.spotPrice)}\t${amount(texts.partnerCut)}\t${amount(texts.invoiceAmount)}\t` +
      `\\N\t\\N\t\\N\t${end}`
    );
  }
  const id = (text: string) => (IDENTIFIER.test(text) ? text : '\\N');
  const ids = [texts.kind, texts.partner_id, texts.quote_id, texts.requote_id, texts.reversal_id].map(id).join('\t');
  const found = [problem.field, problem.code, problem.reason].map(escaped).join('\t');
  return `${place}${ids}${'\t\\N'.repeat(7)}\t${found}\t${end}`;
}

/** PostgreSQL reads no more than 16383 decimals. A good amount's may be more, but behind the fourth all are zeros. */
function amount(text: string): string {
  return text.length > 1000 ? text.replace(/(\.\d{4})0+$/, '$1') : text;
}

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r', '\0': '' };

/** Text as COPY's text format wants it. PostgreSQL has no NUL character: it is left out. */
function escaped(text: string): string {
  return text.replace(/[\\\t\n\r\0]/g, (character) => ESCAPES[character] as string);
}
