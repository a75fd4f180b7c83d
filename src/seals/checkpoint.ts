/**
 * Checkpoints of the open month: each seals the rows and facts recorded since the previous one, once a day with the
 * setting `checkpoints`. The seal of a checkpoint is the SHA-256 of its record (docs/pack-format.md). The month's seal
 * covers it as a fact. Refusals: clock_behind, signing_key_missing.
 */

import { DateTime } from 'luxon';
import type { Database } from '../database/database.ts';
import { readInstallation } from '../database/installation.sql.ts';
import { lockLedgerWhole } from '../database/ledger-lock.ts';
import { raiseWorkMemory, type Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import { failpoint } from '../failpoint.ts';
import type { Month } from '../month.ts';
import { type ActorContext, type Installation, recordEvent } from '../people/audit-events.ts';
import { type Range, ROW_COLUMNS } from './canonical.ts';
import { hashFactsOf } from './ranges.ts';
import {
  type CheckpointRange,
  hashCheckpoint,
  hashEverything,
  hashMonth,
  type RowsOfCheckpoint,
  type TreeSummary,
} from './rows.ts';
import { instant, sealOf } from './seal.ts';
import {
  type Checkpoint,
  type ClosedMonth,
  insertCheckpoint,
  readCheckpoints,
  readFirstEvent,
  readLastCheckpoint,
  readLastEntry,
  readLastEvent,
  readLastFact,
  readSeals,
} from './seals.sql.ts';
import { signSeal } from './signature.ts';

/** The version in the first line of a record of a checkpoint. */
const CHECKPOINT_FORM = 1;

/** The day of an instant in the issuer's time zone, `YYYY-MM-DD`. */
const dayOf = (at: string, { settings }: Pick<ActorContext, 'settings'>): string =>
  DateTime.fromISO(at).setZone(settings.time_zone).toFormat('yyyy-MM-dd');

/**
 * The day of the last checkpoint (null before the first), and whether the next one is due. The settings require one
 * each day.
 */
async function readCheckpointDay(
  tx: Transaction,
  context: Installation,
): Promise<{ readonly last: string | null; readonly today: string; readonly due: boolean }> {
  const checkpoint = await readLastCheckpoint(tx);
  const last = checkpoint === undefined ? null : dayOf(checkpoint.taken_at, context);
  const today = dayOf(context.environment.now().toISO(), context);
  return { last, today, due: context.settings.checkpoints === 'daily' && (last === null || last < today) };
}

/** For the status. Before the first checkpoint, days are counted from the first event. */
export async function readCheckpointStatus(
  tx: Transaction,
  context: Installation,
): Promise<{ readonly last: string | null; readonly overdue_days: number }> {
  const { last, today, due } = await readCheckpointDay(tx, context);
  const first = last === null ? await readFirstEvent(tx) : undefined;
  const since = last ?? (first && dayOf(first.occurred_at, context));
  if (!due || since === undefined) return { last, overdue_days: 0 };
  const days = DateTime.fromISO(today).diff(DateTime.fromISO(since), 'days').days;
  return { last, overdue_days: Math.max(0, Math.round(days) - 1) };
}

/** Takes the day's checkpoint if it is due. If several processes run at once, one takes it. */
export async function takeDueCheckpoint(database: Database, context: ActorContext): Promise<Checkpoint | undefined> {
  // Read without the ledger's lock first, so that a run with nothing to do blocks no writer.
  if (!(await database.reading((tx) => readCheckpointDay(tx, context))).due) return undefined;
  const taken = await database.transaction(async (tx) => {
    await lockLedgerWhole(tx);
    return (await readCheckpointDay(tx, context)).due ? takeCheckpoint(tx, context) : undefined;
  });
  failpoint('checkpoint.committed');
  return taken;
}

/** Takes a checkpoint now. */
export async function takeCheckpoint(tx: Transaction, context: ActorContext): Promise<Checkpoint> {
  await lockLedgerWhole(tx);
  await raiseWorkMemory(tx);
  failpoint('checkpoint.locked');
  const previous = await readLastCheckpoint(tx);
  await refuseEarlier(tx, context, previous);
  const now = context.environment.now().toISO();
  const checkpoint_number = (previous?.checkpoint_number ?? 0) + 1;
  const event = { action: 'checkpoint.take', subject: String(checkpoint_number), details: {}, now };
  const eventId = await recordEvent(tx, context.actor, event);
  const taken = {
    checkpoint_number,
    previous: previous?.checkpoint_number ?? null,
    facts_to: await readLastFact(tx),
    entries_to: await readLastEntry(tx),
    taken_at: now,
  };
  const seals = await readSeals(tx);
  const place = placeOf(seals, taken, previous);
  const closedBefore = previous === undefined ? '' : (sealedBefore(seals, previous)?.month ?? '');
  const rows = await hashCheckpoint(tx, entriesOf(place), previous, closedBefore);
  const [record = ''] = await writeRecords(tx, [{ ...place, rows }]);
  const checkpoint = { ...taken, trees: rows.trees, record, seal: sealOf(record) };
  await insertCheckpoint(tx, { ...checkpoint, eventId });
  const { seal } = checkpoint;
  await signSeal(tx, context, { kind: 'checkpoint', name: String(checkpoint_number), record, seal, eventId, now });
  failpoint('checkpoint.recorded');
  return checkpoint;
}

/** Refuses a checkpoint dated before the last checkpoint or the last event. */
async function refuseEarlier(tx: Transaction, context: Installation, previous: Checkpoint | undefined): Promise<void> {
  const now = context.environment.now();
  const today = dayOf(now.toISO(), context);
  if (previous !== undefined && now < DateTime.fromISO(previous.taken_at)) {
    const number = `checkpoint ${previous.checkpoint_number}`;
    throw refuse('clock_behind', { today, latest: dayOf(previous.taken_at, context), number, action: 'taken' });
  }
  const event = await readLastEvent(tx);
  if (event === undefined || today >= dayOf(event.occurred_at, context)) return;
  const facts = { number: `event ${event.event_id} (${event.action})`, action: 'recorded' };
  throw refuse('clock_behind', { today, latest: dayOf(event.occurred_at, context), ...facts });
}

type CheckpointFacts = Omit<Checkpoint, 'trees' | 'record' | 'seal'>;

/** The last month that had been closed when a checkpoint was taken. */
const sealedBefore = (
  seals: readonly ClosedMonth[],
  { facts_to }: Pick<CheckpointFacts, 'facts_to'>,
): ClosedMonth | undefined => seals.findLast((each) => each.facts_to != null && each.facts_to < facts_to);

/** A checkpoint's place in the sequence of seals: the previous seal, and what the checkpoint covers. */
interface Place {
  readonly taken: CheckpointFacts & { readonly seal?: string };
  readonly previous: Checkpoint | undefined;
  readonly sealed: ClosedMonth | undefined;
  readonly entries: Range;
  readonly facts: Range;
}

function placeOf(seals: readonly ClosedMonth[], taken: Place['taken'], previous: Checkpoint | undefined): Place {
  const sealed = sealedBefore(seals, taken);
  return {
    ...{ taken, previous, sealed },
    entries: { after: previous?.entries_to ?? 0, to: taken.entries_to },
    facts: { after: Math.max(sealed?.facts_to ?? 0, previous?.facts_to ?? 0), to: taken.facts_to },
  };
}

const entriesOf = ({ entries, sealed }: Place): CheckpointRange => ({ ...entries, closed: sealed?.month ?? '' });

/** The records of consecutive checkpoints, from current data. */
async function writeRecords(
  tx: Transaction,
  checkpoints: readonly (Place & { readonly rows: Pick<RowsOfCheckpoint, 'rows'> })[],
): Promise<string[]> {
  const { installation_id, environment } = await readInstallation(tx);
  const facts = await hashFactsOf(
    tx,
    checkpoints.map((each) => each.facts),
  );
  return checkpoints.map(({ taken, previous, sealed, rows: { rows }, ...of }, at) => {
    const lines = [
      `reckoner checkpoint ${CHECKPOINT_FORM}`,
      `installation ${installation_id} ${environment}`,
      `checkpoint ${taken.checkpoint_number}`,
      `previous ${previous === undefined ? 'none' : `${previous.checkpoint_number} ${previous.seal}`}`,
      `sealed_after ${sealed === undefined ? 'none' : `${sealed.month} ${sealed.seal}`}`,
      `taken_at ${instant(taken.taken_at)}`,
      `entries ${rangeOf(of.entries)}`,
      `rows_columns ${ROW_COLUMNS.join(' ')}`,
      ...listOf('rows', rows),
      `facts ${rangeOf(of.facts)}`,
      ...listOf('facts_of', facts[at]),
    ];
    return lines.map((line) => `${line}\n`).join('');
  });
}

const rangeOf = ({ after, to }: Range): string => `${after + 1} to ${to}`;

const listOf = (word: string, found: ReadonlyMap<string, TreeSummary> = new Map()): string[] =>
  [...found].map(([name, { count, root }]) => `${word} ${name} ${count} ${root}`).sort();

// --- Verification -----------------------------------------------------------------------------------------------------

/** The rows of closed months and of checkpoints, rehashed from current data. */
export interface HashedAgain {
  readonly months: ReadonlyMap<Month, TreeSummary>;
  readonly checkpoints: readonly (Place & { readonly taken: Checkpoint; readonly rows: RowsOfCheckpoint })[];
}

/** Hashes each row once, either for everything or for one closed month and the checkpoints taken while it was open. */
export async function hashAgain(tx: Transaction, only: Month | null): Promise<HashedAgain> {
  const seals = await readSeals(tx);
  const at = seals.findIndex(({ month }) => month === only);
  const facts = { after: seals[at - 1]?.facts_to ?? 0, to: seals[at]?.facts_to ?? Number.MAX_SAFE_INTEGER };
  const all = await readCheckpoints(tx);
  const places = all
    .map((taken, index) => ({ ...placeOf(seals, taken, all[index - 1]), taken }))
    .filter(({ taken: { facts_to } }) => facts_to > facts.after && facts_to <= facts.to);
  const months = seals
    .filter(({ month }) => only === null || month === only)
    .map(({ month, closed_after }) => ({ after: closed_after ?? '', to: month }));
  const ranges = places.map(entriesOf);
  const [month] = months;
  const { checkpoints, ...hashed } =
    only === null || month === undefined
      ? await hashEverything(tx, months, ranges)
      : await hashMonth(tx, month, ranges, places[0]?.previous);
  return {
    ...hashed,
    checkpoints: places.map((place, index) => ({ ...place, rows: checkpoints[index] as RowsOfCheckpoint })),
  };
}

/** A checkpoint with its record and trees recomputed, using the stored seal of the previous one. */
interface RecomputedCheckpoint {
  readonly checkpoint: Checkpoint;
  readonly record: string;
  readonly trees: Checkpoint['trees'];
}

export async function recomputeCheckpoints(
  tx: Transaction,
  { checkpoints }: Pick<HashedAgain, 'checkpoints'>,
): Promise<RecomputedCheckpoint[]> {
  const records = await writeRecords(tx, checkpoints);
  return checkpoints.map(({ taken: checkpoint, rows: { trees } }, at) => ({
    ...{ checkpoint, trees },
    record: records[at] ?? '',
  }));
}
