/** The pages that name a test for each finding and each requirement: the tests are there, under these names. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from './support/modules.ts';

/** Each test file that a page names, with the parts of names that follow it. */
function namedIn(page: string): { readonly file: string; readonly names: readonly string[] }[] {
  const text = readFileSync(join(ROOT, page), 'utf8');
  return [...text.matchAll(/`(?:test\/)?([\w/-]+\.test\.ts)`(?:: ([^`|(\n]+))?/g)].map(([, file = '', names = '']) => ({
    file: join(ROOT, 'test', file),
    names: names
      .split(';')
      .map((name) => name.trim())
      .filter(Boolean),
  }));
}

test.each(['docs/reviews.md', 'docs/security.md'])('each test that %s names is there', (page) => {
  const named = namedIn(page);
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter(({ file }) => !existsSync(file))).toEqual([]);
  const missing = named.flatMap(({ file, names }) => {
    const text = readFileSync(file, 'utf8');
    return names.filter((name) => !text.includes(name)).map((name) => ({ file, name }));
  });
  expect(missing).toEqual([]);
});
