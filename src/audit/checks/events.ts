/** The check that each fact still has the audit event that recorded it, and each such event its fact. */
import { SEALED_TABLES } from '../../seals/canonical.ts';

const WITH_EVENT = SEALED_TABLES.filter(({ name, columns }) => name !== 'audit_events' && columns.includes('event_id'));

const FACTS = WITH_EVENT.map(({ name, columns }) => {
  const at = columns.includes('recorded_at') ? 'recorded_at' : 'NULL::timestamptz';
  return `SELECT '${name}' AS fact, fact_id, event_id, ${at} AS recorded_at FROM ${name}`;
}).join('\n  UNION ALL ');

/** The acts that alone record facts of a table. Each records one; a rerun voids only what is not void yet. */
const ACTS = `(VALUES
    ('voids', 'invoice.void'), ('voids', 'invoice.rerun'), ('holds', 'invoice.hold'), ('hold_releases', 'invoice.release'),
    ('invoice_disputes', 'dispute.open'), ('write_offs', 'invoice.write_off'), ('book_closes', 'books.close'),
    ('credit_refunds', 'credit.refund'), ('credit_refund_returns', 'credit.refund_returned'),
    ('api_clients', 'client.create'), ('client_revocations', 'client.revoke')
  ) AS acts (fact, action)`;

/**
 * An event is recorded in its fact's transaction, before the fact and at the same time. A sandbox's clock may be set, so times
 * are compared in production only.
 */
export const FACTS_HAVE_EVENTS = `facts AS MATERIALIZED (
  ${FACTS}
), inspected AS (
  SELECT f.*, e.event_id IS NOT NULL AS there, e.action, e.fact_id AS event_fact_id, e.occurred_at,
         (SELECT array_agg(acts.action) FROM ${ACTS} WHERE acts.fact = f.fact) AS acts
  FROM facts f LEFT JOIN audit_events e USING (event_id)
  WHERE f.event_id IS NOT NULL
), differences AS (
  SELECT format('%s, fact %s', fact, fact_id) AS subject, format('was recorded by event %s, which is missing', event_id)
    AS detail
  FROM inspected WHERE NOT there
  UNION ALL
  SELECT format('%s, fact %s', fact, fact_id),
         format('was recorded at %s by event %s, %s at %s: not the event of such a fact',
                coalesce(recorded_at::text, '?'), event_id, action, occurred_at)
  FROM inspected CROSS JOIN installation
  WHERE action <> ALL (acts) OR event_fact_id > fact_id
     OR (environment = 'production'
         AND recorded_at NOT BETWEEN occurred_at - interval '1 day' AND occurred_at + interval '1 day')
  UNION ALL
  SELECT format('event %s', e.event_id),
         format('is %s of %s at %s, but recorded nothing: its fact is missing', e.action, e.subject, e.occurred_at)
  FROM audit_events e JOIN ${ACTS} USING (action)
  WHERE action <> 'invoice.rerun'
    AND NOT EXISTS (SELECT FROM facts f WHERE f.fact = acts.fact AND f.event_id = e.event_id)
)`;
