/**
 * Holds the invoices of a close whose totals are unusual by the setting `holds`. A held invoice is issued and due as
 * usual, but its e-mail waits until finance releases it (`src/documents/hold.ts`).
 */
import type { Transaction } from '../database/transaction.ts';
import { holdDocument } from '../documents/hold.ts';
import type { IssueContext } from '../documents/issue/context.ts';
import type { IssueBatch } from '../documents/issue/issue.sql.ts';
import { Amount } from '../money.ts';
import { type OddInvoice, readOddInvoices } from './months.sql.ts';

export async function holdOddInvoices(tx: Transaction, context: IssueContext, { month }: IssueBatch): Promise<void> {
  const { above, times } = context.settings.holds;
  if (times === null && Object.keys(above).length === 0) return;
  for (const odd of await readOddInvoices(tx, { month, above, times })) {
    await holdDocument(tx, context, { number: odd.number, reason: reasonOf(odd, context), by: 'close' });
  }
}

function reasonOf(odd: OddInvoice, { settings: { holds } }: IssueContext): string {
  const { currency, largest } = odd;
  const people = (amount: string) => Amount.of(amount, currency).forPeople();
  return odd.is_above
    ? `${people(odd.gross)} is above ${people(holds.above[currency] as string)} (holds.above)`
    : `${people(odd.gross)} is above ${holds.times} times ${people(largest as string)}, the largest invoice of the ` +
        '12 months before (holds.times)';
}
