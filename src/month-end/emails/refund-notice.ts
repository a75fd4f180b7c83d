/**
 * The notice of a refund of credit, sent once to its partner. A refund returned before the notice was sent gets none.
 */
import { query, type Transaction } from '../../database/transaction.ts';
import { mailDomain } from '../../documents/issue/context.ts';
import { localeOf } from '../../documents/locale.ts';
import type { EmailComposer } from '../../mail/email.ts';
import { issuerView } from '../../mail/issuer-view.ts';
import { queueEmails } from '../../mail/outbox.sql.ts';
import { oneLine } from '../../mail/text.ts';
import { Amount, isZero } from '../../money.ts';
import { readPartners } from '../../partners/partners.sql.ts';
import type { ActorContext } from '../../people/audit-events.ts';

/** Older refunds get no notice when the setting is turned on. */
const NEWS_FOR_DAYS = 7;

const METHODS = { ach: 'by ACH', wire: 'by bank transfer', other: '' } as const;

export const refundNoticeEmail: EmailComposer = {
  kind: 'refund_notice',
  queueDue,
  async compose(tx, email, { environment, settings }, templates) {
    const partnerId = email.partner_id as string;
    const refund = await readRefund(tx, email.credit_refund_id as number);
    if (refund.returned) return { withdrawn: 'the refund was returned' };
    const [partner] = await readPartners(tx, partnerId);
    if (partner === undefined) throw new Error(`no partner ${partnerId} to notify of a refund`);
    const { name, email: address, cc } = partner.invoicing_contact;
    if (address === '') return { held: `partner ${partnerId} has no invoicing contact's e-mail address` };
    const locale = localeOf(partner.address.country);
    const amount = (text: string) => locale.amount(Amount.of(text, refund.currency));
    return {
      to: { name, address },
      cc,
      content: templates.render('refund_notice', {
        sandbox: environment.name === 'sandbox',
        issuer: issuerView(settings.issuer),
        contactName: oneLine(name),
        partner: { name: oneLine(partner.name) },
        ...{ rowsOmitted: false, paymentLink: '', attachments: [] },
        amount: amount(refund.amount),
        creditNote: refund.number,
        refundedOn: locale.date(refund.refunded_on),
        method: METHODS[refund.method],
        reference: oneLine(refund.reference),
        left: isZero(refund.balance) ? '' : amount(refund.balance),
      }),
      attachments: [],
    };
  },
};

interface Refund {
  readonly number: string;
  readonly currency: string;
  readonly amount: string;
  readonly refunded_on: string;
  readonly method: keyof typeof METHODS;
  /** Empty if it is not known. */
  readonly reference: string;
  readonly returned: boolean;
  /** The open amount of the credit note. */
  readonly balance: string;
}

async function readRefund(tx: Transaction, refundId: number): Promise<Refund> {
  const [refund] = await query<Refund>(
    tx,
    `SELECT d.number, f.currency, f.amount, f.refunded_on, f.method, f.reference, o.balance,
            EXISTS (SELECT FROM credit_refund_returns b WHERE b.credit_refund_id = f.credit_refund_id) AS returned
     FROM credit_refunds f JOIN documents d USING (document_id) JOIN document_balances o USING (document_id)
     WHERE f.credit_refund_id = :refundId`,
    { refundId },
  );
  if (refund === undefined) throw new Error(`no refund ${refundId} to announce`);
  return refund;
}

async function queueDue(tx: Transaction, { environment, settings }: ActorContext): Promise<void> {
  if (!settings.refund_notices) return;
  const now = environment.now();
  const due = await query<{ credit_refund_id: number; partner_id: string; event_id: number }>(
    tx,
    `SELECT f.credit_refund_id, f.partner_id, f.event_id FROM live_credit_refunds f
     WHERE f.recorded_at >= :since::timestamptz
       AND NOT EXISTS (SELECT FROM emails e WHERE e.credit_refund_id = f.credit_refund_id)
     ORDER BY f.credit_refund_id`,
    { since: now.minus({ days: NEWS_FOR_DAYS }).toISO() },
  );
  if (due.length === 0) return;
  await queueEmails(
    tx,
    due.map((each) => ({ ...each, kind: 'refund_notice', name: `refund.${each.credit_refund_id}` }) as const),
    { now: now.toISO(), eventId: null, mailDomain: mailDomain(settings) },
  );
}
