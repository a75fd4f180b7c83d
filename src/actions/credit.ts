import { Transaction } from '#database/transaction';
import { applyCredit, PlacedCredit, unapplyCredit } from '#documents/place-credit';
import { failpoint } from '#failpoint';
import { Amount, moneyText } from '#money';
import { enteredLater } from '#payments/context';
import { REFUND_METHODS } from '#payments/enums';
import { Refund, refundCredit, returnRefund } from '#payments/refund';
import { toDo } from '#remedy';
import { amount, choice, date, defineAction, flag, line, ON_TODAY, onLatestDate, Report, text } from './action.ts';
import { BANK_LINE } from './bank.ts';
import { documentFacts, documentNumbered, followBalance, OF_DOCUMENT, partnersOfDocuments } from './documents.ts';

const CREDIT_NOTE = () => text('Credit note', 'The credit note with the open credit.');
const INVOICE = () => text('Invoice', 'The invoice.');

type Placement = Readonly<{
  creditNote: string;
  number: string;
}>;

const OF_CREDIT = {
  role: 'finance',
  subject: ({ creditNote }: Placement) => creditNote,
  partners: (tx: Transaction, { creditNote, number }: Placement) => partnersOfDocuments(tx, [creditNote, number]),
  facts: (tx: Transaction, { creditNote, number }: Placement) => documentFacts(tx, [creditNote, number]),
  amounts: (_seen: unknown, _input: unknown, placed: PlacedCredit) => [Amount.of(placed.amount, placed.currency)],
} as const;

export const creditApply = defineAction({
  name: 'credit.apply',
  title: 'Apply open credit to an invoice',
  command: {
    summary: "Apply open credit to an open invoice of the partner, in the credit note's currency",
    arguments: { creditNote: '<credit-note>' },
    options: { number: '--invoice <number>' },
  },
  ...OF_CREDIT,
  input: {
    creditNote: CREDIT_NOTE(),
    number: INVOICE(),
    amount: amount('Amount', 'The amount. Default: as much as possible.').optional(),
    onLatestDate: onLatestDate(),
  },
  perform: (tx, context, { onLatestDate, ...request }) => applyCredit(tx, { ...context, onLatestDate }, request),
  async committed(context, { result }) {
    failpoint('placement.committed');
    await followBalance(context, result.number);
  },
  report: async ({ input: { creditNote, number }, result }, _context, tx) => ({
    ...(await reportPlaced(tx, result, `from ${creditNote} is applied to ${number}`)),
    remedies: [toDo('Undo', 'credit.unapply', { creditNote, number })],
  }),
});

export const creditUnapply = defineAction({
  name: 'credit.unapply',
  title: 'Take back credit applied to an invoice',
  command: {
    arguments: { creditNote: '<credit-note>' },
    options: { number: '--invoice <number>' },
  },
  ...OF_CREDIT,
  input: { creditNote: CREDIT_NOTE(), number: INVOICE(), onLatestDate: onLatestDate() },
  perform: (tx, context, { onLatestDate, ...request }) => unapplyCredit(tx, { ...context, onLatestDate }, request),
  async committed(context, { result }) {
    failpoint('release.committed');
    await followBalance(context, result.number);
  },
  report: ({ input: { creditNote, number }, result }, _context, tx) =>
    reportPlaced(tx, result, `from ${creditNote} is taken back from ${number}`),
});

async function reportPlaced(tx: Transaction, placed: PlacedCredit, what: string): Promise<Report> {
  const invoice = await documentNumbered(tx, placed.number);
  const note = await documentNumbered(tx, placed.credit_note);
  const digits = (amount: string) => Amount.of(amount, placed.currency).toString();
  return {
    json: { ...placed, invoice_balance: digits(invoice.balance), open_credit: digits(note.balance) },
    text:
      `${moneyText(placed.amount, placed.currency)} ${what}.\n` +
      `${moneyText(invoice.balance, placed.currency)} is left to pay on ${placed.number}, ` +
      `and ${moneyText(note.balance, placed.currency)} on ${placed.credit_note} is open credit.`,
  };
}

export const creditRefund = defineAction({
  name: 'credit.refund',
  command: { arguments: { number: '<credit-note>' } },
  title: 'Record that open credit was paid out',
  role: 'finance',
  input: {
    number: CREDIT_NOTE(),
    amount: amount('Amount', 'The amount. Default: all open credit.').optional(),
    method: choice('Method', 'How the credit was paid out. Default: other.', REFUND_METHODS).optional(),
    reference: text('Reference', "The bank's reference.").optional(),
    on: date('On', 'The date of the refund. Default: today.').optional(),
    again: flag(
      'Again',
      'Record the refund even if the same amount was already refunded with that reference.',
    ).optional(),
  },
  ...ON_TODAY,
  ...OF_DOCUMENT,
  perform: (tx, context, { method = 'other', reference = '', ...request }) =>
    refundCredit(tx, context, { ...request, method, reference }),
  amounts: (_seen, _input, refund) => [Amount.of(refund.amount, refund.currency)],
  report: ({ result }, _context, tx) => reportRefund(tx, result, false),
});

export const creditRefundReturned = defineAction({
  name: 'credit.refund_returned',
  command: {
    called: 'credit refund',
    arguments: { number: '<credit-note>' },
    options: { reason: '--returned <reason>' },
  },
  title: 'Record that a refund came back',
  role: 'finance',
  input: {
    number: CREDIT_NOTE(),
    reason: line('Reason', 'Why the latest refund came back. It is recorded.'),
    amount: amount('Amount', 'Only the latest refund of this amount. Default: the latest refund.').optional(),
    bankLineId: BANK_LINE('The credit that returned the refund.').optional(),
    on: date('On', 'The date of the return. Default: today.').optional(),
  },
  ...OF_DOCUMENT,
  perform: returnRefund,
  amounts: (_seen, _input, refund) => [Amount.of(refund.amount, refund.currency)],
  report: ({ result }, _context, tx) => reportRefund(tx, result, true),
});

async function reportRefund(tx: Transaction, refund: Refund, returned: boolean): Promise<Report> {
  const { number } = refund;
  const amount = Amount.of(refund.amount, refund.currency);
  const { balance, currency } = await documentNumbered(tx, number);
  const open = Amount.of(balance, currency);
  const left = open.isZero() ? 'The credit is used up.' : `${open.forPeople()} of it is still open.`;
  const later = enteredLater(refund.returned_on ?? refund.refunded_on, refund.entry_on);
  return {
    json: { ...refund, amount: amount.toString(), open_credit: open.toString(), returned },
    text: [
      returned
        ? `The refund of ${amount.forPeople()} was returned: ${open.forPeople()} of ${number} is open.`
        : `${amount.forPeople()} of ${number} was paid out to ${refund.partner_id}. ${left}`,
      ...(later === undefined ? [] : [later]),
    ].join('\n'),
  };
}
