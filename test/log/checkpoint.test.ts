/** Checkpoints of the log: daily ones behind a fence, and those of closes. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { takeCheckpoint, takeDueCheckpoint } from '../../src/log/checkpoint.ts';
import { readCheckpoints } from '../../src/log/checkpoints.sql.ts';
import { deriveLog } from '../../src/log/derive.ts';
import { LeafRange } from '../../src/log/tree.ts';
import { failing } from '../audit/failing.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { linesTo } from '../support/log-lines.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';
import { leafHash } from './inclusion.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
  await world.partners([partner(), partner({ partner_id: 'p-2' })]);
  await world.rows([
    quote({ quote_id: 'q-1' }),
    quote({ quote_id: 'q-2' }),
    quote({ quote_id: 'q-3', partner_id: 'p-2' }),
  ]);
});
afterEach(() => world.end());

const take = () => takeCheckpoint(world.database, world);
const checkpoints = () => world.database.reading((tx) => readCheckpoints(tx));
const derived = () => world.database.reading((tx) => deriveLog(tx, 'all'));

const linesUpTo = (last: number) => world.database.reading((tx) => linesTo(tx, last));

describe('a checkpoint', () => {
  test('has the root over the lines of all facts in the order of their numbers', async () => {
    const taken = await take();
    const lines = await linesUpTo(taken?.last_no ?? 0);
    const numbers = lines.map((line) => Number(line.split('\t')[1]));
    expect(numbers).toEqual([...numbers].sort((one, other) => one - other));
    const tree = new LeafRange();
    for (const line of lines) tree.add(leafHash(Buffer.from(line)));
    expect(taken).toMatchObject({ size: lines.length, root: tree.root(), closes: null });
    expect(lines.filter((line) => line.startsWith('ledger_rows\t'))).toHaveLength(3);
    expect(lines.find((line) => line.includes('q-3'))).toMatch(
      /^ledger_rows\t\d+\tquote_accepted\tp-2\tq-3\t\\N\t\\N\t/,
    );
    expect((await derived()).differences).toEqual([]);
  });

  test('is taken once a day, and none is taken if nothing was recorded since', async () => {
    expect(await takeDueCheckpoint(world.database, world)).toBeDefined();
    await world.rows([quote({ quote_id: 'q-4' })]);
    expect(await takeDueCheckpoint(world.database, world)).toBeUndefined();
    // Covers the first instants of the months of the rows, which the first checkpoint recorded.
    expect(await take()).toBeDefined();
    expect(await take()).toBeUndefined();
  });

  test('of a close ends with what the close states, and continues the trees of partners', async () => {
    await take();
    await world.rows([quote({ quote_id: 'q-5', partner_id: 'p-2' })]);
    await world.close();
    const [, last] = await checkpoints();
    expect(last?.closes).toBe('month 2026-07');
    const lines = await linesUpTo(last?.last_no ?? 0);
    expect(lines).toHaveLength(last?.size ?? 0);
    expect(lines.slice(-4).map((line) => line.split('\t')[0])).toEqual([
      'closed_months',
      'month_totals',
      'month_partners',
      'month_partners',
    ]);
    const rows = new LeafRange();
    for (const line of lines) {
      if (line.startsWith('ledger_rows\t') && line.split('\t')[3] === 'p-2') rows.add(leafHash(Buffer.from(line)));
    }
    expect(lines.at(-1)?.split('\t').at(-1)).toBe(rows.root().toString('base64'));
    expect((await derived()).differences).toEqual([]);
  });

  test('is due once a day of the issuer', async () => {
    const due = () => takeDueCheckpoint(world.database, world);
    expect(await due()).toBeDefined();
    await world.rows([quote({ quote_id: 'q-4' })]);
    // 23:59 in New York.
    world.at('2026-08-02T03:59:00Z');
    expect(await due()).toBeUndefined();
    world.at('2026-08-02T04:00:00Z');
    expect(await due()).toBeDefined();
  });

  test('is taken once by several runs at the same time', async () => {
    const taken = await Promise.all([take(), take(), take()]);
    expect(taken.filter((each) => each !== undefined)).toHaveLength(1);
    expect(await checkpoints()).toHaveLength(1);
  });

  test('is refused by a clock behind the last one, and so is a close', async () => {
    world.at('2026-08-05T10:00:00Z');
    await take();
    await world.rows([quote({ quote_id: 'q-4' })]);
    world.at('2026-08-03T10:00:00Z');
    await expect(take()).rejects.toMatchObject({ code: 'clock_behind', facts: { latest: '2026-08-05' } });
    await expect(world.close()).rejects.toMatchObject({ code: 'clock_behind' });
    expect(await checkpoints()).toHaveLength(1);
  });

  test('keeps the tree of each partner in open months, and closes continue it', async () => {
    const edges = async () =>
      (
        await world.sql<{ edge: string }>(
          `SELECT concat_ws(' ', posted_month, partner_id, entries) AS edge FROM partner_edges ORDER BY 1`,
        )
      ).map(({ edge }) => edge);
    const both = ['2026-07-31T12:00:00Z', '2026-08-01T09:00:00Z'];
    for (const accepted_at of both) await world.rows([quote({ accepted_at })]);
    await take();
    expect(await edges()).toEqual(['2026-07 p-1 3', '2026-07 p-2 1', '2026-08 p-1 1']);
    for (const accepted_at of both.toReversed()) await world.rows([quote({ accepted_at })]);
    await take();
    for (const accepted_at of both) await world.rows([quote({ accepted_at })]);
    await world.close();
    expect(await edges()).toEqual(['2026-08 p-1 3']);
    await world.rows([quote({ accepted_at: both[1] as string })]);
    expect((await derived()).differences).toEqual([]);
    world.at('2026-09-01T10:00:00Z');
    await world.close('2026-08');
    expect(await edges()).toEqual([]);
    expect((await derived()).differences).toEqual([]);
    expect((await world.verify('2026-08')).differences).toBe(0);
  });

  test('of a first close that bills several months has the rows of each partner in the order in which they came', async () => {
    for (const accepted_at of ['2026-06-30T12:00:00Z', '2026-07-30T12:00:00Z', '2026-06-29T12:00:00Z'])
      await world.rows([quote({ accepted_at })]);
    await take();
    await world.rows([quote({ accepted_at: '2026-06-28T12:00:00Z' })]);
    await world.close('2026-07', { firstMonth: '2026-07' });
    expect(await world.sql('SELECT partner_id, entries FROM month_partners ORDER BY 1')).toEqual([
      { partner_id: 'p-1', entries: '6' },
      { partner_id: 'p-2', entries: '1' },
    ]);
    expect((await derived()).differences).toEqual([]);
    expect((await world.verify('2026-07')).differences).toBe(0);
  });

  test('is named when a row, a fact or a tree under it was changed', async () => {
    await take();
    await world.close();
    const owner = (sql: string) => world.sql(`BEGIN; ${GUARDS_OFF} ${sql}; ${GUARDS_ON} COMMIT`);
    await owner(
      `UPDATE ledger_rows SET spot_price = spot_price + 1, partner_cut = partner_cut + 1 WHERE quote_id = 'q-1'`,
    );
    expect((await derived()).differences.map(({ subject }) => subject)).toEqual([
      expect.stringMatching(/^checkpoint of \d+ facts$/),
      'rows of p-1 in 2026-07, USD',
    ]);
    const inMonth = await world.database.reading((tx) => deriveLog(tx, { month: null }));
    expect(inMonth.differences).toEqual([]);
    await owner(`UPDATE audit_events SET action = 'x.y' WHERE event_id = 1`);
    expect((await world.database.reading((tx) => deriveLog(tx, { month: null }))).differences).toEqual([
      expect.objectContaining({ detail: 'covers facts other than rows that are not those of the tables' }),
    ]);
  });
});

test('rows of an open month that are pushed to the next one are named without a checkpoint, before its close and after', async () => {
  const differences = async () => failing(await world.verify());
  await world.rows([quote({ quote_id: 'q-9', accepted_at: '2026-08-01T09:00:00Z' })]);
  await world.close('2026-07');
  expect(await differences()).not.toContain('row_posted');
  await world.sql(`${GUARDS_OFF} UPDATE ledger_rows SET posted_month = '2026-09' WHERE quote_id = 'q-9'; ${GUARDS_ON}`);
  expect(await differences()).toContain('row_posted');
  world.at('2026-09-01T10:00:00Z');
  await world.close('2026-08');
  expect(await differences()).toContain('row_posted');
});
