import { Transaction } from '#database/transaction';
import { Amount, groupThousands } from '#money';
import { BOOKING_KINDS, bookBankLine, lineName, unbookBankLine } from '#payments/bank-booking';
import { BookableLine, readBookableLine } from '#payments/bank-booking.sql';
import { choice, defineAction, Facts, Report, reason, text, whole } from './action.ts';

export const BANK_LINE = (help = 'The line, as listed by bank list.') => whole('Bank line', help);

const OF_LINE = {
  role: 'finance',
  subject: ({ bankLineId }: { bankLineId: number }) => String(bankLineId),
  partners: async () => 'all' as const,
  async facts(tx: Transaction, { bankLineId }: { bankLineId: number }): Promise<Facts> {
    const line = await readBookableLine(tx, { bankLineId });
    if (line === undefined) return {};
    const { account, amount, currency, booked_to } = line;
    return { [lineName(bankLineId)]: { account, amount: Amount.of(amount, currency), 'booked to': booked_to } };
  },
  amounts: (_seen: unknown, _input: unknown, line: BookableLine) => [Amount.of(line.amount, line.currency)],
} as const;

export const bankBook = defineAction({
  ...OF_LINE,
  name: 'bank.book',
  title: "Book a bank line that is not a customer's money",
  command: {
    summary: "Book a bank line that is not a customer's money, such as bank charges",
    arguments: { bankLineId: '<line>' },
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
  report: async ({ result }) => reportBooked(result, `is booked to ${result.booked_to}`),
});

export const bankUnbook = defineAction({
  ...OF_LINE,
  name: 'bank.unbook',
  title: 'Take back the booking of a bank line',
  command: { arguments: { bankLineId: '<line>' } },
  input: { bankLineId: BANK_LINE(), reason: reason() },
  perform: unbookBankLine,
  report: async ({ result }) => reportBooked(result, 'is no longer booked'),
});

const reportBooked = ({ booking: _, ...line }: BookableLine, what: string): Report => ({
  json: line,
  text:
    `${groupThousands(line.amount)} ${line.currency} of ${line.booked_on} on account ${line.account} ` +
    `(${lineName(line.bank_line_id)}) ${what}.`,
});
