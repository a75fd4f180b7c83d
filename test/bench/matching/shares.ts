/**
 * The receipts of the benchmark by category, and how many there are in each currency. These numbers are constants: a
 * result is comparable with another one only if both are of the same table.
 */

export const CURRENCIES = ['USD', 'EUR', 'GBP', 'JPY'] as const;
export type Currency = (typeof CURRENCIES)[number];

export interface Share {
  /** As the table of results prints it. */
  readonly title: string;
  /** In the order of CURRENCIES: the currency of the receipt. */
  readonly receipts: readonly [number, number, number, number];
  /** Whether such a receipt may be applied without a person. If not, any application is wrong, whatever its target. */
  readonly mayApply: boolean;
  /** Whether the payer could have copied a printed ISO 11649 reference in place of the number. */
  readonly reference: boolean;
}

const share = (title: string, receipts: Share['receipts'], mayApply: boolean, reference: boolean): Share => ({
  title,
  receipts,
  mayApply,
  reference,
});

export const SHARES = {
  clean: share('number, name and amount right', [37, 39, 20, 16], true, true),
  spelling: share('number in another spelling', [18, 18, 9, 6], true, true),
  several: share('several full numbers', [5, 5, 3, 2], true, true),
  family: share('parent pays children, named', [3, 2, 1, 0], true, true),
  cents: share('cents off', [3, 3, 1, 1], true, true),
  fee: share('fee within small difference', [2, 4, 2, 1], true, true),
  largeFee: share('fee of 45.00', [1, 4, 1, 0], true, true),
  part: share('part 1 of 2', [2, 2, 1, 0], true, true),
  exchange: share('exchange, 3 % short', [1, 2, 1, 1], true, true),
  namedCredit: share('less a named credit note', [2, 2, 1, 0], true, true),
  teaching: share('first payment of an account', [5, 1, 0, 0], true, false),
  returned: share('returned (R01)', [6, 0, 0, 0], true, false),
  specialName: share('name without its signs', [1, 5, 2, 0], true, true),
  knownAccount: share('known account, no number', [10, 4, 2, 0], true, true),
  unnamedCredit: share('less a credit note, unnamed', [2, 1, 1, 0], true, true),
  cut: share('number cut at 35 characters', [1, 6, 3, 5], true, true),
  short: share('full number and a short one', [5, 4, 2, 1], true, true),
  statement: share('three invoices, no number', [4, 2, 1, 1], true, false),
  familySum: share('sum of children, no number', [3, 2, 1, 0], true, false),
  lockbox: share('check in a lockbox', [10, 0, 0, 0], true, false),
  otherName: share('name misspelled, no number', [7, 8, 4, 1], true, true),
  kana: share('name in kana, no number', [0, 0, 0, 8], true, false),
  provider: share('payment provider, debtor', [0, 3, 2, 0], true, true),
  wrongDigit: share('one digit wrong', [5, 5, 3, 1], true, true),
  equalFees: share('equal fees each month', [2, 2, 0, 0], true, true),
  twice: share('paid twice', [3, 2, 1, 0], false, false),
  otherCurrency: share('another currency', [2, 1, 1, 0], false, false),
  onAccount: share('on account', [2, 2, 1, 0], false, false),
  stranger: share("a stranger's equal amount", [3, 2, 1, 0], false, false),
  nearTwin: share("near-twin's number", [4, 0, 0, 0], false, false),
  ownOther: share("another own invoice's amount", [4, 2, 1, 1], false, false),
  collective: share('account of many payers', [1, 0, 0, 0], true, false),
} as const satisfies Readonly<Record<string, Share>>;

export type Category = keyof typeof SHARES;
export const CATEGORIES = Object.keys(SHARES) as readonly Category[];

/** How many receipts of a category are in a currency. */
export const sharedTo = (category: Category, currency: Currency): number =>
  SHARES[category].receipts[CURRENCIES.indexOf(currency)] as number;

export const PARTNERS: Readonly<Record<Currency, number>> = { USD: 84, EUR: 64, GBP: 30, JPY: 22 };
/** Partners whose August is a credit note. */
export const CREDIT_NOTES = 10;
/** The receipts of the table, the invoices and the partners, as the set was published. */
export const TOTALS = { partners: 200, invoices: 590, creditNotes: CREDIT_NOTES, receipts: 398 } as const;
