/** The rows of a large document: read from the database as fast as its reader takes them, and no faster. */
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Database } from '../../src/database/database.ts';
import { RowStreams } from '../../src/http/row-streams.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

/** Twelve batches of them, 2 MB. */
const ROWS = 12_000;

let world: World;
beforeAll(async () => {
  world = await openWorld({ fresh: true });
  await world.partners([partner()]);
  await world.rows(Array.from({ length: ROWS }, () => quote()));
  await world.close();
  await world.sql('ANALYZE ledger_rows');
});
afterAll(() => world.end());

interface Counted {
  readonly database: Database;
  readonly batches: () => number;
  /** The statement that the rows come from. */
  readonly cursor: () => pg.QueryConfig;
}

/** The same database, and what was asked of it for rows so far. */
function counted(database: Database): Counted {
  let batches = 0;
  let cursor: pg.QueryConfig = { text: '' };
  const reading: Database['reading'] = (work) =>
    database.reading((tx) =>
      work({
        ...tx,
        ask(statement) {
          if (statement.text.startsWith('FETCH')) batches += 1;
          if (statement.text.startsWith('DECLARE')) cursor = statement;
          return tx.ask(statement);
        },
      }),
    );
  return { database: { ...database, reading }, batches: () => batches, cursor: () => cursor };
}

test('while a reader pauses no more is read for it than a few batches; then it gets every row', async () => {
  const { database, batches, cursor } = counted(world.database);
  const [invoice] = await world.sql<{ document_id: string }>('SELECT document_id FROM documents');
  const stream = new RowStreams(database, pino({ level: 'silent' })).open(Number(invoice?.document_id), 'partner');
  await expect.poll(batches, { timeout: 20_000 }).toBeGreaterThan(0);
  // The first comes at once: nothing sorts a million of them before.
  const plan = await world.sql(`EXPLAIN ${cursor().text}`, cursor().values);
  expect(JSON.stringify(plan)).toContain('Index Scan');
  // Only the empty child of the table is sorted.
  expect(JSON.stringify(plan)).not.toMatch(/-> {2}Sort(?!.{0,200}rows_elsewhere)/);
  // Whatever would be read ahead has been asked for by now: a batch takes milliseconds.
  for (let before = -1; before !== batches(); ) {
    before = batches();
    await sleep(500);
  }
  expect(batches()).toBeLessThanOrEqual(4);
  let [lines, longest] = [0, 0];
  for await (const piece of stream) {
    const bytes = piece as Buffer;
    longest = Math.max(longest, bytes.length);
    lines += bytes.toString().split('\n').length - 1;
  }
  expect(lines).toBe(ROWS + 1);
  // Twelve with rows, and the one after them.
  expect(batches()).toBe(13);
  // What is handled at once.
  expect(longest).toBeLessThan(300_000);
});
