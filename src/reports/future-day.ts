import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { readPresentDay } from './balances.sql.ts';

/** Refuses a report as of a future day, because later payments and documents are unknown. Refusal: date_in_future. */
export async function refuseFutureDay(tx: Transaction, asOf: string | undefined, today: string, argument = '--as-of') {
  if (asOf === undefined || asOf <= today) return;
  const present = await readPresentDay(tx, today);
  if (asOf > present) throw refuse('date_in_future', { argument, value: asOf, today: present });
}
