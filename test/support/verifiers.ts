/**
 * The verifiers of packs where they are asked a hundred times: to start a process and to load what it imports took most of
 * each answer. How they start alone, as a stranger starts them, other tests see.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { packageRoot } from '../../src/package.ts';
import { tool } from './tools.ts';

export interface Answer {
  readonly status: number;
  readonly output: string;
}

/** Verifiers write at most 80 columns: this joins the lines of a sentence again. */
export const unwrapped = (output: string): string => output.replaceAll(/\n {6}(?: {2})?(?=[^ -])/g, ' ');

const FOLDER = 'templates/export';

/** In a thread of its own, with an empty environment. */
async function askNode(script: string, args: readonly string[]): Promise<Answer> {
  const worker = new Worker(script, { argv: [...args], env: {}, stdout: true, stderr: true });
  const [[status], ...outputs] = await Promise.all([once(worker, 'exit'), text(worker.stdout), text(worker.stderr)]);
  return { status: status as number, output: unwrapped(outputs.join('')) };
}

export interface Verifiers {
  readonly ask: (program: 'node' | 'python3', args: readonly string[]) => Promise<Answer>;
  readonly end: () => void;
}

export function openVerifiers(folder = FOLDER): Verifiers {
  const scriptOf = (name: string) => join(packageRoot, folder, name);
  let python: { readonly child: ChildProcess; readonly lines: Interface } | undefined;
  const askPython = async (args: readonly string[]): Promise<Answer> => {
    if (python === undefined) {
      const resident = fileURLToPath(new URL('resident.py', import.meta.url));
      const child = spawn(tool('python3'), [resident, scriptOf('verify.py')], { stdio: ['pipe', 'pipe', 'inherit'] });
      python = { child, lines: createInterface({ input: child.stdout }) };
    }
    const answer = once(python.lines, 'line', { signal: AbortSignal.timeout(60_000) });
    python.child.stdin?.write(`${JSON.stringify(args)}\n`);
    const [status, output] = JSON.parse(((await answer) as [string])[0]) as [number, string];
    return { status, output: unwrapped(output) };
  };
  return {
    ask: (program, args) => (program === 'node' ? askNode(scriptOf('verify.mjs'), args) : askPython(args)),
    end: () => python?.child.kill(),
  };
}
