/**
 * Part of the build: writes the commit to dist/commit, from git or, without a repository, from the variable
 * RECKONER_COMMIT. Without either, there is no such file, and no program names a commit.
 */
import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const file = join(root, 'dist/commit');

function fromGit() {
  try {
    const options = { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] };
    return execFileSync('git', ['describe', '--always', '--dirty', '--abbrev=12', '--exclude=*'], options);
  } catch {
    return '';
  }
}

const commit = (process.env.RECKONER_COMMIT || fromGit()).trim();
if (commit === '') rmSync(file, { force: true });
else writeFileSync(file, `${commit}\n`);
