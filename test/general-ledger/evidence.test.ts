/** What proves a hand-off to an auditor: the pack of a journal lists it, and both offline verifiers refuse one that was changed. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import { Decimal } from 'decimal.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exportGl, type GlRequest } from '../../src/general-ledger/export.ts';
import type { GlFile } from '../../src/general-ledger/files.ts';
import type { Month } from '../../src/month.ts';
import { packageRoot } from '../../src/package.ts';
import { exported, month, verifyPack } from '../audit/books.ts';
import { Forger, type Row } from '../audit/forger.ts';
import { tool } from '../support/tools.ts';
import type { World } from '../support/world.ts';
import { openMonths } from './months.ts';
import { tableOf, units } from './read-back.ts';

const SEALED = 'sealed/2026-10';

let world: World;
let files: readonly GlFile[];
let honest: string;
const handOn = async (of: string, format: GlRequest['format'], preliminary = false) =>
  (await world.database.transaction((tx) => exportGl(tx, world, { month: of as Month, format, preliminary }))).files;
const pack = (format: 'csv' | 'jsonl', from = '2026-07') =>
  exported(world, { kind: 'journal', format, from: month(from), to: month('2026-10') });
const rowsOf = (folder: string, name: string) =>
  parse(readFileSync(join(folder, name)), { columns: true }) as Record<string, string>[];

function verifiedBy(folder: string): { node: string; python: string; status: (number | null)[] } {
  const { status, output } = verifyPack([folder]);
  const python = spawnSync(tool('python3'), [join(packageRoot, 'templates/export/verify.py'), folder], {
    encoding: 'utf8',
  });
  return { node: output, python: `${python.stdout}${python.stderr}`, status: [status, python.status] };
}

/** July and August are sealed with October; September was handed on after the last seal. */
beforeAll(async () => {
  world = await openMonths('2026-07', '2026-08');
  files = [...(await handOn('2026-07', 'generic')), ...(await handOn('2026-08', 'quickbooks'))];
  files = [...files, ...(await handOn('2026-08', 'xero')), ...(await handOn('2026-09', 'xero', true))];
  world.at('2026-11-02T15:00:00Z');
  await world.close();
  await world.closeBooks('2026-09');
  files = [...files, ...(await handOn('2026-09', 'quickbooks'))];
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

  test.each(['csv', 'jsonl'] as const)('holds for both verifiers as %s, also from a later month', async (format) => {
    for (const from of ['2026-07', '2026-09']) {
      const { status, node, python } = verifiedBy(await pack(format, from));
      expect(status, `${node}${python}`).toEqual([0, 0]);
      expect(node).toMatch(/^ok +gl-lines/m);
    }
  });
});

const lineOf = (text: string, month: string, format: string, at = 0): string =>
  text.split('\n').filter((line) => line.includes(`,${month},${format},`))[at] as string;
const withCell = (line: string, at: number, value: string): string => line.split(',').with(at, value).join(',');

describe('both verifiers refuse a pack in which', () => {
  const forgeries: readonly (readonly [string, 'gl-exports' | 'gl-lines', (text: string) => string])[] = [
    [
      'a file has another hash',
      'gl-exports',
      (text) => text.replace(/,[0-9a-f]{64},(?=2026-1\d-\d\dT)/, `,${'0'.repeat(64)},`),
    ],
    [
      'a file has another name',
      'gl-exports',
      (text) => text.replace('gl-2026-07-1-generic.csv', 'gl-2026-07-1-other.csv'),
    ],
    [
      'a journal is for another program',
      'gl-exports',
      (text) => text.replaceAll(',2026-07,generic,', ',2026-07,netsuite,'),
    ],
    ['a journal is left out', 'gl-exports', (text) => text.replace(/^.*,2026-08,quickbooks,.*\n/m, '')],
    ['a file is left out', 'gl-exports', (text) => text.replace(/^.*generic\.json.*\n/m, '')],
    [
      'a journal names no seal',
      'gl-exports',
      (text) => text.replace(/(,2026-09,quickbooks,1,journal,)[0-9a-f]{8}/, '$100000000'),
    ],
    ['open books were closed', 'gl-exports', (text) => text.replaceAll(',false,', ',true,')],
    [
      'a first part is a second',
      'gl-exports',
      (text) => text.replace(',2026-09,quickbooks,1,', ',2026-09,quickbooks,2,'),
    ],
    ['a line went to another account', 'gl-lines', (text) => text.replace('Commissions', 'Sales')],
    ['a line has another name', 'gl-lines', (text) => text.replace('Nord (Lille)', 'Nord (Paris)')],
    ['a line has another amount', 'gl-lines', (text) => text.replace(/,(\d+)\.\d\d,/, ',$1.01,')],
    ['a line is left out', 'gl-lines', (text) => text.replace(`${lineOf(text, '2026-08', 'quickbooks', 1)}\n`, '')],
    ['the last line is left out', 'gl-lines', (text) => text.replace(/[^\n]*\n$/, '')],
    ['a line is there twice', 'gl-lines', (text) => text.replace(/([^\n]*\n)$/, '$1$1')],
    [
      'a line that no seal covers is of another account of ours',
      'gl-lines',
      (text) => {
        const line = lineOf(text, '2026-09', 'quickbooks');
        return text.replace(line, withCell(line, 7, 'expenses:bad-debts'));
      },
    ],
    [
      'lines that no seal covers are of another external id',
      'gl-lines',
      (text) => text.replaceAll(/(,2026-09,quickbooks,1,2026-09-1-USD-)[0-9a-f]{6}/g, '$1000000'),
    ],
  ];
  test.each(forgeries)('%s', async (name, file, forge) => {
    const forger = new Forger(honest, join(world.home, `forged ${name}`));
    forger.edit(`${file}.csv`, forge);
    forger.fit();
    const { status, node, python } = verifiedBy(forger.folder);
    expect(status, `${node}${python}`).toEqual([1, 1]);
    const failed = [node, python].map((said) => /^\d+ problems?: (.*)\.$/m.exec(said)?.[1]);
    expect(failed[0]).toMatch(/^(gl-exports\.csv|gl-lines\.csv|gl-exports\.csv, gl-lines\.csv)$/);
    expect(failed[1]).toBe(failed[0]);
  });

  test('a month was exported as another sum, and every seal was written again after', async () => {
    const forger = new Forger(honest, join(world.home, 'forged and sealed'));
    const { gl_export_id: id } = rowsOf(forger.folder, 'gl-exports.csv').find(
      (row) => row['month'] === '2026-08' && row['format'] === 'quickbooks',
    ) as Row;
    const amounts = new Map<string | undefined, string>();
    forger.rows(`${SEALED}/gl_export_lines.tsv`, (rows) => {
      const own = rows.filter((row) => row['gl_export_id'] === id && row['currency'] === 'EUR');
      for (const [row, more] of [
        [own[0], 100],
        [own.at(-1), -100],
      ] as const) {
        const amount = new Decimal(row?.['amount'] as string).plus(more);
        Object.assign(row as Row, { amount: amount.toFixed() });
        amounts.set(row?.['line'], amount.toFixed(2));
      }
      return rows;
    });
    forger.edit('gl-lines.csv', (text) =>
      text.replace(/^(\d+),(\d+),.*$/gm, (line, of, number) =>
        of === id && amounts.has(number) ? withCell(line, 11, amounts.get(number) as string) : line,
      ),
    );
    forger.reseal();
    const { status, node, python } = verifiedBy(forger.folder);
    expect(status, `${node}${python}`).toEqual([1, 1]);
    for (const said of [node, python]) expect(said).toMatch(/^\d+ problems?: gl-lines\.csv\.$/m);
    expect(node).toContain('differs from the movement of its books');
    expect(python).toContain('differ from the movement of its books');
  });
});
