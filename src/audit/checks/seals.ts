/** The check of seals: recomputes each from the stored data and names the lines of its record that differ. */
import type { Transaction } from '../../database/transaction.ts';
import { recomputeSeals, sealOf } from '../../seals/seal.ts';
import type { CheckContext, Difference, Finding } from '../checks.ts';

export async function findBrokenSeals(tx: Transaction, { month: only }: Pick<CheckContext, 'month'>): Promise<Finding> {
  const differences: Difference[] = [];
  let inspected = 0;
  for await (const { month, seal, record } of recomputeSeals(tx, only)) {
    inspected += 1;
    const subject = `seal of ${month}`;
    if (seal === undefined || record === undefined) {
      differences.push({ subject, detail: 'the month is closed, but it has no seal' });
      continue;
    }
    if (sealOf(seal.record) !== seal.seal) {
      differences.push({ subject, detail: `is ${seal.seal}, but its record hashes to ${sealOf(seal.record)}` });
    }
    const sealed = new Set(seal.record.split('\n'));
    const now = new Set(record.split('\n'));
    const was = [...sealed].filter((line) => !now.has(line));
    const is = [...now].filter((line) => !sealed.has(line));
    if (was.length + is.length > 0) {
      const listed = (lines: string[]) => (lines.length > 0 ? lines.join(', ') : 'no line');
      differences.push({ subject, detail: `its record has ${listed(was)}; the data now gives ${listed(is)}` });
    }
  }
  return { inspected, differences };
}
