/** SQL of late requests: calls of partners that need rows of archived months (migrations/005_quotes.sql). */
import type { DueItems } from '../database/claims.ts';
import { execute, query, queryOne, type Transaction } from '../database/transaction.ts';
import type { Caller } from './quotes.sql.ts';

export interface LateCall {
  readonly operation: string;
  readonly quoteId: string;
  /** JSON. */
  readonly body: string;
}

export type LateRequest = Readonly<{
  request_id: number;
  partner_id: string;
  client_id: string;
  operation: string;
  quote_id: string;
  body: string;
  requested_at: string;
  /** Null while the request is pending. */
  status: number | null;
  /** JSON. */
  answer: string | null;
  answered_at: string | null;
}>;

export const insertLateRequest = (
  tx: Transaction,
  call: LateCall & Caller & { readonly now: string },
): Promise<LateRequest> =>
  queryOne(
    tx,
    `INSERT INTO late_requests (partner_id, client_id, operation, quote_id, body, requested_at)
     VALUES (:partnerId, :clientId, :operation, :quoteId, :body, :now::timestamptz) RETURNING *`,
    { ...call },
  );

/** The requests of a partner in their order: one, or the first that are pending. */
export const readLateRequests = (
  tx: Transaction,
  asked: { readonly partnerId: string } & ({ readonly requestId: number } | { readonly most: number }),
): Promise<LateRequest[]> =>
  query(
    tx,
    `SELECT * FROM late_requests
     WHERE partner_id = :partnerId AND CASE WHEN :requestId::bigint IS NULL THEN answered_at IS NULL
                                            ELSE request_id = :requestId::bigint END
     ORDER BY request_id LIMIT :most`,
    { requestId: null, most: 1, ...asked },
  );

/** The partners with pending requests. */
export const DUE_PARTNERS: DueItems = {
  kind: 'late_requests',
  due: (free) => `
    SELECT DISTINCT partner_id AS key FROM late_requests
    WHERE answered_at IS NULL AND ${free('partner_id')} ORDER BY partner_id LIMIT :most`,
};

/** Throws if the request is answered already. */
export async function answerLateRequest(
  tx: Transaction,
  { request_id: requestId }: LateRequest,
  answer: { readonly status: number; readonly answer: string; readonly now: string },
): Promise<void> {
  const answered = await execute(
    tx,
    `UPDATE late_requests SET status = :status, answer = :answer, answered_at = :now::timestamptz
     WHERE request_id = :requestId AND answered_at IS NULL`,
    { ...answer, requestId },
  );
  if (answered !== 1) throw new Error(`late request ${requestId} is answered already`);
}
