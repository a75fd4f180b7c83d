/** The e-mail of a reminder: everything that the partner owes when it is sent. It is withdrawn if nothing is left of it. */
import { todayOf } from '../config/today.ts';
import { localeOf } from '../documents/locale.ts';
import type { EmailComposer } from '../mail/email.ts';
import { issuerView } from '../mail/issuer-view.ts';
import { oneLine } from '../mail/text.ts';
import { Amount } from '../money.ts';
import { daysApart, monthName } from '../month.ts';
import { readPartners } from '../partners/queries.ts';
import { type OpenCredit, type OwedRow, readOpenCredits, readOwed, readReminded } from './remind.sql.ts';

export const reminderEmail: EmailComposer = {
  kind: 'reminder',
  async compose(tx, email, context, templates) {
    const { environment, settings } = context;
    const partnerId = email.partner_id as string;
    const day = todayOf(context);
    const rows = await readOwed(tx, { day, levels: [], partnerId });
    const reminded = await readReminded(tx, email.email_id);
    if (!rows.some((row) => row.skip_reason === null && reminded.has(row.document_id))) {
      return { withdrawn: 'its documents are paid, void, on hold, disputed or covered by credit by now' };
    }
    const [partner] = await readPartners(tx, partnerId);
    if (partner === undefined) throw new Error(`no partner ${partnerId} to remind`);
    const { name, email: address, cc } = partner.invoicing_contact;
    if (address === '') return { held: `partner ${partnerId} has no invoicing contact's e-mail address` };
    // What credit covers is listed with the credit, so that the sums are the partner's.
    const owed = rows.filter((row) => row.skip_reason === null || row.skip_reason === 'covered_by_credit');
    const toConfirm = rows.filter((row) => row.skip_reason === 'payment_to_confirm');
    const credits = withoutCashFor(toConfirm, await readOpenCredits(tx, partnerId));
    return {
      to: { name, address },
      cc,
      content: templates.render('reminder', {
        sandbox: environment.name === 'sandbox',
        issuer: issuerView(settings.issuer),
        contactName: oneLine(name),
        partner: { name: oneLine(partner.name) },
        // For the closing, which it shares with the e-mails of documents.
        ...{ attachments: [], rowsOmitted: false, paymentLink: '' },
        ...viewOf(owed, credits, day, localeOf(partner.address.country)),
      }),
      attachments: [],
    };
  },
};

/** Cash that probably pays documents that are not listed is not listed either. */
function withoutCashFor(toConfirm: readonly OwedRow[], credits: readonly OpenCredit[]): OpenCredit[] {
  return credits.flatMap((each) => {
    if (each.number !== null) return [each];
    const left = toConfirm
      .filter((row) => row.currency === each.currency)
      .reduce((cash, row) => cash.minus(Amount.of(row.balance, row.currency)), Amount.of(each.amount, each.currency));
    return left.isPositive() ? [{ ...each, amount: left.toString() }] : [];
  });
}

type Locale = ReturnType<typeof localeOf>;

function viewOf(owed: readonly OwedRow[], credits: readonly OpenCredit[], day: string, locale: Locale) {
  const overdue = owed.filter((row) => row.skip_reason === null && row.due_on < day);
  const currencies = [...new Set(owed.map((row) => row.currency))].sort();
  const total = (rows: readonly OwedRow[], currency: string) =>
    rows
      .filter((row) => row.currency === currency)
      .reduce((sum, row) => sum.plus(Amount.of(row.balance, currency)), Amount.zero(currency));
  const open = (currency: string) => credits.filter((each) => each.currency === currency);
  const netOf = (currency: string) =>
    open(currency).reduce((net, { amount }) => net.minus(Amount.of(amount, currency)), total(owed, currency));
  return {
    overdue: overdue.length > 0,
    total: currencies.map((currency) => locale.amount(netOf(currency))).join(' and '),
    asOf: locale.date(day),
    currencies: currencies.map((currency) => ({
      currency,
      total: locale.amount(total(owed, currency)),
      overdue: total(overdue, currency).isZero() ? '' : locale.amount(total(overdue, currency)),
      documents: owed.filter((row) => row.currency === currency).map((row) => documentView(row, day, locale)),
      credits: open(currency).map(({ number, amount }) => ({
        creditNote: number ?? '',
        amount: locale.amount(Amount.of(amount, currency).negated()),
      })),
      net: open(currency).length === 0 ? '' : locale.amount(netOf(currency)),
    })),
  };
}

function documentView(row: OwedRow, day: string, locale: Locale) {
  const days = daysApart(row.due_on, day);
  return {
    number: row.number,
    month: monthName(row.month),
    dueOn: locale.date(row.due_on),
    overdue: row.due_on < day,
    dueToday: days === 0,
    days: String(days),
    oneDay: days === 1,
    amount: locale.amount(Amount.of(row.balance, row.currency)),
    paymentLink: oneLine(row.payment_link ?? ''),
  };
}
