/** Merkle trees over ranges of facts: one pass over the data serves any number of ranges. */
import { copyLines } from '../database/copy.ts';
import type { Transaction } from '../database/transaction.ts';
import { copiesOfFacts, type Range } from './canonical.ts';
import { leafHash, MerkleTree } from './merkle.ts';
import { hashed, type TreeSummary } from './rows.ts';

/** Returns a function that finds the range of a number; undefined if there is none. Call it with ascending numbers. */
function finder(ranges: readonly Range[]): (number: number) => number | undefined {
  let at = 0;
  return (number) => {
    while (at < ranges.length && number > (ranges[at] as Range).to) at += 1;
    return at < ranges.length && number > (ranges[at] as Range).after ? at : undefined;
  };
}

/** The range from the first to the last; undefined if there are none. The ranges ascend and do not overlap. */
function spanOf(ranges: readonly Range[]): Range | undefined {
  const [first, last] = [ranges[0], ranges.at(-1)];
  return first && last && { after: first.after, to: last.to };
}

const TAB = 0x09;

/** For each range, the tables with facts in it: the number of facts, and the root with the header as leaf 0. */
export async function hashFactsOf(tx: Transaction, ranges: readonly Range[]): Promise<Map<string, TreeSummary>[]> {
  const found = ranges.map(() => new Map<string, TreeSummary>());
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
