/** The package that a partner installs: what is in it, how big it is, and that a program compiles against it and runs. */
import { execFile } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { packageRoot, packageVersion } from '../../src/package.ts';
import { compiled as builtFile } from '../support/program.ts';
import {
  CHECKOUT,
  CHECKOUT_PRINTS,
  compileAndRun,
  emptyFolder,
  npm,
  type Packed,
  packSplits,
  partnerFolder,
  samplesOf,
} from './partner-program.ts';
import { openPlatform, type Platform } from './platform.ts';

const folders: string[] = [];
let platform: Platform;
let packed: Packed;
const STRIPE = join(packageRoot, 'node_modules/stripe');

beforeAll(async () => {
  platform = await openPlatform();
  platform.now = new Date();
  const folder = emptyFolder();
  folders.push(folder);
  packed = await packSplits(folder);
});
afterAll(async () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  await platform.standIn.close();
});

const PLANNING = `import { planSplit, type ProcessorRequest, type Routing, SplitImpossible } from '@reckoner/splits';

const routing: Routing = { split: 'real_time', merchant_of_record: 'platform', connected_account_id: 'acct_1' };
const accepted = { quote_id: 'q-1', currency: 'usd', spotPrice: '55.00', partnerCut: '5.00', invoiceAmount: '50.00' };
const requests: readonly ProcessorRequest[] = planSplit(accepted, routing).requests;
for (const request of requests) {
  if (request.does === 'payment') console.log(request.params.amount, request.params.transfer_data?.amount);
}
try {
  planSplit(accepted, { ...routing, split: 'sequential', merchant_of_record: 'third_party' });
} catch (error) {
  if (error instanceof SplitImpossible) console.log(error.code);
}
`;

test('has its modules, their types and nothing else, in a few kilobytes', () => {
  expect(packed.files.filter((file) => !/^[a-z-]+\.(js|d\.ts)$/.test(file))).toEqual([
    'LICENSE',
    'README.md',
    'package.json',
  ]);
  expect(packed.files).toEqual(expect.arrayContaining(['execute.js', 'plan.d.ts', 'plan.js', 'smallest-unit.js']));
  expect(packed.bytes).toBeLessThan(20_000);
  expect(packed.unpackedBytes).toBeLessThan(80_000);
  process.stdout.write(`@reckoner/splits: ${packed.bytes} bytes packed, ${packed.unpackedBytes} unpacked\n`);
});

test('a program that plans needs nothing but the package, not even its types', async () => {
  const folder = await partnerFolder(packed, '/nowhere');
  folders.push(folder);
  expect(await compileAndRun(folder, PLANNING)).toBe('5500 5000\noperator_missing\n');
  writeFileSync(join(folder, 'older.cjs'), "console.log(typeof require('@reckoner/splits').planSplit)");
  expect((await promisify(execFile)(process.execPath, ['--no-warnings', 'older.cjs'], { cwd: folder })).stdout).toBe(
    'function\n',
  );
});

test.each(['module', 'commonjs'] as const)(
  "a checkout takes the API's answers as they are, passes its own client, and sells: %s",
  async (modules) => {
    platform.startOver();
    platform.now = new Date();
    const folder = await partnerFolder(packed, STRIPE, modules);
    folders.push(folder);
    // The client's types need those of Node.
    const printed = await compileAndRun(folder, CHECKOUT, {
      ...{ env: { STRIPE_API_BASE: platform.standIn.url }, options: ['--skipLibCheck'] },
    });
    expect(printed).toBe(CHECKOUT_PRINTS);
  },
);

test.each(['src/processors/stripe/splits/README.md', 'docs/connected-accounts.md'])(
  "the samples of a page compile against the API's answers: %s",
  async (page) => {
    const folder = await partnerFolder(packed, STRIPE);
    folders.push(folder);
    const samples = samplesOf(page);
    expect(samples.length).toBeGreaterThan(0);
    for (const sample of samples) expect(await compileAndRun(folder, sample, { options: ['--skipLibCheck'] })).toBe('');
  },
);

test('npm installs it into an empty folder, without any other package', async ({ skip }) => {
  const folder = emptyFolder();
  folders.push(folder);
  writeFileSync(join(folder, 'package.json'), '{ "name": "partner", "private": true, "type": "module" }');
  // The partner has the client already; here there may be no registry to get it from.
  await npm(['install', packed.file, '--offline', '--legacy-peer-deps'], folder).catch((error: unknown) =>
    skip(`npm cannot install without a registry: ${String(error)}`),
  );
  const lock = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, object>;
  };
  expect(lock.packages).toMatchObject({
    'node_modules/@reckoner/splits': { version: packageVersion, peerDependencies: { stripe: '>=17 <24' } },
  });
  expect(Object.keys(lock.packages)).toEqual(['', 'node_modules/@reckoner/splits']);
  expect(await compileAndRun(folder, PLANNING)).toBe('5500 5000\noperator_missing\n');
});

test('the imported modules depend on nothing outside the package', () => {
  const read = (file: string) => readFileSync(builtFile(join('src/processors/stripe/splits', file)), 'utf8');
  const imports = (text: string) =>
    [...text.matchAll(/^(?:import|export) .*from '([^']+)'/gm)].map((match) => match[1] as string);
  const modules = packed.files.filter((file) => file.endsWith('.js'));
  expect(modules).toHaveLength(10);
  expect(modules.flatMap((file) => imports(read(file))).filter((from) => !/^\.\/[a-z-]+\.js$/.test(from))).toEqual([]);
  const types = packed.files.filter((file) => file.endsWith('.d.ts'));
  expect(types).toHaveLength(10);
  expect(types.flatMap((file) => imports(read(file))).filter((from) => !from.startsWith('./'))).toEqual([]);
});
