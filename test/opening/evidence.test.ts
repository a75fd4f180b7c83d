/** What proves an opening: verify, which names what was changed, and packs that both verifiers accept. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openingImport, openingReverse } from '../../src/actions/opening.ts';
import { runAction } from '../../src/actions/run.ts';
import { Amount } from '../../src/money.ts';
import { recordPayment } from '../../src/payments/record.ts';
import { readAging } from '../../src/reports/aging.ts';
import { expectPacksToHold, exported, month } from '../audit/books.ts';
import { failing } from '../audit/failing.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';
import { cash, credit, csvOf, invoice } from './file.ts';

const ITEMS = [
  invoice('R-1', '100.00', { original_amount: '120' }),
  invoice('R-2', '50.00', { partner_id: 'p-2' }),
  credit('C-1', '20.00'),
  cash('Z-1', '5.00', { partner_id: 'p-2' }),
  cash('Z-2', '6.00'),
];

let world: World;
beforeAll(async () => {
  world = await openWorld();
  world.at('2026-07-01T10:00:00Z');
  await world.partners([partner(), partner({ partner_id: 'p-2', name: 'Northwind Travel' })]);
  const file = { name: 'open-items.csv', bytes: Buffer.from(csvOf(ITEMS)) };
  const input = { file, cutOver: '2026-06-30', control: ['USD=119.00'], count: ITEMS.length };
  await runAction(world, openingImport, input, { deliver: false });
  await runAction(world, openingReverse, { numbers: ['R-2', 'Z-1'], reason: 'paid in June' });
  await world.rows([quote({ accepted_at: '2026-07-10T12:00:00Z' })]);
  world.at('2026-08-01T10:00:00Z');
  await world.close('2026-07');
  await world.deliver();
  const wire = { currency: 'USD', method: 'wire', receivedOn: '2026-07-20', reference: 'R-1', number: 'R-1' } as const;
  await world.database.transaction((tx) => recordPayment(tx, world, { ...wire, amount: '60.00' }));
  await world.closeBooks('2026-07');
  await world.rows([quote({ accepted_at: '2026-08-01T08:00:00Z' })]);
  world.at('2026-09-01T10:00:00Z');
  await world.close('2026-08');
});
afterAll(() => world.end());

const named = async (): Promise<string[]> => failing(await world.verify());

test('an opening is verified, and packs of every kind hold before both verifiers', async () => {
  expect(await named()).toEqual([]);
  await expectPacksToHold(world, month('2026-07'), month('2026-08'));
}, 120_000);

describe('verify names a ledger whose owner changed', () => {
  const damages: readonly (readonly [string, string, string])[] = [
    [
      'the amount of an item, and its total with it',
      `UPDATE documents SET invoice_amount = 90, spot_price = 90 WHERE number = 'R-1';
       UPDATE opening_totals SET invoices = 140, control = 109`,
      'log_derived_again',
    ],
    [
      'the amount of an item alone',
      `UPDATE documents SET invoice_amount = 90, spot_price = 90 WHERE number = 'R-1'`,
      'opening_adds_up',
    ],
    ['the amount of cash', `UPDATE payments SET amount = 7 WHERE opening_number = 'Z-2'`, 'opening_adds_up'],
    ['the day of the cut-over', `UPDATE openings SET cut_over_on = '2026-07-31'`, 'opening_items'],
    ['an item for another opening', `UPDATE documents SET opening_id = 7 WHERE number = 'R-1'`, 'opening_items'],
    ['the number of an item', `UPDATE documents SET opening_number = 'R-8' WHERE number = 'R-1'`, 'log_derived_again'],
    ['the totals', `DELETE FROM opening_totals`, 'opening_adds_up'],
  ];
  test.each(damages)('%s', async (_name, damage, check) => {
    const dump = await world.sql<{ json: string }>(SAVED);
    await world.sql(`${GUARDS_OFF} ${damage}; ${GUARDS_ON}`);
    expect(await named()).toContain(check);
    await world.sql(
      `${GUARDS_OFF} ${RESTORE} ${GUARDS_ON}`.replaceAll('$saved', `'${dump[0]?.json.replaceAll("'", "''")}'::jsonb`),
    );
    expect(await named()).toEqual([]);
  });
});

const SAVED = `SELECT json_build_object(
  'documents', (SELECT json_agg(d) FROM documents d WHERE purpose = 'opening'),
  'payments', (SELECT json_agg(p) FROM payments p WHERE source = 'opening'),
  'openings', (SELECT json_agg(o) FROM openings o),
  'totals', (SELECT json_agg(t) FROM opening_totals t))::text AS json`;
const RESTORE = `
  UPDATE documents d SET invoice_amount = s.invoice_amount, spot_price = s.spot_price, opening_id = s.opening_id,
    opening_number = s.opening_number
  FROM jsonb_populate_recordset(NULL::documents, $saved->'documents') AS s WHERE s.document_id = d.document_id;
  UPDATE payments p SET amount = s.amount
  FROM jsonb_populate_recordset(NULL::payments, $saved->'payments') AS s WHERE s.payment_id = p.payment_id;
  UPDATE openings o SET cut_over_on = s.cut_over_on
  FROM jsonb_populate_recordset(NULL::openings, $saved->'openings') AS s WHERE s.opening_id = o.opening_id;
  DELETE FROM opening_totals;
  ALTER TABLE opening_totals DISABLE TRIGGER fact_number;
  INSERT INTO opening_totals SELECT * FROM jsonb_populate_recordset(NULL::opening_totals, $saved->'totals');
  ALTER TABLE opening_totals ENABLE ALWAYS TRIGGER fact_number;`;

describe('a pack of invoices', () => {
  const pack = (format: 'csv' | 'jsonl') =>
    exported(world, { kind: 'invoices', format, from: month('2026-07'), to: month('2026-08') });

  test('lists what was carried over and what is still open of it, so that with the invoices all that is owed adds up', async () => {
    const folder = await pack('csv');
    const read = (name: string) =>
      parse(readFileSync(join(folder, name)), { columns: true }) as Record<string, string>[];
    const items = read('openings.csv');
    expect(
      items.map(({ kind, number, partner_id, date, due_on, original_amount, amount, status, balance }) => [
        ...[kind, number, partner_id, date, due_on, original_amount, amount, status, balance],
      ]),
    ).toEqual([
      ['invoice', 'R-1', 'p-1', '2026-05-31', '2026-06-30', '120.00', '100.00', 'open', '40.00'],
      ['invoice', 'R-2', 'p-2', '2026-05-31', '2026-06-30', '50.00', '50.00', 'reversed', '0.00'],
      ['credit', 'C-1', 'p-1', '2026-05-31', '', '20.00', '20.00', 'open', '13.00'],
      ['cash', 'Z-1', 'p-2', '2026-05-31', '', '5.00', '5.00', 'reversed', '0.00'],
      ['cash', 'Z-2', 'p-1', '2026-05-31', '', '6.00', '6.00', 'open', '6.00'],
    ]);
    const owed = [...read('invoices.csv').filter((each) => each['document'] === 'invoice'), ...items]
      .filter(({ kind }) => kind === undefined || kind === 'invoice')
      .reduce((sum, { balance = '' }) => sum.plus(Amount.of(balance, 'USD')), Amount.zero('USD'));
    const { totals } = await world.database.reading((tx) => readAging(tx, { asOf: '2026-09-01', today: '2026-09-01' }));
    expect(totals.map(({ currency, open }) => [currency, open])).toEqual([['USD', owed.toString()]]);
    const lines = readFileSync(join(await pack('jsonl'), 'openings.jsonl'), 'utf8')
      .trimEnd()
      .split('\n');
    expect(lines.map((line) => JSON.parse(line)).map(({ number, balance }) => [number, balance])).toEqual(
      items.map(({ number, balance }) => [number, balance]),
    );
  });
});

test('an item with a date in a month that is billed here is in the openings, and in no invoices of that month', async () => {
  const late = await openWorld();
  try {
    await late.partners([partner()]);
    await late.rows([quote()]);
    const items = [invoice('R-9', '30.00', { date: '2026-07-20', due_on: '2026-08-20' }), invoice('R-8', '1.00')];
    const file = { name: 'open-items.csv', bytes: Buffer.from(csvOf(items)) };
    const input = { file, cutOver: '2026-07-31', control: ['USD=31.00'], count: 2 };
    await runAction(late, openingImport, input, { deliver: false });
    await runAction(late, openingReverse, { numbers: ['R-9'], reason: 'paid in July' });
    await late.close('2026-07');
    const folder = await exported(late, { kind: 'invoices', from: month('2026-07'), to: month('2026-07') });
    const numbersIn = (name: string) =>
      (parse(readFileSync(join(folder, name)), { columns: true }) as Record<string, string>[]).map(
        ({ number }) => number,
      );
    expect(numbersIn('invoices.csv')).toEqual(['INV-2026-000001']);
    expect(numbersIn('voids.csv')).toEqual([]);
    expect(numbersIn('openings.csv')).toEqual(['R-9', 'R-8']);
    await expectPacksToHold(late, month('2026-07'), month('2026-07'));
  } finally {
    await late.end();
  }
}, 120_000);
