/**
 * Merkle trees by RFC 9162, 2.1. A leaf is the SHA-256 of 0x00 and its content. A node is the SHA-256 of 0x01 and its
 * two subtrees, of which the left is the largest full tree. A range of leaves is stored as its largest full subtrees,
 * so that the memory grows only with the height of the tree.
 */
import { hash } from 'node:crypto';

/** A hash is a text of 32 one-byte characters, because creating a million Buffers takes as long as hashing them. */
type Hash = string;
const HASH_BYTES = 32;
const bufferOf = (text: Hash): Buffer => Buffer.from(text, 'latin1');
// For such a short input, this function takes half the time of a Hash object.
const sha256 = (content: Buffer) => hash('sha256', content, 'binary');

const node = Buffer.alloc(1 + 2 * HASH_BYTES);
node[0] = 1;

function nodeHash(left: Hash, right: Hash) {
  node.write(left, 1, 'latin1');
  node.write(right, 1 + HASH_BYTES, 'latin1');
  return sha256(node);
}

/** A full subtree of 2^level leaves. Its first leaf has the index `index` × 2^level. */
type Subtree = Readonly<{
  level: number;
  index: number;
  hash: Hash;
}>;

/** The largest full subtrees over the leaves from `from` up to, but not including, `to`. */
export class LeafRange {
  readonly from: number;
  private end: number;
  private readonly subtrees: Subtree[] = [];

  constructor(from = 0) {
    this.from = from;
    this.end = from;
  }

  get to() {
    return this.end;
  }

  get leaves() {
    return this.end - this.from;
  }

  /**
   * Returns the range from the result of `bytes`. Throws a RangeError if the number of subtrees is wrong for the range.
   */
  static read(from: number, to: number, bytes: Buffer) {
    const range = new LeafRange(from);
    let at = 0;
    for (const { level, index } of decompose(from, to)) {
      range.subtrees.push({ level, index, hash: bytes.toString('latin1', at, at + HASH_BYTES) });
      at += HASH_BYTES;
    }
    if (at !== bytes.length)
      throw new RangeError(`leaves ${from} to ${to} do not have ${bytes.length} bytes of subtrees`);
    range.end = to;
    return range;
  }

  /** The hashes of the subtrees from left to right. */
  bytes(): Buffer {
    return Buffer.concat(this.subtrees.map(({ hash: text }) => bufferOf(text)));
  }

  hashes(): Buffer[] {
    return this.subtrees.map(({ hash: text }) => bufferOf(text));
  }

  /** Adds the hash of the next leaf: 32 bytes of `content` from the offset `at`. */
  add(content: Buffer, at = 0) {
    this.push({ level: 0, index: this.end, hash: content.toString('latin1', at, at + HASH_BYTES) });
    this.end += 1;
  }

  /** Adds a range that begins where this one ends. */
  append(next: LeafRange) {
    if (next.from !== this.end) throw new RangeError(`leaves from ${next.from} do not follow leaf ${this.end}`);
    for (const subtree of next.subtrees) this.push(subtree);
    this.end = next.end;
  }

  private push({ level, index, hash: text }: Subtree) {
    let [at, place, joined] = [level, index, text];
    for (let left = this.subtrees.at(-1); left?.level === at && place % 2 === 1; left = this.subtrees.at(-1)) {
      this.subtrees.pop();
      joined = nodeHash(left.hash, joined);
      at += 1;
      place = (place - 1) / 2;
    }
    this.subtrees.push({ level: at, index: place, hash: joined });
  }

  /** The root of the tree that consists of these leaves. The range must begin at leaf 0. */
  root(): Buffer {
    const [last, ...others] = [...this.subtrees].reverse();
    if (last === undefined) return bufferOf(sha256(Buffer.alloc(0)));
    return bufferOf(others.reduce((right, { hash: left }) => nodeHash(left, right), last.hash));
  }

  /** Adds the subtrees to `known`, for proofs. */
  enter(known: KnownNodes) {
    for (const { level, index, hash: text } of this.subtrees) known.set(`${level} ${index}`, text);
  }
}

/** The positions of the largest full subtrees over a range of leaves. */
function decompose(from: number, to: number) {
  const places: Omit<Subtree, 'hash'>[] = [];
  for (let at = from; at < to; ) {
    let [level, leaves] = [0, 1];
    while (at % (2 * leaves) === 0 && at + 2 * leaves <= to) {
      level += 1;
      leaves *= 2;
    }
    places.push({ level, index: at / leaves });
    at += leaves;
  }
  return places;
}

/** Hashes of subtrees by level and index. */
export type KnownNodes = Map<string, Hash>;

/** The subtrees that checkpoints store: `edge` covers all leaves, `span` covers those after the previous checkpoint. */
export function knownNodes(checkpoints: readonly Readonly<{ size: number; span: Buffer; edge: Buffer }>[]) {
  const known: KnownNodes = new Map();
  let before = 0;
  for (const { size, span, edge } of checkpoints) {
    LeafRange.read(before, size, span).enter(known);
    LeafRange.read(0, size, edge).enter(known);
    before = size;
  }
  return known;
}

/** A proof as text: each hash in Base64 on a line. */
export const hashLines = (hashes: readonly Buffer[]) => hashes.map((each) => `${each.toString('base64')}\n`).join('');

/** The largest power of two that is less than the number of leaves, which is at least 2. */
function splitOf(leaves: number) {
  let left = 1;
  while (2 * left < leaves) left *= 2;
  return left;
}

/** The root over the leaves [from, to), computed from known subtrees. Throws a RangeError if a subtree is missing. */
function rootOf(known: KnownNodes, from: number, to: number): Hash {
  const leaves = to - from;
  const level = Math.log2(leaves);
  if (Number.isInteger(level)) {
    const found = known.get(`${level} ${from / leaves}`);
    if (found !== undefined) return found;
  }
  if (leaves === 1) throw new RangeError(`the hash of leaf ${from} is needed`);
  const left = splitOf(leaves);
  return nodeHash(rootOf(known, from, from + left), rootOf(known, from + left, to));
}

/** The consistency proof between a tree of `smaller` leaves and a tree of `larger` leaves (RFC 9162, 2.1.4.1). */
export function consistencyProof(known: KnownNodes, smaller: number, larger: number) {
  const proof = (old: number, from: number, to: number, whole: boolean): Hash[] => {
    if (old === to - from) return whole ? [] : [rootOf(known, from, to)];
    const left = splitOf(to - from);
    if (old <= left) return [...proof(old, from, from + left, whole), rootOf(known, from + left, to)];
    return [...proof(old - left, from + left, to, false), rootOf(known, from, from + left)];
  };
  return proof(smaller, 0, larger, true).map(bufferOf);
}

/** The inclusion proof of a leaf in a tree of `size` leaves (RFC 9162, 2.1.3.1). */
export function inclusionProof(known: KnownNodes, leaf: number, size: number) {
  const proof = (from: number, to: number): Hash[] => {
    if (to - from === 1) return [];
    const left = splitOf(to - from);
    if (leaf < from + left) return [...proof(from, from + left), rootOf(known, from + left, to)];
    return [...proof(from + left, to), rootOf(known, from, from + left)];
  };
  return proof(0, size).map(bufferOf);
}

/** Moves a place one level up in the tree. */
function climb(place: { node: number; last: number }) {
  place.node = Math.floor(place.node / 2);
  place.last = Math.floor(place.last / 2);
}

/**
 * Whether the tree of `larger` leaves begins with the leaves of the tree of `smaller` leaves, according to their roots
 * and a proof (2.1.4.2).
 */
export function isConsistent(
  [smaller, smallerRoot]: readonly [number, Buffer],
  [larger, largerRoot]: readonly [number, Buffer],
  proof: readonly Buffer[],
) {
  if (smaller === larger) return proof.length === 0 && smallerRoot.equals(largerRoot);
  if (smaller === 0 || smaller > larger) return false;
  const isFull = Number.isInteger(Math.log2(smaller));
  const [first, ...path] = isFull ? [smallerRoot, ...proof] : proof;
  if (first === undefined) return false;
  const place = { node: smaller - 1, last: larger - 1 };
  while (place.node % 2 === 1) climb(place);
  let [before, after] = [first.toString('latin1'), first.toString('latin1')];
  for (const each of path) {
    if (place.last === 0) return false;
    const sibling = each.toString('latin1');
    if (place.node % 2 === 1 || place.node === place.last) {
      before = nodeHash(sibling, before);
      after = nodeHash(sibling, after);
      while (place.node % 2 === 0 && place.node !== 0) climb(place);
    } else {
      after = nodeHash(after, sibling);
    }
    climb(place);
  }
  return place.last === 0 && bufferOf(before).equals(smallerRoot) && bufferOf(after).equals(largerRoot);
}
