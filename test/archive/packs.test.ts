/** Archived months and packs are verified without the server: no database, no settings, nothing in RECKONER_HOME. */
import { createHash, generateKeyPairSync } from 'node:crypto';
import { copyFileSync, cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { monthArchive } from '../../src/actions/archive.ts';
import { runAction } from '../../src/actions/run.ts';
import { proveColdMonths } from '../../src/archive/archive.ts';
import { readingParquet, withDuckDb, writeParquet } from '../../src/archive/parquet.ts';
import { exportPack } from '../../src/audit/export.ts';
import { noteOf, readNote, signHead, type TreeHead, vkeyOf } from '../../src/log/note.ts';
import type { Month } from '../../src/month.ts';
import { reckoner } from '../support/program.ts';
import type { World } from '../support/world.ts';
import { worldOfOldMonths } from './archived-world.ts';

const MONTHS = ['2026-01', '2026-02'] as Month[];
let world: World;
let held: readonly string[];
/** A copy of the store, which a test may damage. */
let cold: string;
const home = mkdtempSync(join(tmpdir(), 'auditor-'));

const context = () => ({ ...world, reporter: {} });
beforeAll(async () => {
  world = await worldOfOldMonths();
  for (const month of MONTHS) await runAction(context(), monthArchive, { month, store: 'cold' });
  const notes = await world.sql<{ body: string }>(
    `SELECT concat_ws(E'\\n', origin, size, encode(root, 'base64'), '', '') AS body FROM log_checkpoints
     WHERE closes IN ('month 2026-01', 'month 2026-02') ORDER BY size`,
  );
  held = notes.map(({ body }, at) => {
    const file = join(home, `held-${at}.note.txt`);
    writeFileSync(file, body);
    return file;
  });
});
afterAll(async () => {
  rmSync(home, { recursive: true });
  await world.end();
});

const store = () => join(world.home, 'cold', readdirSync(join(world.home, 'cold'))[0] as string);
beforeEach(() => {
  cold = mkdtempSync(join(home, 'cold-'));
  cpSync(store(), join(cold, 'years', '2026'), { recursive: true });
});
const file = (name: string) => join(cold, 'years', '2026', name);

interface Proof {
  readonly months: string;
  readonly path: string;
  readonly rows: number;
  readonly totals: unknown;
  readonly root: string;
  readonly result: string;
  readonly wrong: readonly string[];
  readonly open: readonly string[];
}
const verify = (...args: readonly string[]) =>
  reckoner(['--json', 'verify', '--packs', cold, ...args], {
    env: { RECKONER_HOME: join(home, 'nothing'), DATABASE_URL: undefined },
  });
const withHeld = () => ['--held', ...held];
async function proofs(...args: readonly string[]): Promise<Proof[]> {
  const ran = await verify(...args);
  expect(ran.stderr).toBe('');
  return ran.json() as Proof[];
}

test('whole months hold, by the checkpoints that the auditor received when they closed', async () => {
  const ran = await verify(...withHeld());
  expect(ran).toMatchObject({ status: 0, stderr: '' });
  const stated = await world.sql(
    `SELECT m.month AS months, m.entries AS rows, encode(k.root, 'base64') AS root
     FROM closed_months m JOIN log_checkpoints k ON k.closes = 'month ' || m.month WHERE m.month <= '2026-02' ORDER BY 1`,
  );
  expect(ran.json()).toMatchObject(
    stated.map(({ root, ...each }) => ({
      ...{ ...each, rows: Number(each['rows']), result: 'holds', wrong: [], open: [] },
      checkpoint: expect.stringMatching(new RegExp(`\\n${String(root).replaceAll('+', '\\+')}\\n$`)) as string,
    })),
  );
});

test('people read a line for each month, and then what is open', async () => {
  const ran = await reckoner(['verify', '--packs', cold, '--held', held[0] as string], {
    env: { RECKONER_HOME: join(home, 'nothing'), DATABASE_URL: undefined },
  });
  expect(ran.status).toBe(4);
  expect(ran.stdout).toMatch(/^months +rows +to invoice +root +result +in\n2026-01 +3 +\S+ USD +\S{12} +holds +\S+\n/);
  expect(ran.stdout).toMatch(/\n2026-02 +4 .* open /);
  expect(ran.stdout).toMatch(/\n2026-02: no held checkpoint has \d+ facts\n$/);
});

const swap = (one: string, other: string) => {
  copyFileSync(file(one), `${file(one)}.kept`);
  copyFileSync(file(other), file(one));
  copyFileSync(`${file(one)}.kept`, file(other));
};
const change = (name: string, from: string | RegExp, to: string) => {
  const before = readFileSync(file(name), 'utf8');
  writeFileSync(file(name), before.replace(from, to));
  expect(readFileSync(file(name), 'utf8')).not.toBe(before);
};

describe('the month is named', () => {
  test.each([
    [
      'whose file is cut',
      () => writeFileSync(file('2026-01-0001.parquet'), readFileSync(file('2026-01-0001.parquet')).subarray(0, -9)),
      /^2026-01-0001\.parquet is missing, or not the file that was archived$/,
    ],
    ['whose file is missing', () => rmSync(file('2026-01-0001.parquet')), /^2026-01-0001\.parquet is missing/],
    [
      'whose file is that of another month',
      () => swap('2026-01-0001.parquet', '2026-02-0001.parquet'),
      /^2026-01-0001/,
    ],
    ['whose statement is missing', () => rmSync(file('2026-01.statement')), /^2026-01\.statement .*no such file/],
    [
      'whose statement is that of another month',
      () => swap('2026-01.statement', '2026-02.statement'),
      /^2026-01\.statement .*it states another close$/,
    ],
    [
      'whose statement is cut',
      () => writeFileSync(file('2026-01.statement'), readFileSync(file('2026-01.statement')).subarray(0, 400)),
      /^2026-01\.statement does not prove its rows/,
    ],
    [
      'of whose statement a total is changed',
      () => change('2026-01.statement', /(month_partners.*\tinvoicing\t)2\t/, '$13\t'),
      /^2026-01\.statement .*its facts do not give the root of its checkpoint$/,
    ],
    [
      'of whose statement a partner is removed',
      () => change('2026-01.statement', /month_partners\t.*\n/, ''),
      /^2026-01\.statement does not prove its rows/,
    ],
    [
      'of whose statement the root is changed',
      () => change('2026-01.statement', /\n[A-Za-z0-9+/]{4}/, '\nAAAA'),
      /^2026-01\.statement .*its facts do not give the root of its checkpoint$/,
    ],
  ])('%s', async (_, damage, fault) => {
    damage();
    const [january, february] = await proofs(...withHeld());
    expect(january).toMatchObject({ months: '2026-01', result: 'wrong', wrong: [expect.stringMatching(fault)] });
    expect(february?.months).toBe('2026-02');
  });

  test.each([
    ['only in its file', false, /^2026-01-0001\.parquet is missing, or not the file that was archived$/],
    ['and its hash in the statement', true, /^the store has p-1 USD invoicing 2 20 6 14 2026-01-11T12:00:00\.000000Z /],
  ])('of which a cell is changed %s', async (_, isStated, fault) => {
    const path = file('2026-01-0001.parquet');
    const before = createHash('sha256').update(readFileSync(path)).digest('hex');
    await withDuckDb(async (connection, folder) => {
      const lines = join(folder, 'lines');
      const pieces: Buffer[] = [];
      for await (const piece of readingParquet(connection, folder, [path]).copy('true')) pieces.push(piece);
      const changed = Buffer.concat(pieces)
        .toString()

        .replaceAll(/^/gm, 'ledger_rows\t')
        .replace('q-a-2026-01', 'q-x-2026-01');
      writeFileSync(lines, changed.replace(/ledger_rows\t$/, ''));
      await writeParquet(connection, lines, path);
    });
    const after = createHash('sha256').update(readFileSync(path)).digest('hex');
    expect(after).not.toBe(before);
    if (isStated) change('2026-01.statement', before, after);
    const [january] = await proofs(...withHeld());
    expect(january?.wrong[0]).toMatch(fault);
  });

  test('whose checkpoint is not the one that the auditor holds', async () => {
    const other = join(home, 'other.note.txt');
    writeFileSync(other, readFileSync(held[0] as string, 'utf8').replace(/\n[A-Za-z0-9+/]{4}(.*=)/, '\nAAAA$1'));
    const [january, february] = await proofs('--held', other, held[1] as string);
    expect(january?.wrong).toEqual([expect.stringMatching(/^the held checkpoint of \d+ facts is another$/)]);
    expect(february?.result).toBe('holds');
  });
});

test('packs of exports in the same folder are verified by verify.mjs, and a .zip file is named as not read', async () => {
  const out = file('pack');
  await exportPack(world.database, world.environment, {
    ...{ kind: 'ledger', format: 'csv', out, from: MONTHS[0] as Month, to: MONTHS[1] as Month },
  });
  const changed = file('changed');
  cpSync(out, changed, { recursive: true });
  writeFileSync(join(changed, 'ledger.csv'), readFileSync(join(changed, 'ledger.csv'), 'utf8').replace('q-a', 'q-x'));
  writeFileSync(file('more.zip'), '');
  const found = await proofs(...withHeld());
  const of = (name: string) => found.find(({ path }) => path.endsWith(name));
  expect(found).toHaveLength(5);
  expect(of('pack')).toMatchObject({
    months: '2026-01 to 2026-02',
    rows: 7,
    totals: { USD: { invoiceAmount: '49.00' } },
  });
  expect(of('pack')).toMatchObject({
    result: 'open',
    wrong: [],
    open: expect.arrayContaining([expect.stringMatching(/^signatures: the last checkpoint/)]),
  });
  expect(of('changed')).toMatchObject({ result: 'wrong', wrong: [expect.stringMatching(/ledger\.csv/)] });
  expect(of('more.zip')).toMatchObject({ result: 'open', open: ['is not read: unpack it'] });
  expect(of('2026-02.statement')).toMatchObject({ result: 'holds' });
});

describe('a folder', () => {
  test('without anything to verify is refused', async () => {
    rmSync(join(cold, 'years'), { recursive: true });
    expect(await verify()).toMatchObject({ status: 2, stdout: expect.stringMatching(/no archived month or pack/) });
    rmSync(cold, { recursive: true });
    expect(await verify()).toMatchObject({ status: 2, stdout: expect.stringMatching(/there is no such folder/) });
  });

  test('holds by checkpoints that the key signed, and is refused if the key did not sign one', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519');
    const head = readNote(readFileSync(held[0] as string, 'utf8'))?.head as TreeHead;
    const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
    const key = { name: head.origin, publicKey: raw };
    const signed = join(cold, 'signed.note.txt');
    writeFileSync(signed, noteOf(head, [signHead(head, key, privateKey)]));
    const [january] = await proofs('--held', signed, '--key', vkeyOf(key));
    expect(january).toMatchObject({ months: '2026-01', result: 'holds' });
    const refused = await verify(...withHeld(), '--key', vkeyOf(key));
    expect(refused).toMatchObject({ status: 3, stdout: expect.stringMatching(/checkpoint_not_signed/) });
  });

  test('needs DuckDB, and says how to install it', async () => {
    const hook = new URL('without-duckdb.mjs', import.meta.url).href;
    const ran = await reckoner(['verify', '--packs', cold], { env: { NODE_OPTIONS: `--import ${hook}` } });
    expect(ran).toMatchObject({ status: 1, stderr: expect.stringMatching(/npm install --no-save @duckdb\/node-api/) });
  });
});

test('in the database, months are proved by the checkpoints of the log', async () => {
  const prove = () => world.database.reading((tx) => proveColdMonths(tx, world.environment, MONTHS, 2));
  expect(await prove()).toEqual([]);
  const path = join(store(), '2026-01.statement');
  const kept = readFileSync(path);
  writeFileSync(path, readFileSync(join(store(), '2026-02.statement')));
  try {
    expect(await prove()).toEqual([
      { subject: '2026-01', detail: '2026-01.statement does not prove its rows: it states another close' },
    ]);
  } finally {
    writeFileSync(path, kept);
  }
});
