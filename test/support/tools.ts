/** Programs of others that judge what we write. A workplace may lack them, and hears so at the end; CI must have them. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { TestContext } from 'vitest';

export const CHROMIUM = '/usr/bin/chromium';

/** The Debian package of each, also for the line that report.ts prints. */
export const TOOLS = {
  qpdf: 'qpdf',
  pdfinfo: 'poppler-utils',
  pdfdetach: 'poppler-utils',
  pdffonts: 'poppler-utils',
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
} as const;
export type Tool = keyof typeof TOOLS;

const found = new Map<Tool, boolean>();

export function has(tool: Tool): boolean {
  const known = found.get(tool);
  if (known !== undefined) return known;
  const is = tool === 'chromium' ? existsSync(CHROMIUM) : spawnSync(tool, ['--version']).error === undefined;
  found.set(tool, is);
  return is;
}

export const needsNote = (tool: Tool): string => `needs ${tool}`;

/** The first line of a test that runs this program: skips it where the program is missing, and fails it with CI=true. */
export function needs(tool: Tool, context: TestContext): void {
  if (has(tool)) return;
  if (process.env['CI'] === 'true') throw new Error(`${tool} is missing: apt-get install ${TOOLS[tool]}`);
  context.skip(needsNote(tool));
}
