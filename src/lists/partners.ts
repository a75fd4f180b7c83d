/** Partners: `reckoner partner list`, and the console's Partners with balances, last billing and e-mail problems. */
import { z } from 'zod';
import { query, Transaction } from '#database/transaction';
import { partnerJson } from '#partners/change';
import { PartnerView, readPartners } from '#partners/partners.sql';
import { PartnerBalance, readPartnerBalances } from '#reports/partner-balances';
import { Amount, Month, names, plural, sumsOf } from '#values';
import { choice, defineList, given, ListQuery, Mark, Sums, soughtText, text } from './list.ts';
import { sortedBy, sortsOf } from './statement.ts';

type Line = Readonly<{
  partner_id: string;
  last_billed: Month | null;
  troubled: Readonly<Partial<Record<'held' | 'failed' | 'uncertain' | 'bounced', number>>>;
}>;

interface PartnerRow extends Line, Omit<PartnerView, 'partner_id'> {
  /** Only the page reads these fields, because files do not show balances. */
  readonly balances: readonly PartnerBalance[];
}

const filters = z.strictObject({
  text: soughtText(
    'Name, id, contact, tax id',
    'Only partners with this text in the name, id, contact or tax id, or with a similar name.',
  ).optional(),
  status: choice('Status', 'Active, inactive, or contact: its contact has problems.', [
    'active',
    'inactive',
    'contact',
  ]).optional(),
  currency: text('Currency', 'Only partners with this currency.').optional(),
});
type PartnerFilter = z.output<typeof filters>;

const VISIBLE = '(:scope::text[] IS NULL OR p.partner_id = ANY (:scope::text[]))';

const TROUBLED = `
     WITH troubled AS (
       SELECT partner_id, json_object_agg(status, emails) AS troubled
       FROM (
         SELECT coalesce(e.partner_id, d.partner_id) AS partner_id, e.status, count(*) AS emails
         FROM unfinished_emails u JOIN emails e USING (email_id) LEFT JOIN documents d ON d.document_id = e.document_id
         WHERE e.status IN ('held', 'failed', 'uncertain', 'bounced')
         GROUP BY coalesce(e.partner_id, d.partner_id), e.status) AS counted
       WHERE partner_id IS NOT NULL GROUP BY partner_id
     )`;

const FROM = 'partners p LEFT JOIN troubled t USING (partner_id)';

const WHERE = `${VISIBLE}
         AND (:text::text IS NULL OR strpos(lower(concat_ws(E'\\n', p.partner_id, p.name, p.contact_name,
                p.contact_email, array_to_string(p.contact_cc, E'\\n'), p.tax_id)), lower(:text)) > 0
              OR (length(:text) > 3 AND strict_word_similarity(lower(:text), lower(p.name)) > 0.45))
         AND (:currency::text IS NULL OR p.currency = upper(:currency))
         AND (:status::text IS NULL OR CASE :status
                WHEN 'active' THEN p.inactive_since IS NULL
                WHEN 'inactive' THEN p.inactive_since IS NOT NULL
                ELSE p.contact_email = '' OR t.partner_id IS NOT NULL END)`;

const LAST_BILLED = `(SELECT max(d.month) FROM documents d
             WHERE d.partner_id = p.partner_id AND d.purpose = 'month' AND d.replaces IS NULL)`;

const SORTED = sortedBy({
  select: () => `p.partner_id, ${LAST_BILLED} AS last_billed, coalesce(t.troubled, '{}') AS troubled`,
  from: FROM,
  where: WHERE,
  visible: VISIBLE,
  id: 'p.partner_id',
  type: 'text',
  by: { name: 'lower(p.name)', partner_id: 'p.partner_id', last_billed: `coalesce(${LAST_BILLED}, '')` },
  around: (page) => `${TROUBLED} ${page}`,
});
type PartnerSort = keyof typeof SORTED;

async function readTotals(tx: Transaction, asked: ListQuery<PartnerFilter, PartnerSort>): Promise<Sums> {
  const { scope, today } = asked;
  const found = `${TROUBLED} SELECT p.partner_id FROM ${FROM} WHERE ${WHERE}`;
  const ids = await query<{ partner_id: string }>(tx, found, { ...given(filters, asked.filter), scope });
  const { balances } = await readPartnerBalances(tx, { today, scope: ids.map(({ partner_id }) => partner_id) });
  const sums = (of: 'overdue' | 'net') => sumsOf(balances.map((each) => Amount.of(each[of], each.currency)));
  const [overdue, net] = [sums('overdue'), sums('net')];
  return { count: ids.length, totals: net.map((balance, at) => ({ overdue: overdue[at] as Amount, balance })) };
}

async function readRows(tx: Transaction, asked: ListQuery<PartnerFilter, PartnerSort>): Promise<PartnerRow[]> {
  const { scope, after, limit, today } = asked;
  const lines = await query<Line>(tx, SORTED[asked.sort], { ...given(filters, asked.filter), scope, after, limit });
  const ids = lines.map(({ partner_id }) => partner_id);
  const partners = new Map((await readPartners(tx, ids)).map((each) => [each.partner_id, each]));
  const { balances } = limit === null ? { balances: [] } : await readPartnerBalances(tx, { today, scope: ids });
  return lines.map((line) => ({
    ...(partners.get(line.partner_id) as PartnerView),
    ...line,
    balances: balances.filter(({ partner_id }) => partner_id === line.partner_id),
  }));
}

const byCurrency = ({ balances }: PartnerRow, of: 'overdue' | 'net') =>
  balances.map((each) => Amount.of(each[of], each.currency)).filter((each) => !each.isZero());

const TROUBLES = [
  ['bounced', 'bad'],
  ['failed', 'bad'],
  ['uncertain', 'warn'],
  ['held', 'warn'],
] as const;

/** Marks for problems that keep e-mails from the partner. */
const troublesOf = ({ invoicing_contact: { email }, troubled }: PartnerRow): Mark[] => [
  ...(email === '' ? [{ text: 'no e-mail address', tone: 'bad' } as const] : []),
  ...TROUBLES.flatMap(([status, tone]) => {
    const count = troubled[status];
    return count === undefined ? [] : [{ text: `${plural(count, 'e-mail')} ${status}`, tone }];
  }),
];

export const partners = defineList({
  command: 'partner list',
  summary: 'List all partners',
  title: 'Partners',
  one: 'partner',
  none: 'No partners yet.',
  first: { label: 'Add them', action: 'partner.import', input: {} },
  filters,
  views: [
    ['All', {}],
    ['Active', { status: 'active' }],
    ['Contact problems', { status: 'contact' }],
    ['Inactive', { status: 'inactive' }],
  ],
  sorts: sortsOf(SORTED, 'name', 'partner_id'),
  columns: {
    partner_id: { cut: true, look: 'soft' },
    name: { cut: true, to: ({ partner_id }) => ['partners', partner_id] },
    line1: { heading: 'Address', value: ({ address }) => address.line1 },
    line2: { heading: 'Address', value: ({ address }) => address.line2 },
    city: { value: ({ address }) => address.city },
    region: { value: ({ address }) => address.region },
    postal_code: { value: ({ address }) => address.postal_code },
    country: { value: ({ address }) => address.country },
    contact: { value: ({ invoicing_contact: { name } }) => name },
    email: { heading: 'E-mail', look: 'wrap', value: ({ invoicing_contact: { email } }) => email },
    cc: { value: ({ invoicing_contact: { cc } }) => cc.join(' ') },
    troubles: {
      ...{ heading: 'Contact problems', type: 'marks', value: troublesOf },
      to: ({ partner_id }) => [`partners/${encodeURIComponent(partner_id)}`, 'emails'],
    },
    currency: {},
    time_zone: {},
    payment_terms_days: { heading: 'Terms', type: 'count' },
    tax_id: { heading: 'Tax id' },
    purchase_order: {},
    arrangement: {},
    policies: { type: 'count', value: ({ policies }) => policies.filter(({ active }) => active).length },
    active: {},
    inactive: { heading: '', value: ({ active }) => (active ? '' : 'inactive') },
    standing: {
      ...{ heading: 'Status', type: 'marks' },
      value: ({ active }) => (active ? [] : [{ text: 'inactive', tone: 'plain' }]),
    },
    last_billed: { heading: 'Last close', type: 'month', look: 'soft' },
    overdue: { type: 'amount', value: (row) => byCurrency(row, 'overdue') },
    balance: { type: 'amount', value: (row) => byCurrency(row, 'net') },
  },
  sheet: names(
    'partner_id name line1 line2 city region postal_code country contact email cc currency time_zone',
    'payment_terms_days tax_id purchase_order arrangement policies active',
  ),
  terminal: names('partner_id name currency time_zone policies inactive'),
  page: names('name standing email troubles last_billed overdue balance'),
  key: ({ partner_id }) => partner_id,
  keyed: 'text',
  read: readRows,
  sums: readTotals,
  json: async (_tx, rows) =>
    rows.map(({ last_billed: _last, troubled: _troubled, balances: _balances, ...partner }) => partnerJson(partner)),
});
