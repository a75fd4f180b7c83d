/**
 * One PostgreSQL server for a run of database tests (DATABASE_URL, else an embedded one in a temporary folder) with one
 * migrated template that every test file clones. Also builds the program when a file that runs it would find it stale.
 *
 * Creating the embedded cluster and migrating it takes seconds, so it is kept below node_modules/.cache, stopped, and
 * each run starts a separate copy. Delete that folder to start over.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  utimesSync,
} from 'node:fs';
import { freemem, tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { readEnvironment } from '../../src/config/environment.ts';
import { openDatabase } from '../../src/database/database.ts';
import { acquireEmbeddedServer, type EmbeddedServer } from '../../src/database/embedded.ts';
import { compareSchema, type SchemaComparison } from '../../src/database/schema.ts';
import { buildIfStale } from './build.ts';
import { catalogAt } from './catalog.ts';
import { ROOT, reachedFrom } from './modules.ts';
import { runsProgram } from './projects.ts';
import { tallied } from './tally.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** URL of the server's maintenance database. */
    serverUrl: string;
    template: string;
    /** The result of comparing the template's schema. */
    schema: SchemaComparison;
    /** The template's catalog, see catalog.ts. */
    catalog: string;
    /** The file to which tests write their counts (tally.ts). */
    tallyFile: string;
  }
}

/**
 * Linux's folder in memory. The tests make and empty thousands of tables and databases, which on a disk took a third of
 * the server's CPU and most of the waiting.
 */
const MEMORY = '/dev/shm';
const ROOM_BYTES = 4 * 1024 ** 3;

const hasRoom = (folder: string): boolean => {
  if (!existsSync(folder)) return false;
  const { bavail, bsize } = statfsSync(folder);
  return Math.min(bavail * bsize, freemem()) >= ROOM_BYTES;
};

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const build = () => {
    const files = project.vitest.state.getPaths().map((path) => relative(ROOT, path));
    if (files.some(runsProgram)) buildIfStale();
  };
  build();
  project.onTestsRerun(build);
  // For the test files as well: they begin after this.
  if (hasRoom(MEMORY)) process.env['TMPDIR'] ??= MEMORY;
  removeAbandoned(tmpdir());
  const folder = mkdtempSync(join(tmpdir(), `${RUN}${process.pid}-`));
  const given = process.env['DATABASE_URL'];
  const embedded = given === undefined ? await migratedServer(folder) : undefined;
  const serverUrl = given ?? urlOf(embedded);
  const template = embedded ? TEMPLATE : `${TEMPLATE}_${process.pid}`;
  if (!embedded) await createTemplate(serverUrl, template, folder);

  project.provide('serverUrl', serverUrl);
  project.provide('template', template);
  project.provide('schema', await compared(serverUrl, template, folder));
  project.provide('catalog', await catalogAt(databaseUrl(serverUrl, template)));
  const tallyFile = join(folder, 'tally.ndjson');
  project.provide('tallyFile', tallyFile);
  return async () => {
    for (const line of tallied(tallyFile)) process.stdout.write(`${line}\n`);
    if (!embedded) await dropAll(serverUrl, template);
    await embedded?.release();
    rmSync(folder, { recursive: true, force: true });
  };
}

const TEMPLATE = 'reckoner_template';

/** The template, and the worlds that were kept for later tests. */
async function dropAll(serverUrl: string, template: string): Promise<void> {
  const client = new pg.Client(serverUrl);
  await client.connect();
  try {
    const { rows } = await client.query<{ name: string }>(
      `SELECT datname AS name FROM pg_database WHERE datname = $1 OR datname LIKE $1 || '\\_%'`,
      [template],
    );
    for (const { name } of rows) await client.query(`DROP DATABASE ${name} WITH (FORCE)`);
  } finally {
    await client.end();
  }
}

async function queryOnce(url: string, ...statements: string[]): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

const environmentOf = (serverUrl: string, template: string, home: string) =>
  readEnvironment({ RECKONER_HOME: home, DATABASE_URL: databaseUrl(serverUrl, template) });

async function createTemplate(serverUrl: string, template: string, home: string): Promise<void> {
  await queryOnce(serverUrl, `CREATE DATABASE ${template}`);
  const database = await openDatabase(environmentOf(serverUrl, template, home), { unmigrated: true });
  await database.migrations.run();
  await database.close();
}

/**
 * The schema is compared once for all worlds. Comparing it each time took two thirds of each close in a test, and a
 * third of each verify.
 */
async function compared(serverUrl: string, template: string, home: string): Promise<SchemaComparison> {
  const database = await openDatabase(environmentOf(serverUrl, template, home));
  return database.reading(compareSchema).finally(() => database.close());
}

// --- The embedded server ----------------------------------------------------------------------------------------------

/** Settings for tests, in the cluster's configuration. */
const SETTINGS = [
  // Tests kill programs, not this server: nothing is lost by not waiting for its disk at each commit.
  'synchronous_commit = off',
  'full_page_writes = off',
  // Three files at once, each with a program of its own at times, whose pools are of twenty: 93 were seen.
  'max_connections = 300',
  // Half of the server's work was to plan statements anew that each connection had planned before.
  'plan_cache_mode = force_generic_plan',
  // A table that was vacuumed while it was empty is planned for as if it stayed so.
  'autovacuum = off',
];

/** Starts a copy of the kept cluster, which is created first if there is none with this schema. */
async function migratedServer(folder: string): Promise<EmbeddedServer> {
  const own = join(folder, 'postgres');
  const kept = join(CACHE, cacheKey());
  if (copyKept(kept, own)) return acquireEmbeddedServer(own);
  const made = await acquireEmbeddedServer(own);
  await queryOnce(urlOf(made), ...SETTINGS.map((setting) => `ALTER SYSTEM SET ${setting}`));
  await createTemplate(urlOf(made), TEMPLATE, folder);
  await made.release();
  keep(own, kept);
  return acquireEmbeddedServer(own);
}

const CACHE = join(ROOT, 'node_modules/.cache/reckoner-tests');
/** How many schemas are kept (60 MB each), for developers who switch between branches. */
const KEPT = 3;

/** Changes whenever PostgreSQL, the libraries, the migrations or the code that runs them change. */
function cacheKey(): string {
  const migrations = readdirSync(join(ROOT, 'migrations'), { recursive: true, encoding: 'utf8' });
  const files = [
    'package-lock.json',
    ...reachedFrom('test/support/server.ts'),
    ...migrations.map((name) => join('migrations', name)),
  ];
  const hash = createHash('sha256').update(`${process.platform} ${process.arch} ${process.getuid?.()}`);
  for (const file of [...new Set(files)].sort()) {
    if (statSync(join(ROOT, file)).isFile()) hash.update(`\n${file}\n`).update(readFileSync(join(ROOT, file)));
  }
  return hash.digest('hex').slice(0, 20);
}

/** By `cp -Rp`, which keeps the owner: root's server runs as another user. */
const copyCluster = (from: string, to: string) => execFileSync('cp', ['-Rp', from, to], { stdio: 'ignore' });

function copyKept(kept: string, own: string): boolean {
  if (!existsSync(join(kept, 'data/PG_VERSION'))) return false;
  try {
    utimesSync(kept, new Date(), new Date());
    copyCluster(kept, own);
    return true;
  } catch {
    // Another run has just removed it as the oldest.
    rmSync(own, { recursive: true, force: true });
    return false;
  }
}

/**
 * Renames the cluster in one step, so that a run that is killed meanwhile, or two runs at once, leave a whole cluster
 * or none.
 */
function keep(own: string, kept: string): void {
  if (existsSync(join(own, 'data/postmaster.pid'))) throw new Error(`${own}: the server was told to stop and runs on`);
  const draft = `${kept}.new.${process.pid}`;
  try {
    mkdirSync(CACHE, { recursive: true });
    copyCluster(own, draft);
    renameSync(draft, kept);
  } catch {
    rmSync(draft, { recursive: true, force: true }); // Another run was first, or node_modules is not ours to write.
  }
  const byUse = (existsSync(CACHE) ? readdirSync(CACHE) : [])
    .map((name) => ({
      path: join(CACHE, name),
      used: statSync(join(CACHE, name), { throwIfNoEntry: false })?.mtimeMs ?? 0,
    }))
    .sort((one, other) => other.used - one.used);
  for (const { path } of byUse.slice(KEPT)) rmSync(path, { recursive: true, force: true });
}

// --- Runs that were killed ----------------------------------------------------------------------------------------------

const RUN = 'reckoner-tests-';

/** Stops the servers of killed runs, which would otherwise stay in memory. */
function removeAbandoned(parent: string): void {
  for (const name of readdirSync(parent)) {
    const pid = new RegExp(`^${RUN}(\\d+)-`).exec(name)?.[1];
    if (pid === undefined || isAlive(Number(pid))) continue;
    const folder = join(parent, name);
    const lock = join(folder, 'postgres/data/postmaster.pid');
    try {
      const server = existsSync(lock) ? Number(readFileSync(lock, 'utf8').split('\n')[0]) : 0;
      if (server > 0 && commandOf(server).includes('postgres')) process.kill(server, 'SIGQUIT');
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    } catch {
      // Another user's, or one that is ending: it is not ours to insist.
    }
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Empty for a process that has ended. Works without ps, which a small machine may lack. */
export function commandOf(pid: number): string {
  if (process.platform !== 'linux')
    return spawnSync('ps', ['-ww', '-o', 'args=', '-p', String(pid)], { encoding: 'utf8' }).stdout;
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

// --- URLs ---------------------------------------------------------------------------------------------------------------

const urlOf = (server: EmbeddedServer | undefined) =>
  socketUrl(server?.connection.host ?? '', server?.connection.port ?? 0, 'reckoner');

/** A URL of a server behind a Unix socket: the folder replaces the host, percent-encoded. */
export function socketUrl(folder: string, port: number, database: string): string {
  return `postgres://reckoner@${encodeURIComponent(folder)}:${port}/${database}`;
}

/** The same server with a different database. */
export function databaseUrl(serverUrl: string, database: string): string {
  return serverUrl.replace(/\/[^/?]*(\?|$)/, `/${database}$1`);
}
