/** Rows of old months leave the database for a store, are read as before, and come back. */
import { copyFileSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { monthArchive, monthUnarchive } from '../../src/actions/archive.ts';
import { previewAction, runAction } from '../../src/actions/run.ts';
import { type RowScope, recallRows, type Tree } from '../../src/archive/archive.sql.ts';
import { readTrees } from '../../src/archive/cold.sql.ts';
import { readingParquet, withDuckDb } from '../../src/archive/parquet.ts';
import { needRows } from '../../src/archive/rows.ts';
import { findChangedArchives } from '../../src/audit/checks/archives.ts';
import { checkContext } from '../../src/audit/verify.ts';
import { query } from '../../src/database/transaction.ts';
import { readLines } from '../../src/ledger/running-lines.sql.ts';
import type { Month } from '../../src/month.ts';
import { readPartnerEvents } from '../../src/partner-events/event.ts';
import { readLastArchived } from '../../src/partner-events/events.sql.ts';
import { readCloseReport } from '../../src/reports/close.ts';
import { openOwner } from '../audit/owner.ts';
import { refusalOf } from '../close/refusal.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { ROOT } from '../support/modules.ts';
import { quote, reversal, type World } from '../support/world.ts';
import { answersOf } from './answers.ts';
import { worldOfOldMonths } from './archived-world.ts';

let world: World;
beforeAll(async () => {
  world = await worldOfOldMonths();
});
afterAll(() => world.end());

const context = () => ({ ...world, reporter: {} });
const archive = (month: string) => runAction(context(), monthArchive, { month: month as Month, store: 'cold' });
const unarchive = (month: string) => runAction(context(), monthUnarchive, { month: month as Month });
const allRows = () => world.sql('SELECT * FROM ledger_rows ORDER BY entry_id');
const count = async () => (await allRows()).length;
const differences = async () => (await world.verify()).checks.flatMap((each) => each.differences);
const folder = () => {
  const store = join(world.home, 'cold');
  return join(store, readdirSync(store)[0] as string);
};

const answers = () => answersOf(world);

describe('a month', () => {
  test('leaves the database, and everything that people read of it stays the same', async () => {
    const before = await answers();
    expect(before['differences']).toEqual([]);
    const rows = await count();
    for (const month of ['2026-01', '2026-02', '2026-03']) await archive(month);
    expect(await count()).toBeLessThan(rows - 9);
    expect(await answers()).toEqual(before);
  });

  test('is previewed without a file or an event', async () => {
    const events = () => world.sql('SELECT count(*) FROM audit_events');
    const before = await events();
    const shown = await previewAction(context(), monthUnarchive, { month: '2026-01' as Month });
    expect(shown.report.text).toContain('2026-01 is in the database again, with 3 rows');
    await unarchive('2026-01');
    const files = readdirSync(folder());
    const again = await previewAction(context(), monthArchive, { month: '2026-01' as Month, store: 'cold' });
    expect(again.report.text).toBe("2026-01 has 3 rows: 3 would leave the database for 'cold', 0 stay.");
    expect(await events()).not.toEqual(before);
    expect(readdirSync(folder())).toEqual(files);
    expect(await world.sql(`SELECT FROM archived_months WHERE month = '2026-01'`)).toEqual([]);
    await archive('2026-01');
  });

  test('comes back as it was', async () => {
    for (const month of ['2026-01', '2026-02', '2026-03']) await unarchive(month);
    const whole = await allRows();
    const before = readdirSync(folder()).map((name) => readFileSync(join(folder(), name)));
    await archive('2026-02');
    await archive('2026-01');
    expect(readdirSync(folder()).map((name) => readFileSync(join(folder(), name)))).toEqual(before);
    await unarchive('2026-02');
    await unarchive('2026-01');
    expect(await allRows()).toEqual(whole);
    expect(await differences()).toEqual([]);
  });

  test('is not archived into a store whose folder is gone, although it has other months', async () => {
    await archive('2026-01');
    const there = folder();
    renameSync(there, `${world.home}/away`);
    expect((await refusalOf(archive('2026-02'))).code).toBe('archive_incomplete');
    expect(readdirSync(join(world.home, 'cold'))).toEqual([]);
    renameSync(`${world.home}/away`, there);
    await unarchive('2026-01');
  });

  test('is not archived while its books are open, or while it is among the last three', async () => {
    for (const month of ['2026-06', '2026-05', '2026-04'])
      expect((await refusalOf(archive(month))).code).toBe('archive_too_early');
    expect((await refusalOf(unarchive('2026-01'))).code).toBe('month_not_archived');
  });
});

describe('while a month is archived', () => {
  beforeAll(async () => {
    await archive('2026-01');
    await archive('2026-02');
  });

  test('a sale that is sent again is a duplicate, and with another amount a conflict', async () => {
    const again = quote({
      quote_id: 'q-a-2026-01',
      accepted_at: '2026-01-10T12:00:00Z',
      order_reference: 'ord "1"\\2',
    });
    const [{ enrollment_id } = { enrollment_id: '' }] = await enrollmentOf('q-a-2026-01');
    expect(await world.rows([{ ...again, enrollment_id }], { preview: true })).toMatchObject({
      accepted: 0,
      duplicates: 1,
    });
    const other = await world.rows([{ ...again, enrollment_id, spotPrice: '11.00', partnerCut: '4.00' }], {
      preview: true,
    });
    expect(other.errors).toMatchObject([{ code: 'conflict' }]);
  });

  test('a late reversal waits for a person, is granted, and is billed in the open month', async () => {
    const [{ enrollment_id } = { enrollment_id: '' }] = await enrollmentOf('q-b-2026-01');
    const of = quote({ quote_id: 'q-b-2026-01', enrollment_id });
    const report = await world.rows([reversal(of, { reversal_id: 'rv-late', accepted_at: '2026-07-19T12:00:00Z' })]);
    expect(report).toMatchObject({ accepted: 1, errors: [] });
    expect(await world.sql(`SELECT posted_month, kind FROM ledger_rows WHERE quote_id = 'q-b-2026-01'`)).toEqual([
      { posted_month: '2026-07', kind: 'reversal' },
    ]);
    // The tax of a reversal is that of the month of its sale.
    const lines = await world.database.reading((tx) => readLines(tx, { after: 0, to: 1_000_000 }));
    const late = (JSON.parse(lines) as Record<string, string>[]).filter(({ kind }) => kind === 'reversal');
    expect(late).toMatchObject([{ posted_month: '2026-07', sold_month: '2026-01', sold_posted: '2026-01' }]);
    // Nothing is left of the sale.
    const twice = await world.rows([reversal(of, { reversal_id: 'rv-twice', accepted_at: '2026-07-19T13:00:00Z' })]);
    expect(twice.errors).toMatchObject([{ code: 'quote_exceeded' }]);
    expect(await differences()).toEqual([]);
  });

  test('a sale of an archived day that may repeat an archived one waits for a decision', async () => {
    const [{ enrollment_id } = { enrollment_id: '' }] = await enrollmentOf('q-a-2026-02');
    const again = quote({ quote_id: 'q-again', accepted_at: '2026-02-10T12:00:00Z', enrollment_id });
    const { held_rows: held } = await world.rows([again], { preview: true, holds: true });
    expect(held).toMatchObject([{ code: 'same_enrollment', reason: expect.stringContaining('q-a-2026-02') as string }]);
  });

  test('rows are read once, although two needs name them', async () => {
    const read = (scopes: readonly RowScope[]) =>
      world.database.reading(async (tx) => {
        for (const scope of scopes) await needRows(tx, scope);
        return query(tx, 'SELECT entry_id FROM ledger_rows ORDER BY 1');
      });
    const january = '2026-01' as Month;
    const twice = await read([{ from: january, to: january, partnerIds: ['p-1'] }, { partnerIds: ['p-1', 'p-2'] }, {}]);
    expect(twice).toEqual(await read([{}]));
  });

  test('only rows that the close counted can be brought back', async () => {
    const of = { partnerId: 'p-2', quoteIds: ['q-c-2026-01'] };
    const path = join(folder(), '2026-01-0001.parquet');
    const [tree] = (await withDuckDb((connection, own) => readTrees(readingParquet(connection, own, [path]), of))) as [
      Tree,
    ];
    const rows = JSON.stringify((JSON.parse(tree.rows) as object[]).map((row) => ({ ...row, policy_id: 'other' })));
    const recall = (given: Tree) =>
      world.database.transaction((tx) => recallRows(tx, 'p-2', given)).catch((error: Error) => error.message);
    expect(await recall({ ...tree, rows })).toMatch('not those that its close counted');
    expect(await recall({ ...tree, leaves: `${tree.leaves}${tree.leaves}` })).toMatch('not those that its close');
    const there = () => world.sql(`SELECT kind FROM ONLY ledger_rows WHERE quote_id = 'q-c-2026-01'`);
    expect(await there()).toEqual([]);
    expect(await recall(tree)).toBe(1);
    expect(await there()).toEqual([{ kind: 'quote_accepted' }]);
    expect(await differences()).toEqual([]);
    expect(await archive('2026-01')).toMatchObject({ json: { moved: 1 } });
  });

  test('verify names a row that stayed and was changed, and a file that another took the place of', async () => {
    const owner = openOwner(world);
    const found = (statement: string) =>
      owner.undone(async (tx) => {
        await tx.knex.raw(GUARDS_OFF);
        await tx.knex.raw(statement);
        await tx.knex.raw(GUARDS_ON);
        const given = { environment: world.environment, schema: world.schema };
        return findChangedArchives(tx, await checkContext(tx, null, given));
      });
    expect(await found('SELECT')).toMatchObject({ inspected: 2, differences: [] });
    const stays = `INSERT INTO ledger_rows OVERRIDING SYSTEM VALUE
      SELECT (json_populate_record(
        e, '{"month": "2026-01", "posted_month": "2026-01", "quote_id": "q-invented", "entry_id": 999999}')).*
      FROM ledger_rows e WHERE e.quote_id = 'q-a-2026-04'`;
    expect((await found(stays)).differences).toEqual([{ subject: 'row 999999', detail: 'is not that of the archive' }]);
    const group = `UPDATE archived_groups SET invoice_amount = invoice_amount + 1 WHERE posted_month = '2026-02'`;
    const [wrong] = (await found(group)).differences;
    expect(wrong).toMatchObject({
      subject: expect.stringMatching(/^group 2026-02 p-/),
      detail: 'is not that of the archive',
    });
    const other = `UPDATE archived_files SET partner_to = 'p-1' WHERE month = '2026-01'`;
    expect((await found(other)).differences).toMatchObject([{ subject: '2026-01' }]);
    expect((await found('DELETE FROM archived_files')).differences).toHaveLength(2);
    await owner.close();
  });

  test('a partner gets its events before the first of an archived row', async () => {
    await unarchive('2026-01');
    const events = await world.database.reading((tx) =>
      readPartnerEvents(tx, { partnerId: 'p-1', after: 0, limit: 50 }),
    );
    // Two rows, and the invoice. The next event is of a row of February.
    expect(events.map(({ type }) => type)).toHaveLength(3);
    await archive('2026-01');
    const last = await world.database.reading((tx) => readLastArchived(tx, { partnerId: 'p-1' }));
    expect(last).toBeGreaterThan(2);
  });

  test('an auditor gets the totals and the root of each partner with DuckDB alone', async () => {
    const page = readFileSync(join(ROOT, 'docs', 'auditors.md'), 'utf8');
    const [, sql = ''] = /```sql\n(WITH RECURSIVE lines[^`]*)```/.exec(page) ?? [];
    const found = await withDuckDb(async (connection) =>
      (await connection.runAndReadAll(sql.replace('2026-07-*', join(folder(), '2026-02-*')))).getRows(),
    );
    const stated = await world.sql(
      `SELECT concat_ws(' ', partner_id, currency, arrangement) AS k, entries, spot_price, partner_cut, invoice_amount,
              root
       FROM month_partners WHERE month = '2026-02' ORDER BY k`,
    );
    expect(stated).toHaveLength(2);
    expect(found.map(([k, ...values]) => [k, ...values.slice(0, 4).map(Number), values[4]])).toEqual(
      stated.map(({ k, root, ...values }) => [k, ...Object.values(values).map(Number), root]),
    );
  });

  const file = () => join(folder(), '2026-01-0001.parquet');
  test.each([
    ['is missing', () => renameSync(file(), `${file()}.away`), () => renameSync(`${file()}.away`, file())],
    [
      'is cut',
      () => {
        copyFileSync(file(), `${file()}.kept`);
        writeFileSync(file(), readFileSync(file()).subarray(0, -100));
      },
      () => renameSync(`${file()}.kept`, file()),
    ],
    [
      'is that of another month',
      () => {
        copyFileSync(file(), `${file()}.kept`);
        copyFileSync(join(folder(), '2026-02-0001.parquet'), file());
      },
      () => renameSync(`${file()}.kept`, file()),
    ],
  ])('a read of a month whose file %s is refused, and other months close', async (_, damage, mend) => {
    damage();
    try {
      const read = refusalOf(
        world.database.reading((tx) => needRows(tx, { from: '2026-01' as Month, to: '2026-01' as Month })),
      );
      expect(await read).toMatchObject({ code: 'archive_incomplete', facts: { month: '2026-01' } });
      expect(await world.database.reading((tx) => readCloseReport(tx, '2026-06' as Month))).toBeDefined();
    } finally {
      mend();
    }
  });
});

const enrollmentOf = (id: string) =>
  world.database.reading(async (tx) => {
    await needRows(tx, {});
    return query<{ enrollment_id: string }>(tx, 'SELECT enrollment_id FROM ledger_rows WHERE quote_id = :id', { id });
  });
