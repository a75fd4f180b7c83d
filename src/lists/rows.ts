/** Ledger rows, also of open months: `reckoner ledger rows`. Refusals: argument_invalid, archive_incomplete. */

import { z } from 'zod';
import { needQuotes, needRows } from '../archive/rows.ts';
import { query, queryingFirst, queryingValue, type Transaction } from '../database/transaction.ts';
import { BILLED_BY } from '../documents/billing.sql.ts';
import { rowKindName } from '../documents/present.ts';
import { CREDITS, LEFT, REVERSAL_ID } from '../documents/rows-to-correct.sql.ts';
import type { RowKind } from '../documents/snapshot.ts';
import { refuse, refuseField } from '../errors/refusals.ts';
import { Amount, type Month, monthAfter, monthBefore, names } from '../values.ts';
import { choice, date, defineList, flag, given, type ListQuery, month, partner, type Sums, text } from './list.ts';
import { sumsBy } from './statement.ts';

export type LedgerRow = Readonly<{
  /** The number of the row in the log; of a held row, its own number. */
  entry_id: number;
  partner_id: string;
  partner_name: string;
  kind: RowKind;
  own_id: string;
  quote_id: string;
  requote_id: string | null;
  reversal_id: string | null;
  enrollment_id: string | null;
  policy_id: string;
  order_reference: string | null;
  currency: string;
  accepted_at: string;
  accepted_on: string;
  spot_price: string;
  partner_cut: string;
  invoice_amount: string;
  month: Month;
  /** Null for a held row. */
  posted_month: Month | null;
  document: string | null;
  /** `credited`, `disputed`, `reversed`, `partly reversed`, `reversal requested`. */
  corrections: readonly string[];
}>;

const KINDS = ['quote_accepted', 'requote_accepted', 'reversal'] as const satisfies readonly RowKind[];

const filters = z.strictObject({
  partner: partner('Only rows of this partner.', { value: 'id' }).optional(),
  month: month(
    'Month',
    'Only rows billed in this month. Default: the latest, unless days, an id or a document are given.',
  ).optional(),
  document: text('Document', 'Only rows that this document of a month bills.', { value: 'number' }).optional(),
  policy: text('Policy', 'Only rows of this policy.', { value: 'id' }).optional(),
  kind: choice('Kind', 'Only rows of this kind.', KINDS).optional(),
  from: date('Accepted from', "Accepted on or after this day in the partner's time zone.").optional(),
  to: date('Accepted to', "Accepted on or before this day in the partner's time zone.").optional(),
  quote: text('Quote', 'Only rows of the quote with this id.', { value: 'id' }).optional(),
  enrollment: text('Enrollment', 'Only rows whose enrollment id begins with this.', { value: 'id' }).optional(),
  order: text('Order', 'Only rows whose order reference begins with this.', { value: 'reference' }).optional(),
  late: flag('Late', 'Only rows billed in a later month than their own.').optional(),
  corrected: flag('Corrected', 'Only rows that were credited or reversed, or are disputed.').optional(),
  held: flag('Held', 'Rows that wait for a decision, instead of recorded rows.').optional(),
});
type RowFilter = z.output<typeof filters>;

/** The posting months of the rows, after `after` up to `to`; of a document also its other terms. */
type Bounds = Readonly<{
  after: string;
  to: string;
  partner: string | null;
  currency: string | null;
  arrangement: string | null;
}>;

const readBoundsOfDocument = queryingFirst<Bounds, { document: string }>(`
  SELECT coalesce(m.previous, '') AS after, m.month::text AS to, d.partner_id AS partner, d.currency, d.arrangement
  FROM documents d JOIN closed_months m USING (month)
  WHERE d.number = upper(:document) AND d.purpose = 'month'`);

/** An open month has the rows posted to it; a closed month also those posted to the months before that it bills. */
const readBoundsOfMonth = queryingFirst<Bounds, { month: Month }>(`
  SELECT CASE WHEN m.month IS NULL THEN to_char((w.month || '-01')::date - 1, 'YYYY-MM')
              ELSE coalesce(m.previous, '') END AS after,
         w.month AS to, NULL AS partner, NULL AS currency, NULL AS arrangement
  FROM (SELECT :month::text AS month) AS w LEFT JOIN closed_months m ON m.month = w.month`);

const readLatestMonth = queryingValue<Month | null, { scope: readonly string[] | null }>(`
  SELECT max(e.posted_month) FROM partners p CROSS JOIN LATERAL (
    SELECT posted_month FROM ledger_rows WHERE partner_id = p.partner_id ORDER BY posted_month DESC LIMIT 1) AS e
  WHERE :scope::text[] IS NULL OR p.partner_id = ANY (:scope::text[])`);

const COLUMNS = `partner_id, kind, quote_id, requote_id, reversal_id, enrollment_id, policy_id, order_reference,
       currency, accepted_at, spot_price, partner_cut, invoice_amount`;

/** What a person or a reversal did to a sale. Few rows were named in a credit or a dispute. */
const CORRECTIONS = `array_remove(ARRAY[
       CASE WHEN e.kind <> 'reversal' AND e.entry_id IN (
         SELECT jsonb_array_elements(a.details->'rows')::bigint
         FROM ${CREDITS}
         WHERE jsonb_exists(a.details, 'rows')) THEN 'credited' END,
       CASE WHEN e.kind <> 'reversal' AND EXISTS (
         SELECT FROM ledger_rows v
         WHERE v.partner_id = e.partner_id AND v.quote_id = e.quote_id AND v.kind = 'reversal') THEN (
         SELECT CASE WHEN l.partner_cut + l.invoice_amount = 0 THEN 'reversed' ELSE 'partly reversed' END
         FROM ${LEFT} AS l WHERE l.taken_by IS NOT NULL) END,
       CASE WHEN e.kind <> 'reversal' AND EXISTS (
         SELECT FROM undecided_rows h WHERE h.partner_id = e.partner_id AND h.kind = 'reversal'
           AND h.reversal_id = ${REVERSAL_ID}) THEN 'reversal requested' END,
       CASE WHEN e.kind <> 'reversal' AND e.entry_id IN (
         SELECT jsonb_array_elements(a.details->'rows')::bigint
         FROM open_invoice_disputes t JOIN audit_events a USING (event_id)) THEN 'disputed' END], NULL)`;

/** Held rows with the columns of recorded ones. Few rows are held. */
const HELD = {
  billed: 'NULL AS posted_month, NULL AS document',
  rows: `(
       SELECT ${COLUMNS}, held_row_id AS entry_id, z.time_zone, NULL AS arrangement, z.month AS posted_month, z.month
       FROM undecided_rows CROSS JOIN LATERAL (
         SELECT time_zone, to_char(accepted_at AT TIME ZONE time_zone, 'YYYY-MM') COLLATE "C" AS month
         FROM partners p WHERE p.partner_id = undecided_rows.partner_id) AS z)`,
};

const BILLED = `e.posted_month, ${BILLED_BY} AS document`;
const ALL = { billed: BILLED, rows: 'ledger_rows' };

/** The rows whose own month is not after `lastMonth`: those posted by then, and late ones. */
const UP_TO = {
  ...ALL,
  rows: `(
       SELECT * FROM ledger_rows WHERE posted_month <= :lastMonth::text
       UNION ALL
       SELECT * FROM ledger_rows WHERE posted_month > :lastMonth::text AND month < posted_month)`,
};

const AFTER = 'CASE p.partner_id WHEN :afterPartner::text THEN :afterMonth::text ELSE';
/** The order of a partner's rows. */
const SORTED = {
  '-entry_id': {
    own: 'e.posted_month DESC, e.entry_id DESC',
    past: `< (${AFTER} '~' END`,
  },
  entry_id: { own: 'e.posted_month, e.entry_id', past: `> (${AFTER} '' END` },
};
type Order = (typeof SORTED)[keyof typeof SORTED];

/**
 * The rows of each partner are read in the order of the primary key, or by the index of a filter, until the page is full.
 * A page begins after the row (`afterPartner`, `afterMonth`, `afterId`).
 */
const matching = ({ own, past }: Order, { rows }: Pick<typeof ALL, 'rows'>) => `(
       SELECT e.* FROM partners p CROSS JOIN LATERAL (
         SELECT e.* FROM ${rows} AS e
         WHERE e.partner_id = p.partner_id AND e.posted_month > :postedAfter::text AND e.posted_month <= :postedTo::text
           AND (:afterId::bigint IS NULL OR (e.posted_month, e.entry_id) ${past},
             CASE p.partner_id WHEN :afterPartner::text THEN :afterId::bigint ELSE 0 END))
           AND (:currency::text IS NULL OR (e.currency, e.arrangement) = (:currency::text, :arrangement::text))
           AND (:policy::text IS NULL OR e.policy_id = :policy::text)
           AND (:kind::text IS NULL OR e.kind = :kind::text)
           AND (:from::date IS NULL OR (e.accepted_at AT TIME ZONE e.time_zone)::date >= :from::date)
           AND (:to::date IS NULL OR (e.accepted_at AT TIME ZONE e.time_zone)::date <= :to::date)
           AND (:quote::text IS NULL OR e.kind <> 'quote_accepted' AND e.quote_id = :quote::text
                OR e.kind = 'quote_accepted' AND coalesce(e.reversal_id, e.requote_id, e.quote_id) = :quote::text)
           AND (:enrollment::text IS NULL OR e.enrollment_id ^@ :enrollment::text)
           AND (:order::text IS NULL OR e.order_reference ^@ :order::text)
           AND (:late::boolean IS NULL OR e.month < e.posted_month)
           AND (:corrected::boolean IS NULL OR ${CORRECTIONS} <> '{}')
         ORDER BY ${own} LIMIT :limit) AS e
       WHERE (:scope::text[] IS NULL OR p.partner_id = ANY (:scope::text[]))
         AND (:partner::text IS NULL OR p.partner_id = :partner)
         AND (:afterPartner::text IS NULL OR p.partner_id >= :afterPartner)
         AND (:policy::text IS NULL OR EXISTS (
               SELECT FROM policies o WHERE o.partner_id = p.partner_id AND o.policy_id = :policy))
       ORDER BY p.partner_id, ${own} LIMIT :limit) AS e`;

const found = ({ own, past }: Order, { billed, rows }: typeof ALL) => `
     SELECT e.entry_id, e.partner_id, p.name AS partner_name, e.kind,
            coalesce(e.reversal_id, e.requote_id, e.quote_id) AS own_id, e.quote_id, e.requote_id, e.reversal_id,
            e.enrollment_id, e.policy_id, e.order_reference, e.currency, e.accepted_at,
            (e.accepted_at AT TIME ZONE e.time_zone)::date::text AS accepted_on, e.spot_price::text,
            e.partner_cut::text, e.invoice_amount::text, e.month, ${CORRECTIONS} AS corrections,
            ${billed}
     FROM ${matching({ own, past }, { rows })}
     JOIN partners p USING (partner_id)
     ORDER BY e.partner_id, ${own}`;

const summed = ({ own, past }: Order, { rows }: typeof ALL) => `
     SELECT currency, count(*)::int AS count, sum(spot_price) AS spot_price, sum(partner_cut) AS partner_cut,
            sum(invoice_amount) AS invoice_amount
     FROM ${matching({ own, past }, { rows })} GROUP BY currency ORDER BY currency`;

type RowQuery = ListQuery<RowFilter, keyof typeof SORTED>;

/** The rows of one sheet, which the server holds in memory. */
const MOST = 100_000;

const keyOf = ({ partner_id, month, posted_month, entry_id }: LedgerRow): string =>
  `${entry_id} ${posted_month ?? month} ${partner_id}`;

function lastOf(after: string | null) {
  const [, afterId = null, afterMonth = null, afterPartner = null] =
    /^(\d{1,15}) (\d{4}-\d\d) (.+)$/.exec(after ?? '') ?? [];
  return { afterId, afterMonth, afterPartner };
}

/** What the list shows if nothing that bounds its months is given: the latest month, so that each filter is fast. */
async function defaultsOf(tx: Transaction, { filter, scope }: Pick<RowQuery, 'filter' | 'scope'>) {
  const { month, document, from, to, quote, enrollment, order } = filter;
  if ([month, document, from, to, quote, enrollment, order].some((each) => each !== undefined)) return {};
  const latest = await readLatestMonth(tx, { scope });
  return latest === null ? {} : { month: latest };
}

async function boundsOf(tx: Transaction, { document, month, from }: RowFilter): Promise<Bounds | undefined> {
  if (document !== undefined) return readBoundsOfDocument(tx, { document });
  if (month !== undefined) return readBoundsOfMonth(tx, { month });
  const after = from === undefined ? '' : monthBefore(from.slice(0, 7) as Month);
  return { after, to: '9999-12', partner: null, currency: null, arrangement: null };
}

/** Copies the rows of archived months that may be among those asked for. */
async function needArchived(tx: Transaction, { filter, scope }: RowQuery, { after, to, partner }: Bounds) {
  const id = filter.quote ?? filter.enrollment ?? filter.order;
  if (id !== undefined && filter.month === undefined && filter.document === undefined) {
    const fault = await needQuotes(tx, id);
    if (fault !== undefined)
      throw refuse('archive_incomplete', { month: 'old months', store: 'archive', reason: fault });
    return;
  }
  const one = filter.partner ?? partner;
  const from = after === '' ? undefined : monthAfter(after as Month);
  await needRows(tx, { from, to: to as Month, partnerIds: one == null ? (scope ?? undefined) : [one] });
}

const sourceOf = ({ held, to }: RowFilter) => (held === true ? HELD : to === undefined ? ALL : UP_TO);

/** Undefined if there is no such document. */
async function parametersOf(tx: Transaction, asked: RowQuery) {
  const { scope, limit } = asked;
  const filter = { ...asked.filter, ...(await defaultsOf(tx, asked)) };
  const bounds = await boundsOf(tx, filter);
  if (bounds === undefined || (filter.partner !== undefined && filter.partner !== (bounds.partner ?? filter.partner))) {
    return undefined;
  }
  if (filter.held !== true) await needArchived(tx, { ...asked, filter }, bounds);
  return {
    ...{ ...given(filters, filter), scope, ...lastOf(asked.after), limit: limit ?? MOST + 1 },
    ...{ partner: filter.partner ?? bounds.partner, currency: bounds.currency, arrangement: bounds.arrangement },
    // The numbers of held rows are not those of ledger rows.
    ...(filter.held === true && { corrected: null }),
    ...{ postedAfter: bounds.after, postedTo: bounds.to, lastMonth: filter.to?.slice(0, 7) ?? null },
  };
}

async function readRows(tx: Transaction, asked: RowQuery): Promise<LedgerRow[]> {
  const parameters = await parametersOf(tx, asked);
  if (parameters === undefined) return [];
  const rows = await query<LedgerRow>(tx, found(SORTED[asked.sort], sourceOf(asked.filter)), parameters);
  if (asked.limit === null && rows.length > MOST) {
    const month = asked.filter.month ?? '';
    throw refuseField('month', month, 'has more than 100,000 of these rows: choose a partner or days, too');
  }
  return asked.filter.held === true ? rows.map((each) => ({ ...each, corrections: [] })) : rows;
}

type RowTotals = Readonly<{
  currency: string;
  count: number;
  spot_price: string;
  partner_cut: string;
  invoice_amount: string;
}>;

/** More rows than a sheet can have are not summed: a page would take seconds. */
async function readTotals(tx: Transaction, asked: RowQuery): Promise<Sums> {
  const parameters = await parametersOf(tx, asked);
  if (parameters === undefined) return { count: 0, totals: [] };
  const sums = sumsBy(await query<RowTotals>(tx, summed(SORTED[asked.sort], sourceOf(asked.filter)), parameters));
  return (sums.count ?? 0) > MOST ? { count: null, totals: [] } : sums;
}

const isLate = ({ month, posted_month }: LedgerRow): boolean => posted_month !== null && month !== posted_month;

/** The JSON of a row. */
export const rowJson = ({ partner_name: _, own_id: __, ...row }: LedgerRow) => {
  const of = (amount: string) => Amount.of(amount, row.currency).toString();
  const { spot_price, partner_cut, invoice_amount, accepted_on: ___, ...rest } = row;
  return { ...rest, spotPrice: of(spot_price), partnerCut: of(partner_cut), invoiceAmount: of(invoice_amount) };
};

export const rows = defineList({
  command: 'ledger rows',
  summary: 'List ledger rows, also of the open month',
  title: 'Ledger rows',
  one: 'row',
  help: `Without a month, a day, a quote, an enrollment, an order or a document, the
rows of the latest month are listed.`,
  filters,
  views: [
    ['All', {}],
    ['Late', { late: 'yes' }],
    ['Corrected', { corrected: 'yes' }],
    ['Held', { held: 'yes' }],
  ],
  sorts: ['-entry_id', 'entry_id'],
  columns: {
    own_id: { heading: 'Id', look: 'id', to: ({ quote_id }) => ['rows', { quote: quote_id }] },
    entry_id: { heading: 'Row', type: 'count' },
    kind: { value: ({ kind }) => rowKindName(kind, 1), unlessSame: true },
    standing: {
      ...{ heading: 'Kind', type: 'marks' },
      value: ({ kind, corrections }) => [
        { text: rowKindName(kind, 1), tone: 'plain' },
        ...corrections.map((text) => ({ text, tone: 'warn' as const })),
      ],
    },
    corrections: { value: ({ corrections }) => corrections.join(', '), unlessSame: true },
    partner_id: { unlessSame: true },
    partner_name: { to: ({ partner_id }) => ['partners', partner_id] },
    policy_id: {},
    quote_id: {},
    requote_id: {},
    reversal_id: {},
    enrollment_id: { look: 'id' },
    order_reference: { heading: 'Order', look: 'soft', cut: true },
    currency: { heading: '' },
    accepted_at: { heading: 'Accepted', type: 'instant' },
    accepted_on: { heading: 'Accepted', type: 'date', look: 'soft' },
    spot_price: { heading: 'Price', type: 'amount', look: 'soft' },
    partner_cut: { type: 'amount', look: 'soft' },
    invoice_amount: { heading: 'Amount', type: 'amount' },
    month: { type: 'month' },
    posted_month: { type: 'month' },
    late: { value: (row) => (isLate(row) ? 'yes' : '') },
    document: {},
    reference: {
      heading: 'Policy, enrollment, order',
      look: 'id',
      value: ({ policy_id, enrollment_id, order_reference }) =>
        [policy_id, enrollment_id, order_reference].filter(Boolean).join(', '),
    },
    billed: {
      look: 'line',
      value: (row) => `${row.document ?? row.posted_month ?? 'held'}${isLate(row) ? ', late' : ''}`,
      to: ({ document }) => (document === null ? null : ['invoices', document]),
    },
  },
  sheet: names(
    'entry_id kind partner_id partner_name policy_id quote_id requote_id reversal_id enrollment_id order_reference',
    'accepted_at currency spot_price partner_cut invoice_amount month posted_month late document corrections',
  ),
  terminal: names(
    'entry_id partner_id kind own_id policy_id enrollment_id order_reference accepted_at spot_price invoice_amount',
    'currency late document corrections',
  ),
  page: names('own_id standing partner_name reference accepted_on billed spot_price partner_cut invoice_amount'),
  ticks: {
    ...{ field: 'rows', actions: ['rows.reverse'] },
    within: { filter: 'document', field: 'number', actions: ['invoice.credit', 'dispute.open'] },
    of: ({ kind, posted_month, entry_id, corrections }) =>
      kind === 'reversal' ||
      posted_month === null ||
      corrections.some((each) => !['disputed', 'partly reversed'].includes(each))
        ? null
        : String(entry_id),
  },
  key: keyOf,
  keyed: 'text',
  defaults: defaultsOf,
  read: readRows,
  sums: readTotals,
  json: async (_tx, found) => found.map(rowJson),
});
