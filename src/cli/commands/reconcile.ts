import { billMissing } from '#actions/processor/bill';
import { reconcileReverse } from '#actions/processor/reverse';
import { blocksText } from '#blocks';
import {
  acting,
  CommandContext,
  checkPresentable,
  Definition,
  DeliverOption,
  EXIT,
  FORMAT,
  money,
  monthArgument,
  NO_DELIVER,
  OUT,
  outputWidth,
  PresentOptions,
  present,
  printable,
  readingNow,
  table,
  wrapped,
} from '#cli/command';
import { withCommands } from '#cli/remedies';
import { reported } from '#cli/run-action';
import { Remedy } from '#remedy';
import { decisions, explained, partnersBlocks, payoutsBlocks } from '#reports/reconciliation';
import { reconciliationSheet } from '#reports/sheets';
import { needsWork, Reconciliation, ReconciliationException, reconcileMonth } from '#splits/reconcile-month';
import { AGES } from '#splits/verdicts';
import { Month } from '#values';

export const define: Definition = (command, action) => {
  command
    .argument('<month>', 'YYYY-MM', monthArgument('month'))
    .option('--reverse', 'record reversed transfers as reversals in the ledger, if the price is known')
    .option('--bill-missing', 'issue invoices for transfers that never arrived')
    .option(...NO_DELIVER)
    .option(...FORMAT)
    .option(...OUT)
    .action(
      action((output, month: Month, options: ReconcileOptions) =>
        (options.reverse || options.billMissing ? acting : readingNow)(reconcile)(output, month, options),
      ),
    );
};

type ReconcileOptions = PresentOptions &
  DeliverOption &
  Readonly<{
    billMissing?: boolean;
    reverse?: boolean;
  }>;

async function reconcile(context: CommandContext, month: Month, options: ReconcileOptions) {
  const { database, environment, settings, output } = context;
  checkPresentable(output, options);
  const reversals = options.reverse ? await reported(context, reconcileReverse, { month }) : undefined;
  const invoices = options.billMissing ? await reported(context, billMissing, { month }, options) : undefined;
  const { billable, ...found } = await database.reading((tx) =>
    reconcileMonth(tx, { settings, now: environment.now() }, month),
  );
  const report = {
    ...found,
    billable: billable.length,
    ...(reversals === undefined ? {} : { reversals: reversals.json }),
    ...(invoices === undefined ? {} : { invoices: invoices.json }),
  };
  const done = [reversals?.text, invoices?.text].filter((text) => text !== undefined);
  const text = [...done, await describedReconciliation(found, billable.length)].join('\n\n');
  const sheet = () => reconciliationSheet(month, found.exceptions);
  await present(context, 'reconcile', options, report, sheet, () => text);
  return found.open > 0 ? EXIT.attention : EXIT.done;
}

/** --json has all exceptions. */
const SHOWN = 40;

async function describedReconciliation(found: Reconciliation, billable: number) {
  const { month, partners, exceptions, aging, not_billable, open } = found;
  if (partners.length === 0 && exceptions.length === 0) {
    return `${month}: no partner with a connected account has rows, and every balance transaction is matched.`;
  }
  const sections = partners.length === 0 ? [] : [blocksText(partnersBlocks(found), outputWidth())];
  if (exceptions.length > 0) {
    const rows = [...exceptions]
      .sort((one, other) => Number(needsWork(other)) - Number(needsWork(one)))
      .slice(0, SHOWN)
      .map((each) => [each.status, nameOf(each), each.currency, each.open, each.age_days]);
    sections.push(table(['status', '~quote', 'cur', '>open', '>days'], rows));
    if (exceptions.length > SHOWN) sections.push(`… and ${exceptions.length - SHOWN} more.`);
  }
  const told = exceptions.flatMap((each) => explained(each).map((why) => ({ ...why, subject: subjectOf(each) })));
  for (const { subject, text, remedies } of told.slice(0, SHOWN))
    sections.push(await inLines(`${subject} ${text}.`, remedies));
  const payouts = payoutsBlocks(found, SHOWN);
  if (payouts.length > 0) sections.push(blocksText(payouts, outputWidth()));
  sections.push(
    open === 0
      ? `${month} is reconciled: nothing is open.`
      : `${open} open, by days: ${AGES.map((age) => `${age}: ${aging[age]}`).join(', ')}.`,
  );
  if (billable > 0) sections.push(`'reckoner reconcile ${month} --bill-missing' bills ${billable} of them.`);
  for (const each of not_billable.slice(0, SHOWN)) {
    const { partner_id, quote_id, currency, amount: sum, balance_transactions: naming } = each;
    const ids = naming.map(({ id, account }) => `${id} on ${account}`).join(', ');
    const sentence = `Not billed until finance decides: ${quote_id} of ${partner_id}, ${money(sum, currency)}: ${ids} names it.`;
    const remedies = naming.slice(0, 1).flatMap((one) => decisions(one, { partner_id, quote_id, ...one }));
    sections.push(await inLines(sentence, remedies));
  }
  return sections.join('\n\n');
}

const inLines = async (sentence: string, remedies: readonly Remedy[]) =>
  wrapped(printable(await withCommands(sentence, remedies)), 80, '  ').join('\n');

/** In the table. Unmatched money has its own id, because its quote may have a separate line. */
const nameOf = ({ partner_id, quote_id, account, balance_transactions }: ReconciliationException) =>
  `${account === null ? quote_id : printable(balance_transactions[0] ?? '')} of ${partner_id ?? 'an unknown partner'}`;

const subjectOf = ({
  account,
  balance_transactions,
  routed,
  currency,
  quote_id,
  partner_id,
}: ReconciliationException) =>
  account === null
    ? `${quote_id} of ${partner_id}:`
    : `${balance_transactions[0]} on ${account}: ${money(routed, currency)}`;
