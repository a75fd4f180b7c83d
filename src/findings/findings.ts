/** All findings. The other kinds of the work queue and of the status move here one after another. */
import type { Transaction } from '../database/transaction.ts';
import { readDisputes, readHolds, readUnreplaced } from './documents.ts';
import type { Finding, FindingQuestion, ReadFindings } from './finding.ts';

const KINDS: readonly ReadFindings[] = [readHolds, readUnreplaced, readDisputes];

export async function readFindings(tx: Transaction, question: FindingQuestion): Promise<Finding[]> {
  const found: Finding[] = [];
  for (const read of KINDS) found.push(...(await read(tx, question)));
  return found;
}
