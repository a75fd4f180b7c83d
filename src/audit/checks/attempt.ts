/** Work on data that may be damaged. */
import { execute, isFaultOfOne, sqlstate, type Transaction } from '../../database/transaction.ts';
import { Refusal, reasonOf } from '../../errors/refusals.ts';
import type { Difference } from './query.ts';

/** Does the work in a savepoint. If damaged data prevents the work, undoes it and returns `instead`. */
export async function attempt<Result>(
  tx: Transaction,
  work: () => Promise<Result>,
  instead: (error: unknown) => Result,
): Promise<Result> {
  await execute(tx, 'SAVEPOINT attempt');
  try {
    const result = await work();
    await execute(tx, 'RELEASE SAVEPOINT attempt');
    return result;
  } catch (error) {
    if (error instanceof Refusal || (sqlstate(error) !== undefined && !isFaultOfOne(error))) throw error;
    // If the connection was lost, the function fails with the error of the connection.
    await execute(tx, 'ROLLBACK TO SAVEPOINT attempt');
    await execute(tx, 'RELEASE SAVEPOINT attempt');
    return instead(error);
  }
}

/** The difference that reports a check or a rule that could not be run. */
export const unchecked = (name: string, error: unknown): Difference => ({
  subject: name,
  detail: `cannot be checked, the database is damaged: ${reasonOf(error)}`,
});
