/**
 * The checks of approvals that need more than the facts (the log has only a hash of what a request previewed), or sums of
 * amounts in events.
 *
 * The event of a request states the digest of what was requested. Each approved request that changes something has an
 * event of its action, unless the requester has to repeat the action. If an event states that one person acted alone, no one else could have approved it at that time.
 */
export const ACTIONS_APPROVED = `inspected AS MATERIALIZED (
  SELECT r.*, e.details->>'request_sha256' AS stated, d.decision,
         approval_digest(r.action, input, r.subject, partner_ids, preview, expires_at) AS found
  FROM approval_requests r LEFT JOIN audit_events e ON e.event_id = r.event_id
  LEFT JOIN approval_decisions d ON d.request_id = r.request_id
), differences AS (
  SELECT format('request %s', request_id) AS subject,
         format('asks for %s of %s (%s); its event %s states %s', action, subject, found, event_id,
                coalesce(stated, 'nothing')) AS detail
  FROM inspected WHERE stated IS DISTINCT FROM found
  UNION ALL
  SELECT format('request %s', request_id),
         format('was approved, and no event of %s by user %s was recorded under it', action, requested_by)
  FROM inspected i
  WHERE decision = 'approve' AND jsonb_array_length(preview->'changes') > 0 AND NOT jsonb_exists(preview, 'repeats')
    AND NOT EXISTS (SELECT FROM audit_events a WHERE jsonb_exists(a.details, 'approval')
                      AND a.details->'approval'->>'request' = i.request_id::text AND a.user_id = i.requested_by)
  UNION ALL
  SELECT format('event %s', e.event_id),
         format('is %s of %s, done by one person; user %s could have approved it', e.action, e.subject, other.user_id)
  FROM audit_events e CROSS JOIN LATERAL (
    SELECT a.user_id FROM approvers_before(e.log_no) AS a
    WHERE a.user_id IS DISTINCT FROM e.user_id
    GROUP BY a.user_id
    HAVING bool_or(a.partner_id IS NULL)
        OR coalesce(jsonb_exists_all(jsonb_agg(a.partner_id), ARRAY(SELECT jsonb_array_elements_text(
             nullif(e.details->'one_person'->'partners', 'null')))), false)
           AND e.details->'one_person'->'partners' <> 'null'
    ORDER BY a.user_id LIMIT 1) AS other
  WHERE jsonb_exists(e.details, 'one_person')
)`;

/**
 * Each action under a rule with amounts states what was compared: the amount of the action, the sum of the same user's
 * earlier actions of this kind for the same partner, and the limit of the rule. The sum matches the events, the limit
 * matches the recorded settings, and amount and sum together do not exceed it.
 *
 * A process may have started with the earlier settings, so a changed rule applies from an hour after its change was
 * recorded.
 */
export const ACTIONS_COMPARED = `rules AS MATERIALIZED (
  SELECT c.change->>'field' AS field, c.change->>'new' AS value, e.log_no, e.occurred_at,
         lead(e.log_no) OVER (PARTITION BY c.change->>'field' ORDER BY e.log_no) AS until_fact_id
  FROM audit_events e CROSS JOIN LATERAL jsonb_array_elements(e.details->'changes') AS c (change)
  WHERE e.action IN ('settings.change', 'settings.adopt') AND c.change->>'field' LIKE 'approvals.%'
), compared AS MATERIALIZED (
  SELECT DISTINCT ON (details->'compared'->>'comparison') event_id, log_no, user_id, occurred_at,
         details->'compared'->>'comparison' AS comparison, details->'compared'->>'action' AS action,
         (details->'compared'->>'days')::integer AS days, details->'compared'->'partners' AS partners,
         details->'compared'->'amounts' AS amounts
  FROM audit_events WHERE jsonb_exists(details, 'compared')
  ORDER BY details->'compared'->>'comparison', event_id
), parts AS MATERIALIZED (
  SELECT c.*, a.currency, a.amount, a.before, a.above
  FROM compared c
  CROSS JOIN LATERAL jsonb_to_recordset(c.amounts) AS a (currency text, amount numeric, before numeric, above numeric)
), inspected AS (
  SELECT p.event_id, p.log_no, p.occurred_at, p.action, p.currency, p.amount, p.before, p.above,
         (SELECT coalesce(sum(q.amount), 0) FROM parts q
          WHERE q.action = p.action AND q.currency = p.currency AND q.user_id IS NOT DISTINCT FROM p.user_id
            AND q.log_no < p.log_no AND q.occurred_at > p.occurred_at - make_interval(days => p.days)
            AND (q.partners = 'null' OR p.partners = 'null' OR jsonb_exists_any(
                   q.partners, ARRAY(SELECT jsonb_array_elements_text(nullif(p.partners, 'null')))))) AS found
  FROM parts p
), differences AS (
  SELECT format('event %s', event_id) AS subject,
         format('is %s of %s %s without a second person, after %s (it states %s) in the days before, above %s', action,
                amount, currency, found, before, above) AS detail
  FROM inspected WHERE found <> before OR amount + found > above
  UNION ALL
  SELECT format('event %s', i.event_id),
         format('states that %s needs a second person above %s %s; the settings say %s', i.action, i.above, i.currency,
                r.value)
  FROM inspected i JOIN rules r ON r.field = format('approvals.%s.above.%s', i.action, i.currency)
    AND r.log_no < i.log_no AND (r.until_fact_id IS NULL OR i.log_no < r.until_fact_id)
  WHERE r.occurred_at < i.occurred_at - interval '1 hour' AND r.value::numeric IS DISTINCT FROM i.above
)`;
