/** A connection as the owner of a world's database, for what only they could do to it. */
import { openPool, SESSION } from '../../src/database/session.ts';
import { inTransaction, type Transaction } from '../../src/database/transaction.ts';
import type { World } from '../support/world.ts';

export interface Owner {
  /** Does the work in a transaction that is rolled back, and gives its result. */
  readonly undone: <Result>(work: (tx: Transaction) => Promise<Result>) => Promise<Result>;
  readonly close: () => Promise<void>;
}

class Undo extends Error {}

export function openOwner(world: World): Owner {
  const owner = openPool({ connectionString: world.databaseUrl, ...SESSION }, 1, { role: 'owner' });
  return {
    async undone<Result>(work: (tx: Transaction) => Promise<Result>): Promise<Result> {
      let result: { value: Result } | undefined;
      const undoing = inTransaction(owner, async (tx) => {
        result = { value: await work(tx) };
        throw new Undo();
      });
      await undoing.catch((error: unknown) => {
        if (!(error instanceof Undo)) throw error;
      });
      return (result as { value: Result }).value;
    },
    close: () => owner.end(),
  };
}
