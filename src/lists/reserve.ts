/** Days sales outstanding, and the reserve for expected losses by aging bucket: `reckoner report reserve`. */
import { z } from 'zod';
import { query, Transaction } from '#database/transaction';
import { Scope } from '#people/scope';
import { BUCKETS, Bucket, readAging } from '#reports/aging';
import { refuseFutureDay } from '#reports/future-day';
import { DSO_DAYS } from '#reports/position';
import { TOP_PAYERS } from '#reports/roll-forward.sql';
import { Amount, addDays, minorDigits, names } from '#values';
import { date, defineList, ListQuery, pageOf, partner } from './list.ts';
import { GROUP_VIEWS, rollForwardFilters } from './roll-forward.ts';

type Buckets = Readonly<Record<Bucket, string>>;

type Row = Buckets &
  Readonly<{
    key: string;
    partner_id: string | null;
    partner_name: string | null;
    currency: string;
    /** The open invoices, which are the sum of the buckets. */
    open: string;
    /** The percentage of each bucket, and the reserve; null without rates. */
    rates: string | null;
    reserve: string | null;
    /** Invoices less credit notes of the last 90 days, with tax. */
    billed: string;
    /** Null if nothing was billed in these days. */
    days_sales_outstanding: number | null;
    as_of: string;
  }>;

/** Between the rates of the buckets. */
const BETWEEN = ' · ';

const filters = z.strictObject({
  asOf: date('As of', 'The open invoices at the end of this day. Default: today.').optional(),
  group: rollForwardFilters.group,
  partner: partner('Only this partner or payer.', { value: 'id' }).optional(),
  currency: rollForwardFilters.currency,
});
type Filter = z.output<typeof filters>;

/** What was billed by partner, by the entries of documents that were not void by then. */
const readBilled = (tx: Transaction, asOf: string, scope: Scope) =>
  query<{ partner_id: string; payer_id: string | null; name: string; currency: string; amount: string | null }>(
    tx,
    `SELECT p.partner_id, t.payer_id, p.name, c.currency, sum(document_sign(d.document) * d.gross)::text AS amount
     FROM partners p LEFT JOIN (${TOP_PAYERS}) AS t USING (partner_id)
     LEFT JOIN documents d ON d.partner_id = p.partner_id AND d.document <> 'statement' AND d.purpose <> 'opening'
       AND d.entry_on BETWEEN :from::date AND :asOf::date
       AND NOT EXISTS (SELECT FROM voids v WHERE v.document_id = d.document_id AND v.entry_on <= :asOf::date)
     CROSS JOIN LATERAL (SELECT coalesce(d.currency, p.currency) AS currency) AS c
     GROUP BY p.partner_id, t.payer_id, p.name, c.currency`,
    { asOf, from: addDays(asOf, 1 - DSO_DAYS), scope },
  );

type Sums = { readonly partner_id: string | null; readonly currency: string } & Record<Bucket | 'billed', Amount>;

async function readRows(tx: Transaction, { filter, scope, today, context }: ListQuery<Filter>): Promise<Row[]> {
  const { group: by = 'partner', partner: only, currency: wanted } = filter;
  await refuseFutureDay(tx, filter.asOf, today);
  const { as_of, documents } = await readAging(tx, { asOf: filter.asOf, today, scope });
  const billed = await readBilled(tx, as_of, scope);
  const payers = new Map(billed.map(({ partner_id, payer_id }) => [partner_id, payer_id ?? partner_id]));
  const nameOf = new Map(billed.map(({ partner_id, name }) => [partner_id, name]));
  const groups = new Map<string, Sums>();
  const add = (partnerId: string, currency: string, column: Bucket | 'billed', amount: string) => {
    const group = by === 'all' ? null : by === 'family' ? (payers.get(partnerId) ?? partnerId) : partnerId;
    if ((only !== undefined && only !== group) || (wanted && wanted.toUpperCase() !== currency)) return;
    const key = JSON.stringify([group, currency]);
    const zero = Amount.zero(currency);
    const none = Object.fromEntries([...BUCKETS, 'billed'].map((name) => [name, zero])) as Record<
      Bucket | 'billed',
      Amount
    >;
    const sums = groups.get(key) ?? { partner_id: group, currency, ...none };
    sums[column] = sums[column].plus(Amount.of(amount, currency));
    groups.set(key, sums);
  };
  for (const { partner_id, currency, bucket, balance, document } of documents)
    if (document === 'invoice' && bucket !== null) add(partner_id, currency, bucket, balance);
  for (const { partner_id, currency, amount } of billed)
    if (amount !== null && (scope === null || scope.includes(partner_id))) add(partner_id, currency, 'billed', amount);
  const { loss_rates: rates } = context.settings;
  return [...groups.keys()].sort().map((key) => {
    const { partner_id, currency, billed: sold, ...buckets } = groups.get(key) as Sums;
    const total = (amountOf: (bucket: Bucket) => Amount) => Amount.sum(currency, BUCKETS, amountOf);
    const open = total((bucket) => buckets[bucket]);
    return {
      ...{ key, partner_id, partner_name: nameOf.get(partner_id ?? '') ?? null, currency, as_of },
      ...(Object.fromEntries(BUCKETS.map((bucket) => [bucket, buckets[bucket].toString()])) as Buckets),
      rates: rates && BUCKETS.map((bucket) => rates[bucket]).join(BETWEEN),
      ...{ open: open.toString(), billed: sold.toString() },
      reserve: rates && total((bucket) => buckets[bucket].atPercent(rates[bucket])).toString(),
      days_sales_outstanding: sold.isPositive() ? open.partsOf(sold, DSO_DAYS) : null,
    };
  });
}

const bucket = (heading: string) => ({ heading, type: 'amount', look: 'quiet', bare: true }) as const;
export const reserve = defineList({
  command: 'report reserve',
  summary: 'Show the reserve for open invoices by days overdue, and days sales outstanding',
  help: `The setting loss_rates has the percentage of each bucket.`,
  title: 'Reserve',
  one: 'row',
  none: 'No invoice is open, and nothing was billed in the last 90 days.',
  filters,
  views: GROUP_VIEWS,
  sorts: ['partner_id', 'partner_id'],
  columns: {
    partner_id: {},
    partner_name: {
      ...{ heading: 'Partner', cut: true, unlessSame: true },
      value: ({ partner_name, partner_id }) => partner_name ?? partner_id ?? 'All partners',
      to: ({ partner_id, as_of, currency }) => [
        'aging',
        { as_of, currency, ...(partner_id !== null && { partner: partner_id }) },
      ],
    },
    currency: { heading: '', look: 'soft' },
    not_due: bucket('Not due'),
    days_1_30: bucket('1–30'),
    days_31_60: bucket('31–60'),
    days_61_90: bucket('61–90'),
    over_90: bucket('Over 90'),
    rates: { heading: 'Rates, %', look: 'line', unlessZero: true },
    open: { type: 'amount', bare: true },
    reserve: { type: 'amount', bare: true, unlessZero: true },
    billed: { heading: `Billed, ${DSO_DAYS} days`, type: 'amount', look: 'soft', bare: true },
    days_sales_outstanding: { heading: 'DSO', type: 'count' },
  },
  sheet: [
    ...names('partner_id partner_name currency'),
    ...BUCKETS,
    ...names('open rates reserve billed days_sales_outstanding'),
  ],
  terminal: [...names('partner_name currency'), ...BUCKETS, ...names('open reserve days_sales_outstanding')],
  page: [...names('partner_name currency'), ...BUCKETS, ...names('open rates reserve billed days_sales_outstanding')],
  formulas: ({ currency, rates }, cell) => ({
    open: `SUM(${cell('not_due')}:${cell('over_90')})`,
    reserve: BUCKETS.map((name, at) => {
      const percent = String(rates).split(BETWEEN)[at];
      return `ROUND(${cell(name)}*${percent}/100,${minorDigits(String(currency)) ?? 2})`;
    }).join('+'),
    days_sales_outstanding: `ROUND(${cell('open')}/${cell('billed')}*${DSO_DAYS},0)`,
  }),
  summed: [...BUCKETS, 'open', 'reserve', 'billed'],
  key: ({ key }) => key,
  keyed: 'text',
  read: async (tx: Transaction, asked: ListQuery<Filter, 'partner_id'>) =>
    pageOf(await readRows(tx, asked), asked, ({ key }) => key),
});
