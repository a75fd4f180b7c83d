import { existsSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { openArchive } from '#archive/archive.sql';
import { haveNamedRows } from '#archive/rows';
import { Verification, verify } from '#audit/verify';
import { withDatabase } from '#cli/context';
import { Definition } from '#cli/define';
import { Output, printable } from '#cli/output';
import { Environment, readEnvironment } from '#config/environment';
import { settingsFile } from '#config/settings';
import { readIdentities } from '#database/backup-encryption';
import { checkBackup, restoreBackup } from '#database/restore';
import { Recording } from '#database/schema';
import { Transaction } from '#database/transaction';
import { repeatErasures } from '#erasures/erase';
import { readErasureFile } from '#erasures/file';
import { EXIT, Refusal } from '#errors/refusals';
import { forgetPartnerSignIns } from '#partners/sign-in.sql';
import { recordEvent, thisProcess } from '#people/audit-events';
import { insertPause } from '#people/pauses.sql';
import { forgetSignIns } from '#people/sign-in.sql';
import { identifyIfKnown } from '#people/users';
import { minuteOf, plural } from '#text';
import { counted, NOT_IN_A_BACKUP } from './backup.ts';

const HELP = `
If any part of the backup cannot be loaded, the database is unchanged. A backup
from an older version is migrated. The restored ledger is paused until 'reckoner
resume'. settings.json, templates/, outbox/ and secrets are not in a backup:
restore them separately.`;

export const define: Definition = (command, action) => {
  command
    .argument('<file>', 'the backup')
    .option('--identity <file>', 'the private key of an encrypted backup, as age-keygen writes it')
    .addHelpText('after', HELP)
    .action(action(restore));
};

async function restore(output: Output, file: string, given: { identity?: string } = {}) {
  const environment = readEnvironment();
  const identities = given.identity === undefined ? [] : await readIdentities(given.identity);
  const reading = async <Result>(label: string, work: (onProgress: (bytes: number) => void) => Promise<Result>) => {
    const progress = output.progress(label, sizeOf(file), ' bytes');
    return work((bytes) => progress.advance(bytes)).finally(() => progress.done());
  };
  const checked = await reading('Checking', (onProgress) => checkBackup(file, environment, onProgress, identities));
  const erasures = readErasureFile(environment);
  const {
    rows,
    leftOut,
    proof: settled,
  } = await withDatabase(environment, { unmigrated: true }, (database) =>
    reading('Loading', (onProgress) =>
      restoreBackup(
        database,
        checked,
        (tx, schema) => settleRestored(tx, { environment, by: output.by, backup: checked, schema, erasures }),
        onProgress,
      ),
    ),
  );
  const { erased, proof } = settled;

  // A difference does not undo the restore: the file's hash proves that the backup had it, and it may be the only copy
  // of the ledger.
  const verified =
    proof !== null && typeof proof === 'object' ? { inspected: proof.inspected, differences: proof.differences } : null;
  const others = leftOut.length > 0 ? { left_out: leftOut } : {};
  output.print({ file, rows, verified, erased, ...others }, () =>
    [
      `Restored ${file}, made ${printable(checked.created_at)} by Reckoner ${printable(checked.program)}: ${counted(rows)}.`,
      ...leftOut.map((name) => `Skipped ${printable(name)}: this version has no such table.`),
      checked.isAuthentic
        ? 'It is signed with the key that signs checkpoints.'
        : 'Its signature was not checked: there is no LOG_SIGNING_KEY_FILE.',
      ...(erased > 0 ? [`Erased again: ${plural(erased, 'text')} that had been erased after the backup.`] : []),
      described(proof),
      NOT_IN_A_BACKUP,
    ].join('\n'),
  );
  output.note(
    "The ledger is paused: nothing is closed, issued, sent or recorded. 'reckoner resume' shows what may have " +
      'happened after the backup, and asks for the last number issued.',
  );
  if (erasures === undefined) {
    output.note(
      `There is no file ${environment.home}/erasures. If personal data was erased after the backup, copy the file of ` +
        `the former home there and restore again, or erase the data again with the command erase.`,
    );
  }
  if (!existsSync(settingsFile(environment))) {
    output.note(`No settings in ${environment.home} yet. Copy yours there, or run 'reckoner init'.`);
  }
  const isWrong = proof !== null && (typeof proof === 'string' || proof.differences > 0);
  return isWrong || leftOut.length > 0 ? EXIT.attention : EXIT.done;
}

/** Records and pauses a restored ledger, repeats erasures after the backup, and verifies. */
export async function settleRestored(
  tx: Transaction,
  given: Readonly<{
    environment: Environment;
    by?: string | null;
    backup: Awaited<ReturnType<typeof checkBackup>>;
    schema: Recording;
    erasures?: ReturnType<typeof readErasureFile>;
  }>,
): Promise<Readonly<{ erased: number; proof: Proof }>> {
  const { environment, by = null, erasures = [] } = given;
  const now = environment.now().toISO();
  const { file, created_at, program, sha256 } = given.backup;
  const actor = await identifyIfKnown(tx, thisProcess('command', by), by ?? environment.user);
  const eventId = await recordEvent(tx, actor, {
    action: 'database.restore',
    subject: basename(file),
    details: { file, created_at, program, content_sha256: sha256, schema_record: given.schema.sha256 },
    now,
  });
  // Partners may have received documents that were issued after the backup, so a user must check first.
  const reason = `restored from ${basename(file)}, made at ${minuteOf(created_at)}`;
  await insertPause(tx, { reason, stateOf: created_at, now, eventId });
  // Sessions that ended and links that were used after the backup would be valid again.
  await forgetSignIns(tx);
  await forgetPartnerSignIns(tx);
  const erased = await repeatErasures(tx, { environment, actor }, erasures);
  return { erased, proof: await prove(tx, environment) };
}

/** The size is used only for the progress bar. The later step that reads the file refuses a missing file. */
function sizeOf(file: string) {
  try {
    return statSync(file).size;
  } catch {
    return 0;
  }
}

/** The result of `verify`; null if the ledger is empty; or why the rows of archived months cannot be read. */
export type Proof = Verification | string | null;

async function prove(tx: Transaction, environment: Environment) {
  try {
    await openArchive(tx);
    // The files in the store are proved by the next `verify --all`.
    const copied = { month: null };
    return (await haveNamedRows(tx, environment, copied)) ?? (await verify(tx, undefined, { copied }));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return error.code === 'nothing_to_verify' ? null : error.message;
  }
}

function described(proof: Proof) {
  if (proof === null) return 'The ledger is empty, so there was nothing to verify.';
  if (typeof proof === 'string') return `Not verified. ${proof} Then run 'reckoner verify'.`;
  const { checks, inspected, differences } = proof;
  if (differences === 0) return `Verified: all ${checks.length} checks pass (${plural(inspected, 'item')} inspected).`;
  return (
    `Verified: ${plural(differences, 'difference')} in ${plural(inspected, 'item')}. They come from the backup, which was ` +
    `restored unchanged. 'reckoner verify' lists them.`
  );
}
