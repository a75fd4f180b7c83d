/**
 * SQL that disables or enables the guards that a restore must bypass while it loads a checked backup. Restored facts
 * keep their numbers, because checkpoints cover them. Some rows of a backup are valid although they could not be recorded
 * now. Examples are a month closed under a wrong clock, a payload erased before its payment was disputed, an approval by a
 * former approver, and an acceptance whose row is archived. (The check actions_approved uses the roles at the time of the approval.)
 */
export const alterGuards = (action: 'DISABLE' | 'ENABLE ALWAYS') => `
  DO $$
  DECLARE
    guard record;
  BEGIN
    FOR guard IN
      SELECT t.tgrelid::regclass AS target, t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
      WHERE t.tgname IN ('fact_number', 'month_has_ended', 'erased_payload_is_not_needed', 'approval_by_an_approver',
                         'personal_texts_kept', 'login_once', 'change_with_event', 'acceptance_is_in_the_ledger')
        AND c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
    LOOP
      EXECUTE format('ALTER TABLE %s ${action} TRIGGER %I', guard.target, guard.tgname);
    END LOOP;
  END
  $$`;
