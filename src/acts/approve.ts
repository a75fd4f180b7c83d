/** Deciding on requests for approval. An approval does the act as that of whoever asked. Refusals: those of people/approvals.ts. */
import type { Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import type { Decision, RequestRow } from '../people/approval-queries.ts';
import { openRequest, recordDecision, requestNumbered } from '../people/approvals.ts';
import { readActiveUser } from '../people/user-queries.ts';
import { actAs } from '../people/users.ts';
import type { Act, ActContext, Report } from './act.ts';
import type { Consequence } from './consequence.ts';
import { ACTS } from './registry.ts';
import { previewAct, type RunOptions, runAct } from './run.ts';

/** Records the approval and does the act in one transaction; what follows an act follows afterwards. */
export async function approveRequest(
  context: ActContext,
  requestId: number,
  { reason, ...options }: { reason: string | null } & Omit<RunOptions, 'approval'>,
): Promise<Report> {
  const { database, actor } = context;
  const { request, requester } = await database.reading((tx) => readAsked(tx, context, requestId));
  const approval = { requestId, approver: actor, reason };
  const report = await runAct(requester, actOf(request), request.input, { ...options, approval });
  const { decision } = await database.reading((tx) => requestNumbered(tx, requestId));
  // An act of several transactions that has nothing to do any more begins none.
  if (decision === null) {
    const [shown, now] = ['something to do', 'nothing to do'] as const;
    throw refuse('approval_outdated', { request_id: requestId, shown, now });
  }
  return report;
}

/** What a request would do now. Refuses as its act does. */
export async function previewRequest(context: ActContext, requestId: number): Promise<Consequence> {
  const { request, requester } = await context.database.reading((tx) => readAsked(tx, context, requestId));
  return previewAct(requester, actOf(request), request.input, { isAsked: true });
}

/** Rejects or withdraws a request. */
export function endRequest(
  context: ActContext,
  requestId: number,
  decision: Exclude<Decision, 'approve'>,
  reason: string | null,
): Promise<RequestRow> {
  return context.database.transaction(async (tx) => {
    await actAs(tx, context.actor);
    const request = await openRequest(tx, context, requestId, decision);
    await recordDecision(tx, context, request, { decision, reason });
    return request;
  });
}

/** The request, and whoever asked as the actor of this process. */
async function readAsked(
  tx: Transaction,
  context: ActContext,
  requestId: number,
): Promise<{ request: RequestRow; requester: ActContext }> {
  const request = await requestNumbered(tx, requestId);
  const { requester: login, requested_by } = request;
  const user = await readActiveUser(tx, login);
  // The login may be another user's by now.
  if (user?.user_id !== requested_by) throw refuse('user_unknown', { login, acting: false });
  return { request, requester: { ...context, actor: { ...context.actor, claimedBy: login, user } } };
}

/** The act of a request. Throws for one that this version does not have. */
export function actOf({ act: name }: Pick<RequestRow, 'act'>): Act {
  const act = ACTS.get(name);
  if (act === undefined) throw new Error(`this version has no act ${name}`);
  return act;
}
