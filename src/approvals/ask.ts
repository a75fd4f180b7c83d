/**
 * Requests and records the approval of an action. A rule does not apply while only the user could approve, and the
 * events of the action record that. Refusals: approval_needed, approval_outdated, and those of deciding (requests.ts).
 */
import { randomUUID } from 'node:crypto';
import type { ApprovalRule } from '../config/settings.ts';
import type { Transaction } from '../database/transaction.ts';
import { type Refusal, refuse } from '../errors/refusals.ts';
import { failpoint } from '../failpoint.ts';
import { Amount } from '../money.ts';
import type { Actor, ActorContext } from '../people/audit-events.ts';
import { lockUsers } from '../people/users.ts';
import { actAsCompared, COMPARED_DAYS, type ComparedAmount, type Comparison } from './amounts-before.ts';
import {
  actAsOnePerson,
  actUnderApproval,
  type OnePerson,
  type PreviewedChange,
  readAmountsBefore,
  readApprovers,
  type StoredPreview,
} from './requests.sql.ts';
import {
  askForApproval,
  lockOpenRequests,
  openRequest,
  partnersApproved,
  recordDecision,
  withdrawAll,
} from './requests.ts';

export interface Approval {
  readonly requestId: number;
  readonly approver: Actor;
  readonly reason: string | null;
}

/**
 * What the first transaction of an action was allowed to do. Later transactions of the action must stay within this
 * permission.
 */
export interface Permission {
  /** The digest (digestOf) of the approved or compared effect. The action must have exactly this effect. */
  readonly digest?: string | undefined;
  /** All changes that the action was going to make; undefined if nothing was approved or compared. */
  readonly changes?: readonly PreviewedChange[];
  readonly compared?: Comparison | undefined;
  /**
   * This is set if no one else could approve the action. A later transaction checks again, because someone may have
   * become an approver.
   */
  readonly alone?: OnePerson | undefined;
}

interface ToApprove {
  readonly action: string;
  /** A JSON value. */
  readonly input: unknown;
  readonly subject: string;
  readonly touched: readonly string[] | 'all';
  readonly preview: StoredPreview;
  /** The digest of the preview. An approved action is done only if its effect still has this digest. */
  readonly hash: string;
  readonly amounts: readonly Amount[];
  readonly reason: string | null;
}

/**
 * Records the approval. If the action then does something other than what the request shows, the approval is rolled
 * back with the transaction.
 */
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

/** The refusal if the action would no longer do what its request shows. */
export const outdated = (
  requestId: number,
  shown: readonly PreviewedChange[],
  now: readonly PreviewedChange[],
): Refusal => refuse('approval_outdated', { request_id: requestId, shown: inWords(shown), now: inWords(now) });

const inWords = (changes: readonly PreviewedChange[]): string =>
  changes.map(({ of, field, before, after }) => `${of} ${field} ${before ?? 'none'} → ${after ?? 'none'}`).join(', ') ||
  'no figure changes';

/**
 * If the rule applies and someone else can approve the action, finds or creates the pending request. Otherwise, the
 * events record the compared amounts, or that no one else could approve the action.
 */
export async function ask(
  tx: Transaction,
  context: ActorContext,
  rule: ApprovalRule,
  { action, input, subject, touched, preview, amounts, hash, reason }: ToApprove,
): Promise<Refusal | Permission> {
  const { user } = context.actor;
  const { changes, title } = preview;
  const compared = await compare(tx, context, { action, rule, amounts, touched });
  if (compared?.amounts.every(isWithin)) {
    await actAsCompared(tx, compared);
    return { changes, compared };
  }
  const partnerIds = partnersApproved(touched);
  const asked = { action, input };
  let approvers = await readApprovers(tx, { partnerIds, besides: user?.user_id ?? null });
  let waiting: readonly { readonly request_id: number }[] = [];
  if (approvers.length === 0) {
    // Requests are locked before users, as in a decision: a different order could deadlock.
    const now = context.environment.now().toISO();
    if (user !== undefined) waiting = await lockOpenRequests(tx, { ...asked, userId: user.user_id, now });
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
  const given = { ...asked, subject, partnerIds, preview, hash, userId: user.user_id, reason };
  const request = await askForApproval(tx, context, given);
  failpoint('approval.requested');
  const logins = approvers.map(({ login }) => login);
  const above = compared?.amounts.filter((each) => !isWithin(each)) ?? [];
  return refuse('approval_needed', { ...request, title, subject, approvers: logins, above });
}

/**
 * Compares each amount with its threshold. Returns undefined for an action that always needs approval: the rule has no
 * amount in the action's currency, or the action states no amount.
 */
async function compare(
  tx: Transaction,
  { actor, environment }: ActorContext,
  {
    action,
    rule,
    amounts,
    touched,
  }: { action: string; rule: ApprovalRule; amounts: readonly Amount[]; touched: ToApprove['touched'] },
): Promise<Comparison | undefined> {
  if ('always' in rule || amounts.length === 0 || amounts.some(({ currency }) => rule.above[currency] === undefined)) {
    return undefined;
  }
  const partners = touched === 'all' ? null : touched;
  const userId = actor.user?.user_id ?? null;
  const before = await readAmountsBefore(tx, { action, userId, partners, now: environment.now().toISO() });
  return {
    ...{ comparison: randomUUID(), action, days: COMPARED_DAYS, partners },
    amounts: amounts.map((each) => {
      const { currency } = each;
      const sum = before.find((earlier) => earlier.currency === currency)?.amount ?? '0';
      return {
        ...{ currency, amount: (each.isNegative() ? each.negated() : each).toString() },
        before: Amount.of(sum, currency).toString(),
        above: Amount.of(rule.above[currency] as string, currency).toString(),
      };
    }),
  };
}

const isWithin = ({ currency, amount, before, above }: ComparedAmount): boolean =>
  !Amount.of(above, currency).isLessThan(Amount.of(amount, currency).plus(Amount.of(before, currency)));
