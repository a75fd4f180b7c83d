/** Faults of the network and of workers while months are on a cluster: nothing is lost, short or doubled. */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { monthArchive, monthUnarchive } from '../../src/actions/archive.ts';
import { runAction } from '../../src/actions/run.ts';
import { citusStore } from '../../src/archive/citus.ts';
import { needRows } from '../../src/archive/rows.ts';
import { query } from '../../src/database/transaction.ts';
import { Refusal } from '../../src/errors/refusals.ts';
import { answerLateRequests } from '../../src/http/late-requests.ts';
import { grantReversal } from '../../src/ledger/held.ts';
import type { ImportReport } from '../../src/ledger/import.ts';
import type { Month } from '../../src/month.ts';
import { answersOf } from '../archive/answers.ts';
import { worldOfOldMonths, worldOfOldQuotes } from '../archive/archived-world.ts';
import { refusalOf } from '../close/refusal.ts';
import { type Link, startLink } from '../support/breaking-link.ts';
import { type Cluster, hasCitus, startCluster } from '../support/cluster.ts';
import { makeDatabase } from '../support/databases.ts';
import { type SilentLink, silentLinks, whyNoNamespaces } from '../support/hosts.ts';
import { ROOT } from '../support/modules.ts';
import { job, reckoner } from '../support/program.ts';
import { seeded } from '../support/random.ts';
import { type Answer, serveWorld } from '../support/service.ts';
import { REACH, times } from '../support/sweep.ts';
import { tally } from '../support/tally.ts';
import { needs } from '../support/tools.ts';
import { quote, reversal, type World } from '../support/world.ts';
import type { Statement } from './planned.ts';
import { recordStatements } from './recorder.mjs';

const CUTS = times({ few: 6, short: 12, long: 60 });
const { random, seed } = seeded();
const [JANUARY, FEBRUARY] = ['2026-01', '2026-02'] as [Month, Month];

describe.skipIf(!hasCitus)('with months on a cluster', () => {
  let cluster: Cluster;
  let world: World;
  beforeAll(async () => {
    cluster = await startCluster(9770);
  });
  afterAll(() => cluster.end());
  /** Each ledger has the schema for itself. */
  const leave = async () => {
    await world.end();
    await cluster.sql(0, 'DROP SCHEMA IF EXISTS cold CASCADE');
  };

  const context = () => ({ ...world, reporter: {} });
  const archive = (month: Month) => runAction(context(), monthArchive, { month, store: 'cluster' });
  const unarchive = (month: Month) => runAction(context(), monthUnarchive, { month });
  const read = (month: Month, partnerIds?: readonly string[]) =>
    world.database.reading(async (tx) => {
      await needRows(tx, { from: month, to: month, partnerIds });
      return query(tx, 'SELECT * FROM ledger_rows WHERE posted_month = :month ORDER BY entry_id', { month });
    });
  const differences = async () => (await world.verify()).checks.flatMap((each) => each.differences);
  const workerOf = async (partner: string) => {
    const [found] = await cluster.sql(
      0,
      `SELECT nodeport - ${cluster.port} AS node FROM citus_shards
       WHERE shardid = get_shard_id_for_distribution_column('cold."rows_${JANUARY}"', '${partner}')`,
    );
    return found?.['node'] as number;
  };
  const environment = (now: string, citusUrl = cluster.url) => ({
    ...{ RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, CITUS_URL: citusUrl, RECKONER_NOW: now },
  });

  describe('and a worker that may be away', () => {
    let rows: object[];
    let preview: ImportReport;
    beforeAll(async () => {
      world = await worldOfOldMonths({ citusUrl: cluster.url });
      rows = [
        reversal(quote({ quote_id: `q-a-${JANUARY}`, accepted_at: '2026-07-11T12:00:00Z' }), { reversal_id: 'back' }),
        quote({ quote_id: `q-a-${JANUARY}`, accepted_at: `${JANUARY}-10T12:00:00Z` }),
        reversal(quote({ quote_id: 'q-none', accepted_at: '2026-07-11T12:00:00Z' }), { reversal_id: 'of-none' }),
        quote({ quote_id: 'q-new' }),
      ];
      preview = await world.rows(rows, { skipInvalid: true, preview: true });
      for (const month of [JANUARY, FEBRUARY]) await archive(month);
    });
    afterAll(leave);

    test('an import that names quotes of its partners is refused and loses nothing, and then ends as without', async () => {
      const node = await workerOf('p-1');
      const before = await world.sql('SELECT * FROM ledger_rows ORDER BY entry_id');
      await cluster.stop(node);
      try {
        expect(await refusalOf(world.rows(rows, { skipInvalid: true }))).toMatchObject({ code: 'archive_incomplete' });
        expect(await world.sql('SELECT * FROM ledger_rows ORDER BY entry_id')).toEqual(before);
        expect(await world.sql('SELECT FROM held_rows')).toEqual([]);
        // The rows of other partners are on the other worker.
        expect(await workerOf('p-2')).not.toBe(node);
        expect(await world.rows([quote({ partner_id: 'p-2', quote_id: 'q-near' })])).toMatchObject({ accepted: 1 });
      } finally {
        await cluster.start(node);
      }
      const report = await world.rows(rows, { skipInvalid: true, holds: true });
      // The numbers of a preview, and of what was refused, are not used again.
      const told = (given: typeof report) => ({
        ...{ ...given, event_id: 0 },
        held_rows: given.held_rows.map((each) => ({ ...each, held_row_id: 0 })),
      });
      expect(told(report)).toEqual(told(preview));
      expect(await differences()).toEqual([]);
    });

    test('a backup is restored into an empty database, and its old months read the same', async () => {
      const [file, now] = [join(world.home, 'ledger.backup'), '2026-07-20T12:00:00Z'];
      const empty = await makeDatabase('restored');
      const run = async (url: string, ...args: string[]) => {
        const ran = await reckoner(args, { env: { ...environment(now), DATABASE_URL: url } });
        expect({ args, ...ran }).toMatchObject({ status: 0 });
        return ran.stdout;
      };
      const rows = async (url: string) => {
        const out = join(world.home, 'rows');
        await run(url, 'export', 'ledger', '--month', JANUARY, '--to', FEBRUARY, '--out', out);
        const text = readFileSync(join(out, 'ledger.csv'), 'utf8');
        rmSync(out, { recursive: true });
        return text;
      };
      await run(world.databaseUrl, 'backup', file);
      const before = await rows(world.databaseUrl);
      await run(empty.url, 'restore', file);
      await run(empty.url, 'verify', '--all');
      expect(await rows(empty.url)).toEqual(before);
      await empty.drop();
    });

    test('a schema that has months of another ledger is refused', async () => {
      await cluster.sql(0, `UPDATE cold.cold_months SET installation = 'another'`);
      expect(await refusalOf(archive('2026-03' as Month))).toMatchObject({
        facts: { reason: expect.stringMatching(/months of another ledger, another: name another schema$/) },
      });
      const [own] = await world.sql<{ id: string }>('SELECT installation_id AS id FROM installation');
      await cluster.sql(0, `UPDATE cold.cold_months SET installation = '${own?.id}'`);
    });

    test('a lookup of one partner asks one shard', async () => {
      const sent: Statement[] = [];
      const end = recordStatements((statement) => sent.push(statement));
      const rows = await read(JANUARY, ['p-1']).finally(end);
      expect(rows).toHaveLength(2);
      const [session] = sent.filter(({ text }) => text.includes('"cold_rows"')).map((each) => each.session);
      const texts = sent.filter((each) => each.session === session).map(({ text }) => text);
      // Otherwise the coordinator would keep the locks of a host that is gone for two hours.
      expect(texts[0]).toContain('SET tcp_keepalives_idle TO');
      const lookups = texts.filter((text) => text.includes('"cold_rows"'));
      expect(lookups).toHaveLength(2);
      for (const text of lookups) {
        const plan = await cluster.sql(0, `EXPLAIN ${/^COPY \((.*)\) TO STDOUT$/.exec(text)?.[1] ?? text}`);
        expect({ text, plan: JSON.stringify(plan) }).toMatchObject({ plan: expect.stringContaining('Task Count: 1"') });
      }
    });
  });

  describe('and many late requests', () => {
    let quotes: string[];
    beforeAll(async () => {
      ({ world, quotes } = await worldOfOldQuotes({ citusUrl: cluster.url, many: 100 }));
      for (const month of [JANUARY, FEBRUARY]) await archive(month);
    });
    afterAll(leave);

    test('a hundred reversals of cold quotes during a close are answered once, and every rule holds', async () => {
      const asked = quotes.slice(3);
      const sold = Array.from({ length: 50 }, (_, index) => `sold-${index}`);
      expect([asked.length, sold.length]).toEqual([50, 50]);
      world.at('2026-08-02T12:00:00Z');
      const served = await serveWorld(world);
      const caller = await served.caller('p-1');
      const settings = { ...world.settings, public_url: 'http://127.0.0.1' };
      const failures: string[] = [];
      const work = () =>
        answerLateRequests({ ...world, settings, onLateFailed: (error) => failures.push(String(error)) });
      const pending: Answer[] = [];
      const ask = async () => {
        for (const id of asked)
          pending.push(await caller.post(`/api/v1/quote/${id}/reverse`, { reversal_id: `late-${id}` }));
      };
      const imported = sold.map((quote_id) =>
        reversal(quote({ quote_id, partner_id: 'p-2', enrollment_id: `e-${quote_id}` }), {
          ...{ reversal_id: `late-${quote_id}`, accepted_at: '2026-08-01T12:00:00Z' },
        }),
      );
      // Two hosts answer while partners still ask.
      const [, , report] = await Promise.all([ask(), world.close(), world.rows(imported), work(), work()]);
      await Promise.all([work(), work()]);
      expect(failures).toEqual([]);
      expect(report).toMatchObject({ accepted: 50, errors: [] });
      for (const { status, body } of pending) {
        expect([status, body['status']]).toEqual([202, 'pending']);
        expect((await caller.get(body['location'] as string)).body).toMatchObject({
          status: 'done',
          answer: { status: 202 },
        });
      }
      // A quote is archived when its terms let nobody reverse it, so a person decides. Those of the file are granted.
      const held = await world.sql<{ id: string }>('SELECT held_row_id AS id FROM undecided_rows ORDER BY 1');
      expect(held).toHaveLength(50);
      for (const { id } of held) {
        const decision = { id: Number(id), amounts: undefined, reason: 'as the partner asked' };
        await world.database.transaction((tx) => grantReversal(tx, world, decision));
      }
      const found = await world.sql<{ reversal_id: string; times: number }>(
        `SELECT reversal_id, count(*)::int AS times FROM ledger_rows WHERE kind = 'reversal' GROUP BY 1 ORDER BY 1`,
      );
      const ids = [...asked, ...sold].map((id) => ({ reversal_id: `late-${id}`, times: 1 }));
      expect(found).toEqual(ids.sort((one, other) => (one.reversal_id < other.reversal_id ? -1 : 1)));
      expect(await differences()).toEqual([]);
      await served.end();
    });
  });

  describe('and a network that breaks', () => {
    let program: Link;
    let worker: Link;
    const readdress = (from: number, to: number, address = '127.0.0.1') =>
      cluster.sql(
        0,
        `SELECT citus_update_node(nodeid, '${address}', ${to}) FROM pg_dist_node WHERE nodeport = ${from};
         SELECT start_metadata_sync_to_all_nodes()`,
      );
    beforeAll(async () => {
      program = await startLink(cluster.port);
      worker = await startLink(cluster.port + 1);
      await readdress(cluster.port + 1, worker.port);
      world = await worldOfOldMonths({ citusUrl: cluster.url.replace(`:${cluster.port}/`, `:${program.port}/`) });
      await archive(JANUARY);
    });
    afterAll(async () => {
      await leave();
      await readdress(worker.port, cluster.port + 1);
      for (const link of [program, worker]) await link.end();
    });

    /** Keeps reads waiting on a server, until a statement ends it. */
    async function holding(node: number): Promise<() => Promise<void>> {
      const client = new pg.Client(`postgres://postgres@127.0.0.1:${cluster.port + node}/postgres`);
      client.on('error', () => {});
      await client.connect();
      await client.query(`BEGIN; SET LOCAL citus.override_table_visibility TO off;
        SET LOCAL citus.enable_manual_changes_to_shards TO on;
        DO $$ DECLARE each regclass; BEGIN
          FOR each IN SELECT oid FROM pg_class WHERE relnamespace = 'cold'::regnamespace AND relkind = 'r'
                      AND relname ~ '${node === 0 ? '^cold_months$' : '^rows_.*_[0-9]+$'}' LOOP
            EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', each);
          END LOOP;
        END $$`);
      return () => client.end();
    }

    test('a read that waits for a server ends by itself if no packet reaches the server any more', async (context) => {
      const missing = whyNoNamespaces();
      if (missing !== undefined) {
        needs('ip', context);
        context.skip(missing);
      }
      const links = await silentLinks([cluster.port, cluster.port + 1]);
      const [toCoordinator, toWorker] = links as [SilentLink, SilentLink];
      const page = readFileSync(join(ROOT, 'docs', 'cluster.md'), 'utf8');
      const [keepalive = ''] = /^ALTER SYSTEM SET citus.node_conninfo.*$/m.exec(page) ?? [];
      try {
        await cluster.sql(0, keepalive);
        await cluster.sql(0, 'SELECT pg_reload_conf()');
        await readdress(worker.port, cluster.port + 1, toWorker.address);
        const prove = (url: string) => citusStore(url, 'cold', 'a').prove(JANUARY);
        const far = cluster.url.replace('127.0.0.1', toCoordinator.address);
        expect(await prove(far)).toMatchObject({ wrong: [] });
        expect(await prove(cluster.url)).toMatchObject({ wrong: [] });
        const cases = [
          { link: toCoordinator, url: far, node: 0, seconds: 60 },
          // The coordinator finds that the worker is gone, and then tries for two minutes to cancel its query there.
          ...(REACH === 'long' ? [{ link: toWorker, url: cluster.url, node: 1, seconds: 240 }] : []),
        ];
        for (const { link, url, node, seconds } of cases) {
          const release = await holding(node);
          const begun = performance.now();
          const found = prove(url);
          await sleep(2000);
          link.cut();
          expect(await found).toMatchObject({ wrong: [expect.stringMatching(/its cluster answers: /)] });
          const took = performance.now() - begun;
          link.mend();
          await release();
          expect({ node, isInTime: took < seconds * 1000 }).toEqual({ node, isInTime: true });
        }
      } finally {
        for (const each of links) each.mend();
        await readdress(cluster.port + 1, worker.port);
        for (const each of links.toReversed()) await each.end();
      }
    }, 400_000);

    const isArchived = async () =>
      (await world.sql('SELECT FROM archived_months WHERE month = $1', [FEBRUARY])).length === 1;
    const forget = async () => {
      await cluster.sql(0, `DROP TABLE IF EXISTS cold."rows_${FEBRUARY}"`);
      await cluster.sql(0, `DELETE FROM cold.cold_months WHERE month = '${FEBRUARY}'`);
    };
    const outcome = (act: Promise<unknown>) =>
      act.then(
        () => 'done',
        (error: unknown) => {
          if (error instanceof Refusal) return error.code;
          throw error;
        },
      );

    test(`cut ${CUTS} times, it loses nothing, and what was refused ends when done again (seed ${seed})`, async () => {
      const [january, february] = [await read(JANUARY), await read(FEBRUARY)];
      const acts = {
        archive: () => archive(FEBRUARY),
        read: () => read(JANUARY),
        unarchive: () => unarchive(FEBRUARY),
      };
      const begun: Record<keyof typeof acts, () => Promise<unknown>> = {
        archive: async () => {
          if (await isArchived()) await unarchive(FEBRUARY);
          await forget();
        },
        read: async () => {},
        unarchive: async () => {
          if (!(await isArchived())) await archive(FEBRUARY);
        },
      };
      const names = Object.keys(acts) as (keyof typeof acts)[];
      const bytes = new Map<string, number>();
      let [cuts, refused] = [0, 0];
      for (let round = 0; cuts < CUTS; round += 1) {
        const [name, link] = [
          names[Math.floor(round / 2) % 3] as keyof typeof acts,
          round % 2 === 0 ? program : worker,
        ];
        const what = `${name} ${round % 2}`;
        await begun[name]();
        const from = link.passed();
        // The first time tells how many bytes pass.
        const most = bytes.get(what);
        if (most !== undefined) link.cutAfter(Math.ceil(most * random()));
        const found = await outcome(acts[name]());
        if (most === undefined) {
          expect({ what, found }).toEqual({ what, found: 'done' });
          bytes.set(what, link.passed() - from);
          continue;
        }
        const isCut = link.isCut();
        link.mend();
        if (!isCut) continue;
        cuts += 1;
        expect(['done', 'archive_incomplete', 'file_unwritable']).toContain(found);
        if (found !== 'done') refused += 1;
        const [{ n } = { n: 0 }] = await world.sql(
          'SELECT count(*)::int AS n FROM ONLY ledger_rows WHERE posted_month = $1',
          [FEBRUARY],
        );
        expect(n).toBe((await isArchived()) ? 0 : february.length);
        expect(await read(FEBRUARY)).toEqual(february);
        expect(await read(JANUARY)).toEqual(january);
        expect(await differences()).toEqual([]);
        const again = await outcome(acts[name]());
        expect({ what, again }).toEqual({ what, again: again === 'month_not_archived' ? again : 'done' });
      }
      expect(refused).toBeGreaterThan(CUTS / 3);
      tally('kills survived', 'of connections while a month goes, is read or comes back', cuts);
    }, 1_200_000);
  });

  describe('each night', () => {
    beforeAll(async () => {
      world = await worldOfOldMonths({ chains: true, citusUrl: cluster.url });
      await world.deliver();
      for (const month of [JANUARY, FEBRUARY]) await archive(month);
    });
    afterAll(leave);

    test('closes and deliveries go on while a worker is away, and verify says what it lacks', async () => {
      const before = await answersOf(world);
      const night = async (now: string) => {
        const statuses: Record<string, number | null> = {};
        const said: string[] = [];
        for (const name of ['month-close', 'deliver', 'verify']) {
          const { status, stderr } = await job(name, { env: environment(now) });
          statuses[name] = status;
          said.push(...stderr.trim().split('\n'));
        }
        const { status } = await reckoner(['checkpoint', 'take'], { env: environment(now) });
        const errors = said.filter((line) => !/"level":"info"/.test(line));
        return { ...statuses, checkpoint: status, errors: errors.map((line) => JSON.parse(line)) };
      };
      const quiet = { 'month-close': 0, deliver: 0, verify: 0, checkpoint: 0, errors: [] };
      await cluster.stop(1);
      try {
        const lacking = [JANUARY, FEBRUARY].map((subject) => ({
          ...{ check: 'archives_as_moved', subject },
          detail: expect.stringMatching(/^its cluster answers: /),
        }));
        expect(await night('2026-08-02T12:00:00Z')).toMatchObject({ ...quiet, verify: 4, errors: lacking });
      } finally {
        await cluster.start(1);
      }
      expect(await night('2026-08-03T12:00:00Z')).toEqual(quiet);
      await cluster.sql(0, `SELECT citus_add_node('127.0.0.1', ${cluster.port + 3})`);
      const [, third] = await Promise.all([
        cluster.sql(0, `SELECT rebalance_table_shards('cold.cold_rows', shard_transfer_mode => 'block_writes')`),
        night('2026-08-04T12:00:00Z'),
      ]);
      expect(third).toEqual(quiet);
      const after = await answersOf(world);
      for (const name of ['csv', 'rerun', 'balances', 'differences']) expect(after[name]).toEqual(before[name]);
    }, 400_000);

    test('the standby of a worker takes over, and people read the same', async () => {
      const page = readFileSync(join(ROOT, 'docs', 'cluster.md'), 'utf8');
      const [, promote = '', replace = ''] =
        /```sql\n(SELECT pg_promote\(\);)\n```[\s\S]*?```sql\n(SELECT citus_update_node[^`]*)```/.exec(page) ?? [];
      const [before, rows] = [await answersOf(world), await read(JANUARY)];
      await cluster.standby(1);
      await cluster.stop(1);
      expect(await refusalOf(read(JANUARY))).toMatchObject({ code: 'archive_incomplete' });
      await cluster.sql(4, promote);
      const here = (text: string, name: string, node: number) =>
        text.replaceAll(new RegExp(`'${name}\\.internal'(\\D+)5432`, 'g'), `'127.0.0.1'$1${cluster.port + node}`);
      await cluster.sql(0, here(here(replace, 'worker-1', 1), 'standby-1', 4));
      expect(await read(JANUARY)).toEqual(rows);
      expect(await answersOf(world)).toEqual(before);
      await unarchive(FEBRUARY);
      await archive(FEBRUARY);
      expect(await differences()).toEqual([]);
    });
  });
});
