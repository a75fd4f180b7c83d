/** The e-mail of a reminder: all that the partner owes when it is sent. Paid or held meanwhile, it is withdrawn. */
import { todayOf } from '../config/today.ts';
import { query, type Transaction } from '../database/transaction.ts';
import { localeOf } from '../documents/locale.ts';
import type { EmailComposer } from '../mail/email.ts';
import { issuerView } from '../mail/issuer-view.ts';
import { oneLine } from '../mail/text.ts';
import { Amount } from '../money.ts';
import { daysApart, monthName } from '../month.ts';
import { type OwedRow, readOwed } from './remind.ts';

export const reminderEmail: EmailComposer = {
  kind: 'reminder',
  async compose(tx, email, context, templates) {
    const { environment, settings } = context;
    const partnerId = email.partner_id as string;
    const day = todayOf(context);
    const owed = (await readOwed(tx, { day, steps: [], partnerId })).filter((row) => row.because === null);
    const reached = new Set(await readReminded(tx, email.email_id));
    if (!owed.some((row) => reached.has(row.document_id))) {
      return { withdrawn: 'what it was to remind of is paid, void, held or disputed by now' };
    }
    const partner = await readContact(tx, partnerId);
    if (partner.contact_email === '') return { held: `partner ${partnerId} has no invoicing contact's e-mail address` };
    const credits = await readOpenCredits(tx, partnerId);
    return {
      to: { name: partner.contact_name, address: partner.contact_email },
      cc: partner.contact_cc,
      content: templates.render('reminder', {
        sandbox: environment.name === 'sandbox',
        issuer: issuerView(settings.issuer),
        contactName: oneLine(partner.contact_name),
        partner: { name: oneLine(partner.name) },
        // For the closing, which it shares with the e-mails of documents.
        ...{ attachments: [], rowsOmitted: false, paymentLink: '' },
        ...viewOf(owed, credits, day, localeOf(partner.address_country)),
      }),
      attachments: [],
    };
  },
};

type Locale = ReturnType<typeof localeOf>;
type Credit = Awaited<ReturnType<typeof readOpenCredits>>[number];

function viewOf(owed: readonly OwedRow[], credits: readonly Credit[], day: string, locale: Locale) {
  const overdue = owed.filter((row) => row.due_on < day);
  const currencies = [...new Set(owed.map((row) => row.currency))].sort();
  const total = (rows: readonly OwedRow[], currency: string) =>
    rows
      .filter((row) => row.currency === currency)
      .reduce((sum, row) => sum.plus(Amount.of(row.balance, currency)), Amount.zero(currency));
  return {
    overdue: overdue.length > 0,
    total: currencies.map((currency) => locale.amount(total(owed, currency))).join(' and '),
    asOf: locale.date(day),
    currencies: currencies.map((currency) => ({
      currency,
      total: locale.amount(total(owed, currency)),
      overdue: total(overdue, currency).isZero() ? '' : locale.amount(total(overdue, currency)),
      documents: owed.filter((row) => row.currency === currency).map((row) => documentView(row, day, locale)),
      credits: credits
        .filter((each) => each.currency === currency)
        .map(({ number, amount }) => ({
          creditNote: number ?? '',
          amount: locale.amount(Amount.of(amount, currency)),
        })),
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

// --- Queries --------------------------------------------------------------------------------------------------------------

/** The documents whose steps an e-mail was recorded for. */
async function readReminded(tx: Transaction, emailId: number): Promise<number[]> {
  const rows = await query<{ document_id: number }>(tx, `SELECT document_id FROM reminders WHERE email_id = :emailId`, {
    emailId,
  });
  return rows.map((row) => row.document_id);
}

async function readContact(
  tx: Transaction,
  partnerId: string,
): Promise<{
  name: string;
  contact_name: string;
  contact_email: string;
  contact_cc: string[];
  address_country: string;
}> {
  const rows = await query<{
    name: string;
    contact_name: string;
    contact_email: string;
    contact_cc: string[];
    address_country: string;
  }>(
    tx,
    `SELECT name, contact_name, contact_email, contact_cc, address_country FROM partners WHERE partner_id = :partnerId`,
    { partnerId },
  );
  const [row] = rows;
  if (row === undefined) throw new Error(`there is no partner ${partnerId} to remind`);
  return row;
}

/** Open credit notes, and unapplied cash without a number: shown beside what is owed, and not deducted from it. */
function readOpenCredits(
  tx: Transaction,
  partnerId: string,
): Promise<{ currency: string; number: string | null; amount: string }[]> {
  return query(
    tx,
    `SELECT currency, number, balance AS amount FROM open_credit WHERE partner_id = :partnerId
     UNION ALL
     SELECT currency, NULL, sum(unapplied) FROM payment_balances
     WHERE partner_id = :partnerId AND unapplied > 0 GROUP BY currency
     ORDER BY currency, number NULLS LAST`,
    { partnerId },
  );
}
