/** `verify` with an archive: what it reads each day, and what it reads of the month of the day. */
import { readdirSync, readFileSync, renameSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { monthArchive, monthUnarchive } from '../../src/actions/archive.ts';
import { runAction } from '../../src/actions/run.ts';
import { findBrokenRules } from '../../src/audit/rules.ts';
import { type Verification, verify } from '../../src/audit/verify.ts';
import { settleRestored } from '../../src/cli/commands/restore.ts';
import { checkStores } from '../../src/cli/doctor.ts';
import type { DerivedRows } from '../../src/log/derive.ts';
import type { Month } from '../../src/month.ts';
import { openOwner } from '../audit/owner.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { quote, requote, type World } from '../support/world.ts';
import { worldOfOldMonths, worldOfOldQuotes } from './archived-world.ts';

const ARCHIVED = ['2026-01', '2026-02', '2026-03'] as Month[];
const SCOPES = [{ month: null }, ...ARCHIVED.map((month) => ({ month })), 'all'] as DerivedRows[];
const OLD = { month: '2026-02' as Month };
let world: World;
beforeAll(async () => {
  world = await worldOfOldMonths({ chains: true });
  for (const month of ARCHIVED) await archive(world, month);
});
afterAll(() => world.end());

const archive = (of: World, month: Month) => {
  const context = { ...of, reporter: {} };
  return runAction(context, monthArchive, { month, store: 'cold' });
};
const verified = (derived: DerivedRows, month?: Month) =>
  world.database.readingBeside(async (tx, beside) =>
    verify(tx, month, { environment: world.environment, schema: world.schema, derived, beside }),
  );
const differences = async (derived: DerivedRows, month?: Month) =>
  (await verified(derived, month)).checks.flatMap((each) => each.differences);
const folder = () => {
  const store = join(world.home, 'cold');
  return join(store, readdirSync(store)[0] as string);
};

test('quotes whose rows are in several archived months stay right on each day, in each month, and in all', async () => {
  const [{ sold, reversed } = { sold: 0, reversed: 0 }] = await world.sql<{ sold: number; reversed: number }>(
    `SELECT count(*) FILTER (WHERE kind <> 'reversal')::int AS sold,
            count(*) FILTER (WHERE kind = 'reversal')::int AS reversed
     FROM ONLY ledger_rows WHERE posted_month <= '2026-03'`,
  );
  expect({ sold, reversed }).toEqual({ sold: 2, reversed: 4 });
  for (const derived of SCOPES) expect({ derived, found: await differences(derived) }).toEqual({ derived, found: [] });
  for (const month of ARCHIVED) expect(await differences({ month: null }, month)).toEqual([]);
});

test('without the store, every day but those of archived months passes, and names the files that are missing', async () => {
  const doctor = () => world.database.reading((tx) => checkStores(tx, world.environment));
  expect(await doctor()).toEqual([
    { check: 'archive', state: 'ok', says: "3 months (2026-01 to 2026-03) in the store 'cold'" },
  ]);
  renameSync(folder(), `${folder()}.away`);
  try {
    const found = await differences({ month: null });
    expect(found).toEqual(
      ARCHIVED.flatMap((subject) =>
        [`${subject}-0001.parquet`, `${subject}.statement`].map((name) => ({
          ...{ subject, detail: `${name} is missing, or has another size` },
        })),
      ),
    );
    expect(await doctor()).toMatchObject([{ state: 'problem', says: expect.stringContaining('Files like it: 6.') }]);
    const named = await differences({ month: '2026-02' as Month });
    expect(named.map(({ subject }) => subject)).toEqual(expect.arrayContaining(['2026-02', 'archived months']));
  } finally {
    const [away] = readdirSync(join(world.home, 'cold'));
    renameSync(
      join(world.home, 'cold', away as string),
      join(world.home, 'cold', (away as string).replace('.away', '')),
    );
  }
});

test('a restored ledger is verified without the files of archived months', async () => {
  const owner = openOwner(world);
  const backup = { file: 'books.backup', created_at: '2026-07-20T00:00:00Z', program: '0.1.0', sha256: '0'.repeat(64) };
  const { proof } = await owner.undone((tx) =>
    settleRestored(tx, { environment: world.environment, backup: backup as never, schema: { sha256: '' } as never }),
  );
  await owner.close();
  // This is no record of a real restore.
  const found = (proof as Verification).checks.filter(({ check }) => check !== 'schema_as_migrated');
  expect(found.flatMap((each) => each.differences)).toEqual([]);
});

test('a file that was cut is named on any day', async () => {
  const file = join(folder(), '2026-03-0001.parquet');
  const whole = readFileSync(file);
  truncateSync(file, whole.length - 10);
  const cut = { subject: '2026-03', detail: '2026-03-0001.parquet is missing, or has another size' };
  expect(await differences({ month: null })).toEqual([cut]);
  const unread = { subject: 'archived months', detail: expect.stringContaining('is not the file of the archive') };
  expect(await differences({ month: '2026-01' as Month })).toEqual([cut, unread]);
  writeFileSync(file, whole);
});

/** What `verify` finds after statements of the owner, which are undone. */
async function damaged(derived: DerivedRows, ...statements: string[]): Promise<string[]> {
  const owner = openOwner(world);
  const found = await owner.undone(async (tx) => {
    for (const statement of [GUARDS_OFF, ...statements, GUARDS_ON]) await tx.knex.raw(statement);
    return findBrokenRules(tx, derived);
  });
  await owner.close();
  return found.differences.map(({ subject }) => subject.split(':')[0] as string);
}

test('counts and sums of archived rows that are not those of the close are named on any day', async () => {
  const change = `UPDATE archived_groups SET entries = entries + 1
    WHERE posted_month = '2026-02' AND kind = 'quote_accepted' AND partner_id = 'p-2'`;
  expect(await damaged({ month: null }, change)).toEqual(
    expect.arrayContaining(['month_partners', 'documents_of_rows']),
  );
});

test('a reversal in an archived month without a ground is named on any day, without a sale in its month and in all', async () => {
  const ground = `DELETE FROM reversal_grounds WHERE reversal_id = 'rv-b-2026-02'`;
  expect(await damaged({ month: null }, ground)).toContain('reversal_ground');
  const sale = `UPDATE ledger_rows SET quote_id = 'q-none' WHERE reversal_id = 'rv-b-2026-02'`;
  expect(await damaged({ month: null }, sale)).not.toContain('quote_known');
  expect(await damaged({ month: '2026-01' as Month }, sale)).not.toContain('quote_known');
  expect(await damaged(OLD, sale)).toContain('quote_known');
});

test('a month that comes back brings the sales of its reversals from other archived months', async () => {
  const sales = () =>
    world.sql(
      `SELECT quote_id FROM ONLY ledger_rows WHERE kind = 'quote_accepted' AND posted_month = '2026-01' ORDER BY 1`,
    );
  expect(await sales()).toEqual([]);
  await runAction({ ...world, reporter: {} } as never, monthUnarchive, OLD);
  expect(await sales()).toEqual([{ quote_id: 'q-a-2026-01' }, { quote_id: 'q-b-2026-01' }]);
  for (const derived of SCOPES) expect({ derived, found: await differences(derived) }).toEqual({ derived, found: [] });
  await archive(world, OLD.month);
  expect(await sales()).toEqual([]);
});

test('an imported requote of an archived quote is right on any day', async () => {
  world.at('2026-07-21T12:00:00Z');
  const of = quote({ partner_id: 'p-2', quote_id: 'q-c-2026-01', accepted_at: '2026-07-21T10:00:00Z' });
  expect((await world.rows([requote(of)])).errors).toEqual([]);
  for (const derived of SCOPES) expect({ derived, found: await differences(derived) }).toEqual({ derived, found: [] });
});

test('sales and reversals by the API in archived months are right on any day', async () => {
  const { world: served } = await worldOfOldQuotes({ reversed: true });
  for (const month of ['2026-01', '2026-02'] as Month[]) await archive(served, month);
  expect(await served.sql(`SELECT kind FROM ONLY ledger_rows WHERE posted_month = '2026-01'`)).toEqual([
    { kind: 'reversal' },
  ]);
  for (const derived of [{ month: null }, { month: '2026-01' as Month }, 'all'] as DerivedRows[]) {
    const { checks } = await served.database.readingBeside(async (tx, beside) =>
      verify(tx, undefined, { environment: served.environment, schema: served.schema, derived, beside }),
    );
    expect(checks.flatMap((each) => each.differences)).toEqual([]);
  }
  await served.end();
});
