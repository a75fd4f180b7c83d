/** `verify` of everything after a month is closed. Its floor is that of the close. */
import { closeFloor } from './close.ts';
import { type Measured, measured } from './measured.ts';
import { closedMonth, cpuInWords, inTurns, MORNING_AFTER, type Workbench } from './workbench.ts';

export async function measureVerify(bench: Workbench): Promise<Measured[]> {
  const closed = await closedMonth(bench);
  const { taken, cpu } = await bench.inClone(closed, ({ url, client }) =>
    inTurns<'ours' | 'floor'>(bench, 'verify', (turn) =>
      turn({
        ours: async () => (await bench.reckoner(url, MORNING_AFTER, ['verify'])).seconds,
        floor: () => closeFloor(client),
      }),
    ),
  );
  return [measured({ measure: 'verify', ...taken, unit: 's', cpu: cpuInWords(cpu) }, { atMost: 2 })];
}
