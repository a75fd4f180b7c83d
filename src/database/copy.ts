/** COPY out of the database: rows stream no faster than they are taken, so that memory stays constant. */
import { finished } from 'node:stream/promises';
import { to as copyTo } from 'pg-copy-streams';
import { connectionOf, type Transaction } from './transaction.ts';

/** Hands over what `COPY … TO STDOUT` sends, piece by piece. The statement takes no bindings. */
export async function copyOut(
  tx: Transaction,
  statement: string,
  take: (content: Buffer) => Promise<void> | void,
): Promise<void> {
  const connection = await connectionOf(tx);
  const copy = connection.query(copyTo(statement));
  let failed = false;
  // For good: a connection that is lost may tell it after the error that ended the copying.
  copy.on('error', () => {
    failed = true;
  });
  try {
    for await (const chunk of copy.iterator({ destroyOnReturn: false })) await take(chunk as Buffer);
  } catch (error) {
    // The connection is of use again only when all that the server sends has been read.
    if (!failed) await finished(copy.resume()).catch(() => {});
    throw error;
  }
}

const NEWLINE = 0x0a;

/** Hands on whole lines: the beginning of a line that a piece ends with waits for the next piece. */
export function wholeLines(take: (lines: Buffer) => Promise<void> | void): (content: Buffer) => Promise<void> | void {
  let rest: Buffer = Buffer.alloc(0);
  return (content) => {
    const joined = rest.length > 0 ? Buffer.concat([rest, content]) : content;
    const end = joined.lastIndexOf(NEWLINE) + 1;
    rest = Buffer.from(joined.subarray(end));
    return end > 0 ? take(joined.subarray(0, end)) : undefined;
  };
}

/** How many lines end in it. COPY's text format escapes the line ends inside of values: a line is a row. */
export function countLines(content: Buffer): number {
  let lines = 0;
  for (let at = content.indexOf(NEWLINE); at >= 0; at = content.indexOf(NEWLINE, at + 1)) lines += 1;
  return lines;
}
