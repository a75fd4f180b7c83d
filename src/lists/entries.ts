/**
 * The journal of a month entry by entry, with document numbers and the accounts of the general ledger: `reckoner gl
 * entries`, beside the summarized journals of `export gl`. The rows of a month are one entry for each partner, policy and
 * arrangement, with the document that bills them. In closed books, it is the one that billed them when the books closed.
 */
import { existsSync } from 'node:fs';
import { z } from 'zod';
import { needRows } from '#archive/rows';
import { Accounts, accountsFile, readAccounts } from '#config/accounts';
import { query, queryOne, Transaction } from '#database/transaction';
import { PostingKey, ruleOf } from '#general-ledger/accounts';
import { Installation } from '#people/audit-events';
import { isInPeriod } from '#people/scope';
import { Amount, Month, names } from '#values';
import { defineList, given, ListQuery, month, pageOf, partner, text } from './list.ts';

type Posting = PostingKey &
  Readonly<{
    /** Of postings of one entry: `payment_received:417`, or `sales` of rows. */
    entry: string;
    entry_on: string;
    dated_on: string;
    document: string | null;
    reference: string | null;
    partner_name: string | null;
    amount: string;
  }>;

type Row = Posting &
  Readonly<{ key: string; to_account: string | null; class: string | null; location: string | null }>;

const filters = z.strictObject({
  month: month('Month', 'The month of the entries. Default: the last closed month, or the current one.').optional(),
  document: text('Document', 'Only entries of the document with this number.').optional(),
  partner: partner('Only postings of this partner.', { value: 'id' }).optional(),
  account: text('Account', 'Only this account, such as assets:receivable:billed, with its subaccounts.').optional(),
});
type Filter = z.output<typeof filters>;

const STATEMENT = `
     SELECT p.entry, p.entry_on::text, p.dated_on::text, p.document, personal(p.reference) AS reference, p.control,
            p.account, p.partner_id, n.name AS partner_name, p.policy_id, p.currency, p.amount::text
     FROM (
       SELECT fact || ':' || log_no AS entry, entry_on, dated_on, document, reference, control, account, partner_id,
              policy_id, currency, amount
       FROM journal_of_facts WHERE month = :month
       UNION ALL
       SELECT 'sales:' || r.partner_id || ':' || r.policy_id || ':' || r.currency
                || CASE r.arrangement WHEN 'connected_account' THEN ':connected_account' ELSE '' END,
              last_day(:month), last_day(:month), d.number, NULL, a.control,
              a.control || coalesce(':' || nullif(a.detail, ''), ''), r.partner_id, r.policy_id, r.currency, a.amount
       FROM (
         SELECT partner_id, policy_id, currency, arrangement, sum(spot_price) AS spot_price,
                sum(partner_cut) AS partner_cut, sum(invoice_amount) AS invoice_amount, sum(abs(spot_price)) AS prices,
                sum(abs(partner_cut)) AS cuts, sum(abs(invoice_amount)) AS amounts
         FROM ledger_rows WHERE posted_month = :month GROUP BY 1, 2, 3, 4) AS r
       CROSS JOIN LATERAL row_postings(
         r.arrangement, r.partner_id, r.policy_id, r.spot_price, r.partner_cut, r.invoice_amount) AS a
       -- Sales and reversals that add up to zero are shown, too.
       JOIN LATERAL row_postings(r.arrangement, r.partner_id, r.policy_id, r.prices, r.cuts, r.amounts) AS moved
         ON moved.control = a.control AND moved.amount <> 0
       LEFT JOIN (
         SELECT d.* FROM documents d LEFT JOIN book_closes b USING (month)
         WHERE d.purpose = 'month' AND d.month = (
           SELECT month FROM closed_months WHERE :month > coalesce(previous, '') AND :month <= month)
           AND (b.facts_to IS NULL OR d.log_no <= b.facts_to)
           AND NOT EXISTS (SELECT FROM voids v WHERE v.document_id = d.document_id
                           AND (b.facts_to IS NULL OR v.log_no <= b.facts_to))
       ) AS d ON d.partner_id = r.partner_id AND d.currency = r.currency AND d.arrangement = r.arrangement
     ) AS p
     LEFT JOIN partners n USING (partner_id)
     WHERE (:document::text IS NULL OR p.document = upper(:document))
       AND (:partner::text IS NULL OR p.partner_id = :partner)
       AND (:account::text IS NULL OR p.account = :account OR starts_with(p.account, :account || ':'))
     ORDER BY p.entry_on, p.entry COLLATE "C", p.amount < 0, p.account COLLATE "C"`;

/** The map in force; undefined if there is none. */
function accountsOf({ settings, environment }: Installation): Accounts | undefined {
  if (settings.accounts !== undefined) return settings.accounts;
  return existsSync(accountsFile(environment)) ? readAccounts(environment) : undefined;
}

async function monthOf(tx: Transaction, { filter, today, period }: ListQuery<Filter>) {
  if (filter.month !== undefined) return filter.month;
  const { last } = await queryOne<{ last: Month | null }>(tx, 'SELECT max(month) AS last FROM closed_months', {});
  const latest = last ?? (today.slice(0, 7) as Month);
  return period === null || latest < period.to ? latest : period.to;
}

async function readRows(tx: Transaction, asked: ListQuery<Filter>): Promise<Row[]> {
  const of = await monthOf(tx, asked);
  if (!isInPeriod(asked.period, of)) return [];
  await needRows(tx, { from: of, to: of });
  const postings = await query<Posting>(tx, STATEMENT, { ...given(filters, asked.filter), month: of });
  const accounts = accountsOf(asked.context)?.accounts ?? [];
  return postings.map((posting, at) => {
    const { to = null, class: kind = null, location = null } = ruleOf(accounts, posting) ?? {};
    return { ...posting, key: String(at + 1), to_account: to, class: kind, location };
  });
}

const side = (sign: 1 | -1) => (row: Row) => {
  const amount = Amount.of(row.amount, row.currency);
  if (amount.isNegative() === (sign === 1)) return null;
  return sign === 1 ? amount : amount.negated();
};

export const entries = defineList({
  command: 'gl entries',
  summary: 'List the journal of a month entry by entry, with document numbers',
  help: `General-ledger accounts follow the map in force. The sums by account equal those
of 'export gl'.`,
  title: 'Journal entries',
  one: 'posting',
  ofLedger: true,
  ofPeriod: true,
  none: 'Nothing was posted in this month.',
  filters,
  sorts: ['entry_on', 'entry_on'],
  columns: {
    entry_on: { heading: 'Entered', type: 'date', look: 'soft' },
    dated_on: { heading: 'Dated', type: 'date', look: 'soft', unlessSame: true },
    entry: { look: 'id' },
    document: { look: 'line', to: ({ document }) => (document === null ? null : ['invoices', document]) },
    reference: {},
    account: { look: 'id' },
    to_account: { heading: 'General ledger', unlessZero: true },
    class: {},
    location: {},
    partner_id: {},
    partner_name: { heading: 'Partner', cut: true },
    policy_id: { heading: 'Policy' },
    currency: { heading: '', look: 'soft' },
    debit: { type: 'amount', bare: true, value: side(1) },
    credit: { type: 'amount', bare: true, value: side(-1) },
  },
  sheet: names(
    'entry_on dated_on entry document reference account to_account class location partner_id partner_name policy_id',
    'currency debit credit',
  ),
  terminal: names('entry_on document account partner_name currency debit credit'),
  page: names('entry_on entry document account to_account partner_name currency debit credit'),
  summed: ['debit', 'credit'],
  whole: true,
  key: ({ key }) => key,
  keyed: 'text',
  read: async (tx: Transaction, asked: ListQuery<Filter, 'entry_on'>) =>
    pageOf(await readRows(tx, asked), asked, ({ key }) => key),
});
