/**
 * A checkout compiles and sells with every major version of the `stripe` package that the package of splits names as its
 * peer. They are installed once, into node_modules/.cache; without a registry only this repository's own is tried.
 */
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { packageRoot } from '../../src/package.ts';
import { SWEEPING } from '../support/sweep.ts';
import {
  CHECKOUT,
  CHECKOUT_PRINTS,
  compileAndRun,
  emptyFolder,
  npm,
  type Packed,
  packSplits,
  partnerFolder,
} from './partner-program.ts';
import { openPlatform, type Platform } from './platform.ts';

/** The peer range of src/processors/stripe/splits/package.json. */
const ALL = [17, 18, 19, 20, 21, 22, 23];
/** `npm test` tries the oldest and the newest. */
const MAJORS = SWEEPING ? ALL : [17, 23];
const CACHE = join(packageRoot, 'node_modules/.cache/reckoner/stripe-majors');

const folders: string[] = [];
let platform: Platform;
let packed: Packed;
let missing: string | undefined;

beforeAll(async () => {
  platform = await openPlatform();
  platform.now = new Date();
  const folder = emptyFolder();
  folders.push(folder);
  packed = await packSplits(folder);
  mkdirSync(CACHE, { recursive: true });
  const dependencies = Object.fromEntries(MAJORS.map((major) => [`stripe-${major}`, `npm:stripe@${major}`]));
  writeFileSync(join(CACHE, 'package.json'), JSON.stringify({ private: true, dependencies }));
  if (MAJORS.every((major) => existsSync(join(CACHE, `node_modules/stripe-${major}/package.json`)))) return;
  await npm(['install', '--ignore-scripts', '--omit=peer', '--prefer-offline', '--fetch-retries=0'], CACHE).catch(
    (error: unknown) => {
      missing = String(error).split('\n')[0];
    },
  );
}, 300_000);
afterAll(async () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  await platform.standIn.close();
});

/** The client has other types for CommonJS. */
const CASES = MAJORS.flatMap((major) => [[major, 'module'] as const, [major, 'commonjs'] as const]);

test.for(CASES)('stripe %i of a program that is a %s', { timeout: 120_000 }, async ([major, modules], { skip }) => {
  const installed = join(CACHE, `node_modules/stripe-${major}`);
  const own = major === Number(/\d+/.exec((await import('stripe')).default.PACKAGE_VERSION)?.[0]);
  if (!own && !existsSync(installed)) skip(`npm cannot install stripe ${major} here: ${missing}`);
  const folder = await partnerFolder(
    packed,
    existsSync(installed) ? installed : join(packageRoot, 'node_modules/stripe'),
    modules,
  );
  folders.push(folder);
  platform.startOver();
  platform.now = new Date();
  const printed = await compileAndRun(folder, CHECKOUT, {
    ...{ env: { STRIPE_API_BASE: platform.standIn.url }, options: ['--skipLibCheck'] },
  });
  expect(printed).toBe(CHECKOUT_PRINTS);
  expect(new Set(platform.standIn.requests.map(({ version }) => version))).toEqual(new Set(['2026-05-27.dahlia']));
});
