/**
 * Programs of others that the tests run: most judge what we write. A machine may lack them: their tests are skipped, and
 * report.ts names them at the end. CI must have them. `tool` is the one way to such a program; test/structure.test.ts
 * refuses any other, and `.ci/run` runs `npm test` where there are none of them.
 */
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'vitest';
import { TestRunner } from 'vitest';

/** The Debian package of each, also for the line that report.ts prints. */
export const TOOLS = {
  qpdf: 'qpdf',
  pdfinfo: 'poppler-utils',
  pdfdetach: 'poppler-utils',
  pdffonts: 'poppler-utils',
  pdftoppm: 'poppler-utils',
  pdftotext: 'poppler-utils',
  xmllint: 'libxml2-utils',
  zbarimg: 'zbar-tools',
  hledger: 'hledger',
  ledger: 'ledger',
  'bean-check': 'beancount',
  chromium: 'chromium',
  python3: 'python3',
  curl: 'curl',
  jq: 'jq',
  age: 'age',
  openssl: 'openssl',
  pgbouncer: 'pgbouncer',
  nginx: 'nginx-light',
  caddy: 'caddy',
  ip: 'iproute2',
  bash: 'bash',
  sha256sum: 'coreutils',
  chroot: 'coreutils',
  go: 'golang-go',
  sqlite3: 'sqlite3',
  npm: 'npm',
  unshare: 'util-linux',
  nsenter: 'util-linux',
  promtool: 'prometheus',
} as const;
export type Tool = keyof typeof TOOLS;

/** What every Unix has. */
export const UNIX: readonly string[] = ['sh', 'cp', 'chown', 'mkfifo', 'mount', 'umount', 'ps'];

const found = new Map<Tool, string | undefined>();

/** In PATH, and where Debian keeps daemons: /usr/sbin is not in the PATH of an ordinary user. */
function find(tool: Tool): string | undefined {
  if (!found.has(tool)) {
    const folders = (process.env['PATH'] ?? '').split(':').flatMap((folder) => [folder, join(folder, '../sbin')]);
    found.set(tool, folders.map((folder) => join(folder, tool)).find(isExecutable));
  }
  return found.get(tool);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** For a beforeAll, which cannot skip: it leaves out what only tests with `needs` use. */
export const has = (tool: Tool): boolean => find(tool) !== undefined;

export const needsNote = (tool: Tool): string => `needs ${tool}`;

/** Skips the test that runs where the program is missing, and fails it with CI=true. */
export function needs(tool: Tool, context?: Pick<TestContext, 'skip'>): void {
  if (has(tool)) return;
  const running = context ?? TestRunner.getCurrentTest()?.context;
  if (process.env['CI'] === 'true' || running === undefined)
    throw new Error(`${tool} is missing: apt-get install ${TOOLS[tool]}`);
  running.skip(needsNote(tool));
}

/** The program's path, for child_process. Like `needs` where it is missing. */
export function tool(name: Tool): string {
  needs(name);
  return find(name) as string;
}
