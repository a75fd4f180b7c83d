/** Days sales outstanding, and the reserve for expected losses by aging bucket: `reckoner report reserve`. */
import { z } from 'zod';
import { query, Transaction } from '#database/transaction';
import { BUCKETS, Bucket, readAging } from '#reports/aging';
import { readPresentDay } from '#reports/balances.sql';
import { BILLED, daysSalesOutstanding } from '#reports/days-sales-outstanding.sql';
import { refuseFutureDay } from '#reports/future-day';
import { GROUPED, Group, RollForwardScope, SELECTED, WITH_PAYERS } from '#reports/roll-forward.sql';
import { Amount, minorDigits, names } from '#values';
import { date, defineList, Link, ListQuery, pageOf, withDigits } from './list.ts';
import { GROUP_VIEWS, rollForwardFilters, statementOf } from './roll-forward.ts';

type Sums = Readonly<Record<Bucket | 'credit' | 'billed', string>> &
  Readonly<{
    /** Null for an unknown payer, and for the sum of all partners. */
    partner_id: string | null;
    partner_name: string | null;
    currency: string;
    /** The days of the closed months; null before the first. */
    days: number | null;
  }>;

type Row = Sums &
  Readonly<{
    key: string;
    group: Group;
    /** The open invoices, which are the sum of the buckets. */
    open: string;
    /** Open invoices less open credit and unapplied cash, as in the aging. */
    net: string;
    /** The percentage of each bucket, and the reserve; null without rates. */
    rates: string | null;
    reserve: string | null;
    /** Null if nothing was billed. */
    days_sales_outstanding: number | null;
    as_of: string;
  }>;

/** Between the rates of the buckets. */
const BETWEEN = ' · ';

const filters = z.strictObject({
  as_of: date('As of', 'The open invoices at the end of this day. Default: today.').optional(),
  group: rollForwardFilters.group,
  partner: rollForwardFilters.partner,
  currency: rollForwardFilters.currency,
});
type Filter = z.output<typeof filters>;

/** The sums of the aging, given by partner, and what was billed. */
const readGroups = (
  tx: Transaction,
  asked: Omit<RollForwardScope, 'from' | 'to' | 'present'> & { asOf: string; aging: readonly object[] },
): Promise<Sums[]> =>
  query(
    tx,
    `WITH ${BILLED}, parts AS (
       SELECT partner_id COLLATE "C" AS partner_id, currency, ${BUCKETS.join(', ')}, credit + unapplied AS credit,
              0 AS billed
       FROM json_to_recordset(:aging::json) AS a (
         partner_id text, currency text, ${BUCKETS.map((name) => `${name} numeric`).join(', ')}, credit numeric,
         unapplied numeric)
       UNION ALL SELECT partner_id, currency, ${BUCKETS.map(() => '0').join(', ')}, 0, amount FROM billed
     ), sums AS (
       SELECT ${GROUPED} AS of_group, r.currency,
              ${[...BUCKETS, 'credit', 'billed'].map((name) => `sum(r.${name})::text AS ${name}`).join(', ')}
       FROM parts r ${WITH_PAYERS} WHERE ${SELECTED} GROUP BY of_group, r.currency
     )
     SELECT s.of_group AS partner_id, p.name AS partner_name, s.currency,
            ${[...BUCKETS, 'credit', 'billed'].join(', ')}, days
     FROM sums s CROSS JOIN billed_days LEFT JOIN partners p ON p.partner_id = s.of_group
     ORDER BY s.of_group COLLATE "C" NULLS LAST, s.currency`,
    asked,
  );

async function readRows(tx: Transaction, { filter, scope, today, context }: ListQuery<Filter>): Promise<Row[]> {
  const { group = 'partner', partner: asked = null, currency: wanted = null } = filter;
  await refuseFutureDay(tx, filter.as_of, today);
  const { as_of, partners: aging } = await readAging(tx, { asOf: filter.as_of, today, scope });
  const groups = await readGroups(tx, { asOf: as_of, aging, group, partner: asked, currency: wanted, scope });
  const { loss_rates: rates } = context.settings;
  return groups.map((found) => {
    const sums = withDigits(found, ...BUCKETS, 'credit', 'billed');
    const { currency, days } = sums;
    const of = (name: Bucket | 'credit') => Amount.of(sums[name], currency);
    const open = Amount.sum(currency, BUCKETS, of);
    return {
      ...{ ...sums, key: `${currency} ${sums.partner_id ?? ''}`, group, as_of },
      ...{ open: open.toString(), net: open.minus(of('credit')).toString() },
      rates: rates && BUCKETS.map((bucket) => rates[bucket]).join(BETWEEN),
      reserve: rates && Amount.sum(currency, BUCKETS, (bucket) => of(bucket).atPercent(rates[bucket])).toString(),
      days_sales_outstanding: daysSalesOutstanding(open, { amount: sums.billed, days }),
    };
  });
}

/** To the open items of the partner, or the statement of the family. */
const openTo = ({ partner_id, group, as_of, currency }: Row): Link =>
  partner_id !== null && group === 'family'
    ? statementOf(partner_id, { as_of })
    : ['aging', { as_of, currency, ...(partner_id !== null && { partner: partner_id }) }];

const bucket = (heading: string) => ({ heading, type: 'amount', look: 'quiet', bare: true }) as const;
export const reserve = defineList({
  command: 'report reserve',
  summary: 'Show the reserve for losses by days overdue, and days sales outstanding',
  help: `The setting loss_rates has the percentage of each bucket. Days sales
outstanding are open invoices ÷ what the last three closed months billed × the
days of these months. Post the total of one grouping, each time the same: each
row is rounded, so the totals of groupings may differ by cents.`,
  title: 'Reserve',
  one: 'row',
  none: 'No invoice is open, and nothing was billed.',
  filters,
  defaults: async (tx, { filter, today }) => ({ as_of: filter.as_of ?? (await readPresentDay(tx, today)) }),
  views: GROUP_VIEWS,
  sorts: ['partner_id', 'partner_id'],
  columns: {
    partner_id: {},
    partner_name: {
      ...{ heading: 'Partner', cut: true, unlessSame: true },
      value: ({ partner_name, partner_id, group }) =>
        partner_name ?? partner_id ?? (group === 'all' ? 'All partners' : 'Payer unknown'),
      to: openTo,
    },
    currency: { heading: '', look: 'soft' },
    not_due: bucket('Not due'),
    days_1_30: bucket('1–30'),
    days_31_60: bucket('31–60'),
    days_61_90: bucket('61–90'),
    over_90: bucket('Over 90'),
    rates: { heading: 'Rates, %', look: 'line', unlessZero: true },
    open: { type: 'amount', bare: true },
    credit: { ...bucket('Open credit'), width: 110 },
    net: { type: 'amount', bare: true, width: 110 },
    reserve: { type: 'amount', bare: true, unlessZero: true },
    billed: { type: 'amount', look: 'soft', bare: true, width: 130 },
    days: { type: 'count', width: 130 },
    days_sales_outstanding: { heading: 'DSO', type: 'count' },
  },
  sheet: [
    ...names('partner_id partner_name currency'),
    ...BUCKETS,
    ...names('open credit net rates reserve billed days days_sales_outstanding'),
  ],
  terminal: [
    ...names('partner_name currency'),
    ...BUCKETS,
    ...names('open credit net reserve billed days days_sales_outstanding'),
  ],
  page: [
    ...names('partner_name currency'),
    ...BUCKETS,
    ...names('open credit net rates reserve billed days_sales_outstanding'),
  ],
  formulas: ({ currency, rates }, cell) => ({
    open: `SUM(${cell('not_due')}:${cell('over_90')})`,
    net: `${cell('open')}-${cell('credit')}`,
    reserve: BUCKETS.map((name, at) => {
      const percent = String(rates).split(BETWEEN)[at];
      return `ROUND(${cell(name)}*${percent}/100,${minorDigits(String(currency)) ?? 2})`;
    }).join('+'),
    days_sales_outstanding: `ROUND(${cell('open')}/${cell('billed')}*${cell('days')},0)`,
  }),
  summed: [...BUCKETS, ...names('open credit net reserve billed')],
  totalled: 'partner_name',
  whole: true,
  key: ({ key }) => key,
  keyed: 'text',
  read: async (tx: Transaction, asked: ListQuery<Filter, 'partner_id'>) =>
    pageOf(await readRows(tx, asked), asked, ({ key }) => key),
});
