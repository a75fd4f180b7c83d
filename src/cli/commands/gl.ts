import { readExports } from '../../general-ledger/exports.sql.ts';
import { glListSheet } from '../../general-ledger/list.ts';
import type { Month } from '../../month.ts';
import {
  type CommandContext,
  type Definition,
  FORMAT,
  money,
  monthArgument,
  OUT,
  type PresentOptions,
  present,
  reading,
  table,
  wholeNumberArgument,
} from '../command.ts';

type Options = PresentOptions &
  Readonly<{
    month?: Month;
    limit?: number;
  }>;

export const define: Definition = (gl, action) => {
  gl.command('list')
    .description('List exported journals, newest month first')
    .option('--month <month>', 'only this month', monthArgument('--month'))
    .option('--limit <count>', 'list at most this many (default: 500)', wholeNumberArgument('--limit', 1, 1_000_000))
    .option(...FORMAT)
    .option(...OUT)
    .action(action(reading(list)));
};

async function list({ database, output }: CommandContext, { month, limit = 500, ...options }: Options) {
  const exports = await database.reading((tx) => readExports(tx, { month, limit }));
  await present(
    output,
    options,
    exports,
    () => glListSheet(exports),
    () =>
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
  );
}
