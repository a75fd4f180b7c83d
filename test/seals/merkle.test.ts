/** The tree against the published vectors of Certificate Transparency, whose hashing RFC 9162 keeps, and its definition. */
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { leafHash, MerkleTree } from '../../src/seals/merkle.ts';

const LEAVES = ['', '00', '10', '2021', '3031', '40414243', '5051525354555657', '606162636465666768696a6b6c6d6e6f'];
const ROOTS = [
  'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
  'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
  'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
  'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
  '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
  'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
  '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
];

const treeOver = (contents: readonly Buffer[], chosen: readonly number[] = []) => {
  const tree = new MerkleTree();
  for (const [index, content] of contents.entries()) {
    if (chosen.includes(index)) tree.chooseNext();
    tree.add(leafHash(content));
  }
  return tree.finish();
};

test.each(ROOTS.map((root, size) => [size, root] as const))(
  'the root over %i leaves is the published one',
  (size, root) => {
    const contents = LEAVES.slice(0, size).map((hex) => Buffer.from(hex, 'hex'));
    expect(treeOver(contents).root.toString('hex')).toBe(root);
  },
);

// RFC 9162, 2.1.1 and 2.1.3.1, as it defines them.
const sha = (...parts: Buffer[]) => createHash('sha256').update(Buffer.concat(parts)).digest();
const split = (length: number) => 2 ** Math.floor(Math.log2(length - 1));
function MTH(leaves: readonly Buffer[]): Buffer {
  if (leaves.length === 1) return sha(Buffer.of(0), leaves[0] as Buffer);
  const k = split(leaves.length);
  return sha(Buffer.of(1), MTH(leaves.slice(0, k)), MTH(leaves.slice(k)));
}
function PATH(m: number, leaves: readonly Buffer[]): Buffer[] {
  if (leaves.length === 1) return [];
  const k = split(leaves.length);
  return m < k
    ? [...PATH(m, leaves.slice(0, k)), MTH(leaves.slice(k))]
    : [...PATH(m - k, leaves.slice(k)), MTH(leaves.slice(0, k))];
}

test('root and inclusion path are those of the definition, for every leaf of every tree up to 33 leaves', () => {
  let compared = 0;
  for (let size = 1; size <= 33; size += 1) {
    const contents = Array.from({ length: size }, (_, index) => Buffer.from(`leaf ${index}`));
    for (let index = 0; index < size; index += 1) {
      const { root, paths } = treeOver(contents, [index]);
      expect(root).toEqual(MTH(contents));
      expect([...paths]).toEqual([[index, PATH(index, contents)]]);
      compared += 1;
    }
  }
  expect(compared).toBe((33 * 34) / 2);
});

test('the paths of several leaves of one tree are those of each alone', () => {
  for (let size = 1; size <= 33; size += 1) {
    const contents = Array.from({ length: size }, (_, index) => Buffer.from(`leaf ${index}`));
    const chosen = [0, 1, 2, 7, 16, 31].filter((index) => index < size);
    const { paths } = treeOver(contents, chosen);
    expect([...paths]).toEqual(chosen.map((index) => [index, PATH(index, contents)]));
  }
});

test('a tree that is written down and continued has the root of one that was not, at any number of leaves', () => {
  const contents = Array.from({ length: 40 }, (_, index) => Buffer.from(`leaf ${index}`));
  const whole = treeOver(contents).root;
  const tree = new MerkleTree();
  for (const [index, content] of contents.entries()) {
    const soFar = JSON.parse(JSON.stringify(tree.soFar()));
    expect(soFar).toMatchObject({ leaves: index });
    for (const continued of [MerkleTree.from(soFar), tree.continued()]) {
      for (const later of contents.slice(index)) continued.add(leafHash(later));
      expect([continued.leaves, continued.finish().root]).toEqual([contents.length, whole]);
    }
    tree.add(leafHash(content));
  }
  expect(() => MerkleTree.from({ leaves: 3, roots: ['00'] })).toThrow('a tree of 3 leaves does not have 1 subtrees');
});
