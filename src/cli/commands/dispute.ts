/** `reckoner dispute`. */

import { disputeClose, disputeJson, disputeOpen } from '../../acts/dispute.ts';
import { todayOf } from '../../config/today.ts';
import { isPaid, type OpenDispute, readOpenDisputes } from '../../documents/disputes.sql.ts';
import type { DisputeRequest } from '../../documents/disputes.ts';
import { Amount } from '../../money.ts';
import type { Sheet } from '../../sheet.ts';
import { plural } from '../../text.ts';
import { dateArgument, lineArgument } from '../arguments.ts';
import { type CommandContext, type Definition, REASON, reading } from '../define.ts';
import { amount, money, printable, table } from '../output.ts';
import { FORMAT, OUT, type PresentOptions, present } from '../present.ts';
import { doing } from '../run-act.ts';

export const define: Definition = (dispute, act) => {
  dispute
    .command('open <number>')
    .description('Record that the partner disputes an invoice; what is disputed is not dunned')
    .requiredOption(...REASON)
    .option('--amount <amount>', 'what is disputed (default: all that is open)')
    .option('--owner <name>', 'who works on it', lineArgument('--owner'))
    .option('--promised-on <date>', 'the date by which an answer is promised', dateArgument('--promised-on'))
    .action(
      act(doing(disputeOpen, (number: string, options: Omit<DisputeRequest, 'number'>) => ({ number, ...options }))),
    );
  dispute
    .command('close <number>')
    .description('End the dispute of an invoice; what is still open is dunned again')
    .requiredOption('--reason <reason>', 'how it ended; it is recorded', REASON[2])
    .action(act(doing(disputeClose, (number: string, options: { reason: string }) => ({ number, ...options }))));
  dispute
    .command('list')
    .description('List the open disputes of invoices, by promised date')
    .option(...FORMAT)
    .option(...OUT)
    .action(act(reading(disputeList)));
};

async function disputeList(context: CommandContext, options: PresentOptions): Promise<void> {
  const { database, output } = context;
  const today = todayOf(context);
  const disputes = await database.reading((tx) => readOpenDisputes(tx));
  await present(
    output,
    options,
    disputes.map(disputeJson),
    () => sheetOf(disputes, today),
    () => (disputes.length === 0 ? 'No invoice is in dispute.' : described(disputes, today)),
  );
}

const isLate = ({ promised_on }: OpenDispute, today: string): boolean => promised_on !== null && promised_on < today;

const sheetOf = (disputes: readonly OpenDispute[], today: string): Sheet => ({
  name: 'Disputes',
  columns: {
    number: 'text',
    partner_id: 'text',
    partner_name: 'text',
    currency: 'text',
    amount: 'amount',
    balance: 'amount',
    due_on: 'date',
    disputed_on: 'date',
    promised_on: 'date',
    late: 'text',
    owner: 'text',
    reason: 'text',
  },
  rows: disputes.map((each) => ({ ...disputeJson(each), late: isLate(each, today) ? 'late' : '' })),
});

function described(disputes: readonly OpenDispute[], today: string): string {
  const rows = disputes.map((each) => [
    each.number,
    printable(each.partner_name),
    amount(each.amount, each.currency),
    amount(each.balance, each.currency),
    each.currency,
    each.disputed_on,
    `${each.promised_on ?? ''}${isLate(each, today) ? ', late' : ''}`,
    printable(each.owner),
    printable(each.reason),
  ]);
  return [
    table(['invoice', '~partner', '>disputed', '>balance', '', 'since', 'promised', 'owner', '~reason'], rows),
    [
      `${plural(disputes.length, 'dispute')}: ${totalsOf(disputes)}.`,
      ...disputes
        .filter(isPaid)
        .map(
          ({ number }) =>
            `${number} is paid, still disputed: 'reckoner dispute close ${number} --reason REASON' ends it.`,
        ),
    ].join('\n'),
  ].join('\n\n');
}

/** `20.00 USD, 7.50 EUR`. */
function totalsOf(disputes: readonly OpenDispute[]): string {
  const currencies = [...new Set(disputes.map(({ currency }) => currency))].sort();
  const total = (currency: string) =>
    disputes
      .filter((each) => each.currency === currency)
      .reduce((sum, each) => sum.plus(Amount.of(each.amount, currency)), Amount.zero(currency));
  return currencies.map((currency) => money(total(currency).toString(), currency)).join(', ');
}
