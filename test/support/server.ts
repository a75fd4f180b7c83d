/**
 * One PostgreSQL server for the whole test run (DATABASE_URL, else an embedded one in a temporary folder) with one
 * migrated template that every test file clones.
 */
import { existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { freemem, tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { readEnvironment } from '../../src/config/environment.ts';
import { openDatabase } from '../../src/database/database.ts';
import { acquireEmbeddedServer, type EmbeddedServer } from '../../src/database/embedded.ts';
import { tallied } from './tally.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** URL of the server's maintenance database. */
    serverUrl: string;
    template: string;
    /** Where tests write down what they went through, see tally.ts. */
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
  // For the test files as well: they begin after this.
  if (hasRoom(MEMORY)) process.env['TMPDIR'] ??= MEMORY;
  const folder = mkdtempSync(join(tmpdir(), 'reckoner-tests-'));
  const given = process.env['DATABASE_URL'];
  const embedded = given === undefined ? await serverOfTests(join(folder, 'postgres')) : undefined;
  const serverUrl = given ?? socketUrl(embedded?.connection.host ?? '', embedded?.connection.port ?? 0, 'reckoner');
  const template = `reckoner_template_${process.pid}`;

  const admin = new pg.Client(serverUrl);
  await admin.connect();
  await admin.query(`CREATE DATABASE ${template}`);
  const environment = readEnvironment({ RECKONER_HOME: folder, DATABASE_URL: databaseUrl(serverUrl, template) });
  const database = await openDatabase(environment, { unmigrated: true });
  await database.migrations.run();
  await database.close();

  project.provide('serverUrl', serverUrl);
  project.provide('template', template);
  const tallyFile = join(folder, 'tally.ndjson');
  project.provide('tallyFile', tallyFile);
  return async () => {
    for (const line of tallied(tallyFile)) process.stdout.write(`${line}\n`);
    await admin.query(`DROP DATABASE ${template} WITH (FORCE)`);
    await admin.end();
    await embedded?.release();
    rmSync(folder, { recursive: true, force: true });
  };
}

/** The embedded server with what suits tests, and begun again with it. */
async function serverOfTests(folder: string): Promise<EmbeddedServer> {
  const made = await acquireEmbeddedServer(folder);
  const admin = new pg.Client(socketUrl(made.connection.host ?? '', made.connection.port ?? 0, 'reckoner'));
  await admin.connect();
  // Tests kill programs, not this server: nothing is lost by not waiting for its disk at each commit.
  await admin.query('ALTER SYSTEM SET synchronous_commit = off');
  // Of three files at once, each with a program of its own at times, whose pools are of twenty: 93 were seen.
  await admin.query('ALTER SYSTEM SET max_connections = 300');
  await admin.end();
  await made.release();
  return acquireEmbeddedServer(folder);
}

/** A URL of a server behind a Unix socket: the folder stands percent-encoded in the host's place. */
export function socketUrl(folder: string, port: number, database: string): string {
  return `postgres://reckoner@${encodeURIComponent(folder)}:${port}/${database}`;
}

/** The same server, another database. */
export function databaseUrl(serverUrl: string, database: string): string {
  return serverUrl.replace(/\/[^/?]*(\?|$)/, `/${database}$1`);
}
