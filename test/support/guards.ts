/**
 * Statements that switch a database's guards off and on in the caller's session, as the owner could. Triggers always
 * fire, so session_replication_role alone would switch off only foreign keys. Facts are still numbered.
 */

/** A change of pg_trigger is seen once the table's own row changes. */
const firing = (from: 'A' | 'O', to: 'A' | 'O') => `
  UPDATE pg_trigger t SET tgenabled = '${to}'
  FROM pg_class c
  WHERE c.oid = t.tgrelid AND c.relnamespace = 'public'::regnamespace AND NOT t.tgisinternal
    AND t.tgname <> 'fact_number' AND t.tgenabled = '${from}';
  UPDATE pg_class SET relhastriggers = relhastriggers WHERE relnamespace = 'public'::regnamespace AND relhastriggers;`;

export const GUARDS_OFF = `${firing('A', 'O')} SET session_replication_role = replica;`;
export const GUARDS_ON = `${firing('O', 'A')} SET session_replication_role = origin;`;

/** A change of partners, policies or webhooks of which no event tells. */
export const withoutEvent = (table: string, change: string): string => `
  ALTER TABLE ${table} DISABLE TRIGGER change_with_event;
  ${change};
  ALTER TABLE ${table} ENABLE ALWAYS TRIGGER change_with_event;`;
