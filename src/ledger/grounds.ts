/** Judges the reversals of an import, or one of the API, by the rules of `cancellation.ts` and the partner's ceilings. */
import { DateTime } from 'luxon';
import { Settings } from '#config/settings';
import { lockLedgerShared } from '#database/ledger-lock';
import { Transaction } from '#database/transaction';
import { minorDigits } from '#money';
import { Month, monthBefore } from '#month';
import { judgeQuote, QuoteRow, StoredTerms, Verdict } from './cancellation.ts';
import {
  keepVerdicts,
  MonthOfReversals,
  readMonthsOfReversals,
  readQuotesToJudge,
  readTermsOf,
} from './grounds.sql.ts';
import { inMinorUnits } from './row.ts';

export type Ceilings = Settings['reversals'];

/** Judges the good staged reversals. Those that no rule allows are held. */
export async function judgeReversals(tx: Transaction, now: DateTime<true>, ceilings: Ceilings) {
  // A ceiling belongs to a posting month: from here on, no close moves the reversals to the next one.
  if (ceilings.share !== null || Object.keys(ceilings.above).length > 0) await lockLedgerShared(tx);
  const rows = await readQuotesToJudge(tx, { now: now.toISO() });
  if (rows.length === 0) return keepVerdicts(tx, []);
  await keepVerdicts(tx, await judgeRows(tx, rows, await readTermsOf(tx, rows), ceilings, { staged: true }));
}

/** Judges the new reversals among the rows of quotes, which are in the order of quotes and of their times. */
export async function judgeRows(
  tx: Transaction,
  rows: readonly QuoteRow[],
  terms: ReadonlyMap<string, StoredTerms[]>,
  ceilings: Ceilings,
  { staged }: { staged: boolean } = { staged: false },
): Promise<Verdict[]> {
  const isAbove = await ceilingOf(tx, rows, ceilings, staged);
  return quotesOf(rows).flatMap((quote) => judgeQuote(quote, termsOfQuote(quote, terms), isAbove));
}

export const termsOfQuote = ([row]: readonly QuoteRow[], terms: ReadonlyMap<string, StoredTerms[]>) =>
  terms.get(`${row?.partner_id} ${row?.policy_id}`) ?? [];

function quotesOf(rows: readonly QuoteRow[]) {
  const quotes = new Map<string, QuoteRow[]>();
  for (const row of rows) {
    const key = `${row.partner_id} ${row.quote_id}`;
    const quote = quotes.get(key);
    if (quote === undefined) quotes.set(key, [row]);
    else quote.push(row);
  }
  return [...quotes.values()];
}

type OfMonth = Pick<MonthOfReversals, 'partner_id' | 'currency' | 'posted_month'>;
const monthKey = ({ partner_id, currency, posted_month }: OfMonth) => `${partner_id} ${currency} ${posted_month}`;

/**
 * Counts the reversals of each partner, currency and posting month as they are judged. Returns undefined if there are no
 * ceilings.
 */
async function ceilingOf(
  tx: Transaction,
  rows: readonly QuoteRow[],
  { above, share }: Ceilings,
  staged: boolean,
): Promise<((row: QuoteRow, share: bigint) => boolean) | undefined> {
  const judged = rows.filter(
    (row) => row.kind === 'reversal' && row.seq !== null && (share !== null || above[row.currency] !== undefined),
  );
  if (judged.length === 0) return undefined;
  const months = [...new Map(judged.map((row) => [monthKey(row), row])).values()].map(
    ({ partner_id, currency, posted_month }) => ({
      ...{ partner_id, currency, posted_month, before: monthBefore(posted_month as Month) },
    }),
  );
  const left = new Map(
    (await readMonthsOfReversals(tx, months, { staged })).map((month) => {
      const of = (amount: string) => inMinorUnits(amount, minorDigits(month.currency) as number);
      const most = above[month.currency];
      const limits = [
        ...(most === undefined ? [] : [of(most)]),
        ...(share === null ? [] : [(of(month.sold) * inMinorUnits(share, 4)) / 10_000n]),
      ];
      return [monthKey(month), limits.reduce((one, other) => (one < other ? one : other)) - of(month.reversed)];
    }),
  );
  return (row, amount) => {
    const rest = left.get(monthKey(row));
    if (rest === undefined) return false;
    if (amount > rest) return true;
    left.set(monthKey(row), rest - amount);
    return false;
  };
}
