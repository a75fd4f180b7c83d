/** Separate databases for single tests on the tests' server. */
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';
import { databaseUrl } from './server.ts';

export interface OwnDatabase {
  readonly name: string;
  readonly url: string;
  readonly drop: () => Promise<void>;
}

/** Makes an empty database, or a copy of one that has no connections. */
export async function makeDatabase(
  kind: string,
  { template, owner }: { template?: string | undefined; owner?: string | undefined } = {},
): Promise<OwnDatabase> {
  const name = `${kind}_${randomBytes(6).toString('hex')}`;
  // Copying files takes less than half of what writing each block to the log takes.
  const copy = template ? ` TEMPLATE ${template} STRATEGY file_copy` : '';
  await atServer(`CREATE DATABASE ${name}${copy}${owner ? ` OWNER ${owner}` : ''}`);
  return {
    name,
    url: databaseUrl(inject('serverUrl'), name),
    drop: () => atServer(`DROP DATABASE ${name} WITH (FORCE)`),
  };
}

/** Runs a statement on a connection that is closed afterwards, because tests keep many databases at a time. */
async function atServer(statement: string): Promise<void> {
  const admin = new pg.Client(inject('serverUrl'));
  await admin.connect();
  await admin.query(statement).finally(() => admin.end());
}
