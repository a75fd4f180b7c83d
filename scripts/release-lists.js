/**
 * npm's `prepack`: writes a release's lists of its dependencies, dist/sbom.cdx.json (CycloneDX, by `npm sbom`) and
 * dist/LICENSES.md. Both are generated from package-lock.json, so they list the versions that were tested.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

const root = join(import.meta.dirname, '..');
const readJson = (path) => JSON.parse(readFileSync(join(root, path), 'utf8'));
const lock = readJson('package-lock.json');
const { packages } = lock;

// npm checks bundled packages without the overrides and refuses the overridden one. So this script lists the same
// packages as not bundled.
const folder = mkdtempSync(join(tmpdir(), 'reckoner-sbom-'));
try {
  const { bundleDependencies: _, ...manifest } = readJson('package.json');
  const unbundled = ([path, { inBundle: _, bundleDependencies: __, ...rest }]) => [path, rest];
  const files = {
    'package.json': manifest,
    'package-lock.json': { ...lock, packages: Object.fromEntries(Object.entries(packages).map(unbundled)) },
  };
  for (const [name, value] of Object.entries(files)) writeFileSync(join(folder, name), JSON.stringify(value));
  const options = ['sbom', '--package-lock-only', '--omit=dev', '--sbom-format=cyclonedx', '--sbom-type=application'];
  const bom = execFileSync('npm', options, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  writeFileSync(join(root, 'dist/sbom.cdx.json'), bom.replaceAll(basename(folder), manifest.name));
} catch (error) {
  // npm before 9.5, such as Debian 13's, has no `sbom`.
  if (!/unknown command/i.test(`${error.stdout}${error.stderr}`)) throw error;
  process.stderr.write('This npm has no `sbom` command: the package is made without dist/sbom.cdx.json.\n');
} finally {
  rmSync(folder, { recursive: true, force: true });
}

const rows = Object.entries(packages)
  .filter(([path, { dev, devOptional }]) => path !== '' && !dev && !devOptional)
  .map(([path, { version, license, optional }]) => {
    const name = path.replace(/^.*node_modules\//, '');
    return `| ${name} | ${version} | ${license ?? 'see the package'} | ${optional ? 'optional' : ''} |`;
  });
const text = `# Licenses

Reckoner is under the MIT license (LICENSE). Its fonts, Noto Sans, are under the SIL Open Font License 1.1 (templates/fonts/OFL.txt).
It installs these packages; each brings its license text along, under node_modules/.

| package | version | license | |
|---|---|---|---|
${[...new Set(rows)].sort().join('\n')}
`;
writeFileSync(join(root, 'dist/LICENSES.md'), text);
