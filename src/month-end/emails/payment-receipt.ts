/**
 * The receipt for a payment: sent once to its payer, when it first pays a month's invoice. It states what was received
 * and what it paid. A payment that was reversed before its receipt was sent gets none; one whose payer was corrected is
 * acknowledged to the right payer too.
 */
import { query, type Transaction } from '../../database/transaction.ts';
import { mailDomain } from '../../documents/issue/context.ts';
import { localeOf } from '../../documents/locale.ts';
import { failpoint } from '../../failpoint.ts';
import type { EmailComposer } from '../../mail/email.ts';
import { issuerView } from '../../mail/issuer-view.ts';
import { queueEmails } from '../../mail/outbox.sql.ts';
import { oneLine } from '../../mail/text.ts';
import { Amount, isZero } from '../../money.ts';
import { readPartners } from '../../partners/partners.sql.ts';
import type { ActorContext } from '../../people/audit-events.ts';

/** Older applications get no receipt when the setting is turned on. */
const NEWS_FOR_DAYS = 7;

const METHODS = { ach: 'by ACH', wire: 'by bank transfer', link: 'online', other: '' } as const;

export const paymentReceiptEmail: EmailComposer = {
  kind: 'payment_receipt',
  queueDue,
  async compose(tx, email, { environment, settings }, templates) {
    const partnerId = email.partner_id as string;
    const payment = await readReceipt(tx, email.payment_id as number);
    if (payment.status === 'reversed') return { withdrawn: 'the payment was reversed' };
    if (payment.partner_id !== partnerId) return { withdrawn: 'the payment now belongs to another partner' };
    if (payment.paid.length === 0) return { withdrawn: 'the payment is not applied to an invoice any more' };
    const [partner] = await readPartners(tx, partnerId);
    if (partner === undefined) throw new Error(`no partner ${partnerId} to send a receipt to`);
    const { name, email: address, cc } = partner.invoicing_contact;
    if (address === '') return { held: `partner ${partnerId} has no invoicing contact's e-mail address` };
    const locale = localeOf(partner.address.country);
    const amount = (text: string) => locale.amount(Amount.of(text, payment.currency));
    return {
      to: { name, address },
      cc,
      content: templates.render('payment_receipt', {
        sandbox: environment.name === 'sandbox',
        issuer: issuerView(settings.issuer),
        contactName: oneLine(name),
        partner: { name: oneLine(partner.name) },
        ...{ rowsOmitted: false, paymentLink: '', attachments: [] },
        amount: amount(payment.amount),
        receivedOn: locale.date(payment.received_on),
        method: METHODS[payment.method],
        reference: oneLine(payment.reference),
        invoices: payment.paid.map((each) => ({
          number: each.number,
          partner: each.partner_id === partnerId ? '' : oneLine(each.partner_name),
          amount: amount(each.amount),
          bankCharges: isZero(each.bank_charges) ? '' : amount(each.bank_charges),
          left: isZero(each.balance) ? '' : amount(each.balance),
        })),
        returned: isZero(payment.paid_back) ? '' : amount(`-${payment.paid_back}`),
        elsewhere: isZero(payment.elsewhere) ? '' : amount(`-${payment.elsewhere}`),
        unapplied: isZero(payment.unapplied) ? '' : amount(payment.unapplied),
      }),
      attachments: [],
    };
  },
};

interface Receipt {
  /** Its payer now. */
  readonly partner_id: string | null;
  readonly currency: string;
  /** The amount received, without what was recorded by mistake or twice. */
  readonly amount: string;
  readonly received_on: string;
  readonly method: keyof typeof METHODS;
  readonly reference: string;
  readonly status: 'reversed' | 'applied' | 'unapplied' | 'partly_applied';
  readonly paid_back: string;
  /** The part received that is not a payment of the partner. */
  readonly elsewhere: string;
  readonly unapplied: string;
  /** The amount it pays now, by invoice. */
  readonly paid: readonly {
    readonly number: string;
    readonly partner_id: string;
    readonly partner_name: string;
    readonly amount: string;
    /** The small difference that was written to bank charges. */
    readonly bank_charges: string;
    /** What is left to pay. */
    readonly balance: string;
  }[];
}

async function readReceipt(tx: Transaction, paymentId: number): Promise<Receipt> {
  const [payment] = await query<Receipt>(
    tx,
    `SELECT b.partner_id, p.currency, (p.amount - r.mistaken)::text AS amount, p.received_on, p.method,
            p.reference, b.status,
            r.paid_back::text AS paid_back, r.elsewhere::text AS elsewhere, b.unapplied::text AS unapplied,
            coalesce((
              SELECT json_agg(json_build_object('number', d.number, 'partner_id', d.partner_id, 'partner_name', n.name,
                       'amount', a.amount::text, 'bank_charges', a.bank_charges::text, 'balance', o.balance::text)
                     ORDER BY d.series, d.sequence)
              FROM (SELECT a.document_id, sum(a.amount) AS amount, sum(coalesce(s.amount, 0)) AS bank_charges
                    FROM live_payment_applications a LEFT JOIN small_differences s USING (payment_application_id)
                    WHERE a.payment_id = p.payment_id GROUP BY a.document_id) AS a
              JOIN documents d USING (document_id) JOIN document_balances o USING (document_id)
              JOIN partners n ON n.partner_id = d.partner_id), '[]') AS paid
     FROM payments p JOIN payment_balances b USING (payment_id)
     CROSS JOIN LATERAL (
       SELECT coalesce(sum(amount) FILTER (WHERE kind IN ('mistake', 'duplicate')), 0) AS mistaken,
              coalesce(sum(amount) FILTER (WHERE kind IN ('returned', 'refunded', 'disputed')), 0) AS paid_back,
              coalesce(sum(amount) FILTER (WHERE kind = 'other'), 0) AS elsewhere
       FROM live_payment_reversals WHERE payment_id = p.payment_id) AS r
     WHERE p.payment_id = :paymentId`,
    { paymentId },
  );
  if (payment === undefined) throw new Error(`no payment ${paymentId} to send a receipt for`);
  return payment;
}

/**
 * Payments recently applied to monthly or carried-over invoices whose current payer has no receipt. Shares of connected
 * accounts, which pay invoices of another purpose, get none.
 */
async function queueDue(tx: Transaction, { environment, settings }: ActorContext): Promise<void> {
  if (!settings.payment_receipts) return;
  const now = environment.now();
  const due = await query<{ payment_id: number; partner_id: string; event_id: number; earlier: number }>(
    tx,
    `SELECT a.payment_id, b.partner_id, min(a.event_id) AS event_id,
            (SELECT count(*) FROM emails e WHERE e.payment_id = a.payment_id) AS earlier
     FROM live_payment_applications a JOIN payment_balances b USING (payment_id) JOIN documents d USING (document_id)
     WHERE a.recorded_at >= :since::timestamptz AND d.purpose IN ('month', 'opening') AND b.partner_id IS NOT NULL
       AND NOT EXISTS (
         SELECT FROM emails e
         WHERE (e.payment_id, e.partner_id) = (a.payment_id, b.partner_id)
           AND (e.status <> 'withdrawn' OR e.dismissal_reason IS NOT NULL))
     GROUP BY a.payment_id, b.partner_id ORDER BY a.payment_id`,
    { since: now.minus({ days: NEWS_FOR_DAYS }).toISO() },
  );
  if (due.length === 0) return;
  await queueEmails(
    tx,
    due.map(({ payment_id, partner_id, event_id, earlier }) => ({
      ...({ kind: 'payment_receipt', payment_id, partner_id, event_id } as const),
      name: `receipt.${payment_id}${earlier === 0 ? '' : `.${earlier + 1}`}`,
    })),
    { now: now.toISO(), eventId: null, mailDomain: mailDomain(settings) },
  );
  failpoint('receipt.queued');
}
