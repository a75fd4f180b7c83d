import { defineAction, reason, text } from '#actions/action';
import { Transaction } from '#database/transaction';
import { closeException } from '#payments/exceptions';
import { readExceptions } from '#payments/exceptions.sql';
import { printable } from '#text-table';

export const paymentCloseException = defineAction({
  name: 'payment.close_exception',
  title: 'Close an exception that needs no action, or a possible duplicate that is a separate payment',
  command: { arguments: { exception: '<exception>' } },
  role: 'finance',
  input: { exception: text('Exception', "The exception's name in the list, such as line-7."), reason: reason() },
  subject: ({ exception }) => exception,
  async partners(tx, { exception }) {
    const partner = (await exceptionNamed(tx, exception))?.partner_id;
    return typeof partner === 'string' ? [partner] : 'all';
  },
  perform: closeException,
  facts: async (tx, { exception }) => ({
    [exception]: { status: (await exceptionNamed(tx, exception)) === undefined ? 'closed' : 'open' },
  }),
  report: async ({ input: { exception, reason }, result: closed }) => ({
    json: { ...closed, closed: reason },
    text: `${exception} is closed: ${printable(reason)}`,
  }),
});

const exceptionNamed = async (tx: Transaction, exception: string) =>
  (await readExceptions(tx)).find((each) => each.exception === exception);
