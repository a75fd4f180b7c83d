/**
 * Whether an act may be done now: its user has the role, over all partners that it touches. The one place where an approval is
 * asked for. Refusal: role_needed.
 */
import type { Transaction } from '../database/transaction.ts';
import type { Refusal } from '../errors/refusals.ts';
import { requireRole } from '../people/roles.ts';
import { actAs } from '../people/users.ts';
import type { Act, ActContext } from './act.ts';

/** Refuses a user without the role; from here on the events of the transaction are the user's. A preview asks no more. */
export async function admit<Input>(tx: Transaction, context: ActContext, act: Act<Input>, input: Input): Promise<void> {
  const { actor } = context;
  if (actor.user === undefined) return;
  const partners = await act.partners(tx, input, context);
  requireRole(actor.user, act.role, partners === 'all' ? undefined : partners);
  await actAs(tx, actor);
}

/**
 * Called in the transaction of the act, before it does anything. A refusal keeps it from being done; what this wrote, such
 * as a request for approval, is committed all the same.
 */
export async function permit<Input>(
  tx: Transaction,
  context: ActContext,
  act: Act<Input>,
  input: Input,
): Promise<Refusal | undefined> {
  await admit(tx, context, act, input);
  return undefined;
}
