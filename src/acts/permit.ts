/**
 * Whether an act may be done now: its user has the role, over all partners that it touches, it does what was confirmed, and
 * a second person approves where the settings ask for one. While nobody but the user could approve, a rule does not bind, and
 * the act's events say so. Refusals: role_needed, approval_needed, approval_outdated, and those of deciding
 * (people/approvals.ts).
 */
import { randomUUID } from 'node:crypto';
import type { ApprovalRule } from '../config/approvals.ts';
import type { Transaction } from '../database/transaction.ts';
import { Refusal, refuse } from '../errors/refusals.ts';
import { failpoint } from '../failpoint.ts';
import { Amount } from '../money.ts';
import {
  actAsOnePerson,
  actUnderApproval,
  type OnePerson,
  type PreviewedChange,
  readApprovers,
} from '../people/approval-queries.ts';
import {
  actAsCompared,
  COMPARED_DAYS,
  type ComparedAmount,
  type Comparison,
  readAmountsBefore,
} from '../people/approval-thresholds.ts';
import {
  askForApproval,
  lockOpenRequests,
  openRequest,
  partnersApproved,
  recordDecision,
  withdrawAll,
} from '../people/approvals.ts';
import type { Actor } from '../people/audit-events.ts';
import { NOBODY, requireRole, scopeOf } from '../people/roles.ts';
import { actAs, lockUsers } from '../people/users.ts';
import type { Act, ActContext, Partners } from './act.ts';
import { type Consequence, consequenceAside, digestOf, storedPreview } from './consequence.ts';
import { inputJson } from './fields.ts';

/** The approval under which an act is done. */
export interface Approval {
  readonly requestId: number;
  readonly approver: Actor;
  readonly reason: string | null;
}

/** The act would do something else than its preview showed. Nothing was done. */
export class OutdatedPreview extends Error {}

/** What was agreed before an act is done. */
export interface Agreed {
  /** A second person approves: the act is that of whoever asked for it. */
  readonly approval?: Approval | undefined;
  /** The digest of the preview that was confirmed. */
  readonly shown?: string | undefined;
}

/** What the first transaction of an act was permitted to do. */
export interface Permission {
  /** Of what was approved or compared (digestOf): the act does that and nothing else. */
  readonly digest?: string | undefined;
  /** All that the act was going to change; undefined where nothing was approved or compared. */
  readonly changes?: readonly PreviewedChange[];
  readonly compared?: Comparison | undefined;
  /** Nobody else could approve it. A later transaction asks again: there may be somebody by then. */
  readonly alone?: OnePerson | undefined;
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
  if (!isJob && !(await act.withoutRole?.(tx, context, input))) {
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
 * Called in each transaction of the act, before it does anything. Where a rule asks for a second person, it computes what the
 * act is about to do: in the first transaction the whole of it, in a later one the rest, which must be part of that. A refusal
 * that it returns keeps the act from being done; what this wrote, such as a request for approval, is committed all the same.
 * Throws OutdatedPreview. What was approved or confirmed is compared by the caller with what the act then did.
 */
export async function permit<Input>(
  tx: Transaction,
  context: ActContext,
  act: Act<Input>,
  input: Input,
  { approval, shown, earlier }: Agreed & { readonly earlier?: Permission | undefined } = {},
): Promise<Refusal | Permission> {
  await admit(tx, context, act, input, { isAsked: approval !== undefined });
  if (approval !== undefined) return approve(tx, context, approval);
  const rule = context.settings.approvals[act.name];
  if (rule === undefined) return {};
  const consequence = await consequenceAside(tx, context, act, input);
  const digest = digestOf(consequence);
  if (shown !== undefined && digest !== shown) throw new OutdatedPreview();
  const isRest = earlier?.changes !== undefined && isPartOf(consequence.changes, earlier.changes);
  if (isRest && earlier.alone === undefined) {
    if (earlier.compared !== undefined) await actAsCompared(tx, earlier.compared);
    return earlier;
  }
  const answer = await ask(tx, context, act, input, rule, consequence);
  return answer instanceof Refusal ? answer : { digest, ...answer };
}

const isPartOf = (rest: readonly PreviewedChange[], whole: readonly PreviewedChange[]): boolean => {
  const known = new Set(whole.map(written));
  return rest.every((change) => known.has(written(change)));
};
const written = ({ of, field, before, after }: PreviewedChange): string => JSON.stringify([of, field, before, after]);

/** Records the approval. It is undone with the transaction if the act does something else than the request shows. */
async function approve(
  tx: Transaction,
  context: ActContext,
  { requestId, approver, reason }: Approval,
): Promise<Permission> {
  const deciding = { ...context, actor: approver };
  const request = await openRequest(tx, deciding, requestId, 'approve');
  await recordDecision(tx, deciding, request, { decision: 'approve', reason });
  failpoint('approval.decided');
  await actUnderApproval(tx, requestId, approver.user?.login ?? '');
  return { digest: request.preview_hash, changes: request.preview.changes };
}

/** The refusal of an approval whose act would not do what the request shows. */
export const outdated = (
  requestId: number,
  shown: readonly PreviewedChange[],
  now: readonly PreviewedChange[],
): Refusal => refuse('approval_outdated', { request_id: requestId, shown: inWords(shown), now: inWords(now) });

export const inWords = (changes: readonly PreviewedChange[]): string =>
  changes.map(({ of, field, before, after }) => `${of} ${field} ${before ?? 'none'} → ${after ?? 'none'}`).join(', ') ||
  'no figure changes';

/**
 * Makes the request, or finds the one that waits, where the rule applies and somebody else may approve. Else the events say
 * what was compared, or that nobody else could approve it.
 */
async function ask<Input>(
  tx: Transaction,
  context: ActContext,
  act: Act<Input>,
  input: Input,
  rule: ApprovalRule,
  consequence: Consequence,
): Promise<Refusal | Permission> {
  const { user } = context.actor;
  const touched = await act.partners(tx, input, context);
  const compared = await compare(tx, context, { act: act.name, rule, amounts: consequence.amounts, touched });
  if (compared?.amounts.every(isWithin)) {
    await actAsCompared(tx, compared);
    return { changes: consequence.changes, compared };
  }
  const partnerIds = partnersApproved(touched);
  const asked = { act: act.name, input: inputJson(input) };
  let approvers = await readApprovers(tx, { partnerIds, besides: user?.user_id ?? null });
  let waiting: readonly { readonly request_id: number }[] = [];
  if (approvers.length === 0) {
    // Before the users, as whoever decides does.
    const now = context.environment.now().toISO();
    if (user !== undefined) waiting = await lockOpenRequests(tx, { ...asked, userId: user.user_id, now });
    // Nobody becomes an approver until the act is done.
    await lockUsers(tx);
    approvers = await readApprovers(tx, { partnerIds, besides: user?.user_id ?? null });
  }
  if (approvers.length === 0) {
    await withdrawAll(tx, context, waiting, 'done alone: nobody else could approve it any more');
    const alone = { act: act.name, partners: partnerIds };
    await actAsOnePerson(tx, alone);
    return { changes: consequence.changes, alone };
  }
  if (user === undefined) throw refuse('user_unknown', { login: null, acting: true });
  const { reason } = input as { readonly reason?: unknown };
  const subject = act.subject(input);
  const request = await askForApproval(tx, context, {
    ...{ ...asked, subject, partnerIds },
    ...{ preview: storedPreview(act, input, consequence), hash: digestOf(consequence), userId: user.user_id },
    reason: typeof reason === 'string' ? reason : null,
  });
  failpoint('approval.requested');
  const logins = approvers.map(({ login }) => login);
  const above = compared?.amounts.filter((each) => !isWithin(each)) ?? [];
  return refuse('approval_needed', { ...request, title: act.title, subject, approvers: logins, above });
}

/**
 * Each amount with what the same user did by the same act for the same partner in the last days without a second person.
 * Undefined for an act that needs approval whatever it moves: by a rule without amounts, where it states none, or in a
 * currency that the rule does not name.
 */
async function compare(
  tx: Transaction,
  { actor, environment }: ActContext,
  { act, rule, amounts, touched }: { act: string; rule: ApprovalRule; amounts: readonly Amount[]; touched: Partners },
): Promise<Comparison | undefined> {
  if ('always' in rule || amounts.length === 0 || amounts.some(({ currency }) => rule.above[currency] === undefined)) {
    return undefined;
  }
  const partners = touched === 'all' ? null : touched;
  const userId = actor.user?.user_id ?? null;
  const before = await readAmountsBefore(tx, { act, userId, partners, now: environment.now().toISO() });
  return {
    ...{ comparison: randomUUID(), act, days: COMPARED_DAYS, partners },
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
