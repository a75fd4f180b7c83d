/** The log in a pack: its leaves, its checkpoints and their proofs (docs/log-format.md). */
import { readFile } from 'node:fs/promises';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { Checkpoint, readCheckpoints } from '#log/checkpoints.sql';
import { copyLines } from '#log/lines.sql';
import { noteOf, vkeyOf } from '#log/note';
import { noteKeyOf, readLatestKey, readSignatureLines, readStamps } from '#log/signatures.sql';
import { consistencyProof, hashLines, knownNodes, LeafRange } from '#log/tree';
import { Month } from '#month';
import { CHECKS_SQL } from '#package';
import { readFirstRow } from './exports.sql.ts';
import { Pack } from './pack.ts';

/** The leaves of a pack: from one checkpoint (if none is given, from the first leaf) to another checkpoint. */
export type LogOfPack = Readonly<{
  origin: string;
  from: Checkpoint | undefined;
  to: Checkpoint;
  /** All checkpoints. */
  checkpoints: readonly Checkpoint[];
}>;

const closeOf = (checkpoints: readonly Checkpoint[], what: 'month' | 'books', month: Month) =>
  checkpoints.find(({ closes }) => closes === `${what} ${month}`);

/**
 * The leaves that concern a range of months. They begin at the last checkpoint that precedes both the first row of
 * these months and the close of the month before. They end where the books of the last month were closed. While these
 * books are open, the leaves end at the last checkpoint. Refuses a ledger without a checkpoint.
 */
export async function chooseLeaves(
  tx: Transaction,
  { to, previous }: Readonly<{ to: Month; previous: Month | null }>,
): Promise<LogOfPack> {
  const checkpoints = await readCheckpoints(tx);
  const last = checkpoints.at(-1);
  if (last === undefined) throw refuse('no_checkpoint', {});
  const end = closeOf(checkpoints, 'books', to) ?? last;
  const before = previous === null ? undefined : closeOf(checkpoints, 'month', previous);
  const row = await readFirstRow(tx, { to, previous });
  const first = Math.min(row ?? Number.POSITIVE_INFINITY, (before?.last_no ?? 0) + 1);
  const begin = before && checkpoints.findLast(({ last_no }) => last_no < first);
  return { origin: end.origin, from: begin, to: end, checkpoints };
}

/**
 * Writes `log.tsv`, the checkpoints, the edge and the proofs that a pack needs, and the rules. Passes each piece of
 * `log.tsv` to `onPiece`, too.
 */
export async function writeLog(
  tx: Transaction,
  pack: Pack,
  { from, to, checkpoints }: LogOfPack,
  onPiece: (piece: Buffer) => Promise<void> | void,
) {
  const write = async (name: string, content: string | Buffer, rows: number) => {
    const file = await pack.file(name);
    await file.write(content);
    await file.end({ rows });
  };
  const log = await pack.file('log.tsv');
  await copyLines(tx, { after: from?.last_no ?? 0, to: to.last_no }, async (piece) => {
    await log.write(piece);
    await onPiece(piece);
  });
  await log.end({ rows: to.size - (from?.size ?? 0) });

  const own = checkpoints.filter(({ size }) => size >= (from?.size ?? 0) && size <= to.size);
  const sizes = own.map(({ size }) => size);
  const [lines, stamps] = [await readSignatureLines(tx, sizes), await readStamps(tx, sizes)];
  for (const each of own) {
    await write(`checkpoints/${each.size}`, noteOf(each, lines.get(each.size) ?? []), 1);
    const stamp = stamps.get(each.size);
    if (stamp !== undefined) await write(`checkpoints/${each.size}.tsr`, stamp, 1);
  }
  if (from !== undefined) {
    const edge = LeafRange.read(0, from.size, from.edge).hashes();
    await write('edge', `${from.size}\n${hashLines(edge)}`, edge.length);
    for (const [size, proof] of proofsTo(checkpoints, from)) {
      await write(`consistency/${size}`, hashLines(proof), proof.length);
    }
  }
  const key = await readLatestKey(tx);
  if (key !== undefined) await write('vkey', `${vkeyOf({ ...noteKeyOf(key), name: to.origin })}\n`, 1);
  await write('checks.sql', await readFile(CHECKS_SQL), 0);
}

/** The proofs that the log at a checkpoint continues the closes of earlier months. */
function* proofsTo(checkpoints: readonly Checkpoint[], to: Checkpoint): Generator<readonly [number, Buffer[]]> {
  const known = knownNodes(checkpoints);
  for (const { size, closes } of checkpoints) {
    if (size >= to.size || closes === null || !closes.startsWith('month ')) continue;
    yield [size, consistencyProof(known, size, to.size)];
  }
}
