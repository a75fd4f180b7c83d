/** The rules that packs carry, over the live tables. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LIVE_RULES, liveStatement, makeLiveViews, ROW_TABLES } from '../../src/audit/live.sql.ts';
import { findBrokenRules, readRules } from '../../src/audit/rules.ts';
import { openDatabase } from '../../src/database/database.ts';
import { execute, query } from '../../src/database/transaction.ts';
import type { World } from '../support/world.ts';
import { openBooks } from './books.ts';

let world: World;
beforeAll(async () => {
  world = await openBooks();
});
afterAll(() => world.end());

test('all rules hold over books with every kind of correction', async () => {
  const { inspected, differences, note } = await world.database.preview(findBrokenRules);
  expect(differences).toEqual([]);
  expect(note).toBeUndefined();
  expect(inspected).toBe(readRules().rules.length + LIVE_RULES.length);
  expect(inspected).toBeGreaterThan(80);
});

test('without a second connection, the only transaction runs the rules', async () => {
  const database = await openDatabase(world.environment, { poolSize: 1 });
  const inspected = await database
    .readingBeside(async (tx, beside) => [beside, (await findBrokenRules(tx)).differences])
    .finally(() => database.close());
  expect(inspected).toEqual([undefined, []]);
});

test('beside a second transaction, the first one cannot write', async () => {
  const writing = world.database.readingBeside((tx) => execute(tx, 'CREATE TEMP TABLE written (x int)'));
  await expect(writing).rejects.toMatchObject({ code: '25006' });
});

const rowTables = Object.keys(ROW_TABLES).flatMap((name) => [undefined, 1000].map((to) => ({ name, to })));
test.each(rowTables)('the table $name made from the rows up to $to is that of the rules', async ({ name, to }) => {
  const rows = await world.database.preview(async (tx) => {
    const home = await makeLiveViews(tx, to);
    const made: unknown[] = [];
    await execute(tx, 'CREATE TABLE unread (log_no bigint)');
    const statement = readRules().prepare.find((each) => each.includes(`CREATE TABLE ${name} AS`)) ?? '';
    const facts = to === undefined ? { home } : { home, to };
    for (const sql of [statement, liveStatement(statement, facts)]) {
      await execute(tx, sql);
      made.push(await query(tx, `SELECT ${name}::text AS line FROM ${name} ORDER BY line`));
      await execute(tx, `DROP TABLE ${name}`);
    }
    expect(liveStatement(statement, facts)).not.toBe(statement);
    return made;
  });
  expect(rows[1]).toEqual(rows[0]);
  expect((rows[0] as unknown[]).length).toBeGreaterThan(0);
});
