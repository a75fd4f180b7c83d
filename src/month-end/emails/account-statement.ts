/**
 * The account statement by e-mail: after a month has closed to each partner that asks for one (`account_statement` in
 * partners.json), or when finance asks. Refusals: partner_unknown, month_not_closed.
 */
import { createHash } from 'node:crypto';
import { todayOf } from '../../config/today.ts';
import { query, type Transaction } from '../../database/transaction.ts';
import { mailDomain } from '../../documents/issue/context.ts';
import { type Locale, localeOf } from '../../documents/locale.ts';
import { fontsFor } from '../../documents/printable.ts';
import { refuse } from '../../errors/refusals.ts';
import { readClosedMonth, readLastClosed } from '../../ledger/closed-months.ts';
import type { EmailComposer, EmailContext, EmailSubject } from '../../mail/email.ts';
import { issuerView } from '../../mail/issuer-view.ts';
import { queueEmails } from '../../mail/queries.ts';
import { oneLine } from '../../mail/text.ts';
import { Amount } from '../../money.ts';
import { type Month, monthInterval, monthName } from '../../month.ts';
import { readPartners } from '../../partners/queries.ts';
import { recordEvent } from '../../people/audit-events.ts';
import { type CurrencyAccount, readAccountStatement } from '../../reports/account-statement.ts';
import { renderAccountStatement, textsOfStatement } from '../../reports/account-statement-pdf.ts';
import { BUCKETS } from '../../reports/aging.ts';

/** Months that were closed longer ago are not mailed by themselves: somebody may have asked for statements just now. */
const NEWS_FOR_DAYS = 7;

export const accountStatementEmail: EmailComposer = {
  kind: 'account_statement',
  queueDue,
  async compose(tx, email, context, templates) {
    const { environment, settings } = context;
    const [partnerId, day] = [email.partner_id as string, email.day as string];
    const [partner] = await readPartners(tx, partnerId);
    if (partner === undefined) throw new Error(`no partner ${partnerId} to send a statement to`);
    const { name, email: address, cc } = partner.invoicing_contact;
    if (address === '') return { held: `partner ${partnerId} has no invoicing contact's e-mail address` };
    const statement = await readAccountStatement(tx, { partnerId, asOf: day, today: todayOf(context) });
    if (statement.accounts.length === 0) return { withdrawn: 'there was never anything on this account' };
    const month = day.slice(0, 7) as Month;
    const locale = localeOf(partner.address.country);
    const sandbox = environment.name === 'sandbox';
    const filename = `account-statement-${month}.pdf`;
    const request = { statement, issuer: settings.issuer, sandbox };
    const fonts = fontsFor(environment, 'The account statement', textsOfStatement(request));
    const pdf = await renderAccountStatement({ ...request, fonts });
    return {
      to: { name, address },
      cc,
      content: templates.render('account_statement', {
        sandbox,
        issuer: issuerView(settings.issuer),
        contactName: oneLine(name),
        partner: { name: oneLine(partner.name) },
        ...{ month: monthName(month), asOf: locale.date(day), rowsOmitted: false, paymentLink: '' },
        attachments: [{ filename, note: 'the account statement' }],
        accounts: statement.accounts.map((account) => accountView(account, locale)),
      }),
      attachments: [{ filename, contentType: 'application/pdf', content: pdf }],
    };
  },
};

const BUCKET_LABELS = {
  not_due: 'Current',
  days_1_30: '1–30 days overdue',
  days_31_60: '31–60 days overdue',
  days_61_90: '61–90 days overdue',
  over_90: 'More than 90 days overdue',
} as const;

function accountView(account: CurrencyAccount, locale: Locale) {
  const { currency, closing, unapplied } = account;
  const amount = (text: string) => locale.amount(Amount.of(text, currency));
  const balance = Amount.of(closing, currency);
  const credits = account.open_items.filter(({ document }) => document === 'credit_note');
  const credit = credits.reduce((sum, each) => sum.plus(Amount.of(each.balance, currency)), Amount.zero(currency));
  const disputed = account.open_items.reduce(
    (sum, each) => sum.plus(Amount.of(each.disputed, currency)),
    Amount.zero(currency),
  );
  return {
    currency,
    balance: amount(closing),
    due: balance.isPositive(),
    opening: amount(account.opening),
    aging: BUCKETS.filter((name) => Number(account.aging[name]) !== 0).map((name) => ({
      label: BUCKET_LABELS[name],
      amount: amount(account.aging[name]),
    })),
    credit: credit.isZero() ? '' : locale.amount(credit.negated()),
    unapplied: Number(unapplied) === 0 ? '' : amount(`-${unapplied}`),
    disputed: disputed.isZero() ? '' : locale.amount(disputed),
    documents: account.open_items
      .filter(({ document }) => document === 'invoice')
      .map(({ number, due_on, days_due, balance: open }) => ({
        number,
        dueOn: due_on === null ? '' : locale.date(due_on),
        overdue: (days_due ?? 0) > 0,
        amount: amount(open),
      })),
  };
}

/** The partners that want a statement of the month that was closed last, if that was lately. */
async function queueDue(tx: Transaction, context: EmailContext): Promise<void> {
  const since = context.environment.now().minus({ days: NEWS_FOR_DAYS }).toISO();
  const due = await query<{ month: Month; partner_id: string }>(
    tx,
    `SELECT m.month, p.partner_id
     FROM closed_months m CROSS JOIN partners p
     WHERE m.closed_at >= :since::timestamptz AND m.month = (SELECT max(month) FROM closed_months)
       AND p.account_statement = 'monthly' AND p.inactive_since IS NULL
       AND NOT EXISTS (
         SELECT FROM emails e
         WHERE e.kind = 'account_statement' AND e.partner_id = p.partner_id
           AND e.day = ((m.month || '-01')::date + interval '1 month' - interval '1 day')::date)
     ORDER BY p.partner_id`,
    { since },
  );
  const [first] = due;
  if (first === undefined) return;
  await queueStatements(
    tx,
    context,
    first.month,
    due.map(({ partner_id }) => partner_id),
  );
}

/**
 * Queues the statements of a closed month, for one partner or for all that ask for one. Gives the e-mails that are new: a
 * partner that has one of this month keeps that.
 */
export async function sendStatements(
  tx: Transaction,
  context: EmailContext,
  request: { readonly month?: Month | undefined; readonly partnerId?: string | undefined },
): Promise<{ month: Month; emails: EmailSubject[] }> {
  const month = request.month ?? (await readLastClosed(tx));
  if (month === null) throw refuse('month_not_closed', { month: todayOf(context).slice(0, 7) });
  if ((await readClosedMonth(tx, month)) === undefined) throw refuse('month_not_closed', { month });
  const partners = await readPartners(tx, request.partnerId);
  if (request.partnerId !== undefined && partners.length === 0) {
    throw refuse('partner_unknown', { partner_id: request.partnerId });
  }
  const ids = partners
    .filter(
      ({ account_statement, active }) => request.partnerId !== undefined || (active && account_statement === 'monthly'),
    )
    .map(({ partner_id }) => partner_id);
  return { month, emails: ids.length === 0 ? [] : await queueStatements(tx, context, month, ids) };
}

async function queueStatements(
  tx: Transaction,
  { environment, settings, actor }: EmailContext,
  month: Month,
  partnerIds: readonly string[],
): Promise<EmailSubject[]> {
  const now = environment.now().toISO();
  const day = monthInterval(month, 'utc').endsAt.minus({ days: 1 }).toISODate() as string;
  const details = { partners: partnerIds };
  const eventId = await recordEvent(tx, actor, { action: 'statement.send', subject: month, details, now });
  const emails = partnerIds.map((partner_id) => ({
    ...({ kind: 'account_statement', day, partner_id } as const),
    name: `account-statement.${month}.${createHash('sha256').update(partner_id).digest('hex').slice(0, 16)}`,
  }));
  return queueEmails(tx, emails, { now, eventId, mailDomain: mailDomain(settings) });
}
