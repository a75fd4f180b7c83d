/** Parses amounts in arguments. */
import { fieldName } from '#field-names';
import { Amount, amountProblem, minorDigits } from '#money';
import { refuse } from './refusals.ts';

/** Parses an amount above zero. `argument` names the field in refusals. */
export function positiveAmount(value: string, currency: string, argument = fieldName('amount')) {
  const amount = typedAmount(value, currency, argument);
  if (amount.isPositive()) return amount;
  const reason = 'must be above zero';
  throw refuse('amount_invalid', { argument, value, currency, problem: 'amount_not_positive', reason });
}

export function typedAmount(value: string, currency: string, argument = fieldName('amount')) {
  const digits = minorDigits(currency);
  if (digits === undefined) throw refuse('currency_unknown', { argument: fieldName('currency'), value: currency });
  const problem = amountProblem(value, digits);
  if (problem === undefined) return Amount.of(value, currency);
  throw refuse('amount_invalid', { argument, value, currency, problem: problem.code, reason: problem.reason });
}
