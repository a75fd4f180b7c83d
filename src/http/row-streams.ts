/**
 * Streams the rows of a document as CSV through a database cursor. Each stream holds a connection until the client has
 * read it, so only a few run at once, slow clients are cut off, and a payment link opens one at a time. Refusal:
 * rows_busy.
 */
import { PassThrough, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { FastifyBaseLogger } from 'fastify';
import { needRows } from '#archive/rows';
import { Database } from '#database/database';
import { readDocumentRows, readScopeOf } from '#delivery/documents.sql';
import { refuse } from '#errors/refusals';

/** The server has 16 connections. One stream is reserved for callers who have more than a link. */
const MOST_AT_ONCE = 4;
const MOST_BY_LINK = 3;
/** A batch has about 180 kB, so a client must read 18 kB a second. */
const LONGEST_BATCH_MS = 10_000;
const LONGEST_MS = 15 * 60_000;
const RETRY_SECONDS = 10;

type RowReader = 'partner' | 'link';

export class RowStreams {
  private readonly database: Database;
  private readonly log: FastifyBaseLogger;
  private readonly running = new Set<Readonly<{ documentId: number; by: RowReader }>>();

  constructor(database: Database, log: FastifyBaseLogger) {
    this.database = database;
    this.log = log;
  }

  /** If reading fails midway, the stream and the connection end with an error. */
  open(documentId: number, by: RowReader): Readable {
    const download = { documentId, by };
    this.refuseTooMany(download);
    this.running.add(download);
    const out = new PassThrough();
    const slow = new AbortController();
    const signal = AbortSignal.any([slow.signal, AbortSignal.timeout(LONGEST_MS)]);
    this.database
      .reading(async (tx) => {
        await needRows(tx, await readScopeOf(tx, { documentIds: [documentId] }));
        const parts = inTime(readDocumentRows(tx, documentId), slow);
        // One batch ahead of the client instead of sixteen, the default.
        return pipeline(Readable.from(parts, { highWaterMark: 1 }), out, { signal });
      })
      .catch((error: unknown) => {
        this.log.warn({ err: error }, 'the rows of a document were not sent completely');
        out.destroy(error as Error);
      });
    // The end of the transaction would be too late: a client sees the stream end earlier, and may then open the next
    // one.
    out.once('close', () => this.running.delete(download));
    return out;
  }

  private refuseTooMany({ documentId, by }: { documentId: number; by: RowReader }) {
    const byLink = [...this.running].filter((each) => each.by === 'link');
    const tooMany =
      this.running.size >= MOST_AT_ONCE ||
      (by === 'link' && (byLink.length >= MOST_BY_LINK || byLink.some((each) => each.documentId === documentId)));
    if (tooMany) throw refuse('rows_busy', { retry_after: RETRY_SECONDS });
  }
}

async function* inTime(parts: AsyncIterable<string>, slow: AbortController): AsyncGenerator<string> {
  for await (const part of parts) {
    const late = setTimeout(() => slow.abort(new Error('the client was too slow')), LONGEST_BATCH_MS);
    try {
      yield part;
    } finally {
      clearTimeout(late);
    }
  }
}
