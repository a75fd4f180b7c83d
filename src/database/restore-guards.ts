/** The guards that a restore switches off while it loads a checked backup, and on again in the same transaction. */

/**
 * Restored facts keep their numbers, which seals cover: meanwhile the database gives them none. A month that a wrong clock
 * closed stays closed, a payload erased before its payment was disputed stays erased, and whoever approved and is no approver
 * any more has approved (the check actions_approved looks at the roles of that time): what a backup has can be restored.
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
