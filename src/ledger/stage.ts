/** COPY writes all rows, good and bad, in file order into a temporary table of this transaction. */

import { once } from 'node:events';
import { finished } from 'node:stream/promises';
import { from as copyFrom } from 'pg-copy-streams';
import { execute, raiseWorkMemory, Transaction } from '#database/transaction';
import { IDENTIFIER } from '#partners/file';
import { Likeness, likenessOf } from './alike.ts';
import { SourceRecord } from './read.ts';
import { RowProblem } from './row.ts';

export async function createStaging(tx: Transaction) {
  // A transaction may import more than once.
  await execute(
    tx,
    'DROP TABLE IF EXISTS pg_temp.staged, pg_temp.findings, pg_temp.doubles, pg_temp.grounds, pg_temp.sellers, pg_temp.related, pg_temp.alike, pg_temp.spans',
  );
  // The work memory is enough to join a million rows by hash. A larger import spills to disk.
  await raiseWorkMemory(tx);
  await execute(
    tx,
    `CREATE TEMPORARY TABLE staged (
       seq bigint NOT NULL, file integer NOT NULL, line bigint NOT NULL,
       kind text COLLATE "C", partner_id text COLLATE "C", quote_id text COLLATE "C", requote_id text COLLATE "C",
       reversal_id text COLLATE "C", enrollment_id text COLLATE "C", policy_id text COLLATE "C", currency text COLLATE "C",
       accepted_at timestamptz, spot_price numeric, partner_cut numeric, invoice_amount numeric,
       order_reference text COLLATE "C", cover_from date, cover_to date,
       field text, code text, reason text,
       raw text, id_hash integer, enrollment_hash integer, order_hash integer, alike boolean,
       own_id text COLLATE "C" GENERATED ALWAYS AS (coalesce(reversal_id, requote_id, quote_id)) STORED
     ) ON COMMIT DROP`,
  );
  // A row has at most one finding. Duplicates and held rows are findings too, but only other findings are errors.
  // Without the index, 50,000 duplicates took 14 s.
  await execute(
    tx,
    `CREATE TEMPORARY TABLE findings (seq bigint PRIMARY KEY, field text, code text NOT NULL, reason text)
     ON COMMIT DROP`,
  );
  await execute(
    tx,
    `CREATE TEMPORARY TABLE doubles (
       seq bigint PRIMARY KEY, sign text NOT NULL, repeats text COLLATE "C" NOT NULL, repeats_seq bigint)
     ON COMMIT DROP`,
  );
}

const COLUMNS = `seq, file, line, kind, partner_id, quote_id, requote_id, reversal_id, enrollment_id, policy_id, currency,
  accepted_at, spot_price, partner_cut, invoice_amount, order_reference, cover_from, cover_to, field, code, reason,
  raw, id_hash, enrollment_hash, order_hash, alike`;

const CHUNK = 128 * 1024;

export type StagedCounts = Readonly<{
  rows: number;
  bad: number;
  /** Whether a spreadsheet writes some of the own ids with an exponent, or has done so. */
  spreadsheet: boolean;
}>;

// Spreadsheets write numbers of twelve or more digits with an exponent.
const SPREADSHEET = /^\d+(\.\d+)?[eE]\d+$|^\d{12}/;

type Stager = Readonly<{
  add: (file: number, record: SourceRecord, problem: RowProblem | undefined) => void;
  /** Waits if the server is slower than the reader. */
  drained: () => Promise<void>;
  finish: () => Promise<StagedCounts>;
  /** Ends the COPY, so that the transaction can be rolled back. */
  abandon: () => Promise<void>;
}>;

/**
 * Opens the COPY. `rejected` returns a record's text for the file of rejects. Callers pass `rejected` only if that file
 * is written, because the text doubles the number of staged bytes.
 */
export async function openStager(
  tx: Transaction,
  rejected: ((record: SourceRecord) => string) | undefined,
): Promise<Stager> {
  const stream = tx.client.query(copyFrom(`COPY staged (${COLUMNS}) FROM STDIN`));
  let failure: unknown;
  const ended = finished(stream);
  ended.catch((error) => {
    failure = error; // The next write or wait throws this error.
  });
  let seq = 0;
  let bad = 0;
  let spreadsheet = false;
  const likeness = likenessOf();
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
      else
        spreadsheet ||= SPREADSHEET.test(record.texts.reversal_id || record.texts.requote_id || record.texts.quote_id);
      pending += stagedLine(seq, file, record, problem ?? likeness(record.texts), rejected?.(record));
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
      await execute(tx, 'ANALYZE staged (seq, kind, partner_id, quote_id, policy_id, own_id, code)');
      return { rows: seq, bad, spreadsheet };
    },
    async abandon() {
      if (failure === undefined) stream.destroy();
      await ended.catch(() => {});
    },
  };
}

/** One line of COPY's text format. A bad row keeps only its ids, so that later rows can refer to it. */
function stagedLine(
  seq: number,
  file: number,
  { line, texts }: SourceRecord,
  found: RowProblem | Likeness,
  rejected: string | undefined,
) {
  const place = `${seq}\t${file}\t${line}\t`;
  const raw = rejected === undefined ? '\\N' : escaped(rejected);
  if ('alike' in found) {
    const { id, enrollment, order, alike } = found;
    // Only the order's reference may contain a character that COPY must escape.
    return (
      `${place}${texts.kind}\t${texts.partner_id}\t${texts.quote_id}\t${texts.requote_id || '\\N'}\t` +
      `${texts.reversal_id || '\\N'}\t${texts.enrollment_id || '\\N'}\t${texts.policy_id}\t${texts.currency}\t` +
      `${texts.accepted_at}\t${amount(texts.spotPrice)}\t${amount(texts.partnerCut)}\t${amount(texts.invoiceAmount)}\t` +
      `${texts.order_reference === '' ? '\\N' : escaped(texts.order_reference)}\t${texts.cover_from || '\\N'}\t${texts.cover_to || '\\N'}\t` +
      `\\N\t\\N\t\\N\t${raw}\t${id}\t${enrollment ?? '\\N'}\t${order ?? '\\N'}\t${alike}\n`
    );
  }
  const id = (text: string) => (IDENTIFIER.test(text) ? text : '\\N');
  const ids = [texts.kind, texts.partner_id, texts.quote_id, texts.requote_id, texts.reversal_id].map(id).join('\t');
  const problem = [found.field, found.code, found.reason].map(escaped).join('\t');
  return `${place}${ids}${'\t\\N'.repeat(10)}\t${problem}\t${raw}${'\t\\N'.repeat(4)}\n`;
}

/**
 * PostgreSQL accepts at most 16383 decimals. A good amount may have more decimals, but they are zeros after the fourth.
 */
function amount(text: string) {
  return text.length > 1000 ? text.replace(/(\.\d{4})0+$/, '$1') : text;
}

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r', '\0': '' };

/** Escapes a text for COPY. NUL is dropped, because PostgreSQL cannot store NUL. */
function escaped(text: string) {
  return text.replace(/[\\\t\n\r\0]/g, (character) => ESCAPES[character] as string);
}
