/** The programs that read a journal as text, and how each one checks it. */
import { spawnSync } from 'node:child_process';
import { BEANCOUNT, HLEDGER, type JournalFormat } from '../../src/audit/journal-formats.ts';
import { type Tool, tool } from './tools.ts';

export interface JournalProgram {
  readonly program: Tool;
  /** The format of `export journal`. */
  readonly format: 'hledger' | 'beancount';
  readonly writer: JournalFormat;
  /** Its arguments before and after the file. */
  readonly before: readonly string[];
  readonly after: readonly string[];
}

export const JOURNAL_PROGRAMS: readonly JournalProgram[] = [
  {
    ...{ program: 'hledger', format: 'hledger', writer: HLEDGER },
    ...{ before: ['check', '--strict', '-f'], after: [] },
  },
  {
    ...{ program: 'ledger', format: 'hledger', writer: HLEDGER },
    ...{ before: ['--strict', '--pedantic', '-f'], after: ['balance'] },
  },
  { ...{ program: 'bean-check', format: 'beancount', writer: BEANCOUNT }, ...{ before: [], after: [] } },
];

export function runProgram(program: Tool, args: readonly string[]): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(tool(program), args, {
    encoding: 'utf8',
    env: { ...process.env, LANG: 'C.UTF-8' },
  });
  return { status, output: `${stdout}${stderr}` };
}

/** A program's complaints about a journal; an empty text if there are none. */
export function judgeJournal({ program, before, after }: JournalProgram, path: string): string {
  const { status, output } = runProgram(program, [...before, path, ...after]);
  return status === 0 && !output.includes('rror') ? '' : `${program}: ${status} ${output.slice(0, 2000)}`;
}
