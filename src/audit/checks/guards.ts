/** The check that tables are append-only. */
import { SEALED_TABLES } from '../../seals/canonical.ts';

/** Tables of facts, and these. The list stands here and not in the catalog: whoever drops a guard could change that too. */
const APPEND_ONLY = [
  ...SEALED_TABLES.map(({ name }) => name),
  ...['installation', 'ledger_rows', 'closed_months', 'seals', 'logos', 'processor_events', 'reminders'],
  ...[
    'payment_links',
    'payment_link_intents',
    'payment_link_attempts',
    'payment_link_objects',
    'payment_link_closings',
  ],
  ...['client_secrets', 'signing_keys', 'quotes', 'quote_acceptances', 'requotes', 'requote_acceptances'],
  'idempotency_keys',
];

/** The triggers stand and are enabled, and the app's role, where there is one, may only read and add. */
export const APPEND_ONLY_GUARDS = `inspected AS (
  SELECT unnest(ARRAY[${APPEND_ONLY.map((table) => `'${table}'`).join(', ')}])::regclass AS guarded
), guards AS (
  SELECT guarded,
         (SELECT count(*) FROM pg_trigger t WHERE t.tgrelid = guarded AND t.tgenabled IN ('O', 'A')
            AND t.tgname IN ('append_only_rows', 'append_only_table')) AS triggers,
         (SELECT string_agg(privilege, ', ') FROM unnest(ARRAY['UPDATE', 'DELETE', 'TRUNCATE']) AS privilege
          WHERE EXISTS (SELECT FROM pg_roles WHERE rolname = 'reckoner_app')
            AND has_table_privilege('reckoner_app', guarded, privilege)) AS privileges
  FROM inspected
), differences AS (
  SELECT guarded::text AS subject,
         format('%s of 2 guarding triggers are enabled; the app may %s', triggers, coalesce(privileges, 'change nothing')) AS detail
  FROM guards WHERE triggers <> 2 OR privileges IS NOT NULL
)`;
