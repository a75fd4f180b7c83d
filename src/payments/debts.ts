/**
 * The debts as dunning sees them: open invoices, each with the reason not to dun it now, if any.
 *
 * Dunning levels wait until the bank has reported the working day before the run: the debt may be paid since the level
 * fell due. Any bank account with files of the currency may have been paid, so every one counts, unless it no longer
 * reports.
 */
import { readReported, Without } from '#close/books';
import { Settings } from '#config/settings';
import { Transaction } from '#database/transaction';
import { Amount, workingDaysFrom } from '#values';
import { OwedRow, readOwed, SkipReason } from './remind.sql.ts';
import { isSmallDifference } from './small-difference.ts';

export type Debt = OwedRow &
  Readonly<{
    /** The bank accounts for whose files its dunning level waits. */
    waits_for: readonly Readonly<{ account: string; reported_to: string }>[];
  }>;

type DebtsQuestion = Readonly<{
  settings: Settings;
  day: string;
  /** The payer of the family whose debts are read. The default is all debts. */
  partnerId?: string;
  without?: Without | undefined;
}>;

/** The accounts whose files are waited for. Runs up to the day `known_to` do not wait. */
export async function readKnownAccounts(tx: Transaction, settings: Settings, without?: Without) {
  const ended = [...Object.keys(settings.ended_bank_accounts), ...(without?.accounts ?? [])];
  const accounts = await readReported(tx, without);
  return accounts
    .filter(({ account }) => !ended.includes(account))
    .map((each) => ({ ...each, known_to: workingDaysFrom(each.reported_to, 1) }));
}

export async function readDebts(tx: Transaction, question: DebtsQuestion): Promise<Debt[]> {
  const { settings, day, partnerId = null } = question;
  const behind = (await readKnownAccounts(tx, settings, question.without)).filter(({ known_to }) => known_to < day);
  const awaited = behind.flatMap(({ currencies }) => currencies);
  const { reminders: levels, time_zone: timeZone } = settings;
  return (await readOwed(tx, { day, timeZone, levels, awaited, partnerId })).map((row) => {
    const skip_reason = row.skip_reason ?? reasonNow(row, settings);
    const files = behind.filter(({ currencies }) => currencies.includes(row.currency));
    const waits_for = files.map(({ account, reported_to }) => ({ account, reported_to }));
    return { ...row, skip_reason, waits_for: skip_reason === 'awaits_bank_file' ? waits_for : [] };
  });
}

/** What the partner is asked to pay of the invoice. */
export const dunned = ({ balance, disputed, currency }: OwedRow) =>
  Amount.of(balance, currency).minus(Amount.of(disputed, currency));

function reasonNow(row: OwedRow, { small_difference }: Settings): SkipReason | null {
  const isSmall = isSmallDifference(small_difference, dunned(row), Amount.of(row.gross, row.currency));
  if (isSmall && Number(row.amount_paid) > 0) return 'bank_charges';
  return row.paused_until !== null ? 'paused' : row.waits_since !== null ? 'awaits_bank_file' : null;
}

/** What credit and cash leave to pay of these invoices in a currency. */
export const leftToPay = (rows: readonly OwedRow[], currency: string) =>
  rows.reduce(
    (sum, row) => (row.currency === currency ? sum.plus(Amount.of(row.left_to_pay ?? '0', currency)) : sum),
    Amount.zero(currency),
  );

/** Whether these invoices reach the smallest sum of a reminder in one of their currencies. */
export const isWorthALetter = (rows: readonly OwedRow[], { reminder_minimum: least }: Settings) =>
  rows.some(
    ({ currency }) => !leftToPay(rows, currency).isLessThan(Amount.of(least[currency] ?? least['*'] ?? '0', currency)),
  );
