/** The entries of a month, one by one: the documents that they name, and entries whose sum is zero. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { rerunMonth } from '../../src/documents/rerun.ts';
import { voidDocument } from '../../src/documents/void.ts';
import { entries } from '../../src/lists/entries.ts';
import type { Month } from '../../src/month.ts';
import { openWorld, partner, quote, reversal, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  world.at('2026-08-01T10:00:00Z');
  await world.partners([partner(), partner({ partner_id: 'p-2', name: 'Nord' })]);
  const taken = quote({ partner_id: 'p-2' });
  await world.rows([quote(), taken, reversal(taken)]);
  await world.close('2026-07');
});
afterAll(() => world.end());

const read = async (month: string) => {
  const asked = { filter: { month }, scope: null, period: null, today: '2026-08-31', sort: 'entry_on' };
  const found = await world.database.reading((tx) =>
    entries.read(tx, { ...asked, after: null, limit: null, context: world } as never),
  );
  return found.map(({ entry, document, account, amount }) => ({
    of: entry.replace(/:\d+$/, ''),
    ...{ document, account, amount: Number(amount) },
  }));
};
const documentsOf = async (month: string, of: string) =>
  [...new Set((await read(month)).filter((each) => each.of.startsWith(of)).map(({ document }) => document))].sort();

test('a sale and its reversal of the same month are shown, although they add up to zero', async () => {
  const nord = (await read('2026-07')).filter(({ of }) => of === 'sales:p-2:ticket-protection:USD');
  expect(nord.map(({ account, amount }) => [account, amount])).toEqual([
    ['assets:receivable:unbilled:p-2', 0],
    ['income:sales:ticket-protection', 0],
  ]);
});

test('each entry names the document of its own fact, also after a void and a rerun', async () => {
  const own = async () => (await world.documents({ partnerId: 'p-1' })).map(({ number }) => number);
  const [old = ''] = await own();
  expect(await documentsOf('2026-07', 'sales:p-1')).toEqual([old]);
  await world.database.transaction((tx) => voidDocument(tx, world, { number: old, reason: 'wrong name' }));
  expect(await documentsOf('2026-07', 'sales:p-1')).toEqual([null]);
  await world.database.transaction((tx) =>
    rerunMonth(tx, world, '2026-07' as Month, { newTerms: false, changed: true }),
  );
  const [replaced] = (await own()).filter((number) => number !== old);
  expect(await documentsOf('2026-07', 'sales:p-1')).toEqual([replaced]);
  expect(await documentsOf('2026-08', 'document_voided')).toEqual([old]);
  expect(await documentsOf('2026-08', 'document_issued')).toEqual(expect.arrayContaining([old, replaced]));
});

test('the entries of closed books stay as they were when a document is replaced later', async () => {
  world.at('2026-09-01T10:00:00Z');
  await world.rows([quote({ accepted_at: '2026-08-15T12:00:00Z' })]);
  await world.close('2026-08');
  await world.closeBooks('2026-07', '2026-08');
  const [july, august] = [await read('2026-07'), await read('2026-08')];
  const own = async () =>
    (await world.documents({ months: ['2026-07' as Month, '2026-08' as Month], partnerId: 'p-1' }))
      .filter(({ status }) => status === 'open')
      .map(({ number }) => number);
  const before = await own();
  expect(before.length).toBe(2);
  for (const number of before) {
    await world.database.transaction((tx) => voidDocument(tx, world, { number, reason: 'wrong name' }));
  }
  expect([await read('2026-07'), await read('2026-08')]).toEqual([july, august]);
  for (const month of ['2026-07', '2026-08'] as Month[]) {
    await world.database.transaction((tx) => rerunMonth(tx, world, month, { newTerms: false, changed: true }));
  }
  expect([await read('2026-07'), await read('2026-08')]).toEqual([july, august]);
  expect((await own()).filter((number) => before.includes(number))).toEqual([]);
  expect(before).toEqual([
    ...(await documentsOf('2026-07', 'sales:p-1')),
    ...(await documentsOf('2026-08', 'sales:p-1')),
  ]);
});
