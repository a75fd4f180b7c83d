/**
 * What measures work with: one embedded server of their own, databases cloned from what was made once, and the real
 * program as a child process whose time and peak memory are taken.
 */
import { spawn } from 'node:child_process';
import { createReadStream, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import pg from 'pg';
import { acquireEmbeddedServer } from '../../src/database/embedded.ts';
import { packageRoot } from '../../src/package.ts';
import { databaseUrl, socketUrl } from '../support/server.ts';
import { median } from './measured.ts';
import { writePartners, writeRows } from './rows.ts';

/** The month that is measured, and the morning on which it has ended everywhere. */
export const MONTH = '2026-07';
export const MORNING_AFTER = '2026-08-01T12:00:00Z';

export interface Ran {
  readonly seconds: number;
  /** Peak of the resident memory of the process. */
  readonly mebibytes: number;
  readonly stdout: string;
}

export interface Clone {
  readonly url: string;
  /** A connection as the server's owner, with the settings that every connection has. */
  readonly client: pg.Client;
}

export interface Workbench {
  readonly rows: number;
  readonly partners: number;
  readonly repeat: number;
  /** For files. It goes when the benchmark ends. */
  readonly folder: string;
  readonly note: (text: string) => void;
  /** Makes a database the first time that its name is asked for; nobody may change it afterwards. */
  readonly made: (name: string, make: (url: string) => Promise<void>, from?: string) => Promise<string>;
  /** Gives a copy of a database to the work and drops it afterwards. */
  readonly inClone: <Result>(name: string, work: (clone: Clone) => Promise<Result>) => Promise<Result>;
  readonly reckoner: (url: string, now: string, args: readonly string[]) => Promise<Ran>;
  /** The rows of a month as a file, written once. */
  readonly rowsFile: (
    month: string,
    rows: number,
    partners?: number,
    options?: { readonly lastDay?: boolean },
  ) => Promise<string>;
  /** CPU seconds so far, of the server with all its processes, and of this process with the programs that it ran. */
  readonly cpu: () => Cpu;
  readonly close: () => Promise<void>;
}

export interface Cpu {
  readonly server: number;
  readonly program: number;
}

export interface WorkbenchOptions {
  readonly rows: number;
  readonly partners: number;
  readonly repeat: number;
  readonly note: (text: string) => void;
}

// Loaded before the program: says at its end what the kernel kept as the peak of its memory. The parent's would count
// from before the fork, and the child's own figure in /proc is gone when the parent could read it.
const PEAK = `
import { readFileSync, writeFileSync } from 'node:fs';
// Its own children have no such variable.
if (process.env.RECKONER_BENCH_PEAK) process.on('exit', () => {
  let kibibytes = process.resourceUsage().maxRSS;
  try {
    kibibytes = Number(/^VmHWM:\\s+(\\d+) kB/m.exec(readFileSync('/proc/self/status', 'utf8'))[1]);
  } catch {}
  writeFileSync(process.env.RECKONER_BENCH_PEAK, String(kibibytes));
});
`;

export async function openWorkbench({ rows, partners, repeat, note }: WorkbenchOptions): Promise<Workbench> {
  const folder = mkdtempSync(join(tmpdir(), 'reckoner-bench-'));
  const home = join(folder, 'home');
  mkdirSync(home);
  const server = await acquireEmbeddedServer(join(folder, 'postgres'));
  const serverUrl = socketUrl(server.connection.host, server.connection.port, 'postgres');
  const admin = new pg.Client(serverUrl);
  await admin.connect();
  const postmaster = readFileSync(join(server.connection.host, 'postmaster.pid'), 'utf8').split('\n')[0] as string;
  const peak = join(folder, 'peak.mjs');
  writeFileSync(peak, PEAK);
  const connected = async <Result>(name: string, work: (client: pg.Client) => Promise<Result>): Promise<Result> => {
    const client = new pg.Client(databaseUrl(serverUrl, name));
    await client.connect();
    // As the program's connections.
    await client.query(`SET TIME ZONE 'UTC'`);
    return work(client).finally(() => client.end());
  };

  const databases = new Map<string, Promise<string>>();
  const files = new Map<string, Promise<string>>();
  let clones = 0;
  const bench: Workbench = {
    rows,
    partners,
    repeat,
    folder,
    note,
    made(name, make, from = 'template1') {
      const making = async () => {
        note(`making ${name}`);
        await admin.query(`CREATE DATABASE "${name}" TEMPLATE "${from}" STRATEGY file_copy`);
        await make(databaseUrl(serverUrl, name));
        // What autovacuum does a minute later; otherwise it would come in the middle of a measurement.
        await connected(name, (client) => client.query('VACUUM ANALYZE'));
        return name;
      };
      const found = databases.get(name) ?? making();
      databases.set(name, found);
      return found;
    },
    async inClone(name, work) {
      clones += 1;
      const clone = `clone_${clones}`;
      await admin.query(`CREATE DATABASE ${clone} TEMPLATE "${name}" STRATEGY file_copy`);
      try {
        return await connected(clone, (client) => work({ url: databaseUrl(serverUrl, clone), client }));
      } finally {
        await admin.query(`DROP DATABASE ${clone} WITH (FORCE)`);
      }
    },
    reckoner: (url, now, args) => run(peak, { url, now, home }, args),
    rowsFile(month, count, sellers = partners, options = {}) {
      const path = join(folder, `${month}-${count}-${sellers}${options.lastDay ? '-last-day' : ''}.ndjson`);
      const found = files.get(path) ?? writeRows(path, month, count, sellers, options).then(() => path);
      files.set(path, found);
      return found;
    },
    cpu: () => ({ server: cpuOfServer(postmaster), program: cpuOf('self').reduce((sum, each) => sum + each) }),
    async close() {
      await admin.end();
      await server.release();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return bench;
}

// Linux counts CPU time in hundredths of a second.
const TICKS = 100;

/** CPU seconds of a process, and of its children that have ended. None once it is gone. */
function cpuOf(pid: string): readonly [own: number, children: number] {
  try {
    // After its name, which may contain anything: from the third field on.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
      .map(Number);
    const [own, ownSystem, children, childrenSystem] = fields.slice(11, 15) as [number, number, number, number];
    return [(own + ownSystem) / TICKS, (children + childrenSystem) / TICKS];
  } catch {
    return [0, 0];
  }
}

/** Each connection and parallel worker is a child of the postmaster. */
function cpuOfServer(postmaster: string): number {
  const [own, ended] = cpuOf(postmaster);
  const running = readFileSync(`/proc/${postmaster}/task/${postmaster}/children`, 'utf8').trim().split(' ');
  return running.reduce((sum, pid) => sum + cpuOf(pid)[0], own + ended);
}

const PROGRAM = join(packageRoot, 'dist', 'src', 'cli', 'reckoner.js');

/** Variables of this machine that would change what the program does. */
const ENVIRONMENT = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(RECKONER_|STRIPE_|PAYMENT_|SMTP_|DATABASE_|PG)/.test(name)),
);

function run(
  peak: string,
  { url, now, home }: { url: string; now: string; home: string },
  args: readonly string[],
): Promise<Ran> {
  const answer = `${peak}.${args[0]}`;
  // Clones have fewer events than what they were made from, which a host takes for a loss.
  rmSync(join(home, 'last-seen'), { recursive: true, force: true });
  const env = {
    ...ENVIRONMENT,
    DATABASE_URL: url,
    RECKONER_HOME: home,
    RECKONER_NOW: now,
    RECKONER_BENCH_PEAK: answer,
  };
  return new Promise((resolve, reject) => {
    const began = performance.now();
    const child = spawn(process.execPath, ['--import', peak, PROGRAM, '--json', ...args], { env });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    child.on('error', reject);
    child.on('close', (status) => {
      const seconds = (performance.now() - began) / 1000;
      if (status === 0) resolve({ seconds, mebibytes: Number(readFileSync(answer, 'utf8')) / 1024, stdout });
      else reject(new Error(`reckoner ${args.join(' ')} ended with ${status}: ${stdout}${stderr}`));
    });
  });
}

// --- What several measures begin with ---------------------------------------------------------------------------------

/** A database with its tables and partners, and without rows. */
export const emptyLedger = (bench: Workbench, partners = bench.partners): Promise<string> =>
  bench.made(`empty_ledger_${partners}`, async (url) => {
    await bench.reckoner(url, MORNING_AFTER, ['init']);
    const file = join(bench.folder, 'partners.json');
    await writePartners(file, partners);
    await bench.reckoner(url, MORNING_AFTER, ['partner', 'import', file]);
  });

const DAYS = 30;

/** The same with a month of rows that is not closed yet: a file for each day, and a checkpoint after each but the last. */
export async function openMonth(bench: Workbench): Promise<string> {
  const from = await emptyLedger(bench);
  const file = await bench.rowsFile(MONTH, bench.rows);
  const make = async (url: string) => {
    const day = join(bench.folder, 'day.ndjson');
    const ofDay = Math.ceil(bench.rows / DAYS);
    let lines: string[] = [];
    const importDay = async () => {
      writeFileSync(day, lines.join('\n'));
      lines = [];
      await bench.reckoner(url, MORNING_AFTER, ['ledger', 'import', day]);
    };
    for await (const line of createInterface({ input: createReadStream(file) })) {
      if (lines.length === ofDay) {
        await importDay();
        await bench.reckoner(url, MORNING_AFTER, ['checkpoint', 'take']);
      }
      lines.push(line);
    }
    await importDay();
  };
  return bench.made('open_month', make, from);
}

/** The same closed, its documents not delivered. */
export async function closedMonth(bench: Workbench): Promise<string> {
  const make = async (url: string) => {
    await bench.reckoner(url, MORNING_AFTER, ['close', MONTH, '--no-deliver']);
  };
  return bench.made('closed_month', make, await openMonth(bench));
}

/** The seconds that a piece of work takes, with nothing left to write from before. */
export async function timed(client: pg.Client, work: () => Promise<unknown>): Promise<number> {
  await client.query('CHECKPOINT');
  const began = performance.now();
  await work();
  return (performance.now() - began) / 1000;
}

export interface Figures<Name extends string> {
  /** Medians of what the takes gave. */
  readonly taken: Readonly<Record<Name, number>>;
  /** Medians of the CPU seconds of each, of the server and of the program. */
  readonly cpu: Readonly<Record<Name, Cpu>>;
}

/**
 * Takes each figure as often as asked, in turns and in alternating order, so that whatever else the machine does hits
 * them alike; gives their medians. `round` prepares what the takes of a round need and hands them over.
 */
export async function inTurns<Name extends string>(
  bench: Workbench,
  label: string,
  round: (turn: (takes: Readonly<Record<Name, () => Promise<number>>>) => Promise<void>) => Promise<void>,
): Promise<Figures<Name>> {
  const taken = new Map<Name, { figure: number; cpu: Cpu }[]>();
  for (let count = 1; count <= bench.repeat; count += 1) {
    await round(async (takes) => {
      const names = Object.keys(takes) as Name[];
      for (const name of count % 2 === 1 ? names : names.reverse()) {
        const before = bench.cpu();
        const figure = await takes[name]();
        const after = bench.cpu();
        const cpu = { server: after.server - before.server, program: after.program - before.program };
        taken.set(name, [...(taken.get(name) ?? []), { figure, cpu }]);
        bench.note(
          `${label}, ${count} of ${bench.repeat}: ${name} ${figure.toFixed(2)}, ` +
            `CPU of the server ${cpu.server.toFixed(2)}, of the program ${cpu.program.toFixed(2)}`,
        );
      }
    });
  }
  const medians = <Of>(of: (all: readonly { figure: number; cpu: Cpu }[]) => Of) =>
    Object.fromEntries([...taken].map(([name, all]) => [name, of(all)])) as Record<Name, Of>;
  return {
    taken: medians((all) => median(all.map(({ figure }) => figure))),
    cpu: medians((all) => ({
      server: median(all.map(({ cpu }) => cpu.server)),
      program: median(all.map(({ cpu }) => cpu.program)),
    })),
  };
}

/** The CPU seconds of ours and of the floor, in words. */
export function cpuInWords({ ours, floor }: Readonly<Record<'ours' | 'floor', Cpu>>): string {
  const [all, least] = [ours.server + ours.program, floor.server + floor.program];
  const of = ({ server, program }: Cpu) =>
    `${server.toFixed(2)} s of the server, ${program.toFixed(2)} s of the program`;
  return `ours ${of(ours)}; floor ${of(floor)}; ratio ${(all / least).toFixed(2)}`;
}
