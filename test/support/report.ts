/** The last lines of a run: how to repeat what failed, and what was skipped because the machine lacks what it needs. */
import type { Reporter, TestModule } from 'vitest/node';
import { SEED } from './random.ts';
import { REACH } from './sweep.ts';
import { needsNote, TOOLS, type Tool } from './tools.ts';

export default class LastLines implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const failed = modules.flatMap((module) => {
      const tests = [...module.children.allTests('failed')].map(({ fullName }) => fullName);
      // A file that failed as a whole, or in a hook.
      return tests.length > 0 || module.ok()
        ? tests.map((name) => ({ file: module.relativeModuleId, name }))
        : [{ file: module.relativeModuleId }];
    });
    process.stdout.write(
      repeatLines(failed)
        .map((line) => `${line}\n`)
        .join(''),
    );
    const notes = modules.flatMap((module) =>
      [...module.children.allTests('skipped')].map((test) => {
        const result = test.result();
        return result.state === 'skipped' ? result.note : undefined;
      }),
    );
    const lines = skippedLines(notes);
    if (lines.length > 0) process.stdout.write(`\n${lines.join('\n')}\n`);
  }
}

interface Failed {
  readonly file: string;
  /** Absent if the whole file failed. */
  readonly name?: string;
}

const REPEATED_AT_MOST = 20;

/** One command for each failed test, with the seed and the reach of the run. */
export function repeatLines(failed: readonly Failed[]): string[] {
  if (failed.length === 0) return [];
  const command = ({ file, name }: Failed) => {
    // vitest takes a pattern, and separates the names of a test and of its groups by a space.
    const pattern = name?.replaceAll(' > ', ' ').replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    const only = pattern === undefined ? '' : ` -t '${pattern.replaceAll("'", "'\\''")}'`;
    return `  RECKONER_SEED=${SEED} RECKONER_SWEEP=${REACH} npx vitest run ${file}${only}`;
  };
  const more = failed.length - REPEATED_AT_MOST;
  return [
    '',
    'To repeat what failed:',
    ...failed.slice(0, REPEATED_AT_MOST).map(command),
    ...(more > 0 ? [`  and ${more} more`] : []),
  ];
}

const many = (count: number) => (count === 1 ? '1 test needs' : `${count} tests need`);

/** From the notes of all skipped tests: the programs in one line, then whatever else a test needs. */
export function skippedLines(notes: readonly (string | undefined)[]): string[] {
  const counts = new Map<string, number>();
  for (const note of notes) if (note?.startsWith('needs ')) counts.set(note, (counts.get(note) ?? 0) + 1);
  const missing = (Object.keys(TOOLS) as Tool[]).filter((tool) => counts.has(needsNote(tool)));
  const count = missing.reduce((sum, tool) => sum + (counts.get(needsNote(tool)) ?? 0), 0);
  const packages = [...new Set(missing.map((tool) => TOOLS[tool]))];
  for (const tool of missing) counts.delete(needsNote(tool));
  return [
    ...(count === 0 ? [] : [`SKIPPED: ${many(count)} ${missing.join(', ')} (apt-get install ${packages.join(' ')})`]),
    ...[...counts].map(([note, of]) => `SKIPPED: ${many(of)} ${note.slice('needs '.length)}`),
  ];
}
