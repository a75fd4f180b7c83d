import { defineAction, partner, text, whole } from '#actions/action';
import { amountsIn } from '#actions/documents';
import { Transaction } from '#database/transaction';
import { failpoint } from '#failpoint';
import { assignPayment } from '#payments/assign';
import { forgetAccount, readPayerAccounts } from '#payments/payer-accounts';
import { printable } from '#text-table';
import { OF_PAYMENT, partnersOfPayment, paymentName, reportPayment } from './describe.ts';

export const paymentAssign = defineAction({
  name: 'payment.assign',
  title: 'Set or correct the payer of a payment',
  command: {
    summary: "Set or correct a payment's payer: its unapplied cash becomes that partner's",
    arguments: { paymentId: '<id>' },
  },
  role: 'finance',
  input: {
    paymentId: whole('Payment', 'The payment.'),
    partnerId: partner('The partner that paid.'),
  },
  ...OF_PAYMENT,
  async partners(tx, { paymentId, partnerId }) {
    const payer = await partnersOfPayment(tx, paymentId);
    return payer === 'all' ? payer : [...payer, partnerId];
  },
  perform: assignPayment,
  committed: () => failpoint('assignment.committed'),
  amounts: ({ before }, { paymentId }) => amountsIn(before, [paymentName(paymentId)], 'unapplied'),
  report({ input: { paymentId, partnerId }, result: before }, _context, tx) {
    const instead = before === null ? '' : `, not ${before}`;
    return reportPayment(tx, paymentId, `Payment ${paymentId} was paid by ${partnerId}${instead}.`);
  },
});

export const paymentForgetAccount = defineAction({
  name: 'payment.forget_account',
  title: "Forget a payer's bank account",
  command: {
    summary: "Forget a payer's bank account; later payments from it are no longer attributed to the payer",
    arguments: { account: '<account>' },
  },
  role: 'finance',
  input: { account: text('Account', "The payer's bank account.") },
  subject: ({ account }) => account,
  partners: async (tx, { account }) => (await accountOf(tx, account))?.partners ?? [],
  perform: (tx, context, { account }) => forgetAccount(tx, context, account),
  async facts(tx, { account }) {
    return { [account]: { 'known as': (await accountOf(tx, account))?.names.join(', ') ?? null } };
  },
  report: async ({ input: { account }, result: known }) => ({
    json: known,
    text:
      `${printable(account)} is forgotten: later payments from it are no longer attributed to ` +
      `${known.names.join(' or ')}. Applied payments stay applied.`,
  }),
});

const accountOf = async (tx: Transaction, account: string) =>
  (await readPayerAccounts(tx)).find((each) => each.payer_account === account);
