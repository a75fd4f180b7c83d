/** Payment instructions: the bank details in the settings, by currency. */
import { isDeepStrictEqual } from 'node:util';
import { electronicFormatIBAN, isSEPACountry, isValidBIC, isValidIBAN } from 'ibantools';
import { z } from 'zod';
import { addressSchema, line } from './validation.ts';

/** Checks an ABA routing number: nine digits with a Federal Reserve prefix, and a checksum with weights 3-7-1. */
export function isRoutingNumber(text: string) {
  if (!/^\d{9}$/.test(text) || text === '000000000') return false;
  const prefix = Number(text.slice(0, 2));
  if (!(prefix <= 12 || (prefix >= 21 && prefix <= 32) || (prefix >= 61 && prefix <= 72) || prefix === 80))
    return false;
  const weights = [3, 7, 1];
  const sum = [...text].reduce((total, digit, index) => total + Number(digit) * (weights[index % 3] as number), 0);
  return sum % 10 === 0;
}

const routingNumber = z.string().refine(isRoutingNumber, 'is not a valid ABA routing number (nine digits, checksum)');
const bic = z.string().refine(isValidBIC, 'is not a valid BIC (ISO 9362)');
const iban = z
  .string()
  .refine((text) => isValidIBAN(electronicFormatIBAN(text) ?? ''), 'is not a valid IBAN (ISO 13616, checksum)');
const accountNumber = line(40).min(1, 'must not be empty');
const named = line().min(1, 'must not be empty');

/** Banks refuse cross-border wires without city and country since November 2026. */
const bankAddressSchema = addressSchema.check(({ value, issues }) => {
  for (const field of ['city', 'country'] as const) {
    if (value[field].trim() === '') {
      issues.push({ code: 'custom', path: [field], message: 'is required: banks refuse a wire without it', input: '' });
    }
  }
});

const account = {
  account_holder: named,
  account_holder_address: bankAddressSchema,
  bank_name: named,
  bank_address: bankAddressSchema,
};

const achSchema = z.strictObject({
  ...account,
  routing_number: routingNumber,
  account_number: accountNumber,
  account_type: z.enum(['checking', 'savings']),
});
export type AchInstructions = z.output<typeof achSchema>;

const wireSchema = z
  .strictObject({
    ...account,
    routing_number: routingNumber.optional(),
    account_number: accountNumber.optional(),
    iban: iban.optional(),
    bic: bic.optional(),
    intermediary: z.strictObject({ bank_name: named, bank_address: bankAddressSchema.optional(), bic }).optional(),
    /** Whether documents print a creditor reference (ISO 11649). Default: for SEPA transfers only. */
    creditor_reference: z.boolean().optional(),
  })
  .refine(
    (wire) => wire.iban !== undefined || wire.account_number !== undefined,
    'needs an iban or an account_number to pay into',
  )
  .refine(
    (wire) => wire.routing_number !== undefined || wire.bic !== undefined,
    'needs a routing_number (domestic) or a bic (international)',
  )
  .refine(
    (wire) => wire.routing_number === undefined || wire.account_number !== undefined,
    'needs an account_number in addition to its routing_number: a domestic wire has no IBAN',
  );
export type WireInstructions = z.output<typeof wireSchema>;

// An empty object is a section that is not filled in yet: `init` writes empty sections in production. For any other
// value this schema aborts, so that only problems of the section's own schema are reported.
const isEmptyObject = (value: unknown) =>
  typeof value === 'object' && value !== null && Object.keys(value).length === 0;
const unfilled = z.custom<Record<string, never>>(isEmptyObject, { abort: true }).transform(() => undefined);
export const instructionsSchema = z.strictObject({
  ach: z.union([unfilled, achSchema]).optional(),
  wire: z.union([unfilled, wireSchema]).optional(),
});

/** An undefined section is not offered to the payer. */
export interface Instructions {
  readonly ach?: AchInstructions | undefined;
  readonly wire?: WireInstructions | undefined;
}

/** The instructions for a currency, or else those for any ('*'). */
export function instructionsFor(
  settings: { readonly instructions: Readonly<Record<string, Instructions>> },
  currency: string,
): Instructions | undefined {
  const found = [settings.instructions[currency], settings.instructions['*']].find((each) => each?.ach || each?.wire);
  if (found === undefined) return undefined;
  // ACH is a United States network and settles in US dollars only.
  const usable = { ach: currency === 'USD' ? found.ach : undefined, wire: found.wire };
  return usable.ach || usable.wire ? usable : undefined;
}

/** Compares bank details stored as JSON with those of the settings. An undefined field equals an absent one. */
export const sameInstructions = (kept: Instructions | null, present: Instructions | undefined) =>
  isDeepStrictEqual(bankDetailsOf(kept), bankDetailsOf(present ?? null));

/** Without the creditor reference: payers are not warned if it is switched on or off. */
const bankDetailsOf = (instructions: Instructions | null): unknown =>
  JSON.parse(JSON.stringify(instructions, (key, value) => (key === 'creditor_reference' ? undefined : value)));

/** The IBAN in electronic format, if a transfer in the currency is a SEPA credit transfer. */
export function sepaIban({ wire }: Instructions, currency: string) {
  const iban = electronicFormatIBAN(wire?.iban ?? '') ?? '';
  return currency === 'EUR' && isSEPACountry(iban.slice(0, 2)) ? iban : undefined;
}

export const asksForCreditorReference = (instructions: Instructions, currency: string) =>
  instructions.wire?.creditor_reference ?? sepaIban(instructions, currency) !== undefined;
