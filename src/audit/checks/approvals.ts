/**
 * The check of approvals. Each approved request was decided by another user, who was an approver of what it touches at that
 * time. Each event of an act that was done under an approval names its request, which was approved before and is of the
 * user who acted; and each approved request that changes something has such an event. Requests and decisions are those of
 * their events, which state the user and what was asked for.
 *
 * What it cannot decide: whether an act without an approval needed one. The thresholds are compared with the amounts of an
 * act before it is done, which its event does not state, and a process may have begun with earlier settings. How the
 * rules changed is in the settings' events (`reckoner settings history`).
 */
export const ACTS_APPROVED = `inspected AS MATERIALIZED (
  SELECT r.request_id, r.partner_ids, r.requested_by, d.decided_by, d.decision, d.recorded_at, d.fact_id, r.expires_at,
         r.fact_id AS request_fact_id
  FROM approval_requests r JOIN approval_decisions d ON d.request_id = r.request_id
), roles AS (
  SELECT i.request_id, u.partner_id FROM inspected i CROSS JOIN LATERAL (
    SELECT DISTINCT ON (partner_id, source) partner_id, act FROM user_roles
    WHERE user_id = i.decided_by AND role = 'approver' AND user_roles.fact_id < i.fact_id
    ORDER BY partner_id, source, user_role_id DESC) AS u
  WHERE u.act = 'grant'
    AND NOT EXISTS (SELECT FROM user_ends e WHERE e.user_id = i.decided_by AND e.fact_id < i.fact_id)
), acts AS (
  SELECT event_id, action, subject, user_id, fact_id, details->'approval'->>'request' AS request FROM audit_events
  WHERE jsonb_exists(details, 'approval')
), requests AS (
  SELECT r.*, e.user_id AS event_user, e.details->>'request_sha256' AS stated,
         approval_digest(act, input, r.subject, partner_ids, preview, expires_at) AS found
  FROM approval_requests r LEFT JOIN audit_events e ON e.event_id = r.event_id
), differences AS (
  SELECT format('request %s', request_id) AS subject,
         format('was decided (%s) by user %s, who was no approver of what it touches then', decision, decided_by)
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
  WHERE (decision = 'withdraw') <> (decided_by = requested_by) OR fact_id < request_fact_id
     OR (decision = 'approve' AND recorded_at >= expires_at)
  UNION ALL
  SELECT format('event %s', a.event_id),
         format('is %s of %s by user %s under approval of request %s, which is not approved for this user', a.action,
                a.subject, a.user_id, a.request)
  FROM acts a
  WHERE NOT EXISTS (SELECT FROM inspected i
                    WHERE i.request_id::text = a.request AND i.decision = 'approve' AND i.requested_by = a.user_id
                      AND i.fact_id < a.fact_id)
  UNION ALL
  SELECT format('request %s', request_id),
         format('asks for %s of %s by user %s (%s); its event %s states user %s (%s)', act, subject, requested_by,
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
         format('was approved, and no event of %s by user %s was recorded under it', r.act, r.requested_by)
  FROM requests r JOIN inspected i USING (request_id)
  WHERE i.decision = 'approve' AND jsonb_array_length(r.preview->'changes') > 0
    AND NOT EXISTS (SELECT FROM acts a WHERE a.request = r.request_id::text AND a.user_id = r.requested_by)
  UNION ALL
  SELECT format('event %s', e.event_id),
         format('is %s of %s, and there is no such request or decision', e.action, e.subject)
  FROM audit_events e
  WHERE e.action LIKE 'approval.%'
    AND NOT EXISTS (SELECT FROM approval_requests r WHERE r.event_id = e.event_id)
    AND NOT EXISTS (SELECT FROM approval_decisions d WHERE d.event_id = e.event_id)
)`;
