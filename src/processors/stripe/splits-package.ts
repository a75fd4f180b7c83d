/**
 * Writes the package that a partner installs, with only the compiled files of splits/.
 *
 * npm run pack:splits
 */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packageRoot, packageVersion } from '#package';

const SOURCE = join(packageRoot, 'src/processors/stripe/splits');

export function layOutSplitsPackage(folder: string, compiled: string) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const sources = readdirSync(SOURCE).filter((file) => file.endsWith('.ts'));
  for (const name of sources.map((file) => file.slice(0, -'.ts'.length))) {
    const code = readFileSync(join(compiled, `${name}.js`), 'utf8');
    // The source map names files that the package does not have.
    writeFileSync(join(folder, `${name}.js`), code.replace(/\n\/\/# sourceMappingURL=.*\n?$/, '\n'));
    cpSync(join(compiled, `${name}.d.ts`), join(folder, `${name}.d.ts`));
  }
  const described = JSON.parse(readFileSync(join(SOURCE, 'package.json'), 'utf8')) as { name: string };
  const { name, ...more } = described;
  writeFileSync(
    join(folder, 'package.json'),
    `${JSON.stringify({ name, version: packageVersion, ...more }, null, 2)}\n`,
  );
  cpSync(join(SOURCE, 'README.md'), join(folder, 'README.md'));
  cpSync(join(packageRoot, 'LICENSE'), join(folder, 'LICENSE'));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const dist = join(packageRoot, 'dist');
  layOutSplitsPackage(join(dist, 'splits-package'), join(dist, 'src/processors/stripe/splits'));
}
