/**
 * Whether an action may be done now: its user has the role for all partners that it affects, it does what was
 * confirmed, and a second person has approved it if the settings require that. Refusals: role_needed, and those of
 * approvals/ask.ts.
 */

import { actAsCompared } from '../approvals/amounts-before.ts';
import { type Approval, approve, ask, type Permission } from '../approvals/ask.ts';
import type { PreviewedChange } from '../approvals/requests.sql.ts';
import type { Transaction } from '../database/transaction.ts';
import { Refusal } from '../errors/refusals.ts';
import { NOBODY, requireRole, scopeOf } from '../people/roles.ts';
import { actAs } from '../people/users.ts';
import type { Action, ActionContext, Partners } from './action.ts';
import { consequenceAside, digestOf, storedPreview } from './consequence.ts';
import { inputJson } from './fields.ts';

/** The action would do something other than its preview showed. Nothing was done. */
export class OutdatedPreview extends Error {}

/** What was agreed on before an action is done. */
export interface Agreement {
  /** A second person approves: the action belongs to its requester. */
  readonly approval?: Approval | undefined;
  /** The digest of the preview that was confirmed. */
  readonly shown?: string | undefined;
}

/**
 * Refuses a user without the role; from here on the transaction's events carry the user. A preview checks nothing more.
 * Jobs need no role, nor does what a job requested (`isAsked`).
 */
export async function admit<Input>(
  tx: Transaction,
  context: ActionContext,
  action: Action<Input>,
  input: Input,
  { isAsked = false }: { readonly isAsked?: boolean } = {},
): Promise<void> {
  const { actor } = context;
  if (actor.user === undefined) return;
  const isJob = actor.user.kind === 'program' && (actor.via === 'job' || isAsked);
  if (!isJob && !(await action.withoutRole?.(tx, context, input))) {
    const partners = await partnersTouched(tx, context, action, input);
    requireRole(actor.user, action.role, partners === 'all' ? undefined : partners);
  }
  await actAs(tx, actor);
}

/** To a user limited to some partners, a missing thing looks like one of another partner. */
async function partnersTouched<Input>(
  tx: Transaction,
  context: ActionContext,
  action: Action<Input>,
  input: Input,
): Promise<Partners> {
  try {
    return await action.partners(tx, input, context);
  } catch (error) {
    const { user } = context.actor;
    if (error instanceof Refusal && user !== undefined && scopeOf(user, action.role) !== null) return [NOBODY];
    throw error;
  }
}

/**
 * Called in each transaction of the action, before it does anything. If a rule requires a second person, it computes
 * what the action is about to do: in the first transaction all of it, in a later one the rest, which must be part of
 * what the first computed. A returned refusal stops the action; what this wrote, such as a request for approval, is
 * still committed. Throws OutdatedPreview. The caller compares what was approved or confirmed with what the action then
 * did.
 */
export async function permit<Input>(
  tx: Transaction,
  context: ActionContext,
  action: Action<Input>,
  input: Input,
  { approval, shown, earlier }: Agreement & { readonly earlier?: Permission | undefined } = {},
): Promise<Refusal | Permission> {
  await admit(tx, context, action, input, { isAsked: approval !== undefined });
  if (approval !== undefined) return approve(tx, context, approval);
  const rule = context.settings.approvals[action.name];
  if (rule === undefined) return {};
  const consequence = await consequenceAside(tx, context, action, input);
  const digest = digestOf(consequence);
  if (shown !== undefined && digest !== shown) throw new OutdatedPreview();
  const isRest = earlier?.changes !== undefined && isPartOf(consequence.changes, earlier.changes);
  if (isRest && earlier.alone === undefined) {
    if (earlier.compared !== undefined) await actAsCompared(tx, earlier.compared);
    return earlier;
  }
  const { reason } = input as { readonly reason?: unknown };
  const answer = await ask(tx, context, rule, {
    ...{ action: action.name, input: inputJson(input), subject: action.subject(input) },
    touched: await action.partners(tx, input, context),
    ...{ preview: storedPreview(action, input, consequence), hash: digest, amounts: consequence.amounts },
    reason: typeof reason === 'string' ? reason : null,
  });
  return answer instanceof Refusal ? answer : { digest, ...answer };
}

const isPartOf = (rest: readonly PreviewedChange[], whole: readonly PreviewedChange[]): boolean => {
  const known = new Set(whole.map(written));
  return rest.every((change) => known.has(written(change)));
};
const written = ({ of, field, before, after }: PreviewedChange): string => JSON.stringify([of, field, before, after]);
