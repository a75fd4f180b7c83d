import { Amount, groupThousands } from '#money';
import { BOOKING_KINDS, bookBankLine, lineName, unbookBankLine } from '#payments/bank-booking';
import { BookableLine, readBookableLines } from '#payments/bank-booking.sql';
import { toDo } from '#remedy';
import { choice, Report, reason, text, whole } from './action.ts';
import { eachOf } from './each.ts';

export const BANK_LINE = (help = 'The line, as listed by bank list.') => whole('Bank line', help);

/** Defines an action on bank lines. */
const onLines = eachOf({
  ...{ field: 'bankLineId', one: 'bank line', nameOf: lineName },
  partners: async () => 'all',
  async facts(tx, bankLineIds) {
    const lines = await readBookableLines(tx, { bankLineIds });
    return Object.fromEntries(
      lines.map(({ bank_line_id, account, amount, currency, booked_to }) => [
        lineName(bank_line_id),
        { account, amount: Amount.of(amount, currency), 'booked to': booked_to },
      ]),
    );
  },
});

const amountOf = (_seen: unknown, _input: unknown, { amount, currency }: BookableLine) => [Amount.of(amount, currency)];

export const bankBook = onLines({
  role: 'finance',
  name: 'bank.book',
  said: ['is booked', 'are booked'],
  title: "Book a bank line that is not a customer's money",
  command: {
    summary: "Book a bank line that is not a customer's money, such as bank charges",
    arguments: { bankLineId: '<line...>' },
    options: { kind: '--as <kind>' },
    help: `Without --account, charges are booked to expenses:bank-charges, interest to
income:interest or expenses:interest, and a transfer between our own accounts to
assets:transfers. If the line is booked already, the booking is replaced.`,
  },
  input: {
    bankLineId: BANK_LINE(),
    kind: choice('As', 'What the money is. Other needs an account.', BOOKING_KINDS),
    account: text('Account', 'The general-ledger account, such as expenses:payroll.').optional(),
    reason: reason(),
  },
  perform: bookBankLine,
  amounts: amountOf,
  report: async ({ input: { bankLineId }, result }) => ({
    ...reportBooked(result, `is booked to ${result.booked_to}`),
    remedies: [toDo('Undo', 'bank.unbook', { bankLineId: String(bankLineId) })],
  }),
});

export const bankUnbook = onLines({
  role: 'finance',
  name: 'bank.unbook',
  said: ['is unbooked', 'are unbooked'],
  title: 'Take back the booking of a bank line',
  command: { arguments: { bankLineId: '<line...>' } },
  input: { bankLineId: BANK_LINE(), reason: reason() },
  perform: unbookBankLine,
  amounts: amountOf,
  report: async ({ result }) => reportBooked(result, 'is no longer booked'),
});

const reportBooked = ({ booking: _, ...line }: BookableLine, what: string): Report => ({
  json: line,
  text:
    `${groupThousands(line.amount)} ${line.currency} of ${line.booked_on} on account ${line.account} ` +
    `(${lineName(line.bank_line_id)}) ${what}.`,
});
