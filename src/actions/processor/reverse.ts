import { amount, defineAction, Facts, month, text } from '#actions/action';
import { amountsIn } from '#actions/documents';
import { Transaction } from '#database/transaction';
import { Amount, moneyText } from '#money';
import { ReversalReport, recordReversals, reverseManually } from '#splits/reverse';
import { printable } from '#text-table';
import { ACCOUNT } from './match.ts';

const OF_REVERSALS = {
  facts: async (_tx: Transaction, _input: unknown, report?: ReversalReport): Promise<Facts> =>
    Object.fromEntries(
      (report?.recorded ?? []).map(({ quote_id, partner_id, spotPrice, invoiceAmount, currency }) => [
        `quote ${quote_id} of ${partner_id}`,
        {
          'price returned': Amount.of(spotPrice, currency).negated(),
          'our share returned': Amount.of(invoiceAmount, currency).negated(),
        },
      ]),
    ),
  amounts: ({ after }: { after: Facts }) => amountsIn(after, Object.keys(after), 'price returned'),
};

export const processorReverse = defineAction({
  name: 'processor.reverse',
  title: 'Record a reversed transfer as a reversal in the ledger',
  command: { arguments: { balance_transaction: '<transaction>' } },
  role: 'finance',
  input: {
    balance_transaction: text('Transfer reversal', 'The balance transaction of the transfer reversal.'),
    spotPrice: amount('Spot price', 'The part of the price refunded to the customer.'),
    account: ACCOUNT(),
  },
  subject: ({ balance_transaction }) => balance_transaction,
  ...OF_REVERSALS,
  perform: reverseManually,
  report: async ({ result }) => ({
    json: result,
    text: describedReversals(result),
    attention: result.manual_review.length > 0,
  }),
});

export const reconcileReverse = defineAction({
  name: 'processor.reverse_month',
  title: "Record a month's reversed transfers as reversals in the ledger",
  role: 'finance',
  input: { month: month('Month', 'The month of the quotes.') },
  subject: ({ month }) => month,
  ...OF_REVERSALS,
  perform: (tx, context, { month }) => recordReversals(tx, context, month),
  report: async ({ result }) => ({
    json: result,
    text: describedReversals(result) || 'Nothing new to reverse.',
  }),
});

function describedReversals({ recorded, manual_review }: ReversalReport) {
  return [
    ...recorded.map(
      (each) =>
        `Quote ${each.quote_id} of ${each.partner_id}: reversal ${each.reversal_id} of ${each.spotPrice} ` +
        `= ${each.partnerCut} + ${each.invoiceAmount} ${each.currency} was recorded in the ledger.`,
    ),
    ...manual_review.map(
      (each) =>
        `Quote ${each.quote_id} of ${each.partner_id}: ${moneyText(each.amount, each.currency)} was reversed ` +
        `(${printable(each.balance_transaction)}), and ${each.reason}.`,
    ),
  ].join('\n');
}
