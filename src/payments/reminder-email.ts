/**
 * The e-mail of a reminder: all open items of the partner and of those that it pays for, at the time of sending, with
 * invoices attached. The dunning level of the reminder determines the tone. Only documents that have reached this level
 * are demanded. The e-mail is withdrawn if no document is left to demand.
 */

import { DateTime } from 'luxon';
import { todayOf } from '#config/today';
import { Transaction } from '#database/transaction';
import { Locale } from '#documents/locale';
import { EmailComposer, oneLine, partnerLetter } from '#mail/email';
import { Amount, daysApart, monthName } from '#values';
import { Debt, dunned, leftToPay, readDebts } from './debts.ts';
import { OpenCredit, OwedRow, readOpenCredits, readPdfsToAttach, readReminded } from './remind.sql.ts';
import { skippedOf, whySkipped } from './remind.ts';

/** Overdue documents come first. The payment pages have all documents. */
const MOST_ATTACHED = 10;

/** `notice`: no document is overdue. The other tones escalate from the first level after the due date to the last. */
type Tone = 'notice' | 'first' | 'firm' | 'final';

/**
 * Returns the tone of a dunning level. `levels` are all levels of the settings. A single level after the due date is
 * not final.
 */
export function toneOf(level: number, levels: readonly number[]): Tone {
  if (level <= 0) return 'notice';
  const after = [...new Set(levels.filter((each) => each > 0))].sort((a, b) => a - b);
  if (level <= (after[0] ?? level)) return 'first';
  return level >= (after.at(-1) ?? level) ? 'final' : 'firm';
}

export const reminderEmail: EmailComposer = {
  kind: 'reminder',
  async compose(tx, email, context, templates) {
    const { settings } = context;
    const partnerId = email.partner_id as string;
    const day = todayOf(context);
    const rows = await readDebts(tx, { settings, day, partnerId });
    const reminded = await readReminded(tx, email.email_id);
    const open = rows.filter((row) => row.skip_reason === null);
    const levels = open.flatMap((row) => reminded.get(row.document_id) ?? []);
    if (levels.length === 0) {
      const owed = rows.filter((row) => reminded.has(row.document_id));
      const why = new Set(owed.flatMap(skippedOf).map(whySkipped));
      if (owed.length < reminded.size || reminded.size === 0) why.add('paid or void');
      return { withdrawn: `no document of it is demanded now: ${[...why].join('; ')}` };
    }
    const letter = await partnerLetter(tx, context, partnerId, 'reminder');
    if (letter.held !== undefined) return letter;
    const { to, cc, locale, view } = letter;
    const isFamily = open.some((row) => row.partner_id !== partnerId);
    // Debts covered by credit are listed together with the credit, so that the totals match the partner's account. A
    // credit note is only for invoices of its own partner, so a family's credit is stated as one sum.
    const owed = isFamily
      ? open
      : rows.filter((row) => row.skip_reason === null || row.skip_reason === 'covered_by_credit');
    const toConfirm = rows.filter((row) => row.skip_reason === 'payment_to_confirm');
    const credits = isFamily ? creditsOf(open) : withoutCashFor(toConfirm, await readOpenCredits(tx, { partnerId }));
    const attachments = await readAttachments(tx, owed, day);
    const level = Math.max(...levels);
    const tone = toneOf(level, settings.reminders);
    return {
      ...{ to, cc },
      content: templates.render('reminder', {
        ...{ ...view, isFamily },
        attachments: attachments.map(({ filename }) => ({ filename, note: 'the invoice as issued' })),
        ...{ firm: tone === 'firm', final: tone === 'final' },
        ...viewOf(
          owed,
          credits,
          {
            day,
            noticeTo: noticeTo(day, settings.reminders),
            demandsFrom: tone === 'firm' || tone === 'final' ? level : undefined,
          },
          locale,
        ),
      }),
      attachments,
    };
  },
};

async function readAttachments(tx: Transaction, owed: readonly OwedRow[], day: string) {
  const overdueFirst = [...owed.filter((row) => row.due_on < day), ...owed.filter((row) => row.due_on >= day)];
  const ids = overdueFirst.slice(0, MOST_ATTACHED).map((row) => row.document_id);
  const pdfs = await readPdfsToAttach(tx, { documentIds: ids });
  return pdfs.map(({ number, pdf }) => ({ filename: `${number}.pdf`, contentType: 'application/pdf', content: pdf }));
}

const total = (rows: readonly OwedRow[], currency: string) =>
  rows.filter((row) => row.currency === currency).reduce((sum, row) => sum.plus(dunned(row)), Amount.zero(currency));

/** What the credit and cash of a family take off its debts, by currency. */
const creditsOf = (open: readonly Debt[]) =>
  [...new Set(open.map((row) => row.currency))].flatMap((currency) => {
    const amount = total(open, currency).minus(leftToPay(open, currency));
    return amount.isZero() ? [] : [{ currency, number: null, amount: amount.toString() }];
  });

function withoutCashFor(toConfirm: readonly OwedRow[], credits: readonly OpenCredit[]) {
  return credits.flatMap((each) => {
    if (each.number !== null) return [each];
    const left = Amount.of(each.amount, each.currency).minus(total(toConfirm, each.currency));
    return left.isPositive() ? [{ ...each, amount: left.toString() }] : [];
  });
}

/**
 * The last due date in the notice period of a reminder sent on this day. The earliest level before the due date sets
 * the length of the period.
 */
const noticeTo = (day: string, levels: readonly number[]) =>
  DateTime.fromISO(day, { zone: 'utc' })
    .plus({ days: Math.max(0, ...levels.map((level) => -level)) })
    .toFormat('yyyy-MM-dd');

function viewOf(
  owed: readonly OwedRow[],
  credits: readonly OpenCredit[],
  {
    day,
    noticeTo,
    demandsFrom = Number.NEGATIVE_INFINITY,
  }: { day: string; noticeTo: string; demandsFrom?: number | undefined },
  locale: Locale,
) {
  const overdue = owed.filter((row) => row.skip_reason === null && row.due_on < day);
  const demanded = overdue.filter((row) => demandsFrom < 0 || (row.reminded_level ?? 0) >= demandsFrom);
  const demandsPart = demanded.length < overdue.length;
  const currencies = [...new Set(owed.map((row) => row.currency))].sort();
  const open = (currency: string) => credits.filter((each) => each.currency === currency);
  const netOf = (currency: string) =>
    open(currency).reduce((net, { amount }) => net.minus(Amount.of(amount, currency)), total(owed, currency));
  /** Returns the total of these documents, but at most the net amount due. */
  const leftOf = (rows: readonly OwedRow[]) => (currency: string) => {
    const [sum, net] = [total(rows, currency), netOf(currency)];
    return net.isLessThan(sum) ? net : sum;
  };
  /**
   * `soonOf`: the documents that are due in the notice period. The amount due later is the remainder of the net amount
   * due.
   */
  const soonOf = leftOf(owed.filter((row) => row.skip_reason === null && row.due_on <= noticeTo));
  const named = (amountOf: (currency: string) => Amount) =>
    currencies
      .map(amountOf)
      .filter((each) => each.isPositive())
      .map((each) => locale.amount(each))
      .join(' and ');
  return {
    overdue: overdue.length > 0,
    total: named(netOf),
    overdueTotal: named(leftOf(overdue)),
    demandedTotal: named(leftOf(demanded)),
    demandsPart,
    dueSoon: named(soonOf) || named(netOf),
    dueLater: named(soonOf) === '' ? '' : named((currency) => netOf(currency).minus(soonOf(currency))),
    asOf: locale.date(day),
    // Invoices of the previous system may have outdated bank details.
    detailsOnPages: owed.some((row) => row.carried_issued_on !== null && row.payment_link !== null),
    currencies: currencies.map((currency) => ({
      currency,
      total: locale.amount(total(owed, currency)),
      overdue: total(overdue, currency).isZero() ? '' : locale.amount(total(overdue, currency)),
      documents: owed
        .filter((row) => row.currency === currency)
        .map((row) => ({ ...documentView(row, day, locale), demanded: demandsPart && demanded.includes(row) })),
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
  const amount = (text: string) => Amount.of(text, row.currency);
  const paid = amount(row.amount_paid);
  const credited = amount(row.gross).minus(amount(row.balance)).minus(paid);
  const disputed = amount(row.disputed);
  return {
    number: row.number,
    partnerName: oneLine(row.partner_name),
    month: row.carried_issued_on === null ? monthName(row.month) : '',
    carriedIssuedOn: row.carried_issued_on === null ? '' : locale.date(row.carried_issued_on),
    dueOn: locale.date(row.due_on),
    overdue: row.due_on < day,
    dueToday: days === 0,
    days: String(days),
    oneDay: days === 1,
    amount: locale.amount(dunned(row)),
    // The amount demanded is the original amount, less the paid, credited and disputed amounts.
    original: [paid, credited, disputed].every((each) => each.isZero()) ? '' : locale.amount(amount(row.gross)),
    paid: paid.isZero() ? '' : locale.amount(paid),
    credited: credited.isZero() ? '' : locale.amount(credited),
    disputed: disputed.isZero() ? '' : locale.amount(disputed),
    returned:
      row.returned_payment_on === null || row.returned_on === null
        ? ''
        : `your payment of ${locale.date(row.returned_payment_on)} was returned by the bank on ${locale.date(row.returned_on)}`,
    paymentLink: oneLine(row.payment_link ?? ''),
  };
}
