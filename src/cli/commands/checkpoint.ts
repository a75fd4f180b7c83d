import { join } from 'node:path';
import { acting, CommandContext, Definition, reading, refuse } from '#cli/command';
import { readInput } from '#cli/fields';
import { makeFolder, writeWhole } from '#files';
import { readNote } from '#log/note';
import { readProver, recordCosignatures } from '#log/witness';
import { plural } from '#text';

export const define: Definition = (group, action) => {
  group
    .command('publish')
    .description('Write the last checkpoint with its proofs to a folder, for witnesses')
    .argument('<folder>', 'a folder that witnesses can read; earlier files in it are replaced')
    .action(action(reading(publish)));
  group
    .command('cosign')
    .description('Record the signature of a witness under a checkpoint')
    .argument('<file>', "the note with the witness's line, as the witness prints it ('-': stdin)")
    .action(action(acting(addCosignature, 'finance')));
};

async function publish({ database, output }: CommandContext, folder: string) {
  await makeFolder(folder);
  const files = await database.reading(async (tx) => {
    const { sizes, proofFrom } = await readProver(tx);
    return [0, ...sizes].map((size) => ({ size, text: proofFrom(size) }));
  });
  for (const { size, text } of files) await writeWhole(join(folder, `from-${size}`), text, 'replace');
  output.print({ folder, files: files.length }, () => `Wrote ${plural(files.length, 'file')} to ${folder}.`);
}

async function addCosignature({ database, environment, settings, output }: CommandContext, file: string) {
  const text = readInput(file).toString();
  const note = readNote(/^[^\n]*\n\d+\n[^\n]*\n\n(?:— [^\n]*\n)+/m.exec(`${text.trimEnd()}\n`)?.[0] ?? text);
  if (note === undefined) throw refuse('checkpoint_unreadable', { file });
  const now = environment.now().toISO();
  const { size } = note.head;
  const recorded = await database.transaction((tx) =>
    recordCosignatures(tx, { size, lines: note.lines, witnesses: settings.witnesses, now }),
  );
  output.print(
    { size, recorded },
    () => `Recorded ${plural(recorded, 'signature')} under the checkpoint of ${size} facts.`,
  );
}
