/**
 * A partner's account statement: opening balance, activity, closing balance and open items. The balance is billed
 * receivables less open credit and unapplied cash. The statement of a parent is one account of its family: it includes
 * the partners that it pays for today, and names the partner of each line. Refusals: partner_unknown, argument_invalid.
 */

import { Block, Cell } from '#blocks';
import { Address } from '#config/validation';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { readPaidFor, readPartners } from '#partners/partners.sql';
import { ReversalKind } from '#payments/enums';
import { Amount, daysBetween, groupThousands } from '#values';
import { Activity, ActivityLine, ActivityRow, readActivity } from './account-statement.sql.ts';
import { BUCKETS, Bucket, bucketOf, overdueIn } from './aging.ts';
import { readPresentDay } from './balances.sql.ts';
import { OpenItem, readOpenItems, readUnappliedCash } from './open-items.sql.ts';
import { BooksOfDay, readBooksOfDay } from './preliminary.ts';

export type CurrencyAccount = Readonly<{
  currency: string;
  opening: string;
  lines: readonly ActivityLine[];
  closing: string;
  open_items: readonly (OpenItem & { readonly days_due: number | null })[];
  unapplied: string;
  aging: Readonly<Record<Bucket, string>>;
  ties: boolean;
}>;

export type AccountStatement = BooksOfDay &
  Readonly<{
    partner_id: string;
    name: string;
    address: Address;
    /** The partners that this partner pays for, whose items the statement includes. */
    pays_for: Awaited<ReturnType<typeof readPaidFor>>;
    from: string;
    as_of: string;
    accounts: readonly CurrencyAccount[];
    ties: boolean;
  }>;

type AccountStatementRequest = Readonly<{
  partnerId: string;
  /** The first day of the statement. The default is the first day of the month of `asOf`. */
  from?: string | undefined;
  asOf?: string | undefined;
  today: string;
}>;

/**
 * The key of a line's label. The key is the kind of fact. It also contains the reason if a payment was reversed, or the
 * direction if a payment was assigned.
 */
type ActivityName =
  | Exclude<Activity, 'payment_reversed'>
  | `payment_${ReversalKind}`
  /**
   * Cash that went to another partner. Either the cash pays an invoice of that partner, or it returns to its payer, or
   * the payer was corrected.
   */
  | 'payment_given_away';

export function activityName({ fact, kind, amount }: Pick<ActivityLine, 'fact' | 'kind' | 'amount'>): ActivityName {
  if (fact === 'payment_reversed') return `payment_${kind ?? 'returned'}`;
  return fact === 'payment_assigned' && !amount.startsWith('-') ? 'payment_given_away' : fact;
}

const ACTIVITIES: Readonly<Record<ActivityName, string>> = {
  document_issued: '',
  document_voided: 'voided:',
  written_off: 'written off:',
  write_off_undone: 'write-off undone:',
  payment_received: 'payment',
  payment_assigned: 'payment',
  payment_given_away: 'payment moved to another partner:',
  small_difference: 'bank charges:',
  small_difference_undone: 'bank charges reversed:',
  payment_returned: 'payment returned',
  payment_refunded: 'payment refunded',
  payment_disputed: 'payment disputed',
  payment_mistake: 'recorded by mistake:',
  payment_duplicate: 'recorded twice:',
  payment_other: 'not for this account:',
  payment_reinstated: 'payment reinstated',
  credit_refunded: 'credit paid out:',
  credit_refund_returned: 'refund returned:',
};

/** A line's text for finance, such as `payment B-1` or `written off: INV-2026-000003`. */
export const activityText = (line: Pick<ActivityLine, 'fact' | 'kind' | 'amount' | 'document' | 'reference'>) =>
  [ACTIVITIES[activityName(line)], line.document ?? line.reference ?? ''].filter(Boolean).join(' ');

export async function readAccountStatement(
  tx: Transaction,
  request: AccountStatementRequest,
): Promise<AccountStatement> {
  const { partnerId } = request;
  const [partner] = await readPartners(tx, partnerId);
  if (partner === undefined) throw refuse('partner_unknown', { partner_id: partnerId });
  const asOf = request.asOf ?? (await readPresentDay(tx, request.today));
  const from = request.from ?? `${asOf.slice(0, 7)}-01`;
  if (from > asOf) {
    throw refuse('argument_invalid', { argument: '--from', value: from, reason: `is after ${asOf}` });
  }
  const paysFor = await readPaidFor(tx, partnerId);
  const partnerIds = [partnerId, ...paysFor.map(({ partner_id }) => partner_id)];
  const moved = await readActivity(tx, partnerIds, asOf);
  const items = await readOpenItems(tx, asOf, partnerIds);
  const cash = await readUnappliedCash(tx, asOf, partnerIds);
  const currencies = [...new Set([...moved, ...items, ...cash].map((each) => each.currency))].sort();
  const accounts = currencies.map((currency) => {
    const own = <Row extends { currency: string }>(rows: readonly Row[]) =>
      rows.filter((row) => row.currency === currency);
    return currencyAccount(currency, { from, asOf }, own(moved), own(items), sumOf(currency, own(cash)));
  });
  return {
    partner_id: partnerId,
    name: partner.name,
    address: partner.address,
    pays_for: paysFor,
    from,
    as_of: asOf,
    accounts,
    ties: accounts.every((each) => each.ties),
    ...(await readBooksOfDay(tx, asOf)),
  };
}

const sumOf = (currency: string, rows: readonly { readonly amount: string }[]) =>
  Amount.sum(currency, rows, ({ amount }) => Amount.of(amount, currency)).toString();

/** `, Harbor Events LLC` for an item of a partner that the statement's partner pays for; otherwise empty. */
export function ofPartner({ pays_for: paysFor }: Pick<AccountStatement, 'pays_for'>, partnerId: string) {
  const found = paysFor.find(({ partner_id }) => partner_id === partnerId);
  return found === undefined ? '' : `, ${found.name}`;
}

/** The activity of each currency. `documents`: where the pages of documents are; a partner's place has only its own. */
export const activityBlocks = (statement: AccountStatement, documents = '/console/invoices'): Block[] =>
  statement.accounts.map(({ currency, opening, closing, lines }) => ({
    title: `Account in ${currency}`,
    table: {
      headings: ['date', '~activity', '>amount', '>balance'],
      rows: [
        [statement.from, 'brought forward', null, groupThousands(opening)],
        ...lines.map((line): Cell[] => {
          const of = ofPartner(statement, line.partner_id);
          const text = `${activityText(line)}${of}${line.dated_on === line.date ? '' : ` (${line.dated_on})`}`;
          const isLinked = line.document !== null && (of === '' || documents === '/console/invoices');
          return [
            ...[line.date, isLinked ? { text, page: `${documents}/${line.document}` } : text],
            ...[groupThousands(line.amount), groupThousands(line.balance)],
          ];
        }),
      ],
      foot: [[statement.as_of, 'balance', null, groupThousands(closing)]],
    },
  }));

export const openItemBlocks = (statement: AccountStatement): Block[] =>
  statement.accounts.flatMap(({ currency, open_items, unapplied }) => {
    const rows: Cell[][] = open_items.map(({ partner_id, number, due_on, days_due, document, balance, disputed }) => [
      `${number}${ofPartner(statement, partner_id)}` +
        (Number(disputed) === 0 ? '' : `, ${groupThousands(disputed)} disputed`),
      due_on === null ? 'credit' : `due ${due_on}`,
      days_due !== null && days_due > 0 ? `${days_due} days` : '',
      groupThousands(document === 'credit_note' ? `-${balance}` : balance),
    ]);
    const cash = Number(unapplied) === 0 ? [] : [['unapplied cash', '', '', groupThousands(`-${unapplied}`)]];
    const table = { headings: ['item', 'due', '>overdue', '>balance'], rows: [...rows, ...cash] };
    return table.rows.length === 0 ? [] : [{ title: `Open in ${currency}`, table }];
  });

/** The overdue part of an account's balance, but at most the amount due after credit and unapplied cash. */
export function overdueOf({ currency, closing, aging }: CurrencyAccount) {
  const overdue = overdueIn(aging, currency);
  const total = Amount.of(closing, currency);
  return total.isLessThan(overdue) ? total : overdue;
}

export function currencyAccount(
  currency: string,
  { from, asOf }: { from: string; asOf: string },
  moved: readonly ActivityRow[],
  items: readonly OpenItem[],
  unapplied: string,
): CurrencyAccount {
  const amount = (text: string) => Amount.of(text, currency);
  let balance = Amount.zero(currency);
  let opening = balance;
  const lines: ActivityLine[] = [];
  for (const { currency: _, ...row } of moved) {
    balance = balance.plus(amount(row.amount));
    if (row.date < from) opening = balance;
    else lines.push({ ...row, amount: amount(row.amount).toString(), balance: balance.toString() });
  }
  const invoices = items.filter((item) => item.document === 'invoice');
  const sum = (rows: readonly OpenItem[]) => Amount.sum(currency, rows, (item) => amount(item.balance));
  const open = sum(invoices)
    .minus(sum(items.filter((item) => item.document === 'credit_note')))
    .minus(amount(unapplied));
  return {
    currency,
    opening: opening.toString(),
    lines,
    closing: balance.toString(),
    open_items: items.map((item) => ({
      ...item,
      balance: amount(item.balance).toString(),
      days_due: item.due_on === null ? null : daysBetween(item.due_on, asOf),
    })),
    unapplied: amount(unapplied).toString(),
    aging: Object.fromEntries(
      BUCKETS.map((bucket) => [
        bucket,
        sum(invoices.filter((item) => bucketOf(item.due_on as string, asOf) === bucket)).toString(),
      ]),
    ) as Record<Bucket, string>,
    ties: open.equals(balance),
  };
}

/**
 * The lines for the partner, without our own corrections. Such a correction is a small difference that was written off
 * and reversed on the same day, because a payment was applied again. The function is pure.
 */
export function withoutOwnCorrections({ currency, opening, lines }: CurrencyAccount): ActivityLine[] {
  const amount = (text: string) => Amount.of(text, currency);
  const left = new Set<ActivityLine>();
  for (const [index, undone] of lines.entries()) {
    if (undone.fact !== 'small_difference_undone') continue;
    const done = lines
      .slice(0, index)
      .findLast(
        (each) =>
          each.fact === 'small_difference' &&
          each.document === undone.document &&
          each.date === undone.date &&
          !left.has(each) &&
          amount(each.amount).plus(amount(undone.amount)).isZero(),
      );
    if (done !== undefined) left.add(done).add(undone);
  }
  let balance = amount(opening);
  return lines.flatMap((line) => {
    if (left.has(line)) return [];
    balance = balance.plus(amount(line.amount));
    return [{ ...line, balance: balance.toString() }];
  });
}
