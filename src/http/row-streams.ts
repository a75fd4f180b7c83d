/**
 * The rows that a document bills as CSV, read through a cursor while they are sent. Each keeps a connection of the database
 * as long as its reader reads, so only a few run at once. Refusal: rows_busy.
 */
import { PassThrough, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { FastifyBaseLogger } from 'fastify';
import type { Database } from '../database/database.ts';
import { readDocumentRows } from '../delivery/queries.ts';
import { streamRowsCsv } from '../delivery/rows.ts';
import { refuse } from '../errors/refusals.ts';

/** Of the server's 16 connections. */
const MOST_AT_ONCE = 4;
/** A reader that needs longer is cut off; one that reads nothing is cut off by the server's own timeout. */
const LONGEST_MS = 5 * 60_000;
const RETRY_SECONDS = 10;

export class RowStreams {
  private readonly database: Database;
  private readonly log: FastifyBaseLogger;
  private running = 0;

  constructor(database: Database, log: FastifyBaseLogger) {
    this.database = database;
    this.log = log;
  }

  /** The stream ends with an error, and the connection with it, if reading fails on the way. */
  open(documentId: number): Readable {
    if (this.running >= MOST_AT_ONCE) throw refuse('rows_busy', { retry_after: RETRY_SECONDS });
    this.running += 1;
    const out = new PassThrough();
    const signal = AbortSignal.timeout(LONGEST_MS);
    this.database
      .reading((tx) => pipeline(Readable.from(streamRowsCsv(readDocumentRows(tx, documentId))), out, { signal }))
      .catch((error: unknown) => {
        this.log.warn({ err: error }, 'the rows of a document were not sent whole');
        out.destroy(error as Error);
      })
      .finally(() => {
        this.running -= 1;
      });
    return out;
  }
}
