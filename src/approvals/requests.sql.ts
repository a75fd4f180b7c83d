import { APPROVAL_LOCKS, takeLockOf } from '#database/locks';
import {
  execute,
  executing,
  query,
  querying,
  queryingFirst,
  queryingOne,
  queryingValue,
  queryOne,
  setLocally,
  Transaction,
} from '#database/transaction';
import { Scope } from '#people/scope';
import { COMPARED_DAYS } from './amounts-before.ts';

export const DECISIONS = ['approve', 'reject', 'withdraw'] as const;
export type Decision = (typeof DECISIONS)[number];

/** A field of an object before and after the action; null means that the field had no value. */
export type PreviewedChange = Readonly<{
  of: string;
  field: string;
  before: string | null;
  after: string | null;
}>;

/** The effect of an action, as shown to the requester. */
export type StoredPreview = Readonly<{
  title: string;
  changes: readonly PreviewedChange[];
  amounts: readonly Readonly<{ currency: string; amount: string }>[];
  text: string;
  /** An approval does not perform the action: the requester repeats it with the same input. */
  repeats?: true;
}>;

export type RequestRow = Readonly<{
  request_id: number;
  action: string;
  input: unknown;
  subject: string;
  /** Null means the whole ledger. */
  partner_ids: string[] | null;
  preview: StoredPreview;
  preview_hash: string;
  requested_by: number;
  requester: string;
  reason: string | null;
  requested_at: string;
  expires_at: string;
  decision: Decision | null;
  decided_by: string | null;
  decision_reason: string | null;
  decided_at: string | null;
}>;

type RequestFilter = Readonly<{
  requestId?: number;
  undecided?: boolean;
  /** Selects only requests that are undecided and unexpired at this time. */
  waitingAt?: string | null;
  scope?: Scope;
  /** For paging: only lower ids. */
  after?: string | null;
  /** Null: without limit. */
  limit?: number | null;
}>;

/** The requests, latest first. One is in scope if it affects only partners of the scope. */
export function readRequests(
  tx: Transaction,
  { requestId, undecided = false, waitingAt = null, scope = null, after = null, limit = 1000 }: RequestFilter,
): Promise<RequestRow[]> {
  return query(
    tx,
    `SELECT r.request_id, r.action, personal_json(r.input) AS input, personal(r.subject) AS subject, r.partner_ids,
            personal_json(r.preview) AS preview, r.preview_hash, r.requested_by,
            personal(u.login) AS requester, r.reason, r.requested_at, r.expires_at, d.decision,
            personal(b.login) AS decided_by,
            d.reason AS decision_reason, d.recorded_at AS decided_at
     FROM approval_requests r JOIN users u ON u.user_id = r.requested_by
     LEFT JOIN approval_decisions d ON d.request_id = r.request_id LEFT JOIN users b ON b.user_id = d.decided_by
     WHERE (:requestId::bigint IS NULL OR r.request_id = :requestId::bigint) AND (NOT :undecided OR d.decision IS NULL)
       AND (:waitingAt::timestamptz IS NULL OR (d.decision IS NULL AND r.expires_at > :waitingAt::timestamptz))
       AND (:scope::text[] IS NULL OR r.partner_ids <@ :scope::text[])
       AND (:after::bigint IS NULL OR r.request_id < :after::bigint)
     ORDER BY r.request_id DESC LIMIT :limit`,
    { requestId: requestId ?? null, undecided, waitingAt, scope, after, limit },
  );
}

/** Locks a request, so that two decisions on it are made one after the other. */
export const lockRequest = executing<{ requestId: number }>(
  `SELECT pg_advisory_xact_lock(${APPROVAL_LOCKS}, hashint8(:requestId::bigint))`,
);

export type NewRequest = Readonly<{
  action: string;
  input: unknown;
  subject: string;
  partnerIds: readonly string[] | null;
  preview: StoredPreview;
  hash: string;
  userId: number;
  reason: string | null;
  now: string;
  expiresAt: string;
  eventId: number;
}>;

/** A user's pending requests for the same action. */
export const readOpenRequests = querying<
  { request_id: number; preview_hash: string; expires_at: string },
  Pick<NewRequest, 'action' | 'input' | 'userId' | 'now'>
>(`
  SELECT request_id, preview_hash, expires_at FROM approval_requests r
  WHERE requested_by = :userId AND action = :action AND personal_json(input) = :input::jsonb
    AND expires_at > :now::timestamptz
    AND NOT EXISTS (SELECT FROM approval_decisions d WHERE d.request_id = r.request_id)
  ORDER BY request_id`);

/**
 * The latest request of this user for the same action and effect that was decided in this way, has not expired, and
 * under which no event was recorded.
 */
export const readDecided = queryingFirst<
  { request_id: number; decided_by: string; reason: string | null },
  Pick<NewRequest, 'action' | 'input' | 'userId' | 'hash' | 'now'> & { readonly decision: Decision }
>(`
  SELECT r.request_id, personal(u.login) AS decided_by, d.reason
  FROM approval_requests r JOIN approval_decisions d USING (request_id) JOIN users u ON u.user_id = d.decided_by
  WHERE r.requested_by = :userId AND action = :action AND personal_json(input) = :input::jsonb
    AND preview_hash = :hash AND decision = :decision AND expires_at > :now::timestamptz
    AND NOT EXISTS (SELECT FROM audit_events e WHERE e.action = r.action AND e.event_id > r.event_id
                      AND e.details->'approval'->>'request' = r.request_id::text)
  ORDER BY r.request_id DESC LIMIT 1`);

/** Texts that name people, in the input and the preview of actions that concern them. */
const PERSONAL = `'"(login|name|user|payerAccount|account|reference|to|owner|bytes)"'`;
const SHOWN = `'"(of|before|after|text)"'`;
const CONCERN_PEOPLE = `'^(user|person|payment|credit|partner)[.]|^(work[.]assign|invoice[.]resend|dispute[.]open)$'`;

/** A request as it is stored and hashed: commitments replace its personal texts. */
export function keepTexts<Request extends Pick<NewRequest, 'action' | 'input' | 'subject' | 'preview'>>(
  tx: Transaction,
  request: Request,
): Promise<Request> {
  const { action, subject } = request;
  const [input, preview] = [JSON.stringify(request.input), JSON.stringify(request.preview)];
  return queryOne<Pick<NewRequest, 'input' | 'subject' | 'preview'>>(
    tx,
    `SELECT CASE WHEN acts_on_person(:action) THEN keep_text(:subject) ELSE :subject END AS subject,
            CASE WHEN :action ~ ${CONCERN_PEOPLE} THEN keep_texts_in(:input::jsonb, ${PERSONAL})
                 ELSE :input::jsonb END AS input,
            CASE WHEN :action ~ ${CONCERN_PEOPLE} THEN keep_texts_in(:preview::jsonb, ${SHOWN})
                 ELSE :preview::jsonb END AS preview`,
    { action, input, subject, preview },
  ).then((kept) => ({ ...request, ...kept }));
}

/**
 * The hash of a whole request. Its event records the hash, so that a change is noticed even before the next checkpoint.
 */
export const digestOfRequest = queryingValue<
  string,
  Omit<NewRequest, 'hash' | 'userId' | 'reason' | 'now' | 'eventId'>
>(`
  SELECT approval_digest(:action, :input::jsonb, :subject, :partnerIds::text[], :preview::jsonb,
                         :expiresAt::timestamptz) AS digest`);

export const insertRequest = queryingValue<number, NewRequest>(`
  INSERT INTO approval_requests
    (action, input, subject, partner_ids, preview, preview_hash, requested_by, reason, requested_at, expires_at,
     event_id)
  VALUES (:action, :input::jsonb, :subject, :partnerIds::text[], :preview::jsonb, :hash, :userId, :reason,
          :now::timestamptz, :expiresAt::timestamptz, :eventId)
  RETURNING request_id`);

export const insertDecision = executing<{
  requestId: number;
  requestedBy: number;
  decision: Decision;
  userId: number;
  reason: string | null;
  now: string;
  eventId: number;
}>(`
  INSERT INTO approval_decisions (request_id, requested_by, decision, decided_by, reason, recorded_at, event_id)
  VALUES (:requestId, :requestedBy, :decision, :userId, :reason, :now::timestamptz, :eventId)`);

/** All later events of this transaction name their approval. */
export async function actUnderApproval(tx: Transaction, requestId: number, approver: string) {
  const approval = { request: requestId, approved_by: approver };
  await setLocally(tx, 'reckoner.approval', JSON.stringify({ approval }));
}

/** An action that no one but its user could have approved. */
export interface OnePerson {
  readonly action: string;
  /** Null means the whole ledger. */
  readonly partners: readonly string[] | null;
}

/** All later events of this transaction state that no one else could have approved the action. */
export async function actAsOnePerson(tx: Transaction, alone: OnePerson) {
  await setLocally(tx, 'reckoner.approval', JSON.stringify({ one_person: alone }));
}

/** Counts the people who can approve everything, and those who can approve only for some partners. */
export const countApprovers = queryingOne<{ approvers: number; approvers_of_some: number }>(`
  SELECT count(*) FILTER (WHERE of_all) AS approvers, count(*) FILTER (WHERE NOT of_all) AS approvers_of_some
  FROM (SELECT bool_or(r.partner_id IS NULL) AS of_all FROM active_users u JOIN present_roles r USING (user_id)
        WHERE r.role = 'approver' AND u.kind = 'person' GROUP BY user_id) AS each`);

/** The people, other than the requester, who may approve. If partnerIds is null, for the whole ledger. */
export const readApprovers = querying<
  { login: string; name: string },
  { partnerIds: readonly string[] | null; besides: number | null }
>(`
  SELECT login, name FROM active_users
  WHERE user_id IS DISTINCT FROM :besides::bigint AND kind = 'person'
    AND may_approve(user_id, :partnerIds::text[])
  ORDER BY login`);

/**
 * Sums what a user did with an action in recent days without a second person. Locks, so that two actions of the user
 * are compared one after the other.
 */
export async function readAmountsBefore(
  tx: Transaction,
  given: { action: string; userId: number | null; partners: readonly string[] | null; now: string },
): Promise<{ currency: string; amount: string }[]> {
  const who = `${given.userId ?? ''} ${given.action}`;
  await takeLockOf(tx, APPROVAL_LOCKS, who);
  return query(
    tx,
    `SELECT a.currency, sum(a.amount) AS amount
     FROM (
       SELECT DISTINCT ON (details->'compared'->>'comparison') details->'compared'->'amounts' AS amounts
       FROM audit_events
       WHERE jsonb_exists(details, 'compared') AND user_id IS NOT DISTINCT FROM :userId::bigint
         AND details->'compared'->>'action' = :action
         AND occurred_at > :now::timestamptz - make_interval(days => :days::integer)
         AND (:partners::text[] IS NULL OR details->'compared'->'partners' = 'null'
              OR jsonb_exists_any(details->'compared'->'partners', :partners::text[]))) AS done
     CROSS JOIN LATERAL jsonb_to_recordset(done.amounts) AS a (currency text, amount numeric)
     GROUP BY a.currency`,
    { ...given, days: COMPARED_DAYS },
  );
}

/**
 * Sums, by partner and currency, what all users adjusted for these partners in recent days without a second person.
 * Locks, so that two adjustments for a partner are compared one after the other. Partners share 64 locks, because an
 * import may concern more than the server has room for.
 */
export async function readAdjustmentsBefore(
  tx: Transaction,
  given: { partners: readonly string[]; now: string },
): Promise<{ partner: string; currency: string; amount: string }[]> {
  await execute(
    tx,
    `SELECT pg_advisory_xact_lock(${APPROVAL_LOCKS}, lock)
     FROM (SELECT DISTINCT hashtext('adjustments') # (hashtext(partner) & 63) AS lock
           FROM unnest(:partners::text[]) AS partner ORDER BY lock) AS locks`,
    given,
  );
  return query(
    tx,
    `SELECT a.partner, a.currency, sum(a.amount) AS amount
     FROM (
       SELECT DISTINCT ON (details->'compared'->>'comparison') details->'compared'->'adjustments' AS adjustments
       FROM audit_events
       WHERE jsonb_exists(details, 'compared') AND jsonb_exists(details->'compared', 'adjustments')
         AND occurred_at > :now::timestamptz - make_interval(days => :days::integer)) AS done
     CROSS JOIN LATERAL jsonb_to_recordset(done.adjustments) AS a (partner text, currency text, amount numeric)
     WHERE a.partner = ANY (:partners::text[])
     GROUP BY a.partner, a.currency`,
    { ...given, days: COMPARED_DAYS },
  );
}
