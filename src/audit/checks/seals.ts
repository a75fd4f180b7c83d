/** The seals of closed months, recomputed from what is stored now: every line of a record that differs is named. */
import type { Transaction } from '../../database/transaction.ts';
import { recomputeSeals, sealOf } from '../../seals/seal.ts';
import type { Difference, Finding, Scope } from '../checks.ts';

export async function findBrokenSeals(tx: Transaction, { month: only }: Pick<Scope, 'month'>): Promise<Finding> {
  const differences: Difference[] = [];
  let inspected = 0;
  for await (const { month, seal, record } of recomputeSeals(tx, only)) {
    inspected += 1;
    const subject = `seal of ${month}`;
    if (seal === undefined || record === undefined) {
      differences.push({ subject, detail: "the month is closed and not sealed: 'reckoner migrate' seals it" });
      continue;
    }
    if (sealOf(seal.record) !== seal.seal) {
      differences.push({ subject, detail: `its record hashes to ${sealOf(seal.record)} and it is ${seal.seal}` });
    }
    const sealed = new Set(seal.record.split('\n'));
    const now = new Set(record.split('\n'));
    const was = [...sealed].filter((line) => !now.has(line));
    const is = [...now].filter((line) => !sealed.has(line));
    if (was.length + is.length > 0) {
      const said = (lines: string[]) => (lines.length > 0 ? lines.join(', ') : 'nothing of it');
      differences.push({ subject, detail: `was sealed with ${said(was)}; there is now ${said(is)}` });
    }
  }
  return { inspected, differences };
}
