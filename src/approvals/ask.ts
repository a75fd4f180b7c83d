/**
 * Requests and records the approval of an action. A rule does not apply while only the user could approve, which the
 * events record. Refusals: approval_needed, approval_outdated, and those of deciding (requests.ts).
 */
import { randomUUID } from 'node:crypto';
import { ApprovalRule } from '#config/settings';
import { Transaction } from '#database/transaction';
import { Refusal, refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { fieldWords } from '#field-names';
import { Amount } from '#money';
import { Actor, ActorContext } from '#people/audit-events';
import { lockUsers } from '#people/users';
import { Adjustment, actAsCompared, COMPARED_DAYS, Comparison } from './amounts-before.ts';
import {
  actAsOnePerson,
  actUnderApproval,
  OnePerson,
  PreviewedChange,
  readAdjustmentsBefore,
  readAmountsBefore,
  readApprovers,
  readDecided,
  StoredPreview,
} from './requests.sql.ts';
import {
  askForApproval,
  lockOpenRequests,
  openRequest,
  partnersApproved,
  recordDecision,
  withdrawAll,
} from './requests.ts';

export type Approval = Readonly<{
  requestId: number;
  approver: Actor;
  reason: string | null;
}>;

/** What the first transaction of an action was allowed to do. Its later ones must stay within this. */
export type Permission = Readonly<{
  /** The digest (digestOf) of the approved or compared effect. The action must have exactly this effect. */
  digest?: string | undefined;
  /** All changes that the action was going to make, if approved or compared. */
  changes?: readonly PreviewedChange[];
  compared?: Comparison | undefined;
  /** If no one else could approve. A later transaction checks again, because someone may have become an approver. */
  alone?: OnePerson | undefined;
}>;

/** If there are two, both must allow the action. */
export interface Rules {
  readonly own?: ApprovalRule | undefined;
  /** The action whose rule `own` is, if it is the rule of another action. Their amounts are added up. */
  readonly ruledAs?: string | undefined;
  /** Applies only to an action that adjusts something. */
  readonly adjustments?: ApprovalRule | undefined;
}

type ToApprove = Readonly<{
  action: string;
  /** A JSON value. */
  input: unknown;
  subject: string;
  touched: readonly string[] | 'all';
  preview: StoredPreview;
  /** An approved action is done only if its preview still has this digest. */
  hash: string;
  amounts: readonly Amount[];
  adjustments: readonly Adjustment[];
  reason: string | null;
}>;

/** Records the approval. It is rolled back if the action then does something else than the request shows. */
export async function approve(
  tx: Transaction,
  context: ActorContext,
  { requestId, approver, reason }: Approval,
): Promise<Permission> {
  const deciding = { ...context, actor: approver };
  const request = await openRequest(tx, deciding, requestId, 'approve');
  await recordDecision(tx, deciding, request, { decision: 'approve', reason });
  failpoint('approval.decided');
  await actUnderApproval(tx, requestId, approver.user?.login ?? '');
  return { digest: request.preview_hash, changes: request.preview.changes };
}

/**
 * Acts under a request of this user that was approved but not carried out, for an action that the requester repeats. It
 * must be for the same input and effect, and not have expired.
 */
export async function actAsApproved(
  tx: Transaction,
  { actor: { user }, environment }: ActorContext,
  { action, input, hash, preview }: Pick<ToApprove, 'action' | 'input' | 'hash' | 'preview'>,
): Promise<Permission | undefined> {
  if (user === undefined) return undefined;
  const asked = { action, input, hash, userId: user.user_id, now: environment.now().toISO() };
  const approved = await readDecided(tx, { ...asked, decision: 'approve' });
  if (approved === undefined) return undefined;
  await actUnderApproval(tx, approved.request_id, approved.decided_by);
  return { digest: hash, changes: preview.changes };
}

/** The refusal if the action would no longer do what its request shows. */
export const outdated = (requestId: number, shown: readonly PreviewedChange[], now: readonly PreviewedChange[]) =>
  refuse('approval_outdated', { request_id: requestId, shown: inWords(shown), now: inWords(now) });

const inWords = (changes: readonly PreviewedChange[]) =>
  changes
    .map(({ of, field, before, after }) => `${of}, ${fieldWords(field)}: ${before ?? 'none'} → ${after ?? 'none'}`)
    .join(', ') || 'no figure changes';

/**
 * If a rule applies and someone else can approve, finds or creates the pending request. Otherwise, the events record
 * the compared amounts, or that no one else could approve.
 */
export async function ask(
  tx: Transaction,
  context: ActorContext,
  rules: Rules,
  { amounts, adjustments, touched, ...asked }: ToApprove,
): Promise<Refusal | Permission> {
  const { user } = context.actor;
  const { action, input, subject, preview } = asked;
  const { changes, title, repeats = false } = preview;
  const compared = await compare(tx, context, rules, { action, amounts, adjustments, touched });
  const above = compared === undefined ? [] : aboveLimits(compared);
  if (compared !== undefined && above.length === 0) {
    await actAsCompared(tx, compared);
    return { changes, compared };
  }
  const partnerIds = partnersApproved(touched);
  let approvers = await readApprovers(tx, { partnerIds, besides: user?.user_id ?? null });
  let waiting: readonly { readonly request_id: number }[] = [];
  if (approvers.length === 0) {
    // Requests are locked before users, as in a decision: a different order could deadlock.
    const now = context.environment.now().toISO();
    if (user !== undefined) waiting = await lockOpenRequests(tx, { action, input, userId: user.user_id, now });
    // Until the action is done, no one can become an approver.
    await lockUsers(tx);
    approvers = await readApprovers(tx, { partnerIds, besides: user?.user_id ?? null });
  }
  if (approvers.length === 0) {
    await withdrawAll(tx, context, waiting, 'done alone: no one else could approve it any more');
    const alone = { action, partners: partnerIds };
    await actAsOnePerson(tx, alone);
    return { changes, alone };
  }
  if (user === undefined) throw refuse('user_unknown', { login: null, acting: true });
  const request = await askForApproval(tx, context, { ...asked, partnerIds, userId: user.user_id });
  failpoint('approval.requested');
  const logins = approvers.map(({ login }) => login);
  return refuse('approval_needed', { ...request, title, subject, approvers: logins, above, repeats });
}

/** The logins of those who could approve an action, if it needs approval now. */
export async function readNeededApprovers(
  tx: Transaction,
  context: ActorContext,
  rules: Rules,
  asked: Pick<ToApprove, 'action' | 'amounts' | 'adjustments' | 'touched'>,
): Promise<string[]> {
  const compared = await compare(tx, context, rules, asked);
  if (compared !== undefined && aboveLimits(compared).length === 0) return [];
  const besides = context.actor.user?.user_id ?? null;
  const approvers = await readApprovers(tx, { partnerIds: partnersApproved(asked.touched), besides });
  return approvers.map(({ login }) => login);
}

/**
 * Undefined for an action that needs approval whatever was done before: its rule applies to any amount or has none in
 * its currency, or it states no amount.
 */
async function compare(
  tx: Transaction,
  { actor, environment }: ActorContext,
  rules: Rules,
  { action, amounts, adjustments, touched }: Pick<ToApprove, 'action' | 'amounts' | 'adjustments' | 'touched'>,
) {
  const { own, ruledAs: ruled = action } = rules;
  const shared = adjustments.length === 0 ? undefined : rules.adjustments;
  const adjusted = adjustments.map(({ amount }) => amount);
  if (!isLimited(own, amounts) || !isLimited(shared, adjusted)) return undefined;
  const partners = touched === 'all' ? null : touched;
  const userId = actor.user?.user_id ?? null;
  const now = environment.now().toISO();
  return {
    ...{ comparison: randomUUID(), action: ruled, days: COMPARED_DAYS, partners },
    amounts: own === undefined ? [] : await compareAmounts(tx, own, amounts, { action: ruled, userId, partners, now }),
    ...(shared !== undefined && { adjustments: await compareAdjustments(tx, shared, adjustments, now) }),
  };
}

const isLimited = (rule: ApprovalRule | undefined, amounts: readonly Amount[]) =>
  rule === undefined ||
  ('above' in rule &&
    amounts.length > 0 &&
    amounts.every((each) => each.isZero() || limitOf(rule, each) !== undefined));

export const limitOf = (rule: ApprovalRule, { currency }: Amount) =>
  'above' in rule ? rule.above[currency] : undefined;

async function compareAmounts(
  tx: Transaction,
  rule: ApprovalRule,
  amounts: readonly Amount[],
  by: Parameters<typeof readAmountsBefore>[1],
) {
  const before = await readAmountsBefore(tx, by);
  return amounts.flatMap((each) =>
    compared(rule, each, before.find(({ currency }) => currency === each.currency)?.amount),
  );
}

async function compareAdjustments(
  tx: Transaction,
  rule: ApprovalRule,
  adjustments: readonly Adjustment[],
  now: string,
) {
  const before = await readAdjustmentsBefore(tx, { partners: adjustments.map(({ partner }) => partner), now });
  const sums = new Map(before.map((each) => [`${each.partner} ${each.currency}`, each.amount]));
  return adjustments.flatMap(({ partner, amount }) =>
    compared(rule, amount, sums.get(`${partner} ${amount.currency}`)).map((each) => ({ partner, ...each })),
  );
}

/** An amount of zero without a limit is not compared. */
function compared(rule: ApprovalRule, moved: Amount, before = '0') {
  const limit = limitOf(rule, moved);
  const { currency } = moved;
  if (limit === undefined) return [];
  return [
    {
      ...{ currency, amount: (moved.isNegative() ? moved.negated() : moved).toString() },
      before: Amount.of(before, currency).toString(),
      above: Amount.of(limit, currency).toString(),
    },
  ];
}

const aboveLimits = ({ amounts, adjustments = [] }: Comparison) =>
  [...amounts, ...adjustments].filter(({ currency, amount, before, above }) =>
    Amount.of(above, currency).isLessThan(Amount.of(amount, currency).plus(Amount.of(before, currency))),
  );
