/** Migrations beside each other and beside others: one at a time, never waiting for long, and repeatable after a kill. */
import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readEnvironment } from '../../src/config/environment.ts';
import { type Database, openDatabase } from '../../src/database/database.ts';
import { MIGRATION_NAMES, MIGRATIONS, migrateTo, whileNobodyMigrates } from '../../src/database/migrate.ts';
import { refusalOf } from '../close/refusal.ts';
import { makeDatabase, type OwnDatabase } from '../support/databases.ts';

let empty: OwnDatabase;
const opened: Database[] = [];
beforeEach(async () => {
  empty = await makeDatabase('migrating');
});
afterEach(async () => {
  for (const database of opened.splice(0)) await database.close();
  await empty.drop();
});

async function opening(): Promise<Database> {
  const environment = readEnvironment({ DATABASE_URL: empty.url, RECKONER_HOME: '/nowhere' });
  const database = await openDatabase(environment, { unmigrated: true });
  opened.push(database);
  return database;
}

test('of three that migrate at once, one does, and the others find nothing to do', async () => {
  const all = await Promise.all([opening(), opening(), opening()]);
  const done = await Promise.all(all.map((database) => database.migrations.run()));
  expect(done.map((names) => names.length).sort()).toEqual([0, 0, MIGRATION_NAMES.length]);
});

test('a migration that was killed on the way is done again', async () => {
  const database = await opening();
  await database.asOwner((tx) => migrateTo(tx, MIGRATIONS.slice(0, 3)));
  const client = new pg.Client(empty.url);
  await client.connect();
  await client.query('UPDATE migrations_lock SET is_locked = 1'); // what a killed one leaves
  await client.end();
  expect(await database.migrations.run()).toEqual(MIGRATION_NAMES.slice(3));
});

test('who waits for a migration is told by whom it is held up', async () => {
  const { connection } = await opening();
  const patience = { lock: 1, table: 1 };
  await whileNobodyMigrates(connection, 'shared', async () => {
    const refusal = await refusalOf(whileNobodyMigrates(connection, 'alone', async () => {}, patience));
    expect(refusal).toMatchObject({ code: 'database_busy', facts: { seconds: 1 } });
    expect(refusal.facts['holders']).toEqual([expect.stringMatching(/^process \d+ of \w+ \(reckoner\)$/)]);
  });
  await whileNobodyMigrates(connection, 'alone', async () => {}, patience);
});
