/**
 * Decisions on requests for approval. An approval performs the action in the requester's name. Refusals: those of
 * approvals/requests.ts.
 */

import { openRequest, recordDecision, requestNumbered, withdrawAll } from '#approvals/requests';
import { Decision, RequestRow, readRequests } from '#approvals/requests.sql';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { actAs } from '#people/users';
import { readActiveUser } from '#people/users.sql';
import { minuteOf } from '#text';
import { Action, ActionContext } from './action.ts';
import { FullReport } from './consequence.ts';
import { ACTIONS } from './loaded.ts';
import { Preview, previewAction, RunOptions, runAction } from './run.ts';

type Approved = FullReport &
  Readonly<{
    /** False if the requester must repeat the action. */
    isDone: boolean;
  }>;

/**
 * Records the approval and performs the action in one transaction. E-mails are sent after this transaction. An action
 * whose input was not kept is performed when the requester repeats it.
 */
export async function approveRequest(
  context: ActionContext,
  requestId: number,
  { reason, ...options }: { reason: string | null } & Omit<RunOptions, 'approval'>,
): Promise<Approved> {
  const { database, actor } = context;
  const { request, requester } = await database.reading((tx) => readAsked(tx, context, requestId));
  if (request.preview.repeats) {
    await endRequest(context, requestId, 'approve', reason);
    const until = minuteOf(request.expires_at);
    const text = `It is done when ${request.requester} repeats it with the same files, until ${until}.`;
    return { isDone: false, json: null, text, sentences: text };
  }
  const approval = { requestId, approver: actor, reason };
  return { isDone: true, ...(await runAction(requester, actionOf(request), request.input, { ...options, approval })) };
}

/**
 * Returns the effect that a requested action would have now. Refuses what the action refuses. Undefined if the input
 * was not kept.
 */
export async function previewRequest(context: ActionContext, requestId: number): Promise<Preview | undefined> {
  const { request, requester } = await context.database.reading((tx) => readAsked(tx, context, requestId));
  if (request.preview.repeats) return undefined;
  return previewAction(requester, actionOf(request), request.input, { isAsked: true });
}

export function endRequest(
  context: ActionContext,
  requestId: number,
  decision: Decision,
  reason: string | null,
): Promise<RequestRow> {
  return context.database.transaction(async (tx) => {
    await actAs(tx, context.actor);
    const request = await openRequest(tx, context, requestId, decision);
    await recordDecision(tx, context, request, { decision, reason });
    return request;
  });
}

/**
 * Withdraws a program's own pending requests for an action, except the request `waiting`. These requests are no longer
 * needed, because a person did the action meanwhile or no rule applied. Returns the ids of the withdrawn requests.
 */
export function withdrawDone(context: ActionContext, action: Action, waiting: number | undefined): Promise<number[]> {
  const { actor, environment, database } = context;
  const { user } = actor;
  if (user?.kind !== 'program') return Promise.resolve([]);
  return database.transaction(async (tx) => {
    const open = await readRequests(tx, { undecided: true });
    const done = open.filter(
      ({ request_id, action: name, requested_by, expires_at }) =>
        name === action.name &&
        requested_by === user.user_id &&
        request_id !== waiting &&
        Date.parse(expires_at) > environment.now().toMillis(),
    );
    if (done.length > 0) await actAs(tx, actor);
    await withdrawAll(tx, context, done, 'it was done in the meantime');
    return done.map(({ request_id }) => request_id);
  });
}

async function readAsked(
  tx: Transaction,
  context: ActionContext,
  requestId: number,
): Promise<{ request: RequestRow; requester: ActionContext }> {
  const request = await requestNumbered(tx, requestId);
  const { requester: login, requested_by } = request;
  const user = await readActiveUser(tx, login);
  // The login may belong to a different user today.
  if (user?.user_id !== requested_by) throw refuse('user_unknown', { login, acting: false });
  return { request, requester: { ...context, actor: { ...context.actor, claimedBy: login, user } } };
}

export function actionOf({ action: name }: Pick<RequestRow, 'action'>) {
  const action = ACTIONS.get(name);
  if (action === undefined) throw new Error(`this version has no action ${name}`);
  return action;
}
