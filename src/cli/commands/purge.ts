import { acting, CommandContext, Definition, table } from '#cli/command';
import { groupThousands } from '#money';
import { countPurgeable, purge } from '#reports/purge';
import { Purged } from '#reports/purge.sql';

const HELP = `
Deletes idempotency keys after 30 days and job runs after 400, except the last
run and the last success of each job. The setting retention says when quotes
and requotes that were never accepted are deleted, and the data of processor
events. The job 'purge' does the same every night.`;

export const define: Definition = (command, action) => {
  command
    .option('--dry-run', 'count what is due; delete nothing')
    .addHelpText('after', HELP)
    .action(action(acting(purgeDue, 'administrator')));
};

async function purgeDue(context: CommandContext, { dryRun = false }: { dryRun?: boolean }) {
  const { database, output } = context;
  const purged = dryRun ? await database.reading((tx) => countPurgeable(tx, context)) : await purge(database, context);
  const closing = dryRun ? '\n\nPreview only: nothing was deleted.' : '';
  output.print({ ...purged, dry_run: dryRun }, () => `${describe(purged, dryRun)}${closing}`);
}

const NAMES: Readonly<Record<keyof Purged, string>> = {
  idempotency_keys: 'idempotency keys',
  requotes: 'unaccepted requotes',
  quotes: 'unaccepted quotes',
  job_runs: 'job runs',
  processor_events: 'data of processor events',
};

const describe = (purged: Purged, dryRun: boolean) =>
  table(
    ['kept longer than needed', dryRun ? '>to delete' : '>deleted'],
    Object.entries(NAMES).map(([name, words]) => [words, groupThousands(String(purged[name as keyof Purged]))]),
  );
