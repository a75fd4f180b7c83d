import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { consistencyProof, inclusionProof, isConsistent, type KnownNodes, LeafRange } from '../../src/log/tree.ts';
import { leafHash, rootOfInclusion } from './inclusion.ts';

const leaves = Array.from({ length: 70 }, (_, at) => leafHash(Buffer.from(`leaf ${at}`)));

/** RFC 9162, 2.1.1, word by word. */
function rootBy(definition: readonly Buffer[]): Buffer {
  const [only, ...more] = definition;
  if (only === undefined) return createHash('sha256').digest();
  if (more.length === 0) return only;
  let left = 1;
  while (2 * left < definition.length) left *= 2;
  const parts = [rootBy(definition.slice(0, left)), rootBy(definition.slice(left))];
  return createHash('sha256').update(Buffer.of(1)).update(Buffer.concat(parts)).digest();
}

function rangeOf(from: number, to: number): LeafRange {
  const range = new LeafRange(from);
  for (const leaf of leaves.slice(from, to)) range.add(leaf);
  return range;
}

const known = (...ranges: readonly LeafRange[]): KnownNodes => {
  const nodes: KnownNodes = new Map();
  for (const range of ranges) range.enter(nodes);
  return nodes;
};

test('the root over any number of leaves is that of the definition', () => {
  expect(createHash('sha256').digest('hex')).toBe(new LeafRange().root().toString('hex'));
  for (let size = 0; size <= leaves.length; size += 1) {
    expect(rangeOf(0, size).root()).toEqual(rootBy(leaves.slice(0, size)));
  }
});

test('a range is written as its subtrees, read again, and continued by the next range', () => {
  for (let middle = 0; middle <= 40; middle += 1) {
    for (const to of [middle, middle + 1, middle + 7, 70]) {
      const first = LeafRange.read(0, middle, rangeOf(0, middle).bytes());
      const next = rangeOf(middle, to);
      first.append(LeafRange.read(middle, to, next.bytes()));
      expect(first.root()).toEqual(rootBy(leaves.slice(0, to)));
      expect(first.bytes()).toEqual(rangeOf(0, to).bytes());
    }
  }
  expect(() => LeafRange.read(0, 3, Buffer.alloc(32))).toThrow(RangeError);
  expect(() => rangeOf(0, 3).append(rangeOf(4, 5))).toThrow(RangeError);
});

test('the proofs between all checkpoints follow from edges and spans alone', () => {
  const sizes = [1, 2, 3, 7, 8, 20, 33, 64, 70];
  for (const [at, smaller] of sizes.entries()) {
    for (const [to, larger] of sizes.entries()) {
      if (to <= at) continue;
      const spans = sizes.slice(at + 1, to + 1).map((size, each) => rangeOf(sizes[at + each] as number, size));
      const proof = consistencyProof(known(rangeOf(0, smaller), ...spans), smaller, larger);
      const [old, now] = [rootBy(leaves.slice(0, smaller)), rootBy(leaves.slice(0, larger))];
      expect(isConsistent([smaller, old], [larger, now], proof)).toBe(true);
      expect(isConsistent([smaller, now], [larger, now], proof)).toBe(false);
      expect(isConsistent([smaller, old], [larger, old], proof)).toBe(false);
      expect(isConsistent([smaller, old], [larger, now], [...proof, old])).toBe(false);
      if (proof.length > 0) expect(isConsistent([smaller, old], [larger, now], proof.slice(1))).toBe(false);
    }
  }
});

test('a leaf is proved with the leaves of its checkpoint and the edges and spans of the others', () => {
  const [before, own, after] = [rangeOf(0, 20), leaves.slice(20, 33), rangeOf(33, 70)];
  const nodes = known(before, after);
  for (const [at, leaf] of own.entries()) nodes.set(`0 ${20 + at}`, leaf.toString('latin1'));
  const root = rootBy(leaves);
  for (let leaf = 20; leaf < 33; leaf += 1) {
    const proof = inclusionProof(nodes, leaf, 70);
    expect(rootOfInclusion(leaf, 70, leaves[leaf] as Buffer, proof)).toEqual(root);
    expect(rootOfInclusion(leaf, 70, leaves[0] as Buffer, proof)).not.toEqual(root);
    expect(rootOfInclusion(leaf, 70, leaves[leaf] as Buffer, proof.slice(1))).toBeUndefined();
  }
  expect(rootOfInclusion(70, 70, root, [])).toBeUndefined();
  expect(() => inclusionProof(nodes, 5, 70)).toThrow('the hash of leaf');
});
