/**
 * Compares rows of files with what was agreed: the quote that our API made with the same id, and the policy's largest
 * price and cut. A row that differs from its quote is a conflict. A row that was accepted after its quote expired, or
 * above the largest price, is refused. A cut that differs from the policy's is reported.
 */
import type { Transaction } from '../database/transaction.ts';
import { Amount } from '../money.ts';
import { plural } from '../text.ts';
import { type DifferingCuts, type LimitedRow, readLimited, recordAboveLargest } from './quoted.sql.ts';
import { inTenThousandths } from './row.ts';

/**
 * Quotes and requotes that take a quote above the largest price of their policy, or have a different currency. The
 * quote's other rows count too, in the ledger and in this import. Of the import, these are earlier rows of the file
 * that are not too high themselves. Reversals count if no bad row can be skipped, because they are then recorded with
 * the rest.
 */
export async function findAboveLargest(tx: Transaction, given: { skipInvalid: boolean }): Promise<void> {
  await recordAboveLargest(tx, tooDear(await readLimited(tx, given)));
}

/** The rows that exceed the limit, each with its quote's total. Skipped rows do not count in the total. */
function tooDear(rows: readonly LimitedRow[]): { seq: number; price: string }[] {
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
export function describeDifferingCut(row: DifferingCuts): string {
  const { partner_id, policy_id, currency, partner_cut_rate, rows, partner_cut, by_rate } = row;
  const people = (amount: string) => Amount.of(amount, currency).forPeople();
  return (
    `${plural(rows, 'row')} of ${partner_id}, ${policy_id}, ${rows === 1 ? 'has' : 'have'} a cut of ` +
    `${people(partner_cut)}; the rate of ${partner_cut_rate} gives ${people(by_rate)}.`
  );
}
