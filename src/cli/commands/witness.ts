import { createPublicKey } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DateTime } from 'luxon';
import { Definition, EXIT, Output, reasonOf, refuse } from '#cli/command';
import { logKeyOf, readInput, readNoteFile } from '#cli/fields';
import { readLogKey } from '#config/log-key';
import { codeOf, writeWhole } from '#files';
import { cosignHead, noteOf, readNote, witnessKeyOf } from '#log/note';
import { acceptCheckpoint } from '#log/witness';
import { counted, plural } from '#text';

const HELP = `
This command is for auditors, on their own machine; it needs no database. SOURCE
is the address of a server (https://billing.example.com), or a folder that
'reckoner checkpoint publish FOLDER' wrote. The witness compares the log's last
checkpoint with the last one that it saw, keeps the new one in STATE, and prints
its own signature. Give the printed note to the operator, who records it. The
witness sees the number of facts and a hash, never a fact. Exit status 3: the
log does not continue what was seen before. Keep STATE, and ask the operator.`;

export const define: Definition = (command, action) => {
  command
    .argument('<source>', 'the server, or a folder with published checkpoints')
    .requiredOption('--log <key>', "the log's verifier key, NAME+ID+KEY, or a file with it")
    .requiredOption('--state <file>', 'where this witness keeps what it saw')
    .requiredOption('--name <name>', 'the name of this witness, such as audit.example.org/witness')
    .requiredOption('--key <file>', "this witness's private key (Ed25519, PEM)")
    .addHelpText('after', HELP)
    .action(action(witness));
};

type WitnessOptions = Readonly<{
  log: string;
  state: string;
  name: string;
  key: string;
}>;

async function witness(output: Output, source: string, { log, state, name, key: file }: WitnessOptions) {
  const logKey = logKeyOf('--log', log);
  const own = readLogKey({ WITNESS_KEY_FILE: file }, 'WITNESS_KEY');
  if (own === undefined) throw refuse('file_unreadable', { file, reason: 'it is empty' });
  const key = {
    name,
    publicKey: createPublicKey(own.privateKey).export({ format: 'der', type: 'spki' }).subarray(-32),
  };
  const before = readState(state);
  const head = acceptCheckpoint(await fetchProof(source, before?.size ?? 0), { head: before, key: logKey });
  // The checkpoint is stored before the signature is sent, so that this witness never signs two different histories.
  await writeWhole(state, noteOf(head, []), 'replace');
  const line = cosignHead(head, key, own.privateKey, Math.floor(DateTime.now().toSeconds()));
  const vkey = witnessKeyOf(key);
  output.print({ ...head, root: head.root.toString('base64'), line, vkey }, () =>
    [
      before === undefined
        ? `Seen for the first time: ${head.origin}, ${plural(head.size, 'fact')}.`
        : `${head.origin} continues what was seen: ${counted(before.size)} facts then, ${counted(head.size)} now.`,
      noteOf(head, [line]).trimEnd(),
      `This witness: ${vkey}`,
    ].join('\n'),
  );
  return EXIT.done;
}

function readState(file: string) {
  try {
    return readNoteFile(file).head;
  } catch (error) {
    if (codeOf((error as Error).cause) === 'ENOENT') return undefined;
    throw error;
  }
}

async function fetchProof(source: string, old: number) {
  if (!/^https?:\/\//.test(source)) {
    const file = join(source, `from-${old}`);
    const first = join(source, 'from-0');
    if (existsSync(file) || !existsSync(first)) return readInput(file).toString();
    const last =
      readNote(
        readInput(first)
          .toString()
          .replace(/^old 0\n\n/, ''),
      )?.head.size ?? null;
    throw refuse('checkpoint_unknown', { size: old, last });
  }
  const url = new URL(`/log/checkpoint?old=${old}`, source);
  const answer = await fetch(url, { signal: AbortSignal.timeout(30_000), redirect: 'error' }).catch(
    (error: unknown) => {
      throw refuse('file_unreadable', { file: url.href, reason: reasonOf(error) }, error);
    },
  );
  const text = await answer.text();
  if (answer.ok) return text;
  if (answer.status < 500 && answer.status !== 429) throw refuse('checkpoint_unknown', { size: old, last: null });
  throw refuse('file_unreadable', { file: url.href, reason: `it answered ${answer.status}` });
}
