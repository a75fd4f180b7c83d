/** COPY from the database: rows stream no faster than they are consumed, so memory use stays constant. */
import { finished } from 'node:stream/promises';
import { to as copyTo } from 'pg-copy-streams';
import type { Transaction } from './transaction.ts';

/** Passes on what `COPY … TO STDOUT` sends, piece by piece. The statement takes no bindings. */
export async function copyOut(
  tx: Transaction,
  statement: string,
  take: (content: Buffer) => Promise<void> | void,
): Promise<void> {
  const copy = tx.client.query(copyTo(statement));
  let failed = false;
  // This handler stays, because a lost connection may emit another error after the one that ended the copying.
  copy.on('error', () => {
    failed = true;
  });
  try {
    for await (const chunk of copy.iterator({ destroyOnReturn: false })) await take(chunk as Buffer);
  } catch (error) {
    // The connection can be used again only after everything that the server sends has been read.
    if (!failed) await finished(copy.resume()).catch(() => {});
    throw error;
  }
}

const NEWLINE = 0x0a;

/** Passes on whole lines: an incomplete line at the end of a piece waits for the next piece. */
export function wholeLines(take: (lines: Buffer) => Promise<void> | void): (content: Buffer) => Promise<void> | void {
  let rest: Buffer = Buffer.alloc(0);
  return (content) => {
    const joined = rest.length > 0 ? Buffer.concat([rest, content]) : content;
    const end = joined.lastIndexOf(NEWLINE) + 1;
    rest = Buffer.from(joined.subarray(end));
    return end > 0 ? take(joined.subarray(0, end)) : undefined;
  };
}

/**
 * Passes on each line of a COPY without its line end. The line is `content` after the byte at `before`, up to `end`.
 * The byte at `before` may be overwritten, so that a line can be hashed with a prefix in place.
 */
export async function copyLines(
  tx: Transaction,
  statement: string,
  take: (content: Buffer, before: number, end: number) => void,
): Promise<void> {
  // A line may come in many pieces: they are joined once, when its end arrives.
  let pieces: Buffer[] = [Buffer.of(NEWLINE)];
  await copyOut(tx, statement, (chunk) => {
    pieces.push(chunk);
    if (!chunk.includes(NEWLINE)) return;
    const content = Buffer.concat(pieces);
    let before = 0;
    for (let end = content.indexOf(NEWLINE, 1); end > 0; end = content.indexOf(NEWLINE, before + 1)) {
      take(content, before, end);
      before = end;
    }
    pieces = [content.subarray(before)];
  });
}

/** The number of line ends. COPY's text format escapes line ends inside values, so a line is a row. */
export function countLines(content: Buffer): number {
  let lines = 0;
  for (let at = content.indexOf(NEWLINE); at >= 0; at = content.indexOf(NEWLINE, at + 1)) lines += 1;
  return lines;
}

const QUOTE = 0x22;

/**
 * Counts the rows of a CSV that comes in pieces: a line end inside quotes does not end a row. The header counts as a
 * row.
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

/** The bytes before the first row in COPY's binary format. */
const BINARY_HEADER = 19;

/**
 * Runs a COPY in binary format. `read` gets the rows as they come, without the format's header, and returns how many
 * bytes it used. The rest (an incomplete row, or the format's trailer) is passed again with what follows.
 */
export async function copyBinary(tx: Transaction, copy: string, read: (content: Buffer) => number): Promise<void> {
  let rest: Buffer = Buffer.alloc(0);
  let skip = BINARY_HEADER;
  await copyOut(tx, copy, (chunk) => {
    const content = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk;
    if (content.length < skip) {
      rest = content;
      return;
    }
    const rows = content.subarray(skip);
    skip = 0;
    rest = Buffer.from(rows.subarray(read(rows)));
  });
}
