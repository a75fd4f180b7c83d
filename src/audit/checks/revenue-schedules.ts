/** The check of the parts of covered sales (docs/revenue.md). */
import { inMonth } from './query.ts';

/**
 * The parts that each close over cover recorded are those of its rows. Months whose rows are in a cold store are left
 * out, as are the sales of a policy in a month in which a sale that is there was reversed without its own cover.
 */
export const REVENUE_SCHEDULES_OF_ROWS = `closes AS (
  SELECT m.month, m.previous FROM closed_months m
  JOIN audit_events e ON e.action = 'month.close' AND e.subject = m.month AND e.details ->> 'recognition' = 'over_cover'
  WHERE ${inMonth('m.month')} AND NOT EXISTS (SELECT FROM archived_months a WHERE a.month = m.month)
), unknown AS (
  SELECT c.month, e.partner_id, e.policy_id
  FROM closes c JOIN ledger_rows e ON e.posted_month > coalesce(c.previous, '') AND e.posted_month <= c.month
  JOIN archived_sales s ON s.partner_id = e.partner_id AND s.own_id IN (e.quote_id, e.requote_id)
  WHERE e.kind = 'reversal' AND e.cover_from IS NULL
), inspected AS (
  SELECT month, partner_id, policy_id, currency, release_month, sum(kept) AS kept, sum(derived) AS derived
  FROM (
    SELECT s.month, s.partner_id, s.policy_id, s.currency, s.release_month, s.amount AS kept, 0 AS derived
    FROM revenue_schedules s WHERE ${inMonth('s.month')} AND NOT EXISTS (
      SELECT FROM archived_months a WHERE a.month = s.month)
    UNION ALL
    SELECT c.month, p.partner_id, p.policy_id, p.currency, p.release_month, 0, p.amount
    FROM closes c CROSS JOIN LATERAL covered_parts(c.previous, c.month) AS p
  ) AS both_ways
  WHERE (month, partner_id, policy_id) NOT IN (SELECT month, partner_id, policy_id FROM unknown)
  GROUP BY month, partner_id, policy_id, currency, release_month
), differences AS (
  SELECT format('sales of %s, %s in %s, earned in %s', partner_id, policy_id, month, release_month) AS subject,
         format('kept as %s %s; by the rows it is %s', trim_scale(kept), currency, trim_scale(derived)) AS detail
  FROM inspected WHERE kept <> derived
)`;
