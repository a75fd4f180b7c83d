import { querying } from '#database/transaction';
import { Month } from '#month';

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
  /** The rows of the two months, and the average price of their sales, which is null without sales. */
  entries: number;
  last_entries: number;
  average_price: string | null;
  last_average_price: string | null;
  reversals: number;
  last_reversals: number;
  /** The names of policies with rows in one of the two months only. */
  new_policies: readonly string[];
  ended_policies: readonly string[];
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
  WITH policies AS (
    SELECT d.partner_id, d.currency, max(l.policy_name) AS name, bool_or(d.month = :month) AS now,
           bool_or(d.month <> :month) AS before,
           coalesce(sum(l.count) FILTER (WHERE d.month = :month), 0) AS entries,
           coalesce(sum(l.count) FILTER (WHERE d.month <> :month), 0) AS last_entries,
           coalesce(sum(l.count) FILTER (WHERE d.month = :month AND l.kind = 'reversal'), 0) AS reversals,
           coalesce(sum(l.count) FILTER (WHERE d.month <> :month AND l.kind = 'reversal'), 0) AS last_reversals,
           sum(s.price) FILTER (WHERE d.month = :month) AS price,
           sum(s.price) FILTER (WHERE d.month <> :month) AS last_price
    FROM live_documents d JOIN document_lines l USING (document_id)
    CROSS JOIN LATERAL (
      SELECT CASE WHEN l.kind <> 'reversal' THEN document_sign(d.document) * l.spot_price END AS price) AS s
    WHERE d.month IN (:month, coalesce(:previous, :month)) AND d.purpose = 'month'
    GROUP BY d.partner_id, d.currency, l.policy_id
  ), reasons AS (
    SELECT partner_id, currency, sum(entries)::bigint AS entries, sum(last_entries)::bigint AS last_entries,
           round(sum(price) / nullif(sum(entries - reversals), 0), minor_digits(currency))::text AS average_price,
           round(sum(last_price) / nullif(sum(last_entries - last_reversals), 0), minor_digits(currency))::text
             AS last_average_price,
           sum(reversals)::bigint AS reversals, sum(last_reversals)::bigint AS last_reversals,
           coalesce(array_agg(name ORDER BY name) FILTER (WHERE NOT before), '{}') AS new_policies,
           coalesce(array_agg(name ORDER BY name) FILTER (WHERE NOT now), '{}') AS ended_policies
    FROM policies GROUP BY partner_id, currency
  )
  SELECT c.*, c.invoice_amount - c.last_month AS change, coalesce(r.entries, 0) AS entries,
         coalesce(r.last_entries, 0) AS last_entries, r.average_price, r.last_average_price,
         coalesce(r.reversals, 0) AS reversals, coalesce(r.last_reversals, 0) AS last_reversals,
         coalesce(r.new_policies, '{}') AS new_policies, coalesce(r.ended_policies, '{}') AS ended_policies
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
  LEFT JOIN reasons r USING (partner_id, currency)
  ORDER BY c.currency, abs(c.invoice_amount - c.last_month) DESC, c.partner_id`);

export const readTaxes = querying<{ currency: string; tax: string }, { month: Month }>(`
  SELECT t.currency, sum(document_sign(d.document) * t.tax) AS tax
  FROM live_documents d JOIN document_taxes t USING (document_id)
  WHERE d.month = :month AND d.purpose = 'month' GROUP BY t.currency ORDER BY t.currency`);

/** The partners that were active at the close, and had no rows in its month. */
export const readInactive = querying<{ partner_id: string; name: string }, { month: Month }>(`
  WITH close AS (SELECT closed_at FROM closed_months WHERE month = :month)
  SELECT p.partner_id, p.name FROM partners p
  WHERE (p.inactive_since IS NULL OR p.inactive_since > (SELECT closed_at FROM close))
    AND p.partner_id NOT IN (
      SELECT subject FROM audit_events
      WHERE action = 'partner.create' AND occurred_at > (SELECT closed_at FROM close))
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
