/** The check of partner events: their index matches the rows and facts. */
import { inMonth } from './query.ts';

/**
 * Each row and fact up to the published marks is exactly one event of its partner, and the partner has no other events.
 * A partner's events are numbered without gaps in the order of the log. The check of a single month covers only the
 * rows of that month.
 */
export const EVENTS_MATCH_FACTS = `marks AS (
  SELECT coalesce(max(log_no), 0) AS published FROM published_marks
), expected AS (
  SELECT r.entry_id, NULL::bigint AS log_no, r.partner_id, row_event_type(r.kind) AS type, r.posted_month
  FROM ledger_rows r, marks m WHERE r.entry_id <= m.published AND ${inMonth('r.posted_month')}
  UNION ALL
  SELECT NULL, f.log_no, f.partner_id, f.type, NULL
  FROM partner_event_facts f, marks m WHERE f.log_no <= m.published AND :month::text IS NULL
), found AS (
  SELECT entry_id, log_no, partner_id, type, posted_month FROM partner_events e WHERE ${inMonth('e.posted_month')}
), inspected AS (
  SELECT entry_id, log_no, sum(expected) AS expected, sum(found) AS found, min(partner_id) AS partner_id,
         (min(partner_id), min(type), min(posted_month)) IS NOT DISTINCT FROM
         (max(partner_id), max(type), max(posted_month)) AS agrees
  FROM (SELECT *, 1 AS expected, 0 AS found FROM expected UNION ALL SELECT *, 0, 1 FROM found) AS both_sides
  GROUP BY entry_id, log_no
), positions AS (
  SELECT partner_id, position, row_number() OVER of_partner AS expected,
         coalesce(entry_id, log_no) < max(coalesce(entry_id, log_no)) OVER of_partner AS out_of_order
  FROM partner_events WHERE :month::text IS NULL
  WINDOW of_partner AS (PARTITION BY partner_id ORDER BY position)
), differences AS (
  SELECT coalesce('row ' || entry_id, 'fact ' || log_no) || ' of ' || partner_id AS subject,
         CASE WHEN found = 0 THEN 'is not published'
              WHEN expected = 0 THEN 'is published, but nothing like it is recorded'
              WHEN found > 1 THEN format('is published %s times', found)
              ELSE 'is published for another partner, as another type or in another month' END AS detail
  FROM inspected WHERE expected <> 1 OR found <> 1 OR NOT agrees
  UNION ALL
  SELECT 'events of ' || partner_id,
         format('have position %s as their %s. event%s', position, expected,
                CASE WHEN out_of_order THEN ', which was recorded before an earlier one' END)
  FROM (SELECT DISTINCT ON (partner_id) * FROM positions WHERE position <> expected OR out_of_order
        ORDER BY partner_id, position) AS first_wrong
)`;
