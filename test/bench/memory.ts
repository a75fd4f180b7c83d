/** Peak memory of importing, closing and exporting five times the rows. Its floor: that of the rows once. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Measured, measured, median } from './measured.ts';
import { emptyLedger, MONTH, MORNING_AFTER, type Workbench } from './workbench.ts';

const TIMES = 5;

export async function measureMemory(bench: Workbench): Promise<Measured[]> {
  const taken = { ours: [] as Peaks[], floor: [] as Peaks[] };
  for (let count = 1; count <= bench.repeat; count += 1) {
    for (const [side, rows] of [
      ['floor', bench.rows],
      ['ours', bench.rows * TIMES],
    ] as const) {
      const peaks = await peaksOf(bench, rows);
      taken[side].push(peaks);
      const figures = Object.entries(peaks).map(([command, mebibytes]) => `${command} ${mebibytes.toFixed(1)} MiB`);
      bench.note(`memory, ${count} of ${bench.repeat}, ${rows} rows: ${figures.join(', ')}`);
    }
  }
  return (['import', 'close', 'export'] as const).map((command) => {
    const ours = median(taken.ours.map((peaks) => peaks[command]));
    const floor = median(taken.floor.map((peaks) => peaks[command]));
    return measured({ measure: `memory-${command}`, ours, floor, unit: 'MiB' }, { atMost: 1.15 });
  });
}

interface Peaks {
  readonly import: number;
  readonly close: number;
  readonly export: number;
}

async function peaksOf(bench: Workbench, rows: number): Promise<Peaks> {
  const empty = await emptyLedger(bench);
  const file = await bench.rowsFile(MONTH, rows);
  const out = join(bench.folder, 'memory-pack');
  return bench.inClone(empty, async ({ url }) => {
    const peak = async (...args: string[]) => (await bench.reckoner(url, MORNING_AFTER, args)).mebibytes;
    const peaks = {
      import: await peak('ledger', 'import', file),
      close: await peak('close', MONTH, '--no-deliver'),
      export: await peak('export', 'ledger', '--month', MONTH, '--format', 'csv', '--out', out),
    };
    await rm(out, { recursive: true });
    return peaks;
  });
}
