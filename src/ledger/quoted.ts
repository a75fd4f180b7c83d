/**
 * Compares rows of files with the API's quotes and with policies. A row that differs from the quote with its id is a
 * conflict. A row accepted after its quote expired, or above the policy's largest price, is refused. A cut that differs
 * from the policy's is only reported.
 */
import { Transaction } from '#database/transaction';
import { Amount } from '#money';
import { plural } from '#text';
import { DifferingCuts, LimitedRow, readLimited, recordAboveLargest } from './quoted.sql.ts';
import { inTenThousandths } from './row.ts';

/**
 * Finds quotes and requotes whose price exceeds the largest price of their policy, or is in a different currency. The
 * price of a quote includes its rows in the ledger and its earlier acceptable rows in the file. Reversals in the file
 * are included only if no bad row can be skipped. If bad rows can be skipped, a reversal might not be recorded.
 */
export async function findAboveLargest(tx: Transaction, given: { skipInvalid: boolean }) {
  await recordAboveLargest(tx, tooDear(await readLimited(tx, given)));
}

/**
 * The rows that exceed the largest price, each with the total of its quote. A row that exceeds the price is not added
 * to the total of later rows.
 */
function tooDear(rows: readonly LimitedRow[]) {
  const prices = new Map<string, bigint>();
  return rows.flatMap(({ seq, kind, currency, spot_price, price_before, largest_price, largest_in, ...row }) => {
    const quote = `${row.partner_id} ${row.quote_id}`;
    const price = (prices.get(quote) ?? inTenThousandths(price_before)) + inTenThousandths(spot_price);
    const isAbove = currency !== largest_in || price > inTenThousandths(largest_price);
    if (kind !== 'reversal' && isAbove) return [{ seq, price: String(price) }];
    prices.set(quote, price);
    return [];
  });
}

/** `2 rows of p-1, ticket-protection, have a cut of 85.00 USD; its rate of 0.30 gives 25.50 USD.` */
export function describeDifferingCut(row: DifferingCuts) {
  const { partner_id, policy_id, currency, partner_cut_rate, rows, partner_cut, by_rate } = row;
  const people = (amount: string) => Amount.of(amount, currency).forPeople();
  return (
    `${plural(rows, 'row')} of ${partner_id}, ${policy_id}, ${rows === 1 ? 'has' : 'have'} a cut of ` +
    `${people(partner_cut)}; the rate of ${partner_cut_rate} gives ${people(by_rate)}.`
  );
}
