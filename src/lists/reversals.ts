/** Recorded reversals with what allowed them, and requests for others: `reckoner reversal list`. */

import { z } from 'zod';
import { query, Transaction } from '#database/transaction';
import { BILLED_BY } from '#documents/billing.sql';
import { GROUNDS, Ground } from '#ledger/cancellation';
import { SIGNS, Sign } from '#ledger/doubles.sql';
import { dueOn } from '#ledger/held';
import { Amount, names } from '#values';
import { grantOrRefuse } from './held-rows.ts';
import { choice, defineList, given, ListQuery, Mark, month, partner } from './list.ts';

type ReversalRow = Readonly<{
  log_no: number;
  status: 'requested' | 'recorded' | 'rejected';
  partner_id: string;
  partner_name: string;
  reversal_id: string;
  quote_id: string;
  requote_id: string | null;
  policy_id: string;
  currency: string;
  accepted_at: string;
  spot_price: string;
  partner_cut: string;
  invoice_amount: string;
  requested_amount: string | null;
  month: string | null;
  posted_month: string | null;
  document: string | null;
  ground: Ground | null;
  request_id: number | null;
  sign: Sign | null;
  repeats: string | null;
  decided_by: string | null;
  decision_reason: string | null;
  recorded_at: string;
}>;

const STATUSES = ['requested', 'recorded', 'rejected'] as const;

const filters = z.strictObject({
  partner: partner('Only reversals of this partner.', { value: 'id' }).optional(),
  month: month('Month', 'Only reversals posted to this month, and requests of this month.').optional(),
  status: choice('Status', `${STATUSES.join(', ')}.`, STATUSES).optional(),
  ground: choice('Ground', 'Only reversals that this allowed.', Object.keys(GROUNDS) as Ground[]).optional(),
});
type ReversalFilter = z.output<typeof filters>;

/** A reversal has one ground, which is recorded with it. Grounds and requests are in the order of their log numbers. */
const found = (order: 'ASC' | 'DESC') => {
  const after = (number: string) =>
    `(:after::bigint IS NULL OR ${number} ${order === 'ASC' ? '>' : '<'} :after::bigint)`;
  const ofPartner = (partner: string) => `(:scope::text[] IS NULL OR ${partner} = ANY (:scope::text[]))
         AND (:partner::text IS NULL OR ${partner} = :partner)`;
  return `
     SELECT r.log_no, r.status, r.partner_id, p.name AS partner_name, r.reversal_id, c.quote_id, c.requote_id,
            c.policy_id, c.currency, c.accepted_at, c.spot_price, c.partner_cut, c.invoice_amount,
            h.invoice_amount AS requested_amount, c.month, c.posted_month, c.document, r.ground,
            r.held_row_id AS request_id, h.sign, h.repeats, r.recorded_at, d.decided_by, d.decision_reason
     FROM (
       SELECT * FROM (
         SELECT g.log_no, 'recorded' AS status, g.partner_id, g.reversal_id, g.ground, g.held_row_id, g.recorded_at
         FROM reversal_grounds g
         WHERE ${ofPartner('g.partner_id')} AND ${after('g.log_no')}
           AND coalesce(:status::text, 'recorded') = 'recorded'
           AND (:ground::text IS NULL OR g.ground = :ground)
           AND (:month::text IS NULL OR (g.partner_id, g.reversal_id) IN (
                  SELECT partner_id, reversal_id FROM ledger_rows WHERE kind = 'reversal' AND posted_month = :month))
         ORDER BY g.log_no ${order} LIMIT :limit) AS recorded
       UNION ALL
       SELECT * FROM (
         SELECT h.log_no, CASE WHEN d.decision IS NULL THEN 'requested' ELSE 'rejected' END AS status, h.partner_id,
                h.reversal_id, NULL, h.held_row_id, h.recorded_at
         FROM held_rows h JOIN partners p USING (partner_id) LEFT JOIN held_row_decisions d USING (held_row_id)
         WHERE h.kind = 'reversal' AND h.sign <> 'held_sale' AND d.decision IS DISTINCT FROM 'recorded'
           AND ${ofPartner('h.partner_id')} AND ${after('h.log_no')} AND :ground::text IS NULL
           AND (:status::text IS NULL OR :status = CASE WHEN d.decision IS NULL THEN 'requested' ELSE 'rejected' END)
           AND (:month::text IS NULL OR to_char(h.accepted_at AT TIME ZONE p.time_zone, 'YYYY-MM') = :month)
         ORDER BY h.log_no ${order} LIMIT :limit) AS requests
       ORDER BY log_no ${order} LIMIT :limit
     ) AS r
     JOIN partners p USING (partner_id)
     LEFT JOIN held_rows h USING (held_row_id)
     CROSS JOIN LATERAL (
       SELECT e.quote_id, e.requote_id, e.policy_id, e.currency, e.accepted_at, e.spot_price, e.partner_cut,
              e.invoice_amount, e.month, e.posted_month, ${BILLED_BY} AS document
       FROM ledger_rows e
       WHERE r.status = 'recorded' AND e.partner_id = r.partner_id AND e.kind = 'reversal'
         AND own_id(e) = r.reversal_id
       UNION ALL
       SELECT h.quote_id, h.requote_id, h.policy_id, h.currency, h.accepted_at, h.spot_price, h.partner_cut,
              h.invoice_amount, NULL, NULL, NULL
       WHERE r.status <> 'recorded') AS c
     LEFT JOIN LATERAL (
       SELECT coalesce(personal(u.login), personal(a.claimed_by), a.os_user) AS decided_by, d.reason AS decision_reason
       FROM held_row_decisions d JOIN audit_events a USING (event_id) LEFT JOIN users u USING (user_id)
       WHERE d.held_row_id = r.held_row_id AND r.ground IS DISTINCT FROM 'processor') AS d ON true
     ORDER BY r.log_no ${order}`;
};

const SORTED = { '-recorded_at': found('DESC'), recorded_at: found('ASC') } as const;

const readRows = (
  tx: Transaction,
  { filter, scope, sort, after, limit }: ListQuery<ReversalFilter, keyof typeof SORTED>,
): Promise<ReversalRow[]> => query(tx, SORTED[sort], { ...given(filters, filter), scope, after, limit });

const of = (amount: string, { currency }: ReversalRow) => Amount.of(amount, currency);

const TONES = { requested: 'warn', recorded: 'good', rejected: 'plain' } as const;

const partnersStandingOf = ({ status, month, posted_month }: ReversalRow): Mark[] => [
  { text: status, tone: TONES[status] },
  ...(month === posted_month ? [] : [{ text: 'late', tone: 'plain' } as const]),
];

const standingOf = (row: ReversalRow, today: string): Mark[] => [
  ...partnersStandingOf(row),
  ...(row.status === 'requested' && today > dueOn(row.recorded_at) ? [{ text: 'overdue', tone: 'bad' } as const] : []),
];

const allowedBy = ({ ground }: ReversalRow): string | null => (ground === null ? null : GROUNDS[ground]);

const askedFor = ({ sign, repeats }: ReversalRow) =>
  sign === null ? null : repeats === null ? SIGNS[sign] : `may repeat ${repeats}: ${SIGNS[sign]}`;

/** ` (-7.00 USD requested)`, if a person granted other amounts. */
const insteadOf = (row: ReversalRow) => {
  const { ground, invoice_amount, requested_amount: asked } = row;
  return ground === 'person' && asked !== null && !of(asked, row).equals(of(invoice_amount, row))
    ? ` (${of(asked, row).forPeople()} requested)`
    : '';
};

/** What allowed it and why, or why it waits or was refused. */
const why = (row: ReversalRow) => {
  const { status, decided_by, decision_reason } = row;
  if (status === 'requested') return askedFor(row);
  if (decision_reason === null) return allowedBy(row);
  return `${status === 'recorded' ? 'granted' : 'refused'} by ${decided_by}${insteadOf(row)}: ${decision_reason}`;
};

/** The reason as the partner reads it, without who decided and why a request was granted. */
const partnersWhy = (row: ReversalRow) => {
  if (row.status === 'requested') return `waits for our finance team: ${askedFor(row)}`;
  if (row.status === 'rejected') return `refused by our finance team: ${row.decision_reason}`;
  return row.ground === 'person' ? `granted by our finance team${insteadOf(row)}` : allowedBy(row);
};

const reversalJson = (row: ReversalRow) => {
  const { status, request_id, partner_id, reversal_id, quote_id, requote_id, policy_id, accepted_at, currency } = row;
  const { month, posted_month, document, ground, decided_by, decision_reason, recorded_at } = row;
  return {
    ...{ status, request_id, partner_id, reversal_id, quote_id, requote_id, policy_id, accepted_at, currency },
    spotPrice: of(row.spot_price, row).toString(),
    partnerCut: of(row.partner_cut, row).toString(),
    invoiceAmount: of(row.invoice_amount, row).toString(),
    requestedInvoiceAmount: row.requested_amount === null ? null : of(row.requested_amount, row).toString(),
    ...{ month, posted_month, late: month !== posted_month, document, allowed_by: ground },
    ...{ requested_because: askedFor(row), decided_by, decision_reason, recorded_at },
  };
};

export const reversals = defineList({
  command: 'reversal list',
  summary: 'List reversals with what allowed them, and requests for others',
  title: 'Reversals',
  one: 'reversal',
  none: 'There are no reversals.',
  help: `Grant a requested reversal, possibly with other amounts, or refuse it:
  reckoner reversal grant 12 --reason 'event canceled'
  reckoner reversal refuse 13 --reason 'after the event'`,
  filters,
  views: [
    ['Requested', { status: 'requested' }],
    ['Recorded', { status: 'recorded' }],
    ['Rejected', { status: 'rejected' }],
    ['All', {}],
  ],
  sorts: ['-recorded_at', '-recorded_at', 'recorded_at'],
  columns: {
    request_id: { type: 'count' },
    status: {},
    standing: { heading: 'Status', type: 'marks', value: standingOf },
    partners_standing: { heading: 'Status', type: 'marks', value: partnersStandingOf },
    partner_id: { cut: true },
    partner_name: { to: ({ partner_id }) => ['partners', partner_id] },
    reversal_id: { look: 'id' },
    quote_id: { look: 'id' },
    requote_id: {},
    policy_id: {},
    accepted_at: { heading: 'Reversed', type: 'instant' },
    currency: { heading: '' },
    spot_price: { heading: 'Price', type: 'amount' },
    partner_cut: { heading: 'Cut', type: 'amount' },
    amount: { heading: 'Our share', type: 'amount', value: (row) => of(row.invoice_amount, row) },
    invoice_amount: { type: 'amount' },
    requested_amount: {
      ...{ heading: 'Requested', type: 'amount' },
      value: (row) => (row.requested_amount === null ? null : of(row.requested_amount, row)),
    },
    month: { type: 'month' },
    posted_month: { type: 'month' },
    late: { value: ({ month, posted_month }) => (month === posted_month ? '' : 'yes') },
    document: {},
    billed: {
      look: 'line',
      value: ({ document, posted_month }) => document ?? posted_month,
      to: ({ document }) => (document === null ? null : ['invoices', document]),
    },
    allowed_by: { value: allowedBy },
    requested_because: { value: askedFor },
    why: { cut: true, look: 'wrap', value: why },
    partners_why: { heading: 'Why', look: 'wrap', value: partnersWhy },
    decided_by: {},
    decision_reason: { heading: 'Reason' },
    recorded_at: { heading: 'Since', type: 'instant' },
    recorded_on: { heading: 'Since', type: 'date', value: ({ recorded_at }) => recorded_at },
  },
  sheet: names(
    'status request_id partner_id reversal_id quote_id requote_id policy_id accepted_at currency spot_price',
    'partner_cut invoice_amount requested_amount month posted_month late document allowed_by requested_because',
    'decided_by decision_reason recorded_at',
  ),
  terminal: names('request_id status partner_id reversal_id amount currency document why'),
  page: names('reversal_id standing partner_name quote_id amount why billed recorded_on'),
  place: names('reversal_id partners_standing quote_id spot_price invoice_amount partners_why billed recorded_on'),
  remedies: ({ status, request_id, partner_id }) =>
    status === 'requested' ? grantOrRefuse(String(request_id)).map((each) => ({ ...each, partner: partner_id })) : [],
  key: ({ log_no }) => String(log_no),
  summed: ['amount'],
  read: readRows,
  json: async (_tx, rows) => rows.map(reversalJson),
});
