/**
 * Merkle trees by RFC 9162, 2.1: a leaf is SHA-256 of 0x00 and its content, a node SHA-256 of 0x01 and its two subtrees,
 * of which the left one is the largest full tree. Leaves are added one by one; memory grows with the tree's height.
 */
import { hash } from 'node:crypto';

/** A hash as a text of 32 one-byte characters: creating a million Buffers takes as long as hashing them. */
type Hash = string;
const LENGTH = 32;
const bufferOf = (hash: Hash): Buffer => Buffer.from(hash, 'latin1');
// Half the cost of a Hash object for inputs this short.
const sha256 = (content: Buffer): Hash => hash('sha256', content, 'binary');

export const leafHash = (content: Buffer): Buffer => bufferOf(sha256(Buffer.concat([Buffer.of(0), content])));

const node = Buffer.alloc(1 + 2 * LENGTH);
node[0] = 1;

function nodeHash(left: Hash, right: Hash): Hash {
  node.write(left, 1, 'latin1');
  node.write(right, 1 + LENGTH, 'latin1');
  return sha256(node);
}

interface Subtree {
  readonly hash: Hash;
  readonly leaves: number;
  /** Contains the chosen leaf. */
  readonly chosen: boolean;
}

export class MerkleTree {
  /** Full trees from left to right, each smaller than the one before. */
  private readonly subtrees: Subtree[] = [];
  private readonly chosen: number | undefined;
  private readonly siblings: Hash[] = [];
  private count = 0;

  /** `chosen` is the index of the leaf whose inclusion path `finish` returns. */
  constructor(chosen?: number) {
    this.chosen = chosen;
  }

  get leaves(): number {
    return this.count;
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
    let subtree: Subtree = { hash, leaves: 1, chosen: this.count === this.chosen };
    this.count += 1;
    for (let left = this.subtrees.at(-1); left?.leaves === subtree.leaves; left = this.subtrees.at(-1)) {
      this.subtrees.pop();
      subtree = this.join(left, subtree);
    }
    this.subtrees.push(subtree);
  }

  /** The root, and the chosen leaf's siblings from the leaf upwards. Call it once, after the last leaf. */
  finish(): { root: Buffer; path: readonly Buffer[] } {
    let subtree = this.subtrees.pop();
    if (subtree === undefined) return { root: bufferOf(sha256(Buffer.alloc(0))), path: [] };
    for (let left = this.subtrees.pop(); left !== undefined; left = this.subtrees.pop()) {
      subtree = this.join(left, subtree);
    }
    return { root: bufferOf(subtree.hash), path: this.siblings.map(bufferOf) };
  }

  private join(left: Subtree, right: Subtree): Subtree {
    if (left.chosen) this.siblings.push(right.hash);
    if (right.chosen) this.siblings.push(left.hash);
    return {
      hash: nodeHash(left.hash, right.hash),
      leaves: left.leaves + right.leaves,
      chosen: left.chosen || right.chosen,
    };
  }
}
