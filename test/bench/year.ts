/**
 * A year of a large operator (10,000 partners, ten million rows a month), scaled to a machine: with 1,000,000 rows a
 * hundredth of it. Each month is imported, closed, delivered to the outbox, verified and exported as cron, finance and
 * the auditor do it; at the year's end all of it is backed up and restored. Its floor: the first month. What a month
 * costs must not grow with the months before it.
 */
import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Measured, measured } from './measured.ts';
import { emptyLedger, type Workbench } from './workbench.ts';

/** Of the rows and partners that a measure has: 100,000 rows a month of 100 partners. */
const ROWS_BY = 10;
const PARTNERS_BY = 20;

const MONTHS = Array.from({ length: 12 }, (_, index) => ({
  month: `2025-${String(index + 1).padStart(2, '0')}`,
  morningAfter: new Date(Date.UTC(2025, index + 1, 1, 12)).toISOString(),
}));
const DECEMBER = MONTHS[11] as (typeof MONTHS)[number];

const STEPS = ['import', 'close', 'deliver', 'verify', 'export'] as const;
type Step = (typeof STEPS)[number];
type Cost = Readonly<Record<Step, { readonly seconds: number; readonly mebibytes: number }>>;

export async function measureYear(bench: Workbench): Promise<Measured[]> {
  const rows = Math.ceil(bench.rows / ROWS_BY);
  const partners = Math.ceil(bench.partners / PARTNERS_BY);
  const pack = join(bench.folder, 'year-pack');
  const backup = join(bench.folder, 'year.backup');
  return bench.inClone(await emptyLedger(bench, partners), async ({ url, client }) => {
    const costs: Cost[] = [];
    for (const { month, morningAfter } of MONTHS) {
      const run = (...args: string[]) => bench.reckoner(url, morningAfter, args);
      const cost = {
        import: await run('ledger', 'import', await bench.rowsFile(month, rows, partners)),
        close: await run('close', month, '--no-deliver'),
        deliver: await run('deliver'),
        verify: await run('verify', month),
        export: await run('export', 'ledger', '--month', month, '--format', 'csv', '--out', pack),
      };
      await rm(pack, { recursive: true });
      costs.push(cost);
      const told = STEPS.map(
        (step) => `${step} ${cost[step].seconds.toFixed(1)} s ${cost[step].mebibytes.toFixed(0)} MiB`,
      );
      bench.note(`year, ${month}: ${told.join(', ')}`);
    }
    const { rows: sizes } = await client.query<{ size: string }>('SELECT pg_database_size(current_database()) AS size');
    const { seconds: verifying } = await bench.reckoner(url, DECEMBER.morningAfter, ['verify']);
    const { seconds: backingUp, mebibytes } = await bench.reckoner(url, DECEMBER.morningAfter, ['backup', backup]);
    const { seconds: restoring } = await bench.inClone('template1', (empty) =>
      bench.reckoner(empty.url, DECEMBER.morningAfter, ['restore', backup]),
    );
    const besides = {
      rows_a_month: rows,
      partners,
      database_mebibytes: Math.round(Number(sizes[0]?.size) / 2 ** 20),
      verify_of_all_seconds: Math.round(verifying),
      backup_seconds: Math.round(backingUp),
      backup_mebibytes: Math.round((await stat(backup)).size / 2 ** 20),
      backup_memory_mebibytes: Math.round(mebibytes),
      restore_seconds: Math.round(restoring),
    };
    const of = (cost: Cost | undefined, step: Step) => (cost as Cost)[step].seconds;
    // The last quarter beside the first: a month by itself is too short for the noise of a machine.
    const quarter = (from: number, step: Step) =>
      costs.slice(from, from + 3).reduce((sum, cost) => sum + of(cost, step), 0) / 3;
    return STEPS.map((step, index) => ({
      ...measured(
        { measure: `year-${step}`, ours: quarter(9, step), floor: quarter(0, step), unit: 's' },
        { atMost: 1.15 },
      ),
      ...(index === 0 && besides),
    }));
  });
}
