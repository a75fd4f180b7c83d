/** The folder and version of this package, found from src/ and from dist/src/. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

function rootAbove(folder: string) {
  if (existsSync(join(folder, 'package.json'))) return folder;
  const parent = dirname(folder);
  if (parent === folder) throw new Error('package.json is missing above the program');
  return rootAbove(parent);
}

export const packageRoot = rootAbove(dirname(fileURLToPath(import.meta.url)));

/**
 * The file that packs contain and that verifiers of the same release use: the currencies, the forms of facts, the rules
 * and the views.
 */
export const CHECKS_SQL = join(packageRoot, 'templates', 'export', 'checks.sql');

export function versionOfPackageAt(folder: string) {
  return (JSON.parse(readFileSync(join(rootAbove(folder), 'package.json'), 'utf8')) as { version: string }).version;
}

export const packageVersion = versionOfPackageAt(packageRoot);

/** The commit that this program was built from, written by the build; empty if the build did not know it. */
export const commit: string = (() => {
  const file = join(packageRoot, 'dist', 'commit');
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
})();

/** The oldest supported version of Node, such as `20.19`. */
export const requiredNode = (
  JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')) as { engines: { node: string } }
).engines.node.replace(/^\D+/, '');
