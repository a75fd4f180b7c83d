/** The check that the schema is what the migrations made: every guard, rule and view that the other checks rely on. */
import { compareSchema } from '../../database/schema.ts';
import type { Transaction } from '../../database/transaction.ts';
import type { Finding } from '../checks.ts';

export async function findChangedSchema(tx: Transaction): Promise<Finding> {
  const { inspected, differences } = await compareSchema(tx);
  return { inspected, differences: differences.map(({ object, detail }) => ({ subject: object, detail })) };
}
