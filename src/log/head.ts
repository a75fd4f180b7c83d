/**
 * The last checkpoint known outside the database. Each run writes the checkpoint to RECKONER_HOME/log-head. The auditor
 * and the witnesses hold copies, too. After a restore, a point-in-time recovery or a promotion, the database may be
 * behind this checkpoint. A log must never sign two histories under one name, so no checkpoint is taken until `resume`
 * has recorded what was lost.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Environment } from '#config/environment';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { unless, writeWhole } from '#files';
import { Installation } from '#people/audit-events';
import {
  Checkpoint,
  insertContinuation,
  readCheckpoints,
  readLastCheckpoint,
  readLastNumber,
  readOrigin,
} from './checkpoints.sql.ts';
import { readLeaves } from './lines.sql.ts';
import { Note, readNote, TreeHead } from './note.ts';
import { readNoteOf } from './signatures.sql.ts';
import { LeafRange } from './tree.ts';

const fileOf = ({ home }: Pick<Environment, 'home'>) => join(home, 'log-head');

/** The checkpoint in RECKONER_HOME, or undefined if there is none. */
export function readHead(environment: Pick<Environment, 'home'>): Note | undefined {
  try {
    return readNote(readFileSync(fileOf(environment), 'utf8'));
  } catch (error) {
    return unless('ENOENT')(error as NodeJS.ErrnoException);
  }
}

/** Writes the last checkpoint to RECKONER_HOME, unless the checkpoint in that folder covers a larger log. */
export async function keepHead(tx: Transaction, environment: Pick<Environment, 'home'>) {
  const last = await readLastCheckpoint(tx);
  const kept = readHead(environment)?.head;
  if (last === undefined || (kept?.origin === last.origin && kept.size > last.size)) return;
  await writeWhole(fileOf(environment), await readNoteOf(tx, last), 'replace');
}

/** The leaves of a checkpoint, and those after it up to a log number, but not more than `most`. */
export async function readTree(
  tx: Transaction,
  checkpoint: Checkpoint | undefined,
  to: number,
  most = Number.POSITIVE_INFINITY,
) {
  const tree = checkpoint === undefined ? new LeafRange() : LeafRange.read(0, checkpoint.size, checkpoint.edge);
  const add = (_: number, content: Buffer, from: number) => {
    if (tree.to < most) tree.add(content, from);
  };
  if (tree.to < most) await readLeaves(tx, { after: checkpoint?.last_no ?? 0, to }, { onFact: add, onRow: add });
  return tree;
}

/** Whether this log begins with the leaves that a checkpoint covers. */
export async function continues(tx: Transaction, { size, root }: TreeHead) {
  const checkpoints = await readCheckpoints(tx);
  const before = checkpoints.findLast((each) => each.size <= size);
  const tree = await readTree(tx, before, await readLastNumber(tx), size);
  return tree.to === size && tree.root().equals(root);
}

/** Refuses to continue a log that is behind the checkpoint in RECKONER_HOME or contradicts it. */
export async function refuseFork(tx: Transaction, { environment }: Pick<Installation, 'environment'>) {
  const head = readHead(environment)?.head;
  if (head === undefined || head.origin !== (await readOrigin(tx))) return;
  const last = await readLastCheckpoint(tx);
  if (last?.size === head.size ? last.root.equals(head.root) : await continues(tx, head)) return;
  throw refuse('log_forked', { origin: head.origin, seen: head.size, here: last?.size ?? 0 });
}

/** A log that succeeds this log, with the size that was lost and the size that remains. */
export type Continuation = Readonly<{
  origin: string;
  follows: string;
  lost_size: number;
  kept_size: number;
}>;

/**
 * Begins a successor log if this log does not continue a checkpoint that was seen outside the database. Returns
 * undefined if this log continues the checkpoint. Refuses a checkpoint of a different ledger.
 */
export async function continueLog(
  tx: Transaction,
  seen: TreeHead,
  given: Readonly<{ reason: string; now: string; eventId: number }>,
): Promise<Continuation | undefined> {
  const origin = await readOrigin(tx);
  if (seen.origin !== origin) throw refuse('checkpoint_of_other_log', { origin: seen.origin, own: origin });
  if (await continues(tx, seen)) return undefined;
  const [, base = origin, number = '1'] = /^(.+\/[0-9a-f]{12})(?:\/(\d+))?$/.exec(origin) ?? [];
  const kept = (await readCheckpoints(tx)).findLast((each) => each.size <= seen.size);
  const continuation = {
    ...{ origin: `${base}/${Number(number) + 1}`, follows: origin, lost_size: seen.size, kept_size: kept?.size ?? 0 },
  };
  await insertContinuation(tx, { ...continuation, ...given, lost_root: seen.root.toString('base64') });
  return continuation;
}
