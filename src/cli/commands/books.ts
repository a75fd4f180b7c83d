/** `reckoner books close`. */
import { DateTime } from 'luxon';
import { runCloseBooks } from '../../close/books.ts';
import { EXIT, refuse } from '../../errors/refusals.ts';
import { groupThousands } from '../../money.ts';
import { lastDay, type Month, monthName } from '../../month.ts';
import { type BooksReport, readBooksReport } from '../../reports/books.ts';
import { plural } from '../../text.ts';
import { monthArgument, repeatedArgument } from '../arguments.ts';
import { acting, type CommandContext, type Definition, type DeliverOption, NO_DELIVER, REASON } from '../define.ts';
import { table } from '../output.ts';
import { describeTrialBalance } from './report/trial-balance.ts';

export const define: Definition = (books, act) => {
  books
    .command('close')
    .argument('<month>', 'YYYY-MM, closed for billing', monthArgument('month'))
    .description('Close the books of a month: nothing is dated in it any more, and its balances are sealed')
    .option('--without <account>', 'a bank account that reports no more; repeatable', repeatedArgument)
    .option(...REASON)
    .option('--dry-run', 'show what is missing and the balances, and write nothing')
    .option(...NO_DELIVER)
    .action(act(acting(closeBooks)));
};

export interface BooksCloseOptions extends DeliverOption {
  readonly without?: readonly string[];
  readonly reason?: string;
  readonly dryRun?: boolean;
}

async function closeBooks(context: CommandContext, month: Month, options: BooksCloseOptions): Promise<number> {
  const { database, output } = context;
  const { without: accounts, reason, dryRun = false, deliver } = options;
  if ((accounts === undefined) !== (reason === undefined)) {
    throw refuse('usage', { reason: '--without ACCOUNT and --reason R go together' });
  }
  const request = { month, ...(accounts && reason !== undefined && { without: { accounts, reason } }) };
  let [unsent, now] = [false, false];
  if (!dryRun) {
    now = await runCloseBooks(database, context, request);
    if (deliver) unsent = await sendNews(context);
  }
  const report = await database.reading((tx) => readBooksReport(tx, context, request));
  output.print({ ...report, dry_run: dryRun }, () =>
    describeBooks(report, { dryRun, title: titleOf(report, now, context.settings.time_zone) }),
  );
  return report.obstacles.length > 0 || unsent ? EXIT.attention : EXIT.done;
}

/** The seal to the auditor and the account statements. Says whether one of them needs attention. */
async function sendNews(context: CommandContext): Promise<boolean> {
  const { withProgress } = await import('../deliveries.ts');
  const { sendEmails } = await import('../../month-end/month-end.ts');
  let [sent, unsent] = [0, false];
  await withProgress(context.output, (reporter) =>
    sendEmails(context, {
      onEmail(result) {
        if (result.status === 'sent') sent += 1;
        if (['held', 'failed', 'uncertain'].includes(result.status)) unsent = true;
        // A partner without an account gets no statement.
        if (result.status !== 'withdrawn') reporter.onEmail?.(result);
      },
    }),
  );
  if (sent > 0) context.output.note(`Sent ${plural(sent, 'e-mail')}.`);
  return unsent;
}

function titleOf({ month, closed_at: closedAt }: BooksReport, now: boolean, zone: string): string {
  const books = `The books of ${monthName(month)}`;
  if (closedAt === null) return `${books} are open.`;
  if (now) return `${books} are closed.`;
  const closedOn = DateTime.fromISO(closedAt, { zone }).toISODate();
  return `${books} are closed. They were already closed on ${closedOn};\nnothing was changed.`;
}

function describeBooks(report: BooksReport, { dryRun, title }: { dryRun: boolean; title: string }): string {
  const { status, seal, obstacles } = report;
  const refused = obstacles.map(({ message }) => `- ${message}`).join('\n');
  return [
    title,
    facts(report),
    describeTrialBalance(report.trial_balance),
    ...(seal === null ? [] : [`Seal ${seal}`]),
    ...(status === 'closed' || !dryRun
      ? []
      : [refused === '' ? 'Nothing keeps them from closing.' : `They cannot be closed yet:\n${refused}`]),
    ...(dryRun ? ['Preview only: nothing was written.'] : []),
  ].join('\n\n');
}

/** Nothing where no file states balances. */
function describeBalances({ month, bank_balances: balances }: BooksReport): string[] {
  if (balances.length === 0) return [];
  const before = balances.filter((each) => Number(each.before_first_statement) !== 0);
  return [
    '',
    table(
      [`at ${lastDay(month)}`, '>by the bank', '>assets:bank', '>difference', ''],
      balances.map((each) => [
        each.account,
        ...[each.bank, each.books, each.difference].map(groupThousands),
        each.currency,
      ]),
    ),
    ...before.map(
      (each) =>
        `${groupThousands(each.before_first_statement)} ${each.currency} was on ${each.account} before its first statement.`,
    ),
    '',
  ];
}

function facts(report: BooksReport): string {
  const { month, bank_feeds, exceptions, unapplied } = report;
  const open = Object.values(exceptions).reduce((sum, count) => sum + count, 0);
  const cash = unapplied.map(({ currency, amount }) => `${groupThousands(amount)} ${currency}`).join(', ');
  const feeds = bank_feeds.map(({ account, reported_to, balances_stated, complete, ended }) => [
    account,
    reported_to,
    complete ? 'complete' : ended === null ? 'MISSING' : `ended: ${ended}`,
    balances_stated ? 'stated' : 'none',
  ]);
  return [
    bank_feeds.length === 0
      ? 'No bank account has reported.'
      : table(['bank account', 'reported to', 'to the end', 'balances'], feeds),
    ...(bank_feeds.every(({ balances_stated }) => balances_stated)
      ? []
      : ['A missing file is not noticed where the files state no balances.']),
    ...describeBalances(report),
    `Exceptions to ${lastDay(month)}: ${open === 0 ? 'none' : `${plural(open, 'exception')}; 'reckoner payment exceptions' lists them`}.`,
    `Unapplied cash: ${cash === '' ? 'none' : cash}.`,
  ].join('\n');
}
