/** The database behind a connection pooler, the real PgBouncer: transaction mode is refused, session mode works. */
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openDatabase } from '../../src/database/database.ts';
import { deliverPending } from '../../src/delivery/deliver.ts';
import { refusalOf } from '../close/refusal.ts';
import { type PgBouncer, startPgBouncer } from '../support/pgbouncer.ts';
import { reckoner } from '../support/program.ts';
import { ask, PRICED, serveWorld } from '../support/service.ts';
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

test('transaction mode is refused at opening: which takes two in turn, so that two clients seem to keep their own', async () => {
  await behind(
    await startPgBouncer('transaction', ['server_round_robin = 1', 'default_pool_size = 2']),
    async (databaseUrl) => {
      const clients = [1, 2, 3].map(() => new pg.Client(databaseUrl));
      await Promise.all(clients.map((client) => client.connect()));
      const [one, two, odd] = clients as [pg.Client, pg.Client, pg.Client];
      // Two transactions at once: the pooler now has two server connections.
      for (const statement of ['BEGIN', 'ROLLBACK']) await Promise.all([one.query(statement), two.query(statement)]);
      for (const passed of [0, 1, 0, 1]) {
        for (let asked = 0; asked < passed; asked += 1) await odd.query('SELECT 1');
        const opened = openDatabase({ ...world.environment, databaseUrl });
        expect(await refusalOf(opened.then((database) => database.close()))).toMatchObject({ code: 'database_pooled' });
      }
      await Promise.all(clients.map((client) => client.end()));
    },
  );
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

const env = (databaseUrl: string) => ({
  ...{ RECKONER_HOME: world.home, DATABASE_URL: databaseUrl, RECKONER_NOW: '2026-08-01T12:00:00Z' },
});

test('behind transaction mode a server and a worker do not start, and say what to set', async () => {
  await behind(await startPgBouncer('transaction'), async (databaseUrl) => {
    for (const args of [
      ['serve', '--port', '0'],
      ['deliver', '--watch'],
    ]) {
      const { status, stderr } = await reckoner(args, { env: env(databaseUrl) });
      expect({ args, status }).toEqual({ args, status: 1 });
      expect(stderr).toContain('Set pool_mode = session for this database, or connect to PostgreSQL directly.');
    }
  });
});

test('behind session mode a server answers, and records what is accepted', async () => {
  await world.partners([partner(PRICED)]);
  await behind(await startPgBouncer('session', ['default_pool_size = 50']), async (databaseUrl) => {
    const served = await serveWorld({ ...world, environment: { ...world.environment, databaseUrl } });
    const caller = await served.caller('p-1');
    const made = await caller.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '250' });
    const id = made.body['quote_id'];
    const answers = await Promise.all([1, 2, 3].map(() => caller.get(`/api/v1/quote/${id}/accept`)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(await world.sql('SELECT FROM ledger_rows WHERE quote_id = $1', [id])).toHaveLength(1);
    expect((await ask(`${served.url}/readyz`)).status).toBe(200);
    await served.end();
  });
});

test.each([1, 2])('session mode with a pool of %i is refused, and does not wait for the pooler', async (size) => {
  await behind(await startPgBouncer('session', [`max_db_connections = ${size}`]), async (databaseUrl) => {
    const opened = openDatabase({ ...world.environment, databaseUrl });
    expect(await refusalOf(opened.then((database) => database.close()))).toMatchObject({ code: 'database_pool_small' });
  });
});
