/**
 * The tax rules that finance configured in settings.json, and the choice of the rule for a sale. Reckoner contains no
 * tax law (docs/tax.md).
 */
import { z } from 'zod';
import { isDate, isMonth, lastDay, Month } from '#month';
import { reasonCodeProblem } from './e-invoice.ts';
import { taxNumberProblem } from './identifiers.ts';
import { line } from './validation.ts';

/** The categories, in the order in which documents list them. */
export const TAX_CATEGORIES = ['standard', 'zero', 'exempt', 'reverse_charge', 'outside_scope'] as const;
export type TaxCategory = (typeof TAX_CATEGORIES)[number];

/** The UNCL5305 codes of the categories, which e-invoices and the VATEX list use. */
export type VatCategory = 'S' | 'Z' | 'E' | 'AE' | 'O';
export const VAT_CATEGORIES: Readonly<Record<TaxCategory, VatCategory>> = {
  standard: 'S',
  zero: 'Z',
  exempt: 'E',
  reverse_charge: 'AE',
  outside_scope: 'O',
};

/**
 * The fields that can limit a rule. Each outweighs all later ones together, so no two rules that apply to a sale are
 * equally specific.
 */
const SELECTORS = ['partner', 'policy', 'kind', 'country'] as const;

const country = z.string().regex(/^[A-Z]{2}$/, 'must be an ISO 3166 code such as DE');
const date = z.string().refine(isDate, 'must be a date such as 2027-01-01').nullable().default(null);

const ruleSchema = z
  .strictObject({
    partner: line(128).min(1).optional(),
    policy: line(128).min(1).optional(),
    kind: z.enum(['insurance', 'non_insurance']).optional(),
    /** The country of the partner's address. */
    country: country.optional(),
    category: z.enum(TAX_CATEGORIES),
    rate: z
      .string()
      .regex(/^(100|\d|[1-9]\d)(\.\d{1,4})?$/, 'must be percent such as "19" or "7.5"')
      .default('0'),
    reduced: z.boolean().default(false),
    reason: line(200).optional(),
    /** The reason for no tax, as a VATEX code. */
    reason_code: z.string().optional(),
    /**
     * The first and last day of the rule. Without `until`, the rule has no last day. Without `from`, firstDayOf
     * determines the first day.
     */
    from: date,
    until: date,
  })
  .superRefine((rule, context) => {
    const complain = (path: string, message: string) => context.addIssue({ code: 'custom', path: [path], message });
    const charged = /[1-9]/.test(rule.rate);
    if (rule.category === 'standard' && !charged) complain('rate', 'of the category standard must be above zero');
    if (rule.category !== 'standard' && charged) complain('rate', `of the category ${rule.category} must be 0`);
    if (/^100\.\d*[1-9]/.test(rule.rate)) complain('rate', 'must be at most 100');
    if (rule.reduced && rule.category !== 'standard') complain('reduced', 'belongs to the category standard only');
    const explained = rule.category !== 'standard' && rule.category !== 'zero';
    for (const field of ['reason', 'reason_code'] as const) {
      if (!explained && rule[field]) complain(field, `does not belong to the category ${rule.category}`);
    }
    if (explained && rule.category !== 'reverse_charge' && !rule.reason) {
      complain('reason', `is required for the category ${rule.category}: the document prints it`);
    }
    if (explained && rule.reason_code) {
      const problem = reasonCodeProblem(rule.reason_code, VAT_CATEGORIES[rule.category]);
      if (problem !== undefined) complain('reason_code', problem);
    }
    // The tax point of a sale is the last day of its month, so part of a month would have no rule, or the wrong one.
    if (rule.from?.endsWith('-01') === false) complain('from', 'must be the first day of a month');
    if (rule.until !== null && lastDay(rule.until.slice(0, 7) as Month) !== rule.until) {
      complain('until', 'must be the last day of a month');
    }
    if (rule.from !== null && rule.until !== null && rule.until < rule.from) complain('until', 'is before from');
  })
  .transform(({ reason, reason_code, ...rule }) => ({
    ...rule,
    // 7.50 becomes 7.5.
    rate: rule.rate.includes('.') ? rule.rate.replace(/\.?0+$/, '') : rule.rate,
    reason: reason || (rule.category === 'reverse_charge' ? 'Reverse charge' : ''),
    reason_code: reason_code ?? '',
  }));

const countrySchema = z.strictObject({
  /** The name of the tax, as printed. */
  name: line(30).min(1).default('VAT'),
  /** In this country. Empty: `issuer.tax_id`. */
  registration: line(60).default(''),
});

/**
 * Without `from`, a rule begins when the tax begins: older sales were billed without tax, and a reversal must not
 * return what was never charged. A rule that ends before the tax begins has no first day.
 */
const firstDayOf = ({ from, until }: z.output<typeof ruleSchema>, began: Month) =>
  from ?? (until !== null && until < `${began}-01` ? null : `${began}-01`);

export const taxSchema = z
  .strictObject({
    /** The first billing month that is taxed. */
    from: z
      .string()
      .refine(isMonth, 'must be a month such as 2027-01')
      .transform((month) => month as Month),
    countries: z.record(country, countrySchema).default({}),
    rules: z.array(ruleSchema).min(1, 'must name a rule'),
  })
  .transform((tax) => ({ ...tax, rules: tax.rules.map((rule) => ({ ...rule, from: firstDayOf(rule, tax.from) })) }))
  .superRefine(({ countries, rules }, context) => {
    for (const [code, { registration }] of Object.entries(countries)) {
      const problem = registration === '' ? undefined : taxNumberProblem(registration, code);
      const path = ['countries', code, 'registration'];
      if (problem !== undefined) context.addIssue({ code: 'custom', path, message: problem });
    }
    rules.forEach((rule, index) => {
      const other = rules.findIndex((each, at) => at < index && equallySpecific(each, rule) && overlap(each, rule));
      if (other < 0) return;
      const message = `applies to the same sales on the same days as rules.${other}: limit their dates, or leave one out`;
      context.addIssue({ code: 'custom', path: ['rules', index], message });
    });
  });

export type Tax = z.output<typeof taxSchema>;
type TaxRule = Tax['rules'][number];

const equallySpecific = (one: TaxRule, other: TaxRule) =>
  SELECTORS.every((selector) => one[selector] === other[selector]);

const overlap = (one: TaxRule, other: TaxRule) =>
  (one.from ?? '') <= (other.until ?? '9999-12-31') && (other.from ?? '') <= (one.until ?? '9999-12-31');

/** The facts about a sale that select a rule. */
export type Sale = Readonly<{
  partner: string;
  policy: string;
  kind: string;
  /** The country of the partner's address, or ''. */
  country: string;
  /** The tax point, `YYYY-MM-DD`. */
  date: string;
}>;

const isFor = (rule: TaxRule, sale: Sale) =>
  SELECTORS.every((selector) => rule[selector] === undefined || rule[selector] === sale[selector]);

const appliesTo = (rule: TaxRule, sale: Sale) =>
  isFor(rule, sale) && (rule.from ?? '') <= sale.date && sale.date <= (rule.until ?? '9999-12-31');

const weightOf = (rule: TaxRule) =>
  SELECTORS.reduce((weight, selector) => weight * 2 + (rule[selector] === undefined ? 0 : 1), 0);

/** Most countries exempt insurance from VAT, so only a rule that names insurance charges the standard tax for it. */
const chargesInsurance = (rule: TaxRule, { kind }: Sale) =>
  kind === 'insurance' && rule.category === 'standard' && rule.kind !== 'insurance';

/** The most specific rule for a sale. Undefined if there is none, or if it would charge insurance without naming it. */
export function taxRuleFor({ rules }: Pick<Tax, 'rules'>, sale: Sale): TaxRule | undefined {
  const best = rules
    .filter((rule) => appliesTo(rule, sale))
    .reduce<TaxRule | undefined>(
      (best, rule) => (best === undefined || weightOf(rule) > weightOf(best) ? rule : best),
      undefined,
    );
  return best !== undefined && chargesInsurance(best, sale) ? undefined : best;
}

/**
 * Why rules for a sale do not apply, such as `rule 3 begins on 2026-11-01`, numbered from 1; empty if there are none.
 */
export function whyNoTaxRule({ rules }: Pick<Tax, 'rules'>, sale: Sale) {
  return rules
    .flatMap((rule, at) => {
      if (!isFor(rule, sale)) return [];
      if (!appliesTo(rule, sale)) {
        return [
          `rule ${at + 1} ${(rule.from ?? '') > sale.date ? `begins on ${rule.from}` : `ended on ${rule.until}`}`,
        ];
      }
      return chargesInsurance(rule, sale) ? [`rule ${at + 1} charges tax, and does not name "kind": "insurance"`] : [];
    })
    .join(', ');
}
