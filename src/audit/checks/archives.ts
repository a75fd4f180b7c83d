/** The check of archives: the files of archived months are the rows that their closes counted. */
import { readColdMonths } from '../../archive/archive.sql.ts';
import { proveColdMonths } from '../../archive/archive.ts';
import type { Transaction } from '../../database/transaction.ts';
import type { CheckContext } from './check.ts';
import type { Finding } from './query.ts';

/** Reads the files of the months whose rows a run hashes. The other checks count the rows of all. */
export async function findChangedArchives(
  tx: Transaction,
  { month, derived, environment }: CheckContext,
): Promise<Finding> {
  const scope = month === null ? derived : { month };
  const archived = (await readColdMonths(tx)).map((each) => each.month);
  const months = archived.filter((each) => scope === 'all' || each === scope.month);
  if (environment !== undefined) {
    return { inspected: months.length, differences: await proveColdMonths(tx, environment, months) };
  }
  const note = 'the files of archived months were not read';
  return { inspected: 0, differences: [], ...(months.length > 0 && { note }) };
}
