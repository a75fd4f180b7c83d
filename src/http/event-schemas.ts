/** The schemas of partner events in the OpenAPI description. The body of a webhook is an Event. */
import { z } from 'zod';
import { EVENT_TYPES, EventType } from '#partner-events/event';
import {
  acceptance,
  decimalText,
  documentAnswer,
  named,
  orderAnswer,
  requoteAcceptance,
  reversalAnswer,
} from './schemas.ts';

const text = z.string();
const { currency } = acceptance.shape;
/** Fields that a ledger row has in an event, but not in the response to the call that recorded the row. */
const ofRow = {
  policy_id: text,
  enrollment_id: text.nullable().describe('null if the row was imported without one'),
  ...orderAnswer,
  month: text.describe('The month to which the row belongs, YYYY-MM'),
  posted_month: text.describe('The month whose document bills the row'),
};
const fields = documentAnswer.shape;
const ofInvoice = { number: text.describe('The invoice'), currency, amount: decimalText('The amount') };
const ofPayment = { ...ofInvoice, method: text, received_on: z.iso.date() };
const ofCredit = { ...ofInvoice, credit_note: text.describe('The credit note') };
const ofRefund = { credit_note: text, currency, amount: ofInvoice.amount, method: text, refunded_on: z.iso.date() };

const issued = named(
  'IssuedDocument',
  z.object({
    number: text,
    document: fields.document,
    purpose: fields.purpose,
    month: fields.month,
    currency,
    invoiceAmount: fields.invoiceAmount,
    credit_applied: fields.credit_applied,
    amount_due: fields.amount_due,
    issued_on: fields.issued_on,
    due_on: fields.due_on,
    replaces: text.nullable().describe('The void document that this document replaces'),
    credits: text.nullable().describe('The invoice that this credit note credits'),
  }),
);
const ofDocument = { number: text, document: fields.document, month: fields.month };
const payment = named('AppliedPayment', z.object(ofPayment));
const credit = named('AppliedCredit', z.object(ofCredit));
const refund = named('RefundedCredit', z.object(ofRefund));
const dispute = named('DisputedInvoice', z.object(ofInvoice));

const DATA = {
  'quote.accepted': named('AcceptedQuote', acceptance.omit({ split: true }).extend(ofRow)),
  'requote.accepted': named('AcceptedRequote', requoteAcceptance.omit({ split: true }).extend(ofRow)),
  'reversal.recorded': named(
    'RecordedReversal',
    reversalAnswer.omit({ status: true, request_id: true, reason: true }).extend(ofRow),
  ),
  'reversal.rejected': named(
    'RejectedReversal',
    z.object({
      reversal_id: text,
      request_id: z.int(),
      quote_id: text,
      requote_id: text.nullable(),
      currency,
      spotPrice: decimalText('The price that you asked to reverse'),
      partnerCut: decimalText('Your cut of it'),
      invoiceAmount: decimalText('Our share of it'),
      reason: text,
    }),
  ),
  'invoice.issued': issued,
  'credit_note.issued': issued,
  'statement.issued': issued,
  'document.sent': named('SentDocument', z.object({ ...ofDocument, to: z.array(text) })),
  'document.voided': named('VoidedDocument', z.object({ ...ofDocument, voided_on: z.iso.date() })),
  'payment.applied': payment,
  'payment.unapplied': payment,
  'credit.applied': credit,
  'credit.unapplied': credit,
  'credit.refunded': refund,
  'credit.refund_returned': refund,
  'dispute.opened': dispute,
  'dispute.closed': dispute,
} as const satisfies Record<EventType, z.ZodType>;

const eventOf = (type: EventType) =>
  z.object({
    event_id: text.describe('The same whenever the event is read or sent, to recognize events already handled'),
    position: z.int().describe('Counts your events from 1, without gaps; as the cursor it continues after this event'),
    type: z.literal(type).describe('New types may be added: ignore unknown ones'),
    recorded_at: z.iso.datetime({ offset: true }),
    data: DATA[type],
  });

/**
 * One alternative for each type, so that a generated client knows an event's data by its type. Published events never
 * change.
 */
export const eventAnswer = named(
  'Event',
  z.discriminatedUnion('type', EVENT_TYPES.map(eventOf) as [ReturnType<typeof eventOf>]),
);
