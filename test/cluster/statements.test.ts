/**
 * How far the open month is from a cluster: the statements about rows that the program sends are planned by Citus, with
 * ledger_rows distributed by partner. The list of refused-statements.txt has those that it refuses. To write it anew, run
 * this test with RECKONER_REFUSED=write.
 */
import { fork } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openDatabase } from '../../src/database/database.ts';
import { worldOfOldMonths } from '../archive/archived-world.ts';
import { ndjson, share } from '../splits/balance-transactions.ts';
import { sellThroughProcessor } from '../splits/processor-world.ts';
import { type Cluster, hasCitus, startCluster } from '../support/cluster.ts';
import { ROOT } from '../support/modules.ts';
import { serveWorld, tradeByHttp } from '../support/service.ts';
import { quote, requote, reversal, type World } from '../support/world.ts';
import { DISTRIBUTE, listOf, planned, type Statement } from './planned.ts';
import { recordStatements } from './recorder.mjs';

/** By reason, with the number of statements of each sender. */
const LIST = join(ROOT, 'test', 'cluster', 'refused-statements.txt');

async function ask(url: string, text: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  await client.query(text).finally(() => client.end());
}

describe.skipIf(!hasCitus)('the statements about rows', () => {
  let cluster: Cluster;
  let world: World;
  beforeAll(async () => {
    cluster = await startCluster(9750);
    world = await worldOfOldMonths({ chains: true });
  });
  afterAll(async () => {
    await world.end();
    cluster.end();
  });

  /** Runs commands one after another in a process that records what it sends. */
  async function recorded(commands: readonly (readonly [now: string, ...words: string[]])[]): Promise<Statement[]> {
    const file = join(world.home, 'statements');
    const child = fork(join(ROOT, 'test', 'support', 'resident.mjs'), {
      execArgv: ['--import', join(ROOT, 'test', 'cluster', 'recorder.mjs')],
      env: { ...process.env, RECKONER_STATEMENTS: file },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    for (const [now, ...args] of commands) {
      const env = { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: now };
      child.send({ args, env });
      const ran = await new Promise((resolve, reject) => {
        child.once('message', resolve);
        child.once('exit', () => reject(new Error(`${args.join(' ')} ended its process`)));
      });
      child.removeAllListeners();
      // Exit 4: something is open.
      if (![0, 4].includes((ran as { status: number }).status)) throw new Error(JSON.stringify({ args, ran }));
    }
    child.disconnect();
    const lines = readFileSync(file, 'utf8').trim().split('\n');
    return lines.map((line) => JSON.parse(line) as Statement);
  }

  async function reverseByHttp(): Promise<void> {
    const served = await serveWorld(world);
    const caller = await served.caller('p-1');
    const { body } = await caller.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '250' });
    const path = `/api/v1/quote/${body['quote_id']}`;
    await caller.get(`${path}/accept`);
    const answer = await caller.post(`${path}/reverse`, { reversal_id: 'refund' });
    await served.end();
    expect(answer.status).toBe(201);
  }

  /** What people, partners and jobs do in a month, at its close and after it. */
  async function work(): Promise<Statement[]> {
    const found: Statement[] = [];
    const end = recordStatements((statement: Statement) => found.push(statement));
    await tradeByHttp(world);
    await reverseByHttp();
    end();
    world.at('2026-07-20T12:00:00Z');
    await sellThroughProcessor(world, '2026-07-10');
    const sold = quote({ accepted_at: '2026-07-11T12:00:00Z' });
    const rows = [
      ...[sold, requote(sold), reversal(sold, { accepted_at: '2026-07-12T12:00:00Z' })],
      ...[quote({ quote_id: 'q-c-2026-01', partner_id: 'p-2' }), quote({ accepted_at: '2026-05-20T12:00:00Z' })],
    ];
    const lines = rows.map((row) => `${JSON.stringify(row)}\n`).join('');
    const more = ndjson([share(700, '2026-07-14T12:00:00Z', { quote_id: 'split-missing' })]);
    const [july, august] = ['2026-07-20T12:00:00Z', '2026-08-03T12:00:00Z'];
    const out = (name: string) => ['--month', '2026-07', '--out', join(world.home, name)];
    return [
      ...found,
      ...(await recorded([
        [july, 'ledger', 'import', world.file('july.ndjson', lines), '--skip-invalid'],
        [july, 'processor', 'import', world.file('more.ndjson', more), '--account', 'acct_split'],
        [july, 'status'],
        [july, 'ledger', 'held'],
        [july, 'ledger', 'doubled'],
        [july, 'reversal', 'list'],
        [august, 'close', '2026-07', '--dry-run'],
        [august, 'close', '2026-07', '--no-deliver'],
        [august, 'reconcile', '2026-07', '--bill-missing', '--no-deliver'],
        [august, 'invoice', 'rerun', '--month', '2026-07', '--dry-run'],
        ...['close', 'aging', 'trial-balance', 'coverage'].map((name) => [august, 'report', name] as const),
        [august, 'checkpoint', 'take'],
        [august, 'verify', '--all'],
        [august, 'verify', '2026-07'],
        [august, 'export', 'ledger', ...out('ledger')],
        [august, 'export', 'journal', ...out('journal')],
        [august, 'export', 'proof', '--partner', 'p-1', ...out('proof')],
        [august, 'archive', '2026-01', '--to', 'cold'],
        [august, 'unarchive', '2026-01'],
      ])),
    ];
  }

  test('those that Citus refuses are the ones on the list', async () => {
    const statements = await work();
    const found = await planned(statements, {
      plain: world.databaseUrl,
      distributed: await distribute(),
    });
    const list = listOf(found.filter(({ refused }) => refused !== undefined));
    if (process.env['RECKONER_REFUSED'] === 'write') writeFileSync(LIST, list);
    expect(list).toBe(readFileSync(LIST, 'utf8'));
    // As docs/cluster.md has it.
    const page = readFileSync(join(ROOT, 'docs', 'cluster.md'), 'utf8');
    expect(found.length).toBeGreaterThan(90);
    expect(page).toContain(`it refuses ${found.filter(({ refused }) => refused !== undefined).length}, `);
  });

  /** Makes the ledger's schema in a database of the cluster, and distributes its rows by partner. */
  async function distribute(): Promise<string> {
    const at = (node: number) => `postgres://postgres@127.0.0.1:${cluster.port + node}/open_month`;
    for (const node of [0, 1, 2]) {
      await cluster.sql(node, 'SET citus.enable_create_database_propagation TO off');
      await cluster.sql(node, 'CREATE DATABASE open_month');
      await ask(at(node), 'CREATE EXTENSION citus');
    }
    await ask(at(0), `SELECT citus_set_coordinator_host('127.0.0.1', ${cluster.port})`);
    for (const node of [1, 2]) await ask(at(0), `SELECT citus_add_node('127.0.0.1', ${cluster.port + node})`);
    const environment = { ...world.environment, databaseUrl: at(0) };
    const database = await openDatabase(environment, { unmigrated: true });
    await database.migrations.run().finally(() => database.close());
    await ask(at(0), DISTRIBUTE);
    return at(0);
  }
});
