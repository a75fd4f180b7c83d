/** A month that was imported a moment ago: the planner has no statistics of it, and what takes long is killed. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { verify } from '../../src/audit/verify.ts';
import { execute } from '../../src/database/transaction.ts';
import type { Month } from '../../src/month.ts';
import { openWorld, partner, quote, requote, type World } from '../support/world.ts';

const QUOTES = 20_000;
const JULY = '2026-07' as Month;

let world: World;
beforeAll(async () => {
  world = await openWorld();
  await world.sql('ALTER TABLE entries SET (autovacuum_enabled = false)');
  await world.partners([partner()]);
  const quotes = Array.from({ length: QUOTES }, (_, index) => quote({ quote_id: `q-${index}` }));
  await world.rows([...quotes, ...quotes.filter((_, index) => index % 4 === 0).map((each) => requote(each))]);
  await world.close();
}, 120_000);
afterAll(() => world.end());

test(`${QUOTES} quotes that nobody has counted yet are verified in a moment, all of them and by month`, async () => {
  for (const month of [undefined, JULY]) {
    const found = await world.database.reading(async (tx) => {
      await execute(tx, `SET LOCAL statement_timeout TO '10s'`);
      return verify(tx, month);
    });
    expect(found.differences).toBe(0);
    expect(found.checks.find(({ check }) => check === 'rows_within_their_quotes')?.inspected).toBe(QUOTES);
  }
}, 120_000);
