/** The check that rows of append-only tables cannot be changed or deleted. */
import { LOG_FORMS } from '#log/forms';

/** This list is not read from the catalog, because an owner who drops a trigger could change the catalog too. */
const APPEND_ONLY = [
  ...LOG_FORMS.map(({ kind }) => kind).filter((kind) => kind !== 'ledger_rows'),
  ...['installation', 'log_checkpoints', 'log_signatures', 'log_stamps', 'logos', 'partner_events'],
  ...[
    'payment_links',
    'payment_link_changes',
    'payment_link_intents',
    'payment_link_attempts',
    'payment_link_objects',
    'payment_link_closings',
    'payment_link_orders',
    'payment_link_outcomes',
  ],
  ...['checkouts', 'checkout_invoices', 'checkout_sessions', 'checkout_orders', 'checkout_endings'],
  'signing_keys',
];

/** Append-only tables, except for rows that `reckoner purge` may delete: a second trigger guards all other rows. */
const PURGED = ['quotes', 'requotes', 'idempotency_keys', 'job_runs'];
/** Append-only tables, except for payloads whose erasure is recorded, and rows that are archived. */
const LEAVING = ['processor_events', 'ledger_rows', 'archived_months', 'archived_files'];

const listed = (tables: readonly string[]) => `ARRAY[${tables.map((table) => `'${table}'`).join(', ')}]`;

/** The triggers exist and are enabled, and the role reckoner_app, if it exists, may only read, insert and purge. */
export const APPEND_ONLY_GUARDS = `inspected AS (
  SELECT unnest(${listed(APPEND_ONLY)})::regclass AS guarded, 1 AS needed,
         ARRAY['UPDATE', 'DELETE', 'TRUNCATE'] AS refused
  UNION ALL
  SELECT unnest(${listed(PURGED)})::regclass, 2, ARRAY['UPDATE', 'TRUNCATE']
  UNION ALL
  SELECT unnest(${listed(LEAVING)})::regclass, 2, ARRAY['UPDATE', 'DELETE', 'TRUNCATE']
), guards AS (
  SELECT guarded, needed,
         (SELECT count(*) FROM pg_trigger t WHERE t.tgrelid = guarded AND t.tgenabled IN ('O', 'A')
            AND t.tgname IN ('append_only', 'kept_rows')) AS triggers,
         (SELECT string_agg(privilege, ', ') FROM unnest(refused) AS privilege
          WHERE EXISTS (SELECT FROM pg_roles WHERE rolname = 'reckoner_app')
            AND has_table_privilege('reckoner_app', guarded, privilege)) AS privileges
  FROM inspected
), differences AS (
  SELECT guarded::text AS subject,
         format('%s of %s guard triggers are enabled; reckoner_app may %s', triggers, needed,
           coalesce(privileges, 'change nothing')) AS detail
  FROM guards WHERE triggers <> needed OR privileges IS NOT NULL
)`;
