/** Amounts in arguments. Refusals: currency_unknown, amount_invalid. */
import { fieldName } from '../field-names.ts';
import { Amount, amountProblem, minorDigits } from '../money.ts';
import { refuse } from './refusals.ts';

/** Reads an amount in a currency from a text. It must be above zero. `argument` names the field. */
export function positiveAmount(value: string, currency: string, argument = fieldName('amount')): Amount {
  const amount = typedAmount(value, currency, argument);
  if (amount.isPositive()) return amount;
  const reason = 'must be above zero';
  throw refuse('amount_invalid', { argument, value, currency, problem: 'amount_not_positive', reason });
}

/** Reads an amount of either sign in a currency from a text. */
export function typedAmount(value: string, currency: string, argument = fieldName('amount')): Amount {
  const digits = minorDigits(currency);
  if (digits === undefined) throw refuse('currency_unknown', { argument: fieldName('currency'), value: currency });
  const problem = amountProblem(value, digits);
  if (problem === undefined) return Amount.of(value, currency);
  throw refuse('amount_invalid', { argument, value, currency, problem: problem.code, reason: problem.reason });
}
