/** The real `reckoner serve` over a world, to be killed, and a caller of its partner p-1. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Credentials } from '../../src/partners/clients.ts';
import { compiled, reckoner } from '../support/program.ts';
import { type Caller, callerWith } from '../support/service.ts';
import type { World } from '../support/world.ts';

export interface Serving {
  readonly serve: (failpoint?: string) => Promise<{ child: ChildProcess; url: string; caller: Caller }>;
  /** Kills what still runs. */
  readonly end: () => void;
}

export async function prepareServing(world: World, more: Readonly<Record<string, string>> = {}): Promise<Serving> {
  const env = { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, ...more };
  const credentials = (await reckoner(['--json', 'client', 'create', 'p-1'], { env })).json() as Credentials;
  const children: ChildProcess[] = [];
  return {
    async serve(failpoint) {
      const child = spawn(process.execPath, [compiled('src/cli/reckoner.js'), '--json', 'serve', '--port', '0'], {
        env: { ...process.env, ...env, ...(failpoint && { RECKONER_FAILPOINT: failpoint }) },
      });
      children.push(child);
      const [said] = (await once(child.stdout, 'data')) as [Buffer];
      const { listening } = JSON.parse(said.toString()) as { listening: string };
      return { child, url: listening, caller: await callerWith(listening, credentials) };
    },
    end() {
      for (const child of children) child.kill('SIGKILL');
    },
  };
}
