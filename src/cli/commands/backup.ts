/** `reckoner backup`. */
import { readEnvironment } from '../../config/environment.ts';
import { writeBackup } from '../../database/backup.ts';
import { EXIT, refuse } from '../../errors/refusals.ts';
import { groupThousands } from '../../money.ts';
import { withDatabase } from '../context.ts';
import type { Definition } from '../define.ts';
import type { Output, Progress } from '../output.ts';

const HELP = `
A backup is one consistent snapshot, taken while the system keeps running. It
does not contain settings.json, templates/ and outbox/ of RECKONER_HOME, or the
secrets in the environment. An existing file is never replaced.`;

export const define: Definition = (command, act) => {
  command.argument('<file>', 'a new file').addHelpText('after', HELP).action(act(backup));
};

export const NOT_IN_A_BACKUP =
  'Not in a backup: settings.json, templates/ and outbox/ of RECKONER_HOME, and the secrets in the environment.';

export async function backup(output: Output, file: string): Promise<number> {
  const environment = readEnvironment();
  if (file === '-') {
    throw refuse('argument_invalid', {
      argument: 'file',
      value: file,
      reason: 'must be a file, because a backup is written completely or not at all',
    });
  }
  let progress: Progress | undefined;
  const written = await withDatabase(environment, { unmigrated: true }, (database) =>
    writeBackup(database, environment, file, {
      onStart: (bytes) => {
        progress = output.progress('Backing up', bytes, ' bytes');
      },
      onProgress: (bytes) => progress?.advance(bytes),
    }).finally(() => progress?.done()),
  );
  const { bytes, rows, sha256, created_at } = written;
  output.print({ file, bytes, rows, sha256 }, () =>
    [
      `Wrote ${file}: ${counted(rows)} as of ${created_at}, ${groupThousands(String(bytes))} bytes.`,
      `SHA-256 ${sha256}`,
      NOT_IN_A_BACKUP,
    ].join('\n'),
  );
  return EXIT.done;
}

export function counted(rows: Readonly<Record<string, number>>): string {
  const total = Object.values(rows).reduce((sum, count) => sum + count, 0);
  return `${groupThousands(String(total))} rows in ${Object.keys(rows).length} tables`;
}
