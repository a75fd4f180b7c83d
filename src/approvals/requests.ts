/**
 * Approvals: a user requests an action that needs a second person, and another user with the role approver approves or
 * rejects it. The requester can withdraw it. Refusals: approval_unknown, approval_decided, approval_expired,
 * approval_own, approval_of_another, approval_rejected, role_needed.
 */
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { ActorContext, recordEvent } from '#people/audit-events';
import { requireRole } from '#people/roles';
import {
  Decision,
  digestOfRequest,
  insertDecision,
  insertRequest,
  keepTexts,
  lockRequest,
  NewRequest,
  RequestRow,
  readApprovers,
  readDecided,
  readOpenRequests,
  readRequests,
} from './requests.sql.ts';

export const PAST: Readonly<Record<Decision, string>> = {
  approve: 'approved',
  reject: 'rejected',
  withdraw: 'withdrawn',
};

type RecordedRequest = Readonly<{
  request_id: number;
  expires_at: string;
  is_new: boolean;
}>;

/** A request without a partner can be decided only by an approver for all partners. */
export const partnersApproved = (partners: readonly string[] | 'all') =>
  partners === 'all' || partners.length === 0 ? null : partners;

/**
 * The pending request for an action with the same effect, found or created. A program may not repeat a rejected one
 * until the effect differs (approval_rejected). Earlier ones with another effect are withdrawn.
 */
export async function askForApproval(
  tx: Transaction,
  context: ActorContext,
  asked: Omit<NewRequest, 'now' | 'expiresAt' | 'eventId'>,
): Promise<RecordedRequest> {
  const { environment, settings, actor } = context;
  const at = environment.now();
  const now = at.toISO();
  const open = await readOpenRequests(tx, { ...asked, now });
  const same = open.find(({ preview_hash }) => preview_hash === asked.hash);
  if (same !== undefined) return { request_id: same.request_id, expires_at: same.expires_at, is_new: false };
  const rejected =
    actor.user?.kind === 'program' ? await readDecided(tx, { ...asked, now, decision: 'reject' }) : undefined;
  if (rejected !== undefined) throw refuse('approval_rejected', { ...rejected, reason: rejected.reason ?? '' });
  await withdrawAll(tx, context, open, 'requested again: the effect had changed');
  const expiresAt = at.plus({ days: settings.approvals_expire_days }).toISO();
  const kept = await keepTexts(tx, asked);
  const details = { action: asked.action, request_sha256: await digestOfRequest(tx, { ...kept, expiresAt }) };
  const event = { action: 'approval.request', subject: kept.subject, details, now };
  const eventId = await recordEvent(tx, actor, event);
  const request_id = await insertRequest(tx, { ...kept, now, expiresAt, eventId });
  return { request_id, expires_at: expiresAt, is_new: true };
}

/** A user's pending requests for an action, locked, so that decisions on them wait. */
export async function lockOpenRequests(
  tx: Transaction,
  asked: Parameters<typeof readOpenRequests>[1],
): Promise<{ request_id: number }[]> {
  for (const { request_id } of await readOpenRequests(tx, asked)) await lockRequest(tx, { requestId: request_id });
  return readOpenRequests(tx, asked);
}

export async function withdrawAll(
  tx: Transaction,
  context: ActorContext,
  requests: readonly { readonly request_id: number }[],
  reason: string,
) {
  for (const { request_id } of requests) {
    const request = await openRequest(tx, context, request_id, 'withdraw');
    await recordDecision(tx, context, request, { decision: 'withdraw', reason });
  }
}

/** A request that this user may decide in this way, locked until the end of the transaction. */
export async function openRequest(
  tx: Transaction,
  { environment, actor }: ActorContext,
  requestId: number,
  decision: Decision,
): Promise<RequestRow> {
  await lockRequest(tx, { requestId });
  const request = await requestNumbered(tx, requestId);
  const { user } = actor;
  if (user === undefined) throw refuse('user_unknown', { login: null, acting: true });
  const isOwn = user.user_id === request.requested_by;
  if (decision === 'withdraw' && !isOwn)
    throw refuse('approval_of_another', { request_id: requestId, requester: request.requester });
  if (decision !== 'withdraw') {
    if (isOwn) {
      const others = await readApprovers(tx, { partnerIds: request.partner_ids, besides: user.user_id });
      throw refuse('approval_own', { request_id: requestId, login: user.login, is_alone: others.length === 0 });
    }
    requireRole(user, 'approver', request.partner_ids ?? undefined);
  }
  const { decision: decided, decided_by, decided_at } = request;
  if (decided !== null && decided_by !== null && decided_at !== null) {
    throw refuse('approval_decided', { request_id: requestId, decision: PAST[decided], decided_by, decided_at });
  }
  if (decision === 'approve' && isExpired(request, environment.now().toMillis()))
    throw refuse('approval_expired', { request_id: requestId, expires_at: request.expires_at });
  return request;
}

export async function requestNumbered(tx: Transaction, requestId: number): Promise<RequestRow> {
  const [request] = await readRequests(tx, { requestId });
  if (request === undefined) throw refuse('approval_unknown', { request_id: requestId });
  return request;
}

const isExpired = ({ expires_at }: Pick<RequestRow, 'expires_at'>, now: number) => Date.parse(expires_at) <= now;

export type RequestStatus = 'waiting' | 'expired' | 'approved' | 'rejected' | 'withdrawn';

export const statusOf = (request: RequestRow, now: number) =>
  request.decision !== null
    ? (PAST[request.decision] as RequestStatus)
    : isExpired(request, now)
      ? 'expired'
      : 'waiting';

export async function recordDecision(
  tx: Transaction,
  { environment, actor }: ActorContext,
  { request_id: requestId, requested_by: requestedBy, requester, action, subject }: RequestRow,
  { decision, reason }: { decision: Decision; reason: string | null },
) {
  const { user } = actor;
  if (user === undefined) throw refuse('user_unknown', { login: null, acting: true });
  const now = environment.now().toISO();
  const details = { request: requestId, action, requested_by: requester, ...(reason !== null && { reason }) };
  const eventId = await recordEvent(tx, actor, { action: `approval.${decision}`, subject, details, now });
  await insertDecision(tx, { requestId, requestedBy, decision, userId: user.user_id, reason, now, eventId });
}
