/**
 * Whether an act may be done now: its user has the role, over all partners that it touches, and a second person approves
 * where the settings ask for one. Refusals: role_needed, approval_needed, approval_needs_users, approval_outdated, and those
 * of deciding (people/approvals.ts).
 */
import type { ApprovalRule } from '../config/approvals.ts';
import type { Transaction } from '../database/transaction.ts';
import { Refusal, refuse } from '../errors/refusals.ts';
import { failpoint } from '../failpoint.ts';
import { Amount } from '../money.ts';
import { actUnderApproval, type PreviewedChange, readApprovers } from '../people/approval-queries.ts';
import { askForApproval, openRequest, partnersApproved, recordDecision } from '../people/approvals.ts';
import type { Actor } from '../people/audit-events.ts';
import { NOBODY, requireRole, scopeOf } from '../people/roles.ts';
import { actAs } from '../people/users.ts';
import type { Act, ActContext, Partners } from './act.ts';
import { consequenceAside, digestOf, storedPreview } from './consequence.ts';
import { inputJson } from './fields.ts';

/** The approval under which an act is done. */
export interface Approval {
  readonly requestId: number;
  readonly approver: Actor;
  readonly reason: string | null;
}

interface AskedApproval extends Approval {
  /** An earlier transaction of the same run has recorded it. */
  readonly isRecorded: boolean;
}

/**
 * Refuses a user without the role; from here on the events of the transaction are the user's. A preview asks no more. Jobs
 * need no role, nor does what a job asked for (`isAsked`).
 */
export async function admit<Input>(
  tx: Transaction,
  context: ActContext,
  act: Act<Input>,
  input: Input,
  { isAsked = false }: { readonly isAsked?: boolean } = {},
): Promise<void> {
  const { actor } = context;
  if (actor.user === undefined) return;
  const isJob = actor.user.kind === 'program' && (actor.via === 'job' || isAsked);
  if (!isJob) {
    const partners = await partnersTouched(tx, context, act, input);
    requireRole(actor.user, act.role, partners === 'all' ? undefined : partners);
  }
  await actAs(tx, actor);
}

/** For a role over some partners, what is not there is as what another partner has. */
async function partnersTouched<Input>(
  tx: Transaction,
  context: ActContext,
  act: Act<Input>,
  input: Input,
): Promise<Partners> {
  try {
    return await act.partners(tx, input, context);
  } catch (error) {
    const { user } = context.actor;
    if (error instanceof Refusal && user !== undefined && scopeOf(user, act.role) !== null) return [NOBODY];
    throw error;
  }
}

/**
 * Called in the transaction of the act, before it does anything. A refusal that it returns keeps the act from being done;
 * what this wrote, such as a request for approval, is committed all the same.
 */
export async function permit<Input>(
  tx: Transaction,
  context: ActContext,
  act: Act<Input>,
  input: Input,
  approval?: AskedApproval,
): Promise<Refusal | undefined> {
  await admit(tx, context, act, input, { isAsked: approval !== undefined });
  if (approval !== undefined) {
    if (!approval.isRecorded) await approve(tx, context, act, input, approval);
    await actUnderApproval(tx, approval.requestId, approval.approver.user?.login ?? '');
    return undefined;
  }
  const rule = context.settings.approvals[act.name];
  return rule === undefined ? undefined : ask(tx, context, act, input, rule);
}

/** Records the approval, if the act would still do what the request shows. */
async function approve<Input>(
  tx: Transaction,
  context: ActContext,
  act: Act<Input>,
  input: Input,
  { requestId, approver, reason }: Approval,
): Promise<void> {
  const request = await openRequest(tx, { ...context, actor: approver }, requestId, 'approve');
  const consequence = await consequenceAside(tx, context, act, input);
  if (digestOf(consequence) !== request.preview_hash) {
    const [shown, now] = [inWords(request.preview.changes), inWords(consequence.changes)];
    throw refuse('approval_outdated', { request_id: requestId, shown, now });
  }
  await recordDecision(tx, { ...context, actor: approver }, request, { decision: 'approve', reason });
  failpoint('approval.decided');
}

export const inWords = (changes: readonly PreviewedChange[]): string =>
  changes.map(({ of, field, before, after }) => `${of} ${field} ${before ?? 'none'} → ${after ?? 'none'}`).join(', ') ||
  'no figure changes';

/** Makes the request, or finds the one that waits, where the rule applies. */
async function ask<Input>(
  tx: Transaction,
  context: ActContext,
  act: Act<Input>,
  input: Input,
  rule: ApprovalRule,
): Promise<Refusal | undefined> {
  const consequence = await consequenceAside(tx, context, act, input);
  if (!applies(rule, consequence.amounts)) return undefined;
  const { user } = context.actor;
  if (user === undefined) return refuse('approval_needs_users', { act: act.name });
  const { reason } = input as { readonly reason?: unknown };
  const partnerIds = partnersApproved(await act.partners(tx, input, context));
  const subject = act.subject(input);
  const request = await askForApproval(tx, context, {
    ...{ act: act.name, input: inputJson(input), subject, partnerIds },
    ...{ preview: storedPreview(act, input, consequence), hash: digestOf(consequence), userId: user.user_id },
    reason: typeof reason === 'string' ? reason : null,
  });
  failpoint('approval.requested');
  const approvers = await readApprovers(tx, { partnerIds, besides: user.user_id });
  const logins = approvers.map(({ login }) => login);
  return refuse('approval_needed', { ...request, title: act.title, subject, approvers: logins });
}

/** An act that states no amount, or one in a currency that the rule does not name, needs approval. */
const applies = (rule: ApprovalRule, amounts: readonly Amount[]): boolean =>
  'always' in rule || amounts.length === 0 || amounts.some((each) => isAbove(each, rule.above[each.currency]));

const isAbove = (amount: Amount, limit: string | undefined): boolean =>
  limit === undefined || Amount.of(limit, amount.currency).isLessThan(amount.isNegative() ? amount.negated() : amount);
