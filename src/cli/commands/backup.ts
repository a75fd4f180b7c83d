import { readdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import {
  Definition,
  EXIT,
  exitOf,
  Output,
  Progress,
  reasonOf,
  refuse,
  repeatedArgument,
  wholeNumberArgument,
  withDatabase,
} from '#cli/command';
import { Environment, EnvironmentName, readEnvironment } from '#config/environment';
import { Backup, writeBackup } from '#database/backup';
import { encryptionTo } from '#database/backup-encryption';
import { Database } from '#database/database';
import { pendingMigrations } from '#database/migrate';
import { databaseFailure } from '#database/transaction';
import { keepErasures } from '#erasures/file';
import { groupThousands } from '#money';
import { recordEvent, thisProcess } from '#people/audit-events';
import { identifyIfKnown } from '#people/users';
import { recordJobRun } from '#reports/jobs.sql';

const HELP = `
A backup is one consistent snapshot, taken while the system keeps running. It
does not contain settings.json, templates/ and outbox/ of RECKONER_HOME, or the
secrets in the environment. An existing file is never replaced. If recipients
are given (age public keys, with --recipient or in the variable
BACKUP_RECIPIENT), the backup is encrypted.`;

export const define: Definition = (command, action) => {
  command
    .argument('<file>', 'a new file, or with --keep a folder')
    .option(
      '--keep <count>',
      'write a new file into the folder and keep only this many of the latest backups there',
      wholeNumberArgument('--keep', 1, 10_000),
    )
    .option('--recipient <key>', 'encrypt to this age public key, age1…; repeatable', repeatedArgument)
    .addHelpText('after', HELP)
    .action(action(backup));
};

export const NOT_IN_A_BACKUP =
  'Not in a backup: settings.json, templates/ and outbox/ of RECKONER_HOME, cold stores, and the secrets in the ' +
  'environment.';

async function backup(
  output: Output,
  place: string,
  { keep, recipient }: { keep?: number; recipient?: string[] } = {},
) {
  const environment = readEnvironment();
  const stamp = environment.now().toFormat("yyyyMMdd'T'HHmmss'Z'");
  const file = keep === undefined ? place : join(place, `reckoner-${environment.name}-${stamp}.backup`);
  if (place === '-') {
    throw refuse('argument_invalid', {
      argument: 'file',
      value: place,
      reason: 'must be a file, because a backup is written completely or not at all',
    });
  }
  const recipients = recipient ?? environment.backupRecipients ?? [];
  const encrypt = await encryptionTo(recipient ? '--recipient' : 'BACKUP_RECIPIENT', recipients);
  const encrypted = recipients.length > 0 && { encrypted_to: recipients };
  let progress: Progress | undefined;
  const [written, unrecorded] = await withDatabase(environment, { unmigrated: true }, async (database) => {
    const run = keep === undefined ? undefined : startRun(database, environment);
    const made = await writeBackup(database, environment, file, {
      encrypt,
      onStart: (bytes) => {
        progress = output.progress('Backing up', bytes, ' bytes');
      },
      onProgress: (bytes) => progress?.advance(bytes),
    })
      .catch(async (error: unknown) => {
        // Even if the run cannot be recorded.
        await run?.(exitOf(databaseFailure(error) ?? error)).catch(() => undefined);
        throw error;
      })
      .finally(() => progress?.done());
    // Complete even if its event cannot be recorded.
    const failure = await recordBackup(output, database, environment, { file, ...made, ...encrypted })
      .then(() => run?.(EXIT.done))
      .then(
        () => undefined,
        (error: unknown) => databaseFailure(error) ?? error,
      );
    return [made, failure] as const;
  });
  const deleted = keep === undefined ? [] : deleteAllBut(keep, place, environment.name);
  const { bytes, rows, sha256, created_at } = written;
  output.print({ file, bytes, rows, sha256, ...encrypted, ...(keep !== undefined && { deleted }) }, () =>
    [
      `Wrote ${file}: ${counted(rows)} as of ${created_at}, ${groupThousands(String(bytes))} bytes.`,
      `SHA-256 ${sha256}`,
      ...(encrypted ? [`Encrypted to ${recipients.join(', ')}.`] : []),
      ...deleted.map((name) => `Deleted ${name}.`),
      NOT_IN_A_BACKUP,
    ].join('\n'),
  );
  if (unrecorded === undefined) return EXIT.done;
  output.note(`${file} is complete. Its event was not recorded: ${reasonOf(unrecorded)}`);
  return EXIT.attention;
}

/**
 * Records the backup with the SHA-256 of its file, by which `sha256sum` can identify it. A schema from an older version
 * cannot.
 */
async function recordBackup(
  output: Output,
  database: Database,
  environment: Environment,
  made: Backup & Readonly<{ file: string; encrypted_to?: readonly string[] }>,
) {
  if (await isOlder(database)) return;
  // A crash may have kept an erasure from the file of the home.
  await keepErasures(database, environment);
  const { rows: _, file, ...rest } = made;
  const details = { file, ...rest, signed: environment.logKey !== undefined };
  const event = { action: 'backup.take', subject: basename(file), details, now: environment.now().toISO() };
  const claimed = thisProcess('command', output.by);
  await database.transaction(async (tx) =>
    recordEvent(tx, await identifyIfKnown(tx, claimed, output.by ?? environment.user), event),
  );
}

/**
 * Records the outcome of a backup into a folder, such as the nightly one, so that a missed or failed one is noticed as
 * a job's.
 */
function startRun(database: Database, environment: Environment): (exitStatus: number) => Promise<void> {
  const startedAt = environment.now().toISO();
  return async (exitStatus) => {
    if (await isOlder(database)) return;
    const run = { job: 'backup', startedAt, finishedAt: environment.now().toISO(), exitStatus };
    await database.transaction((tx) => recordJobRun(tx, run));
  };
}

const isOlder = async (database: Database) =>
  (await database.asOwner((tx) => pendingMigrations(tx.client), { readOnly: true })).length > 0;

/** The backups that `--keep` made in a folder. Their names contain times, so the last one is the latest. */
export const nightlyBackups = (folder: string, environment: EnvironmentName) =>
  readdirSync(folder)
    .filter((name) => new RegExp(`^reckoner-${environment}-\\d{8}T\\d{6}Z\\.backup$`).test(name))
    .sort();

function deleteAllBut(keep: number, folder: string, environment: EnvironmentName) {
  const old = nightlyBackups(folder, environment).slice(0, -keep);
  for (const name of old) rmSync(join(folder, name));
  return old;
}

export function counted(rows: Readonly<Record<string, number>>) {
  const total = Object.values(rows).reduce((sum, count) => sum + count, 0);
  return `${groupThousands(String(total))} rows in ${Object.keys(rows).length} tables`;
}
