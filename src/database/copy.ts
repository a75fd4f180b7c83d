/**
 * Reads from the database and writes to it with COPY. Rows stream at the speed at which they are consumed, so memory
 * use stays constant.
 */
import { finished, pipeline } from 'node:stream/promises';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { Transaction } from './transaction.ts';

/** Passes the output of `COPY … TO STDOUT` to `take`, piece by piece. The statement takes no bindings. */
export async function copyOut(tx: Transaction, statement: string, take: (content: Buffer) => Promise<void> | void) {
  const copy = tx.client.query(copyTo(statement));
  let failed = false;
  // This handler is never removed, because a lost connection may emit another error after the error that ended the
  // COPY.
  copy.on('error', () => {
    failed = true;
  });
  try {
    for await (const chunk of copy.iterator({ destroyOnReturn: false })) await take(chunk as Buffer);
  } catch (error) {
    // The connection can be used again only after the rest of the output has been read.
    if (!failed) await finished(copy.resume()).catch(() => {});
    throw error;
  }
}

/** Passes pieces of rows to `COPY … FROM STDIN`. Returns the number of rows that the table got. */
export async function copyIn(tx: Transaction, statement: string, rows: AsyncIterable<Buffer>) {
  const copy = tx.client.query(copyFrom(statement));
  copy.on('error', () => {}); // for the reason given in copyOut
  await pipeline(rows, copy);
  return copy.rowCount;
}

const NEWLINE = 0x0a;

/** Passes whole lines to `take`. An incomplete line at the end of a piece waits for the next piece. */
export function wholeLines(take: (lines: Buffer) => Promise<void> | void): (content: Buffer) => Promise<void> | void {
  let rest: Buffer = Buffer.alloc(0);
  return (content) => {
    const joined = rest.length > 0 ? Buffer.concat([rest, content]) : content;
    const end = joined.lastIndexOf(NEWLINE) + 1;
    rest = Buffer.from(joined.subarray(end));
    return end > 0 ? take(joined.subarray(0, end)) : undefined;
  };
}

/** Counts line ends, which are rows, because COPY's text format escapes line ends inside values. */
export function countLines(content: Buffer) {
  let lines = 0;
  for (let at = content.indexOf(NEWLINE); at >= 0; at = content.indexOf(NEWLINE, at + 1)) lines += 1;
  return lines;
}

const QUOTE = 0x22;

/**
 * Counts the rows of a CSV that arrives in pieces, including the header. A line end inside quotes does not end a row.
 */
export function csvRowCounter(): (content: Buffer) => number {
  let quoted = false;
  return (content) => {
    // Most pieces have no quote.
    if (!quoted && !content.includes(QUOTE)) return countLines(content);
    let rows = 0;
    for (const byte of content) {
      if (byte === QUOTE) quoted = !quoted;
      else if (byte === NEWLINE && !quoted) rows += 1;
    }
    return rows;
  };
}

/** The number of bytes before the first row in COPY's binary format. */
const BINARY_HEADER = 19;
/** The number of bytes before the value of a row with one column. */
const ROW_HEADER = 6;

/**
 * Passes the values of a query's only column to `take`, joined and piece by piece. A query with few large values costs
 * less than one with many small values, because each row is a message of the protocol.
 */
export async function copyJoined(tx: Transaction, select: string, take: (piece: Buffer) => Promise<void> | void) {
  let header: Buffer = Buffer.alloc(0);
  let length = BINARY_HEADER + ROW_HEADER;
  let left = 0;
  await copyOut(tx, `COPY (${select}) TO STDOUT (FORMAT binary)`, async (chunk) => {
    for (let at = 0; at < chunk.length; ) {
      const piece = chunk.subarray(at, at + (left > 0 ? left : length - header.length));
      at += piece.length;
      if (left > 0) {
        left -= piece.length;
        await take(piece);
        continue;
      }
      header = Buffer.concat([header, piece]);
      if (header.length < length) continue;
      left = header.readInt32BE(length - 4);
      header = Buffer.alloc(0);
      length = ROW_HEADER;
    }
  });
}
