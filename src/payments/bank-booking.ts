/**
 * Books bank lines that are not customers' money: bank charges, interest, transfers between our accounts. A booking can
 * be replaced and taken back. Refusals: argument_invalid.
 */
import { Transaction } from '#database/transaction';
import { refuseField } from '#errors/refusals';
import { fieldName } from '#field-names';
import { Amount } from '#money';
import { toDo, toRun } from '#remedy';
import { BookableLine, insertBookings, readBookableLines } from './bank-booking.sql.ts';
import { Caller, lockPayments, openPaymentContext } from './context.ts';

export const BOOKING_KINDS = ['charges', 'interest', 'transfer', 'other'] as const;

export type BookRequest = Readonly<{
  bankLineId: number;
  kind: (typeof BOOKING_KINDS)[number];
  /** The general-ledger account. The kind `other` has no default account. */
  account?: string | undefined;
  reason: string;
}>;

/** Between the two lines of a transfer, the money is in this account. */
const TRANSFERS = 'assets:transfers';
export const BANK_CHARGES = 'expenses:bank-charges';

export const lineName = (bankLineId: number) => `bank line ${bankLineId}`;

/** The accounts to which money that is not a customer's may be booked (SQL function is_bookable). */
const LEDGER_ACCOUNT = /^(assets|liabilities|equity|income|expenses)(:[a-z0-9][a-z0-9-]*)+$/;
const MOVED_BY_OTHERS =
  /^(assets:(receivable|bank|processor)|liabilities:(partner-credit|unapplied|tax)|equity:opening-balances|income:(sales|adjustments)|expenses:(partner-cut|bad-debts|processor-fees))(:|$)/;

export function refuseUnbookable(account = ''): asserts account {
  if (!LEDGER_ACCOUNT.test(account)) {
    throw refuseField(
      'account',
      account,
      `must be an account of the general ledger such as income:interest, and goes with ${fieldName('kind', 'other')}`,
    );
  }
  if (MOVED_BY_OTHERS.test(account))
    throw refuseField('account', account, 'is moved by invoices and payments: name another account');
}

export async function bookBankLine(
  tx: Transaction,
  caller: Caller,
  { bankLineId, kind, account, reason }: BookRequest,
): Promise<BookableLine> {
  await lockPayments(tx);
  const line = await lineOf(tx, bankLineId);
  if (line.state !== 'unbooked' && line.state !== 'booked') throw notBookable(line);
  const interest = line.amount.startsWith('-') ? 'expenses:interest' : 'income:interest';
  const usual = { charges: BANK_CHARGES, interest, transfer: TRANSFERS, other: undefined }[kind];
  const bookedTo = account ?? usual;
  refuseUnbookable(bookedTo);
  if (bookedTo === line.booked_to) throw refuseField('account', bookedTo, `is where ${lineName(bankLineId)} is booked`);
  return record(tx, caller, { line, action: 'bank.book', bookedTo, reason });
}

export async function unbookBankLine(
  tx: Transaction,
  caller: Caller,
  { bankLineId, reason }: Pick<BookRequest, 'bankLineId' | 'reason'>,
): Promise<BookableLine> {
  await lockPayments(tx);
  const line = await lineOf(tx, bankLineId);
  if (line.state !== 'booked') throw refuseField('bankLineId', bankLineId, 'is not booked', [SEE_LINES]);
  return record(tx, caller, { line, action: 'bank.unbook', reason });
}

async function record(
  tx: Transaction,
  caller: Caller,
  { line, action, bookedTo, reason }: { line: BookableLine; action: string; bookedTo?: string; reason: string },
) {
  const { bank_line_id, booking, booked_to } = line;
  const context = await openPaymentContext(tx, caller, {
    ...{ action, subject: String(bank_line_id) },
    details: { ...(bookedTo !== undefined && { account: bookedTo }), reason: reason.trim(), was: booked_to },
  });
  await insertBookings(tx, context, [
    { bank_line_id, previous: booking, booked_to: bookedTo ?? null, reason: reason.trim(), later: booking !== null },
  ]);
  return lineOf(tx, bank_line_id);
}

const SEE_LINES = toRun('See all bank lines', 'bank list', '/console/payments/lines');

async function lineOf(tx: Transaction, bankLineId: number) {
  const [line] = await readBookableLines(tx, { bankLineIds: [bankLineId] });
  if (line === undefined) throw refuseField('bankLineId', bankLineId, 'is not a bank line', [SEE_LINES]);
  return line;
}

type OpenLine = Readonly<{
  amount: Amount;
  booked_on: string;
}>;

/** Returns a bank line that the books do not have yet. Refuses any other line. */
export async function openLine(
  tx: Transaction,
  bankLineId: number,
  direction: 'credit' | 'debit',
  currency: string,
): Promise<OpenLine> {
  const line = await lineOf(tx, bankLineId);
  if (line.state !== 'unbooked') throw notBookable(line);
  const signed = Amount.of(line.amount, line.currency);
  if (signed.isNegative() !== (direction === 'debit') || line.currency !== currency) {
    throw refuseField('bankLineId', bankLineId, `is not a ${direction} in ${currency}`, [SEE_LINES]);
  }
  return { amount: direction === 'debit' ? signed.negated() : signed, booked_on: line.booked_on };
}

function notBookable({ bank_line_id, state, payment_id }: BookableLine) {
  const paymentId = String(payment_id);
  return refuseField(
    'bankLineId',
    bank_line_id,
    payment_id === null
      ? `is in the books already, as ${state === 'booked' ? '' : 'a '}${state}`
      : `reports payment ${paymentId}`,
    payment_id === null
      ? [SEE_LINES]
      : [toDo('Reverse it', 'payment.reverse', { paymentId, kind: 'other' }, "if it is not a customer's")],
  );
}
