-- Approvals: a user's request with its preview, and another user's decision.

-- The hash of a request, in the form in which the request's event states it.
CREATE FUNCTION approval_digest(
  action text, input jsonb, subject text, partner_ids text[], preview jsonb, expires_at timestamptz
) RETURNS text IMMUTABLE LANGUAGE sql
RETURN encode(sha256(convert_to(
  jsonb_build_array(action, input, subject, partner_ids, preview, extract(epoch FROM expires_at))::text, 'UTF8')), 'hex');

CREATE TABLE approval_requests (
  request_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- The action's name and input, as in src/actions.
  action text NOT NULL CONSTRAINT approval_request_action_form CHECK (action ~ '^[a-z_]+[.][a-z_]+$'),
  input jsonb NOT NULL,
  subject text NOT NULL,
  -- The partners that the action affects. NULL means the whole ledger.
  partner_ids text[] COLLATE "C" CONSTRAINT approval_request_names_partners CHECK (cardinality(partner_ids) > 0),
  -- The effect: changes, amounts, and a report in words. The hash covers changes and amounts.
  preview jsonb NOT NULL,
  preview_hash text NOT NULL CONSTRAINT approval_request_hash_form CHECK (preview_hash ~ '^[0-9a-f]{64}$'),
  requested_by bigint NOT NULL REFERENCES users,
  reason text,
  requested_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  event_id bigint NOT NULL REFERENCES audit_events,
  CONSTRAINT approval_request_expires_later CHECK (expires_at > requested_at),
  CONSTRAINT approval_request_of_its_user UNIQUE (request_id, requested_by)
);
CALL make_fact('approval_requests');

ALTER TABLE emails ADD CONSTRAINT email_of_an_approval
  FOREIGN KEY (approval_request_id) REFERENCES approval_requests;

CREATE TABLE approval_decisions (
  request_id bigint PRIMARY KEY,
  requested_by bigint NOT NULL,
  decision text NOT NULL CONSTRAINT approval_decision_known CHECK (decision IN ('approve', 'reject', 'withdraw')),
  decided_by bigint NOT NULL REFERENCES users,
  reason text,
  CONSTRAINT approval_decision_of_its_request
    FOREIGN KEY (request_id, requested_by) REFERENCES approval_requests (request_id, requested_by),
  -- The requester can only withdraw the request, and no other user can withdraw it.
  CONSTRAINT approval_by_a_second_person CHECK ((decision = 'withdraw') = (decided_by = requested_by)),
  CONSTRAINT approval_rejection_has_reason CHECK (decision <> 'reject' OR reason IS NOT NULL)
);
CALL make_fact_of_event('approval_decisions');

-- True if a person is an approver for all of these partners. If partner_ids is NULL, the person must be an approver for
-- the whole ledger.
CREATE FUNCTION may_approve(approver bigint, partner_ids text[]) RETURNS boolean STABLE LANGUAGE sql
RETURN EXISTS (SELECT FROM users u WHERE u.user_id = approver AND u.kind = 'person')
  AND NOT EXISTS (
    SELECT FROM unnest(coalesce(partner_ids, ARRAY[NULL::text])) AS touched (partner_id)
    WHERE NOT EXISTS (SELECT FROM present_roles r
                      WHERE r.user_id = approver AND r.role = 'approver'
                        AND (r.partner_id IS NULL OR r.partner_id = touched.partner_id)));

-- The users who were approvers when a fact was recorded, with their partners. NULL means all partners.
CREATE FUNCTION approvers_before(fact bigint) RETURNS TABLE (user_id bigint, partner_id text) STABLE LANGUAGE sql
BEGIN ATOMIC
  SELECT DISTINCT r.user_id, r.partner_id
  FROM (SELECT DISTINCT ON (g.user_id, g.partner_id, g.source) g.user_id, g.partner_id, g.action FROM user_roles g
        WHERE g.role = 'approver' AND g.log_no < fact
        ORDER BY g.user_id, g.partner_id, g.source, g.user_role_id DESC) AS r
  WHERE r.action = 'grant' AND NOT EXISTS (SELECT FROM user_ends e WHERE e.user_id = r.user_id AND e.log_no < fact);
END;

CREATE FUNCTION refuse_wrong_approver() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  request approval_requests;
BEGIN
  SELECT * INTO request FROM approval_requests r WHERE r.request_id = NEW.request_id;
  IF NOT may_approve(NEW.decided_by, request.partner_ids) THEN
    PERFORM refuse('approval_by_an_approver',
                   format('user %s is no approver of request %s', NEW.decided_by, NEW.request_id));
  END IF;
  IF NEW.decision = 'approve' AND NEW.recorded_at >= request.expires_at THEN
    PERFORM refuse('approval_before_it_expires', format('request %s has expired', NEW.request_id));
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER approval_by_an_approver BEFORE INSERT ON approval_decisions
  FOR EACH ROW WHEN (NEW.decision <> 'withdraw') EXECUTE FUNCTION refuse_wrong_approver();
