/** The roles of migrations/roles.sql: a login that owns nothing does everything but migrate, and grants are repaired. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { firstSettings } from '../../src/config/first-settings.ts';
import { packageRoot } from '../../src/package.ts';
import { makeDatabase, type OwnDatabase } from '../support/databases.ts';
import { command, type Ran } from '../support/program.ts';
import { partner, quote } from '../support/world.ts';

let database: OwnDatabase;
let home: string;
beforeAll(async () => {
  database = await makeDatabase('roles');
  home = mkdtempSync(join(tmpdir(), 'reckoner-roles-'));
  const settings = { ...firstSettings('sandbox'), allow_empty: true, checkpoints: 'daily' };
  writeFileSync(join(home, 'settings.json'), JSON.stringify(settings));
  await administrator(readFileSync(join(packageRoot, 'migrations', 'roles.sql'), 'utf8'));
});
afterAll(async () => {
  await database.drop();
  rmSync(home, { recursive: true, force: true });
});

const urlAs = (login: string): string => database.url.replace(/\/\/[^@/]*@/, `//${login}@`);

async function asked(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows;
  } finally {
    await client.end();
  }
}
const administrator = (sql: string) => asked(database.url, sql);

const as = (login: string, ...args: string[]): Promise<Ran> =>
  command(['--json', ...args], {
    env: { RECKONER_HOME: home, DATABASE_URL: urlAs(login), RECKONER_NOW: '2026-08-10T10:00:00Z' },
  });

async function done(login: string, ...args: string[]): Promise<unknown> {
  const ran = await as(login, ...args);
  expect({ args, status: ran.status, out: ran.status === 0 ? '' : ran.stdout + ran.stderr }).toEqual({
    args,
    ...{ status: 0, out: '' },
  });
  return ran.json();
}

function file(name: string, content: string): string {
  writeFileSync(join(home, name), content);
  return join(home, name);
}

describe('with the roles of the script', () => {
  test('the owner makes the tables', async () => {
    await done('reckoner_owner', 'init');
    const [tables] = await administrator(
      `SELECT DISTINCT pg_get_userbyid(relowner) AS owner FROM pg_class
       WHERE relnamespace IN ('public'::regnamespace, 'graphile_worker'::regnamespace)`,
    );
    expect(tables).toEqual({ owner: 'reckoner_owner' });
  });

  test('the runtime login imports, closes, delivers, verifies and backs up', async () => {
    await done('reckoner_runtime', 'init');
    await done('reckoner_runtime', 'partner', 'import', file('partners.json', JSON.stringify([partner()])));
    await done('reckoner_runtime', 'ledger', 'import', file('rows.ndjson', `${JSON.stringify(quote())}\n`));
    expect(await done('reckoner_runtime', 'close', '--no-deliver')).toMatchObject({ months: [{ invoices: 1 }] });
    await done('reckoner_runtime', 'deliver');
    await done('reckoner_runtime', 'client', 'create', 'p-1');
    await done('reckoner_runtime', 'invoice', 'void', 'INV-2026-000001', '--reason', 'a test');
    await done('reckoner_runtime', 'invoice', 'rerun', 'INV-2026-000001');
    await done('reckoner_runtime', 'checkpoint');
    expect(await done('reckoner_runtime', 'verify')).toMatchObject({ differences: 0 });
    await done('reckoner_runtime', 'backup', join(home, 'ledger.backup'));
    await done(
      'reckoner_runtime',
      'export',
      'ledger',
      '--month',
      '2026-07',
      '--format',
      'csv',
      '--out',
      join(home, 'out'),
    );
    await done('reckoner_runtime', 'migrate'); // nothing to do
    const [mail] = await administrator(`SELECT count(*)::integer AS sent FROM latest_emails WHERE status = 'sent'`);
    expect(mail).toEqual({ sent: 2 });
  });

  test('it leaves migrating and restoring to the owner', async () => {
    const restored = await as('reckoner_runtime', 'restore', join(home, 'ledger.backup'));
    expect(restored.status).toBe(3);
    await administrator(`DELETE FROM migrations WHERE name LIKE '013%'`);
    const migrated = await as('reckoner_runtime', 'migrate');
    expect(migrated.status).toBe(3);
    expect(migrated.json()).toMatchObject({
      error: { code: 'database_not_owner', login: 'reckoner_runtime', owner: 'reckoner_owner' },
    });
    await administrator(`INSERT INTO migrations (name, batch) VALUES ('013_partner_events', 1)`);
  });

  test.each([
    [
      'rewrites no history',
      'UPDATE ledger_rows SET spot_price = spot_price',
      /permission denied for table ledger_rows/,
    ],
    ['deletes no history', 'DELETE FROM documents', /permission denied for table documents/],
    ['drops no guard', 'DROP TRIGGER append_only_rows ON documents', /must be owner of relation documents/],
    ['switches no guard off', 'ALTER TABLE documents DISABLE TRIGGER ALL', /must be owner of table documents/],
    ['switches guards off for no session', 'SET session_replication_role TO replica', /permission denied to set/],
    ['sets no sequence', `SELECT setval('fact_numbers', 1)`, /permission denied for sequence/],
    ['becomes no owner', 'SET ROLE reckoner_owner', /permission denied to set role/],
    ['makes no tables', 'CREATE TABLE public.mine ()', /permission denied for schema public/],
  ])('the runtime login %s, also after RESET ROLE', async (_, sql, refusal) => {
    await expect(asked(urlAs('reckoner_runtime'), `RESET ROLE; ${sql}`)).rejects.toThrow(refusal);
  });

  test('the reader reads tables that were made after the script ran, verifies, and writes nothing', async () => {
    expect(await asked(urlAs('reckoner_reader'), 'SELECT count(*)::integer AS rows FROM ledger_rows')).toEqual([
      { rows: 1 },
    ]);
    await done('reckoner_reader', 'status');
    await done('reckoner_reader', 'invoice', 'list');
    expect(await done('reckoner_reader', 'verify')).toMatchObject({ differences: 0 });
    await expect(asked(urlAs('reckoner_reader'), `INSERT INTO job_runs VALUES ()`)).rejects.toThrow();
    await expect(asked(urlAs('reckoner_reader'), 'DELETE FROM job_runs')).rejects.toThrow(/permission denied/);
  });

  test('the script can be run again', async () => {
    await administrator(readFileSync(join(packageRoot, 'migrations', 'roles.sql'), 'utf8'));
    expect(await done('reckoner_runtime', 'verify')).toMatchObject({ differences: 0 });
  });
});

test('where the grants are lost, as after a dump of another cluster, commands say so and migrate repairs them', async () => {
  await administrator(`
    REVOKE ALL ON ALL TABLES IN SCHEMA public FROM reckoner_app;
    REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM reckoner_app;
    REVOKE ALL ON SCHEMA public, graphile_worker FROM reckoner_app`);
  for (const login of ['reckoner_owner', 'reckoner_runtime']) {
    const refused = await as(login, 'status');
    expect({ status: refused.status, ...(refused.json() as object) }).toMatchObject({
      ...{ status: 1, error: { code: 'database_privileges' } },
    });
  }
  expect(await done('reckoner_owner', 'migrate')).toEqual({ migrations: [] });
  await done('reckoner_runtime', 'status');
  expect(await done('reckoner_runtime', 'verify')).toMatchObject({ differences: 0 });
});
