/** Work in a savepoint, after whose failure the transaction goes on. */
import { Refusal } from '#errors/refusals';
import { execute, isFaultOfOne, sqlstate, Transaction } from './transaction.ts';

/** Does the work in a savepoint. If damaged data prevents the work, undoes it and returns `instead`. */
export async function attempt<Result>(
  tx: Transaction,
  work: () => Promise<Result>,
  instead: (error: unknown) => Result,
) {
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
