/** `restore` of a closed month into an empty database, with its proof. Its floor: a minute for a million rows. */
import { join } from 'node:path';
import { type Measured, measured } from './measured.ts';
import { closedMonth, cpuInWords, inTurns, MORNING_AFTER, type Workbench } from './workbench.ts';

export async function measureRestore(bench: Workbench): Promise<Measured[]> {
  const backup = join(bench.folder, 'closed-month.backup');
  await bench.inClone(await closedMonth(bench), ({ url }) => bench.reckoner(url, MORNING_AFTER, ['backup', backup]));
  const { taken, cpu } = await inTurns<'ours' | 'floor'>(bench, 'restore', (turn) =>
    bench.inClone('template1', ({ url }) =>
      turn({
        ours: async () => (await bench.reckoner(url, MORNING_AFTER, ['restore', backup])).seconds,
        floor: async () => (60 * bench.rows) / 1_000_000,
      }),
    ),
  );
  return [measured({ measure: 'restore', ...taken, unit: 's', cpu: cpuInWords(cpu) }, { atMost: 1 })];
}
