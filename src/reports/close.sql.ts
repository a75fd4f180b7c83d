import { querying } from '../database/transaction.ts';
import type { Month } from '../month.ts';

export type PartnerChange = Readonly<{
  partner_id: string;
  name: string;
  currency: string;
  /** The month's documents: the last document of each chain of replacements, unless this document is void. */
  documents: readonly string[];
  /**
   * The amount that the month bills. The amount of a credit note is negative. For a statement of a connected account,
   * the stated amount is included.
   */
  invoice_amount: string;
  last_month: string;
  change: string;
}>;

export type RecordedClose = Readonly<{
  month: Month;
  previous: Month | null;
  issued_on: string;
  closed_at: string;
  /** The program version that closed the month, and the SHA-256 of the schema's objects at that time. */
  program: string | null;
  schema: string | null;
  /**
   * The users who could approve at the time of the close, and the actions that needed approval; null outside
   * production.
   */
  approvals: Readonly<{
    /** The number of users who could approve everything. */
    approvers: number;
    /** The number of other users, who could approve for some partners. */
    approvers_of_some: number;
    rules: readonly string[];
    /** `approvers` of the previous close; null for the first close. */
    approvers_before: number | null;
  }> | null;
  /**
   * For each action, the number of events since the previous close that needed a second person when no second person
   * could approve.
   */
  done_alone: Readonly<Record<string, number>>;
}>;

export type LateRows = Readonly<{
  partner_id: string;
  name: string;
  month: Month;
  currency: string;
  entries: number;
  invoice_amount: string;
}>;

/** A document that was put on hold or whose e-mail was not sent, with the reason. */
export type UnsentDocument = Readonly<{
  number: string;
  partner_id: string;
  name: string;
  status: string;
  reason: string;
}>;

export const readRecordedClose = querying<RecordedClose, { month: Month | null }>(`
  SELECT month, previous, issued_on, closed_at, e.details->>'program' AS program, e.details->>'schema' AS schema,
         (SELECT json_build_object(
            'approvers', e.details->'approvers', 'approvers_of_some', e.details->'approvers_of_some',
            'rules', e.details->'approval_rules', 'approvers_before', before.details->'approvers')
          FROM installation WHERE environment = 'production' AND jsonb_exists(e.details, 'approvers')) AS approvals,
         (SELECT coalesce(json_object_agg(action, count ORDER BY action), '{}')
          FROM (SELECT details->'one_person'->>'action' AS action, count(*) FROM audit_events
                WHERE jsonb_exists(details, 'one_person') AND event_id <= e.event_id
                  AND event_id > coalesce(before.event_id, 0)
                GROUP BY 1) AS alone) AS done_alone
  FROM closed_months
  LEFT JOIN LATERAL (
    SELECT event_id, details FROM audit_events
    WHERE action = 'month.close' AND subject = month ORDER BY event_id DESC LIMIT 1
  ) AS e ON true
  LEFT JOIN LATERAL (
    SELECT event_id, details FROM audit_events
    WHERE action = 'month.close' AND subject = previous ORDER BY event_id DESC LIMIT 1
  ) AS before ON true
  WHERE :month::text IS NULL OR month = :month ORDER BY month DESC LIMIT 1`);

export const readChanges = querying<PartnerChange, { month: Month; previous: Month | null }>(`
  SELECT c.*, c.invoice_amount - c.last_month AS change
  FROM (
  SELECT d.partner_id, p.name, d.currency,
         coalesce(array_agg(d.number ORDER BY d.series, d.sequence) FILTER (WHERE d.month = :month),
           '{}') AS documents,
         coalesce(sum(s.amount) FILTER (WHERE d.month = :month), 0) AS invoice_amount,
         coalesce(sum(s.amount) FILTER (WHERE d.month <> :month), 0) AS last_month
  FROM live_documents d JOIN partners p USING (partner_id)
  CROSS JOIN LATERAL (SELECT document_sign(d.document) * d.invoice_amount AS amount) AS s
  WHERE d.month IN (:month, coalesce(:previous, :month)) AND d.purpose = 'month'
  GROUP BY d.partner_id, p.name, d.currency) AS c
  ORDER BY c.currency, abs(c.invoice_amount - c.last_month) DESC, c.partner_id`);

export const readTaxes = querying<{ currency: string; tax: string }, { month: Month }>(`
  SELECT t.currency, sum(document_sign(d.document) * t.tax) AS tax
  FROM live_documents d JOIN document_taxes t USING (document_id)
  WHERE d.month = :month AND d.purpose = 'month' GROUP BY t.currency ORDER BY t.currency`);

export const readInactive = querying<{ partner_id: string; name: string }, { month: Month }>(`
  SELECT p.partner_id, p.name FROM partners p
  WHERE p.inactive_since IS NULL
    AND NOT EXISTS (SELECT FROM month_partners m WHERE m.partner_id = p.partner_id AND m.month = :month)
  ORDER BY p.partner_id`);

/** The month's rows that belong to earlier months, by the lines of its first documents, which bill all of its rows. */
export const readLate = querying<LateRows, { month: Month }>(`
  SELECT d.partner_id, p.name, l.month, d.currency, sum(l.count)::bigint AS entries,
         sum(document_sign(d.document) * l.invoice_amount) AS invoice_amount
  FROM documents d JOIN document_lines l USING (document_id) JOIN partners p USING (partner_id)
  WHERE d.month = :month AND d.purpose = 'month' AND d.replaces IS NULL AND l.month < :month
  GROUP BY d.partner_id, p.name, l.month, d.currency ORDER BY d.partner_id, l.month, d.currency`);

export const readHeld = querying<UnsentDocument, { month: Month }>(`
  SELECT d.number, d.partner_id, d.partner_name AS name,
         CASE WHEN h.hold_id IS NULL THEN s.status ELSE 'on hold' END AS status,
         coalesce(nullif(h.reason, ''), s.reason, '') AS reason
  FROM live_documents d
  LEFT JOIN LATERAL (
    SELECT e.delivery AS status, e.reason FROM latest_emails e WHERE e.document_id = d.document_id) AS s ON true
  LEFT JOIN current_holds h ON h.document_id = d.document_id
  WHERE d.month = :month AND (h.hold_id IS NOT NULL OR s.status IN ('held', 'failed', 'uncertain', 'bounced'))
  ORDER BY d.series, d.sequence`);
