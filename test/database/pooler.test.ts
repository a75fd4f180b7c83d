/** The database behind a connection pooler, the real PgBouncer: transaction mode is refused, session mode works. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openDatabase } from '../../src/database/database.ts';
import { deliverPending } from '../../src/delivery/deliver.ts';
import { refusalOf } from '../close/refusal.ts';
import { type PgBouncer, startPgBouncer } from '../support/pgbouncer.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner()]);
  await world.rows([quote()]);
});
afterAll(() => world.end());

async function behind<Result>(pooler: PgBouncer, work: (url: string) => Promise<Result>): Promise<Result> {
  try {
    return await work(pooler.url(world.databaseUrl));
  } finally {
    await pooler.stop();
  }
}

test.each<[what: string, more: string[]]>([
  ['which takes the server connection that was used last', []],
  ['which takes them in turn', ['server_round_robin = 1', 'min_pool_size = 3']],
  ['with a single one', ['max_db_connections = 2', 'reserve_pool_size = 0']],
])('transaction mode is refused at opening: %s', async (_, more) => {
  await behind(await startPgBouncer('transaction', more), async (databaseUrl) => {
    for (const readOnly of [false, true, false]) {
      const opened = openDatabase({ ...world.environment, databaseUrl }, { readOnly });
      expect(await refusalOf(opened.then((database) => database.close()))).toMatchObject({ code: 'database_pooled' });
    }
  });
});

test('session mode works, with workers and migrations', async () => {
  await behind(await startPgBouncer('session', ['default_pool_size = 50']), async (databaseUrl) => {
    const environment = { ...world.environment, databaseUrl };
    const database = await openDatabase(environment);
    await world.close();
    const delivered: string[] = [];
    await deliverPending({ ...world, environment, database, onDelivery: ({ status }) => delivered.push(status) });
    expect(delivered).toEqual(['sent']);
    expect(await database.migrations.run()).toEqual([]);
    await database.close();
  });
});

test.each([1, 2])('session mode with a pool of %i is refused, and does not wait for the pooler', async (size) => {
  await behind(await startPgBouncer('session', [`max_db_connections = ${size}`]), async (databaseUrl) => {
    const opened = openDatabase({ ...world.environment, databaseUrl });
    expect(await refusalOf(opened.then((database) => database.close()))).toMatchObject({ code: 'database_pool_small' });
  });
});
