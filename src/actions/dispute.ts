import { Transaction } from '#database/transaction';
import { closeDispute, openDispute } from '#documents/disputes';
import { OpenDispute, readOpenDisputes } from '#documents/disputes.sql';
import { failpoint } from '#failpoint';
import { Amount, moneyText } from '#money';
import { toDo } from '#remedy';
import { printable } from '#text-table';
import { amount, date, defineAction, Facts, ledgerRows, line, reason, text } from './action.ts';
import { amountsIn, OF_DOCUMENT } from './documents.ts';
import { onEach } from './each.ts';

const INVOICE = () => text('Invoice', 'The invoice.');

export const disputeOpen = defineAction({
  name: 'dispute.open',
  title: 'Record that a partner disputes an invoice',
  command: {
    summary: 'Record that the partner disputes an invoice; the disputed amount is not dunned',
    arguments: { number: '<number>' },
  },
  role: 'finance',
  input: {
    number: INVOICE(),
    reason: reason('Recorded, and not shown to the partner.'),
    amount: amount('Amount', 'The disputed amount. Default: the amount of the rows, or all that is open.').optional(),
    rows: ledgerRows('The numbers of the disputed rows of the invoice.').optional(),
    owner: line('Owner', 'Who works on the dispute.', { value: 'name' }).optional(),
    promisedOn: date('Promised on', 'The date by which an answer is promised.').optional(),
  },
  ...OF_DOCUMENT,
  async perform(tx, context, request) {
    await openDispute(tx, context, request);
    const [opened] = await readOpenDisputes(tx, { number: request.number });
    return opened as OpenDispute;
  },
  committed: () => failpoint('dispute.committed'),
  facts: (tx, { number }) => disputeFacts(tx, [number]),
  amounts: ({ after }, { number }) => amountsIn(after, [number], 'disputed'),
  report: async ({ input: { number }, result: opened }) => ({
    json: disputeJson(opened),
    text: `${number} is in dispute: ${disputeText(opened)}.`,
    remedies: [toDo('Undo', 'dispute.close', { number })],
  }),
});

export const disputeClose = onEach({
  name: 'dispute.close',
  said: ['is no longer disputed', 'are no longer disputed'],
  title: 'End the dispute of an invoice',
  command: {
    summary: 'End the dispute of an invoice; what is still open is dunned again',
    arguments: { number: '<number...>' },
  },
  role: 'finance',
  input: { number: INVOICE(), reason: line('Reason', 'The outcome of the dispute. It is recorded.') },
  perform: closeDispute,
  committed: () => failpoint('dispute_closing.committed'),
  facts: disputeFacts,
  amounts: ({ before }, { number }) => amountsIn(before, [number], 'disputed'),
  report: async ({ input: { number, reason } }) => ({
    json: { number, dispute: null, reason },
    text: `The dispute of ${number} is closed: ${printable(reason)}.`,
  }),
});

async function disputeFacts(tx: Transaction, numbers: readonly string[]): Promise<Facts> {
  const open = new Map((await readOpenDisputes(tx, { numbers })).map((each) => [each.number, each]));
  return Object.fromEntries(
    numbers.map((number) => {
      const dispute = open.get(number);
      if (dispute === undefined) return [number, { disputed: null }];
      const { amount, currency, reason, owner, promised_on } = dispute;
      return [number, { disputed: Amount.of(amount, currency), reason, owner, 'promised on': promised_on }];
    }),
  );
}

export const disputeJson = (dispute: OpenDispute) => ({
  ...dispute,
  balance: Amount.of(dispute.balance, dispute.currency).toString(),
  amount: Amount.of(dispute.amount, dispute.currency).toString(),
});

/** `120.00 USD since 2026-09-03, wrong count; owner Ada; promised for 2026-09-20` */
export const disputeText = ({ amount: disputed, currency, disputed_on, reason, owner, promised_on }: OpenDispute) =>
  [
    `${moneyText(disputed, currency)} since ${disputed_on}, ${printable(reason)}`,
    ...(owner === '' ? [] : [`owner ${printable(owner)}`]),
    ...(promised_on === null ? [] : [`promised for ${promised_on}`]),
  ].join('; ');
