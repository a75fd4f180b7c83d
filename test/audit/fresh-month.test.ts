/** Months that were imported a moment ago: the planner has no statistics of them, and what takes long is killed. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { verify } from '../../src/audit/verify.ts';
import { execute } from '../../src/database/transaction.ts';
import type { Month } from '../../src/month.ts';
import { openWorld, partner, quote, requote, type World } from '../support/world.ts';

const QUOTES = 20_000;
const [JULY, AUGUST] = ['2026-07', '2026-08'] as [Month, Month];

let world: World;
beforeAll(async () => {
  world = await openWorld();
  await world.sql('ALTER TABLE ledger_rows SET (autovacuum_enabled = false)');
  await world.partners([partner()]);
});
afterAll(() => world.end());

async function sellAndClose(month: Month): Promise<void> {
  const accepted_at = `${month}-10T12:00:00Z`;
  const quotes = Array.from({ length: QUOTES }, (_, index) => quote({ quote_id: `${month}-${index}`, accepted_at }));
  const requoted = quotes.filter((_, index) => index % 4 === 0).map((each) => requote(each, { accepted_at }));
  await world.rows([...quotes, ...requoted]);
  await world.close();
}

async function expectSoonVerified(month?: Month): Promise<void> {
  const found = await world.database.readingBeside(async (tx, beside) => {
    for (const each of [tx, beside]) if (each) await execute(each, `SET LOCAL statement_timeout TO '5s'`);
    return verify(tx, month, { beside });
  });
  expect(found.checks.flatMap(({ differences }) => differences)).toEqual([]);
}

test('a first month that nobody has counted yet is verified in a moment', async () => {
  await sellAndClose(JULY);
  await expectSoonVerified();
  await expectSoonVerified(JULY);
}, 120_000);

test('and so is the one after it, when only the first one was counted', async () => {
  await world.sql('ANALYZE ledger_rows');
  world.at('2026-09-01T10:00:00Z');
  await sellAndClose(AUGUST);
  await expectSoonVerified(AUGUST);
  await expectSoonVerified();
}, 120_000);
