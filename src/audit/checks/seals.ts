/** The check of seals: recomputes each from the stored data and names the lines of its record that differ. */

import { isDeepStrictEqual } from 'node:util';
import type { Transaction } from '../../database/transaction.ts';
import { recomputeCheckpoints } from '../../seals/checkpoint.ts';
import { recomputeSeals, sealOf } from '../../seals/seal.ts';
import type { CheckContext } from './check.ts';
import type { Difference, Finding } from './query.ts';

type Context = Pick<CheckContext, 'hashedAgain'>;

export async function findBrokenSeals(tx: Transaction, { hashedAgain }: Context): Promise<Finding> {
  const differences: Difference[] = [];
  let inspected = 0;
  for await (const { month, seal, record } of recomputeSeals(tx, (await hashedAgain()).months)) {
    inspected += 1;
    const subject = `seal of ${month}`;
    if (seal === undefined || record === undefined) {
      differences.push({ subject, detail: 'the month is closed, but it has no seal' });
      continue;
    }
    if (sealOf(seal.record) !== seal.seal) {
      differences.push({ subject, detail: `is ${seal.seal}, but its record hashes to ${sealOf(seal.record)}` });
    }
    differences.push(...differingLines(subject, seal.record, record));
  }
  return { inspected, differences };
}

/** For one month, checks only the checkpoints taken while it was open. */
export async function findBrokenCheckpoints(tx: Transaction, { hashedAgain }: Context): Promise<Finding> {
  const differences: Difference[] = [];
  const recomputed = await recomputeCheckpoints(tx, await hashedAgain());
  for (const [at, { checkpoint, record, trees }] of recomputed.entries()) {
    const subject = `checkpoint ${checkpoint.checkpoint_number}`;
    const before = recomputed[at - 1]?.checkpoint.checkpoint_number ?? checkpoint.previous ?? 0;
    if (checkpoint.checkpoint_number !== before + 1) differences.push({ subject, detail: `follows ${before}` });
    if (sealOf(checkpoint.record) !== checkpoint.seal) {
      const detail = `is ${checkpoint.seal}, but its record hashes to ${sealOf(checkpoint.record)}`;
      differences.push({ subject, detail });
    }
    differences.push(...differingLines(subject, checkpoint.record, record));
    // The close would continue from these trees.
    if (!isDeepStrictEqual(checkpoint.trees, trees)) {
      differences.push({ subject, detail: 'kept hashes of the rows so far that the data no longer gives' });
    }
  }
  return { inspected: recomputed.length, differences };
}

/** The lines of a sealed record that differ from the recomputed record, or whose order differs. */
export function differingLines(subject: string, sealedRecord: string, recomputed: string): Difference[] {
  if (sealedRecord === recomputed) return [];
  const sealed = new Set(sealedRecord.split('\n'));
  const now = new Set(recomputed.split('\n'));
  const was = [...sealed].filter((line) => !now.has(line));
  const is = [...now].filter((line) => !sealed.has(line));
  if (was.length + is.length === 0) return [{ subject, detail: 'its record has its lines in another order, or twice' }];
  const listed = (lines: string[]) => (lines.length > 0 ? lines.join(', ') : 'no line');
  return [{ subject, detail: `its record has ${listed(was)}; the data now gives ${listed(is)}` }];
}
