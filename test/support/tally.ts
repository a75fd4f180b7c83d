/**
 * Counts over a run of the tests, reported at its end: kills survived, sequences run, inputs tried. Each test adds its
 * counts when it has passed. A run of one file reports on that file.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { inject } from 'vitest';

const COUNTED = ['kills survived', 'sequences run', 'inputs tried', 'rows through a cut', 'states verified'] as const;
type Counted = (typeof COUNTED)[number];

interface Entry {
  readonly counted: Counted;
  /** `at failpoints`. */
  readonly which: string;
  readonly count: number;
}

/** Adds to the run's counts; test files run in processes of their own, so it goes to a file. */
export function tally(counted: Counted, which: string, count: number): void {
  const entry: Entry = { counted, which, count };
  appendFileSync(inject('tallyFile'), `${JSON.stringify(entry)}\n`);
}

/** The lines that the run ends with: `kills survived: 37 (17 at failpoints, 20 at random instants)`. */
export function tallied(file: string): string[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  const entries = lines.map((line) => JSON.parse(line) as Entry);
  return COUNTED.flatMap((counted) => {
    const own = entries.filter((entry) => entry.counted === counted);
    if (own.length === 0) return [];
    const sums = new Map<string, number>();
    for (const { which, count } of own) sums.set(which, (sums.get(which) ?? 0) + count);
    const total = [...sums.values()].reduce((sum, count) => sum + count, 0);
    const parts = [...sums].sort().map(([which, count]) => `${count.toLocaleString('en-US')} ${which}`);
    return [`${counted}: ${total.toLocaleString('en-US')} (${parts.join(', ')})`];
  });
}
