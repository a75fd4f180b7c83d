/** The guards that a restore disables while it loads a checked backup, and enables again in the same transaction. */

/**
 * Restored facts keep their numbers, which seals cover, so the database must not give them new ones. What a backup
 * contains can be restored: a month closed under a wrong clock stays closed, a payload erased before its payment was
 * disputed stays erased, and an approval by a user who is no longer an approver stays valid (the check actions_approved
 * uses the roles of that time).
 */
export const alterGuards = (action: 'DISABLE' | 'ENABLE ALWAYS'): string => `
  DO $$
  DECLARE
    guard record;
  BEGIN
    FOR guard IN
      SELECT t.tgrelid::regclass AS target, t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
      WHERE t.tgname IN ('fact_number', 'month_has_ended', 'erased_payload_is_not_needed', 'approval_by_an_approver')
        AND c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
    LOOP
      EXECUTE format('ALTER TABLE %s ${action} TRIGGER %I', guard.target, guard.tgname);
    END LOOP;
  END
  $$`;
