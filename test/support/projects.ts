/**
 * Sorts the test files into vitest's projects by what they import, so that nobody keeps a list:
 *
 *   unit      needs no PostgreSQL and takes seconds: `npm run test:unit`
 *   pdf       renders documents and reads them back: no PostgreSQL either, half a minute of CPU
 *   database  imports a world or a database: gets a server with a migrated template (server.ts)
 *   programs  runs our program, or programs of others beside a server: processes, kills, hosts, browsers, clients, checkers
 *
 * `npm test` runs the first three, `npm run test:programs` the last; `.ci/run` runs all of them.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, reachedFrom } from './modules.ts';

/** Only files that import one of these, directly or through other files of test/, can use a PostgreSQL server. */
export const SERVERS: readonly string[] = [
  'test/support/databases.ts',
  'test/support/program.ts',
  'src/database/embedded.ts',
];
/** Runs the program compiled into dist/. */
const PROGRAM = 'test/support/program.ts';

/** The only way to run programs of others. */
const TOOLS = 'test/support/tools.ts';

/** Reads PDFs back, as a recipient's programs would. */
const PDF_READER = "from 'pdfjs-dist";

const reaches = (file: string, target: string): boolean => reachedFrom(file, 'test/').has(target);

export const needsServer = (file: string): boolean => SERVERS.some((server) => reaches(file, server));
export const runsProgram = (file: string): boolean => reaches(file, PROGRAM);
export const runsTools = (file: string): boolean => reaches(file, TOOLS);
/** Takes minutes, in a sweep or always. */
const LONG_SWEEPS: readonly string[] = ['test/audit/mutations/mutations.test.ts', 'test/handbook/containers.test.ts'];

export const readsPdfs = (file: string): boolean => readFileSync(join(ROOT, file), 'utf8').includes(PDF_READER);

/** All test files, as paths relative to the repository. */
export const testFiles = (): string[] =>
  readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => `test/${name.replaceAll('\\', '/')}`)
    .sort();

export interface Projects {
  readonly unit: readonly string[];
  readonly pdf: readonly string[];
  readonly database: readonly string[];
  readonly programs: readonly string[];
}

export function projects(): Projects {
  const files = testFiles();
  const isServed = (file: string) => needsServer(file) || LONG_SWEEPS.includes(file);
  const without = files.filter((file) => !isServed(file));
  const served = files.filter(isServed);
  const runsAny = (file: string) => runsProgram(file) || runsTools(file);
  return {
    unit: without.filter((file) => !readsPdfs(file)),
    pdf: without.filter(readsPdfs),
    database: served.filter((file) => !runsAny(file)),
    programs: served.filter(runsAny),
  };
}
