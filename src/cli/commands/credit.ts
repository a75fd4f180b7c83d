/** `reckoner credit`: placing open credit on invoices, and paying it out. */
import { followBalance } from '../../acts/documents.ts';
import { applyCredit, type PlacedCredit, unapplyCredit } from '../../documents/place-credit.ts';
import { failpoint } from '../../failpoint.ts';
import { Amount } from '../../money.ts';
import { enteredLater } from '../../payments/context.ts';
import { refundCredit, returnRefund } from '../../payments/refund.ts';
import { choiceArgument, dateArgument, lineArgument } from '../arguments.ts';
import { acting, type CommandContext, type Definition, ON_LATEST_DATE } from '../define.ts';
import { money } from '../output.ts';
import { read } from './invoice/after.ts';

export const define: Definition = (credit, act) => {
  credit
    .command('apply <credit-note>')
    .description("Apply open credit to an open invoice of the partner, in the credit note's currency")
    .requiredOption('--invoice <number>', 'the invoice')
    .option('--amount <amount>', 'how much (default: as much as possible)')
    .option(...ON_LATEST_DATE)
    .action(act(acting(creditApply)));
  credit
    .command('unapply <credit-note>')
    .description('Take back the credit that is applied to an invoice')
    .requiredOption('--invoice <number>', 'the invoice')
    .option(...ON_LATEST_DATE)
    .action(act(acting(creditUnapply)));
  credit
    .command('refund <credit-note>')
    .description('Record that open credit was paid out to the partner')
    .option('--amount <amount>', 'how much (default: all open credit)')
    .option('--method <method>', 'ach, wire or other', choiceArgument('--method', ['ach', 'wire', 'other']), 'other')
    .option('--reference <reference>', "the bank's reference", '')
    .option('--on <date>', 'the date of the refund (default: today)', dateArgument('--on'))
    .option('--again', 'record it even if the same amount was refunded with that reference before')
    .option(
      '--returned <reason>',
      'the latest refund (of --amount) came back: reopen its credit',
      lineArgument('--returned'),
    )
    .action(act(acting(creditRefund)));
};

async function creditApply(
  context: CommandContext,
  creditNote: string,
  { invoice: number, amount }: { invoice: string; amount?: string },
): Promise<void> {
  const placed = await context.database.transaction((tx) => applyCredit(tx, context, { creditNote, number, amount }));
  failpoint('placement.committed');
  await showPlaced(context, placed, `of ${creditNote} is applied to ${number}`);
}

async function creditUnapply(
  context: CommandContext,
  creditNote: string,
  { invoice: number }: { invoice: string },
): Promise<void> {
  const taken = await context.database.transaction((tx) => unapplyCredit(tx, context, { creditNote, number }));
  failpoint('release.committed');
  await showPlaced(context, taken, `of ${creditNote} is taken back from ${number}`);
}

/** With what is left to pay on the invoice, and open of the credit note. */
async function showPlaced(context: CommandContext, placed: PlacedCredit, what: string): Promise<void> {
  await followBalance(context, placed.number);
  const invoice = await read(context, placed.number);
  const note = await read(context, placed.credit_note);
  const text = (amount: string) => Amount.of(amount, placed.currency).toString();
  const left = { invoice_balance: text(invoice.balance), open_credit: text(note.balance) };
  context.output.print(
    { ...placed, ...left },
    () =>
      `${money(placed.amount, placed.currency)} ${what}.\n` +
      `${money(invoice.balance, placed.currency)} is left to pay on ${placed.number}, ` +
      `and ${money(note.balance, placed.currency)} of ${placed.credit_note} is open credit.`,
  );
}

interface CreditRefundOptions {
  readonly amount?: string;
  readonly method: 'ach' | 'wire' | 'other';
  readonly reference: string;
  readonly on?: string;
  readonly again?: boolean;
  readonly returned?: string;
}

async function creditRefund(context: CommandContext, number: string, options: CreditRefundOptions): Promise<void> {
  const { database, output } = context;
  const { returned, ...request } = options;
  const refund = await database.transaction((tx) =>
    returned === undefined
      ? refundCredit(tx, context, { number, ...request })
      : returnRefund(tx, context, { number, reason: returned, amount: options.amount, on: options.on }),
  );
  const amount = Amount.of(refund.amount, refund.currency);
  const { balance, currency } = await read(context, number);
  const open = Amount.of(balance, currency);
  const json = { ...refund, amount: amount.toString(), open_credit: open.toString() };
  const left = open.isZero() ? 'The credit is used up.' : `${open.forPeople()} of it is still open.`;
  const later = enteredLater(refund.returned_on ?? refund.refunded_on, refund.entry_on);
  output.print({ ...json, returned: returned !== undefined }, () =>
    [
      returned === undefined
        ? `${amount.forPeople()} of ${number} was paid out to ${refund.partner_id}. ${left}`
        : `The refund of ${amount.forPeople()} was returned: ${open.forPeople()} of ${number} is open.`,
      ...(later === undefined ? [] : [later]),
    ].join('\n'),
  );
}
