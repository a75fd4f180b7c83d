/**
 * The journal as text for accounting programs: one format for hledger and ledger, one for beancount. The functions are
 * pure. Accounts and currencies are declared, amounts have exactly their currency's digits, there are no prices, and
 * each month ends with an assertion of every balance.
 */
import { Amount, addDays, minorDigits } from '#values';

export type Posting = Readonly<{
  /** `assets:receivable:billed` */
  control: string;
  /** The subaccount: a partner, a policy or a bank account. The value is empty if there is no subaccount. */
  detail: string;
  currency: string;
  /** Debits are positive, credits negative. */
  amount: string;
}>;

export type JournalEntry = Readonly<{
  /** `YYYY-MM-DD`. */
  entry_on: string;
  /** The day on which the fact happened, which is `entry_on` or earlier. */
  dated_on: string;
  /** What happened: `document_issued`. */
  fact: string;
  log_no: number;
  document: string | null;
  reference: string | null;
  postings: readonly Posting[];
}>;

type Account = Pick<Posting, 'control' | 'detail' | 'currency'>;

export type JournalFormat = Readonly<{
  /** The file's name in a pack. */
  file: string;
  /** The declarations of all accounts and currencies. */
  head: (title: string, accounts: readonly Account[]) => string;
  /** Opening balances, as an entry at the start of a day. */
  opening: (day: string, balances: readonly Posting[]) => string;
  entry: (entry: JournalEntry) => string;
  /** Assertions of balances at the end of a day. */
  closing: (day: string, balances: readonly Posting[]) => string;
}>;

const exact = ({ amount, currency }: Pick<Posting, 'amount' | 'currency'>) =>
  `${Amount.of(amount, currency)} ${currency}`;

const byCurrency = (postings: readonly Posting[]) => {
  const groups = new Map<string, Posting[]>();
  for (const posting of postings) groups.set(posting.currency, [...(groups.get(posting.currency) ?? []), posting]);
  return [...groups.values()];
};

/** Puts a text on one line, without characters that have a meaning in the formats. The CSV export has the original. */
const plain = (text: string) =>
  text
    .replace(/[^\p{L}\p{N} ._,:/#@+-]+/gu, ' ')
    .replace(/ +/g, ' ')
    .trim();

// --- hledger and ledger ---

/**
 * The name of a subaccount. Spaces, colons and other characters that could end or split the name are percent-encoded.
 */
const escaped = (detail: string) =>
  detail.replace(/[^A-Za-z0-9._-]/gu, (character) => encodeURIComponent(character).replace(/[!'()*~]/g, hexed));

const hexed = (character: string) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;

/** The account of tax has parts below it that form a tree, such as `liabilities:tax:DE:standard:19`. */
const TAX = 'liabilities:tax';

/** For example `assets:receivable:billed:p-1`. */
export const accountName = ({ control, detail }: Pick<Account, 'control' | 'detail'>) =>
  detail === '' ? control : `${control}:${control === TAX ? detail : escaped(detail)}`;

const line = (posting: Posting, assertion = '') => `    ${accountName(posting)}    ${exact(posting)}${assertion}\n`;

// hledger requires a decimal mark in a format, but ledger does not accept a decimal mark without decimals.
const commodity = (currency: string) => {
  const digits = minorDigits(currency) as number;
  const format = digits === 0 ? '' : `    format 1000.${'0'.repeat(digits)} ${currency}\n`;
  return `commodity ${currency}\n${format}`;
};

const distinct = (texts: readonly string[]) => [...new Set(texts)].sort();

export const HLEDGER: JournalFormat = {
  file: 'journal.ledger',
  head: (title, accounts) =>
    [
      `; ${plain(title)}\n; For hledger and ledger. Dates are entry dates.\n\n`,
      ...distinct(accounts.map(({ currency }) => currency)).map(commodity),
      '\ntag dated\n\n',
      ...distinct(accounts.map(accountName)).map((name) => `account ${name}\n`),
      '\n',
    ].join(''),
  opening: (day, balances) =>
    byCurrency(balances)
      .map((postings) => `${day} * opening balances\n${postings.map((each) => line(each)).join('')}\n`)
      .join(''),
  entry: ({ entry_on, dated_on, fact, log_no, document, reference, postings }) =>
    [
      `${entry_on} * (${fact}:${log_no}) ${plain([fact, document, reference].filter((each) => each).join(' '))}\n`,
      dated_on === entry_on ? '' : `    ; dated: ${dated_on}\n`,
      ...postings.map((each) => line(each)),
      '\n',
    ].join(''),
  closing: (day, balances) =>
    byCurrency(balances)
      .map(
        (postings) =>
          `${day} * balances\n${postings
            .map((each) => line({ ...each, amount: '0' }, ` = ${exact(each)}`))
            .join('')}\n`,
      )
      .join(''),
};

// --- beancount ---

/**
 * Each part of a beancount account has letters, digits and hyphens and begins with a capital or a digit. A detail is
 * written as `Id-` followed by its text. A hyphen in the detail becomes two hyphens, and any other character becomes a
 * hyphen and its code in four hexadecimal digits. The parts of tax are written as they are, 7.75 as 7-75.
 */
export const beancountAccount = ({ control, detail }: Pick<Account, 'control' | 'detail'>) => {
  if (control === TAX) return accountName({ control, detail }).split(':').map(capitalized).join(':');
  const own = detail.replace(/[^A-Za-z0-9]/g, (character) =>
    character === '-' ? '--' : `-${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return [...control.split(':').map(capitalized), ...(detail === '' ? [] : [`Id-${own}`])].join(':');
};

const capitalized = (word: string) => `${word[0]?.toUpperCase()}${word.slice(1).replace(/[._]/g, '-')}`;

const beancountLine = (posting: Posting) => `  ${beancountAccount(posting)}  ${exact(posting)}\n`;

export const BEANCOUNT: JournalFormat = {
  file: 'journal.beancount',
  head: (title, accounts) => {
    const named = new Map(accounts.map((account) => [beancountAccount(account), accountName(account)]));
    return [
      `; ${plain(title)}\n\n`,
      ...distinct(accounts.map(({ currency }) => currency)).map(
        (currency) => `option "operating_currency" "${currency}"\n`,
      ),
      '\n',
      ...[...named].sort().map(([account, name]) => `1970-01-01 open ${account}\n  account: "${name}"\n`),
      '\n',
    ].join('');
  },
  opening: (day, balances) =>
    byCurrency(balances)
      .map((postings) => `${day} * "opening balances"\n${postings.map(beancountLine).join('')}\n`)
      .join(''),
  entry: ({ entry_on, dated_on, fact, log_no, document, reference, postings }) =>
    [
      `${entry_on} * "${fact}" "${plain([document, reference].filter((each) => each).join(' '))}"\n`,
      `  fact: "${fact}:${log_no}"\n`,
      dated_on === entry_on ? '' : `  dated: ${dated_on}\n`,
      ...postings.map(beancountLine),
      '\n',
    ].join(''),
  // beancount asserts at the start of a day, and tolerates a difference in the last digit unless `~ 0` is given. In
  // beancount, the balance of an account includes the subaccounts: Liabilities:Unapplied, which has the cash of unknown
  // payers, includes that of all partners.
  closing: (day, balances) => {
    const totals = new Map<string, Amount>();
    for (const { currency, amount, ...account } of balances) {
      const words = beancountAccount(account).split(':');
      for (const at of words.keys()) {
        const key = `${words.slice(0, at + 1).join(':')}  ${currency}`;
        const value = Amount.of(amount, currency);
        totals.set(key, totals.get(key)?.plus(value) ?? value);
      }
    }
    const lines = balances.map((each) => {
      const name = beancountAccount(each);
      return `${addDays(day, 1)} balance ${name}  ${totals.get(`${name}  ${each.currency}`)} ~ 0 ${each.currency}\n`;
    });
    return `${lines.join('')}\n`;
  },
};
