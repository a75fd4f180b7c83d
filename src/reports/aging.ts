/**
 * Aging shows what partners owe on a date, by days past due. Credit and unapplied cash are shown beside the buckets and
 * deducted only in `net`. The total of the aging must equal three accounts of the journal. An aging as of today must
 * also equal the documents' balances.
 */
import { Block, Cell, documentCell, partnerCell } from '#blocks';
import { Transaction } from '#database/transaction';
import { readPartnerNames } from '#partners/partners.sql';
import { Scope } from '#people/scope';
import { columnsOf, Sheet } from '#sheet';
import { Amount, daysBetween, groupThousands, isZero, plural } from '#values';
import { readPresentDay, readTiedBalances, TiedBalance } from './balances.sql.ts';
import { OpenItem, readOpenItems, readOtherBalances, readUnappliedCash, UnappliedCash } from './open-items.sql.ts';
import { BooksOfDay, readBooksOfDay } from './preliminary.ts';

export const BUCKETS = ['not_due', 'days_1_30', 'days_31_60', 'days_61_90', 'over_90'] as const;
export type Bucket = (typeof BUCKETS)[number];

/** `disputed` is part of `open`. */
type Columns<Value> = Readonly<Record<Column | 'net', Value>>;

export type AgingRow = Columns<string> &
  Readonly<{
    partner_id: string | null;
    partner_name: string | null;
    currency: string;
  }>;

export type Aging = BooksOfDay &
  Readonly<{
    as_of: string;
    partners: readonly AgingRow[];
    totals: readonly (Columns<string> & { readonly currency: string })[];
    documents: readonly (OpenItem &
      Readonly<{
        partner_name: string;
        bucket: Bucket | null;
        days_due: number | null;
      }>)[];
    ties: boolean;
    tie: readonly Tie[];
    /**
     * Documents whose balance in the aging differs from `invoice show`. They are checked only if the aging is as of
     * today.
     */
    documents_differ: readonly Readonly<{
      number: string;
      open_items: string;
      balance: string;
    }>[];
  }>;

/** The comparison of an account with the open items, with the partner of each difference. */
type Tie = Readonly<{
  account: string;
  currency: string;
  open_items: string;
  journal: string;
  differences: readonly Readonly<{
    partner_id: string | null;
    open_items: string;
    journal: string;
  }>[];
}>;

export const bucketOf = (dueOn: string, asOf: string): Bucket => bucketAfter(daysBetween(dueOn, asOf));

function bucketAfter(days: number) {
  if (days <= 0) return 'not_due';
  if (days <= 30) return 'days_1_30';
  if (days <= 60) return 'days_31_60';
  return days <= 90 ? 'days_61_90' : 'over_90';
}

/** The sum of the buckets that are past due. */
export const overdueIn = (buckets: Readonly<Record<Bucket, string>>, currency: string) =>
  BUCKETS.filter((bucket) => bucket !== 'not_due').reduce(
    (sum, bucket) => sum.plus(Amount.of(buckets[bucket], currency)),
    Amount.zero(currency),
  );

/**
 * Reads the aging of these partners, or of all partners, as of a date. As of today, every document is also compared
 * with `invoice show`.
 */
export async function readAging(
  tx: Transaction,
  { scope = null, ...day }: { asOf?: string | undefined; today: string; scope?: Scope },
): Promise<Aging> {
  const present = await readPresentDay(tx, day.today);
  const asOf = day.asOf ?? present;
  const items = await readOpenItems(tx, asOf, scope);
  const cash = await readUnappliedCash(tx, asOf, scope);
  const balances = await readTiedBalances(tx, asOf, scope);
  const aging = {
    ...agingOf(asOf, items, cash, balances, await readPartnerNames(tx)),
    ...(await readBooksOfDay(tx, asOf)),
  };
  if (asOf < present) return aging;
  const documents = await readOtherBalances(tx, items, scope);
  return { ...aging, ties: aging.ties && documents.length === 0, documents_differ: documents };
}

/** Computes the aging. The function is pure. */
export function agingOf(
  asOf: string,
  items: readonly OpenItem[],
  cash: readonly UnappliedCash[],
  journal: readonly TiedBalance[],
  names: ReadonlyMap<string, string>,
): Omit<Aging, keyof BooksOfDay> {
  const nameOf = (partnerId: string | null) => names.get(partnerId ?? '') ?? null;
  // The age of each due date is computed only once, because ten thousand documents share a few dozen due dates.
  const ages = new Map<string | null, Readonly<{ bucket: Bucket; days_due: number }>>();
  for (const { due_on } of items) {
    if (due_on === null || ages.has(due_on)) continue;
    const days_due = daysBetween(due_on, asOf);
    ages.set(due_on, { bucket: bucketAfter(days_due), days_due });
  }
  const ledger = new Map<string, Sums>();
  const sumsOf = (partnerId: string | null, currency: string) => {
    const key = `${partnerId ?? ''} ${currency}`;
    const known = ledger.get(key);
    if (known) return known;
    const sums = new Sums(partnerId, currency);
    ledger.set(key, sums);
    return sums;
  };
  for (const item of items) {
    const sums = sumsOf(item.partner_id, item.currency);
    if (item.document === 'credit_note') sums.add('credit', Amount.of(item.balance, item.currency));
    else {
      const balance = Amount.of(item.balance, item.currency);
      sums.add((ages.get(item.due_on) as { bucket: Bucket }).bucket, balance);
      sums.add('open', balance);
      if (!isZero(item.disputed)) sums.add('disputed', Amount.of(item.disputed, item.currency));
    }
  }
  for (const { partner_id, currency, amount } of cash)
    sumsOf(partner_id, currency).add('unapplied', Amount.of(amount, currency));
  // Partners that have a balance only in the journal are compared too.
  for (const { partner_id, currency } of journal) sumsOf(partner_id, currency);

  const partners = [...ledger.values()].sort(inOrder);
  const currencies = [...new Set(partners.map((each) => each.currency))].sort();
  const tie = currencies.flatMap((currency) => tiesOf(currency, partners, journal));
  return {
    as_of: asOf,
    partners: partners
      .filter((each) => !each.isEmpty())
      .map((each) => ({
        ...each.identity,
        partner_name: nameOf(each.partnerId),
        ...each.texts(),
      })),
    totals: currencies.map((currency) => {
      const total = new Sums(null, currency);
      for (const each of partners) if (each.currency === currency) total.addAll(each);
      return { currency, ...total.texts() };
    }),
    documents: items.map((item) => ({
      ...item,
      partner_name: nameOf(item.partner_id) ?? '',
      balance: Amount.of(item.balance, item.currency).toString(),
      disputed: Amount.of(item.disputed, item.currency).toString(),
      ...(ages.get(item.due_on) ?? { bucket: null, days_due: null }),
    })),
    ties: tie.every((each) => each.differences.length === 0),
    tie,
    documents_differ: [],
  };
}

const COLUMNS = [...BUCKETS, 'open', 'disputed', 'credit', 'unapplied'] as const;
type Column = (typeof COLUMNS)[number];

class Sums {
  readonly partnerId: string | null;
  readonly currency: string;
  private readonly values: Record<Column, Amount>;

  constructor(partnerId: string | null, currency: string) {
    this.partnerId = partnerId;
    this.currency = currency;
    this.values = Object.fromEntries(COLUMNS.map((name) => [name, Amount.zero(currency)])) as Record<Column, Amount>;
  }

  get identity(): { partner_id: string | null; currency: string } {
    return { partner_id: this.partnerId, currency: this.currency };
  }

  add(column: Column, amount: Amount) {
    this.values[column] = this.values[column].plus(amount);
  }

  addAll(other: Sums) {
    for (const column of COLUMNS) this.values[column] = this.values[column].plus(other.values[column]);
  }

  value(column: Column) {
    return this.values[column];
  }

  isEmpty() {
    return COLUMNS.every((column) => this.values[column].isZero());
  }

  texts(): Columns<string> {
    const texts = Object.fromEntries(COLUMNS.map((column) => [column, this.values[column].toString()]));
    const { open, credit, unapplied } = this.values;
    return { ...(texts as Record<Column, string>), net: open.minus(credit).minus(unapplied).toString() };
  }
}

function inOrder(a: Sums, b: Sums): number {
  if (a.partnerId === b.partnerId) return a.currency < b.currency ? -1 : 1;
  if (a.partnerId === null || b.partnerId === null) return a.partnerId === null ? 1 : -1;
  return a.partnerId < b.partnerId ? -1 : 1;
}

const ACCOUNTS = [
  ['open', 'receivable', 'assets:receivable:billed'],
  ['credit', 'credit', 'liabilities:partner-credit'],
  ['unapplied', 'unapplied', 'liabilities:unapplied'],
] as const;

function tiesOf(currency: string, partners: readonly Sums[], journal: readonly TiedBalance[]): Tie[] {
  const own = partners.filter((each) => each.currency === currency);
  const postings = new Map(journal.filter((row) => row.currency === currency).map((row) => [row.partner_id, row]));
  return ACCOUNTS.map(([column, name, account]) => {
    const compared = own.map((each) => {
      const posted = postings.get(each.partnerId);
      return { ...each.identity, open: each.value(column), posted: Amount.of(posted?.[name] ?? '0', currency) };
    });
    const sum = (pick: (each: (typeof compared)[number]) => Amount) => Amount.sum(currency, compared, pick).toString();
    return {
      account,
      currency,
      open_items: sum((each) => each.open),
      journal: sum((each) => each.posted),
      differences: compared
        .filter((each) => !each.open.equals(each.posted))
        .map((each) => ({
          partner_id: each.partner_id,
          open_items: each.open.toString(),
          journal: each.posted.toString(),
        })),
    };
  });
}

const payerName = ({ partner_id, partner_name }: { partner_id: string | null; partner_name?: string | null }) =>
  partner_name ?? partner_id ?? '(payer unknown)';

/** Why the aging does not tie to the journal. */
const differencesOf = ({ tie, documents_differ }: Aging): string[] => [
  ...tie.flatMap(({ account, currency, differences }) =>
    differences.map(
      (each) =>
        `${account} of ${payerName(each)}: open items ${each.open_items} ${currency}, journal ${each.journal} ${currency}`,
    ),
  ),
  ...documents_differ.map((each) => `${each.number}: ${each.open_items} recomputed, ${each.balance} shown`),
];

/** The parts of the aging that are documents. */
export const LISTED = [...BUCKETS, 'credit'] as const;
export type Listed = (typeof LISTED)[number];

const HEADINGS = {
  ...{ not_due: 'not due', days_1_30: '1–30 days', days_31_60: '31–60', days_61_90: '61–90', over_90: 'over 90' },
  ...{ open: 'open invoices', disputed: 'disputed', credit: 'credit', unapplied: 'unapplied', net: 'net' },
} as const;
type Sum = keyof typeof HEADINGS;

const TABLES: Readonly<Record<'page' | 'terminal', readonly (readonly [title: string, columns: readonly Sum[]])[]>> = {
  page: [['Days overdue', [...BUCKETS, 'credit', 'unapplied', 'net']]],
  terminal: [
    ['Days overdue', BUCKETS],
    ['Balance', ['open', 'disputed', 'credit', 'unapplied', 'net']],
  ],
};

/** The partners of each currency. An amount leads to its documents. */
export const agingBlocks = (aging: Aging, on: 'page' | 'terminal'): Block[] =>
  aging.totals.flatMap((total) =>
    TABLES[on].map(([title, columns]): Block => {
      const { currency } = total;
      const cells = (row: Columns<string>, partner?: string | null): Cell[] =>
        columns.map((name) => {
          const text = isZero(row[name]) ? '' : groupThousands(row[name]);
          if (text === '' || partner === null || !(LISTED as readonly Sum[]).includes(name)) return text;
          const asked = { as_of: aging.as_of, ...(partner && { partner }), currency, bucket: name };
          return { text, page: `/console/aging?${new URLSearchParams(asked)}` };
        });
      return {
        title: `${title} in ${currency}`,
        table: {
          headings: ['~partner', ...columns.map((name) => `>${HEADINGS[name]}`)],
          rows: aging.partners
            .filter((row) => row.currency === currency && columns.some((name) => !isZero(row[name])))
            .map((row) => [
              row.partner_id === null ? payerName(row) : partnerCell(row.partner_id, payerName(row)),
              ...cells(row, row.partner_id),
            ]),
          foot: [['Total', ...cells(total)]],
        },
      };
    }),
  );

/** Longest overdue first. */
export const agingDocumentsBlock = ({ documents }: Pick<Aging, 'documents'>): Block => ({
  title: plural(documents.length, 'open document'),
  table: {
    headings: ['number', '~partner', 'due', '>days late', '>disputed', '>balance'],
    rows: documents
      .toSorted((one, other) => (other.days_due ?? 0) - (one.days_due ?? 0))
      .map(({ document, number, partner_id, partner_name, due_on, days_due, disputed, balance, currency }) => [
        ...[documentCell(number), partnerCell(partner_id, partner_name), due_on ?? 'credit'],
        ...[Math.max(0, days_due ?? 0) || null, isZero(disputed) ? null : groupThousands(disputed)],
        Amount.of(document === 'credit_note' ? `-${balance}` : balance, currency),
      ]),
  },
});

/** The differences of an aging that does not tie to the journal. */
export const differencesBlocks = (aging: Aging): Block[] =>
  aging.ties
    ? []
    : [{ title: 'Do not rely on these figures: verify the ledger', tone: 'warn', lines: differencesOf(aging) }];

export const agingSheet = ({ partners }: Pick<Aging, 'partners'>): Sheet => ({
  name: 'Aging',
  columns: {
    ...columnsOf('partner_id partner_name currency'),
    ...Object.fromEntries(BUCKETS.map((name) => [name, 'amount' as const])),
    ...columnsOf('open:amount disputed:amount credit:amount unapplied:amount net:amount'),
  },
  rows: partners,
});

export const agingDocumentsSheet = ({ documents }: Pick<Aging, 'documents'>): Sheet => ({
  name: 'Aging by document',
  columns: {
    ...columnsOf('partner_id partner_name number document currency issued_on:date due_on:date days_due:count'),
    ...columnsOf('bucket balance:amount disputed:amount'),
  },
  rows: documents,
});
