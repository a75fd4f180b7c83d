import { partnerIdOf } from '#actions/partner-names';
import {
  AS_OF,
  AsOfOption,
  CommandContext,
  Definition,
  dateArgument,
  PresentOptions,
  printable,
  table,
  writeFileAsked,
} from '#cli/command';
import { showing } from '#cli/report-command';
import { todayOf } from '#config/today';
import { AccountStatement, activityText, ofPartner, readAccountStatement } from '#reports/account-statement';
import { pdfOfStatement } from '#reports/account-statement-file';
import { refuseFutureDay } from '#reports/future-day';
import { preliminaryNote } from '#reports/preliminary';
import { statementSheet } from '#reports/sheets';
import { dateName, groupThousands } from '#values';

export const define: Definition = (report, action) => {
  showing(
    report
      .command('statement')
      .description("Show a partner's account statement: opening balance, activity, open items")
      .requiredOption('--partner <id>', 'the partner')
      .option('--pdf <file>', 'also write it as PDF')
      .option('--from <YYYY-MM-DD>', 'the first day (default: the first of the month)', dateArgument('--from'))
      .option(...AS_OF),
    action,
    reportStatement,
  );
};

type StatementOptions = PresentOptions &
  AsOfOption &
  Readonly<{
    partner: string;
    from?: string;
    pdf?: string;
  }>;

async function reportStatement(context: CommandContext, options: StatementOptions) {
  const { database, output } = context;
  const today = todayOf(context);
  const statement = await database.reading(async (tx) => {
    await refuseFutureDay(tx, options.asOf, today);
    const partnerId = await partnerIdOf(tx, options.partner);
    return readAccountStatement(tx, { partnerId, from: options.from, asOf: options.asOf, today });
  });
  if (options.pdf !== undefined) {
    const { pdf } = await database.reading((tx) => pdfOfStatement(tx, context, statement));
    writeFileAsked(options.pdf, pdf);
    output.note(`Wrote ${options.pdf}.`);
  }
  return {
    json: statement,
    sheet: () => statementSheet(statement),
    text: () => describeStatement(statement),
    attention: !statement.ties,
    day: statement,
  };
}

function describeStatement(statement: AccountStatement) {
  const { name, partner_id, from, as_of, accounts } = statement;
  const parts = [
    [
      `Account statement, ${dateName(from)} to ${dateName(as_of)}`,
      `${printable(name)} (${partner_id})`,
      ...preliminaryNote(statement),
    ].join('\n'),
  ];
  for (const account of accounts) {
    parts.push(
      table(
        ['date', `~${account.currency}`, '>amount', '>balance'],
        [
          [from, 'brought forward', '', groupThousands(account.opening)],
          ...account.lines.map((line) => [
            line.date,
            activityText(line) +
              printable(ofPartner(statement, line.partner_id)) +
              (line.dated_on === line.date ? '' : ` (${line.dated_on})`),
            groupThousands(line.amount),
            groupThousands(line.balance),
          ]),
          [as_of, 'balance', '', groupThousands(account.closing)],
        ],
      ),
    );
    const open = account.open_items.map(({ partner_id, number, due_on, days_due, document, balance, disputed }) => [
      number +
        printable(ofPartner(statement, partner_id)) +
        (Number(disputed) === 0 ? '' : `, ${groupThousands(disputed)} disputed`),
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
  if (accounts.length === 0) parts.push('No activity on this account.');
  else {
    parts.push(
      statement.ties
        ? 'Ties: each balance equals the sum of its open items.'
        : "IT DOES NOT TIE: a balance differs from the sum of its open items. Run 'reckoner verify'.",
    );
  }
  return parts.join('\n\n');
}
