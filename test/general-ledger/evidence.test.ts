/** What proves a hand-off to an auditor: the pack of a journal lists it, and both verifiers accept the pack. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exportGl, type GlRequest } from '../../src/general-ledger/export.ts';
import type { GlFile } from '../../src/general-ledger/files.ts';
import { takeCheckpoint } from '../../src/log/checkpoint.ts';
import type { Month } from '../../src/month.ts';
import { expectPacksToHold, exported, month } from '../audit/books.ts';
import type { World } from '../support/world.ts';
import { openMonths } from './months.ts';
import { tableOf, units } from './read-back.ts';

let world: World;
let files: readonly GlFile[];
let honest: string;
const handOn = async (of: string, format: GlRequest['format'], preliminary = false) =>
  (await world.database.transaction((tx) => exportGl(tx, world, { month: of as Month, format, preliminary }))).files;
const pack = (format: 'csv' | 'jsonl', from = '2026-07') =>
  exported(world, { kind: 'journal', format, from: month(from), to: month('2026-10') });
const rowsOf = (folder: string, name: string) =>
  parse(readFileSync(join(folder, name)), { columns: true }) as Record<string, string>[];

/** July and August are under the close of October; September was handed on after it. */
beforeAll(async () => {
  world = await openMonths('2026-07', '2026-08');
  files = [...(await handOn('2026-07', 'generic')), ...(await handOn('2026-08', 'quickbooks'))];
  files = [...files, ...(await handOn('2026-08', 'xero')), ...(await handOn('2026-09', 'xero', true))];
  world.at('2026-11-02T15:00:00Z');
  await world.close();
  await world.closeBooks('2026-09');
  files = [...files, ...(await handOn('2026-09', 'quickbooks'))];
  // A pack contains what a checkpoint covers.
  await takeCheckpoint(world.database, world);
  honest = await pack('csv');
});
afterAll(() => world.end());

describe('the pack of a journal', () => {
  test('lists every journal that was handed on, its files with their hashes, and lines that are what the month moved', async () => {
    const stated = rowsOf(honest, 'gl-exports.csv');
    expect(stated.map((row) => [row['file'], row['sha256']])).toEqual(
      files.map(({ name, content }) => [name, createHash('sha256').update(content).digest('hex')]),
    );
    const journals = new Map(stated.map((row) => [row['gl_export_id'], row]));
    expect(
      [...journals.values()].map(({ month, format, part, kind, books_closed }) =>
        [month, format, part, kind, books_closed].join(' '),
      ),
    ).toEqual([
      '2026-07 generic 1 journal true',
      '2026-08 quickbooks 1 journal true',
      '2026-08 xero 1 journal true',
      '2026-09 xero 1 journal false',
      '2026-09 quickbooks 1 journal true',
    ]);
    const lines = rowsOf(honest, 'gl-lines.csv');
    const posted = rowsOf(honest, 'journal.csv');
    const sumsOf = (rows: readonly Record<string, string>[]) => {
      const sums = new Map<string, bigint>();
      for (const { account, currency, amount = '' } of rows)
        sums.set(`${account} ${currency}`, (sums.get(`${account} ${currency}`) ?? 0n) + units(amount));
      return [...sums].filter(([, sum]) => sum !== 0n).sort();
    };
    for (const { gl_export_id, month: of } of journals.values()) {
      const own = lines.filter((line) => line['gl_export_id'] === gl_export_id);
      expect(sumsOf(own)).toEqual(sumsOf(posted.filter(({ entry_on }) => entry_on?.startsWith(of as string))));
    }
    const ids = new Set(tableOf(files[0]?.content.toString() ?? '').map((row) => row['external_id']));
    expect(new Set(lines.filter((line) => line['format'] === 'generic').map((line) => line['external_id']))).toEqual(
      ids,
    );
  });

  test('holds for both verifiers, also from a later month', async () => {
    await expectPacksToHold(world, month('2026-07'), month('2026-10'));
    await expectPacksToHold(world, month('2026-09'), month('2026-10'));
  }, 240_000);
});
