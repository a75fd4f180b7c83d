/** Rows of old months on a cluster of Citus: people get the same as before, and what is missing is found. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { monthArchive, monthUnarchive } from '../../src/actions/archive.ts';
import { runAction } from '../../src/actions/run.ts';
import { needRows, recallQuotes } from '../../src/archive/rows.ts';
import { verify } from '../../src/audit/verify.ts';
import { query } from '../../src/database/transaction.ts';
import type { DerivedRows } from '../../src/log/derive.ts';
import type { Month } from '../../src/month.ts';
import { answersOf } from '../archive/answers.ts';
import { worldOfOldMonths } from '../archive/archived-world.ts';
import { refusalOf } from '../close/refusal.ts';
import { type Cluster, hasCitus, startCluster } from '../support/cluster.ts';
import { ROOT } from '../support/modules.ts';
import { quote, reversal, type World } from '../support/world.ts';

const JANUARY = '2026-01' as Month;
const MONTHS = ['2026-01', '2026-02', '2026-03'] as Month[];

describe.skipIf(!hasCitus)('on a cluster', () => {
  let cluster: Cluster;
  let world: World;
  beforeAll(async () => {
    cluster = await startCluster(9720);
    world = await worldOfOldMonths({ chains: true, citusUrl: cluster.url });
  });
  afterAll(async () => {
    await world.end();
    cluster.end();
  });

  const context = () => ({ ...world, reporter: {} });
  const archive = (month: Month, store = 'cluster') => runAction(context(), monthArchive, { month, store });
  const unarchive = (month: Month) => runAction(context(), monthUnarchive, { month });
  const allRows = () => world.sql('SELECT * FROM ledger_rows ORDER BY entry_id');
  const differences = async (derived: DerivedRows, month: Month | null = null) => {
    const given = { environment: world.environment, schema: world.schema, derived };
    const { checks } = await world.database.readingBeside((tx, beside) =>
      verify(tx, month ?? undefined, { ...given, beside }),
    );
    return checks.flatMap((each) => each.differences);
  };

  test('months leave the database, everything that people read stays the same, and they come back as they were', async () => {
    const [before, rows] = [await answersOf(world), await allRows()];
    expect(before['differences']).toEqual([]);
    for (const month of MONTHS) await archive(month);
    expect((await allRows()).length).toBeLessThan(rows.length);
    expect(await answersOf(world)).toEqual(before);
    for (const derived of [{ month: null }, ...MONTHS.map((month) => ({ month })), 'all'] as DerivedRows[]) {
      expect({ derived, found: await differences(derived) }).toEqual({ derived, found: [] });
    }
    for (const month of MONTHS) expect(await differences({ month: null }, month)).toEqual([]);
    for (const month of MONTHS.toReversed()) await unarchive(month);
    expect(await allRows()).toEqual(rows);
  });

  test('a quote may have rows in a folder and on the cluster', async () => {
    const before = await answersOf(world);
    await archive(MONTHS[0] as Month, 'cold');
    await archive(MONTHS[1] as Month);
    await archive(MONTHS[2] as Month, 'cold');
    expect(await answersOf(world)).toEqual(before);
    expect(await differences('all')).toEqual([]);
    await unarchive(MONTHS[0] as Month);
    await unarchive(MONTHS[2] as Month);
  });

  const read = (partnerIds?: readonly string[], month = JANUARY) =>
    world.database.reading(async (tx) => {
      await needRows(tx, { from: month, to: month, partnerIds });
      return query(tx, `SELECT entry_id FROM ledger_rows WHERE posted_month = :month ORDER BY 1`, { month });
    });

  describe('with January there', () => {
    beforeAll(async () => {
      await archive(JANUARY);
    });

    /** The worker's number and the name of the shard of a partner's rows of January. */
    const shardOf = async (partner: string) => {
      const [found] = await cluster.sql(
        0,
        `SELECT nodeport - ${cluster.port} AS node, shard_name || '' AS shard, groupid FROM citus_shards
         JOIN pg_dist_node USING (nodename, nodeport)
         WHERE shardid = get_shard_id_for_distribution_column('cold."rows_2026-01"', '${partner}')`,
      );
      const { node, shard, groupid } = found as { node: number; shard: string; groupid: number };
      return { node, groupid, shard: shard.replace(/^cold\./, '').replace(/^"?(.*?)"?$/, 'cold."$1"') };
    };
    const onWorker = (node: number, statement: string) =>
      cluster.sql(node, `SET citus.enable_manual_changes_to_shards TO on; SET ROLE reckoner_cold; ${statement}`);

    test('a part of a transaction that a worker left prepared is found and ended before a read', async () => {
      const { node, groupid, shard } = await shardOf('p-1');
      const all = await read();
      // As after a crash of the worker between the two phases.
      await onWorker(node, `CREATE TABLE cold.kept AS SELECT * FROM ${shard}; TRUNCATE ${shard}`);
      const gid = `citus_0_1_${Date.now()}_1`;
      await onWorker(node, `BEGIN; INSERT INTO ${shard} SELECT * FROM cold.kept; PREPARE TRANSACTION '${gid}'`);
      await cluster.sql(0, `INSERT INTO pg_dist_transaction (groupid, gid) VALUES (${groupid}, '${gid}')`);
      expect(
        await cluster.sql(0, 'SELECT count(*)::int AS rows FROM cold.cold_rows WHERE partner_id = $$p-1$$'),
      ).not.toEqual([{ rows: all.length }]);
      expect(await read()).toEqual(all);
      expect(await cluster.sql(node, 'SELECT FROM pg_prepared_xacts')).toEqual([]);
      await onWorker(node, 'DROP TABLE cold.kept');
    });

    test('rows that a worker lost are found by every read of their partner, and rows that differ by verify', async () => {
      const { node, shard } = await shardOf('p-2');
      await onWorker(node, `CREATE TABLE cold.kept AS SELECT * FROM ${shard}`);
      const insert = (change: string) => `TRUNCATE ${shard}; INSERT INTO ${shard} SELECT (json_populate_record(k,
        CASE WHEN k.partner_id = 'p-2' THEN '${change}' ELSE '{}' END::json)).* FROM cold.kept k`;
      await onWorker(node, `${insert('{}')} WHERE k.partner_id <> 'p-2'`);
      expect(await refusalOf(read(['p-2']))).toMatchObject({ code: 'archive_incomplete', facts: { store: 'cluster' } });
      expect(await refusalOf(read())).toMatchObject({ code: 'archive_incomplete' });
      const lost = await differences({ month: null });
      expect(lost).toEqual(
        expect.arrayContaining([
          { subject: JANUARY, detail: expect.stringMatching(/^the close stated 2026-01 p-2 1$/) },
        ]),
      );
      await onWorker(node, insert('{"quote_id": "q-invented"}'));
      expect(await refusalOf(read(['p-2']))).toMatchObject({ code: 'archive_incomplete', facts: { store: 'cluster' } });
      expect(await differences({ month: JANUARY })).toEqual(
        expect.arrayContaining([{ subject: JANUARY, detail: expect.stringMatching(/^the close stated p-2 /) }]),
      );
      // What this process has compared once is counted for a day, and a row that no ledger can have is refused.
      await onWorker(node, insert('{}'));
      expect(await read(['p-2'])).toHaveLength(1);
      await onWorker(node, insert('{"invoice_amount": "1"}'));
      expect(await refusalOf(read(['p-2']))).toMatchObject({
        code: 'archive_incomplete',
        facts: { reason: expect.stringMatching(/^a row of it is damaged: /) },
      });
      await onWorker(node, `TRUNCATE ${shard}; INSERT INTO ${shard} SELECT * FROM cold.kept; DROP TABLE cold.kept`);
      expect(await differences('all')).toEqual([]);
    });

    test('while a worker is away its partners cannot be read, and everything else goes on', async () => {
      const before = await answersOf(world);
      const { node } = await shardOf('p-1');
      expect((await shardOf('p-2')).node).not.toBe(node);
      await cluster.stop(node);
      try {
        expect(await refusalOf(read(['p-1']))).toMatchObject({
          code: 'archive_incomplete',
          facts: { store: 'cluster', reason: expect.stringMatching(/^its cluster answers: /) },
        });
        expect(await refusalOf(read())).toMatchObject({ code: 'archive_incomplete' });
        expect(await read(['p-2'])).toHaveLength(1);
        expect(await refusalOf(archive('2026-03' as Month))).toMatchObject({ code: 'archive_incomplete' });
        expect((await differences({ month: null })).map(({ subject }) => subject)).toContain(JANUARY);
        world.at('2026-08-02T12:00:00Z');
        await world.close();
      } finally {
        await cluster.start(node);
      }
      const after = await answersOf(world);
      for (const name of ['csv', 'rerun', 'balances', 'differences']) expect(after[name]).toEqual(before[name]);
    });

    test('while the coordinator is away, verify says so of each month, and nothing else stops', async () => {
      await cluster.stop(0);
      try {
        expect(await differences('all')).toEqual(
          expect.arrayContaining([
            { subject: JANUARY, detail: expect.stringMatching(/does not prove its rows: its cluster answers: /) },
          ]),
        );
        expect(await refusalOf(read())).toMatchObject({ code: 'archive_incomplete' });
      } finally {
        await cluster.start(0);
      }
      expect(await differences('all')).toEqual([]);
    });

    test('late reversals of cold quotes and a close at the same time leave every rule true', async () => {
      const sold = await world.database.reading(async (tx) => {
        await needRows(tx, { from: JANUARY, to: '2026-02' as Month });
        return query<{ quote_id: string; partner_id: string; enrollment_id: string }>(
          tx,
          `SELECT quote_id, partner_id, enrollment_id FROM ledger_rows e
           WHERE kind = 'quote_accepted' AND posted_month <= '2026-02'
             AND NOT EXISTS (SELECT FROM ledger_rows r WHERE r.quote_id = e.quote_id AND r.kind <> 'quote_accepted')`,
        );
      });
      expect(sold.length).toBeGreaterThan(1);
      world.at('2026-09-02T12:00:00Z');
      const rows = sold.map((each) =>
        reversal(quote({ ...each, accepted_at: '2026-01-11T12:00:00Z' }), {
          reversal_id: `late-${each.quote_id}`,
          accepted_at: '2026-09-01T12:00:00Z',
        }),
      );
      const [, report] = await Promise.all([world.close(), world.rows(rows)]);
      expect(report).toMatchObject({ accepted: rows.length, errors: [] });
      expect(await differences('all')).toEqual([]);
    });

    test('the rows of a quote come back for a late request, with the proof that their close counted them', async () => {
      const there = () =>
        world.sql(`SELECT quote_id FROM ONLY ledger_rows WHERE quote_id = 'q-c-2026-01' AND kind = 'quote_accepted'`);
      expect(await there()).toEqual([]);
      await recallQuotes(world.database, world.environment, 'p-2', ['q-c-2026-01']);
      expect(await there()).toEqual([{ quote_id: 'q-c-2026-01' }]);
      expect(await differences('all')).toEqual([]);
    });

    test('an auditor gets the totals and roots of partners from a worker alone', async () => {
      const page = readFileSync(join(ROOT, 'docs', 'auditors.md'), 'utf8');
      const [, sql = ''] = /```sql\n(CREATE TEMP TABLE lines[^`]*)```/.exec(page) ?? [];
      const found = await cluster.psql(1, sql.replace('2026-07', JANUARY));
      const stated = await world.sql<{ line: string }>(
        `SELECT concat_ws('|', concat_ws(' ', partner_id, currency, arrangement), entries, trim_scale(spot_price),
                          trim_scale(partner_cut), trim_scale(invoice_amount), root) AS line FROM month_partners WHERE month = $1 ORDER BY 1`,
        [JANUARY],
      );
      expect(found.trim().split('\n').sort()).toEqual(stated.map(({ line }) => line));
    });

    test('a worker is added and the shards are rebalanced, and people read the same', async () => {
      const before = await read();
      await cluster.sql(0, `SELECT citus_add_node('127.0.0.1', ${cluster.port + 3})`);
      const reads = Array.from({ length: 5 }, async () => read());
      await cluster.sql(0, `SELECT rebalance_table_shards('cold.cold_rows', shard_transfer_mode => 'block_writes')`);
      for (const each of await Promise.allSettled(reads)) expect(each).toEqual({ status: 'fulfilled', value: before });
      const [{ nodes } = { nodes: 0 }] = await cluster.sql(
        0,
        `SELECT count(DISTINCT nodeport)::int AS nodes FROM citus_shards WHERE table_name = 'cold.cold_rows'::regclass`,
      );
      expect(nodes).toBe(3);
      expect(await read()).toEqual(before);
      expect(await differences('all')).toEqual([]);
    });
  });
});
