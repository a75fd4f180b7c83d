import type { Settings } from '../config/settings.ts';
import { query, type Transaction } from '../database/transaction.ts';

export type AllInstructions = Settings['instructions'];

/** The instructions in force, by currency; undefined before the first adoption. */
export async function readInstructionsInForce(tx: Transaction) {
  const [found] = await query<{ instructions: AllInstructions }>(tx, `SELECT instructions FROM instructions_in_force`);
  return found?.instructions;
}
