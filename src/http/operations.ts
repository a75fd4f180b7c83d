/** The operations of the API, from which the OpenAPI description and the reference page are generated. */
import { z } from 'zod';
import { ExactNumber } from '#json';
import { identifier } from '#partners/file';
import { listInvoices, readEInvoice, readInvoice, readInvoicePdf, readInvoiceRows } from './document-operations.ts';
import { listEvents } from './event-operations.ts';
import { listFeeds, stateTotals } from './feeds.ts';
import { Operation, operation } from './operation.ts';
import {
  acceptance,
  COVER_PROBLEM,
  coverIsInOrder,
  decimal,
  lateRequestAnswer,
  ofOrder,
  pageLimit,
  policyAnswer,
  quoteAnswer,
  requoteAcceptance,
  requoteAnswer,
  reversalAnswer,
  reversalPreview,
} from './schemas.ts';
import { readFile, sendFile } from './settlement-files.ts';

/** The query parameters of a sequential split's plan (service.md 7.4.3). */
export const splitQuery = z.strictObject({
  operator_account: z
    .string()
    .regex(/^acct_[A-Za-z0-9_]{1,200}$/, 'must be an account of the processor, acct_…')
    .optional()
    .describe('If a third party is Merchant of Record: the account of the operator or event host that charges'),
  platform_fee: z
    .string()
    .regex(/^\d{1,15}(\.\d{1,4})?$/, 'must be a plain decimal such as 1.50')
    .optional()
    .describe('With operator_account: your own fee in major units, charged with the accepted amount'),
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
const ORDER = { order_reference: 'ORD-2231', cover_from: '2026-10-05', cover_to: '2026-12-31' };
const NO_ORDER = { order_reference: null, cover_from: null, cover_to: null };
const QUOTE_ID = 'q-0f8f8d3e-6f5c-4a55-9d3c-2f6f4f6e1a11';
const REQUOTE_ID = 'rq-6b1f0c0e-5a0d-4d5a-8a53-0e6a3a5b7c22';
const ENROLLMENT_ID = 'e-53a9a0c7-1a39-45a7-9b0e-7c1f6d2e8b33';
const quoteExample = (accepted: boolean) => ({
  quote_id: QUOTE_ID,
  policy_id: 'ticket-protection',
  currency: 'USD',
  insured_amount: QUOTED,
  ...PRICES,
  ...ORDER,
  quoted_at: '2026-10-05T09:30:00.000Z',
  expires_at: '2026-11-04T09:30:00.000Z',
  status: accepted ? 'accepted' : 'open',
  enrollment_id: accepted ? ENROLLMENT_ID : null,
  accepted_at: accepted ? '2026-10-05T09:31:12.480Z' : null,
});

const requoteExample = (accepted: boolean) => ({
  requote_id: REQUOTE_ID,
  quote_id: QUOTE_ID,
  currency: 'USD',
  insured_amount: new ExactNumber('300.00'),
  ...INCREMENTS,
  ...NO_ORDER,
  requoted_at: '2026-10-07T16:02:44.000Z',
  expires_at: '2026-11-06T16:02:44.000Z',
  status: accepted ? 'accepted' : 'open',
  enrollment_id: accepted ? ENROLLMENT_ID : null,
  accepted_at: accepted ? '2026-10-07T16:03:01.215Z' : null,
});

export const createQuote = operation({
  id: 'createQuote',
  action: 'makes',
  path: '/api/v1/quote',
  summary: 'Generate a quote',
  description:
    'Prices an insured amount under one of your policies, in your currency. spotPrice is insured amount × rate, at least ' +
    "the policy's minimum. partnerCut is your share. Both are rounded half up; invoiceAmount is the rest. The quote's " +
    'acceptance records order_reference, cover_from and cover_to in its ledger row.',
  partnerHeader: 'checked',
  body: z
    .strictObject({ policy_id: identifier, insured_amount: decimal, ...ofOrder })
    .refine(coverIsInOrder, COVER_PROBLEM),
  answer: quoteAnswer,
  example: quoteExample(false),
  refusals: [
    'policy_unknown',
    'policy_not_priced',
    'partner_inactive',
    'policy_inactive',
    'price_too_large',
    'policy_price_exceeded',
    'price_too_small',
  ],
});

export const readQuote = operation({
  id: 'readQuote',
  action: 'reads',
  path: '/api/v1/quote/{quote_id}',
  summary: 'Read a quote',
  description: 'Returns the quote as offered and whether it was accepted.',
  partnerHeader: 'checked',
  params: ofQuote,
  answer: quoteAnswer,
  example: quoteExample(true),
  refusals: ['quote_unknown'],
});

export const acceptQuote = operation({
  id: 'acceptQuote',
  action: 'accepts',
  path: '/api/v1/quote/{quote_id}/accept',
  summary: 'Accept a quote',
  description:
    'Enrolls the customer and records the price once, at this time. Accepting again, even concurrently, returns the ' +
    'same response and records nothing. POST does the same; use it if a proxy may repeat or prefetch a GET.',
  origin: 'documented',
  params: ofQuote,
  query: splitQuery,
  answer: acceptance,
  example: {
    quote_id: QUOTE_ID,
    enrollment_id: ENROLLMENT_ID,
    currency: 'USD',
    accepted_at: '2026-10-05T09:31:12.480Z',
    ...PRICES,
  },
  refusals: [
    ...([
      'quote_unknown',
      'partner_inactive',
      'policy_inactive',
      'quote_expired',
      'policy_price_exceeded',
      'recorded_otherwise',
    ] as const),
    ...(['prefetch_refused', 'ledger_busy'] as const),
    'request_invalid',
  ],
});

/** A call that needs rows which left the database. */
const LATE =
  'The rows of the quote may be in the archive of old months: the call is a late request, answered within minutes. ' +
  'Location has its address';

export const createRequote = operation({
  id: 'createRequote',
  action: 'makes',
  path: '/api/v1/quote/{quote_id}/requote',
  summary: 'Requote an accepted quote',
  description:
    "Prices a higher insured amount on the quote's terms, and returns what it adds to the last accepted price. " +
    'Nothing is charged until the requote is accepted. A lower price is refused; use a reversal to return money.',
  partnerHeader: 'checked',
  params: ofQuote,
  body: z.strictObject({ insured_amount: decimal, ...ofOrder }).refine(coverIsInOrder, COVER_PROBLEM),
  otherwise: { status: 202, description: LATE, answers: [lateRequestAnswer] },
  answer: requoteAnswer,
  example: requoteExample(false),
  refusals: [
    'quote_unknown',
    'quote_not_accepted',
    'quote_reversed',
    'partner_inactive',
    'policy_inactive',
    'requote_lower',
    'increment_too_small',
    'price_too_large',
    'policy_price_exceeded',
  ],
});

export const readRequote = operation({
  id: 'readRequote',
  action: 'reads',
  path: '/api/v1/requote/{requote_id}',
  summary: 'Read a requote',
  description: 'Returns the requote as offered and whether it was accepted or is stale.',
  partnerHeader: 'checked',
  params: ofRequote,
  answer: requoteAnswer,
  example: requoteExample(true),
  refusals: ['requote_unknown'],
});

export const acceptRequote = operation({
  id: 'acceptRequote',
  action: 'accepts',
  path: '/api/v1/requote/{requote_id}/accept',
  summary: 'Accept a requote',
  description:
    'The increments become due, with their own payment split. Accepting one of a quote’s open requotes makes the ' +
    'others stale.',
  params: ofRequote,
  query: splitQuery,
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
    ...([
      'requote_unknown',
      'requote_stale',
      'quote_expired',
      'policy_price_exceeded',
      'quote_reversed',
      'recorded_otherwise',
    ] as const),
    ...(['partner_inactive', 'policy_inactive', 'prefetch_refused', 'ledger_busy'] as const),
    'request_invalid',
  ],
});

const ofReversal = {
  requote_id: identifier.optional().describe('The requote to reverse, if any'),
  spotPrice: decimal.optional(),
  partnerCut: decimal.optional(),
  invoiceAmount: decimal.optional(),
};
const AMOUNTS_PROBLEM = {
  path: ['spotPrice'],
  message: 'requires partnerCut and invoiceAmount; otherwise omit all three',
};
const hasAllAmounts = ({
  spotPrice,
  partnerCut,
  invoiceAmount,
}: { [Name in keyof typeof PRICES]?: string | undefined }) =>
  [spotPrice, partnerCut, invoiceAmount].filter((each) => each === undefined).length % 3 === 0;

export const reverseQuote = operation({
  id: 'reverseQuote',
  action: 'makes',
  path: '/api/v1/quote/{quote_id}/reverse',
  summary: 'Reverse an accepted quote',
  description:
    'Records a refund or cancellation and lowers your invoice, if the cancellation terms of the policy cover it. ' +
    'Without terms, for 30 days after acceptance, a reversal may take your cut and our share in proportion, or all ' +
    'that is left. Anything else is a request: it is not recorded, and the event reversal.recorded or ' +
    'reversal.rejected tells you the decision. Without amounts it reverses what the terms give for the quote and its ' +
    'requotes, or for the requote in `requote_id`: without terms, all that is left. With amounts, give all three, at ' +
    'or below zero, as in a ledger row. `reversal_id` is your own id for the refund: repeating it returns the same ' +
    'reversal with its present status and records nothing.',
  params: ofQuote,
  body: z
    .strictObject({ reversal_id: identifier, ...ofReversal, ...ofOrder })
    .refine(coverIsInOrder, COVER_PROBLEM)
    .refine(hasAllAmounts, AMOUNTS_PROBLEM),
  otherwise: {
    status: 202,
    description: `The cancellation terms do not cover the reversal: it is a request, which our finance team decides. Or: ${LATE}`,
    answers: [reversalAnswer, lateRequestAnswer],
  },
  answer: reversalAnswer,
  example: {
    reversal_id: 'refund-1182',
    quote_id: QUOTE_ID,
    requote_id: null,
    enrollment_id: ENROLLMENT_ID,
    currency: 'USD',
    accepted_at: '2026-10-19T08:12:30.000Z',
    spotPrice: new ExactNumber('-21.25'),
    partnerCut: new ExactNumber('-6.38'),
    invoiceAmount: new ExactNumber('-14.87'),
    ...NO_ORDER,
    ...{ status: 'recorded', request_id: null, allowed_by: 'remainder', reason: null },
  },
  refusals: [
    ...(['quote_unknown', 'quote_not_accepted', 'reversal_reused', 'reversal_exceeds', 'ledger_busy'] as const),
  ],
});

export const previewReversal = operation({
  id: 'previewReversal',
  action: 'reads',
  path: '/api/v1/quote/{quote_id}/reverse/preview',
  summary: 'Foresee a reversal',
  description:
    'Returns what a reversal of the quote would be now, with the same amounts or without: recorded or requested, by ' +
    'which rule, and what is left. Nothing is recorded.',
  params: ofQuote,
  query: z.strictObject(ofReversal).refine(hasAllAmounts, AMOUNTS_PROBLEM),
  answer: reversalPreview,
  example: {
    ...{ quote_id: QUOTE_ID, requote_id: null, enrollment_id: ENROLLMENT_ID, currency: 'USD' },
    spotPrice: new ExactNumber('-21.25'),
    partnerCut: new ExactNumber('-6.38'),
    invoiceAmount: new ExactNumber('-14.87'),
    ...{ outcome: 'recorded', allowed_by: 'window', reason: null, terms: '14 days, then nothing' },
    left: PRICES,
  },
  refusals: ['quote_unknown', 'quote_not_accepted', 'quote_archived', 'reversal_exceeds', 'request_invalid'],
});

export const readLateRequest = operation({
  id: 'readLateRequest',
  action: 'reads',
  path: '/api/v1/late-requests/{request_id}',
  summary: 'Read a late request',
  description:
    'What became of a reversal or requote of a quote in the archive of old months. Ask again while it is pending. Then ' +
    '`answer` has the status and body that the call would have had. Your requests are answered in order.',
  params: z.object({ request_id: z.string().regex(/^[1-9]\d{0,14}$/) }),
  answer: lateRequestAnswer,
  example: {
    ...{ request_id: 17, location: '/api/v1/late-requests/17', quote_id: QUOTE_ID, status: 'refused' },
    ...{ requested_at: '2026-10-19T08:12:30.000Z', answered_at: '2026-10-19T08:14:02.117Z' },
    answer: {
      status: 404,
      body: {
        status: 404,
        code: 'quote_unknown',
        detail: `No such quote: ${QUOTE_ID}. Check the id.`,
        quote_id: QUOTE_ID,
      },
    },
  },
  refusals: ['late_request_unknown'],
});

export const listPolicies = operation({
  id: 'listPolicies',
  action: 'reads',
  path: '/api/v1/policies',
  summary: 'Your policies',
  description: 'The policies configured for you, by id, with their terms of pricing and cancellation.',
  query: z.strictObject({
    limit: pageLimit,
    cursor: identifier.optional().describe('Only policies after this policy_id of yours'),
  }),
  answer: z.array(policyAnswer),
  example: [
    {
      policy_id: 'ticket-protection',
      name: 'Ticket Protection',
      kind: 'insurance',
      active: true,
      currency: 'USD',
      partner_cut_rate: '0.30',
      price: { rate: '0.085', minimum: '2.00' },
      largest_price: '5000.00',
      cancellation: [
        { from: null, window_days: 14, after_window: 'pro_rata', cut: 'in_proportion', before_cover_only: false },
      ],
    },
  ],
  refusals: ['request_invalid'],
});

export const OPERATIONS: readonly Operation[] = [
  listPolicies,
  createQuote,
  readQuote,
  acceptQuote,
  createRequote,
  readRequote,
  acceptRequote,
  reverseQuote,
  previewReversal,
  readLateRequest,
  listInvoices,
  readInvoice,
  readInvoicePdf,
  readEInvoice,
  readInvoiceRows,
  stateTotals,
  listFeeds,
  listEvents,
  sendFile,
  readFile,
];
