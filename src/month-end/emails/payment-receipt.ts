/**
 * The receipt for a payment, sent to the payer once, when it is first applied to a month's invoice: the amount received
 * and the invoices paid. None for a payment that was reversed before. A corrected payer gets one too.
 */
import { Transaction } from '#database/transaction';
import { failpoint } from '#failpoint';
import { EmailComposer, oneLine, partnerLetter } from '#mail/email';
import { queueEmails } from '#mail/outbox.sql';
import { Amount, isZero } from '#money';
import { METHOD_WORDS } from '#payments/enums';
import { ActorContext } from '#people/audit-events';
import { readDueReceipts, readReceipt } from './due.sql.ts';

/** Even if the setting is turned on later. */
const NEWS_FOR_DAYS = 7;

export const paymentReceiptEmail: EmailComposer = {
  kind: 'payment_receipt',
  queueDue,
  async compose(tx, email, context, templates) {
    const partnerId = email.partner_id as string;
    const payment = await readReceipt(tx, email.payment_id as number);
    if (payment.status === 'reversed') return { withdrawn: 'the payment was reversed' };
    if (payment.partner_id !== partnerId) return { withdrawn: 'the payment now belongs to another partner' };
    if (payment.paid.length === 0) return { withdrawn: 'the payment is not applied to an invoice any more' };
    const letter = await partnerLetter(tx, context, partnerId);
    if (letter.held !== undefined) return letter;
    const { to, cc, locale, view } = letter;
    const amount = (text: string) => locale.amount(Amount.of(text, payment.currency));
    // The payer does not learn the invoices of companies that are not below it, only their sum.
    const told = payment.paid.filter(({ of_family }) => of_family);
    const others = payment.paid
      .filter(({ of_family }) => !of_family)
      .reduce((sum, each) => sum.plus(Amount.of(each.amount, payment.currency)), Amount.zero(payment.currency));
    return {
      ...{ to, cc },
      content: templates.render('payment_receipt', {
        ...{ ...view, attachments: [] },
        amount: amount(payment.amount),
        receivedOn: locale.date(payment.received_on),
        method: METHOD_WORDS[payment.method],
        reference: oneLine(payment.reference),
        invoices: told.map((each) => ({
          number: each.number,
          partner: each.partner_id === partnerId ? '' : oneLine(each.partner_name),
          amount: amount(each.amount),
          bankCharges: isZero(each.bank_charges) ? '' : amount(each.bank_charges),
          left: isZero(each.balance) ? '' : amount(each.balance),
        })),
        others: others.isZero() ? '' : locale.amount(others),
        returned: isZero(payment.paid_back) ? '' : amount(`-${payment.paid_back}`),
        elsewhere: isZero(payment.elsewhere) ? '' : amount(`-${payment.elsewhere}`),
        unapplied: isZero(payment.unapplied) ? '' : amount(payment.unapplied),
      }),
      attachments: [],
    };
  },
};

async function queueDue(tx: Transaction, { environment, settings }: ActorContext) {
  if (!settings.payment_receipts) return;
  const now = environment.now();
  const due = await readDueReceipts(tx, { since: now.minus({ days: NEWS_FOR_DAYS }).toISO() });
  if (due.length === 0) return;
  await queueEmails(
    tx,
    due.map(({ payment_id, partner_id, event_id, earlier }) => ({
      ...({ kind: 'payment_receipt', payment_id, partner_id, event_id } as const),
      name: `receipt.${payment_id}${earlier === 0 ? '' : `.${earlier + 1}`}`,
    })),
    { environment, settings },
  );
  failpoint('receipt.queued');
}
