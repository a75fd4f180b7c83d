/** The notice of a refund of credit, sent once, unless the refund was returned before. */
import { Transaction } from '#database/transaction';
import { EmailComposer, oneLine, partnerLetter } from '#mail/email';
import { queueEmails } from '#mail/outbox.sql';
import { Amount, isZero } from '#money';
import { METHOD_WORDS } from '#payments/enums';
import { ActorContext } from '#people/audit-events';
import { readDueRefundNotices, readRefund } from './due.sql.ts';

/** Even if the setting is turned on later. */
const NEWS_FOR_DAYS = 7;

export const refundNoticeEmail: EmailComposer = {
  kind: 'refund_notice',
  queueDue,
  async compose(tx, email, context, templates) {
    const partnerId = email.partner_id as string;
    const refund = await readRefund(tx, email.credit_refund_id as number);
    if (refund.returned) return { withdrawn: 'the refund was returned' };
    const letter = await partnerLetter(tx, context, partnerId);
    if (letter.held !== undefined) return letter;
    const { to, cc, locale, view } = letter;
    const amount = (text: string) => locale.amount(Amount.of(text, refund.currency));
    return {
      ...{ to, cc },
      content: templates.render('refund_notice', {
        ...{ ...view, attachments: [] },
        amount: amount(refund.amount),
        creditNote: refund.number,
        refundedOn: locale.date(refund.refunded_on),
        method: METHOD_WORDS[refund.method],
        reference: oneLine(refund.reference),
        left: isZero(refund.balance) ? '' : amount(refund.balance),
      }),
      attachments: [],
    };
  },
};

async function queueDue(tx: Transaction, { environment, settings }: ActorContext) {
  if (!settings.refund_notices) return;
  const now = environment.now();
  const due = await readDueRefundNotices(tx, { since: now.minus({ days: NEWS_FOR_DAYS }).toISO() });
  if (due.length === 0) return;
  await queueEmails(
    tx,
    due.map((each) => ({ ...each, kind: 'refund_notice', name: `refund.${each.credit_refund_id}` }) as const),
    { environment, settings },
  );
}
