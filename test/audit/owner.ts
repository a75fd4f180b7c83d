/** A connection as the owner of a world's database, for what only they could do to it. */
import knexFactory, { type Knex } from 'knex';
import { type Transaction, valueTypes, within } from '../../src/database/transaction.ts';
import type { World } from '../support/world.ts';

export interface Owner {
  /** Does the work in a transaction that is rolled back, and gives its result. */
  readonly undone: <Result>(work: (tx: Transaction) => Promise<Result>) => Promise<Result>;
  readonly close: () => Promise<void>;
}

class Undo extends Error {}

export function openOwner(world: World): Owner {
  const owner = knexFactory({
    client: 'pg',
    connection: { connectionString: world.databaseUrl, types: valueTypes } as Knex.PgConnectionConfig,
    pool: {
      min: 0,
      max: 1,
      afterCreate: (
        client: { query: (sql: string, done: (error: Error | null) => void) => void },
        done: (error: Error | null) => void,
      ) => client.query(`SET TIME ZONE 'UTC'; SET datestyle TO ISO`, done),
    },
  });
  return {
    async undone<Result>(work: (tx: Transaction) => Promise<Result>): Promise<Result> {
      let result: { value: Result } | undefined;
      await owner
        .transaction(async (tx) => {
          result = { value: await work(within(tx)) };
          throw new Undo();
        })
        .catch((error: unknown) => {
          if (!(error instanceof Undo)) throw error;
        });
      return (result as { value: Result }).value;
    },
    close: () => owner.destroy(),
  };
}
