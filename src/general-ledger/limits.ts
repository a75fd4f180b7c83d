/**
 * What the general-ledger programs take in one line of a journal. A line beyond that fails at import, or is rounded or
 * cut without a word, so it is refused before a file is written.
 *
 * - QuickBooks Online: names of 100 characters, amounts below 100,000,000,000 (Transaction Pro, "Journal Entry Import
 *   Fields", support.transactionpro.com/kb/article/492), and two decimals in the amount of a line (Breadwinner,
 *   help.breadwinner.com/support/solutions/articles/44001664304).
 * - Xero: account codes of 10 characters, tracking options of 100 (Account.Code and TrackingOption.Name in Xero's
 *   OpenAPI description, github.com/XeroAPI/Xero-OpenAPI), and two decimals (developer.xero.com, "Rounding in Xero").
 *   Xero publishes no limit of the digits before the decimal mark.
 * - NetSuite: ten digits before the decimal mark and two behind it (Oracle, "Journal Entry and Intercompany Journal Entry
 *   Line-Level Fields Table", NetSuite help, section_1534492737).
 */
import { minorDigits } from '#money';
import { GlFormat } from './accounts.ts';
import { GlLine, JournalLine, summarise } from './journal.ts';

type Limits = Readonly<{
  /** Before the decimal mark. */
  digits?: number;
  decimals: number;
  texts: Readonly<Partial<Record<'to_account' | 'class' | 'location' | 'name', number>>>;
}>;

const LIMITS: Readonly<Partial<Record<GlFormat, Limits>>> = {
  quickbooks: { digits: 11, decimals: 2, texts: { to_account: 100, class: 100, location: 100, name: 100 } },
  xero: { decimals: 2, texts: { to_account: 10, class: 100, location: 100 } },
  netsuite: { digits: 10, decimals: 2, texts: {} },
};

const FIELDS = { to_account: 'account', class: 'class', location: 'location', name: 'name' } as const;

export type UnusableLine = Readonly<{
  account: string;
  name: string;
  amount: string;
  currency: string;
  reason: string;
}>;

/** The lines of the journals that the program cannot import as they are, each with the first reason. */
export function unusableLines(format: GlFormat, lines: readonly GlLine[]): UnusableLine[] {
  const limits = LIMITS[format];
  if (limits === undefined) return [];
  return summarise(lines).flatMap(({ currency, lines: own }) =>
    own.flatMap((line) => {
      const reason = reasonOf(line, currency, limits);
      const { to_account: account, name, amount } = line;
      return reason === undefined ? [] : [{ account, name, amount: amount.toString(), currency, reason }];
    }),
  );
}

function reasonOf(line: JournalLine, currency: string, { digits, decimals, texts }: Limits) {
  if ((minorDigits(currency) ?? 0) > decimals) return `has more than ${decimals} decimals`;
  const whole = line.amount.toString().replace('-', '').replace(/\..*/, '').length;
  if (digits !== undefined && whole > digits) return `has more than ${digits} digits before the decimal mark`;
  for (const [field, most] of Object.entries(texts) as [keyof typeof FIELDS, number][]) {
    if (line[field].length > most) return `has more than ${most} characters in its ${FIELDS[field]}`;
  }
  return undefined;
}
