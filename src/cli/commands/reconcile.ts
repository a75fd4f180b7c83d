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
import { reported } from '#cli/run-action';
import { partnersBlocks, payoutsBlocks } from '#reports/reconciliation';
import { reconciliationSheet } from '#reports/sheets';
import { NamedQuote } from '#splits/reconcile.sql';
import {
  NotBillable,
  needsWork,
  Reconciliation,
  ReconciliationException,
  reconcileMonth,
} from '#splits/reconcile-month';
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
  const described = () =>
    [
      ...(reversals === undefined ? [] : [reversals.text]),
      ...(invoices === undefined ? [] : [invoices.text]),
      describedReconciliation(found, billable.length),
    ].join('\n\n');
  await present(context, 'reconcile', options, report, () => reconciliationSheet(month, found.exceptions), described);
  return found.open > 0 ? EXIT.attention : EXIT.done;
}

/** --json has all exceptions. */
const SHOWN = 40;

function describedReconciliation(found: Reconciliation, billable: number) {
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
  const choices = exceptions.filter((each) => each.status === 'unknown').slice(0, SHOWN);
  if (choices.length > 0)
    sections.push(choices.flatMap((each) => wrapped(describedUnknown(each), 80, '  ')).join('\n'));
  const elsewhere = exceptions.filter((each) => each.other_accounts.length > 0).slice(0, SHOWN);
  if (elsewhere.length > 0)
    sections.push(elsewhere.flatMap((each) => wrapped(describedOtherAccount(each), 80, '  ')).join('\n'));
  const payouts = payoutsBlocks(found, SHOWN);
  if (payouts.length > 0) sections.push(blocksText(payouts, outputWidth()));
  sections.push(
    open === 0
      ? `${month} is reconciled: nothing is open.`
      : `${open} open, by days: ${AGES.map((age) => `${age}: ${aging[age]}`).join(', ')}.`,
  );
  if (billable > 0) sections.push(`'reckoner reconcile ${month} --bill-missing' bills ${billable} of them.`);
  if (not_billable.length > 0) {
    const shown = new Set(choices.flatMap((each) => each.balance_transactions));
    const told = not_billable.slice(0, SHOWN).flatMap((each) => wrapped(describedNotBillable(each, shown), 80, '  '));
    sections.push(`Not billed until finance decides:\n${told.join('\n')}`);
  }
  return sections.join('\n\n');
}

/** In the table. Unmatched money has its own id, because its quote may have a separate line. */
const nameOf = ({ partner_id, quote_id, account, balance_transactions }: ReconciliationException) =>
  `${account === null ? quote_id : printable(balance_transactions[0] ?? '')} of ${partner_id ?? 'an unknown partner'}`;

const describedOtherAccount = ({ quote_id, partner_id, other_accounts }: ReconciliationException) =>
  `${quote_id} of ${partner_id}: received on ${other_accounts.join(', ')}, which is not the account that it was accepted under.`;

/** Two commands for unmatched money: one if it is the quote's share, and one if it is not. */
function decisions(
  id: string,
  quote: { quote_id: string; partner_id?: string | undefined },
  flags: MatchFlags,
  lead = "If it is that quote's share, use",
) {
  const options = [
    printable(quote.quote_id),
    ...(quote.partner_id === undefined ? [] : [`--partner ${quote.partner_id}`]),
    ...(flags.otherAccount ? ['--other-account'] : []),
    ...(flags.converts ? ['--counts-as AMOUNT'] : []),
  ];
  return (
    `${lead} 'reckoner processor match ${printable(id)} --quote ${options.join(' ')} --reason R', else ` +
    `'reckoner processor close ${printable(id)} --reason R'.`
  );
}

type MatchFlags = Readonly<{
  otherAccount: boolean;
  /** True if the quote and the money are in different currencies. */
  converts: boolean;
}>;

function describedNotBillable(each: NotBillable, shown: ReadonlySet<string>) {
  const { partner_id, quote_id, currency, amount, balance_transactions } = each;
  const named = balance_transactions.map(({ id, account }) => `${printable(id)} on ${account}`).join(', ');
  // The exceptions above already name the commands for those in `shown`.
  const other = balance_transactions.find(({ id }) => !shown.has(id));
  const decide =
    other === undefined
      ? ''
      : ` ${decisions(other.id, each, { otherAccount: !other.own_account, converts: other.currency !== currency })}`;
  return `${quote_id} of ${partner_id}, ${money(amount, currency)}: ${named} names it.${decide}`;
}

function describedUnknown(exception: ReconciliationException) {
  const { balance_transactions, account, currency, routed, sent, quote_id, named, candidates } = exception;
  const quotes = candidates.map((each) => `${each.quote_id} of ${each.partner_id}`);
  const amount = sent === null ? '' : ` (sent as ${money(sent.amount, sent.currency)})`;
  const moved = `${printable(balance_transactions[0] ?? '')} on ${account ?? '?'}: ${money(routed, currency)}${amount}`;
  if (quote_id !== null) {
    const names = `${moved} names quote ${printable(quote_id)}, which`;
    if (named.length === 0) return `${names} is not in the ledger yet.`;
    return named.map((each) => `${names} ${whyUnmatched(exception, each, quote_id)}`).join(' ');
  }
  const id = balance_transactions[0] ?? '';
  const [first] = candidates;
  const open = quotes.length === 0 ? '' : `The same amount is open on ${quotes.join(', ')}. `;
  const quote = candidates.length === 1 && first !== undefined ? first.quote_id : 'QUOTE';
  return (
    `${moved} matches no quote. ${open}` +
    decisions(
      id,
      { quote_id: quote },
      { otherAccount: false, converts: false },
      'Ask the partner. If it is the share of a quote, use',
    )
  );
}

/** Why a balance transaction is not matched to the quote that it refers to, with the commands that resolve this. */
function whyUnmatched(exception: ReconciliationException, quote: NamedQuote, quoteId: string) {
  const { account, currency, sent, named, balance_transactions } = exception;
  const { partner_id, is_routed, own_account, invoice } = quote;
  const id = balance_transactions[0] ?? '';
  if (!is_routed) {
    const where = invoice === null ? 'is invoiced with its month' : `is already on invoice ${invoice}`;
    return (
      `belongs to ${partner_id} and ${where}. If ${exception.partner_id ?? 'its sender'} reverses the transfer, this ` +
      'resolves itself. If the money stays, ' +
      `settle it with ${partner_id} and use 'reckoner processor close ${printable(id)} --reason R'.`
    );
  }
  const flags = { otherAccount: !own_account, converts: quote.currency !== (sent?.currency ?? currency) };
  const why = [
    ...(flags.otherAccount ? [`belongs to ${partner_id}, whose account is not ${account}`] : []),
    ...(flags.converts ? [`is in ${quote.currency}`] : []),
  ];
  const because = why.length === 0 ? 'is not fully explained by it' : why.join(' and ');
  const partner = named.length > 1 ? partner_id : undefined;
  return `${because}. ${decisions(id, { quote_id: quoteId, partner_id: partner }, flags)}`;
}
