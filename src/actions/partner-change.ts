import { z } from 'zod';
import { E_INVOICE_FORMATS } from '#config/e-invoice';
import { todayOf } from '#config/today';
import { lockImporters } from '#database/ledger-lock';
import { fieldWords } from '#field-names';
import { AFTER_WINDOW, CUTS } from '#partners/cancellation';
import { changedPartner, labelOf, RecordField, valuesOf } from '#partners/change';
import { readPartnerFacts } from '#partners/changes';
import { importPartners } from '#partners/import';
import { readPartners } from '#partners/partners.sql';
import { changeWords } from '#people/field-changes';
import { refuseUnsplittable } from '#splits/currencies';
import { amount, clearable, date, defineAction, flag, lines, month, partner, text } from './action.ts';
import { remarksOnPartners } from './partner.ts';

const YES_NO = ['yes', 'no'];
const STATEMENT = ['none', 'monthly'];
const ACCOUNT_STATES = ['invited', 'onboarding', 'active', 'restricted', 'disconnected'];
const DAYS = { value: 'days' };
const RATE = { value: 'rate' };

type Described = string | readonly [help: string, choices: readonly string[]] | ((label: string) => z.ZodType);
type SchemaOf<Given> = Given extends (label: string) => z.ZodType ? ReturnType<Given> : z.ZodString;

/** Fields of the record, all optional: a text by its help, a choice by its help and choices, or another kind. */
function ofRecord<const Fields extends Partial<Record<RecordField, Described>>>(fields: Fields) {
  const schemas = Object.entries<Described>(fields as Record<string, Described>).map(([name, given]) => {
    const label = labelOf(name as RecordField);
    if (typeof given === 'function') return [name, given(label).optional()];
    return [name, (typeof given === 'string' ? text(label, given) : clearable(label, ...given)).optional()];
  });
  return Object.fromEntries(schemas) as { readonly [Name in keyof Fields]: z.ZodOptional<SchemaOf<Fields[Name]>> };
}

const NEW = ['partnerId', 'name', 'currency', 'timeZone', 'contactName', 'contactEmail'] as const;
const ADDRESS = ['line1', 'line2', 'city', 'region', 'postalCode', 'country'] as const;
const POLICY = [
  'policyId',
  'policyName',
  'policyKind',
  'policyPurchaseOrder',
  'priceRate',
  'priceMinimum',
  'largestPrice',
] as const;

const NEEDED = ['currency', 'timeZone'] as const;

/** The links of the partner's pages name these forms. */
const FORMS = {
  new: { title: 'Add a partner', fields: [...NEW, ...ADDRESS], required: ['name', ...NEEDED], set: { isNew: 'yes' } },
  address: {
    title: 'Change the name and address',
    fields: ['name', ...ADDRESS, 'parent', 'active'],
    required: ['name'],
  },
  contact: {
    title: 'Change the contact',
    fields: ['contactName', 'contactEmail', 'contactCc', 'reminderEmail', 'statementEmail', 'disputeEmail'],
  },
  terms: {
    title: 'Change the terms',
    required: NEEDED,
    fields: [
      'paymentTermsDays',
      'paymentTermsEndOfMonth',
      'paymentTermsDay',
      'purchaseOrder',
      'legalNote',
      'accountStatement',
      'feed',
      'currency',
      'timeZone',
    ],
  },
  tax: {
    title: 'Change the tax id and the e-invoice',
    fields: ['taxId', 'eInvoice', 'buyerReference', 'electronicAddress'],
  },
  payment: {
    title: 'Change how the partner pays',
    fields: [
      ...['arrangement', 'arrangementFrom', 'connectedAccountId', 'merchantOfRecord', 'split', 'settlementCurrencies'],
      ...['connectedAccountType', 'connectedAccountState', 'balanceTransactionsFrom'],
    ],
  },
  policy: { title: 'Change the policy', fields: [...POLICY, 'policyActive'] },
  new_policy: {
    title: 'Add a policy',
    fields: [...POLICY, 'rate'],
    required: ['policyId', 'policyName', 'policyKind', 'rate'],
  },
  rate: {
    title: "Change the partner's cut",
    fields: ['policyId', 'rate', 'rateFrom'],
    required: ['policyId', 'rate', 'rateFrom'],
  },
  cancellation: {
    title: 'Change the cancellation terms',
    required: ['policyId', 'termsFrom'],
    fields: ['policyId', 'termsFrom', 'windowDays', 'afterWindow', 'cut', 'beforeCoverOnly'],
  },
} as const;

export const partnerChange = defineAction({
  name: 'partner.change',
  title: 'Change a partner',
  command: {
    summary: 'Change fields of a partner, or add a partner; an empty text clears a field',
    arguments: { partnerId: '<partner>' },
    options: { isNew: '--new', taxId: '--tax-id <text>' },
  },
  role: 'finance',
  ruledAs: 'partner.import',
  input: {
    partnerId: partner('The id or name of the partner, or the id of a new one.'),
    isNew: flag('New', 'Add a partner with this id.').optional(),
    ...ofRecord({
      name: 'The legal name, as printed on documents.',
      line1: 'The first line of the address.',
      line2: 'The second line of the address.',
      city: 'The city.',
      region: 'The state or region.',
      postalCode: 'The postal code.',
      country: 'The two letters of the country, such as US.',
      parent: (label: string) => partner('The partner that pays for this one.', { label }),
      active: ['Sales of an inactive partner are refused.', YES_NO],
      contactName: 'The name of the invoicing contact.',
      contactEmail: 'The address that gets its e-mails.',
      contactCc: (label: string) => text(label, 'An address that gets a copy.').array(),
      reminderEmail: 'Gets the reminders instead. Empty: the contact.',
      statementEmail: 'Gets account statements instead. Empty: the contact.',
      disputeEmail: 'Whom finance asks about disputes. Empty: the contact.',
      currency: 'The currency of its sales, such as USD.',
      timeZone: 'The time zone of its months, such as America/New_York.',
      paymentTermsDays: (label: string) => text(label, "The days to pay. Empty: the issuer's terms.", DAYS),
      paymentTermsEndOfMonth: ['Due at the end of the month in which the days to pay end.', YES_NO],
      paymentTermsDay: (label: string) =>
        text(label, 'Due on the next such day of a month, such as 15.', { value: 'day' }),
      purchaseOrder: 'The order number that is printed on its documents.',
      legalNote: (label: string) => lines(label, 'A text that is printed on its documents.'),
      accountStatement: ['E-mailed each month, or only on request.', STATEMENT],
      feed: ['Strict: unusual rows stop the close. Empty: they hold the document.', ['strict']],
      taxId: 'The VAT or tax number.',
      eInvoice: ['The format of its e-invoices.', ['none', ...E_INVOICE_FORMATS]],
      buyerReference: 'The Leitweg-ID, or another reference (BT-10).',
      electronicAddress: 'Scheme and address, such as 0208:0843766574.',
      arrangement: ['How it pays.', ['invoicing', 'connected_account']],
      arrangementFrom: (label: string) => month(label, 'The first month of a new arrangement, without rows yet.'),
      connectedAccountId: (label: string) => text(label, 'The account at the processor.', { value: 'account' }),
      merchantOfRecord: ['Who sells to the customer.', ['platform', 'third_party']],
      split: ['How the processor divides a payment.', ['real_time', 'sequential']],
      settlementCurrencies: (label: string) => text(label, 'A currency in which its platform is paid out.').array(),
      connectedAccountType: ['The type at the processor.', ['standard', 'express', 'custom']],
      connectedAccountState: ['The state of the onboarding.', ACCOUNT_STATES],
      balanceTransactionsFrom: ['Who reports them.', ['processor', 'settlement_file']],
    }),
    policyId: text('Policy', 'The id of one of its policies, or of a new one.').optional(),
    ...ofRecord({
      policyName: 'The name that is printed on documents.',
      policyKind: ['The kind of the policy.', ['insurance', 'non_insurance']],
      policyPurchaseOrder: 'The order number that is printed with its name.',
      policyActive: ['Sales under an inactive policy are refused.', YES_NO],
      priceRate: (label: string) =>
        text(label, 'The part of the insured amount that a quote costs, such as 0.085.', RATE),
      priceMinimum: (label: string) => amount(label, 'The least that a quote costs.'),
      largestPrice: (label: string) => amount(label, 'The most that a quote costs with its requotes. Empty: no limit.'),
    }),
    rate: text(
      fieldWords('policy.partner_cut_rate'),
      "The partner's part of the price, such as 0.30.",
      RATE,
    ).optional(),
    rateFrom: date('Cut from', 'The first day of the cut. Later cuts that were planned end.').optional(),
    termsFrom: date(
      'Terms from',
      'The first day of sales with these terms. Later terms that were planned end.',
    ).optional(),
    windowDays: text(
      'Days',
      'The days after a sale on which it may be reversed whole. Empty: no terms.',
      DAYS,
    ).optional(),
    afterWindow: clearable('After these days', 'What may be reversed then.', AFTER_WINDOW).optional(),
    cut: clearable("Partner's cut", 'What a reversal does with the cut.', CUTS).optional(),
    beforeCoverOnly: clearable('Before cover only', 'No reversal once the cover has begun.', YES_NO).optional(),
  },
  forms: FORMS,
  async filled(tx, context, given) {
    const [stored] = await readPartners(tx, given.get('partnerId') ?? '');
    return stored && valuesOf(stored, given.get('policyId') ?? undefined, todayOf(context));
  },
  subject: ({ partnerId }) => partnerId,
  locksImporters: true,
  async perform(tx, { actor, environment, settings }, input) {
    const { partnerId } = input;
    await lockImporters(tx);
    const [stored] = await readPartners(tx, partnerId);
    const record = changedPartner(stored, input);
    refuseUnsplittable([record], partnerId);
    const event = { action: 'partner.change', subject: partnerId, details: {} };
    const { changes } = await importPartners(tx, [record], { event, actor, now: environment.now(), settings });
    return { record, changes: changes.flatMap((each) => each.changes) };
  },
  facts: (tx, { partnerId }) => readPartnerFacts(tx, [partnerId]),
  async report({ input: { partnerId, isNew }, result: { record, changes }, preview }, { environment }) {
    const changed = changes.map(changeWords).map(([field, old, after]) => `${field}: ${old} → ${after}`);
    return {
      json: { partner_id: partnerId, created: isNew === true, changes },
      text: isNew
        ? `${partnerId} is added.`
        : changed.length === 0
          ? `Nothing of ${partnerId} changes.`
          : [`${partnerId} is changed.`, ...(preview ? [] : changed)].join('\n'),
      notes: await remarksOnPartners(environment, [record]),
    };
  },
});
