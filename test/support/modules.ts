/** Which files of the repository a module imports, found in its text without loading or running anything. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** `from './x.ts'`, `import './x.ts'`, `import('./x.ts')`, `new URL('x.mjs', …)`, and `from '#x'` for src/x.ts. */
const IMPORTS = /(?:\bfrom|\bimport|\bimport\(|new URL\()\s*'(#[^']+|\.{0,2}[^':]*\.m?[tj]s)'/g;

const imported = new Map<string, readonly string[]>();

function importsOf(file: string): readonly string[] {
  const known = imported.get(file);
  if (known !== undefined) return known;
  const text = readFileSync(join(ROOT, file), 'utf8');
  const found = [...text.matchAll(IMPORTS)]
    .flatMap(([, path = '']) =>
      path.startsWith('#')
        ? [`src/${path.slice(1)}.ts`, `src/${path.slice(1)}.tsx`]
        : [relative(ROOT, join(ROOT, dirname(file), path)).replaceAll(sep, '/')],
    )
    .filter((path) => existsSync(join(ROOT, path)));
  imported.set(file, found);
  return found;
}

/**
 * A file and everything that it imports, directly or indirectly. Paths are relative to the repository. With `within`,
 * only the imports of files below that folder are followed.
 */
export function reachedFrom(file: string, within = ''): ReadonlySet<string> {
  const reached = new Set<string>();
  const waiting = [file];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (reached.has(next)) continue;
    reached.add(next);
    if (next.startsWith(within)) waiting.push(...importsOf(next));
  }
  return reached;
}
