/** The largest price of a policy: no quote comes above it by a row of a file, whatever is recorded beside it. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';
import { RECORDED_NOTHING, size, told } from './ledger.ts';

const limited = (largest_price: string | null) =>
  partner({
    policies: [
      {
        ...{
          policy_id: 'ticket-protection',
          name: 'Ticket Protection',
          kind: 'non_insurance',
          partner_cut_rate: '0.30',
        },
        largest_price,
      },
    ],
  });
const of = (spotPrice: string) => ({ spotPrice, partnerCut: '0', invoiceAmount: spotPrice });

let world: World;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([limited('100.00')]);
});
afterAll(() => world.end());

test('the largest price itself is recorded; a cent more is a bad row, and the report says what to do', async () => {
  expect(await world.rows([quote(of('100'))])).toMatchObject({ accepted: 1, rejected: 0 });
  const dear = quote(of('100.01'));
  const before = await size(world);
  const report = await world.rows([quote(of('99')), dear]);
  expect(report).toMatchObject({ ...RECORDED_NOTHING, rejected: 1 });
  expect(report.errors).toMatchObject([
    {
      ...{ line: 2, field: 'spotPrice', code: 'policy_price_exceeded' },
      reason:
        `${dear['quote_id']} takes its quote to 100.01 USD, above 100.00 USD, the largest price of policy ` +
        "ticket-protection. Correct the row, or raise largest_price in the partner's file and import that first",
    },
  ]);
  expect(await size(world)).toBe(before);
});

test('requotes count with their quote, in the ledger and in the file', async () => {
  const recorded = quote(of('60'));
  await world.rows([recorded]);
  expect(told(await world.rows([requote(recorded, of('40.01'))]))).toEqual(['1 spotPrice policy_price_exceeded']);
  const row = quote(of('60'));
  const rows = [requote(row, of('30')), row, requote(row, of('20'))];
  expect(told(await world.rows(rows))).toEqual(['3 spotPrice policy_price_exceeded']);
  expect(await world.rows([requote(recorded, of('40'))])).toMatchObject({ accepted: 1, rejected: 0 });
});

test('a wrong split is corrected by a reversal and a requote in one file', async () => {
  const row = quote(of('100'));
  await world.rows([row]);
  const rows = [requote(row, { spotPrice: '100', partnerCut: '30', invoiceAmount: '70' }), reversal(row, of('-100'))];
  expect(
    await world.rows(rows.map((each) => ({ ...each, ...(each['kind'] === 'reversal' && { partnerCut: '0' }) }))),
  ).toMatchObject({
    accepted: 2,
    rejected: 0,
  });
});

test('with bad rows left out, a reversal that may be one of them makes no room', async () => {
  const row = quote(of('100'));
  await world.rows([row]);
  const file = world.file(
    'rows.ndjson',
    [reversal(row, of('-200')), requote(row, of('50'))].map((each) => `${JSON.stringify(each)}\n`).join(''),
  );
  const report = await world.importFiles([file], { skipInvalid: true });
  expect(report).toMatchObject({ accepted: 0, rejected: 2 });
});

test('a row that was left out as too dear makes none after it too dear', async () => {
  const row = quote(of('60'));
  const rows = [row, requote(row, of('50')), requote(row, of('30'))];
  const file = world.file('skip.ndjson', rows.map((each) => `${JSON.stringify(each)}\n`).join(''));
  const report = await world.importFiles([file], { skipInvalid: true });
  expect(report).toMatchObject({ accepted: 2, rejected: 1 });
});

test('a row in another currency than the limit is refused, because it cannot be compared', async () => {
  expect(told(await world.rows([quote({ ...of('1'), currency: 'JPY' })]))).toEqual([
    '1 currency policy_price_exceeded',
  ]);
  const row = quote(of('60.01'));
  await world.rows([row]);
  expect(told(await world.rows([{ ...requote(row, of('1')), currency: 'JPY' }]))).toEqual([
    '1 currency policy_price_exceeded',
  ]);
});

test('a lower limit leaves what is recorded: it stays a duplicate, and can be reversed', async () => {
  const row = quote(of('90'));
  await world.rows([row]);
  await world.partners([limited('50')]);
  expect(await world.rows([row, reversal(row, of('-90'))])).toMatchObject({ accepted: 1, duplicates: 1, rejected: 0 });
  await world.partners([limited(null)]);
  expect(await world.rows([quote(of('5000'))])).toMatchObject({ accepted: 1 });
});
