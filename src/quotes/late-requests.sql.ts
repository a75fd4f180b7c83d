/** SQL of late requests (http/late-requests.ts). */
import { DueItems } from '#database/claims';
import { executing, querying } from '#database/transaction';
import { Caller } from './quotes.sql.ts';

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
  answer: string | null;
  answered_at: string | null;
}>;

type NewRequest = Caller & Readonly<{ operation: string; quoteId: string; body: string; now: string }>;

export const insertLateRequest = querying<LateRequest, NewRequest>(`
  INSERT INTO late_requests (partner_id, client_id, operation, quote_id, body, requested_at)
  VALUES (:partnerId, :clientId, :operation, :quoteId, :body, :now) RETURNING *`);

/** One request of a partner, or the first that are pending. */
export const readLateRequests = querying<
  LateRequest,
  Readonly<{ partnerId: string; requestId: string | null; most: number }>
>(`
  SELECT * FROM late_requests
  WHERE partner_id = :partnerId
    AND CASE WHEN :requestId::bigint IS NULL THEN answered_at IS NULL ELSE request_id = :requestId END
  ORDER BY request_id LIMIT :most`);

export const DUE_PARTNERS: DueItems = {
  kind: 'late_requests',
  due: (free) => `
    SELECT DISTINCT partner_id AS key FROM late_requests
    WHERE answered_at IS NULL AND ${free('partner_id')} ORDER BY partner_id LIMIT :most`,
};

/** Refused by a trigger if the request is answered already. */
export const answerLateRequest = executing<
  Readonly<{ requestId: number; status: number; answer: string; now: string }>
>(`
  UPDATE late_requests SET status = :status, answer = :answer, answered_at = :now
  WHERE request_id = :requestId`);
