/** `reckoner payment list`. */
import { Amount, groupThousands } from '../../../money.ts';
import { readPartnerNames } from '../../../partners/queries.ts';
import { PAYMENT_STATUSES, type PaymentStatus } from '../../../payments/enums.ts';
import { type PaymentJson, paymentJson } from '../../../payments/payment.ts';
import { readPayments } from '../../../payments/queries.ts';
import type { Sheet } from '../../../sheet.ts';
import { amountArgument, choiceArgument, dateArgument } from '../../arguments.ts';
import { type CommandContext, type Definition, reading } from '../../define.ts';
import { table } from '../../output.ts';
import { FORMAT, OUT, type PresentOptions, present } from '../../present.ts';

export const define: Definition = (payment, act) => {
  payment
    .command('list')
    .description('List payments with their applications and suggested matches')
    .option('--partner <id>', 'only payments of this partner')
    .option('--status <status>', PAYMENT_STATUSES.join(', '), choiceArgument('--status', PAYMENT_STATUSES))
    .option('--amount <amount>', 'only payments of exactly this amount', amountArgument('--amount'))
    .option('--text <text>', 'only those with this text in a reference, or in the name or account of the payer')
    .option('--from <date>', 'received on this day or later', dateArgument('--from'))
    .option('--to <date>', 'received on this day or earlier', dateArgument('--to'))
    .option(...FORMAT)
    .option(...OUT)
    .action(act(reading(paymentList)));
};

interface PaymentListOptions extends PresentOptions {
  readonly partner?: string;
  readonly status?: PaymentStatus;
  readonly amount?: string;
  readonly text?: string;
  readonly from?: string;
  readonly to?: string;
}

async function paymentList({ database, output }: CommandContext, options: PaymentListOptions): Promise<void> {
  const { partner: partnerId, status, amount, text, from, to } = options;
  const [rows, names] = await database.reading(async (tx) => [
    await readPayments(tx, { partnerId, status, amount, text, from, to }),
    await readPartnerNames(tx),
  ]);
  const payments = rows.map(paymentJson);
  const payerOf = ({ partner_id, payer }: PaymentJson) => names.get(partner_id ?? '') ?? payer.name ?? '(unknown)';
  await present(
    output,
    options,
    payments,
    () => sheetOf(payments, payerOf),
    () => (payments.length === 0 ? 'No payments found.' : listed(payments, payerOf)),
  );
}

const sheetOf = (payments: readonly PaymentJson[], payerOf: (payment: PaymentJson) => string): Sheet => ({
  name: 'Payments',
  columns: {
    payment_id: 'count',
    received_on: 'date',
    partner_id: 'text',
    payer: 'text',
    payer_account: 'text',
    reference: 'text',
    method: 'text',
    account: 'text',
    currency: 'text',
    amount: 'amount',
    applied: 'amount',
    unapplied: 'amount',
    reversed: 'amount',
    bank_charges: 'amount',
    status: 'text',
    documents: 'text',
  },
  rows: payments.map((payment) => ({
    ...payment,
    payer: payerOf(payment),
    payer_account: payment.payer.account,
    bank_charges: bankCharges(payment).toString(),
    documents: documentsOf(payment),
  })),
});

function listed(payments: readonly PaymentJson[], payerOf: (payment: PaymentJson) => string): string {
  return table(
    ['>id', 'received', '~payer', '>amount', '', 'status', '>bank charges', '~for'],
    payments.map((payment) => [
      payment.payment_id,
      payment.received_on,
      payerOf(payment),
      groupThousands(payment.amount),
      payment.currency,
      payment.status,
      bankCharges(payment).isZero() ? '' : groupThousands(bankCharges(payment).toString()),
      documentsOf(payment),
    ]),
  );
}

/** What the documents that it pays are short of, written to bank charges. */
function bankCharges({ currency, applications }: PaymentJson): Amount {
  return applications
    .filter(({ unapplied_on }) => unapplied_on === null)
    .reduce((sum, each) => sum.plus(Amount.of(each.small_difference ?? '0', currency)), Amount.zero(currency));
}

/** The documents that it pays now, or its first suggestion with a question mark. */
function documentsOf({ applications, suggestions }: PaymentJson): string {
  const numbers = applications.filter((each) => each.unapplied_on === null).map((each) => each.number);
  const [suggestion] = suggestions;
  if (numbers.length > 0 || suggestion === undefined) return numbers.join(' ');
  return suggestion.number === null ? `duplicate of ${suggestion.same_as}?` : `${suggestion.number}?`;
}
