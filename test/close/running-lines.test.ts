/** A close continues the lines that checkpoints keep, and issues what a close of all rows at once would issue. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { linesOf } from '../../src/ledger/running-lines.sql.ts';
import { takeCheckpoint } from '../../src/log/checkpoint.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { openWorld, partner, quote, reversal, type World } from '../support/world.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
  await world.partners([partner(), partner({ partner_id: 'p-2' })]);
});
afterEach(() => world.end());

const kept = (): Promise<object[]> => world.sql(`SELECT * FROM running_lines ORDER BY running_lines::text`);
const derived = (): Promise<object[]> =>
  world.sql(
    `SELECT * FROM (${linesOf(`e.posted_month > coalesce((SELECT max(month) FROM closed_months), '')
    AND e.entry_id <= (SELECT max(last_no) FROM log_checkpoints)`)}) AS l ORDER BY l::text`,
  );
const invoices = (): Promise<object[]> =>
  world.sql(`SELECT month, partner_id, entries::int, invoice_amount FROM documents ORDER BY month, partner_id`);

test('each checkpoint adds the rows since the last one, and a close bills these and the rows after them', async () => {
  await world.rows([quote({ quote_id: 'q-1' }), quote({ quote_id: 'q-2', partner_id: 'p-2' })]);
  await takeCheckpoint(world.database, world);
  expect(await kept()).toEqual(await derived());
  await world.rows([quote({ quote_id: 'q-3' }), reversal(quote({ quote_id: 'q-1' }))]);
  await takeCheckpoint(world.database, world);
  expect(await kept()).toEqual(await derived());
  await world.rows([quote({ quote_id: 'q-4' })]);
  expect(await world.close('2026-07')).toEqual(['2026-07']);
  expect(await invoices()).toEqual([
    { month: '2026-07', partner_id: 'p-1', entries: 4, invoice_amount: '14' },
    { month: '2026-07', partner_id: 'p-2', entries: 1, invoice_amount: '7' },
  ]);
  await world.verify();
});

test('rows of the next month stay when a month closes', async () => {
  await world.rows([quote({ quote_id: 'q-1' }), quote({ quote_id: 'q-2', accepted_at: '2026-08-01T09:00:00Z' })]);
  await takeCheckpoint(world.database, world);
  await world.close('2026-07');
  expect(await kept()).toEqual(await derived());
  expect(await world.sql('SELECT DISTINCT posted_month FROM running_lines')).toEqual([{ posted_month: '2026-08' }]);
});

test('the close of a month states when the latest row of each partner was accepted', async () => {
  await world.rows([
    quote({ quote_id: 'q-1', accepted_at: '2026-07-09T12:00:00Z' }),
    quote({ quote_id: 'q-2', accepted_at: '2026-07-30T12:00:00Z' }),
  ]);
  await takeCheckpoint(world.database, world);
  await world.rows([quote({ quote_id: 'q-3', accepted_at: '2026-07-11T12:00:00Z' })]);
  await world.close('2026-07');
  expect(await world.sql(`SELECT last_accepted_at = '2026-07-30T12:00:00Z' AS latest FROM month_partners`)).toEqual([
    { latest: true },
  ]);
});

test.each([
  ['lost before a checkpoint', true, `DELETE FROM ledger_rows WHERE quote_id = 'q-1'`],
  ['lost after a checkpoint', false, `DELETE FROM ledger_rows WHERE quote_id = 'q-1'`],
  ['changed', false, `UPDATE ledger_rows SET spot_price = spot_price + 1, invoice_amount = invoice_amount + 1`],
  ['without a receipt', false, `DELETE FROM ledger_receipts`],
])('no month closes with a row that was %s', async (_, isCovered, change) => {
  await world.rows([quote({ quote_id: 'q-1' }), quote({ quote_id: 'q-2' })]);
  if (isCovered) {
    await world.sql(`${GUARDS_OFF} ${change}; ${GUARDS_ON}`);
    await expect(takeCheckpoint(world.database, world)).rejects.toMatchObject({ code: 'ledger_incomplete' });
  } else await world.sql(`${GUARDS_OFF} ${change}; ${GUARDS_ON}`);
  await expect(world.close('2026-07')).rejects.toMatchObject({ code: 'ledger_incomplete' });
  expect(await invoices()).toEqual([]);
});
