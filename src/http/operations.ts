/**
 * The operations of the API, with the schemas that check requests and describe answers. The OpenAPI description and the
 * reference page are generated from them. `api.ts` has their handlers.
 */
import { z } from 'zod';
import type { CallRefusalCode } from '../errors/refusals.ts';
import { ExactNumber } from '../json.ts';
import { identifier } from '../partners/file.ts';

export interface Operation<
  Params extends z.ZodType = z.ZodType,
  Body extends z.ZodType | undefined = z.ZodType | undefined,
  Query extends z.ZodType = z.ZodType,
> {
  readonly id: string;
  readonly methods: readonly ('GET' | 'POST')[];
  /** As OpenAPI writes it: `/api/v1/quote/{quote_id}`. */
  readonly path: string;
  readonly summary: string;
  readonly description: string;
  /** `documented` by the service's documentation, or this system's `own`. */
  readonly origin: 'documented' | 'own';
  readonly act: 'reads' | 'makes' | 'accepts';
  readonly partnerHeader: 'required' | 'checked';
  readonly params: Params;
  readonly body: Body;
  /** The query parameters; others are ignored. */
  readonly query: Query;
  readonly status: 200 | 201;
  readonly answer: z.ZodType;
  readonly example: unknown;
  readonly refusals: readonly CallRefusalCode[];
}

// --- Fields -----------------------------------------------------------------------------------------------------------

/** A decimal in a request: a string, or a number read from its source text. Parsed to that text. */
export const decimal = z
  .union([z.string(), z.instanceof(ExactNumber)], 'must be a decimal, as a number or a string')
  .transform((value) => (value instanceof ExactNumber ? value.text : value))
  .pipe(
    z
      .string()
      .max(64)
      .regex(/^-?\d+(\.\d+)?$/, 'is not a plain decimal such as 12.50'),
  );

/** An amount in an answer: a JSON number with exactly the currency's digits. */
const amount = (description: string) => z.number().meta({ description });
const currency = z.string().meta({ description: 'ISO 4217, such as USD' });
const instant = z.iso.datetime({ offset: true });

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

const quoteAnswer = z.object({
  quote_id: identifier,
  policy_id: identifier,
  currency,
  insured_amount: amount('The amount that is insured'),
  ...prices,
  quoted_at: instant,
  status: z.enum(['open', 'accepted', 'reversed']).meta({ description: 'reversed: in whole or in part' }),
  enrollment_id: identifier.nullable(),
  accepted_at: instant.nullable(),
});

const requoteAnswer = z.object({
  requote_id: identifier,
  quote_id: identifier,
  currency,
  insured_amount: amount('The amount that is insured now'),
  ...increments,
  requoted_at: instant,
});

/** The requests of a split plan, as `split plan` prints them. */
const split = z
  .object({
    split: z.enum(['real_time', 'sequential']),
    merchant_of_record: z.enum(['platform', 'third_party']),
    connected_account_id: z.string(),
    share: amount('What must reach us: the invoiceAmount, or the incrementalInvoiceAmount'),
    requests: z
      .array(
        z.object({
          does: z.enum(['payment', 'transfer']),
          method: z.literal('POST'),
          path: z.string(),
          headers: z
            .record(z.string(), z.string())
            .meta({ description: 'The idempotency key, the API version, and the account: yours if absent' }),
          add: z.array(z.string()).optional().meta({ description: 'Parameters that your checkout must add' }),
          accepted_at: instant.optional().meta({
            description: 'When it was accepted: older than its idempotency key, look for it before you make it',
          }),
          params: z.record(z.string(), z.unknown()).meta({ description: 'Amounts are integers in the smallest unit' }),
        }),
      )
      .nullable()
      .meta({
        description: 'The requests to make to the processor, in this order; null if the split cannot be planned',
      }),
    problem: z
      .object({ code: z.string(), reason: z.string() })
      .nullable()
      .meta({ description: 'Why the split cannot be planned; the acceptance is valid regardless' }),
  })
  .optional()
  .meta({ description: 'Only for connected accounts: how to route our share (docs/connected-accounts.md)' });

const acceptance = z.object({
  quote_id: identifier,
  enrollment_id: identifier,
  currency,
  accepted_at: instant,
  ...prices,
  split,
});

const requoteAcceptance = z.object({
  requote_id: identifier,
  quote_id: identifier,
  enrollment_id: identifier,
  currency,
  accepted_at: instant,
  ...increments,
  split,
});

const text = z.string();
const sums = { spotPrice: text, partnerCut: text, invoiceAmount: text };
const documentAnswer = z.object({
  number: text,
  series: text,
  sequence: z.int(),
  document: z.enum(['invoice', 'credit_note', 'statement']),
  purpose: z.enum(['month', 'adjustment', 'missing_shares']),
  status: z.enum(['open', 'paid', 'void']),
  partner_id: text,
  month: text,
  currency,
  issued_on: z.iso.date(),
  due_on: z.iso.date().nullable(),
  enrollments: z.int(),
  ...sums,
  credit_applied: text,
  amount_due: text,
  credited: text,
  amount_paid: text,
  balance: text,
  lines: z.array(z.object({ policy_id: text, kind: text, month: text, count: z.int(), ...sums })),
  payment_link: text.nullable(),
  pdf: z.object({ sha256: text, bytes: z.int() }).nullable(),
  email: z
    .object({ status: text, to: z.array(text).nullable(), message_id: text, sent_at: instant.nullable() })
    .nullable(),
  replaces: text.nullable(),
  replaced_by: text.nullable(),
  credits: text.nullable(),
  void_reason: text.nullable(),
});

// --- Operations -------------------------------------------------------------------------------------------------------

const none = z.object({});

const operation = <Params extends z.ZodType, Body extends z.ZodType | undefined, Query extends z.ZodType = typeof none>(
  given: Omit<Operation<Params, Body, Query>, 'query'> & { readonly query?: Query },
): Operation<Params, Body, Query> => ({ ...given, query: given.query ?? (none as unknown as Query) });

/** Inputs of a sequential split's plan (service.md 7.4.3). */
export const splitQuery = z.object({
  operator_account: z
    .string()
    .regex(/^acct_[A-Za-z0-9_]{1,200}$/, 'must be an account of the processor, acct_…')
    .optional()
    .meta({
      description: 'If a third party is Merchant of Record: the account of the operator or event host, which charges',
    }),
  platform_fee: z
    .string()
    .regex(/^\d{1,15}(\.\d{1,4})?$/, 'must be a plain decimal such as 1.50')
    .optional()
    .meta({ description: 'With operator_account: your own fee in major units, charged with the accepted amount' }),
});
export type SplitQuery = z.output<typeof splitQuery>;
const ofQuote = z.object({ quote_id: identifier });
const ofRequote = z.object({ requote_id: identifier });

const QUOTED = new ExactNumber('250.00');
const PRICES = {
  spotPrice: new ExactNumber('21.25'),
  partnerCut: new ExactNumber('6.38'),
  invoiceAmount: new ExactNumber('14.87'),
};
const INCREMENTS = {
  incrementalSpotPrice: new ExactNumber('4.25'),
  incrementalPartnerCut: new ExactNumber('1.27'),
  incrementalInvoiceAmount: new ExactNumber('2.98'),
};
const QUOTE_ID = 'q-0f8f8d3e-6f5c-4a55-9d3c-2f6f4f6e1a11';
const REQUOTE_ID = 'rq-6b1f0c0e-5a0d-4d5a-8a53-0e6a3a5b7c22';
const ENROLLMENT_ID = 'e-53a9a0c7-1a39-45a7-9b0e-7c1f6d2e8b33';
const quoteExample = (accepted: boolean) => ({
  quote_id: QUOTE_ID,
  policy_id: 'ticket-protection',
  currency: 'USD',
  insured_amount: QUOTED,
  ...PRICES,
  quoted_at: '2026-10-05T09:30:00.000Z',
  status: accepted ? 'accepted' : 'open',
  enrollment_id: accepted ? ENROLLMENT_ID : null,
  accepted_at: accepted ? '2026-10-05T09:31:12.480Z' : null,
});

export const createQuote = operation({
  id: 'createQuote',
  act: 'makes',
  methods: ['POST'],
  path: '/api/v1/quote',
  summary: 'Generate a quote',
  description:
    'Prices an insured amount under one of your policies, in your currency. spotPrice is insured amount × rate, at least ' +
    "the policy's minimum. partnerCut is your share. Both are rounded half up; invoiceAmount is the rest.",
  origin: 'own',
  partnerHeader: 'checked',
  params: none,
  body: z.strictObject({ policy_id: identifier, insured_amount: decimal }),
  status: 201,
  answer: quoteAnswer,
  example: quoteExample(false),
  refusals: [
    'policy_unknown',
    'policy_not_priced',
    'partner_inactive',
    'policy_inactive',
    'price_too_large',
    'price_too_small',
  ],
});

export const readQuote = operation({
  id: 'readQuote',
  act: 'reads',
  methods: ['GET'],
  path: '/api/v1/quote/{quote_id}',
  summary: 'Read a quote',
  description: 'Returns the quote as offered and whether it was accepted.',
  origin: 'own',
  partnerHeader: 'checked',
  params: ofQuote,
  body: undefined,
  status: 200,
  answer: quoteAnswer,
  example: quoteExample(true),
  refusals: ['quote_unknown'],
});

export const acceptQuote = operation({
  id: 'acceptQuote',
  act: 'accepts',
  methods: ['GET', 'POST'],
  path: '/api/v1/quote/{quote_id}/accept',
  summary: 'Accept a quote',
  description:
    'Enrolls the customer and records the price once, at this instant. Accepting again, even concurrently, gives the ' +
    'same answer and records nothing. POST does the same; use it if a proxy may repeat or prefetch a GET.',
  origin: 'documented',
  partnerHeader: 'required',
  params: ofQuote,
  body: undefined,
  query: splitQuery,
  status: 200,
  answer: acceptance,
  example: {
    quote_id: QUOTE_ID,
    enrollment_id: ENROLLMENT_ID,
    currency: 'USD',
    accepted_at: '2026-10-05T09:31:12.480Z',
    ...PRICES,
  },
  refusals: [
    ...(['quote_unknown', 'partner_inactive', 'policy_inactive', 'recorded_otherwise', 'prefetch_refused'] as const),
    'ledger_busy',
    'request_invalid',
  ],
});

export const createRequote = operation({
  id: 'createRequote',
  act: 'makes',
  methods: ['POST'],
  path: '/api/v1/quote/{quote_id}/requote',
  summary: 'Requote an accepted quote',
  description:
    'Prices a higher insured amount by the terms of the quote, and returns what it adds to the last accepted price. ' +
    'Nothing is charged until the requote is accepted. A lower price is refused; give money back with a reversal.',
  origin: 'own',
  partnerHeader: 'checked',
  params: ofQuote,
  body: z.strictObject({ insured_amount: decimal }),
  status: 201,
  answer: requoteAnswer,
  example: {
    requote_id: REQUOTE_ID,
    quote_id: QUOTE_ID,
    currency: 'USD',
    insured_amount: new ExactNumber('300.00'),
    ...INCREMENTS,
    requoted_at: '2026-10-07T16:02:44.000Z',
  },
  refusals: [
    'quote_unknown',
    'quote_not_accepted',
    'quote_reversed',
    'requote_lower',
    'increment_too_small',
    'price_too_large',
  ],
});

export const acceptRequote = operation({
  id: 'acceptRequote',
  act: 'accepts',
  methods: ['GET', 'POST'],
  path: '/api/v1/requote/{requote_id}/accept',
  summary: 'Accept a requote',
  description:
    'The increments become due, with a payment split of their own. Accepting one of a quote’s open requotes makes the ' +
    'others stale.',
  origin: 'own',
  partnerHeader: 'required',
  params: ofRequote,
  body: undefined,
  query: splitQuery,
  status: 200,
  answer: requoteAcceptance,
  example: {
    requote_id: REQUOTE_ID,
    quote_id: QUOTE_ID,
    enrollment_id: ENROLLMENT_ID,
    currency: 'USD',
    accepted_at: '2026-10-07T16:03:01.215Z',
    ...INCREMENTS,
  },
  refusals: [
    ...(['requote_unknown', 'requote_stale', 'quote_reversed', 'recorded_otherwise', 'prefetch_refused'] as const),
    'ledger_busy',
    'request_invalid',
  ],
});

export const listInvoices = operation({
  id: 'listInvoices',
  act: 'reads',
  methods: ['GET'],
  path: '/api/v1/invoices',
  summary: 'Your invoices, credit notes and statements',
  description: 'All your documents in number order, with their lines, balances and payment links.',
  origin: 'own',
  partnerHeader: 'required',
  params: none,
  body: undefined,
  status: 200,
  answer: z.array(documentAnswer),
  example: [],
  refusals: [],
});

export const OPERATIONS: readonly Operation[] = [
  createQuote,
  readQuote,
  acceptQuote,
  createRequote,
  acceptRequote,
  listInvoices,
];

/** The description of the token exchange, which follows OAuth's own rules (RFC 6749). */
export const tokenAnswer = z.object({
  access_token: z.string(),
  expires_in: z.int().meta({ description: 'Seconds for which the token is valid' }),
  token_type: z.literal('Bearer'),
});
export const tokenRequest = z.object({
  client_id: z.string(),
  client_secret: z.string(),
  grant_type: z.literal('client_credentials').optional(),
});
