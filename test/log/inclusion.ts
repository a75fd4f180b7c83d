/** What an auditor computes of RFC 9162, 2.1: the hash of a leaf, and the root that an inclusion proof leads to. */
import { createHash } from 'node:crypto';

const sha256 = (...parts: readonly Buffer[]): Buffer => createHash('sha256').update(Buffer.concat(parts)).digest();

export const leafHash = (content: Buffer): Buffer => sha256(Buffer.of(0), content);

/** Undefined if the proof has the wrong length. */
export function rootOfInclusion(
  leaf: number,
  size: number,
  hashOfLeaf: Buffer,
  proof: readonly Buffer[],
): Buffer | undefined {
  if (leaf >= size) return undefined;
  const sibling = proof.at(-1);
  if (size === 1) return sibling === undefined ? hashOfLeaf : undefined;
  if (sibling === undefined) return undefined;
  let left = 1;
  while (2 * left < size) left *= 2;
  const isLeft = leaf < left;
  const below = isLeft
    ? rootOfInclusion(leaf, left, hashOfLeaf, proof.slice(0, -1))
    : rootOfInclusion(leaf - left, size - left, hashOfLeaf, proof.slice(0, -1));
  if (below === undefined) return undefined;
  return isLeft ? sha256(Buffer.of(1), below, sibling) : sha256(Buffer.of(1), sibling, below);
}
