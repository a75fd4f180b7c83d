/**
 * `export ledger` of a closed month as CSV, with the hashes of its pack. Its floor: COPY … TO STDOUT into a file, and
 * `sha256sum` of that.
 */
import { execFile } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { to as copyTo } from 'pg-copy-streams';
import { type Measured, measured } from './measured.ts';
import { closedMonth, cpuInWords, inTurns, MONTH, MORNING_AFTER, timed, type Workbench } from './workbench.ts';

export async function measureExport(bench: Workbench): Promise<Measured[]> {
  const closed = await closedMonth(bench);
  const out = join(bench.folder, 'pack');
  const file = join(bench.folder, 'floor.csv');
  const { taken, cpu } = await bench.inClone(closed, ({ url, client }) =>
    inTurns<'ours' | 'floor'>(bench, 'export', (turn) =>
      turn({
        ours: async () => {
          await rm(out, { recursive: true, force: true });
          await client.query('CHECKPOINT');
          const args = ['export', 'ledger', '--month', MONTH, '--format', 'csv', '--out', out];
          return (await bench.reckoner(url, MORNING_AFTER, args)).seconds;
        },
        floor: () =>
          timed(client, async () => {
            const copy = client.query(copyTo('COPY ledger_rows TO STDOUT (FORMAT csv, HEADER)'));
            await pipeline(copy, createWriteStream(file, { flush: true }));
            await promisify(execFile)('sha256sum', [file]);
          }),
      }),
    ),
  );
  return [measured({ measure: 'export', ...taken, unit: 's', cpu: cpuInWords(cpu) }, { atMost: 1.25 })];
}
