/**
 * Checkpoints of the log. A daily checkpoint is taken behind a fence (fence.ts), and blocks no writer. The close of a
 * month takes a checkpoint in its own transaction, after the facts that state what was closed. The close of a month's
 * books does the same.
 */
import { DateTime } from 'luxon';
import { todayOf } from '#config/today';
import { Database } from '#database/database';
import { raiseWorkMemory, Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { dropDoubledRows, findDoubledRows } from '#ledger/doubles.sql';
import { dropLines, keepLines, readLines, readUntiedRows } from '#ledger/running-lines.sql';
import { Month } from '#month';
import { ActorContext, Installation } from '#people/audit-events';
import { counted } from '#text';
import {
  Checkpoint,
  Closes,
  deletePartnerEdges,
  insertCheckpoint,
  insertMonthPartners,
  lockLog,
  PartnerEdge,
  readLastCheckpoint,
  readLastNumber,
  readOrigin,
  readPartnerEdges,
  recordMonthZones,
  savePartnerEdges,
} from './checkpoints.sql.ts';
import { awaitCut, readCut } from './fence.ts';
import { refuseFork } from './head.ts';
import { PostedMonths, readLeaves, readRowLeaves } from './lines.sql.ts';
import { LeafRange } from './tree.ts';

/** The leaves since the last checkpoint, as they are read. */
class NewLeaves {
  readonly span: LeafRange;
  readonly facts = new LeafRange();
  /**
   * The rows of each partner, by posting month, partner, currency and arrangement. Only keys with new rows are present.
   */
  readonly partners = new Map<string, LeafRange>();
  private readonly edges: ReadonlyMap<string, PartnerEdge>;
  readonly previous: Checkpoint | undefined;
  /** The last log number of the previous checkpoint. */
  readonly covered: number;
  private at: number;
  private last = 0;

  private constructor(previous: Checkpoint | undefined, edges: readonly PartnerEdge[]) {
    this.previous = previous;
    this.edges = new Map(edges.map((edge) => [edge.key, edge]));
    this.span = new LeafRange(previous?.size ?? 0);
    this.covered = previous?.last_no ?? 0;
    this.at = this.covered;
  }

  static async begin(tx: Transaction) {
    return new NewLeaves(await readLastCheckpoint(tx), await readPartnerEdges(tx));
  }

  async readTo(tx: Transaction, to: number) {
    await readLeaves(
      tx,
      { after: this.at, to },
      {
        onFact: (number, content, from) => {
          this.span.add(content, from);
          this.facts.add(content, from);
          this.last = number;
        },
        onRow: (number, content, from, _, key) => {
          this.span.add(content, from);
          this.rowsOf(key).add(content, from);
          this.last = number;
        },
      },
    );
    this.at = Math.max(this.at, to);
  }

  private rowsOf(key: string) {
    let rows = this.partners.get(key);
    if (rows === undefined) {
      const before = this.edges.get(key);
      rows = before === undefined ? new LeafRange() : LeafRange.read(0, before.entries, before.edge);
      this.partners.set(key, rows);
    }
    return rows;
  }

  /** The tree over all rows of each partner so far, by the key of `partners`. */
  *everyPartner(): Generator<readonly [string, LeafRange]> {
    for (const key of new Set([...this.edges.keys(), ...this.partners.keys()])) yield [key, this.rowsOf(key)];
  }

  readNewLines(tx: Transaction) {
    return readLines(tx, { after: this.covered, to: this.at });
  }

  partnerEdges(): PartnerEdge[] {
    return [...this.partners].map(([key, rows]) => ({ key, entries: rows.leaves, edge: rows.bytes() }));
  }

  checkpoint(origin: string, takenAt: string, closes: Closes | null): Checkpoint {
    const { previous, span } = this;
    const all = previous === undefined ? new LeafRange() : LeafRange.read(0, previous.size, previous.edge);
    all.append(span);
    return {
      ...{ size: all.to, origin, last_no: this.last, root: all.root(), edge: all.bytes(), span: span.bytes() },
      ...{ taken_at: takenAt, closes, facts_root: this.facts.root() },
    };
  }
}

/** How long a checkpoint waits for transactions that are recording facts. */
const PATIENCE_MILLISECONDS = 30_000;

/**
 * Takes a checkpoint of all committed facts. Returns undefined if no fact was recorded since the last checkpoint, or if
 * another process has just taken a checkpoint. Throws the refusal `log_behind` if a transaction that is recording facts
 * does not end.
 */
export async function takeCheckpoint(database: Database, context: Installation, patience = PATIENCE_MILLISECONDS) {
  const recordZones = () =>
    database.transaction(async (tx) => recordMonthZones(tx, { after: (await readLastCheckpoint(tx))?.last_no ?? 0 }));
  await database.transaction(async (tx) => {
    await refuseFork(tx, context);
    await refuseEarlier(context, await readLastCheckpoint(tx));
  });
  await recordZones();
  const cut = await database.transaction(readCut);
  failpoint('checkpoint.cut');
  if (!(await awaitCut(database, cut, Date.now() + patience))) {
    throw refuse('log_behind', { seconds: patience / 1000, transactions: cut.recorders });
  }
  // Zones of rows that were committed during the fence. The next checkpoint covers the facts that record these zones.
  await recordZones();
  const read = await database.reading(async (tx) => {
    await raiseWorkMemory(tx);
    const leaves = await NewLeaves.begin(tx);
    await refuseUntied(tx, leaves.covered);
    await leaves.readTo(tx, cut.to);
    return { leaves, lines: await leaves.readNewLines(tx), origin: await readOrigin(tx) };
  });
  if (read.leaves.span.leaves === 0) return undefined;
  failpoint('checkpoint.read');
  const range = { after: read.leaves.previous?.last_no ?? 0, to: cut.to };
  await database.transaction((tx) => findDoubledRows(tx, range));
  const taken = await database.transaction(async (tx) => {
    await lockLog(tx);
    if ((await readLastCheckpoint(tx))?.size !== read.leaves.previous?.size) return undefined;
    const checkpoint = read.leaves.checkpoint(read.origin, context.environment.now().toISO(), null);
    await insertCheckpoint(tx, checkpoint);
    await savePartnerEdges(tx, read.leaves.partnerEdges());
    await keepLines(tx, { lines: read.lines });
    failpoint('checkpoint.recorded');
    return checkpoint;
  });
  failpoint('checkpoint.committed');
  return taken;
}

/**
 * Ends the transaction of a month's close: records the root of each partner's rows and a checkpoint. The caller holds
 * the lock on the whole ledger, and has recorded the closed month and its totals. `previous` is the last month that was
 * closed before.
 */
export async function checkpointMonth(
  tx: Transaction,
  context: Installation,
  { month, previous, now }: Readonly<{ month: Month; previous: Month | null; now: string }>,
) {
  const leaves = await beginClose(tx, context);
  await leaves.readTo(tx, await readLastNumber(tx));
  const roots = await partnerRoots(tx, leaves, { after: previous ?? '', to: month });
  const rows = { month, previous, covered: leaves.covered, partnerIds: null };
  await insertMonthPartners(tx, { ...rows, keys: [...roots.keys()], roots: [...roots.values()] });
  const checkpoint = await endWith(tx, leaves, now, `month ${month}`);
  await deletePartnerEdges(tx, { month });
  await dropLines(tx, { month });
  await dropDoubledRows(tx, { month });
  return checkpoint;
}

/** Ends the transaction that closes a month's books. The caller holds the lock on the whole ledger. */
export async function checkpointBooks(
  tx: Transaction,
  context: Installation,
  { month, now }: Readonly<{ month: Month; now: string }>,
) {
  return endWith(tx, await beginClose(tx, context), now, `books ${month}`);
}

async function beginClose(tx: Transaction, context: Installation) {
  await refuseFork(tx, context);
  const leaves = await NewLeaves.begin(tx);
  await refuseEarlier(context, leaves.previous);
  await recordMonthZones(tx, { after: leaves.covered });
  return leaves;
}

async function endWith(tx: Transaction, leaves: NewLeaves, now: string, closes: Closes) {
  await leaves.readTo(tx, await readLastNumber(tx));
  await lockLog(tx);
  const checkpoint = leaves.checkpoint(await readOrigin(tx), now, closes);
  await insertCheckpoint(tx, checkpoint);
  await savePartnerEdges(tx, leaves.partnerEdges());
  await keepLines(tx, { lines: await leaves.readNewLines(tx) });
  return checkpoint;
}

async function partnerRoots(tx: Transaction, leaves: NewLeaves, months: PostedMonths) {
  const trees = new Map<string, LeafRange>();
  let isOneMonth = true;
  for (const [key, rows] of leaves.everyPartner()) {
    const [month = '', ...partner] = key.split('\t');
    if (month > months.to || month <= months.after) continue;
    isOneMonth &&= month === months.to;
    trees.set(partner.join('\t'), rows);
  }
  // The first close may bill rows of several months, which were recorded in any order.
  if (!isOneMonth) {
    trees.clear();
    await readRowLeaves(tx, { months: [months] }, (_, content, from, __, key) => {
      const partner = key.slice(key.indexOf('\t') + 1);
      const rows = trees.get(partner) ?? new LeafRange();
      trees.set(partner, rows);
      rows.add(content, from);
    });
  }
  return new Map([...trees].map(([partner, rows]) => [partner, rows.root().toString('base64')]));
}

/**
 * Refuses a checkpoint or a close while the rows of an open month are not those of their receipts (`covered`: the last
 * log number of the last checkpoint).
 */
export async function refuseUntied(tx: Transaction, covered: number) {
  const untied = await readUntiedRows(tx, { covered });
  if (untied.length > 0) throw refuse('ledger_incomplete', { untied });
}

function dayOf({ taken_at }: Checkpoint, { settings }: Installation) {
  return DateTime.fromISO(taken_at, { zone: settings.time_zone }).toFormat('yyyy-MM-dd');
}

async function refuseEarlier(context: Installation, last: Checkpoint | undefined) {
  const [today, latest] = [todayOf(context), last && dayOf(last, context)];
  if (last === undefined || latest === undefined || today >= latest) return;
  throw refuse('clock_behind', {
    today,
    latest,
    number: `the checkpoint of ${counted(last.size)} facts`,
    action: 'taken',
  });
}

/** Takes the checkpoint of the day unless it was already taken. */
export async function takeDueCheckpoint(database: Database, context: ActorContext) {
  const last = await database.reading(readLastCheckpoint);
  return last && dayOf(last, context) >= todayOf(context) ? undefined : takeCheckpoint(database, context);
}
