/** The check of partner events: their index matches the rows and facts. */
import { inMonth } from './query.ts';

/**
 * Each row and fact up to the published marks is exactly one event of its partner, and the partner has no other events.
 * A partner's events are numbered without gaps in the order of the log. The check of a single month covers only the
 * rows of that month. The events of archived rows are counted.
 */
export const EVENTS_MATCH_FACTS = `marks AS (
  SELECT coalesce(max(log_no), 0) AS published FROM published_marks
), covered AS (
  SELECT month FROM archived_months, marks WHERE last_no <= published
), expected AS (
  SELECT r.entry_id, NULL::bigint AS log_no, r.partner_id, row_event_type(r.kind) AS type, r.posted_month
  FROM ONLY ledger_rows r, marks m
  WHERE r.entry_id <= m.published AND ${inMonth('r.posted_month')}
    AND r.posted_month NOT IN (SELECT posted_month FROM archived_posting_months)
  UNION ALL
  SELECT NULL, f.log_no, f.partner_id, f.type, NULL
  FROM partner_event_facts f, marks m WHERE f.log_no <= m.published AND :month::text IS NULL
), found AS (
  SELECT entry_id, log_no, partner_id, type, posted_month FROM partner_events e
  WHERE ${inMonth('e.posted_month')}
    AND (e.posted_month IS NULL OR e.posted_month NOT IN (SELECT posted_month FROM archived_posting_months))
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
  UNION ALL
  SELECT format('events of %s in %s, whose rows are archived', partner_id, month),
         format('are %s, for %s rows', coalesce(e.events, 0), coalesce(s.entries, 0))
  FROM (SELECT month, partner_id, sum(entries) AS entries FROM month_partners
        WHERE month IN (SELECT month FROM covered) GROUP BY month, partner_id) AS s
  FULL JOIN (SELECT p.month, n.partner_id, sum(n.events) AS events
             FROM (SELECT partner_id, posted_month, count(*) AS events
                   FROM partner_events GROUP BY partner_id, posted_month) AS n
             JOIN archived_postings p ON n.posted_month > p.after AND n.posted_month <= p.month
             WHERE p.month IN (SELECT month FROM covered) GROUP BY p.month, n.partner_id) AS e USING (month, partner_id)
  WHERE s.entries IS DISTINCT FROM e.events AND ${inMonth('month')}
)`;
