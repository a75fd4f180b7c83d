/**
 * The drill: restores a backup into a scratch database as `restore` does, and compares its log with the ledger, in one
 * transaction that is rolled back. The copy can never close, send or call, and the scratch database stays empty, even
 * if the drill is killed. The ledger only gets a job run.
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Context, Definition, EXIT, exitOf, printable, Refusal, refuse, withContext, withDatabase } from '#cli/command';
import { recordRun } from '#cli/job-log';
import { Environment, EnvironmentName } from '#config/environment';
import { readIdentities } from '#database/backup-encryption';
import { Database, rolledBack } from '#database/database';
import { checkBackup, restoreBackup } from '#database/restore';
import { databaseFailure, Transaction } from '#database/transaction';
import { Checkpoint, readCheckpoints, readOrigin } from '#log/checkpoints.sql';
import { continues } from '#log/head';
import { checkpointTitle } from '#log/text';
import { minuteOf, plural } from '#text';
import { counted, nightlyBackups } from './backup.ts';
import { Proof, settleRestored } from './restore.ts';

const HELP = `
The backup is restored into a scratch database, verified, compared with the
ledger and rolled back. Exit status 4: a difference.`;

type DrillOptions = Readonly<{
  identity?: string;
  into?: string;
}>;

export const define: Definition = (command, action) => {
  command
    .argument('[place]', 'a backup, or a folder whose latest backup is used (default: RECKONER_BACKUPS)')
    .option('--identity <file>', 'the private key of an encrypted backup (default: DRILL_IDENTITY_FILE)')
    .option('--into <url>', 'an empty database (default: DRILL_DATABASE_URL, or an embedded server)')
    .addHelpText('after', HELP)
    .action(
      action((output, place: string | undefined, options: DrillOptions) =>
        withContext(
          async (context) => {
            const found = await recordDrill(context, place, options);
            output.print(found, () => described(found));
            return exitOfDrill(found);
          },
          { writesNothing: true },
        ),
      ),
    );
};

type Drill = Awaited<ReturnType<typeof drill>>;

const exitOfDrill = ({ differences }: Drill) => (differences.length === 0 ? EXIT.done : EXIT.attention);

const described = ({ file, made_at, rows, inspected, documents, checkpoints, differences }: Drill) =>
  [
    `Restored ${file}, made at ${minuteOf(made_at)}, and rolled it back: ${counted(rows)}, ${plural(inspected, 'item')} ` +
      `verified, ${plural(documents, 'PDF')} checked, ${plural(checkpoints, 'checkpoint')} compared with the ledger.`,
    ...differences.map(printable),
    `${plural(differences.length, 'difference')} found.`,
  ].join('\n');

async function recordDrill(context: Context, place: string | undefined, options: DrillOptions) {
  const startedAt = context.environment.now().toISO();
  let subject: string | undefined;
  const record = (exitStatus: number) => recordRun(context, { job: 'drill', startedAt, subject, exitStatus });
  const found = await drill(context, place, options, (madeAt) => {
    subject = madeAt;
  }).catch(async (error: unknown) => {
    await record(exitOf(databaseFailure(error) ?? error));
    throw error;
  });
  await record(exitOfDrill(found));
  return found;
}

async function drill(
  { environment, database }: Context,
  place: string | undefined,
  { identity = process.env['DRILL_IDENTITY_FILE'], into = environment.drillUrl }: DrillOptions,
  onBackup: (madeAt: string) => void,
) {
  const file = latestIn(place ?? (process.env['RECKONER_BACKUPS'] || '/var/backups/reckoner'), environment.name);
  const identities = identity ? await readIdentities(identity) : [];
  const backup = await checkBackup(file, environment, undefined, identities);
  const { created_at: made_at, rows } = backup;
  onBackup(made_at);
  const own = await database.reading(readOrigin);
  const { log, proof } = await inScratch({ ...environment, databaseUrl: into, databaseReadUrl: undefined }, (scratch) =>
    rolledBack<{ log: Checkpoint[]; proof: Proof }>((undo) =>
      restoreBackup(scratch, backup, async (tx, schema) => {
        const origin = await readOrigin(tx);
        if (ledgerOf(origin) !== ledgerOf(own)) {
          throw refuse('backup_invalid', { file, reason: `it belongs to the ledger ${origin}, not to ${own}` });
        }
        const settled = await settleRestored(tx, { environment, backup, schema });
        undo({ log: await readCheckpoints(tx), proof: settled.proof });
      }),
    ),
  );
  const verified = typeof proof === 'string' ? null : proof;
  const checks = verified?.checks ?? [];
  const differences = [
    ...(typeof proof === 'string' ? [proof] : []),
    ...checks.flatMap((each) => each.differences.map(({ subject, detail }) => `${each.check}: ${subject} ${detail}`)),
    ...(await database.reading((tx) => missingFromLog(tx, log))),
  ];
  const documents = checks.find(({ check }) => check === 'document_pdfs_as_issued')?.inspected ?? 0;
  const inspected = verified?.inspected ?? 0;
  return { file, made_at, rows, inspected, documents, checkpoints: log.length, differences };
}

/** The name of a log without the number of the successor log. */
const ledgerOf = (origin: string) => origin.split('/', 2).join('/');

async function missingFromLog(tx: Transaction, log: readonly Checkpoint[]) {
  const roots = new Map((await readCheckpoints(tx)).map(({ size, root }) => [size, root]));
  const missing: string[] = [];
  for (const each of log) {
    if (!(roots.get(each.size)?.equals(each.root) ?? (await continues(tx, each))))
      missing.push(`${checkpointTitle(each)} of the backup is not in the log of the ledger`);
  }
  return missing;
}

function latestIn(place: string, name: EnvironmentName) {
  const latest = statSync(place, { throwIfNoEntry: false })?.isDirectory() ? nightlyBackups(place, name).at(-1) : '';
  if (latest === undefined) throw refuse('file_unreadable', { file: place, reason: 'the folder has no backup' });
  return join(place, latest);
}

/** Opens the database, or an embedded one that is deleted afterward. */
async function inScratch<Result>(environment: Environment, work: (scratch: Database) => Promise<Result>) {
  const open = (at: Environment) => withDatabase(at, { unmigrated: true, scratch: true }, work);
  if (environment.databaseUrl !== undefined) return open(environment);
  const home = mkdtempSync(join(environment.home, 'drill-'));
  try {
    return await open({ ...environment, home });
  } catch (error) {
    if (!(error instanceof Refusal && error.code === 'embedded_server')) throw error;
    const reason = `is not set, and there is no --into (${error.facts['reason']})`;
    throw refuse('environment_invalid', { variable: 'DRILL_DATABASE_URL', reason }, error);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}
