/** The verifiers and the rules are published with their hashes, so that an auditor can tell them from others. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../../src/package.ts';

test.each(['verify.mjs', 'verify.py', 'checks.sql'])('docs/auditors.md has the SHA-256 of %s', (name) => {
  const sha256 = createHash('sha256')
    .update(readFileSync(join(packageRoot, 'templates/export', name)))
    .digest('hex');
  expect(readFileSync(join(packageRoot, 'docs/auditors.md'), 'utf8')).toContain(`| \`${name}\` | \`${sha256}\` |`);
});
