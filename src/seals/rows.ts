/**
 * Merkle trees over ledger rows, in ledger order. The database hashes the leaves; this process hashes the nodes above
 * them.
 *
 * A month is hashed incrementally: each checkpoint stores the tree so far of every open month, which is a few hashes.
 * The close continues the tree of the last checkpoint with the rows since. Verification does not rely on this: it
 * hashes all rows again and compares the result with the stored trees.
 */
import { copyBinary } from '../database/copy.ts';
import { execute, type Transaction } from '../database/transaction.ts';
import type { Month } from '../month.ts';
import { copyLeafHashes, type PostedMonths, postedIn, type Range, recordedIn } from './canonical.ts';
import { MerkleTree, type TreeSoFar } from './merkle.ts';
import { type Checkpoint, readLastCheckpoint } from './seals.sql.ts';

/** How many items there are, and the root over them. */
export interface TreeSummary {
  readonly count: number;
  readonly root: string;
}

export const hashed = (tree: MerkleTree, headers = 0): TreeSummary => ({
  count: tree.leaves - headers,
  root: tree.finish().root.toString('hex'),
});

// A row of COPY's binary format: the number of fields (2 bytes), and each field after its length (4).
const FIELDS = 2;
const LENGTH = 4;
const ENTRY_ID = 8;
const HASH = 32;

/** The posting months that a closed month bills. */
type ClosedMonths = PostedMonths & { readonly to: Month };

/** Takes the leaf of one row: 32 bytes of `content` from `at`. */
type TakeLeaf = (entryId: number, postedMonth: string, content: Buffer, at: number) => void;

async function readLeaves(tx: Transaction, rows: string, take: TakeLeaf): Promise<void> {
  // The planner underestimates hashing: without this it uses one process and takes 3.1 s instead of 1.8 s for a million
  // rows.
  await execute(tx, `SET LOCAL parallel_tuple_cost TO 0.001`);
  await copyBinary(tx, copyLeafHashes(rows), (content) => {
    let at = 0;
    for (;;) {
      const entry = at + FIELDS + LENGTH;
      const month = entry + ENTRY_ID + LENGTH;
      if (month > content.length) return at;
      const leaf = month + content.readInt32BE(month - LENGTH) + LENGTH;
      if (leaf + HASH > content.length) return at;
      take(Number(content.readBigInt64BE(entry)), content.toString('latin1', month, leaf - LENGTH), content, leaf);
      at = leaf + HASH;
    }
  });
  await execute(tx, `SET LOCAL parallel_tuple_cost TO DEFAULT`);
}

/** The tree over the rows that closed months bill. `chosen` is the index of a row whose path is requested. */
export async function hashRows(tx: Transaction, months: PostedMonths, chosen?: number): Promise<MerkleTree> {
  const tree = new MerkleTree();
  await readLeaves(tx, postedIn(months), (_, __, content, at) => {
    if (tree.leaves === chosen) tree.chooseNext();
    tree.add(content, at);
  });
  return tree;
}

/**
 * The same for a closing month, from the tree that the last checkpoint kept. The caller holds the whole ledger lock, as
 * the checkpoint did, so no row was inserted later before the last row that the checkpoint hashed.
 */
export async function hashClosingMonth(tx: Transaction, months: ClosedMonths): Promise<MerkleTree> {
  const { trees = {}, entries_to: after = 0 } = (await readLastCheckpoint(tx)) ?? {};
  const [soFar, ...others] = Object.entries(trees).filter(([month]) => month > months.after && month <= months.to);
  // The first close may include several months, whose rows arrived in any order.
  if (others.length > 0) return hashRows(tx, months);
  const tree = soFar === undefined ? new MerkleTree() : MerkleTree.from(soFar[1]);
  await readLeaves(tx, `${postedIn(months)} AND ${recordedIn({ after })}`, (_, __, content, at) =>
    tree.add(content, at),
  );
  return tree;
}

/** What a checkpoint states about rows. */
export interface RowsOfCheckpoint {
  /** The rows since the previous one, by posting month. */
  readonly rows: ReadonlyMap<string, TreeSummary>;
  /** All rows so far, by open posting month. */
  readonly trees: Readonly<Record<string, TreeSoFar>>;
}

/**
 * A checkpoint whose rows are to be hashed: those after `after`, up to `to`. `closed` is the last month closed at that
 * time.
 */
export interface CheckpointRange extends Range {
  readonly closed: Month | '';
}

/** Rows read in one pass. */
interface Pass {
  readonly rows: string;
  /** The month that bills the rows, if its tree is requested. */
  readonly month?: Month;
  /** The trees of posting months before the first of these rows. */
  readonly before?: Checkpoint['trees'];
}

interface HashedRows {
  readonly months: ReadonlyMap<Month, TreeSummary>;
  readonly checkpoints: readonly RowsOfCheckpoint[];
}

/** Hashes a new checkpoint's rows, from the previous one's trees. */
export async function hashCheckpoint(
  tx: Transaction,
  range: CheckpointRange,
  previous: Pick<Checkpoint, 'trees'> | undefined,
  closedBefore: Month | '',
): Promise<RowsOfCheckpoint> {
  // Rows recorded since the previous checkpoint are posted to a month that was open then, so only the rows of those
  // months are read.
  const rows = `${recordedIn(range)} AND ${postedIn({ after: closedBefore })}`;
  const { checkpoints } = await hashPasses(tx, [{ rows, before: previous?.trees ?? {} }], [range]);
  return checkpoints[0] as RowsOfCheckpoint;
}

/** Hashes each row once, for the closed months and for all checkpoints, which ascend. */
export function hashEverything(
  tx: Transaction,
  months: readonly ClosedMonths[],
  checkpoints: readonly CheckpointRange[],
): Promise<HashedRows> {
  const passes: Pass[] = months.map((each) => ({ rows: postedIn(each), month: each.to }));
  const last = checkpoints.at(-1);
  if (last !== undefined) {
    const open = postedIn({ after: months.at(-1)?.to ?? '' });
    passes.push({ rows: `${open} AND ${recordedIn({ after: 0, to: last.to })}` });
  }
  return hashPasses(tx, passes, checkpoints);
}

/** The same for one closed month and the checkpoints that were taken while it was open. */
export function hashMonth(
  tx: Transaction,
  month: ClosedMonths,
  checkpoints: readonly CheckpointRange[],
  previous: Pick<Checkpoint, 'trees'> | undefined,
): Promise<HashedRows> {
  const passes: Pass[] = [{ rows: postedIn(month), month: month.to }];
  const [first, last] = [checkpoints[0], checkpoints.at(-1)];
  if (first !== undefined && last !== undefined) {
    const others = `${recordedIn({ after: first.after, to: last.to })} AND NOT (${postedIn(month)})`;
    const trees = Object.entries(previous?.trees ?? {}).filter(([each]) => each <= month.after || each > month.to);
    passes.push({ rows: others, before: Object.fromEntries(trees) });
  }
  return hashPasses(tx, passes, checkpoints);
}

async function hashPasses(
  tx: Transaction,
  passes: readonly Pass[],
  checkpoints: readonly CheckpointRange[],
): Promise<HashedRows> {
  const months = new Map<Month, TreeSummary>();
  const own = checkpoints.map(() => new Map<string, MerkleTree>());
  const trees = checkpoints.map((): Record<string, TreeSoFar> => ({}));
  for (const pass of passes) {
    const ofMonths = new Map(
      Object.entries(pass.before ?? {}).map(([month, soFar]) => [month, MerkleTree.from(soFar)]),
    );
    // The tree over all rows. As long as all are posted to one month, it is also that month's tree.
    let all: MerkleTree | undefined;
    let next = 0;
    const goTo = (until: number) => {
      for (; next < until; next += 1) {
        const closed = checkpoints[next]?.closed ?? '';
        for (const [month, tree] of ofMonths) {
          if (month > closed) (trees[next] as Record<string, TreeSoFar>)[month] = tree.soFar();
        }
      }
    };
    await readLeaves(tx, pass.rows, (entryId, month, content, at) => {
      let until = next;
      while (until < checkpoints.length && entryId > (checkpoints[until] as CheckpointRange).to) until += 1;
      goTo(until);
      let tree = ofMonths.get(month);
      if (tree === undefined) {
        tree = new MerkleTree();
        if (pass.month !== undefined) all = ofMonths.size === 0 ? tree : all?.continued();
        ofMonths.set(month, tree);
      }
      if (all !== undefined && all !== tree) all.add(content, at);
      tree.add(content, at);
      if (entryId > (checkpoints[next]?.after ?? Number.POSITIVE_INFINITY)) {
        const ofCheckpoint = own[next] as Map<string, MerkleTree>;
        const part = ofCheckpoint.get(month) ?? new MerkleTree();
        ofCheckpoint.set(month, part);
        part.add(content, at);
      }
    });
    goTo(checkpoints.length);
    if (pass.month !== undefined) months.set(pass.month, hashed(all ?? new MerkleTree()));
  }
  return {
    months,
    checkpoints: own.map((of, at) => ({
      rows: new Map([...of].map(([month, tree]) => [month, hashed(tree)])),
      trees: trees[at] ?? {},
    })),
  };
}
