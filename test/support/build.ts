/** Keeps tests from running a stale dist/. The program is built before a test runs it if a source is newer. */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './modules.ts';

/** The sources that `npm run build` compiles, and its configuration. */
const SOURCES = ['src', 'jobs', 'migrations', 'tsconfig.json', 'tsconfig.build.json'];
/** Written by every build. */
const BUILT = join(ROOT, 'dist/src/cli/reckoner.js');

/** A source that is newer than the build; undefined if the build is current. */
export function newerSource(built = BUILT): string | undefined {
  if (!existsSync(built)) return SOURCES[0];
  const since = statSync(built).mtimeMs;
  const files = SOURCES.flatMap((source) =>
    statSync(join(ROOT, source)).isDirectory()
      ? readdirSync(join(ROOT, source), { recursive: true, encoding: 'utf8' })
          .filter((name) => name.endsWith('.ts'))
          .map((name) => join(source, name))
      : [source],
  );
  return files.find((file) => statSync(join(ROOT, file)).mtimeMs > since);
}

export function buildIfStale(): void {
  const newer = newerSource();
  if (newer === undefined) return;
  process.stdout.write(`dist/ is older than ${newer}: npm run build\n`);
  const { status, stdout, stderr } = spawnSync('npm', ['run', '--silent', 'build'], { cwd: ROOT, encoding: 'utf8' });
  if (status !== 0)
    throw new Error(`npm run build failed, so nothing that runs the program is tested:\n${stdout}${stderr}`);
}
