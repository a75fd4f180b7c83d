/** The last line of a run: which tests were skipped because a program of somebody else is missing. */
import type { Reporter, TestModule } from 'vitest/node';
import { needsNote, TOOLS, type Tool } from './tools.ts';

export default class MissingTools implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const notes = modules.flatMap((module) =>
      [...module.children.allTests('skipped')].map((test) => {
        const result = test.result();
        return result.state === 'skipped' ? result.note : undefined;
      }),
    );
    const line = skippedLine(notes);
    if (line !== undefined) process.stdout.write(`\n${line}\n`);
  }
}

/** From the notes of all skipped tests; undefined where no program was missing. */
export function skippedLine(notes: readonly (string | undefined)[]): string | undefined {
  const missing = (Object.keys(TOOLS) as Tool[]).filter((tool) => notes.includes(needsNote(tool)));
  if (missing.length === 0) return undefined;
  const count = notes.filter((note) => missing.some((tool) => note === needsNote(tool))).length;
  const packages = [...new Set(missing.map((tool) => TOOLS[tool]))];
  const tests = count === 1 ? '1 test needs' : `${count} tests need`;
  return `SKIPPED: ${tests} ${missing.join(', ')} (apt-get install ${packages.join(' ')})`;
}
