/**
 * Reads a rates file: the values of several currencies in one currency, with source and date (docs/general-ledger.md).
 */
import { z } from 'zod';
import { readFieldsText } from '#config/fields-file';
import { line } from '#config/validation';
import { refuse } from '#errors/refusals';
import { parseExactJson } from '#json';
import { isCurrency, isDate, isZero } from '#values';

const currency = z.string().refine(isCurrency, 'must be an ISO 4217 currency such as USD');
const PLAIN = /^\d{1,15}(\.\d{1,12})?$/;
const rate = z
  .string()
  .refine((text) => PLAIN.test(text) && !isZero(text), 'must be a plain decimal above zero such as 1.0825');

const ratesSchema = z
  .strictObject({
    currency,
    source: line().trim().min(1, 'must not be empty'),
    date: z.string().refine(isDate, 'must be a date such as 2026-09-30'),
    /** The value of one unit of each currency. Numbers arrive as their source texts (see parseExactJson). */
    rates: z.record(currency, rate),
  })
  .superRefine(({ currency: into, rates }, context) => {
    const own = rates[into];
    if (own === undefined || /^0*1(\.0+)?$/.test(own)) return;
    const message = 'must be 1 or left out: the rates are in this currency';
    context.addIssue({ code: 'custom', path: ['rates', into], message });
  });

export type Rates = Readonly<z.output<typeof ratesSchema>>;

/** Refusal: rates_invalid. */
export const readRates = (file: string, bytes: Buffer): Rates =>
  readFieldsText(bytes.toString(), {
    schema: ratesSchema,
    parse: parseExactJson,
    invalid: (problems) => refuse('rates_invalid', { file, problems }),
  });

/** Refusal: rates_missing. */
export function ratesOf({ currency: into, rates }: Rates, currencies: readonly string[]): ReadonlyMap<string, string> {
  const known = new Map([...Object.entries(rates), [into, '1']]);
  const missing = currencies.filter((each) => !known.has(each));
  if (missing.length > 0) throw refuse('rates_missing', { currencies: missing, into });
  return new Map(currencies.map((each) => [each, known.get(each) as string]));
}
