/**
 * The account statement by e-mail. After the books of a month close, it goes to each partner with `account_statement`
 * in partners.json, and to others if finance asks. Before that, it is preliminary, and the final one follows. Refusals:
 * partner_unknown, month_not_closed, usage (no month is named and no books are closed).
 */

import { createHash } from 'node:crypto';
import { todayOf } from '#config/today';
import { Transaction } from '#database/transaction';
import { Locale } from '#documents/locale';
import { bankDetails } from '#documents/present';
import { refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { fieldName } from '#field-names';
import { readClosedMonth, readLastClosedBooks } from '#ledger/closed-months.sql';
import { bankView } from '#mail/document-text';
import { EmailComposer, EmailSubject, oneLine, partnerLetter } from '#mail/email';
import { queueEmails } from '#mail/outbox.sql';
import { readPartners } from '#partners/partners.sql';
import { ActorContext, recordEvent } from '#people/audit-events';
import { AccountPayment, HowToPay } from '#reports/account-payment';
import {
  AccountStatement,
  CurrencyAccount,
  ofPartner,
  overdueOf,
  readAccountStatement,
} from '#reports/account-statement';
import { pdfOfStatement } from '#reports/account-statement-file';
import { BUCKETS } from '#reports/aging';
import { Amount, lastDay, Month, monthName } from '#values';
import { readDueStatements, readQueued, Statements } from './due.sql.ts';

/** Older ones are not mailed automatically, because a partner's setting may be new. */
const NEWS_FOR_DAYS = 7;

export const accountStatementEmail: EmailComposer = {
  kind: 'account_statement',
  queueDue,
  async compose(tx, email, context, templates) {
    const [partnerId, day] = [email.partner_id as string, email.day as string];
    const letter = await partnerLetter(tx, context, partnerId, 'statement');
    if (letter.held !== undefined) return letter;
    const { to, cc, locale, view } = letter;
    const statement = await readAccountStatement(tx, { partnerId, asOf: day, today: todayOf(context) });
    if (statement.accounts.length === 0) return { withdrawn: `the account has no activity up to ${day}` };
    const { preliminary } = statement;
    if (email.preliminary && !preliminary) {
      return { withdrawn: 'the books of the month are closed now, and the final statement is sent instead' };
    }
    const month = day.slice(0, 7) as Month;
    const filename = `account-statement-${month}${preliminary ? '-preliminary' : ''}.pdf`;
    const { pdf, pay } = await pdfOfStatement(tx, context, statement);
    const several = statement.accounts.length > 1;
    const accounts = statement.accounts.map((account) => ({
      ...accountView(statement, account, pay, locale),
      several,
    }));
    return {
      ...{ to, cc },
      content: templates.render('account_statement', {
        ...{ ...view, month: monthName(month), asOf: locale.date(day), preliminary },
        attachments: [{ filename, note: preliminary ? 'the preliminary account statement' : 'the account statement' }],
        accounts,
        anyDue: accounts.some(({ due }) => due),
        anyLink: pay.links.size > 0,
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

function accountView(statement: AccountStatement, account: CurrencyAccount, pay: HowToPay, locale: Locale) {
  const { currency, closing, unapplied } = account;
  const amount = (text: string) => locale.amount(Amount.of(text, currency));
  const balance = Amount.of(closing, currency);
  const credits = account.open_items.filter(({ document }) => document === 'credit_note');
  const credit = Amount.sum(currency, credits, (each) => Amount.of(each.balance, currency));
  const disputed = account.open_items.reduce(
    (sum, each) => sum.plus(Amount.of(each.disputed, currency)),
    Amount.zero(currency),
  );
  return {
    currency,
    balance: amount(closing),
    due: balance.isPositive(),
    overdue: balance.isPositive() && overdueOf(account).isPositive() ? locale.amount(overdueOf(account)) : '',
    favor: balance.isNegative() ? locale.amount(balance.negated()) : '',
    aging: BUCKETS.filter((name) => Number(account.aging[name]) !== 0).map((name) => ({
      label: BUCKET_LABELS[name],
      amount: amount(account.aging[name]),
    })),
    credit: credit.isZero() ? '' : locale.amount(credit.negated()),
    unapplied: Number(unapplied) === 0 ? '' : amount(`-${unapplied}`),
    disputed: disputed.isZero() ? '' : locale.amount(disputed),
    documents: account.open_items
      .filter(({ document }) => document === 'invoice')
      .map(({ partner_id, number, due_on, days_due, balance: open }) => ({
        number: number + oneLine(ofPartner(statement, partner_id)),
        dueOn: due_on === null ? '' : locale.date(due_on),
        overdue: (days_due ?? 0) > 0,
        amount: amount(open),
        paymentLink: oneLine(pay.links.get(number) ?? ''),
      })),
    ...payView(pay.accounts.find((each) => each.currency === currency)),
  };
}

function payView(way: AccountPayment | undefined) {
  const { ach, wire } = bankDetails(way?.instructions ?? null, oneLine);
  return {
    instructionsChanged: (way?.changed ?? false) && (ach !== null || wire !== null),
    ach: bankView(ach),
    wire: bankView(wire),
  };
}

async function queueDue(tx: Transaction, context: ActorContext) {
  const since = context.environment.now().minus({ days: NEWS_FOR_DAYS }).toISO();
  const due = await readDueStatements(tx, { since });
  const [first] = due;
  if (first === undefined) return;
  const partnerIds = due.map(({ partner_id }) => partner_id);
  await queueStatements(tx, context, { month: first.month, preliminary: false }, partnerIds);
}

/**
 * Queues the statements of a closed month, by default the latest with closed books, for one partner, or for all that
 * want statements. Returns the new e-mails, and those that an earlier run did not send. No partner gets a second
 * statement of the month.
 */
export async function sendStatements(
  tx: Transaction,
  context: ActorContext,
  request: Readonly<{ month?: Month | undefined; partnerId?: string | undefined }>,
): Promise<{ month: Month; preliminary: boolean; emails: EmailSubject[] }> {
  const books = await readLastClosedBooks(tx);
  const month = request.month ?? books;
  if (month === null) {
    throw refuse('usage', {
      reason: `no books are closed yet: name the month with ${fieldName('month')} for preliminary statements`,
    });
  }
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
  const statements = { month, preliminary: books === null || month > books };
  const queued = await readQueued(tx, statements);
  const fresh = ids.filter((id) => !queued.some(({ partner_id }) => partner_id === id));
  const unsent = queued.filter(({ partner_id, unsent }) => unsent && ids.includes(partner_id as string));
  const added = fresh.length === 0 ? [] : await queueStatements(tx, context, statements, fresh);
  return { ...statements, emails: [...unsent, ...added] };
}

async function queueStatements(
  tx: Transaction,
  { environment, settings, actor }: ActorContext,
  { month, preliminary }: Statements,
  partnerIds: readonly string[],
) {
  const now = environment.now().toISO();
  const day = lastDay(month);
  const details = { partners: partnerIds, ...(preliminary && { preliminary }) };
  const eventId = await recordEvent(tx, actor, { action: 'statement.send', subject: month, details, now });
  const emails = partnerIds.map((partner_id) => ({
    ...({ kind: 'account_statement', day, partner_id, preliminary } as const),
    name: `account-statement.${month}${preliminary ? '.preliminary' : ''}.${createHash('sha256').update(partner_id).digest('hex').slice(0, 16)}`,
  }));
  const queued = await queueEmails(tx, emails, { environment, settings }, eventId);
  failpoint('statement.queued');
  return queued;
}
