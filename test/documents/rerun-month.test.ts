/** Running a whole month again: what differs is replaced, what is void is issued, and the rest is counted. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { readCoverage } from '../../src/reports/coverage.ts';
import { refusalOf } from '../close/refusal.ts';
import { startOver } from '../close/start-over.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';
import {
  type Corrections,
  correctionsOf,
  creditInUse,
  document,
  expectVerified,
  refund,
  sale,
  standing,
} from './correcting.ts';

let world: World;
let action: Corrections;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());
beforeEach(async () => {
  await startOver(world);
  action = correctionsOf(world);
});

const P = ['p-1', 'p-2', 'p-3', 'p-4', 'p-5'];
const july = async () => {
  await world.partners(P.map((partner_id) => partner({ partner_id })));
  await world.rows(P.map((partner_id) => quote({ partner_id })));
  await world.close();
};
const rename = (...ids: string[]) => world.partners(ids.map((partner_id) => partner({ partner_id, name: 'New' })));
const invoice = (sequence: number) => `INV-2026-${String(sequence).padStart(6, '0')}`;

test('if nothing differs, all documents count as unchanged and nothing is written', async () => {
  await july();
  const before = await world.documents();
  expect(await action.rerunMonth('2026-07')).toEqual({
    month: '2026-07',
    unchanged: 5,
    replaced: [],
    issued: [],
    refused: [],
  });
  expect(await world.documents()).toEqual(before);
});

test('differing documents are replaced, void ones issued again, those that may not be replaced listed, the rest unchanged', async () => {
  await july();
  await action.voided(invoice(2));
  await action.writeOff(invoice(3));
  await action.hold(invoice(4), 'disputed');
  await rename('p-1', 'p-3', 'p-4');
  world.at('2026-08-09T10:00:00Z');
  expect(await action.rerunMonth('2026-07')).toEqual({
    month: '2026-07',
    unchanged: 1,
    replaced: [{ number: invoice(1), replaced_by: invoice(6), why: ["the partner's name"] }],
    issued: [{ number: invoice(7), replaces: invoice(2) }],
    refused: [
      {
        number: invoice(3),
        code: 'document_written_off',
        message: expect.stringContaining('7.00 USD'),
        remedies: [{ label: 'Undo that first', action: 'invoice.write_off_undone', input: { number: invoice(3) } }],
      },
      {
        ...{ number: invoice(4), code: 'document_on_hold', message: expect.stringContaining('disputed') },
        remedies: [{ label: 'Release it', action: 'invoice.release', input: { number: invoice(4) } }],
      },
    ],
  });
  expect(await document(world, invoice(7))).toMatchObject({
    replaces: invoice(2),
    issued_on: '2026-08-09',
    due_on: '2026-08-31',
  });
  expect(await world.database.reading((tx) => readCoverage(tx, { asOf: undefined }))).toMatchObject({ gaps: 0 });
  await expectVerified(world);
  expect(await action.rerunMonth('2026-07')).toMatchObject({
    unchanged: 3,
    replaced: [],
    issued: [],
    refused: [{}, {}],
  });
});

test('without --changed only what is missing is issued, and what differs is listed with why it could not be replaced', async () => {
  await july();
  await action.voided(invoice(2));
  await action.hold(invoice(4), 'disputed');
  await rename('p-1', 'p-4');
  expect(await action.rerunMonth('2026-07', { changed: false })).toEqual({
    month: '2026-07',
    unchanged: 2,
    replaced: [],
    issued: [{ number: invoice(6), replaces: invoice(2) }],
    differing: [
      { number: invoice(1), why: ["the partner's name"], refused: null, remedies: [] },
      {
        ...{ number: invoice(4), why: ["the partner's name"], refused: expect.stringContaining('disputed') },
        remedies: [{ label: 'Release it', action: 'invoice.release', input: { number: invoice(4) } }],
      },
    ],
    refused: [],
  });
  expect(Object.values(await standing(world)).filter((each) => each.endsWith('void'))).toHaveLength(1);
  await expectVerified(world);
});

test('for one partner, the documents of others are neither issued nor compared', async () => {
  await july();
  await action.voided(invoice(2));
  await action.voided(invoice(3));
  await rename(...P);
  expect(await action.rerunMonth('2026-07', { partnerId: 'p-3' })).toEqual({
    month: '2026-07',
    unchanged: 0,
    replaced: [],
    issued: [{ number: invoice(6), replaces: invoice(3) }],
    refused: [],
  });
  expect((await action.rerunMonth('2026-07', { partnerId: 'p-5' })).replaced).toHaveLength(1);
  expect(await refusalOf(action.rerunMonth('2026-07', { partnerId: 'p-9' }))).toMatchObject({
    code: 'partner_unknown',
  });
  await expectVerified(world);
});

test('replacements are numbered by partner (bytewise), then currency, without gaps, whatever was voided first', async () => {
  const ids = ['B', 'a', 'a-1', 'Z'];
  await world.partners(ids.map((partner_id) => partner({ partner_id })));
  await world.rows([
    ...ids.map((partner_id) => quote({ partner_id })),
    sale('2026-07', '100', { partner_id: 'a', currency: 'JPY' }),
    sale('2026-07', '100', { partner_id: 'a', currency: 'EUR' }),
  ]);
  await world.close();
  await action.voided(invoice(6));
  await action.voided(invoice(2));
  await world.partners(ids.map((partner_id) => partner({ partner_id, name: 'New' })));
  await action.rerunMonth('2026-07');
  const live = (await world.documents()).filter(({ status }) => status !== 'void');
  expect(live.map((each) => [each.sequence, each.partner_id, each.currency])).toEqual([
    [7, 'B', 'USD'],
    [8, 'Z', 'USD'],
    [9, 'a', 'EUR'],
    [10, 'a', 'JPY'],
    [11, 'a', 'USD'],
    [12, 'a-1', 'USD'],
  ]);
  await expectVerified(world);
});

test('invoices, credit notes and statements are replaced in their own series, and credit moves to the replacement', async () => {
  const connected = { connected_account_id: 'acct_1', merchant_of_record: 'third_party', split: 'sequential' };
  const p3 = { partner_id: 'p-3', arrangement: 'connected_account', ...connected };
  await world.partners([partner(), partner({ partner_id: 'p-2' }), partner(p3)]);
  const sold = [sale('2026-06', '30'), sale('2026-06', '50', { partner_id: 'p-2' })];
  await world.rows(sold);
  await world.close('2026-06');
  await world.rows([
    refund(sold[0] ?? {}, '2026-07'),
    sale('2026-07', '5', { partner_id: 'p-2' }),
    quote({ partner_id: 'p-3' }),
  ]);
  await world.close('2026-07');
  await action.credit(invoice(3), '2');
  await world.partners([
    partner({ name: 'A' }),
    partner({ partner_id: 'p-2', name: 'B' }),
    partner({ ...p3, name: 'C' }),
  ]);
  const { replaced } = await action.rerunMonth('2026-07');
  expect(replaced.map((each) => [each.number, each.replaced_by])).toEqual([
    ['CN-2026-000001', 'CN-2026-000003'],
    [invoice(3), invoice(4)],
    ['ST-2026-000001', 'ST-2026-000002'],
  ]);
  expect(await standing(world)).toMatchObject({
    'CN-2026-000002': '2.00 - 0.00 - 2.00 = 0.00 paid',
    'CN-2026-000003': '30.00 - 0.00 - 0.00 = 30.00 open',
    [invoice(4)]: '5.00 - 2.00 - 0.00 = 3.00 open',
  });
  await expectVerified(world);
});

test('a void credit note is issued again, and is open credit again', async () => {
  await world.partners([partner()]);
  const sold = sale('2026-06', '30');
  await world.rows([sold]);
  await world.close('2026-06');
  await world.rows([refund(sold, '2026-07')]);
  await world.close('2026-07');
  await action.voided('CN-2026-000001');
  world.at('2026-09-01T10:00:00Z');
  await world.rows([sale('2026-08', '10')]);
  await world.close();
  expect(await creditInUse(world)).toEqual([]);
  expect((await action.rerunMonth('2026-07')).issued).toEqual([
    { number: 'CN-2026-000002', replaces: 'CN-2026-000001' },
  ]);
  world.at('2026-10-01T10:00:00Z');
  await world.rows([sale('2026-09', '10')]);
  await world.close();
  expect(await creditInUse(world)).toEqual(['10 of CN-2026-000002 for INV-2026-000003']);
  await expectVerified(world);
});

test('with new terms, those whose terms changed are replaced, and all that are issued are due by them', async () => {
  await july();
  await action.voided(invoice(1));
  await world.partners([partner({ partner_id: 'p-2', payment_terms_days: 10 })]);
  world.at('2026-10-01T10:00:00Z');
  expect(await action.rerunMonth('2026-07', { newTerms: true })).toMatchObject({
    unchanged: 3,
    replaced: [{ number: invoice(2), why: ['the payment terms'] }],
    issued: [{ replaces: invoice(1) }],
  });
  expect((await document(world, invoice(6))).due_on).toBe('2026-10-31');
  expect((await document(world, invoice(7))).due_on).toBe('2026-10-11');
  await expectVerified(world);
});

test('other months do not change, nor does a late row that waits for its month', async () => {
  await world.partners([partner()]);
  await world.rows([quote({ accepted_at: '2026-06-10T12:00:00Z' }), quote()]);
  await world.close();
  await world.rows([quote()]);
  await rename('p-1');
  expect(await action.rerunMonth('2026-07')).toMatchObject({ replaced: [{ number: invoice(2) }] });
  expect(await document(world, invoice(1))).toMatchObject({ month: '2026-06', status: 'open' });
  expect(await document(world, invoice(3))).toMatchObject({ enrollments: 1 });
  await expectVerified(world);
});

test('a month without rows has nothing to rerun, and an open month is refused', async () => {
  await july();
  world.at('2026-09-01T10:00:00Z');
  await world.close();
  expect(await action.rerunMonth('2026-08')).toMatchObject({ unchanged: 0, replaced: [], issued: [] });
  expect(await refusalOf(action.rerunMonth('2026-09'))).toMatchObject({ code: 'month_not_closed' });
  expect(await refusalOf(action.rerunMonth('2026-05'))).toMatchObject({ code: 'month_not_closed' });
});

test('the totals of the close never change: they sum ledger rows, however often documents are replaced', async () => {
  await july();
  const [before] = await world.months('2026-07');
  await rename(...P);
  await action.rerunMonth('2026-07');
  await action.voided(invoice(6));
  const [after] = await world.months('2026-07');
  expect({ ...after, deliveries: undefined }).toEqual({ ...before, deliveries: undefined });
});
