/** The data files of packs are views of the log: both verifiers derive them again and compare every cell. */
import { createHash } from 'node:crypto';
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import { stringify } from 'csv-stringify/sync';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EXPORT_KINDS } from '../../src/audit/export.ts';
import { readRules } from '../../src/audit/rules.ts';
import { signCheckpoints } from '../../src/log/sign.ts';
import { openBooks as openPaymentBooks } from '../payments/books.ts';
import { LOG_KEY } from '../support/log-keys.ts';
import { type Answer, openVerifiers, type Verifiers } from '../support/verifiers.ts';
import type { World } from '../support/world.ts';
import { checkpoint, exported, month, openBooks } from './books.ts';

let verifiers: Verifiers;
const worlds = new Map<string, World>();
beforeAll(async () => {
  verifiers = openVerifiers();
  worlds.set('documents', await openBooks({ logKey: LOG_KEY }));
  worlds.set('payments', await openPaymentBooks({}, undefined, { logKey: LOG_KEY }));
  for (const world of worlds.values()) {
    await checkpoint(world);
    await signCheckpoints(world);
  }
});
afterAll(async () => {
  verifiers.end();
  for (const world of worlds.values()) await world.end();
});

async function verify(pack: string): Promise<Answer> {
  const [python, node] = await Promise.all([verifiers.ask('python3', [pack]), verifiers.ask('node', [pack])]);
  expect(node).toEqual(python);
  return python;
}

const wrongIn = (output: string) => output.split('\n').filter((line) => line.startsWith('WRONG'));

interface Listed {
  name: string;
  bytes: number;
  sha256: string;
}

/** Writes data files, and the manifest that fits them. */
function write(pack: string, contents: ReadonlyMap<string, Buffer>): void {
  const path = join(pack, 'manifest.json');
  const manifest = JSON.parse(readFileSync(path, 'utf8')) as { files: Listed[] };
  for (const [name, content] of contents) {
    writeFileSync(join(pack, name), content);
    const listed = { name, bytes: content.length, sha256: createHash('sha256').update(content).digest('hex') };
    const files = manifest.files.filter((each) => each.name !== name);
    const before = manifest.files.find((each) => each.name === name);
    manifest.files = [...files, { ...before, ...listed }];
  }
  writeFileSync(path, `${JSON.stringify(manifest, null, 2)}\n`);
}

const dataFiles = (pack: string) => readdirSync(pack).filter((name) => /[.](csv|jsonl)$/.test(name));

/** A pack with the data files of all kinds. */
async function packOfAll(world: World, format: 'csv' | 'jsonl'): Promise<string> {
  const request = { format, to: month('2026-10') } as const;
  const pack = await exported(world, { kind: 'ledger', ...request });
  const contents = new Map<string, Buffer>();
  for (const kind of EXPORT_KINDS) {
    const other = await exported(world, { kind, ...request });
    for (const name of dataFiles(other)) contents.set(name, readFileSync(join(other, name)));
  }
  write(pack, contents);
  return pack;
}

const changed = (cell: string): string =>
  /\d$/.test(cell) ? cell.replace(/\d$/, (d) => `${(+d + 1) % 10}`) : `${cell}1`;

/** The files of a pack with another value in a column of their last row. */
function withChangedColumn(pack: string, column: number): Map<string, Buffer> {
  const contents = new Map<string, Buffer>();
  for (const name of dataFiles(pack)) {
    const rows = parse(readFileSync(join(pack, name)), { bom: false }) as string[][];
    const last = rows.at(-1) as string[];
    if (rows.length < 2 || last.length <= column) continue;
    const forged = last.with(column, changed(last[column] as string));
    contents.set(name, Buffer.from(stringify([...rows.slice(0, -1), forged])));
  }
  return contents;
}

describe.each(['documents', 'payments'])('the data files of books of %s', (books) => {
  test.each(['csv', 'jsonl'] as const)('are in %s what the log says, for both verifiers', async (format) => {
    const pack = await packOfAll(worlds.get(books) as World, format);
    const { output } = await verify(pack);
    expect(wrongIn(output)).toEqual([]);
    expect(output).not.toContain('not compared');
    for (const { name } of readRules().views) expect(output).toContain(`/${name}.${format}: as in the log\n`);
  });

  test('are wrong with one changed cell, in whatever column', async () => {
    const pack = await packOfAll(worlds.get(books) as World, 'csv');
    const honest = new Map(dataFiles(pack).map((name) => [name, readFileSync(join(pack, name))]));
    const widest = Math.max(...readRules().views.map(({ columns }) => columns.length));
    for (let column = 0; column < widest; column += 1) {
      const forged = withChangedColumn(pack, column);
      write(pack, forged);
      const { output } = column === 0 ? await verify(pack) : await verifiers.ask('python3', [pack]);
      const named = wrongIn(output).map((line) => line.replace(/^WRONG .*\/([a-z-]+[.]csv): .*/, '$1'));
      expect([column, named.sort()]).toEqual([column, [...forged.keys()].sort()]);
      write(pack, honest);
    }
  });
});

test('a ledger that names another document, row or sum is wrong where it differs', async () => {
  const pack = await packOfAll(worlds.get('documents') as World, 'jsonl');
  const path = join(pack, 'ledger.jsonl');
  copyFileSync(path, `${pack}.jsonl`);
  const lines = readFileSync(path, 'utf8').split('\n');
  for (const [text, found] of [
    [lines.toSpliced(3, 1).join('\n'), 'line 4: the log has'],
    [`${lines.join('\n')}${lines[0]}\n`, `line ${lines.length}: not in the log`],
    [lines.join('\n').replace('INV-2026-000004', 'INV-2026-000001'), 'line 1: the log has'],
  ] as const) {
    write(pack, new Map([['ledger.jsonl', Buffer.from(text)]]));
    expect((await verify(pack)).output).toContain(`/ledger.jsonl: ${found}`);
  }
});
