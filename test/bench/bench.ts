/**
 * The benchmark: each figure beside its floor, taken in turns in the same run on the same machine, against a fresh
 * embedded server (docs/performance.md). A figure says little by itself; the ratio travels.
 *
 *   npm run bench -- [--rows 1000000] [--partners 2000] [--repeat 5] [--only MEASURE]… [--json]
 */
import { parseArgs } from 'node:util';
import { table } from '../../src/cli/output.ts';
import type { Measured } from './measured.ts';
import { openWorkbench, type Workbench } from './workbench.ts';

/** In the order in which they run: what one makes the next ones use. Another one is a module and a line here. */
const MEASURES: Readonly<Record<string, (bench: Workbench) => Promise<readonly Measured[]>>> = {
  import: async (bench) => (await import('./import.ts')).measureImport(bench),
  close: async (bench) => (await import('./close.ts')).measureClose(bench),
  'flat-close': async (bench) => (await import('./flat-close.ts')).measureFlatClose(bench),
  export: async (bench) => (await import('./export.ts')).measureExport(bench),
  verify: async (bench) => (await import('./verify.ts')).measureVerify(bench),
  restore: async (bench) => (await import('./restore.ts')).measureRestore(bench),
  memory: async (bench) => (await import('./memory.ts')).measureMemory(bench),
  'month-24': async (bench) => (await import('./month-24.ts')).measureMonth24(bench),
  archive: async (bench) => (await import('./archive.ts')).measureArchive(bench),
  year: async (bench) => (await import('./year.ts')).measureYear(bench),
  pdf: async () => (await import('./pdf.ts')).measurePdf(),
  delivery: async () => (await import('./delivery.ts')).measureDelivery(),
  acceptances: async (bench) => [await (await import('./acceptances.ts')).measureAcceptances({ progress: bench.note })],
};

function usage(problem: string): never {
  process.stderr.write(
    `${problem}\nnpm run bench -- [--rows N] [--partners N] [--repeat N] [--only MEASURE]… [--json]\n` +
      `MEASURE is ${Object.keys(MEASURES).join(', ')}.\n`,
  );
  process.exit(2);
}

function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        rows: { type: 'string', default: '1000000' },
        partners: { type: 'string', default: '2000' },
        repeat: { type: 'string', default: '5' },
        only: { type: 'string', multiple: true, default: Object.keys(MEASURES) },
        json: { type: 'boolean', default: false },
      },
    });
    return values;
  } catch (error) {
    return usage((error as Error).message);
  }
}

const options = readOptions();
const whole = (name: 'rows' | 'partners' | 'repeat'): number =>
  /^[1-9]\d{0,8}$/.test(options[name]) ? Number(options[name]) : usage(`--${name} takes a whole number above zero`);
const unknown = options.only.find((name) => !(name in MEASURES));
if (unknown !== undefined) usage(`${unknown} is no measure`);

const bench = await openWorkbench({
  rows: whole('rows'),
  partners: whole('partners'),
  repeat: whole('repeat'),
  note: (text) => process.stderr.write(`${text}\n`),
});
const stop = () => void bench.close().finally(() => process.exit(130));
process.once('SIGINT', stop);
process.once('SIGTERM', stop);

const figures: Measured[] = [];
try {
  for (const [name, measure] of Object.entries(MEASURES)) {
    if (options.only.includes(name)) figures.push(...(await measure(bench)));
  }
} finally {
  await bench.close();
}

const KEYS = ['measure', 'ours', 'floor', 'unit', 'ratio', 'goal', 'met'] as const;
const missed = figures.filter(({ met }) => !met).length;
if (options.json) {
  const json = figures.map((figure) => Object.fromEntries(KEYS.map((key) => [key, figure[key]])));
  process.stdout.write(`${JSON.stringify(json, null, 2)}\n`);
} else {
  process.stdout.write(`${described()}\n`);
}

function described(): string {
  const rows = figures.map(({ measure, ours, floor, unit, ratio, goal, met }) => [
    measure,
    ours,
    floor,
    unit,
    ratio.toFixed(2),
    goal,
    met ? 'met' : 'missed',
  ]);
  return [
    table(['measure', '>ours', '>floor', '', '>ratio', '>goal', ''], rows),
    // What a measure says besides: a percentile, a rate.
    ...figures.flatMap((figure) =>
      Object.entries(figure)
        .filter(([key]) => !KEYS.some((known) => known === key))
        .map(([key, value]) => `${figure.measure}: ${key} ${String(value)}`),
    ),
    `${options.rows} rows, ${options.partners} partners, medians of ${options.repeat}: ` +
      (missed === 0 ? 'every goal is met.' : `${missed} of ${figures.length} missed.`),
  ].join('\n');
}
