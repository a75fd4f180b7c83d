/** The tests' own machinery: what is a unit test, what is stale, what a sweep takes of a list, and what a run says of missing tools. */
import { mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { newerSource } from './build.ts';
import { ROOT, reachedFrom } from './modules.ts';
import { needsServer, projects, runsProgram, SERVERS, testFiles } from './projects.ts';
import { SEED } from './random.ts';
import { repeatLines, skippedLines } from './report.ts';
import { REACH, someOf } from './sweep.ts';

test('every test file belongs to one project', () => {
  const { unit, pdf, database, programs } = projects();
  expect([...unit, ...pdf, ...database, ...programs].sort()).toEqual(testFiles());
  expect(unit).toEqual(expect.arrayContaining(['test/money.test.ts', 'test/month.test.ts', 'test/json.test.ts']));
  expect(unit.length).toBeGreaterThan(20);
  expect(pdf).toContain('test/documents/pdf.test.ts');
  expect(database.length).toBeGreaterThan(80);
  expect(programs).toEqual(expect.arrayContaining(['test/crash/failpoints.test.ts', 'test/console/walks.test.ts']));
});

test('a file that imports a world, directly or through another, needs a server', () => {
  expect(needsServer('test/close/credit.test.ts')).toBe(true);
  expect([...reachedFrom('test/support/world.ts', 'test/')]).toContain('test/support/databases.ts');
});

test('no unit test connects to a database or runs the program behind its imports', () => {
  const { unit: all, pdf } = projects();
  // The last two read the variable's value, and connect to nothing.
  const named = ['support/support', 'database/address', 'secret-files'].map((name) => `test/${name}.test.ts`);
  const unit = [...all, ...pdf].filter((file) => !named.includes(file));
  for (const file of unit
    .flatMap((each) => [...reachedFrom(each, 'test/')])
    .filter((each) => each.startsWith('test/'))) {
    const text = readFileSync(join(ROOT, file), 'utf8');
    expect([file, /inject\(|from 'pg'|openDatabase\(|dist\/src|DATABASE_URL/.exec(text)?.[0]]).toEqual([
      file,
      undefined,
    ]);
  }
});

test('whoever names dist/ does so through program.ts, which has it built', () => {
  const naming = new Set(testFiles().flatMap((file) => [...reachedFrom(file, 'test/')]));
  const others = ['support.test.ts', 'build.ts', 'program.ts', 'resident.mjs'].map((name) => `test/support/${name}`);
  const found = [...naming].filter(
    (file) =>
      file.startsWith('test/') &&
      !others.includes(file) &&
      /dist\/(src|jobs)|'dist'(?!, 'index)/.test(readFileSync(join(ROOT, file), 'utf8')),
  );
  expect(found).toEqual([]);
  expect(testFiles().filter(runsProgram).length).toBeGreaterThan(15);
});

test('properties take the seed of the run: only property.ts imports fast-check', () => {
  const direct = testFiles().filter((file) => readFileSync(join(ROOT, file), 'utf8').includes("from 'fast-check'"));
  expect(direct.filter((file) => file !== 'test/support/support.test.ts')).toEqual([]);
});

test('the files that give a test its server exist', () => {
  for (const server of SERVERS) expect(reachedFrom(server).size).toBeGreaterThan(1);
});

test('a build is stale when a source is newer', () => {
  const folder = mkdtempSync(join(tmpdir(), 'reckoner-build-'));
  const built = join(folder, 'built.js');
  writeFileSync(built, '');
  const future = new Date(Date.now() + 60_000);
  utimesSync(built, future, future);
  expect(newerSource(built)).toBeUndefined();
  utimesSync(built, new Date(0), new Date(0));
  expect(newerSource(built)).toMatch(/^src\//);
  rmSync(folder, { recursive: true });
  expect(newerSource(built)).toBe('src');
});

test('a few of many are evenly spaced, and all of few are all', () => {
  expect(someOf([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 3)).toEqual([0, 3, 6]);
  expect(someOf([1, 2], 3)).toEqual([1, 2]);
});

test('a red run ends with a command for each test that failed, with the seed', () => {
  expect(repeatLines([])).toEqual([]);
  const failed = { file: 'test/close/credit.test.ts', name: "a partner's credit > of 5.00 (once)" };
  expect(repeatLines([failed, { file: 'test/money.test.ts' }])).toEqual([
    '',
    'To repeat what failed:',
    `  RECKONER_SEED=${SEED} RECKONER_SWEEP=${REACH} npx vitest run test/close/credit.test.ts -t 'a partner'\\''s credit of 5\\.00 \\(once\\)'`,
    `  RECKONER_SEED=${SEED} RECKONER_SWEEP=${REACH} npx vitest run test/money.test.ts`,
  ]);
  expect(repeatLines(Array.from({ length: 23 }, () => failed)).at(-1)).toBe('  and 3 more');
});

test('the run ends with the programs that were missing and the packages that have them', () => {
  expect(skippedLines([undefined, 'something else'])).toEqual([]);
  expect(
    skippedLines(['needs qpdf', 'needs pdfinfo', 'needs pdffonts', undefined, 'needs a disk', 'needs qpdf']),
  ).toEqual([
    'SKIPPED: 4 tests need qpdf, pdfinfo, pdffonts (apt-get install qpdf poppler-utils)',
    'SKIPPED: 1 test needs a disk',
  ]);
});
