/** Merkle trees over ranges of rows and facts: one pass over the data serves any number of ranges. */
import { copyBinary, copyLines } from '../database/copy.ts';
import { execute, type Transaction } from '../database/transaction.ts';
import { copiesOfFacts, copyLeafHashesOfEntries } from './canonical.ts';
import { leafHash, MerkleTree } from './merkle.ts';

/** The numbers after `after`, up to `to`. */
export interface Range {
  readonly after: number;
  readonly to: number;
}

/** How many items there are, and the root over them. */
export interface Hashed {
  readonly count: number;
  readonly root: string;
}

const hashed = (tree: MerkleTree, headers = 0): Hashed => ({
  count: tree.leaves - headers,
  root: tree.finish().root.toString('hex'),
});

/** The range of each number, asked for in ascending order; undefined where it lies in none. */
function finder(ranges: readonly Range[]): (number: number) => number | undefined {
  let at = 0;
  return (number) => {
    while (at < ranges.length && number > (ranges[at] as Range).to) at += 1;
    return at < ranges.length && number > (ranges[at] as Range).after ? at : undefined;
  };
}

/** What all ranges span; undefined if there are none. The ranges ascend and do not overlap. */
function spanOf(ranges: readonly Range[]): Range | undefined {
  const [first, last] = [ranges[0], ranges.at(-1)];
  return first && last && { after: first.after, to: last.to };
}

const TAB = 0x09;

/** For each range, the tables with facts in it: the number of facts, and the root with the header as leaf 0. */
export async function hashFactsOf(tx: Transaction, ranges: readonly Range[]): Promise<Map<string, Hashed>[]> {
  const found = ranges.map(() => new Map<string, Hashed>());
  const span = spanOf(ranges);
  if (span === undefined) return found;
  for (const { name, copy } of await copiesOfFacts(tx, span)) {
    const trees: MerkleTree[] = [];
    const rangeOf = finder(ranges);
    let header: Buffer | undefined;
    await copyLines(tx, copy, (content, before, end) => {
      if (header === undefined) {
        header = leafHash(content.subarray(before + 1, end));
        return;
      }
      const fact = Number(content.toString('latin1', before + 1, content.indexOf(TAB, before)));
      const at = rangeOf(fact);
      if (at === undefined) return;
      let tree = trees[at];
      if (tree === undefined) {
        tree = new MerkleTree();
        tree.add(header);
        trees[at] = tree;
      }
      tree.addContent(content, before, end);
    });
    for (const [at, tree] of trees.entries()) if (tree !== undefined) found[at]?.set(name, hashed(tree, 1));
  }
  return found;
}

// A row of COPY's binary format: the number of fields (2 bytes), and each field after its length (4).
const FIELDS = 2;
const LENGTH = 4;
const ENTRY_ID = 8;
const HASH = 32;

/** For each range of entry_ids, the posting months with rows in it: the number of rows, and their root. */
export async function hashRowsOf(tx: Transaction, ranges: readonly Range[]): Promise<Map<string, Hashed>[]> {
  const trees = ranges.map(() => new Map<string, MerkleTree>());
  const span = spanOf(ranges);
  if (span === undefined) return [];
  const rangeOf = finder(ranges);
  // As of the rows of a month (seal.ts).
  await execute(tx, `SET LOCAL parallel_tuple_cost TO 0.001`);
  await copyBinary(tx, copyLeafHashesOfEntries(span), (content) => {
    let at = 0;
    for (;;) {
      const entry = at + FIELDS + LENGTH;
      const month = entry + ENTRY_ID + LENGTH;
      if (month > content.length) return at;
      const leaf = month + content.readInt32BE(month - LENGTH) + LENGTH;
      if (leaf + HASH > content.length) return at;
      const range = rangeOf(Number(content.readBigInt64BE(entry)));
      const name = content.toString('utf8', month, leaf - LENGTH);
      const of = range === undefined ? undefined : trees[range];
      const tree = of?.get(name) ?? new MerkleTree();
      of?.set(name, tree);
      tree.add(content, leaf);
      at = leaf + HASH;
    }
  });
  await execute(tx, `SET LOCAL parallel_tuple_cost TO DEFAULT`);
  return trees.map((of) => new Map([...of].map(([month, tree]) => [month, hashed(tree)])));
}
