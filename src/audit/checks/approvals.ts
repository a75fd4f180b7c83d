/**
 * The check of approvals. Each approved request was decided by a different user, who at that time was allowed to
 * approve for everything that the action affects. Each event of an approved action names a request that the same user
 * made and that was approved earlier. Each approved request that changes something has such an event. Requests and
 * decisions match their events, which state the user and the request. If an event states that one person acted alone,
 * no one else could have approved it at that time. The next check tests whether an action without an approval needed an
 * approval.
 */
export const ACTIONS_APPROVED = `inspected AS MATERIALIZED (
  SELECT r.request_id, r.partner_ids, r.requested_by, d.decided_by, d.decision, d.recorded_at, d.log_no, r.expires_at,
         r.log_no AS request_fact_id
  FROM approval_requests r JOIN approval_decisions d ON d.request_id = r.request_id
), roles AS (
  SELECT i.request_id, a.partner_id
  FROM inspected i JOIN LATERAL approvers_before(i.log_no) AS a ON a.user_id = i.decided_by
), actions AS (
  SELECT event_id, action, subject, user_id, log_no, details->'approval'->>'request' AS request FROM audit_events
  WHERE jsonb_exists(details, 'approval')
), requests AS (
  SELECT r.*, e.user_id AS event_user, e.details->>'request_sha256' AS stated,
         approval_digest(r.action, input, r.subject, partner_ids, preview, expires_at) AS found
  FROM approval_requests r LEFT JOIN audit_events e ON e.event_id = r.event_id
), differences AS (
  SELECT format('request %s', request_id) AS subject,
         format('was decided (%s) by user %s, who could not approve what it touches then', decision, decided_by)
           AS detail
  FROM inspected i
  WHERE decision <> 'withdraw' AND EXISTS (
    SELECT FROM unnest(coalesce(i.partner_ids, ARRAY[NULL::text])) AS touched (partner_id)
    WHERE NOT EXISTS (SELECT FROM roles r WHERE r.request_id = i.request_id
                        AND (r.partner_id IS NULL OR r.partner_id = touched.partner_id)))
  UNION ALL
  SELECT format('request %s', request_id),
         format('was made by user %s and decided (%s) by user %s at %s; it expired at %s', requested_by, decision,
                decided_by, recorded_at, expires_at)
  FROM inspected
  WHERE (decision = 'withdraw') <> (decided_by = requested_by) OR log_no < request_fact_id
     OR (decision = 'approve' AND recorded_at >= expires_at)
  UNION ALL
  SELECT format('event %s', a.event_id),
         format('is %s of %s by user %s under approval of request %s, which is not approved for this user', a.action,
                a.subject, a.user_id, a.request)
  FROM actions a
  WHERE NOT EXISTS (SELECT FROM inspected i
                    WHERE i.request_id::text = a.request AND i.decision = 'approve' AND i.requested_by = a.user_id
                      AND i.log_no < a.log_no)
  UNION ALL
  SELECT format('request %s', request_id),
         format('asks for %s of %s by user %s (%s); its event %s states user %s (%s)', action, subject, requested_by,
                found, event_id, coalesce(event_user::text, 'none'), coalesce(stated, 'nothing'))
  FROM requests WHERE stated IS DISTINCT FROM found OR event_user IS DISTINCT FROM requested_by
  UNION ALL
  SELECT format('request %s', d.request_id),
         format('was decided (%s) by user %s; its event %s is %s by user %s', d.decision, d.decided_by, d.event_id,
                coalesce(e.action, 'missing'), coalesce(e.user_id::text, 'none'))
  FROM approval_decisions d LEFT JOIN audit_events e USING (event_id)
  WHERE e.user_id IS DISTINCT FROM d.decided_by OR e.action IS DISTINCT FROM 'approval.' || d.decision
     OR e.details->>'request' IS DISTINCT FROM d.request_id::text
  UNION ALL
  SELECT format('request %s', r.request_id),
         format('was approved, and no event of %s by user %s was recorded under it', r.action, r.requested_by)
  FROM requests r JOIN inspected i USING (request_id)
  WHERE i.decision = 'approve' AND jsonb_array_length(r.preview->'changes') > 0
    AND NOT EXISTS (SELECT FROM actions a WHERE a.request = r.request_id::text AND a.user_id = r.requested_by)
  UNION ALL
  SELECT format('event %s', e.event_id),
         format('is %s of %s, and there is no such request or decision', e.action, e.subject)
  FROM audit_events e
  WHERE e.action LIKE 'approval.%'
    AND NOT EXISTS (SELECT FROM approval_requests r WHERE r.event_id = e.event_id)
    AND NOT EXISTS (SELECT FROM approval_decisions d WHERE d.event_id = e.event_id)
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
 * matches the recorded settings, and amount and sum together do not exceed it. The event of an action under a rule
 * states these figures, the approval, or that no one else could approve it.
 *
 * A process may have started with the earlier settings, so a changed rule applies from an hour after its change was
 * recorded.
 */
export const ACTIONS_COMPARED = `rules AS MATERIALIZED (
  SELECT c.change->>'field' AS field, c.change->>'new' AS value, e.log_no, e.occurred_at,
         lead(e.log_no) OVER (PARTITION BY c.change->>'field' ORDER BY e.log_no) AS until_fact_id
  FROM audit_events e CROSS JOIN LATERAL jsonb_array_elements(e.details->'changes') AS c (change)
  WHERE e.action = 'settings.change' AND c.change->>'field' LIKE 'approvals.%'
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
), bare AS (
  SELECT event_id, action, subject, log_no, occurred_at FROM audit_events e
  WHERE user_id IS NOT NULL AND NOT jsonb_exists_any(details, '{compared,approval,one_person}')
    AND action IN (SELECT split_part(field, '.', 2) || '.' || split_part(field, '.', 3) FROM rules)
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
  UNION ALL
  SELECT format('event %s', b.event_id),
         format('is %s of %s, which needs a second person by the settings (%s), without approval or comparison',
                b.action, b.subject, string_agg(r.field, ', ' ORDER BY r.field))
  FROM bare b JOIN rules r ON r.field LIKE 'approvals.' || b.action || '.%' AND r.value IS NOT NULL
    AND r.log_no < b.log_no AND (r.until_fact_id IS NULL OR b.log_no < r.until_fact_id)
  WHERE r.occurred_at < b.occurred_at - interval '1 hour'
  GROUP BY b.event_id, b.action, b.subject
)`;
