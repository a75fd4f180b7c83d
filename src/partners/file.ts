/** The schema of partners.json, an array of partners (contract, Partners). Refusal: partners_invalid. */
import { z } from 'zod';
import { E_INVOICE_FORMATS, electronicAddress, isRefusedByPeppol } from '#config/e-invoice';
import { taxIdProblem } from '#config/identifiers';
import { addressSchema, emailAddress, fieldProblems, line } from '#config/validation';
import { FieldProblem, reasonOf, refuse } from '#errors/refusals';
import { halfCharacters, parseExactJson, repeatedName } from '#json';
import { readerOf } from '#reading/aside';
import { PROBLEMS_TOLD, readUntilTold, refuseTooMany } from '#reading/limits';
import { amountProblem, isCurrency, isDate, isMonth, isTimeZone, isZero, Month, minorDigits } from '#values';
import { AFTER_WINDOW, CancellationTerms, CUTS } from './cancellation.ts';

export const IDENTIFIER = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;

export const identifier = z
  .string()
  .regex(IDENTIFIER, 'must be 1 to 128 of A-Z a-z 0-9 . _ : - and start with a letter or digit');
const RATE = /^(0(\.\d{1,12})?|1(\.0{1,12})?)$/;

// Numbers arrive as their source texts; see parseExactJson.
const daysTo = (most: number) => {
  const message = `must be a whole number of days from 0 to ${most}`;
  return z
    .string()
    .regex(new RegExp(`^\\d{1,${String(most).length}}$`), message)
    .transform(Number)
    .refine((value) => value <= most, message);
};
const decimal = z.string().regex(/^\d{1,15}(\.\d{1,12})?$/, 'must be a plain decimal of at least 0');

const rate = z.string().regex(RATE, 'must be a decimal from 0 to 1');
const datedRates = z
  .array(z.strictObject({ from: z.string().refine(isDate, 'must be a date such as 2026-08-10').optional(), rate }))
  .min(1, 'must have a rate')
  .superRefine((rates, context) => checkDays(rates, context, { one: 'rate', all: 'rates' }));

/** In the order of their days. Only the first value may have none. */
function checkDays(
  dated: readonly { readonly from?: string | null | undefined }[],
  context: z.RefinementCtx,
  { one, all }: { one: string; all: string },
) {
  dated.forEach(({ from }, index) => {
    const before = dated[index - 1]?.from ?? '';
    const message =
      index > 0 && from == null
        ? `is missing: only the first ${one} may have no day`
        : from != null && from <= before
          ? `must be after ${before}, because ${all} are in the order of their days`
          : undefined;
    if (message !== undefined) context.addIssue({ code: 'custom', path: [index, 'from'], message });
  });
}

const cancellationTerms = z
  .strictObject({
    from: z.string().refine(isDate, 'must be a date such as 2026-08-10').nullable().default(null),
    window_days: daysTo(3660).nullable(),
    after_window: z.enum(AFTER_WINDOW).optional(),
    cut: z.enum(CUTS).optional(),
    before_cover_only: z.boolean().optional(),
  })
  .superRefine(({ window_days, from: _, ...rest }, context) => {
    if (window_days !== null || Object.values(rest).every((each) => each === undefined)) return;
    context.addIssue({ code: 'custom', path: ['window_days'], message: 'is missing: without it there are no terms' });
  })
  .transform(
    ({ from, window_days, after_window, cut, before_cover_only }): CancellationTerms =>
      window_days === null
        ? { from, window_days, after_window: null, cut: null, before_cover_only: null }
        : {
            ...{ from, window_days, after_window: after_window ?? 'none', cut: cut ?? 'in_proportion' },
            before_cover_only: before_cover_only ?? false,
          },
  );
const cancellation = z
  .union([z.array(cancellationTerms).min(1, 'must have terms'), cancellationTerms.transform((terms) => [terms])])
  .superRefine((terms, context) => checkDays(terms, context, { one: 'terms', all: 'terms' }));

const text = z.union([z.literal(''), line(500)]).default('');

const policySchema = z.strictObject({
  policy_id: identifier,
  name: line(300).min(1, 'must not be empty'),
  kind: z.enum(['insurance', 'non_insurance']),
  active: z.boolean().default(true),
  partner_cut_rate: z.union([rate, datedRates], 'must be a decimal from 0 to 1, or a list of dated rates'),
  price: z.strictObject({ rate: decimal, minimum: decimal }).optional(),
  /** The partner's order for the sales under this policy, printed with its name. */
  purchase_order: text,
  /** The highest total price of a quote with its requotes, in the partner's currency; null for no limit. */
  largest_price: decimal.nullable().default(null),
  /** On which reversals are recorded without a person; null: those of every policy (cancellation.ts). */
  cancellation: cancellation.nullable().default(null),
});

const currency = z.string().refine(isCurrency, 'must be an ISO 4217 currency such as USD');

const address = z.union([z.literal(''), emailAddress]).default('');

const OPTIONAL_OF_ACCOUNT = [
  'settlement_currencies',
  'connected_account_type',
  'connected_account_state',
  'balance_transactions_from',
] as const;

const partnerSchema = z
  .strictObject({
    partner_id: identifier,
    name: line(300).min(1, 'must not be empty'),
    address: addressSchema.prefault({}),
    invoicing_contact: z
      .strictObject({
        name: line().default(''),
        email: address,
        cc: z.array(emailAddress).max(20).default([]),
      })
      .prefault({}),
    /** Empty: those of the invoicing contact. */
    ...{ reminder_email: address, statement_email: address, dispute_email: address },
    currency,
    time_zone: z.string().refine(isTimeZone, 'must be an IANA time zone such as America/New_York'),
    payment_terms_days: daysTo(365).nullable().default(null),
    payment_terms_end_of_month: z
      .boolean()
      .nullable()
      .default(null)
      .transform((yes) => yes || null),
    /** The day of the month on which the partner pays. */
    payment_terms_day: z
      .string()
      .regex(/^([1-9]|[12]\d|3[01])$/, 'must be a day of the month from 1 to 31')
      .transform(Number)
      .nullable()
      .default(null),
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
    /** The Leitweg-ID, or another one that the partner wants (BT-10). */
    buyer_reference: text,
    electronic_address: z.union([z.literal(''), electronicAddress]).default(''),
    /** `strict`: rows that are unusual by history stop the month, instead of holding a document. */
    feed: z.enum(['strict']).nullable().default(null),
    arrangement: z.enum(['invoicing', 'connected_account']).default('invoicing'),
    arrangement_from: z
      .string()
      .refine(isMonth, 'must be a month such as 2026-11')
      .transform((month) => month as Month)
      .optional(),
    connected_account_id: identifier.optional(),
    merchant_of_record: z.enum(['platform', 'third_party']).optional(),
    split: z.enum(['real_time', 'sequential']).optional(),
    /** In which the platform of a partner is paid out. It has balances in no other. */
    settlement_currencies: z
      .array(currency)
      .min(1, 'must name a currency')
      .transform((codes) => [...new Set(codes)].sort())
      .optional(),
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
    for (const field of OPTIONAL_OF_ACCOUNT) {
      if (!connected && partner[field] !== undefined) complain(field, 'belongs to a connected_account only');
    }
    if (partner.connected_account_type === 'standard' && partner.balance_transactions_from === 'settlement_file') {
      complain(
        'balance_transactions_from',
        'must be processor for a standard account, because such an account gives us a key to read it',
      );
    }
    if (partner.split === 'real_time' && partner.merchant_of_record === 'third_party') {
      complain('split', 'cannot be real_time if a third party is the merchant of record (service.md 7.3.1)');
    }
    if (partner.split === 'sequential' && partner.settlement_currencies?.includes(partner.currency) === false) {
      complain(
        'settlement_currencies',
        `must have ${partner.currency}, the partner's currency: the platform sends sequential shares from its balance in it`,
      );
    }
    const wrongTaxId = taxIdProblem(partner.tax_id, partner.address.country);
    if (wrongTaxId !== undefined) complain('tax_id', wrongTaxId);
    if (partner.e_invoice === 'ubl' && isRefusedByPeppol(partner.electronic_address)) {
      const scheme = partner.electronic_address.slice(0, 2);
      complain(
        'electronic_address',
        `cannot have the scheme ${scheme} with e_invoice ubl: Peppol refuses it (PEPPOL-EN16931-CL008); xrechnung accepts it`,
      );
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

export const partnerFile = readerOf(import.meta.url, 'partnerFile', ({ name, bytes }) =>
  parsePartners(Buffer.from(bytes).toString('utf8'), name),
);

/** Parses partners.json, or refuses the whole file with its first mistakes and their places. */
export function parsePartners(json: string, file: string): PartnerRecord[] {
  const text = json.replace(/^\uFEFF/, '');
  const refused = (reason: string, path = '') => refuse('partners_invalid', { file, problems: [{ path, reason }] });
  let value: unknown;
  try {
    value = parseExactJson(text);
  } catch (error) {
    throw refused(`is not JSON: ${reasonOf(error)}`);
  }
  const twice = repeatedName(text);
  if (twice !== undefined) throw refused('appears twice in one object', twice);
  if (!Array.isArray(value)) throw refused('must be an array of partners');
  refuseTooMany(file, value.length);
  const problems: FieldProblem[] = [];
  const partners = readUntilTold(value, problems, (each, index) => {
    const read = partnerSchema.safeParse(each);
    if (read.success) return read.data;
    const own = fieldProblems(read.error).slice(0, PROBLEMS_TOLD);
    problems.push(...own.map(({ path, reason }) => ({ path: path === '' ? `${index}` : `${index}.${path}`, reason })));
    return undefined;
  });
  if (problems.length === 0) {
    const half = halfCharacters(value).map((path) => ({ path, reason: 'must be text: it contains half a character' }));
    const twice = repeated(partners.map((partner) => partner.partner_id)).slice(0, PROBLEMS_TOLD);
    problems.push(
      ...half.slice(0, PROBLEMS_TOLD),
      ...twice.map((id) => ({ path: 'partner_id', reason: `partner ${id} appears twice` })),
    );
  }
  if (problems.length > 0) throw refuse('partners_invalid', { file, problems: problems.slice(0, PROBLEMS_TOLD) });
  return partners;
}

function repeated(ids: readonly string[]) {
  const seen = new Set<string>();
  return [...new Set(ids.filter((id) => seen.size === seen.add(id).size))];
}
