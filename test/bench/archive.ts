/**
 * 24 months of a fifth of the rows each, with the rows of twenty months in an archive. The floors are those of the same
 * history without an archive: importing the next month, verifying, backing up and restoring everything, and the size of
 * the tables of rows.
 */
import { readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { firstSettings } from '../../src/config/first-settings.ts';
import { type Measured, measured } from './measured.ts';
import { cpuInWords, emptyLedger, inTurns, type Workbench } from './workbench.ts';

const ROWS_BY = 5;
const PARTNERS_BY = 25;
const ARCHIVED = 20;

const MONTHS = Array.from({ length: 25 }, (_, index) => {
  const month = `${2024 + Math.floor(index / 12)}-${String((index % 12) + 1).padStart(2, '0')}`;
  return { month, morningAfter: new Date(Date.UTC(2024, index + 1, 1, 12)).toISOString() };
});
const NEXT = MONTHS[24] as (typeof MONTHS)[number];
const NOW = NEXT.morningAfter;

export async function measureArchive(bench: Workbench): Promise<Measured[]> {
  const rows = Math.ceil(bench.rows / ROWS_BY);
  const partners = Math.ceil(bench.partners / PARTNERS_BY);
  writeFileSync(
    join(bench.folder, 'home', 'settings.json'),
    JSON.stringify({ ...firstSettings('sandbox'), archive: { cold: { parquet: 'cold' } } }),
  );
  const hot = await bench.made(
    'history',
    async (url) => {
      for (const { month, morningAfter } of MONTHS.slice(0, -1)) {
        await bench.reckoner(url, morningAfter, ['ledger', 'import', await bench.rowsFile(month, rows, partners)]);
        await bench.reckoner(url, morningAfter, ['close', month, '--no-deliver']);
      }
      for (const { month } of MONTHS.slice(0, ARCHIVED)) await bench.reckoner(url, NOW, ['books', 'close', month]);
      // Partners have the events of all rows, as they must before a month can be archived.
      const { month: latest } = MONTHS[ARCHIVED - 1] as (typeof MONTHS)[number];
      await bench.reckoner(url, NOW, ['archive', latest, '--to', 'cold']);
      await bench.reckoner(url, NOW, ['unarchive', latest]);
    },
    await emptyLedger(bench, partners),
  );
  let archiving = 0;
  const cold = await bench.made(
    'archived_history',
    async (url) => {
      for (const { month } of MONTHS.slice(0, ARCHIVED)) {
        archiving += (await bench.reckoner(url, NOW, ['archive', month, '--to', 'cold'])).seconds;
      }
    },
    hot,
  );
  const sides = (work: (from: string) => Promise<number>) => ({ ours: () => work(cold), floor: () => work(hot) });
  const next = await bench.rowsFile(NEXT.month, rows, partners);
  const imports = await inTurns<'ours' | 'floor'>(bench, 'archive import', (turn) =>
    turn(
      sides((from) =>
        bench.inClone(from, async ({ url, client }) => {
          await client.query('CHECKPOINT');
          return (await bench.reckoner(url, NOW, ['ledger', 'import', next])).seconds;
        }),
      ),
    ),
  );
  const verifying = await inTurns<'ours' | 'floor'>(bench, 'archive verify', (turn) =>
    turn(sides((from) => bench.inClone(from, async ({ url }) => (await bench.reckoner(url, NOW, ['verify'])).seconds))),
  );
  const backupOf = (from: string) => join(bench.folder, `${from}.backup`);
  for (const from of [hot, cold]) {
    await bench.inClone(from, ({ url }) => bench.reckoner(url, NOW, ['backup', backupOf(from)]));
  }
  const sizes = new Map<string, number>();
  const restoring = await inTurns<'ours' | 'floor'>(bench, 'archive restore', (turn) =>
    turn(
      sides((from) =>
        bench.inClone('template1', async ({ url, client }) => {
          const { seconds } = await bench.reckoner(url, NOW, ['restore', backupOf(from)]);
          const { rows: found } = await client.query<{ bytes: string }>(
            `SELECT pg_total_relation_size('ledger_rows') + pg_total_relation_size('archived_sales') AS bytes`,
          );
          sizes.set(from, Number(found[0]?.bytes));
          return seconds;
        }),
      ),
    ),
  );
  const mebibytes = (bytes: number) => bytes / 2 ** 20;
  const [first] = MONTHS;
  const files = readdirSync(join(bench.folder, 'home', 'cold'), { recursive: true, withFileTypes: true })
    .filter((each) => each.isFile())
    .reduce((sum, each) => sum + statSync(join(each.parentPath, each.name)).size, 0);
  return [
    {
      ...measured(
        { measure: 'archive import', ...imports.taken, unit: 's', cpu: cpuInWords(imports.cpu) },
        { atMost: 1.25 },
      ),
      ...{ rows_a_month: rows, partners, from: first?.month, archiving_seconds_a_month: archiving / ARCHIVED },
      ...{ files_mebibytes: Math.round(mebibytes(files)) },
    },
    measured(
      { measure: 'archive verify', ...verifying.taken, unit: 's', cpu: cpuInWords(verifying.cpu) },
      { atMost: 0.6 },
    ),
    measured(
      { measure: 'archive restore', ...restoring.taken, unit: 's', cpu: cpuInWords(restoring.cpu) },
      { atMost: 0.4 },
    ),
    measured(
      {
        measure: 'archive rows',
        ours: mebibytes(sizes.get(cold) ?? 0),
        floor: mebibytes(sizes.get(hot) ?? 0),
        unit: 'MiB',
      },
      // Four of 24 months are live, and of the others at most a tenth.
      { atMost: (4 + ARCHIVED / 10) / 24 },
    ),
    measured(
      {
        measure: 'archive backup',
        ours: mebibytes(statSync(backupOf(cold)).size),
        floor: mebibytes(statSync(backupOf(hot)).size),
        unit: 'MiB',
      },
      { atMost: 0.4 },
    ),
  ];
}
