/**
 * The bank reconciliation: for each bank account, how the balance of the books leads to the balance that the bank
 * states, with every item in between. An account without balances in its files is compared with the sum of its lines.
 */
import { Block, Table } from '#blocks';
import { Transaction } from '#database/transaction';
import { BankLineState } from '#payments/enums';
import { toDo } from '#remedy';
import { columnsOf, Sheet } from '#sheet';
import { Amount, plural } from '#values';
import { readPresentDay } from './balances.sql.ts';
import { BankAccountRow, BankItemRow, readBankAccounts, readBankItems } from './bank-reconciliation.sql.ts';

type BankItemKind = 'not_in_books' | 'in_transit' | 'withdrawn';

type BankItem = Omit<BankItemRow, 'account' | 'currency' | 'text' | 'is_withdrawn'> &
  Readonly<{
    kind: BankItemKind;
    text: string;
  }>;

type AccountReconciliation = Readonly<{
  /** Empty for money that was recorded without an account and is on no statement yet. */
  account: string;
  currency: string;
  books: string;
  /** The balance before the first statement with balances, which no posting of ours explains. */
  opening: string;
  opened_on: string | null;
  not_in_books: string;
  in_transit: string;
  withdrawn: string;
  /** The books with the opening and all items: what the bank should state. */
  expected: string;
  bank: string;
  /** Whether the bank states balances. If not, `bank` is the sum of its lines. */
  balances_stated: boolean;
  reported_to: string | null;
  /** The bank's balance, less the expected one: what no item explains, such as a missing file. */
  difference: string;
  state: 'tied' | 'items' | 'differs' | 'no_statement';
  items: readonly BankItem[];
}>;

type BankReconciliation = Readonly<{
  on: string;
  accounts: readonly AccountReconciliation[];
  /** Whether every account with a statement ties, apart from items in transit. Null if no account has a statement. */
  ties: boolean | null;
}>;

export async function readBankReconciliation(
  tx: Transaction,
  { on, account = null, today }: { on?: string | undefined; account?: string | null | undefined; today: string },
): Promise<BankReconciliation> {
  const day = on ?? (await readPresentDay(tx, today));
  const rows = await readBankAccounts(tx, { day, account });
  const items = await readBankItems(tx, { day, account });
  const accounts = rows
    .map((row) => reconcile(row, items))
    // Money without an account is listed only while there is some.
    .filter((each) => each.account !== '' || each.items.length > 0 || !isNothing(each.books, each.currency));
  const stated = accounts.filter(({ state }) => state !== 'no_statement');
  return { on: day, accounts, ties: stated.length === 0 ? null : stated.every(({ state }) => state === 'tied') };
}

const isNothing = (amount: string, currency: string) => Amount.of(amount, currency).isZero();

function reconcile(row: BankAccountRow, all: readonly BankItemRow[]): AccountReconciliation {
  const { account, currency, opened_on, reported_to } = row;
  const items = all.filter((each) => each.account === account && each.currency === currency).map(itemOf);
  const of = (text: string | null) => Amount.of(text ?? '0', currency);
  const plus = (amount: Amount, some: readonly BankItem[]) =>
    some.reduce((sum, each) => sum.plus(of(each.amount)), amount);
  const sum = (kind: BankItemKind) =>
    `${plus(
      of('0'),
      items.filter((each) => each.kind === kind),
    )}`;
  const expected = plus(of(row.books).plus(of(row.opening)), items);
  const bank = of(row.stated ?? row.lines);
  const difference = bank.minus(expected);
  const open = items.some(({ kind }) => kind !== 'in_transit');
  return {
    ...{ account, currency, opened_on, reported_to, items },
    books: of(row.books).toString(),
    opening: of(row.opening).toString(),
    ...{ not_in_books: sum('not_in_books'), in_transit: sum('in_transit'), withdrawn: sum('withdrawn') },
    expected: expected.toString(),
    bank: bank.toString(),
    balances_stated: row.stated !== null,
    difference: difference.toString(),
    state: !difference.isZero() ? 'differs' : open ? 'items' : reported_to === null ? 'no_statement' : 'tied',
  };
}

const itemOf = ({ account: _, currency, text, is_withdrawn, ...item }: BankItemRow): BankItem => ({
  ...item,
  amount: Amount.of(item.amount, currency).toString(),
  kind: is_withdrawn ? 'withdrawn' : item.bank_line_id === null ? 'in_transit' : 'not_in_books',
  text: text ?? '',
});

/** What an item is, in a few words. */
function nameOfItem({ bank_line_id, state, payment_id, document }: BankItem) {
  const of = document ?? (payment_id === null ? '' : `payment ${payment_id}`);
  if (bank_line_id === null) return of;
  return state === 'unbooked'
    ? `line ${bank_line_id}`
    : `line ${bank_line_id}, ${STATES[state ?? 'unbooked']} ${of}`.trimEnd();
}

const STATES: Readonly<Record<BankLineState, string>> = {
  payment: 'of',
  payout: 'a payout',
  return: 'a return',
  refund: 'a refund',
  booked: 'booked later',
  unbooked: '',
};

const ITEM_KINDS: Readonly<Record<BankItemKind, string>> = {
  not_in_books: 'on the statement, not in the books',
  in_transit: 'in transit: in the books, on no statement yet',
  withdrawn: 'in the books, on a statement that the bank withdrew',
};

/** The steps from the books to the bank, without those that are zero. */
const stepsOf = (each: AccountReconciliation): (readonly [string, string])[] => [
  ['balance of the books', each.books],
  ...(
    [
      [`opening balance of ${each.opened_on}, before the books`, each.opening],
      ...(['in_transit', 'withdrawn', 'not_in_books'] as const).map((kind) => [ITEM_KINDS[kind], each[kind]] as const),
      ['explained by no item: a file may be missing', each.difference],
    ] as const
  ).filter(([, amount]) => !isNothing(amount, each.currency)),
  [bankBalanceOf(each), each.bank],
];

const bankBalanceOf = ({ account, balances_stated, reported_to }: AccountReconciliation) =>
  account === ''
    ? 'on no statement yet'
    : balances_stated
      ? `balance of the bank, reported to ${reported_to}`
      : `sum of the lines, reported to ${reported_to ?? 'no day'}: no balance is stated`;

const accountName = ({ account, currency }: Pick<AccountReconciliation, 'account' | 'currency'>) =>
  `${account === '' ? 'recorded without an account' : account} ${currency}`;

export const bankReconciliationBlocks = ({ accounts }: BankReconciliation): Block[] =>
  accounts.flatMap((each): Block[] => {
    const { currency, items, state } = each;
    const steps = stepsOf(each).map(([name, amount]) => [name, Amount.of(amount, currency)]);
    const title = accountName(each);
    return [
      {
        ...{ title, lines: [verdictOf(each)], ...(state === 'tied' ? {} : { tone: 'warn' }) },
        table: { headings: ['~step', '>amount'], rows: steps.slice(0, -1), foot: steps.slice(-1) },
      },
      ...(items.length === 0 ? [] : [{ title: `Items of ${title}`, table: itemsTable(each) }]),
    ];
  });

const itemsTable = ({ currency, items }: AccountReconciliation): Table => ({
  headings: ['item of', '~item', '~text', '~is', '>amount'],
  rows: items.map((item) => [
    item.dated_on,
    item.payment_id === null
      ? nameOfItem(item)
      : { text: nameOfItem(item), page: `/console/payments/${item.payment_id}` },
    ...[item.text, ITEM_KINDS[item.kind].replace(/:.*/, ''), Amount.of(item.amount, currency)],
  ]),
  remedies: items.map(({ state, bank_line_id }) =>
    state === 'unbooked' ? toDo('Book it', 'bank.book', { bankLineId: String(bank_line_id) }) : null,
  ),
});

/** `2 accounts with a statement: all tie` */
export function summaryOf({ accounts, ties }: BankReconciliation): string {
  if (ties === null) return 'No bank statement to compare with';
  const count = (...states: AccountReconciliation['state'][]) =>
    accounts.filter(({ state }) => states.includes(state)).length;
  const open = count('items', 'differs');
  return open === 0
    ? `${plural(count('tied'), 'account')} with a statement: all tie`
    : `${plural(open, 'account does', 'accounts do')} not tie`;
}

const verdictOf = ({ state, balances_stated }: AccountReconciliation): string =>
  state === 'tied' && !balances_stated ? 'all lines are in the books; the bank states no balance' : VERDICTS[state];

const VERDICTS: Readonly<Record<AccountReconciliation['state'], string>> = {
  no_statement: 'no statement to compare with',
  tied: 'ties',
  items: 'not tied: the books and the lines differ',
  differs: 'not tied: no item explains the difference',
};

export const bankReconciliationSheet = ({ on, accounts }: BankReconciliation): Sheet => ({
  name: 'Bank reconciliation',
  columns: columnsOf('account currency date:date step item text amount:amount'),
  rows: accounts.flatMap((each) => {
    const { account, currency, items } = each;
    return [
      ...stepsOf(each).map(([step, amount]) => ({ account, currency, date: on, step, item: '', text: '', amount })),
      ...items.map((item) => ({
        ...{ account, currency, date: item.dated_on, step: ITEM_KINDS[item.kind], item: nameOfItem(item) },
        ...{ text: item.text, amount: item.amount },
      })),
    ];
  }),
});
