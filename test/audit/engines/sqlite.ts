/** The rules of checks.sql in SQLite. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { tool } from '../../support/tools.ts';

/** By Python's own SQLite, which reads the files itself. */
export function inSqlite(checks: string, log: string): string[] {
  const program = join(import.meta.dirname, 'sqlite.py');
  const answer = execFileSync(tool('python3'), [program, checks, log], { encoding: 'utf8', maxBuffer: 1e9 });
  return answer.split('\n').slice(0, -1).sort();
}
