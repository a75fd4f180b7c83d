/** `verify` with an archive: what it reads each day, and what it reads of the month of the day. */
import { readdirSync, readFileSync, renameSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { monthArchive } from '../../src/actions/archive.ts';
import { runAction } from '../../src/actions/run.ts';
import { verify } from '../../src/audit/verify.ts';
import type { DerivedRows } from '../../src/log/derive.ts';
import type { Month } from '../../src/month.ts';
import { openOwner } from '../audit/owner.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import type { World } from '../support/world.ts';
import { worldOfOldMonths } from './archived-world.ts';

const ARCHIVED = ['2026-01', '2026-02', '2026-03'] as Month[];
let world: World;
beforeAll(async () => {
  world = await worldOfOldMonths({ chains: true });
  const context = { ...world, reporter: {} };
  for (const month of ARCHIVED) {
    await runAction(context, monthArchive, { month, store: 'cold' });
  }
});
afterAll(() => world.end());

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
  for (const derived of [{ month: null }, ...ARCHIVED.map((month) => ({ month })), 'all'] as DerivedRows[]) {
    expect({ derived, found: await differences(derived) }).toEqual({ derived, found: [] });
  }
  for (const month of ARCHIVED) expect(await differences({ month: null }, month)).toEqual([]);
});

test('without the store, every day but those of archived months passes, and names the files that are missing', async () => {
  renameSync(folder(), `${folder()}.away`);
  try {
    const found = await differences({ month: null });
    expect(found).toEqual(
      ARCHIVED.map((subject) => ({ subject, detail: `${subject}-0001.parquet is missing, or has another size` })),
    );
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

test('counts and sums of archived rows that are not those of the close are named on any day', async () => {
  const owner = openOwner(world);
  const change = `UPDATE archived_groups SET entries = entries + 1
    WHERE posted_month = '2026-02' AND kind = 'quote_accepted' AND partner_id = 'p-2'`;
  const found = await owner.undone(async (tx) => {
    for (const statement of [GUARDS_OFF, change, GUARDS_ON]) await tx.knex.raw(statement);
    return (
      await verify(tx, undefined, { environment: world.environment, schema: world.schema, derived: { month: null } })
    ).checks.flatMap((each) => each.differences);
  });
  expect(found.map(({ subject }) => subject.split(':')[0])).toEqual(
    expect.arrayContaining(['month_partners', 'documents_of_rows']),
  );
  await owner.close();
});
