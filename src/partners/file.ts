/** The shape of partners.json, an array of partners (contract, Partners), and its check. Refusal: partners_invalid. */
import { z } from 'zod';
import { E_INVOICE_FORMATS, electronicAddress } from '../config/e-invoice.ts';
import { addressSchema, emailAddress, fieldProblems, line } from '../config/validation.ts';
import { reasonOf, refuse } from '../errors/refusals.ts';
import { halfCharacters, parseExactJson, repeatedName } from '../json.ts';
import { amountProblem, isCurrency, isZero, minorDigits } from '../money.ts';
import { isMonth, isTimeZone, type Month } from '../month.ts';

/** 1 to 128 of A-Z a-z 0-9 . _ : -, starting with a letter or digit. */
export const IDENTIFIER = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;

export const identifier = z
  .string()
  .regex(IDENTIFIER, 'must be 1 to 128 of A-Z a-z 0-9 . _ : - and start with a letter or digit');
const RATE = /^(0(\.\d{1,12})?|1(\.0{1,12})?)$/;

// Numbers arrive as their source texts, see parseExactJson.
const days = z
  .string()
  .regex(/^\d{1,3}$/, 'must be a whole number of days from 0 to 365')
  .transform(Number)
  .refine((value) => value <= 365, 'must be a whole number of days from 0 to 365');
const decimal = z.string().regex(/^\d{1,15}(\.\d{1,12})?$/, 'must be a plain decimal of at least 0');

const policySchema = z.strictObject({
  policy_id: identifier,
  name: line(300).min(1, 'must not be empty'),
  kind: z.enum(['insurance', 'non_insurance']),
  active: z.boolean().default(true),
  partner_cut_rate: z.string().regex(RATE, 'must be a decimal from 0 to 1'),
  price: z.strictObject({ rate: decimal, minimum: decimal }).optional(),
  /** The most that one quote may come to, with its requotes, in the partner's currency; null: no limit. */
  largest_price: decimal.nullable().default(null),
});

const text = z.union([z.literal(''), line(500)]).default('');

const partnerSchema = z
  .strictObject({
    partner_id: identifier,
    name: line(300).min(1, 'must not be empty'),
    address: addressSchema.prefault({}),
    invoicing_contact: z
      .strictObject({
        name: line().default(''),
        email: z.union([z.literal(''), emailAddress]).default(''),
        cc: z.array(emailAddress).max(20).default([]),
      })
      .prefault({}),
    currency: z.string().refine(isCurrency, 'must be an ISO 4217 currency such as USD'),
    time_zone: z.string().refine(isTimeZone, 'must be an IANA time zone such as America/New_York'),
    payment_terms_days: days.nullable().default(null),
    active: z.boolean().default(true),
    parent: identifier.nullable().default(null),
    tax_id: text,
    purchase_order: text,
    legal_note: z
      .string()
      .max(2000)
      .regex(/^[\P{Cc}\n]*$/u, 'must be text without control characters')
      .default(''),
    account_statement: z.enum(['none', 'monthly']).default('none'),
    e_invoice: z.enum(['none', ...E_INVOICE_FORMATS]).default('none'),
    /** Leitweg-ID, or what the partner wants named (BT-10). */
    buyer_reference: text,
    electronic_address: z.union([z.literal(''), electronicAddress]).default(''),
    arrangement: z.enum(['invoicing', 'connected_account']).default('invoicing'),
    arrangement_from: z
      .string()
      .refine(isMonth, 'must be a month such as 2026-11')
      .transform((month) => month as Month)
      .optional(),
    connected_account_id: identifier.optional(),
    merchant_of_record: z.enum(['platform', 'third_party']).optional(),
    split: z.enum(['real_time', 'sequential']).optional(),
    connected_account_type: z.enum(['standard', 'express', 'custom']).optional(),
    connected_account_state: z.enum(['invited', 'onboarding', 'active', 'restricted', 'disconnected']).optional(),
    balance_transactions_from: z.enum(['processor', 'settlement_file']).optional(),
    policies: z.array(policySchema).default([]),
  })
  .superRefine((partner, context) => {
    const complain = (path: string, message: string) => context.addIssue({ code: 'custom', path: [path], message });
    const connected = partner.arrangement === 'connected_account';
    for (const field of ['connected_account_id', 'merchant_of_record', 'split'] as const) {
      if (connected && partner[field] === undefined) complain(field, 'is needed for a connected_account');
      if (!connected && partner[field] !== undefined) complain(field, 'belongs to a connected_account only');
    }
    for (const field of ['connected_account_type', 'connected_account_state', 'balance_transactions_from'] as const) {
      if (!connected && partner[field] !== undefined) complain(field, 'belongs to a connected_account only');
    }
    if (partner.connected_account_type === 'standard' && partner.balance_transactions_from === 'settlement_file') {
      complain(
        'balance_transactions_from',
        'of a standard account is processor: it is ours, and gives us a key to read it',
      );
    }
    if (partner.split === 'real_time' && partner.merchant_of_record === 'third_party') {
      complain('split', 'cannot be real_time where a third party is the merchant of record (service.md 7.3.1)');
    }
    const minimumDigits = minorDigits(partner.currency) ?? 2;
    partner.policies.forEach((policy, index) => {
      const problem = policy.price && amountProblem(policy.price.minimum, minimumDigits);
      if (problem) complain(`policies.${index}.price.minimum`, problem.reason);
      const { largest_price: largest } = policy;
      const reason =
        largest === null
          ? undefined
          : isZero(largest)
            ? 'must be above zero'
            : amountProblem(largest, minimumDigits)?.reason;
      if (reason !== undefined) complain(`policies.${index}.largest_price`, reason);
    });
    repeated(partner.policies.map((policy) => policy.policy_id)).forEach((id) => {
      complain('policies', `names policy ${id} twice`);
    });
  });

export type PartnerRecord = z.output<typeof partnerSchema>;
export type PolicyRecord = z.output<typeof policySchema>;

/** Reads the text of a partners.json whole or refuses it with every mistake and its place. */
export function parsePartners(json: string, file: string): PartnerRecord[] {
  const text = json.replace(/^\uFEFF/, '');
  let value: unknown;
  try {
    value = parseExactJson(text);
  } catch (error) {
    throw refuse('partners_invalid', { file, problems: [{ path: '', reason: `is not JSON: ${reasonOf(error)}` }] });
  }
  const twice = repeatedName(text);
  if (twice !== undefined) {
    throw refuse('partners_invalid', { file, problems: [{ path: twice, reason: 'is named twice in one object' }] });
  }
  const parsed = z.array(partnerSchema, 'must be an array of partners').safeParse(value);
  const problems = parsed.success
    ? [
        ...halfCharacters(value).map((path) => ({ path, reason: 'must be text: it holds half a character' })),
        ...repeated(parsed.data.map((partner) => partner.partner_id)).map((id) => ({
          path: 'partner_id',
          reason: `partner ${id} appears twice`,
        })),
      ]
    : fieldProblems(parsed.error);
  if (!parsed.success || problems.length > 0) throw refuse('partners_invalid', { file, problems });
  return parsed.data;
}

function repeated(ids: readonly string[]): string[] {
  return [...new Set(ids.filter((id, index) => ids.indexOf(id) !== index))];
}
