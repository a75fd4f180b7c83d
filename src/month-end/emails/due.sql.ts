/** E-mails triggered by events: which to queue, and their subjects. */
import { query, querying, Transaction } from '#database/transaction';
import { EmailSubject } from '#mail/email';
import { lastDay, Month } from '#month';
import { Method, RefundMethod } from '#payments/enums';

export type DueApproval = Readonly<{
  request_id: number;
  event_id: number;
}>;

export const readDueApprovalRequests = querying<DueApproval, { now: string }>(`
  SELECT r.request_id, r.event_id FROM approval_requests r
  WHERE r.expires_at > :now::timestamptz
    AND NOT EXISTS (SELECT FROM approval_decisions d WHERE d.request_id = r.request_id)
    AND NOT EXISTS (SELECT FROM emails e
                    WHERE e.kind = 'approval_request' AND e.approval_request_id = r.request_id)
  ORDER BY r.request_id`);

/** Requests by people that were decided or expired recently, without an e-mail about it. */
export const readDueApprovalDecisions = querying<DueApproval, { now: string; since: string }>(`
  SELECT r.request_id, coalesce(d.event_id, r.event_id) AS event_id
  FROM approval_requests r JOIN users u ON u.user_id = r.requested_by AND u.kind = 'person'
  LEFT JOIN approval_decisions d ON d.request_id = r.request_id
  WHERE CASE WHEN d.request_id IS NULL THEN r.expires_at BETWEEN :since::timestamptz AND :now::timestamptz
             ELSE d.decision <> 'withdraw' AND d.recorded_at >= :since::timestamptz END
    AND NOT EXISTS (SELECT FROM emails e
                    WHERE e.kind = 'approval_decision' AND e.approval_request_id = r.request_id)
  ORDER BY r.request_id`);

export const readMonthsWithoutReport = querying<{ month: Month }, { since: string }>(`
  SELECT month FROM closed_months m
  WHERE closed_at >= :since::timestamptz
    AND NOT EXISTS (SELECT FROM emails e WHERE e.kind = 'close_report' AND e.month = m.month) ORDER BY month`);

/** The changes of payment instructions that already have an e-mail. */
export const readAlarmedEvents = querying<{ event_id: number | null }>(
  `SELECT event_id FROM emails WHERE kind = 'instructions_changed' AND asked_for IS NULL`,
);

type Receipt = Readonly<{
  partner_id: string | null;
  currency: string;
  /** The amount received, without the parts that were recorded by mistake or twice. */
  amount: string;
  received_on: string;
  method: Method;
  reference: string;
  status: 'reversed' | 'applied' | 'unapplied' | 'partly_applied';
  paid_back: string;
  /** The part received that is not a payment of the partner. */
  elsewhere: string;
  unapplied: string;
  paid: readonly Readonly<{
    number: string;
    partner_id: string;
    partner_name: string;
    amount: string;
    bank_charges: string;
    balance: string;
    /** Whether the payer, or a company below it, owes the invoice. */
    of_family: boolean;
  }>[];
}>;

export async function readReceipt(tx: Transaction, paymentId: number): Promise<Receipt> {
  const [payment] = await query<Receipt>(
    tx,
    `SELECT b.partner_id, p.currency, (p.amount - r.mistaken)::text AS amount, p.received_on, p.method,
            personal(p.reference) AS reference, b.status,
            r.paid_back::text AS paid_back, r.elsewhere::text AS elsewhere, b.unapplied::text AS unapplied,
            coalesce((
              SELECT json_agg(json_build_object('number', d.number, 'partner_id', d.partner_id, 'partner_name', n.name,
                       'amount', a.amount::text, 'bank_charges', a.bank_charges::text, 'balance', o.balance::text,
                       'of_family', EXISTS (
                         WITH RECURSIVE above AS (
                           SELECT n.partner_id, n.parent
                           UNION
                           SELECT q.partner_id, q.parent FROM partners q JOIN above ON q.partner_id = above.parent)
                         SELECT FROM above WHERE above.partner_id = b.partner_id))
                     ORDER BY d.series, d.sequence)
              FROM (SELECT a.document_id, sum(a.amount) AS amount, sum(coalesce(s.amount, 0)) AS bank_charges
                    FROM live_payment_applications a LEFT JOIN small_differences s USING (payment_application_id)
                    WHERE a.payment_id = p.payment_id GROUP BY a.document_id) AS a
              JOIN documents d USING (document_id) JOIN document_balances o USING (document_id)
              JOIN partners n ON n.partner_id = d.partner_id), '[]') AS paid
     FROM payments p JOIN payment_balances b USING (payment_id)
     CROSS JOIN LATERAL (
       SELECT coalesce(sum(amount) FILTER (WHERE kind IN ('mistake', 'duplicate')), 0) AS mistaken,
              coalesce(sum(amount) FILTER (WHERE kind IN ('returned', 'refunded', 'disputed')), 0) AS paid_back,
              coalesce(sum(amount) FILTER (WHERE kind = 'other'), 0) AS elsewhere
       FROM live_payment_reversals WHERE payment_id = p.payment_id) AS r
     WHERE p.payment_id = :paymentId`,
    { paymentId },
  );
  if (payment === undefined) throw new Error(`no payment ${paymentId} to send a receipt for`);
  return payment;
}

/**
 * Recently applied payments whose current payer has no receipt, of monthly or carried-over invoices only: shares of
 * connected accounts get none.
 */
export const readDueReceipts = querying<
  { payment_id: number; partner_id: string; event_id: number; earlier: number },
  { since: string }
>(`
  SELECT a.payment_id, b.partner_id, min(a.event_id) AS event_id,
         (SELECT count(*) FROM emails e WHERE e.payment_id = a.payment_id) AS earlier
  FROM live_payment_applications a JOIN payment_balances b USING (payment_id) JOIN documents d USING (document_id)
  WHERE a.recorded_at >= :since::timestamptz AND d.purpose IN ('month', 'opening') AND b.partner_id IS NOT NULL
    AND NOT EXISTS (
      SELECT FROM emails e
      WHERE (e.payment_id, e.partner_id) = (a.payment_id, b.partner_id)
        AND (e.status <> 'withdrawn' OR e.dismissal_reason IS NOT NULL))
  GROUP BY a.payment_id, b.partner_id ORDER BY a.payment_id`);

type Refund = Readonly<{
  number: string;
  currency: string;
  amount: string;
  refunded_on: string;
  method: RefundMethod;
  reference: string;
  returned: boolean;
  balance: string;
}>;

export async function readRefund(tx: Transaction, refundId: number): Promise<Refund> {
  const [refund] = await query<Refund>(
    tx,
    `SELECT d.number, f.currency, f.amount, f.refunded_on, f.method, personal(f.reference) AS reference, o.balance,
            EXISTS (SELECT FROM credit_refund_returns b WHERE b.credit_refund_id = f.credit_refund_id) AS returned
     FROM credit_refunds f JOIN documents d USING (document_id) JOIN document_balances o USING (document_id)
     WHERE f.credit_refund_id = :refundId`,
    { refundId },
  );
  if (refund === undefined) throw new Error(`no refund ${refundId} to announce`);
  return refund;
}

export const readDueRefundNotices = querying<
  { credit_refund_id: number; partner_id: string; event_id: number },
  { since: string }
>(`
  SELECT f.credit_refund_id, f.partner_id, f.event_id FROM live_credit_refunds f
  WHERE f.recorded_at >= :since::timestamptz
    AND NOT EXISTS (SELECT FROM emails e WHERE e.credit_refund_id = f.credit_refund_id)
  ORDER BY f.credit_refund_id`);

/**
 * The statements due for the month whose books closed last, if that was recent: of partners that want statements, or
 * received a preliminary one.
 */
export const readDueStatements = querying<{ month: Month; partner_id: string }, { since: string }>(`
  SELECT c.month, p.partner_id
  FROM book_closes c CROSS JOIN partners p
  CROSS JOIN LATERAL (
    SELECT ((c.month || '-01')::date + interval '1 month' - interval '1 day')::date AS day) AS ended
  WHERE c.closed_at >= :since::timestamptz AND c.month = (SELECT max(month) FROM book_closes)
    AND (p.account_statement = 'monthly' AND p.inactive_since IS NULL
         OR EXISTS (SELECT FROM emails e
                    WHERE e.kind = 'account_statement' AND e.partner_id = p.partner_id AND e.day = ended.day
                      AND e.preliminary))
    AND NOT EXISTS (
      SELECT FROM emails e
      WHERE e.kind = 'account_statement' AND e.partner_id = p.partner_id AND e.day = ended.day
        AND NOT e.preliminary)
  ORDER BY p.partner_id`);

export type Statements = Readonly<{
  month: Month;
  preliminary: boolean;
}>;

/** The queued statements of a month, and whether each is unsent. */
export function readQueued(
  tx: Transaction,
  { month, preliminary }: Statements,
): Promise<(EmailSubject & { readonly unsent: boolean })[]> {
  return query(
    tx,
    `SELECT email_id, kind, document_id, partner_id, month, day, preliminary, addressed_to, payment_id,
            credit_refund_id, checkpoint_size, approval_request_id, user_event_id,
            status IN ('queued', 'sending', 'held') AS unsent
     FROM emails WHERE kind = 'account_statement' AND day = :day::date AND preliminary = :preliminary
     ORDER BY email_id`,
    { day: lastDay(month), preliminary },
  );
}

type UserEvent = Readonly<{
  event_id: number;
  action: string;
  occurred_at: string;
  login: string;
  name: string;
  /** The new passkey, the network of a sign-in, or who made a sign-in link. */
  detail: string;
}>;

/** The events to report: those since an instant that have no e-mail, or the event of an e-mail. */
export const readUserEvents = (
  tx: Transaction,
  given: { since?: string; eventId?: number | null },
): Promise<UserEvent[]> =>
  query(
    tx,
    `SELECT a.event_id, a.action, a.occurred_at, u.login, u.name,
            coalesce(personal(a.details->>'name'), personal(a.details->>'network'), personal(a.claimed_by),
                     a.os_user) AS detail
     FROM audit_events a JOIN active_users u ON u.login = personal(a.subject)
     WHERE a.action IN ('user.add_passkey', 'user.link', 'user.sign_in')
       AND CASE WHEN :eventId::bigint IS NULL
                THEN (a.action <> 'user.sign_in' OR a.details->>'elsewhere' = 'true')
                     AND a.occurred_at >= :since::timestamptz
                     AND NOT EXISTS (SELECT FROM emails e WHERE e.user_event_id = a.event_id)
                ELSE a.event_id = :eventId::bigint END
     ORDER BY a.event_id`,
    { since: null, eventId: null, ...given },
  );
