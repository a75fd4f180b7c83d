/** The check of archives: the files of archived months are the rows that their closes counted. */

import { proveColdMonths } from '#archive/archive';
import { readColdMonths } from '#archive/archive.sql';
import { faultOf } from '#archive/rows';
import { Transaction } from '#database/transaction';
import { isDerived } from '#log/derive';
import { CheckContext } from './check.ts';
import { Difference, Finding } from './query.ts';

/** Proves the files of the months whose rows a run hashes, and compares the sizes of those of other months. */
export async function findChangedArchives(tx: Transaction, { derived, environment }: CheckContext): Promise<Finding> {
  const archived = (await readColdMonths(tx)).map((each) => each.month);
  const months = archived.filter((each) => isDerived(derived, each));
  if (environment !== undefined) {
    const differences: Difference[] = [];
    const fault = await faultOf(async () => {
      differences.push(...(await proveColdMonths(tx, environment, months)));
    });
    if (fault !== undefined) differences.push({ subject: 'archived months', detail: fault });
    return { inspected: archived.length, differences };
  }
  const note = 'the files of archived months were not read';
  return { inspected: 0, differences: [], ...(months.length > 0 && { note }) };
}
