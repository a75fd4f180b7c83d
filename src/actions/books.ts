import { DateTime } from 'luxon';
import { Block } from '#blocks';
import { BooksRequest, closeBooks } from '#close/books';
import { CONTROL_ACCOUNTS } from '#config/accounts';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { fieldName } from '#field-names';
import { factsOf as sizeOf } from '#log/text';
import { BooksReport, readBooksReport } from '#reports/books';
import { trialBlocks } from '#reports/trial-balance';
import { Amount, groupThousands, lastDay, Month, monthName, plural } from '#values';
import { ActionContext, defineAction, line, month, Report, several, text } from './action.ts';
import { needsAttention, sendDue } from './emails.ts';
import { remediesJson } from './remedies.ts';

type BooksInput = Readonly<{
  month: Month;
  without?: readonly string[] | undefined;
  reason?: string | undefined;
}>;

export const booksClose = defineAction({
  name: 'books.close',
  command: { arguments: { month: '<month>' }, options: { without: '--without <account>' } },
  title: 'Close the books of a month',
  danger: true,
  role: 'finance',
  input: {
    month: month('Month', 'A month that is closed for billing.'),
    without: several(text('Without', 'A bank account that no longer reports.')).optional(),
    reason: line('Reason', 'The reason why that account no longer reports. It is recorded.').optional(),
  },
  check: checkWithout,
  subject: ({ month }) => month,
  perform: (tx, context, input) => closeBooks(tx, context, requestOf(input)),
  committed: () => failpoint('books.committed'),
  /** Sends the letters to the auditor, and the account statements. A partner without an account gets no statement. */
  after({ reporter, ...context }) {
    const { onEmail } = reporter;
    const told: typeof onEmail = (result) => {
      if (result.status !== 'withdrawn') onEmail?.(result);
    };
    return sendDue({ ...context, reporter: { ...reporter, onEmail: told } });
  },
  async facts(tx, input, _closed, context) {
    const { status, checkpoint } = await readBooksReport(tx, context, requestOf(input));
    return { [`the books of ${input.month}`]: { status, checkpoint: checkpoint === null ? 'no' : 'yes' } };
  },
  async report({ input, result: now, followed: emails = [] }, context, tx) {
    const report = await reportBooks(tx, context, input, { dryRun: false, now });
    const sent = emails.filter(({ status }) => status === 'sent').length;
    return {
      ...report,
      notes: sent > 0 ? [`Sent ${plural(sent, 'e-mail')}.`] : [],
      attention: report.attention || emails.some(needsAttention),
    };
  },
});

const requestOf = ({ month, without: accounts, reason }: BooksInput): BooksRequest => ({
  month,
  ...(accounts && reason !== undefined && { without: { accounts, reason } }),
});

export function checkWithout({ without, reason }: Omit<BooksInput, 'month'>) {
  if ((without === undefined) !== (reason === undefined)) {
    throw refuse('usage', { reason: `${fieldName('without', 'ACCOUNT')} and ${fieldName('reason', 'R')} go together` });
  }
}

/** Reports the books. If the books cannot be closed, the action is refused, but a dry run lists every obstacle. */
export async function reportBooks(
  tx: Transaction,
  context: ActionContext,
  input: BooksInput,
  { dryRun, now }: { dryRun: boolean; now: boolean },
): Promise<Report & { attention: boolean }> {
  const report = await readBooksReport(tx, context, requestOf(input));
  return {
    json: { ...report, obstacles: await Promise.all(report.obstacles.map(inJson)), dry_run: dryRun },
    text: titleOf(report, now, context.settings.time_zone),
    blocks: blocksOf(report, dryRun),
    button: `Close the books of ${monthName(input.month)}`,
    remedies: report.obstacles.flatMap(({ remedies }) => remedies),
    attention: report.obstacles.length > 0,
  };
}

const inJson = async (obstacle: BooksReport['obstacles'][number]) => ({
  ...obstacle,
  remedies: await remediesJson(obstacle.remedies),
});

function titleOf({ month, closed_at: closedAt }: BooksReport, now: boolean, zone: string) {
  const books = `The books of ${monthName(month)}`;
  if (closedAt === null) return `${books} are open.`;
  if (now) return `${books} are closed.`;
  const closedOn = DateTime.fromISO(closedAt, { zone }).toISODate();
  return `${books} are closed. They were already closed on ${closedOn};\nnothing was changed.`;
}

function blocksOf(report: BooksReport, dryRun: boolean): Block[] {
  const { month, status, checkpoint, obstacles, bank_feeds: feeds, trial_balance: trial } = report;
  return [
    ...(status === 'closed' || !dryRun
      ? []
      : [
          obstacles.length === 0
            ? { title: 'Ready', lines: ['Nothing prevents closing the books.'] }
            : {
                title: 'The books cannot be closed yet',
                tone: 'warn' as const,
                lines: obstacles.map(({ message }) => message),
              },
        ]),
    { title: `At ${lastDay(month)}`, facts: factsOf(report) },
    ...(feeds.length === 0 ? [] : [feedsBlock(report)]),
    ...balancesBlock(report),
    ...trialBlocks(trial).map(({ table, ...block }) => ({ ...block, table: named(table) })),
    ...(checkpoint === null
      ? []
      : [
          {
            title: 'Checkpoint',
            folded: true as const,
            facts: [['size', sizeOf(checkpoint)] as const, ['root', checkpoint.root] as const],
          },
        ]),
  ];
}

/** With the names of the control accounts instead of their paths. */
const named = ({ rows, ...table }: ReturnType<typeof trialBlocks>[number]['table']) => ({
  ...table,
  rows: rows.map(([account = '', ...amounts]) => [CONTROL_ACCOUNTS[account] ?? account, ...amounts]),
});

function factsOf({ bank_feeds, exceptions, unapplied }: BooksReport): [string, string][] {
  const open = Object.values(exceptions).reduce((sum, count) => sum + count, 0);
  const cash = unapplied.map(({ currency, amount }) => `${groupThousands(amount)} ${currency}`).join(', ');
  return [
    ['exceptions', open === 0 ? 'none' : plural(open, 'exception')],
    ['unapplied cash', cash === '' ? 'none' : cash],
    ...(bank_feeds.length === 0 ? [['bank', 'no account has reported'] as [string, string]] : []),
  ];
}

const feedsBlock = ({ bank_feeds: feeds }: BooksReport): Block => ({
  title: 'Bank accounts',
  lines: feeds.every(({ balances_stated }) => balances_stated)
    ? []
    : ['If the files state no balances, a missing file cannot be detected.'],
  tone: 'warn',
  table: {
    headings: ['bank account', 'reported to', 'to the end', 'balances'],
    rows: feeds.map(({ account, reported_to, balances_stated, complete, ended }) => [
      account,
      reported_to,
      complete ? 'complete' : ended === null ? 'MISSING' : `ended: ${ended}`,
      balances_stated ? 'stated' : 'none',
    ]),
  },
});

/** None if no file states balances. */
function balancesBlock({ month, bank_balances: balances }: BooksReport): Block[] {
  if (balances.length === 0) return [];
  const reasons = balances.flatMap((each) =>
    (
      [
        [each.before_first_statement, 'was there before its first statement'],
        [each.not_in_books, 'is on its statements, but not in the books'],
        [each.in_transit, 'is in the books, but on no statement yet'],
        [each.withdrawn, 'is in the books, but on a statement that the bank withdrew'],
        [each.unexplained, 'is explained by no line: a file may be missing'],
      ] as const
    ).flatMap(([amount, why]) =>
      Number(amount) === 0 ? [] : [`${groupThousands(amount)} ${each.currency} of ${each.account} ${why}.`],
    ),
  );
  return [
    {
      ...{ title: `Balances at ${lastDay(month)}`, lines: reasons },
      ...(reasons.length > 0 && { tone: 'warn' }),
      table: {
        headings: ['bank account', '>by the bank', '>in the books', '>difference'],
        rows: balances.map(({ account, bank, books, difference, currency }) => [
          account,
          ...[bank, books, difference].map((each) => Amount.of(each, currency)),
        ]),
      },
    },
  ];
}
