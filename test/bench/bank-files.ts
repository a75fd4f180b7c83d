/**
 * Seconds and peak memory of bank files of several sizes in every format: of the process that reads a file alone, and of
 * the program that records it, against a ledger of 200 open invoices.
 *
 *   npm run bench:bank-files -- [--only FORMAT]… [--megabytes 1]…
 */
import { spawn } from 'node:child_process';
import { readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { table } from '../../src/cli/output.ts';
import { packageRoot } from '../../src/package.ts';
import { FORMATS, writeBankFile } from './bank-lines.ts';
import { emptyLedger, MONTH, MORNING_AFTER, openWorkbench } from './workbench.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: Object.keys(FORMATS) },
    megabytes: { type: 'string', multiple: true, default: ['1', '10', '100'] },
  },
});
const NOW = '2026-08-21T12:00:00Z';
const PROGRAM = join(packageRoot, 'dist', 'src', 'cli', 'reckoner.js');
const MAP =
  'date=date; amount=amount; account=account; currency=USD; bank_reference=bank_reference; text=text; ' +
  'payer=payer; payer_account=payer_account; balance=balance';

const fileOf = (path: string) => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
};

interface Peaks {
  readonly seconds: number;
  /** Of the program, and of the process that reads the file. */
  readonly own: number;
  readonly reader: number;
}

/** What the kernel keeps as the peak of a process is gone when the process has ended, so it is read again and again. */
async function measure(args: readonly string[], url: string): Promise<Peaks> {
  const env = {
    PATH: process.env['PATH'],
    DATABASE_URL: url,
    RECKONER_HOME: join(bench.folder, 'home'),
    RECKONER_NOW: NOW,
  };
  const began = performance.now();
  const child = spawn(process.execPath, [PROGRAM, ...args], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let errors = '';
  child.stderr.on('data', (text) => {
    errors += String(text);
  });
  const peaks = { own: 0, reader: 0 };
  const peakOf = (pid: string | number) =>
    Number(/^VmHWM:\s+(\d+) kB/m.exec(fileOf(`/proc/${pid}/status`))?.[1] ?? 0) / 1000;
  const look = setInterval(() => {
    peaks.own = Math.max(peaks.own, peakOf(child.pid as number));
    const children = fileOf(`/proc/${child.pid}/task/${child.pid}/children`).trim();
    for (const pid of children === '' ? [] : children.split(' ')) peaks.reader = Math.max(peaks.reader, peakOf(pid));
  }, 10);
  const status = await new Promise((resolve) => child.on('close', resolve));
  clearInterval(look);
  // Exit status 4: finance has something left to do.
  if (status !== 0 && status !== 4) throw new Error(`${args.join(' ')} ended with ${status}: ${errors}`);
  return { seconds: (performance.now() - began) / 1000, ...peaks };
}

const note = (text: string) => void process.stderr.write(`${text}\n`);
const bench = await openWorkbench({ rows: 2000, partners: 200, repeat: 1, note });
try {
  const ledger = await bench.made(
    'ledger',
    async (url) => {
      await bench.reckoner(url, MORNING_AFTER, ['ledger', 'import', await bench.rowsFile(MONTH, bench.rows)]);
      await bench.reckoner(url, MORNING_AFTER, ['close', MONTH, '--no-deliver']);
    },
    await emptyLedger(bench),
  );
  const rows: (string | number)[][] = [];
  for (const name of values.only) {
    for (const megabytes of values.megabytes) {
      const path = join(bench.folder, `bank.${FORMATS[name]?.ending}`);
      const lines = await writeBankFile(path, name, Number(megabytes) * 1e6);
      const args = ['payment', 'import', path, ...(name === 'csv' ? ['--columns', MAP] : [])];
      const recorded = await bench.inClone(ledger, async ({ url }) => {
        rmSync(join(bench.folder, 'home', 'last-seen'), { recursive: true, force: true });
        return measure(args, url);
      });
      const whole = Math.round(statSync(path).size / 1e6);
      const row = [name, whole, lines, ...Object.values(recorded).map((each) => each.toFixed(1))];
      note(row.join(' '));
      rows.push(row);
      rmSync(path);
    }
  }
  process.stdout.write(`${table(['format', '>MB', '>lines', '>seconds', '>own MB', '>reader MB'], rows)}\n`);
} finally {
  await bench.close();
}
