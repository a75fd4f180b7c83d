/** `reckoner report aging|statement|trial-balance|close|coverage`. */
import { todayOf } from '../../documents/issue/issue.ts';
import { EXIT, refuse } from '../../errors/refusals.ts';
import { groupThousands } from '../../money.ts';
import { dateName, type Month } from '../../month.ts';
import { type Aging, type AgingRow, BUCKETS, readAging } from '../../reports/aging.ts';
import { readCloseReport } from '../../reports/close.ts';
import { type Coverage, readCoverage } from '../../reports/coverage.ts';
import { drawStatement } from '../../reports/draw-statement.ts';
import {
  type AccountStatement,
  type MovementName,
  movementName,
  readStatement,
  type Statement,
  type StatementLine,
} from '../../reports/statement.ts';
import { readTrialBalance, type TrialBalance } from '../../reports/trial-balance.ts';
import { reading } from '../context.ts';
import { csv } from '../csv.ts';
import { type Output, printable, short, table, writeFileAsked } from '../output.ts';
import { describeClose } from './close-report.ts';

export interface ReportOptions {
  readonly asOf?: string;
  readonly format?: 'csv';
}

/** As JSON, as CSV or for people. */
function present(
  output: Output,
  { format }: ReportOptions,
  value: unknown,
  table: () => readonly [columns: readonly string[], rows: readonly Readonly<Record<string, string | number | null>>[]],
  people: () => string,
): void {
  if (format === undefined) output.print(value, people);
  else if (output.json) throw refuse('usage', { reason: '--json and --format csv cannot both be printed' });
  else process.stdout.write(csv(...table()));
}

// --- Ageing ---------------------------------------------------------------------------------------------------------------

const HEADINGS = {
  not_due: 'not due',
  days_1_30: '1-30',
  days_31_60: '31-60',
  days_61_90: '61-90',
  over_90: 'over 90',
};

export async function reportAging(output: Output, options: ReportOptions): Promise<number> {
  return reading(async (context) => {
    const aging = await context.database.reading((tx) =>
      readAging(tx, { asOf: options.asOf, today: todayOf(context) }),
    );
    const columns = ['partner_id', 'currency', ...BUCKETS, 'open', 'credit', 'unapplied'];
    present(
      output,
      options,
      aging,
      () => [columns, aging.partners.map((row) => ({ ...row }))],
      () => describeAging(aging),
    );
    if (!aging.ties) output.note(differencesOf(aging).join('\n'));
    return aging.ties ? EXIT.done : EXIT.attention;
  });
}

function describeAging(aging: Aging): string {
  const parts = [`What partners owe on ${dateName(aging.as_of)}, by days since it was due`];
  for (const total of aging.totals) {
    const own = aging.partners.filter((row) => row.currency === total.currency);
    const amounts = (row: Pick<AgingRow, (typeof BUCKETS)[number]>) => BUCKETS.map((name) => groupThousands(row[name]));
    const owing = own.filter((row) => BUCKETS.some((name) => Number(row[name]) !== 0));
    const width = nameWidth([...owing, total].map(amounts));
    parts.push(
      table(
        [total.currency, ...BUCKETS.map((name) => `>${HEADINGS[name]}`)],
        [...owing.map((row) => [short(named(row), width), ...amounts(row)]), ['total', ...amounts(total)]],
      ),
    );
    const beside = own.filter((row) => Number(row.credit) !== 0 || Number(row.unapplied) !== 0);
    const columns = (row: Pick<AgingRow, 'open' | 'credit' | 'unapplied'>) =>
      [row.open, row.credit, row.unapplied].map(groupThousands);
    parts.push(
      table(
        [total.currency, '>open invoices', '>open credit', '>unapplied cash'],
        [...beside.map((row) => [short(named(row), 20), ...columns(row)]), ['total', ...columns(total)]],
      ),
    );
  }
  if (aging.totals.length === 0) parts.push('Nothing is open.');
  parts.push(
    aging.ties
      ? `It ties: ${aging.documents.length} open document(s) and unapplied cash are the balances of the accounts\nreceivable:billed, partner-credit and unapplied in the journal, by partner.`
      : 'IT DOES NOT TIE. The differences are on stderr and in --json.',
  );
  return parts.join('\n\n');
}

/** What 80 columns leave for the partner's name. */
function nameWidth(rows: readonly (readonly string[])[]): number {
  const widths = rows[0]?.map((_, column) => Math.max(7, ...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  return Math.max(8, 80 - widths.reduce((sum, width) => sum + width + 2, 0));
}

const named = ({ partner_id }: { partner_id: string | null }): string => partner_id ?? '(payer unknown)';

function differencesOf({ tie, documents_differ }: Aging): string[] {
  return [
    ...tie.flatMap(({ account, currency, differences }) =>
      differences.map(
        (each) =>
          `${account} of ${named(each)}: open items ${each.open_items} ${currency}, journal ${each.journal} ${currency}`,
      ),
    ),
    ...documents_differ.map((each) => `${each.number}: ${each.open_items} by its facts, ${each.balance} as shown`),
  ];
}

// --- Statement of account -------------------------------------------------------------------------------------------------

export interface StatementOptions extends ReportOptions {
  readonly partner: string;
  readonly from?: string;
  /** Where to write it as PDF. */
  readonly pdf?: string;
}

const MOVEMENTS: Readonly<Record<MovementName, string>> = {
  document_issued: '',
  document_voided: 'voided:',
  written_off: 'written off:',
  payment_received: 'payment',
  payment_assigned: 'payment',
  small_difference: 'small difference:',
  small_difference_undone: 'small difference back:',
  payment_returned: 'payment returned',
  payment_refunded: 'payment refunded',
  payment_disputed: 'payment disputed',
  payment_mistake: 'recorded by mistake:',
  payment_duplicate: 'recorded twice:',
  payment_reinstated: 'payment given back',
  credit_refunded: 'credit paid out:',
  credit_refund_returned: 'refund returned:',
};

export const movementText = (line: StatementLine): string =>
  [MOVEMENTS[movementName(line)], line.document ?? line.reference ?? ''].filter(Boolean).join(' ');

export async function reportStatement(output: Output, options: StatementOptions): Promise<number> {
  return reading(async (context) => {
    const statement = await context.database.reading((tx) =>
      readStatement(tx, {
        partnerId: options.partner,
        from: options.from,
        asOf: options.asOf,
        today: todayOf(context),
      }),
    );
    if (options.pdf !== undefined) {
      const sandbox = context.environment.name === 'sandbox';
      const pdf = await drawStatement({ statement, issuer: context.settings.issuer, sandbox });
      writeFileAsked(options.pdf, pdf);
      output.note(`Wrote ${options.pdf}.`);
    }
    const columns = ['currency', 'date', 'dated_on', 'fact', 'document', 'reference', 'amount', 'balance', 'kind'];
    present(
      output,
      options,
      statement,
      () => [columns, statement.accounts.flatMap(statementRows(statement))],
      () => describeStatement(statement),
    );
    return statement.ties ? EXIT.done : EXIT.attention;
  });
}

const statementRows =
  ({ from, as_of }: Statement) =>
  (account: AccountStatement) => [
    { currency: account.currency, date: from, fact: 'opening', balance: account.opening },
    ...account.lines.map((line) => ({ currency: account.currency, ...line })),
    { currency: account.currency, date: as_of, fact: 'closing', balance: account.closing },
  ];

function describeStatement(statement: Statement): string {
  const { name, partner_id, from, as_of, accounts } = statement;
  const parts = [
    `Statement of account, ${dateName(from)} to ${dateName(as_of)}\n${short(printable(name), 78 - partner_id.length)} (${partner_id})`,
  ];
  for (const account of accounts) {
    parts.push(
      table(
        ['date', account.currency, '>amount', '>balance'],
        [
          [from, 'brought forward', '', groupThousands(account.opening)],
          ...account.lines.map((line) => [
            line.date,
            short(movementText(line) + (line.dated_on === line.date ? '' : ` (${line.dated_on})`), 34),
            groupThousands(line.amount),
            groupThousands(line.balance),
          ]),
          [as_of, 'balance', '', groupThousands(account.closing)],
        ],
      ),
    );
    const open = account.open_items.map(({ number, due_on, days_due, document, balance }) => [
      number,
      due_on === null ? 'credit' : `due ${due_on}`,
      days_due !== null && days_due > 0 ? `${days_due} days` : '',
      groupThousands(document === 'credit_note' ? `-${balance}` : balance),
    ]);
    const unapplied =
      Number(account.unapplied) === 0 ? [] : [['unapplied cash', '', '', groupThousands(`-${account.unapplied}`)]];
    if (open.length + unapplied.length > 0) {
      parts.push(table([`open in ${account.currency}`, '', '>overdue', '>balance'], [...open, ...unapplied]));
    }
  }
  if (accounts.length === 0) parts.push('Nothing ever happened on this account.');
  else {
    parts.push(
      statement.ties
        ? 'It ties: each balance is what the open items add up to.'
        : "IT DOES NOT TIE: a balance is not what the open items add up to. Run 'reckoner verify'.",
    );
  }
  return parts.join('\n\n');
}

// --- Trial balance --------------------------------------------------------------------------------------------------------

export async function reportTrialBalance(
  output: Output,
  options: ReportOptions & { detail?: boolean },
): Promise<number> {
  return reading(async (context) => {
    const question = { asOf: options.asOf, today: todayOf(context), detail: options.detail ?? false };
    const trial = await context.database.reading((tx) => readTrialBalance(tx, question));
    const columns = ['account', 'currency', 'debit', 'credit'];
    present(
      output,
      options,
      trial,
      () => [columns, trial.accounts],
      () => describeTrialBalance(trial),
    );
    return trial.balanced ? EXIT.done : EXIT.attention;
  });
}

function describeTrialBalance({ as_of, accounts, totals, balanced }: TrialBalance): string {
  if (accounts.length === 0) return `Every account is empty on ${dateName(as_of)}.`;
  const shown = (amount: string) => (Number(amount) === 0 ? '' : groupThousands(amount));
  const parts = totals.map((total) =>
    table(
      [`account, ${total.currency}`, '>debit', '>credit'],
      [
        ...accounts
          .filter((each) => each.currency === total.currency)
          .map((each) => [short(each.account, 40), shown(each.debit), shown(each.credit)]),
        ['total', groupThousands(total.debit), groupThousands(total.credit)],
      ],
    ),
  );
  const verdict = balanced
    ? 'Debits are credits in every currency.'
    : "DEBITS ARE NOT CREDITS. Run 'reckoner verify', and do not rely on these figures.";
  return [`Trial balance on ${dateName(as_of)}`, ...parts, verdict].join('\n\n');
}

// --- Close report -----------------------------------------------------------------------------------------------------------

export async function reportClose(output: Output, month: Month | undefined, options: ReportOptions): Promise<number> {
  return reading(async ({ database }) => {
    const report = await database.reading((tx) => readCloseReport(tx, month));
    const columns = ['partner_id', 'currency', 'documents', 'invoice_amount', 'last_month', 'change'];
    present(
      output,
      options,
      report ?? null,
      () => [columns, (report?.partners ?? []).map((row) => ({ ...row, documents: row.documents.join(' ') }))],
      () => (report === undefined ? 'No month is closed yet.' : describeClose(report)),
    );
    return report !== undefined && report.held.length > 0 ? EXIT.attention : EXIT.done;
  });
}

// --- Coverage ---------------------------------------------------------------------------------------------------------------

/** The latest months are shown to people; --json gives all. */
const SHOWN_MONTHS = 3;

export async function reportCoverage(output: Output, options: ReportOptions): Promise<number> {
  return reading(async ({ database }) => {
    const coverage = await database.reading((tx) => readCoverage(tx, options.asOf));
    present(
      output,
      options,
      coverage,
      () => [
        ['partner_id', 'month', 'state', 'documents', 'entries'],
        coverage.partners.flatMap(({ partner_id, cells }) =>
          cells.map((cell) => ({ ...cell, partner_id, documents: cell.documents.join(' ') })),
        ),
      ],
      () => described(coverage),
    );
    return coverage.gaps > 0 ? EXIT.attention : EXIT.done;
  });
}

function described({ months, partners, gaps }: Coverage): string {
  if (months.length === 0) return 'No month is closed yet.';
  const shown = months.slice(-SHOWN_MONTHS);
  // Several documents of a month stand below each other.
  const rows = partners.flatMap(({ partner_id, cells }) => {
    const told = cells
      .slice(-SHOWN_MONTHS)
      .map(({ state, documents }) =>
        state === 'gap' ? ['GAP'] : state === 'no_activity' ? ['no activity'] : [...documents],
      );
    const lines = Math.max(1, ...told.map((each) => each.length));
    return Array.from({ length: lines }, (_, line) => [
      line === 0 ? short(partner_id, 20) : '',
      ...told.map((each) => each[line] ?? ''),
    ]);
  });
  return [
    table(['partner', ...shown], rows),
    '',
    gaps === 0
      ? `No gaps: every partner with rows has its document in each of ${months.length} closed months.`
      : `${gaps} gap(s): rows of a closed month without a document.`,
  ].join('\n');
}
