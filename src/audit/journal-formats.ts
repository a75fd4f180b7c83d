/**
 * The journal as plain-text accounting programs read it: hledger and ledger take one file, beancount has its own. Pure:
 * entries in, text out. Accounts and currencies are declared, every currency is written with exactly its digits, there
 * are no prices, and each month ends with an assertion of every balance.
 */
import { Amount, minorDigits } from '../money.ts';

export interface Posting {
  /** `assets:receivable:billed` */
  readonly control: string;
  /** What tells its subaccounts apart: a partner, a policy, a bank account; empty for none. */
  readonly detail: string;
  readonly currency: string;
  /** A debit is above zero, a credit below. */
  readonly amount: string;
}

export interface JournalEntry {
  /** `YYYY-MM-DD`, in the month in which it stands for good. */
  readonly entry_on: string;
  /** The day that it happened, where that is another. */
  readonly dated_on: string;
  /** What happened: `document_issued`. */
  readonly fact: string;
  readonly fact_id: number;
  readonly document: string | null;
  readonly reference: string | null;
  readonly postings: readonly Posting[];
}

export type Account = Pick<Posting, 'control' | 'detail' | 'currency'>;

export interface JournalFormat {
  /** The file's name in a pack. */
  readonly file: string;
  /** What stands before the first entry: every account and currency of the file. */
  readonly head: (title: string, accounts: readonly Account[]) => string;
  /** Balances carried forward, as an entry at the start of a day. */
  readonly opening: (day: string, balances: readonly Posting[]) => string;
  readonly entry: (entry: JournalEntry) => string;
  /** That accounts have these balances when a day ends. */
  readonly closing: (day: string, balances: readonly Posting[]) => string;
}

const exact = ({ amount, currency }: Pick<Posting, 'amount' | 'currency'>): string =>
  `${Amount.of(amount, currency)} ${currency}`;

const dayAfter = (day: string): string =>
  new Date(Date.parse(`${day}T00:00:00Z`) + 86_400_000).toISOString().slice(0, 10);

const byCurrency = (postings: readonly Posting[]): Posting[][] => {
  const groups = new Map<string, Posting[]>();
  for (const posting of postings) groups.set(posting.currency, [...(groups.get(posting.currency) ?? []), posting]);
  return [...groups.values()];
};

/** Texts from outside, on one line and without what the formats read as something else. What they were, the CSV has. */
const plain = (text: string): string =>
  text
    .replace(/[^\p{L}\p{N} ._,:/#@+-]+/gu, ' ')
    .replace(/ +/g, ' ')
    .trim();

// --- hledger and ledger -----------------------------------------------------------------------------------------------

/** The name of a subaccount: what could end it or part it (spaces, colons, …) is percent-encoded, so that it can be read back. */
const escaped = (detail: string): string =>
  detail.replace(/[^A-Za-z0-9._-]/gu, (character) => encodeURIComponent(character).replace(/[!'()*~]/g, hexed));

const hexed = (character: string): string => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;

/** As the export names it: `assets:receivable:billed:p-1`. */
export const accountName = ({ control, detail }: Pick<Account, 'control' | 'detail'>): string =>
  detail === '' ? control : `${control}:${escaped(detail)}`;

const line = (posting: Posting, assertion = ''): string =>
  `    ${accountName(posting)}    ${exact(posting)}${assertion}\n`;

// hledger wants a decimal mark in the format, and ledger reads none without decimals behind it.
const commodity = (currency: string): string => {
  const digits = minorDigits(currency) as number;
  const format = digits === 0 ? '' : `    format 1000.${'0'.repeat(digits)} ${currency}\n`;
  return `commodity ${currency}\n${format}`;
};

const distinct = (texts: readonly string[]): string[] => [...new Set(texts)].sort();

export const HLEDGER: JournalFormat = {
  file: 'journal.ledger',
  head: (title, accounts) =>
    [
      `; ${plain(title)}\n; For hledger and ledger. Dates are those under which an entry stands for good.\n\n`,
      ...distinct(accounts.map(({ currency }) => currency)).map(commodity),
      '\ntag dated\n\n',
      ...distinct(accounts.map(accountName)).map((name) => `account ${name}\n`),
      '\n',
    ].join(''),
  opening: (day, balances) =>
    byCurrency(balances)
      .map((postings) => `${day} * opening balances\n${postings.map((each) => line(each)).join('')}\n`)
      .join(''),
  entry: ({ entry_on, dated_on, fact, fact_id, document, reference, postings }) =>
    [
      `${entry_on} * (${fact}:${fact_id}) ${plain([fact, document, reference].filter((each) => each).join(' '))}\n`,
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

// --- beancount ----------------------------------------------------------------------------------------------------------

/**
 * beancount's accounts have words of letters, digits and hyphens that begin with a capital. A detail is `Id-` and itself
 * with every other character as a hyphen and its code in four hexadecimal digits; a hyphen is two.
 */
export const beancountAccount = ({ control, detail }: Pick<Account, 'control' | 'detail'>): string => {
  const words = control.split(':').map((word) => word[0]?.toUpperCase() + word.slice(1));
  const own = detail.replace(/[^A-Za-z0-9]/g, (character) =>
    character === '-' ? '--' : `-${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return [...words, ...(detail === '' ? [] : [`Id-${own}`])].join(':');
};

const beancountLine = (posting: Posting): string => `  ${beancountAccount(posting)}  ${exact(posting)}\n`;

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
  entry: ({ entry_on, dated_on, fact, fact_id, document, reference, postings }) =>
    [
      `${entry_on} * "${fact}" "${plain([document, reference].filter((each) => each).join(' '))}"\n`,
      `  fact: "${fact}:${fact_id}"\n`,
      dated_on === entry_on ? '' : `  dated: ${dated_on}\n`,
      ...postings.map(beancountLine),
      '\n',
    ].join(''),
  // An assertion holds when a day begins. Without a tolerance said, beancount would allow one of the last digit.
  closing: (day, balances) =>
    `${balances.map((each) => `${dayAfter(day)} balance ${beancountAccount(each)}  ${Amount.of(each.amount, each.currency)} ~ 0 ${each.currency}\n`).join('')}\n`,
};
