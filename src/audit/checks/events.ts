/**
 * The checks that each fact and each ledger row still has the audit event that recorded it. Each such event must also
 * still have its facts and rows.
 */
import { LOG_FORMS } from '../../log/forms.ts';
import { OF_MONTH } from './query.ts';

const WITH_EVENT = LOG_FORMS.filter(
  ({ kind, columns }) =>
    !['audit_events', 'ledger_rows'].includes(kind) && columns.some(({ name }) => name === 'event_id'),
);

const FACTS = WITH_EVENT.map(({ kind, columns }) => {
  const at = columns.some(({ name }) => name === 'recorded_at') ? 'recorded_at' : 'NULL::timestamptz';
  return `SELECT '${kind}' AS fact, log_no, event_id, ${at} AS recorded_at FROM ${kind}`;
}).join('\n  UNION ALL ');

/**
 * The only actions that record facts of these tables. Each action records at least one fact, with three exceptions: a
 * rerun voids only documents that are not void yet, the reversal of an opening may concern only cash, and a resumed log
 * has a successor only if something was lost.
 */
const ACTIONS = `(VALUES
    ('erasures', 'person.erase'), ('voids', 'invoice.void'), ('voids', 'invoice.rerun'), ('voids', 'opening.reverse'),
    ('openings', 'opening.import'), ('holds', 'invoice.hold'),
    ('hold_releases', 'invoice.release'), ('invoice_disputes', 'dispute.open'),
    ('write_offs', 'invoice.write_off'), ('book_closes', 'books.close'), ('log_keys', 'signing_key.change'),
    ('log_continues', 'ledger.resume'),
    ('credit_refunds', 'credit.refund'), ('credit_refund_returns', 'credit.refund_returned'),
    ('api_clients', 'client.create'), ('client_revocations', 'client.revoke'), ('client_secrets', 'client.create'),
    ('client_secrets', 'client.rotate'), ('pauses', 'ledger.pause'), ('pauses', 'database.restore'),
    ('resumptions', 'ledger.resume'), ('email_bounces', 'email.bounces'),
    ('users', 'user.invite'), ('users', 'user.provision'), ('user_ends', 'user.deactivate'),
    ('user_roles', 'user.invite'), ('user_roles', 'user.provision'), ('user_roles', 'user.role'),
    ('user_roles', 'user.claims'), ('user_identities', 'user.identify'),
    ('passkeys', 'user.add_passkey'), ('passkey_ends', 'user.remove_passkey'),
    ('processor_event_erasures', 'processor_event.erase'),
    ('approval_requests', 'approval.request'), ('approval_decisions', 'approval.approve'),
    ('approval_decisions', 'approval.reject'), ('approval_decisions', 'approval.withdraw')
  ) AS actions (fact, action)`;

/**
 * An event is recorded in the transaction of its fact, before the fact and with the same time. A sandbox's clock may be
 * set, so times are compared in production only.
 */
export const FACTS_HAVE_EVENTS = `facts AS MATERIALIZED (
  ${FACTS}
), inspected AS (
  SELECT f.*, e.event_id IS NOT NULL AS there, e.action, e.log_no AS event_fact_id, e.occurred_at,
         (SELECT array_agg(actions.action) FROM ${ACTIONS} WHERE actions.fact = f.fact) AS actions
  FROM facts f LEFT JOIN audit_events e USING (event_id)
  WHERE f.event_id IS NOT NULL
), differences AS (
  SELECT format('%s, fact %s', fact, log_no) AS subject, format('was recorded by event %s, which is missing', event_id)
    AS detail
  FROM inspected WHERE NOT there
  UNION ALL
  SELECT format('%s, fact %s', fact, log_no),
         format('was recorded at %s by event %s, %s at %s: not the event of such a fact',
                coalesce(recorded_at::text, '?'), event_id, action, occurred_at)
  FROM inspected CROSS JOIN installation
  WHERE action <> ALL (actions) OR event_fact_id > log_no
     OR (environment = 'production'
         AND recorded_at NOT BETWEEN occurred_at - interval '1 day' AND occurred_at + interval '1 day')
  UNION ALL
  SELECT format('event %s', e.event_id),
         format('is %s of %s at %s, but recorded nothing: its fact is missing', e.action, e.subject, e.occurred_at)
  FROM audit_events e JOIN ${ACTIONS} USING (action)
  WHERE action NOT IN ('invoice.rerun', 'opening.reverse') AND actions.fact <> 'log_continues'
    AND NOT EXISTS (SELECT FROM facts f WHERE f.fact = actions.fact AND f.event_id = e.event_id)
)`;

/**
 * Each row names the event that recorded it, at the time that the row was recorded. The control totals in an import's
 * event are the sums of its rows; an acceptance has one row. `rows` are the rows inspected, `events` the events that
 * must have rows.
 */
const rowsHaveEvents = (rows: string, events: string) => `recorded AS MATERIALIZED (
  SELECT event_id, currency, kind, count(*) AS rows, sum(spot_price) AS spot_price, sum(partner_cut) AS partner_cut,
         sum(invoice_amount) AS invoice_amount, min(entry_id) AS first_row, min(quote_id) AS quote_id,
         min(recorded_at) AS earliest, max(recorded_at) AS latest
  FROM ledger_rows WHERE ${rows} GROUP BY event_id, currency, kind
), inspected AS (
  SELECT r.*, e.action, e.subject, e.occurred_at,
         format('%s of %s', CASE rows WHEN 1 THEN 'row ' || first_row ELSE format('%s rows', rows) END,
                CASE kind WHEN 'quote_accepted' THEN 'quotes' WHEN 'requote_accepted' THEN 'requotes'
                          ELSE 'reversals' END)
           AS what
  FROM recorded r LEFT JOIN audit_events e USING (event_id)
), sums AS (
  SELECT event_id, currency, sum(rows)::bigint AS rows, sum(spot_price) AS spot_price, sum(partner_cut) AS partner_cut,
         sum(invoice_amount) AS invoice_amount
  FROM recorded GROUP BY event_id, currency
), actions AS (
  SELECT event_id, action, subject, details->'totals' AS totals FROM audit_events
  WHERE (jsonb_exists(details, 'totals')
         OR action IN ('ledger.import', 'quote.accept', 'requote.accept', 'quote.reverse'))
    AND ${events}
), stated AS (
  SELECT a.event_id, a.action, a.subject, t.key AS currency, (t.value->>'rows')::bigint AS rows,
         (t.value->>'spotPrice')::numeric AS spot_price, (t.value->>'partnerCut')::numeric AS partner_cut,
         (t.value->>'invoiceAmount')::numeric AS invoice_amount
  FROM actions a CROSS JOIN LATERAL jsonb_each(totals) AS t
), compared AS (
  SELECT event_id, currency, t.action, t.subject,
         (t.rows, t.spot_price, t.partner_cut, t.invoice_amount) AS by_event,
         (s.rows, s.spot_price, s.partner_cut, s.invoice_amount) AS by_rows
  FROM stated t FULL JOIN (SELECT * FROM sums WHERE event_id IN (SELECT event_id FROM stated)) AS s
    USING (event_id, currency)
), differences AS (
  SELECT format('event %s', event_id) AS subject,
         CASE WHEN action IS NULL THEN format('is missing; it recorded %s in %s', what, currency)
              WHEN (earliest, latest) IS DISTINCT FROM (occurred_at, occurred_at)
              THEN format('is %s of %s at %s, and %s from %s to %s name it', action, subject, occurred_at, what,
                          earliest, latest)
              ELSE format('is %s of %s: not the event of %s in %s', action, subject, what, currency) END AS detail
  FROM inspected
  WHERE action IS NULL OR (earliest, latest) IS DISTINCT FROM (occurred_at, occurred_at)
     OR CASE action WHEN 'ledger.import' THEN false
                    WHEN 'quote.accept' THEN rows <> 1 OR kind <> 'quote_accepted' OR quote_id <> subject
                    WHEN 'requote.accept' THEN rows <> 1 OR kind <> 'requote_accepted' OR quote_id <> subject
                    WHEN 'quote.reverse' THEN rows <> 1 OR kind <> 'reversal' OR quote_id <> subject
                    WHEN 'processor.reverse' THEN kind <> 'reversal' ELSE true END
  UNION ALL
  SELECT format('event %s', event_id),
         format('is %s of %s with rows and totals %s in %s; its rows give %s', action, subject, by_event, currency,
                by_rows)
  FROM compared WHERE by_event IS DISTINCT FROM by_rows
  UNION ALL
  SELECT format('event %s', a.event_id),
         format('is %s of %s, and %s', a.action, a.subject,
                CASE WHEN a.totals IS NULL AND a.action NOT LIKE '%accept' THEN 'states no totals'
                     ELSE 'recorded no row: its row is missing' END)
  FROM actions a
  WHERE (a.totals IS NULL AND a.action NOT LIKE '%accept')
     OR (a.totals IS NULL AND NOT EXISTS (SELECT FROM recorded r WHERE r.event_id = a.event_id))
)`;

export const ROWS_HAVE_EVENTS = rowsHaveEvents('true', 'true');

/** The same check for the events of one month's rows, including all other rows of these events. */
const EVENTS_OF_MONTH = `event_id IN (SELECT event_id FROM ledger_rows WHERE ${OF_MONTH})`;
export const ROWS_OF_MONTH_HAVE_EVENTS = rowsHaveEvents(EVENTS_OF_MONTH, EVENTS_OF_MONTH);
