/** Streaming standbys of the embedded server, on its own programs. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { acquireEmbeddedServer, type EmbeddedServer } from '../../src/database/embedded.ts';
import { socketUrl } from './server.ts';

export const urlOf = ({ connection }: EmbeddedServer): string =>
  socketUrl(connection.host, connection.port, connection.database);

/** The rows of one statement. */
export async function ask(url: string, sql: string): Promise<Record<string, string>[]> {
  const client = new pg.Client(url);
  await client.connect();
  return client
    .query<Record<string, string>>(sql)
    .then(({ rows }) => rows)
    .finally(() => client.end());
}

const DATA_FILES = { recursive: true, filter: (path: string) => !/postmaster.pid$|\/\.s\.PGSQL/.test(path) } as const;

/** A copy of a server's folder, owned as the original is. Root copies; the server runs as a user of its own. */
export function copyServer(source: string, target: string): void {
  mkdirSync(target, { recursive: true });
  cpSync(join(source, 'data'), join(target, 'data'), DATA_FILES);
  own(source, target);
}

function own(source: string, target: string): void {
  const { uid, gid } = statSync(join(source, 'data'));
  if (process.getuid?.() === 0) execFileSync('chown', ['-R', `${uid}:${gid}`, target]);
}

/** A base backup by the server's own functions, which is what pg_basebackup makes over the wire; it streams from there. */
export async function startStandby(primary: EmbeddedServer, source: string, target: string): Promise<EmbeddedServer> {
  const client = new pg.Client(urlOf(primary));
  await client.connect();
  await client.query(`SELECT pg_backup_start('replica', fast => true)`);
  copyServer(source, target);
  const { rows } = await client.query<{ labelfile: string }>('SELECT labelfile FROM pg_backup_stop(false)');
  await client.end();
  const data = join(target, 'data');
  writeFileSync(join(data, 'backup_label'), rows[0]?.labelfile ?? '');
  writeFileSync(join(data, 'standby.signal'), '');
  const { host, port, user } = primary.connection;
  writeFileSync(
    join(data, 'postgresql.auto.conf'),
    `primary_conninfo = 'host=${host} port=${port} user=${user} application_name=standby'\n`,
  );
  own(source, target);
  return acquireEmbeddedServer(target);
}
