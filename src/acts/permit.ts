/** Whether an act may be done now. The one place where an approval is asked for. */
import type { Transaction } from '../database/transaction.ts';
import type { Refusal } from '../errors/refusals.ts';
import type { Act, ActContext } from './act.ts';

/**
 * Called in the transaction of the act, before it does anything. A refusal keeps it from being done; what this wrote, such
 * as a request for approval, is committed all the same.
 */
export async function permit<Input>(
  _tx: Transaction,
  _context: ActContext,
  _act: Act<Input>,
  _input: Input,
): Promise<Refusal | undefined> {
  return undefined;
}
