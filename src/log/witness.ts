/**
 * Witnesses are others who see checkpoints but no facts. A witness cosigns a checkpoint that continues the checkpoints
 * that the witness saw before. If a log shows different histories to two witnesses, they find out when they compare
 * their checkpoints.
 */
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { readCheckpointOf, readCheckpoints } from './checkpoints.sql.ts';
import { isSignedBy, NoteKey, readKey, readNote, TreeHead } from './note.ts';
import { insertSignatures, readNoteOf } from './signatures.sql.ts';
import { consistencyProof, hashLines, isConsistent, knownNodes } from './tree.ts';

/**
 * Reads the log once, and returns a function that writes the last checkpoint with the proof that it continues the
 * checkpoint of `old` facts. This is the body of the request add-checkpoint of https://c2sp.org/tlog-witness. `old` is
 * 0 for a witness that has seen no checkpoint. The function refuses `old` if no checkpoint has this size.
 */
export async function readProver(
  tx: Transaction,
): Promise<Readonly<{ sizes: readonly number[]; proofFrom: (old: number) => string }>> {
  const checkpoints = await readCheckpoints(tx);
  const last = checkpoints.at(-1);
  if (last === undefined) throw refuse('no_checkpoint', {});
  const known = knownNodes(checkpoints);
  const note = await readNoteOf(tx, last);
  const sizes = checkpoints.map(({ size }) => size);
  const proofFrom = (old: number) => {
    if (old !== 0 && !sizes.includes(old)) throw refuse('checkpoint_unknown', { size: old, last: last.size });
    const proof = old === 0 ? [] : consistencyProof(known, old, last.size);
    return `old ${old}\n${hashLines(proof)}\n${note}`;
  };
  return { sizes, proofFrom };
}

/** The data that a witness keeps of a log: the last checkpoint that the witness cosigned, and the log's public key. */
export interface Seen {
  readonly head: TreeHead | undefined;
  readonly key: NoteKey;
}

/**
 * Reads a checkpoint with its proof, and returns the checkpoint for the witness to keep. Throws a refusal if the log
 * did not sign the checkpoint, or if the checkpoint does not continue the one that the witness kept before.
 */
export function acceptCheckpoint(text: string, { head: before, key }: Seen): TreeHead {
  const [, old = '', hashes = '', rest = ''] =
    /^old (0|[1-9]\d{0,14})\n((?:[A-Za-z0-9+/]{43}=\n)*)\n([\s\S]*)$/.exec(text) ?? [];
  const note = readNote(rest);
  if (old === '' || note === undefined) throw refuse('checkpoint_unreadable', { file: 'The answer of the log' });
  const { head, lines } = note;
  if (head.origin !== key.name || !isSignedBy(head, lines, key)) {
    throw refuse('checkpoint_not_signed', { origin: head.origin, size: head.size, key: key.name });
  }
  if (before === undefined) return head;
  const proof = hashes
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => Buffer.from(line, 'base64'));
  const isKnown = Number(old) === before.size;
  if (
    head.origin === before.origin &&
    isKnown &&
    isConsistent([before.size, before.root], [head.size, head.root], proof)
  )
    return head;
  throw refuse('log_inconsistent', { origin: head.origin, seen: before.size, size: head.size });
}

/**
 * Records cosignature lines of witnesses that the settings name, each with the checkpoint that it signs. Returns the
 * number of recorded lines. Refuses a line of an unknown witness.
 */
export async function recordCosignatures(
  tx: Transaction,
  given: Readonly<{
    size: number;
    lines: readonly string[];
    witnesses: readonly string[];
    now: string;
  }>,
) {
  const [head] = await readCheckpointOf(tx, { size: given.size });
  if (head === undefined) throw refuse('checkpoint_unknown', { size: given.size, last: null });
  const keys = given.witnesses.flatMap((text) => readKey(text) ?? []);
  const signatures = given.lines.map((line) => {
    const key = keys.find((each) => each.isWitness && isSignedBy(head, [line], each));
    if (key === undefined) throw refuse('witness_unknown', { line });
    return { size: given.size, key_name: key.name, line };
  });
  return insertSignatures(tx, signatures, given.now);
}
