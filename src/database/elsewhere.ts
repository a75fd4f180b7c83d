/** Work that needs rows which the tables do not have is repeated on a connection of its own, where they are copied first. */
import { Environment } from '#config/environment';
import { Transaction } from './transaction.ts';

/** Copies what the work needs into its next transaction. */
export type Prepare = (tx: Transaction, environment: Environment) => Promise<unknown>;

/** Thrown by work before it has any effect. */
export class Elsewhere extends Error {
  readonly prepare: Prepare;

  constructor(prepare: Prepare) {
    super('this work needs rows that are elsewhere');
    this.prepare = prepare;
  }
}

/**
 * Runs work, and repeats it with `aside` as long as it needs something more. Every attempt gets all preparations so far.
 */
export async function withElsewhere<On, Result>(
  on: On,
  aside: (work: (own: On) => Promise<Result>) => Promise<Result>,
  run: (on: On, preparations: readonly Prepare[]) => Promise<Result>,
) {
  const preparations: Prepare[] = [];
  for (;;) {
    try {
      const [given] = preparations;
      return await (given === undefined ? run(on, []) : aside((own) => run(own, preparations)));
    } catch (error) {
      if (!(error instanceof Elsewhere) || preparations.length === MOST) throw error;
      preparations.push(error.prepare);
    }
  }
}
const MOST = 5;
