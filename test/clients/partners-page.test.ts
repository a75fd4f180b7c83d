/** The commands of docs/partners.md, as a partner's developer copies them: each runs, and answers what the page shows. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { packageRoot } from '../../src/package.ts';
import { needs, tool } from '../support/tools.ts';
import { openRunning, type Running } from './running.ts';

let running: Running;
const folders: string[] = [];

beforeAll(async () => {
  running = await openRunning('2026-07-15T12:00:00Z');
  await running.serveAt('2026-07-15T12:00:00Z');
});
afterAll(async () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  await running.end();
});

interface Step {
  readonly commands: string;
  /** The answer that the page shows after it. */
  readonly shown: string | undefined;
}

/** The page's commands after those that set the credentials, each with the answer that it shows. */
function steps(): Step[] {
  const page = readFileSync(join(packageRoot, 'docs/partners.md'), 'utf8');
  const found: Step[] = [];
  for (const [, kind, text = ''] of page.matchAll(/^```(sh|json)\n(.*?)^```$/gms)) {
    if (kind === 'sh') found.push({ commands: text, shown: undefined });
    // Of two answers in a row, the second is that of a call in the text.
    else if (found.at(-1)?.shown === undefined) found.push({ ...(found.pop() as Step), shown: text });
  }
  return found;
}

/** What each step prints, in one shell from the first to the last. */
function printed(as: keyof Running['as'], all: readonly Step[]): { outputs: string[]; folder: string } {
  const folder = mkdtempSync(join(tmpdir(), 'reckoner-page-'));
  folders.push(folder);
  const script = all.map(({ commands }) => `${commands}\nprintf '\\n----\\n'`).join('\n');
  // Through a pipe, which `tee /dev/stderr` can open.
  const { status, stdout } = spawnSync(tool('bash'), ['-euo', 'pipefail', '-c', `{\n${script}\n} 2>&1 | cat`], {
    ...{ cwd: folder, encoding: 'utf8' },
    env: { ...process.env, ...running.as[as] },
  });
  expect({ as, status, stdout }).toMatchObject({ status: 0 });
  return { outputs: stdout.split('\n----\n'), folder };
}

/** The names in a JSON text, of lists those of the first item: what it is, whatever it says. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, 1).map(shapeOf);
  if (value === null || typeof value !== 'object') return 'value';
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, shapeOf(each)]));
}
/** The first JSON of an output; that of a second call may follow on its line. */
const jsonOf = (text: string): unknown =>
  JSON.parse((/^[{[].*?[}\]]$/m.exec(text)?.[0] ?? text).replace(/\}[{[].*$/, '}'));

test.each(['p-1', 'p-csv'] as const)(
  'every command of the page runs, as %s',
  (as) => {
    for (const each of ['curl', 'jq'] as const) needs(each);
    const [, ...all] = steps();
    expect(all.length).toBeGreaterThan(6);
    const { outputs, folder } = printed(as, all);
    let compared = 0;
    for (const [index, { commands, shown }] of all.entries()) {
      const ofAccount = commands.includes('settlement-files');
      if (ofAccount && as === 'p-1') expect(outputs[index]).toContain('partner_not_connected');
      // An acceptance under a connected account has its split as well, and its partner has fewer events.
      else if (shown !== undefined && ofAccount === (as === 'p-csv')) {
        expect({ commands, shape: shapeOf(jsonOf(outputs[index] as string)) }).toEqual({
          commands,
          shape: shapeOf(jsonOf(shown)),
        });
        compared += 1;
      }
    }
    expect(compared).toBe(as === 'p-1' ? 7 : 1);
    if (as === 'p-1')
      for (const type of ['pdf', 'csv']) expect(existsSync(join(folder, `INV-2026-000001.${type}`))).toBe(true);
  },
  60_000,
);
