import {
  CommandContext,
  Definition,
  money,
  monthArgument,
  PresentOptions,
  table,
  wholeNumberArgument,
} from '#cli/command';
import { showing } from '#cli/report-command';
import { readExports } from '#general-ledger/exports.sql';
import { glListSheet } from '#general-ledger/list';
import { Month } from '#month';

type Options = PresentOptions &
  Readonly<{
    month?: Month;
    limit?: number;
  }>;

export const define: Definition = (gl, action) => {
  showing(
    gl
      .command('list')
      .description('List exported journals, newest month first')
      .option('--month <month>', 'only this month', monthArgument('--month'))
      .option('--limit <count>', 'list at most this many (default: 500)', wholeNumberArgument('--limit', 1, 1_000_000)),
    action,
    list,
  );
};

async function list({ database }: CommandContext, { month, limit = 500 }: Options) {
  const exports = await database.reading((tx) => readExports(tx, { month, limit }));
  return {
    json: exports,
    sheet: () => glListSheet(exports),
    text: () =>
      exports.length === 0
        ? 'No months have been exported for the general ledger.'
        : table(
            ['month', 'format', '>part', 'kind', 'state', '>debits', 'exported on', '~by', '~files'],
            exports.map(({ totals, files, ...each }) => [
              ...[each.month, each.format, each.part, each.kind, each.state],
              totals.map(({ currency, debit }) => money(debit, currency)).join(', '),
              ...[each.recorded_at.slice(0, 10), each.login ?? '', files.map(({ name }) => name).join(', ')],
            ]),
          ),
  };
}
