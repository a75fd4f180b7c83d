/**
 * Merkle trees by RFC 9162, 2.1: a leaf is SHA-256 of 0x00 and its content, a node is SHA-256 of 0x01 and its two
 * subtrees, the left one being the largest full tree. Leaves are added one by one; memory grows with the tree's height.
 */
import { hash } from 'node:crypto';

/** A hash as a text of 32 one-byte characters: creating a million Buffers takes as long as hashing them. */
type Hash = string;
const LENGTH = 32;
const bufferOf = (hash: Hash): Buffer => Buffer.from(hash, 'latin1');
// For inputs this short, it takes half the time of a Hash object.
const sha256 = (content: Buffer): Hash => hash('sha256', content, 'binary');

export const leafHash = (content: Buffer): Buffer => bufferOf(sha256(Buffer.concat([Buffer.of(0), content])));

const node = Buffer.alloc(1 + 2 * LENGTH);
node[0] = 1;

function nodeHash(left: Hash, right: Hash): Hash {
  node.write(left, 1, 'latin1');
  node.write(right, 1 + LENGTH, 'latin1');
  return sha256(node);
}

/** A leaf whose inclusion path is requested. */
interface Chosen {
  readonly index: number;
  readonly siblings: Hash[];
}
const NONE: readonly Chosen[] = [];

interface Subtree {
  readonly hash: Hash;
  readonly leaves: number;
  readonly chosen: readonly Chosen[];
}

/** An unfinished tree: its number of leaves, and the roots of its full subtrees from left to right. */
export interface TreeSoFar {
  readonly leaves: number;
  /** In hexadecimal. There is one for each binary digit 1 in the number of leaves. */
  readonly roots: readonly string[];
}

export class MerkleTree {
  /** Full trees from left to right, each smaller than the previous one. */
  private readonly subtrees: Subtree[] = [];
  private readonly chosen: Chosen[] = [];
  private count = 0;

  get leaves(): number {
    return this.count;
  }

  /** The tree that `soFar` returned. */
  static from({ leaves, roots }: TreeSoFar): MerkleTree {
    const tree = new MerkleTree();
    const sizes = [...leaves.toString(2)].map((digit, at, { length }) => Number(digit) * 2 ** (length - 1 - at));
    const full = sizes.filter((size) => size > 0);
    if (full.length !== roots.length)
      throw new RangeError(`a tree of ${leaves} leaves does not have ${roots.length} subtrees`);
    tree.subtrees.push(
      ...full.map((size, at) => {
        const hash = Buffer.from(roots[at] as string, 'hex').toString('latin1');
        return { hash, leaves: size, chosen: NONE };
      }),
    );
    tree.count = leaves;
    return tree;
  }

  soFar(): TreeSoFar {
    return { leaves: this.count, roots: this.subtrees.map(({ hash }) => bufferOf(hash).toString('hex')) };
  }

  /** A separate tree with the same leaves. */
  continued(): MerkleTree {
    const tree = new MerkleTree();
    tree.subtrees.push(...this.subtrees);
    tree.count = this.count;
    return tree;
  }

  /** `finish` returns the inclusion path of the leaf added next. */
  chooseNext(): void {
    this.chosen.push({ index: this.count, siblings: [] });
  }

  /** Adds the next leaf's hash: 32 bytes of `content` from the offset `from`. */
  add(content: Buffer, from = 0): void {
    this.append(content.toString('latin1', from, from + LENGTH));
  }

  /** Adds the next leaf by its content: `content` after the byte at `before`, which is overwritten, up to `end`. */
  addContent(content: Buffer, before: number, end: number): void {
    content[before] = 0;
    this.append(sha256(content.subarray(before, end)));
  }

  private append(hash: Hash): void {
    const chosen = this.chosen.at(-1);
    let subtree: Subtree = { hash, leaves: 1, chosen: chosen?.index === this.count ? [chosen] : NONE };
    this.count += 1;
    for (let left = this.subtrees.at(-1); left?.leaves === subtree.leaves; left = this.subtrees.at(-1)) {
      this.subtrees.pop();
      subtree = this.join(left, subtree);
    }
    this.subtrees.push(subtree);
  }

  /** The root, and the siblings of each chosen leaf from the leaf upwards, by its index. Call it once, after the last leaf. */
  finish(): { root: Buffer; paths: ReadonlyMap<number, readonly Buffer[]> } {
    let subtree = this.subtrees.pop();
    if (subtree === undefined) return { root: bufferOf(sha256(Buffer.alloc(0))), paths: new Map() };
    for (let left = this.subtrees.pop(); left !== undefined; left = this.subtrees.pop()) {
      subtree = this.join(left, subtree);
    }
    const paths = subtree.chosen.map(({ index, siblings }) => [index, siblings.map(bufferOf)] as const);
    return { root: bufferOf(subtree.hash), paths: new Map(paths) };
  }

  private join(left: Subtree, right: Subtree): Subtree {
    for (const { siblings } of left.chosen) siblings.push(right.hash);
    for (const { siblings } of right.chosen) siblings.push(left.hash);
    return {
      hash: nodeHash(left.hash, right.hash),
      leaves: left.leaves + right.leaves,
      chosen:
        left.chosen === NONE ? right.chosen : right.chosen === NONE ? left.chosen : [...left.chosen, ...right.chosen],
    };
  }
}
