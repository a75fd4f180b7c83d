/** `reckoner dispute`. */

import { todayOf } from '../../config/today.ts';
import { isPaid, type OpenDispute, readOpenDisputes } from '../../documents/disputes.sql.ts';
import { closeDispute, type DisputeRequest, openDispute } from '../../documents/disputes.ts';
import { failpoint } from '../../failpoint.ts';
import { Amount } from '../../money.ts';
import type { Sheet } from '../../sheet.ts';
import { plural } from '../../text.ts';
import { dateArgument, lineArgument } from '../arguments.ts';
import { acting, type CommandContext, type Definition, REASON, reading } from '../define.ts';
import { amount, money, printable, table } from '../output.ts';
import { FORMAT, OUT, type PresentOptions, present } from '../present.ts';

export const define: Definition = (dispute, act) => {
  dispute
    .command('open <number>')
    .description('Record that the partner disputes an invoice; what is disputed is not dunned')
    .requiredOption(...REASON)
    .option('--amount <amount>', 'what is disputed (default: all that is open)')
    .option('--owner <name>', 'who works on it', lineArgument('--owner'))
    .option('--promised-on <date>', 'the date by which an answer is promised', dateArgument('--promised-on'))
    .action(act(acting(disputeOpen)));
  dispute
    .command('close <number>')
    .description('End the dispute of an invoice; what is still open is dunned again')
    .requiredOption('--reason <reason>', 'how it ended; it is recorded', REASON[2])
    .action(act(acting(disputeClose)));
  dispute
    .command('list')
    .description('List the open disputes of invoices, by promised date')
    .option(...FORMAT)
    .option(...OUT)
    .action(act(reading(disputeList)));
};

async function disputeOpen(
  context: CommandContext,
  number: string,
  options: Omit<DisputeRequest, 'number'>,
): Promise<void> {
  const { database, output } = context;
  const [dispute] = await database.transaction(async (tx) => {
    await openDispute(tx, context, { ...options, number });
    return readOpenDisputes(tx, { number });
  });
  failpoint('dispute.committed');
  const opened = dispute as OpenDispute;
  output.print(
    disputeJson(opened),
    () =>
      `${number} is in dispute: ${disputeText(opened)}.\nClose it with 'reckoner dispute close ${number} --reason REASON'.`,
  );
}

async function disputeClose(context: CommandContext, number: string, { reason }: { reason: string }): Promise<void> {
  const { database, output } = context;
  await database.transaction((tx) => closeDispute(tx, context, { number, reason }));
  failpoint('dispute_closing.committed');
  output.print({ number, dispute: null, reason }, () => `The dispute of ${number} is closed: ${printable(reason)}.`);
}

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

/** `USD 20.00, EUR 7.50`. */
function totalsOf(disputes: readonly OpenDispute[]): string {
  const currencies = [...new Set(disputes.map(({ currency }) => currency))].sort();
  const total = (currency: string) =>
    disputes
      .filter((each) => each.currency === currency)
      .reduce((sum, each) => sum.plus(Amount.of(each.amount, currency)), Amount.zero(currency));
  return currencies.map((currency) => money(total(currency).toString(), currency)).join(', ');
}

export const disputeJson = (dispute: OpenDispute) => ({
  ...dispute,
  balance: Amount.of(dispute.balance, dispute.currency).toString(),
  amount: Amount.of(dispute.amount, dispute.currency).toString(),
});

/** `120.00 USD since 2026-09-03, wrong count; owner Ada; promised for 2026-09-20`. */
export const disputeText = ({
  amount: disputed,
  currency,
  disputed_on,
  reason,
  owner,
  promised_on,
}: OpenDispute): string =>
  [
    `${money(disputed, currency)} since ${disputed_on}, ${printable(reason)}`,
    ...(owner === '' ? [] : [`owner ${printable(owner)}`]),
    ...(promised_on === null ? [] : [`promised for ${promised_on}`]),
  ].join('; ');
