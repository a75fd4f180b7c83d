/**
 * Checks whether an action may be done now. The user's role must cover all affected partners. The action's effect must
 * be the same as the confirmed effect. If the settings require approval, a second person must have approved the action.
 * Refusals: role_needed, and the refusals of approvals/ask.ts.
 */

import { ADJUSTMENTS, actAsCompared } from '#approvals/amounts-before';
import { Approval, actAsApproved, approve, ask, limitOf, Permission, Rules, readNeededApprovers } from '#approvals/ask';
import { PreviewedChange } from '#approvals/requests.sql';
import { ApprovalRule } from '#config/settings';
import { lockImporters } from '#database/ledger-lock';
import { Transaction } from '#database/transaction';
import { Refusal } from '#errors/refusals';
import { Amount } from '#money';
import { NOBODY, requireRole, scopeOf } from '#people/roles';
import { actAs } from '#people/users';
import { Action, ActionContext, inputJson } from './action.ts';
import { Consequence, consequenceAside, consequenceForeseen, digestOf, storedPreview } from './consequence.ts';

/** Thrown if the action's effect differs from its preview. Nothing was done. */
export class OutdatedPreview extends Error {}

export type Agreement = Readonly<{
  /** A second person's approval of a request. The action is attributed to the requester. */
  approval?: Approval | undefined;
  shown?: string | undefined;
}>;

/**
 * Refuses a user without the role. Attributes the transaction's events to the user. Jobs need no role, and neither does
 * the approved request of a job (`isAsked`).
 */
export async function admit<Input>(
  tx: Transaction,
  context: ActionContext,
  action: Action<Input>,
  input: Input,
  { isAsked = false }: { readonly isAsked?: boolean } = {},
) {
  const { actor } = context;
  if (actor.user === undefined) return;
  const isJob = actor.user.kind === 'program' && (actor.via === 'job' || isAsked);
  if (!isJob && !(await action.withoutRole?.(tx, context, input))) {
    const partners = await partnersTouched(tx, context, action, input);
    requireRole(actor.user, action.role, partners === 'all' ? undefined : partners);
  }
  await actAs(tx, actor);
}

/** Hides from a user limited to some partners whether a thing is missing or belongs to another partner. */
async function partnersTouched<Input>(tx: Transaction, context: ActionContext, action: Action<Input>, input: Input) {
  try {
    return await action.partners(tx, input, context);
  } catch (error) {
    const { user } = context.actor;
    if (error instanceof Refusal && user !== undefined && scopeOf(user, action.role) !== null) return [NOBODY];
    throw error;
  }
}

/**
 * Called at the start of each transaction of an action. If a rule may require approval, the function computes the
 * transaction's effect. The effect of the first transaction must include the effects of all later transactions. A
 * returned refusal stops the action. If this function wrote a request for approval, that request is still committed.
 * Throws OutdatedPreview. The caller must compare the agreed figures with the figures of the action itself.
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
  const possible = rulesOf(context, action, input);
  if (possible === undefined || action.requestOf !== undefined) return {};
  if (action.locksImporters) await lockImporters(tx);
  const consequence = await consequenceAside(tx, context, action, input);
  const digest = digestOf(consequence);
  if (shown !== undefined && digest !== shown) throw new OutdatedPreview();
  const isRest = earlier?.changes !== undefined && isPartOf(consequence.changes, earlier.changes);
  if (isRest && earlier.alone === undefined) {
    if (earlier.compared !== undefined) await actAsCompared(tx, earlier.compared);
    return earlier;
  }
  return permitEffect(tx, context, action, input, { possible, consequence, kept: inputJson(input) });
}

/** Like `permit`, for an action that foresees its result (`requestOf`) and has recorded nothing yet. */
export async function permitForeseen<Input, Result>(
  tx: Transaction,
  context: ActionContext,
  action: Action<Input, Result>,
  input: Input,
  foreseen: Result,
): Promise<Refusal | Permission> {
  const possible = rulesOf(context, action, input);
  if (possible === undefined) return {};
  const consequence = await consequenceForeseen(tx, context, action, input, foreseen);
  const kept = inputJson(action.requestOf?.(input, foreseen));
  return permitEffect(tx, context, action, input, { possible, consequence, kept });
}

type PossibleRules = Rules & { readonly voiding?: ApprovalRule | undefined };

/** Returns the rules that may apply to an action: its own, and those for voiding and for adjustments. */
function rulesOf<Input>(context: ActionContext, action: Action<Input>, input: Input): PossibleRules | undefined {
  const { approvals } = context.settings;
  const own = action.rule === undefined ? approvals[action.ruledAs ?? action.name] : action.rule(context, input);
  const voiding = action.voids && approvals[VOIDING];
  const rules = { own, voiding, adjustments: action.adjusts && approvals[ADJUSTMENTS] };
  return Object.values(rules).every((rule) => rule === undefined) ? undefined : rules;
}

const VOIDING = 'invoice.void';

/** The rules for an effect. If it voids a document, the stricter of the rules for voiding and for the action applies. */
function rulesFor({ own, voiding, adjustments }: PossibleRules, { changes, amounts }: Consequence): Rules {
  if (voiding === undefined || !changes.some(({ field, after }) => field === 'status' && after === 'void')) {
    return { own, adjustments };
  }
  const isWithin = (one: ApprovalRule, other: ApprovalRule) =>
    amounts.every((each) => {
      const [least, most] = [limitOf(one, each), limitOf(other, each)];
      return (
        least === undefined ||
        (most !== undefined && !Amount.of(most, each.currency).isLessThan(Amount.of(least, each.currency)))
      );
    });
  if (own === undefined || isWithin(voiding, own)) return { own: voiding, ruledAs: VOIDING, adjustments };
  return { own: isWithin(own, voiding) ? own : { always: true }, adjustments };
}

async function permitEffect<Input>(
  tx: Transaction,
  context: ActionContext,
  action: Action<Input>,
  input: Input,
  { possible, consequence, kept }: Readonly<{ possible: PossibleRules; consequence: Consequence; kept: unknown }>,
) {
  const { amounts, adjustments } = consequence;
  const digest = digestOf(consequence);
  const rules = rulesFor(possible, consequence);
  // The rule for adjustments does not apply to an action that adjusts nothing, as long as it adjusts nothing.
  if (rules.own === undefined && adjustments.length === 0) return { digest };
  const { reason } = input as { readonly reason?: unknown };
  const asked = {
    ...{ action: action.name, input: kept, subject: action.subject(input) },
    touched: await action.partners(tx, input, context),
    ...{ preview: storedPreview(action, input, consequence), hash: digest, amounts, adjustments },
    reason: typeof reason === 'string' ? reason : null,
  };
  const approved = action.requestOf && (await actAsApproved(tx, context, asked));
  if (approved !== undefined) return approved;
  const answer = await ask(tx, context, rules, asked);
  return answer instanceof Refusal ? answer : { digest, ...answer };
}

/** The logins of those who could approve the action, if it needs approval now. */
export async function approversNeeded<Input>(
  tx: Transaction,
  context: ActionContext,
  action: Action<Input>,
  input: Input,
  { amounts, adjustments }: Pick<Consequence, 'amounts' | 'adjustments'>,
): Promise<string[]> {
  const rules = rulesOf(context, action, input);
  if (rules === undefined || (rules.own === undefined && adjustments.length === 0)) return [];
  const touched = await action.partners(tx, input, context);
  return readNeededApprovers(tx, context, rules, { action: action.name, amounts, adjustments, touched });
}

const isPartOf = (rest: readonly PreviewedChange[], whole: readonly PreviewedChange[]) => {
  const known = new Set(whole.map(written));
  return rest.every((change) => known.has(written(change)));
};
const written = ({ of, field, before, after }: PreviewedChange) => JSON.stringify([of, field, before, after]);
