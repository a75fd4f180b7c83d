/** The schemas of the API's requests and responses. Responses may gain fields. */
import { z } from 'zod';
import { TAX_CATEGORIES } from '#config/tax';
import { EMAIL_STATUSES } from '#documents/documents.sql';
import { ROW_KINDS } from '#documents/snapshot';
import { CALL_REFUSAL_CODES, CallRefusalCode } from '#errors/refusals';
import { ExactNumber } from '#json';
import { GROUNDS, Ground } from '#ledger/cancellation';
import { totalsSchema } from '#ledger/control';
import { isCoverDay, ORDER_REFERENCE } from '#ledger/row';
import { isMonth } from '#month';
import { AFTER_WINDOW, CUTS, WITHOUT_TERMS } from '#partners/cancellation';
import { identifier } from '#partners/file';
import { SPLIT_PROBLEMS } from '#processors/processors';
import { SETTLEMENT_CODES } from '#splits/settlement';

export const SCHEMAS = z.registry<{ id: string }>();
export function named<Schema extends z.ZodType>(id: string, schema: Schema) {
  SCHEMAS.add(schema, { id });
  return schema;
}

/** The source text of a string or a JSON number. */
const textOfNumber = (problem: string) =>
  z
    .union([z.string(), z.instanceof(ExactNumber)], problem)
    .transform((value) => (value instanceof ExactNumber ? value.text : value));

/** A decimal as a string or a JSON number. The result is the source text. */
export const decimal = textOfNumber('must be a decimal, as a number or a string').pipe(
  z
    .string()
    .max(64)
    .regex(/^-?\d+(\.\d+)?$/, 'is not a plain decimal such as 12.50'),
);

export const wholeNumber = textOfNumber('must be a whole number')
  .pipe(z.string().regex(/^\d{1,15}$/, 'must be a whole number'))
  .transform(Number);

export const month = z
  .string()
  .regex(/^\d{4}-(0[1-9]|1[0-2])$/, { error: 'must be a month such as 2026-10', abort: true })
  .refine(isMonth, 'must be a month such as 2026-10');

export const statedTotals = totalsSchema(decimal).describe(
  'The sum of invoiceAmount for each currency, such as {"USD":"8311.20"}',
);

export const pageLimit = z
  .string()
  .regex(/^([1-9]\d{0,2}|1000)$/, 'must be a whole number from 1 to 1000')
  .transform(Number)
  .default(100);

/** A JSON number with exactly the currency's decimals. */
const amount = (description: string) => z.number().describe(description);
const currency = z.string().describe('ISO 4217, such as USD');
const instant = z.iso.datetime({ offset: true });

const coverDay = z.iso.date().refine(isCoverDay, 'must be from 1970-01-01 to 2099-12-31');
/** What a partner can state of its own order. The acceptance records it in the ledger row. */
export const ofOrder = {
  order_reference: z
    .string()
    .regex(ORDER_REFERENCE, 'must be 1 to 128 printable characters without spaces at either end')
    .optional()
    .describe('Your own reference of the order. Several quotes may have the same'),
  cover_from: coverDay.optional().describe('The first day of cover'),
  cover_to: coverDay.optional().describe('The last day of cover; requires cover_from'),
};
type Cover = Readonly<{
  cover_from?: string | undefined;
  cover_to?: string | undefined;
}>;
export const coverIsInOrder = ({ cover_from: from, cover_to: to }: Cover) =>
  to === undefined || (from !== undefined && from <= to);
export const COVER_PROBLEM = { path: ['cover_to'], message: 'requires cover_from, and must not be before it' };

export const orderAnswer = {
  order_reference: z.string().nullable().describe('Your own reference of the order'),
  cover_from: z.iso.date().nullable().describe('The first day of cover'),
  cover_to: z.iso.date().nullable().describe('The last day of cover'),
};

const prices = {
  spotPrice: amount('Total price charged to the consumer'),
  partnerCut: amount('Amount the partner keeps'),
  invoiceAmount: amount('Amount to be routed to the service'),
};
const increments = {
  incrementalSpotPrice: amount('Additional price charged to the consumer'),
  incrementalPartnerCut: amount('Additional amount the partner keeps'),
  incrementalInvoiceAmount: amount('Additional amount to be routed to the service'),
};

/** What a quote and a requote have in common. */
const offer = {
  quote_id: identifier,
  currency,
  ...orderAnswer,
  expires_at: instant.nullable().describe('The time of expiry; null: never'),
  enrollment_id: identifier.nullable(),
  accepted_at: instant.nullable(),
};

export const quoteAnswer = named(
  'Quote',
  z.object({
    ...offer,
    policy_id: identifier,
    insured_amount: amount('The insured amount'),
    ...prices,
    quoted_at: instant,
    status: z.enum(['open', 'accepted', 'expired', 'reversed']).describe('reversed: in whole or in part'),
  }),
);

export const requoteAnswer = named(
  'Requote',
  z.object({
    ...offer,
    requote_id: identifier,
    insured_amount: amount('The amount now insured'),
    ...increments,
    requoted_at: instant,
    status: z
      .enum(['open', 'accepted', 'expired', 'stale'])
      .describe('stale: the accepted price of the quote has changed since, so it cannot be accepted'),
  }),
);

const processorRequest = named(
  'ProcessorRequest',
  z.object({
    does: z.enum(['payment', 'transfer']),
    method: z.literal('POST'),
    path: z.string(),
    headers: z
      .record(z.string(), z.string())
      .describe('The idempotency key, the API version, and the account (default: yours)'),
    add: z.array(z.string()).optional().describe('Parameters that your checkout must add'),
    accepted_at: instant
      .optional()
      .describe(
        'When it was accepted: if that is longer ago than the idempotency key is kept, look for the request before ' +
          'you send it',
      ),
    params: z.record(z.string(), z.unknown()).describe('Amounts are integers in the smallest unit'),
  }),
);

/** A split plan, as the command `split plan` prints it. */
const split = named(
  'Split',
  z.object({
    split: z.enum(['real_time', 'sequential']),
    merchant_of_record: z.enum(['platform', 'third_party']),
    connected_account_id: z.string(),
    settlement_currencies: z
      .array(currency)
      .nullable()
      .describe('The currency in which your platform is paid out; null: unknown'),
    share: amount('What we must receive: the invoiceAmount, or the incrementalInvoiceAmount'),
    requests: z
      .array(processorRequest)
      .nullable()
      .describe('The requests to make to the processor, in this order; null if the split cannot be planned'),
    problem: z
      .object({ code: z.enum(SPLIT_PROBLEMS), reason: z.string() })
      .nullable()
      .describe('Why the split cannot be planned; the acceptance is valid regardless'),
  }),
);
const accepted = {
  quote_id: identifier,
  enrollment_id: identifier,
  currency,
  accepted_at: instant,
  /** The plan for routing our share; only for connected accounts. */
  split: split.optional(),
};

export const acceptance = named('Acceptance', z.object({ ...accepted, ...prices }));

export const requoteAcceptance = named(
  'RequoteAcceptance',
  z.object({ ...accepted, requote_id: identifier, ...increments }),
);

export const reversalAnswer = named(
  'Reversal',
  z.object({
    reversal_id: identifier,
    quote_id: identifier,
    requote_id: identifier.nullable(),
    enrollment_id: identifier.nullable(),
    currency,
    accepted_at: instant,
    spotPrice: amount('What the consumer gets back, zero or negative'),
    partnerCut: amount('What you return of your cut, zero or negative'),
    invoiceAmount: amount('What we return, zero or negative; it lowers your invoice'),
    ...orderAnswer,
    status: z
      .enum(['recorded', 'requested', 'rejected'])
      .describe('A request is not recorded: our finance team decides, and an event of yours tells the decision'),
    request_id: z.int().nullable().describe('The number of the request, if there was one'),
    allowed_by: z
      .enum(Object.keys(GROUNDS) as [Ground, ...Ground[]])
      .nullable()
      .describe('The rule or the person that allowed it; null while it is not recorded'),
    reason: z.string().nullable().describe('Why it was requested, or why it was rejected'),
  }),
);

export const lateRequestAnswer = named(
  'LateRequest',
  z.object({
    request_id: z.int(),
    location: z.string(),
    quote_id: identifier,
    status: z.enum(['pending', 'done', 'refused']),
    requested_at: instant.describe('The time of the call, which counts'),
    answered_at: instant.nullable(),
    answer: z
      .object({ status: z.int(), body: z.looseObject({}) })
      .nullable()
      .describe('What the call would have answered'),
  }),
);

export const reversalPreview = named(
  'ReversalPreview',
  reversalAnswer
    .omit({ reversal_id: true, accepted_at: true, status: true, request_id: true, order_reference: true })
    .omit({ cover_from: true, cover_to: true })
    .extend({
      outcome: z.enum(['recorded', 'requested']).describe('What the same reversal would be now'),
      terms: z.string().nullable().describe("The policy's terms for this sale; null if it has none"),
      left: z.object({
        spotPrice: amount('What is left of the price'),
        partnerCut: amount('What is left of your cut'),
        invoiceAmount: amount('What is left of our share'),
      }),
    }),
);

const text = z.string();
export const decimalText = (description: string) =>
  z.string().describe(`${description}, a decimal with exactly the currency's decimals`);
const sums = {
  spotPrice: decimalText('Sum of the prices charged to consumers'),
  partnerCut: decimalText('Sum of what you keep'),
  invoiceAmount: decimalText('Sum of our share'),
};
const taxRate = {
  category: z.enum(TAX_CATEGORIES),
  rate: text.describe('In percent, such as 19 or 7.5'),
  reduced: z.boolean().describe('Marked as a reduced rate'),
  reason: text.describe('Why no tax is charged; empty for standard and zero'),
  reason_code: text.describe("The reason's VATEX code; empty if none was configured"),
};
const documentTax = {
  registration: text.optional().describe("Our tax number in the partner's country; empty: our own"),
  taxTotals: z
    .array(
      z.object({
        ...taxRate,
        country: text.describe("The partner's country, which selected the rule; may be empty"),
        name: text.describe('The printed name, such as VAT'),
        taxable: decimalText('The taxable amount'),
        tax: decimalText('Rounded once'),
      }),
    )
    .optional()
    .describe('By country, category and rate. Like the four fields beside it, only on a document with tax'),
  net: decimalText('invoiceAmount, before tax').optional(),
  tax: decimalText('Sum of the tax').optional(),
  gross: decimalText('net plus tax').optional(),
};
const documentLine = named(
  'DocumentLine',
  z.object({
    ...{ policy_id: text, kind: z.enum(ROW_KINDS), month: text, count: z.int(), ...sums },
    tax: z.object(taxRate).optional().describe('Only on a document with tax'),
  }),
);

export const documentAnswer = named(
  'Document',
  z.object({
    number: text,
    series: text,
    sequence: z.int(),
    document: z.enum(['invoice', 'credit_note', 'statement']),
    purpose: z.enum(['month', 'adjustment', 'missing_shares', 'opening']),
    status: z.enum(['open', 'paid', 'void']),
    partner_id: text,
    month: text.describe('The billed month, YYYY-MM'),
    currency,
    issued_on: z.iso.date(),
    due_on: z.iso.date().nullable(),
    enrollments: z.int(),
    ...sums,
    ...documentTax,
    credit_applied: decimalText('Credit applied when it was issued'),
    amount_due: decimalText('invoiceAmount, with tax gross, less credit_applied'),
    credited: decimalText('Credited since'),
    amount_paid: decimalText('Paid'),
    balance: decimalText('What is left to pay'),
    lines: z.array(documentLine),
    payment_link: text.nullable(),
    creditor_reference: text.optional().describe('ISO 11649 (RF), as the PDF prints it'),
    pdf: z.object({ sha256: text, bytes: z.int() }).nullable(),
    email: z
      .object({
        status: z
          .enum(EMAIL_STATUSES)
          .describe(
            'held: something is missing on our side. uncertain: the connection was lost during sending; we look ' +
              'into it. portal: the document was uploaded to your portal',
          ),
        to: z.array(text).nullable(),
        message_id: text,
        sent_at: instant.nullable(),
      })
      .nullable(),
    replaces: text.nullable(),
    replaced_by: text.nullable(),
    credits: text.nullable(),
    void_reason: text.nullable(),
  }),
);

export const policyAnswer = named(
  'Policy',
  z.object({
    policy_id: identifier,
    name: text,
    kind: text.describe('Such as insurance'),
    active: z.boolean(),
    currency,
    partner_cut_rate: text.describe('The part of spotPrice that you keep, from 0 to 1; the rate of today'),
    price: z
      .object({ rate: text, minimum: decimalText('The minimum price') })
      .nullable()
      .describe('spotPrice is insured_amount × rate, at least the minimum; null if it cannot be quoted'),
    largest_price: decimalText('The maximum price of a quote, including its requotes').nullable(),
    cancellation: z
      .array(
        z.object({
          from: text.nullable().describe('For sales accepted from this day on; null: from the beginning'),
          window_days: z
            .int()
            .nullable()
            .describe('Within these days after the acceptance, all may be reversed; null: no terms from then on'),
          after_window: z.enum(AFTER_WINDOW).nullable().describe('What may be reversed after the window'),
          cut: z.enum(CUTS).nullable().describe('Whether your cut is reversed in proportion, or you keep it'),
          before_cover_only: z.boolean().nullable().describe('Nothing may be reversed from the first day of cover on'),
        }),
      )
      .describe(`The terms in force and those that come; without terms: ${WITHOUT_TERMS}, or all that is left`),
  }),
);

const count = (description: string) => z.int().describe(description);
const unmatchedLine = named(
  'UnmatchedLine',
  z.object({
    line: count('The line in the file; the header is line 1'),
    status: z.enum(['awaited', 'unknown_quote']),
    quote_id: identifier,
    requote_id: identifier.nullable(),
    transfer: text.nullable(),
    payment: text.nullable(),
    kind: z.enum(['share', 'reversal', 'dispute']),
    currency,
    amount: decimalText('Below zero for a reversed transfer'),
  }),
);

export const settlementFileAnswer = named(
  'SettlementFile',
  z.object({
    sha256: text.describe('The SHA-256 of the bytes that you sent, in hexadecimal'),
    received_at: instant,
    lines: count('Without the header'),
    duplicates: count('Lines repeated in this file or an earlier one; they count once'),
    matched: count('Lines whose money is allocated to their quote'),
    awaited: count('Lines of a known quote whose money has not reached our account yet'),
    unknown_quotes: count('Lines whose quote_id is not an accepted quote of yours under a connected account'),
    unmatched: z.array(unmatchedLine).describe('The first 100 unmatched lines'),
  }),
);

const feedTotals = {
  count: count('Rows, including reversals'),
  totals: z.record(text, text).describe('The sum of invoiceAmount for each currency'),
};
export const feedAnswer = named(
  'Feed',
  z.object({
    month: text.describe('YYYY-MM'),
    ...feedTotals,
    complete: z.boolean().describe('False: you said that more rows will come'),
    stated_at: instant,
    recorded: z.object(feedTotals).describe('Your rows of that month in the ledger'),
    agrees: z.boolean(),
    differences: z.object(feedTotals).describe('recorded less stated; only currencies that differ'),
  }),
);

/** The response of the token exchange (RFC 6749, 5.1). */
export const tokenAnswer = named(
  'Token',
  z.object({
    access_token: z.string(),
    expires_in: z.int().describe("The token's lifetime in seconds"),
    token_type: z.literal('Bearer'),
  }),
);
export const tokenError = named(
  'TokenError',
  z.object({
    error: z.enum(['invalid_request', 'invalid_client', 'unsupported_grant_type', 'temporarily_unavailable']),
    error_description: z.string(),
  }),
);
export const tokenRequest = z.object({
  client_id: z.string(),
  client_secret: z.string(),
  grant_type: z.literal('client_credentials').optional(),
});

const fieldProblem = named(
  'FieldProblem',
  z.object({
    path: z
      .string()
      .describe('The field, such as insured_amount, or the line of a file; empty for the body as a whole'),
    reason: z.string(),
    line: z.int().nullable().optional().describe('The line of a file; null for the file as a whole'),
    field: z.string().optional().describe("A line's field"),
    code: z.enum(SETTLEMENT_CODES).optional().describe('Of a line, for programs'),
  }),
);

/** A problem document (RFC 9457), with the refusal's facts as additional members. */
export const problem = named(
  'Problem',
  z.object({
    type: z.string().describe('The URL of the code in the reference'),
    title: z.string(),
    status: z.int(),
    detail: z.string().describe('For people: what happened and what to do next'),
    instance: z.string().describe('urn:request: and the X-Request-Id'),
    code: z
      .enum(CALL_REFUSAL_CODES as [CallRefusalCode, ...CallRefusalCode[]])
      .describe('For programs. Handle an unknown code by its status.'),
    problems: z
      .array(fieldProblem)
      .optional()
      .describe('The fields that request_invalid refuses, or the first 20 lines that settlement_invalid refuses'),
    problem_count: z.int().optional().describe('With settlement_invalid: the number of invalid lines'),
    retry_after: z.int().optional().describe('Seconds, as in Retry-After'),
  }),
);
