/** A write-off can be undone: a late payment then finds the invoice open, and bad debts are as if it had waited. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { undoWriteOff } from '../../src/documents/write-off.ts';
import { applyPayment } from '../../src/payments/apply.ts';
import { type RecordedPayment, recordPayment } from '../../src/payments/record.ts';
import { readAccountStatement } from '../../src/reports/account-statement.ts';
import { readAging } from '../../src/reports/aging.ts';
import { refusalOf } from '../close/refusal.ts';
import { startOver } from '../close/start-over.ts';
import { openWorld, partner, type World } from '../support/world.ts';
import { type Corrections, correctionsOf, document, expectVerified, sale, standing, story } from './correcting.ts';

let world: World;
let action: Corrections;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());
beforeEach(async () => {
  await startOver(world);
  action = correctionsOf(world);
  await world.partners([partner()]);
  await world.rows([sale('2026-05', '60')]);
  world.at('2026-06-02T10:00:00Z');
  await world.close('2026-05');
  world.at('2026-07-02T10:00:00Z');
});

const INV_1 = 'INV-2026-000001';
const undo = (reason = 'they pay after all') =>
  world.database.transaction((tx) => undoWriteOff(tx, world, { number: INV_1, reason }));
const pay = (amount: string, receivedOn: string): Promise<RecordedPayment> =>
  world.database.transaction((tx) =>
    recordPayment(tx, world, {
      ...{ amount, receivedOn, currency: 'USD', method: 'wire', reference: `FT-${amount}`, number: INV_1 },
    }),
  );

test('an undone write-off leaves the invoice open, and bad debts and receivables as before', async () => {
  expect(await refusalOf(undo())).toMatchObject({ code: 'not_written_off', facts: { number: INV_1 } });
  await action.writeOff(INV_1);
  world.at('2026-07-05T10:00:00Z');
  expect((await undo()).toString()).toBe('60.00');
  expect(await standing(world)).toEqual({ [INV_1]: '60.00 - 0.00 - 0.00 = 60.00 open' });
  expect(await story(world, INV_1)).toContainEqual([
    'write_off_undone',
    'write-off of 60.00 USD undone: they pay after all',
  ]);
  expect(
    await world.sql(
      `SELECT account, trim_scale(amount)::text AS amount, entry_on::text FROM journal_of_facts
       WHERE fact = 'write_off_undone' ORDER BY amount DESC`,
    ),
  ).toEqual([
    { account: 'assets:receivable:billed:p-1', amount: '60', entry_on: '2026-07-05' },
    { account: 'expenses:bad-debts', amount: '-60', entry_on: '2026-07-05' },
  ]);
  // On the days between it was written off, and the account says both.
  const today = '2026-07-05';
  for (const [asOf, open] of Object.entries({ '2026-07-01': '60.00', '2026-07-04': undefined, [today]: '60.00' })) {
    const { documents, ties } = await world.database.reading((tx) => readAging(tx, { asOf, today }));
    expect([asOf, ties, documents[0]?.balance]).toEqual([asOf, true, open]);
  }
  const account = await world.database.reading((tx) =>
    readAccountStatement(tx, { partnerId: 'p-1', from: '2026-06-01', asOf: today, today }),
  );
  expect(account.accounts[0]?.lines.map((line) => `${line.date} ${line.fact} ${line.amount}`)).toEqual([
    '2026-06-02 document_issued 60.00',
    '2026-07-02 written_off -60.00',
    '2026-07-05 write_off_undone 60.00',
  ]);
  await expectVerified(world);
  expect(await refusalOf(undo())).toMatchObject({ code: 'not_written_off' });
  await action.writeOff(INV_1);
  expect((await document(world, INV_1)).status).toBe('paid');
  await expectVerified(world);
});

test('a payment for a written-off invoice says so and how to reopen it, and then pays it', async () => {
  await action.writeOff(INV_1);
  const { paymentId, kept } = await pay('60.00', '2026-07-02');
  expect(kept).toBe(`${INV_1} is written off; undoing the write-off reopens it`);
  const apply = () => world.database.transaction((tx) => applyPayment(tx, world, { paymentId, numbers: [INV_1] }));
  expect(await refusalOf(apply())).toMatchObject({ facts: { reason: expect.stringContaining('it is written off;') } });
  await undo();
  await apply();
  expect(await document(world, INV_1)).toMatchObject({ status: 'paid', amount_paid: '60.00', credited: '0.00' });
  await expectVerified(world);
});

test('an invoice whose write-off was undone can be voided, and one that is written off cannot', async () => {
  await action.writeOff(INV_1);
  expect(await refusalOf(action.voided(INV_1))).toMatchObject({ code: 'document_written_off' });
  await undo();
  await action.voided(INV_1);
  expect((await document(world, INV_1)).status).toBe('void');
  await expectVerified(world);
});
