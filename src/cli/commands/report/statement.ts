import { partnerIdOf } from '#actions/partner-names';
import { blocksText } from '#blocks';
import {
  AS_OF,
  AsOfOption,
  CommandContext,
  Definition,
  dateArgument,
  outputWidth,
  PresentOptions,
  printable,
  writeFileAsked,
} from '#cli/command';
import { showing } from '#cli/report-command';
import { todayOf } from '#config/today';
import { AccountStatement, activityBlocks, openItemBlocks, readAccountStatement } from '#reports/account-statement';
import { pdfOfStatement } from '#reports/account-statement-file';
import { refuseFutureDay } from '#reports/future-day';
import { preliminaryNote } from '#reports/preliminary';
import { statementSheet } from '#reports/sheets';
import { dateName } from '#values';

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
  const { name, partner_id, from, as_of, accounts, ties } = statement;
  const title = [
    `Account statement, ${dateName(from)} to ${dateName(as_of)}`,
    `${printable(name)} (${partner_id})`,
    ...preliminaryNote(statement),
  ];
  const blocks = [...activityBlocks(statement), ...openItemBlocks(statement)];
  if (accounts.length === 0) return `${title.join('\n')}\n\nNo activity on this account.`;
  const verdict = ties
    ? 'Ties: each balance equals the sum of its open items.'
    : "IT DOES NOT TIE: a balance differs from the sum of its open items. Run 'reckoner verify'.";
  return [title.join('\n'), blocksText(blocks, outputWidth()), verdict].join('\n\n');
}
