/** Numbers: one series for each kind and year, without a gap, whatever happened in between; and never back in time. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { openWorld, partner, quote, reversal, type World } from '../support/world.ts';
import { refusalOf } from './refusal.ts';
import { startOver } from './start-over.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());
beforeEach(() => startOver(world));

const numbers = async () => (await world.documents()).map(({ number }) => number);

test('numbers are given in bytewise order of the partner: capitals before small letters, B-10 before B-9', async () => {
  const partners = ['a-1', 'B-9', 'B-10', 'Z', 'a.1', 'a_1', '0'];
  await world.partners(partners.map((partner_id) => partner({ partner_id })));
  await world.rows(partners.map((partner_id) => quote({ partner_id })));
  await world.close();
  expect((await world.documents()).map(({ sequence, partner_id }) => [sequence, partner_id])).toEqual([
    [1, '0'],
    [2, 'B-10'],
    [3, 'B-9'],
    [4, 'Z'],
    [5, 'a-1'],
    [6, 'a.1'],
    [7, 'a_1'],
  ]);
});

test('invoices, credit notes and statements count each for themselves', async () => {
  const connected = { connected_account_id: 'acct_1', merchant_of_record: 'platform', split: 'sequential' };
  await world.partners([
    ...['p-1', 'p-2', 'p-3', 'p-4'].map((partner_id) => partner({ partner_id })),
    ...['s-1', 's-2'].map((partner_id) => partner({ partner_id, arrangement: 'connected_account', ...connected })),
  ]);
  const sold = ['p-2', 'p-4'].map((partner_id) => quote({ partner_id, accepted_at: '2026-06-10T00:00:00Z' }));
  await world.rows(sold);
  await world.close('2026-06');
  await world.rows([
    ...['p-1', 'p-3', 's-1', 's-2'].map((partner_id) => quote({ partner_id })),
    ...sold.map((each) => reversal(each, { accepted_at: '2026-07-10T00:00:00Z' })),
  ]);
  await world.close('2026-07');
  expect((await world.documents()).map(({ number, partner_id, month }) => `${number} ${partner_id} ${month}`)).toEqual([
    'CN-2026-000001 p-2 2026-07',
    'CN-2026-000002 p-4 2026-07',
    'INV-2026-000001 p-2 2026-06',
    'INV-2026-000002 p-4 2026-06',
    'INV-2026-000003 p-1 2026-07',
    'INV-2026-000004 p-3 2026-07',
    'ST-2026-000001 s-1 2026-07',
    'ST-2026-000002 s-2 2026-07',
  ]);
});

test('a December that closes in January begins the series of the new year', async () => {
  await world.partners([partner()]);
  await world.rows([quote({ accepted_at: '2026-07-10T12:00:00Z' })]);
  await world.close('2026-07');
  world.at('2027-01-01T12:00:00Z');
  await world.rows([
    quote({ accepted_at: '2026-11-10T12:00:00Z' }),
    quote({ accepted_at: '2026-12-31T23:59:59-05:00' }),
  ]);
  await world.close();
  expect((await world.documents()).map(({ number, month, issued_on }) => [number, month, issued_on])).toEqual([
    ['INV-2026-000001', '2026-07', '2026-08-01'],
    ['INV-2027-000001', '2026-11', '2027-01-01'],
    ['INV-2027-000002', '2026-12', '2027-01-01'],
  ]);
});

test('the year of the series is that of the issuer’s zone: when all partners are ahead of it, December closes in December', async () => {
  await world.partners([partner({ time_zone: 'Pacific/Auckland' })]);
  world.at('2026-12-31T12:00:00Z');
  await world.rows([quote({ accepted_at: '2026-12-10T12:00:00Z' })]);
  await world.close();
  expect(await world.documents()).toMatchObject([{ number: 'INV-2026-000001', issued_on: '2026-12-31' }]);
});

test('a close that fails half-way leaves no gap and no trace', async () => {
  await world.partners(['p-1', 'p-2', 'p-3'].map((partner_id) => partner({ partner_id })));
  await world.rows(['p-1', 'p-2', 'p-3'].map((partner_id) => quote({ partner_id })));
  await world.sql(`
    CREATE FUNCTION disk_full() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF NEW.number LIKE 'INV-%3' THEN RAISE EXCEPTION 'no space left on device'; END IF;
      RETURN NEW;
    END $$`);
  // The number of a document is generated after BEFORE triggers, so the third document fails after it is in.
  await world.sql(`CREATE TRIGGER disk_full AFTER INSERT ON documents FOR EACH ROW EXECUTE FUNCTION disk_full()`);
  try {
    await expect(world.close()).rejects.toThrow('no space left on device');
  } finally {
    await world.sql(`DROP TRIGGER disk_full ON documents`);
    await world.sql(`DROP FUNCTION disk_full`);
  }
  expect(await world.documents()).toEqual([]);
  expect(await world.months('2026-07')).toEqual([]);
  expect(await world.sql(`SELECT FROM document_emails`)).toEqual([]);
  expect(await world.sql(`SELECT FROM link_checks`)).toEqual([]);
  expect(await world.close()).toEqual(['2026-07']);
  expect(await numbers()).toEqual(['INV-2026-000001', 'INV-2026-000002', 'INV-2026-000003']);
});

test('a failure in the last statement of a later month keeps the months before it closed', async () => {
  await world.partners([partner()]);
  await world.rows([quote({ accepted_at: '2026-06-10T12:00:00Z' }), quote()]);
  await world.sql(`ALTER TABLE emails ADD CONSTRAINT only_one_email CHECK (message_id LIKE '<INV-2026-000001.%')`);
  try {
    await expect(world.close()).rejects.toThrow('only_one_email');
  } finally {
    await world.sql(`ALTER TABLE emails DROP CONSTRAINT only_one_email`);
  }
  expect(await numbers()).toEqual(['INV-2026-000001']);
  expect(await world.close()).toEqual(['2026-07']);
  expect(await numbers()).toEqual(['INV-2026-000001', 'INV-2026-000002']);
});

test('after the millionth document the number grows a digit, and the order stays that of the sequence', async () => {
  await world.partners(['p-1', 'p-2'].map((partner_id) => partner({ partner_id })));
  await world.rows([quote({ accepted_at: '2026-06-10T12:00:00Z' })]);
  await world.close('2026-06');
  await world.sql(GUARDS_OFF);
  await world.sql(`UPDATE documents SET sequence = 999999`);
  await world.sql(GUARDS_ON);
  await world.rows([quote(), quote({ partner_id: 'p-2' })]);
  await world.close('2026-07');
  expect(await numbers()).toEqual(['INV-2026-999999', 'INV-2026-1000000', 'INV-2026-1000001']);
});

test('a clock behind the latest document is refused, in a preview too; the same day is allowed', async () => {
  await world.partners([partner()]);
  world.at('2026-08-05T12:00:00Z');
  await world.rows([quote({ accepted_at: '2026-06-10T12:00:00Z' }), quote()]);
  await world.close('2026-06');
  world.at('2026-08-05T03:59:00Z');
  const refusal = {
    code: 'clock_behind',
    facts: { today: '2026-08-04', latest: '2026-08-05', number: 'INV-2026-000001', action: 'issued' },
  };
  expect(await refusalOf(world.close('2026-07'))).toEqual(refusal);
  expect(await refusalOf(world.preview('2026-07'))).toEqual(refusal);
  expect(await numbers()).toEqual(['INV-2026-000001']);
  world.at('2026-08-05T04:00:00Z');
  expect(await world.close('2026-07')).toEqual(['2026-07']);
});
