/** Where the quote of a requote or reversal may stand, and how much of it may be taken back. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import fc from '../support/property.ts';
import { openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';
import { csv, ledger, ndjson, RECORDED_NOTHING, type Row, size, told } from './ledger.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner(), partner({ partner_id: 'p-2' })]);
});
afterAll(() => world.end());

const amounts = (spotPrice: string, partnerCut: string, invoiceAmount: string) => ({
  spotPrice,
  partnerCut,
  invoiceAmount,
});
const back = (of: Row, spotPrice: string, partnerCut: string, invoiceAmount: string) =>
  reversal(of, amounts(spotPrice, partnerCut, invoiceAmount));
/** What is left of a quote: its three amounts over all its rows. */
async function left(of: Row): Promise<number[]> {
  const [sums] = await world.sql<{ amounts: string[] }>(
    `SELECT ARRAY[sum(spot_price), sum(partner_cut), sum(invoice_amount)] AS amounts FROM ledger_rows WHERE quote_id = $1`,
    [of['quote_id']],
  );
  return (sums?.amounts ?? []).map(Number);
}

describe('the quote of a requote or reversal may stand', () => {
  test('in the ledger', async () => {
    const row = quote();
    await world.rows([row]);
    expect(await world.rows([requote(row), reversal(row)])).toMatchObject({ accepted: 2, rejected: 0 });
  });

  test('earlier in the file', async () => {
    const row = quote();
    expect(await world.rows([row, requote(row), reversal(row)])).toMatchObject({ accepted: 3, rejected: 0 });
  });

  test('later in the file', async () => {
    const row = quote();
    const more = requote(row);
    const undone = reversal(row, { requote_id: more['requote_id'], ...amounts('-15', '-4.50', '-10.50') });
    expect(await world.rows([undone, more, row])).toMatchObject({ accepted: 3, rejected: 0 });
    expect(await left(row)).toEqual([0, 0, 0]);
  });

  test('in the other file of the same import, before or behind', async () => {
    const row = quote();
    const files = [world.file('reversals.ndjson', ndjson(reversal(row))), world.file('quotes.csv', csv(row))];
    expect(await world.importFiles(files)).toMatchObject({ accepted: 2, rejected: 0 });
  });

  test('nowhere else: not in an import to come', async () => {
    const row = quote();
    const report = await world.rows([requote(row), reversal(row)]);
    expect(report).toMatchObject({ ...RECORDED_NOTHING, rejected: 2 });
    expect(told(report)).toEqual(['1 quote_id quote_unknown', '2 quote_id quote_unknown']);
  });

  test('not with another partner, even one whose quote has the same id', async () => {
    const row = quote({ partner_id: 'p-2' });
    await world.rows([row]);
    expect(told(await world.rows([reversal(row, { partner_id: 'p-1' })]))).toEqual(['1 quote_id quote_unknown']);
  });
});

describe('a requote or reversal is refused', () => {
  test('under another policy or currency than its quote in the same import', async () => {
    const row = quote();
    const report = await world.rows([row, requote(row, { policy_id: 'parking' }), reversal(row, { currency: 'EUR' })]);
    expect(told(report)).toEqual(['2 policy_id quote_mismatch', '3 currency quote_mismatch']);
    expect(report.errors.map(({ reason }) => reason)).toEqual([
      `is parking where quote ${row['quote_id']} has ticket-protection`,
      `is EUR where quote ${row['quote_id']} has USD`,
    ]);
  });

  test('when it names a requote of another quote', async () => {
    const [one, other] = [quote(), quote()];
    const more = requote(other);
    const report = await world.rows([one, other, more, reversal(one, { requote_id: more['requote_id'] })]);
    expect(told(report)).toEqual(['4 requote_id requote_unknown']);
  });

  test('and one that names a requote of the ledger is recorded', async () => {
    const row = quote();
    const more = requote(row);
    await world.rows([row, more]);
    const undone = reversal(row, { requote_id: more['requote_id'], ...amounts('-5', '-1.5', '-3.5') });
    expect(await world.rows([undone])).toMatchObject({ accepted: 1 });
    expect(await left(row)).toEqual([10, 3, 7]);
  });

  test('but not once more for the fault of the quote that it names', async () => {
    const row = quote({ spotPrice: '10.005' });
    const more = requote(row);
    const report = await world.rows([row, more, reversal(row, { requote_id: more['requote_id'] })]);
    expect(told(report)).toEqual(['1 spotPrice amount_too_precise']);
  });
});

describe('reversals together never take an amount of their quote below zero', () => {
  test('over the ledger and the import: to zero and not a cent further', async () => {
    const row = quote();
    await world.rows([row, back(row, '-4.00', '-1.00', '-3.00')]);
    const before = await size(world);
    expect(told(await world.rows([back(row, '-6.01', '-2.00', '-4.01')]))).toEqual(['1 quote_id quote_exceeded']);
    expect(await size(world)).toBe(before);
    expect(await world.rows([back(row, '-6.00', '-2.00', '-4.00')])).toMatchObject({ accepted: 1 });
    expect(await left(row)).toEqual([0, 0, 0]);
    expect(told(await world.rows([back(row, '-0.01', '0', '-0.01')]))).toEqual(['1 quote_id quote_exceeded']);
  });

  test('each of the three amounts by itself', async () => {
    const row = quote();
    await world.rows([row]);
    // The total would fit; the cut or the share would not.
    expect(told(await world.rows([back(row, '-5.00', '-3.01', '-1.99')]))).toEqual(['1 quote_id quote_exceeded']);
    expect(told(await world.rows([back(row, '-7.01', '0', '-7.01')]))).toEqual(['1 quote_id quote_exceeded']);
    expect(await world.rows([back(row, '-7.00', '0', '-7.00')])).toMatchObject({ accepted: 1 });
  });

  test('requotes counted, wherever in the import they stand', async () => {
    const row = quote();
    const report = await world.rows([back(row, '-15.00', '-4.50', '-10.50'), row, requote(row)]);
    expect(report).toMatchObject({ accepted: 3, rejected: 0 });
  });

  test('which reports the reversals that are too many and not the one that fits', async () => {
    const row = quote();
    const half = () => back(row, '-6.00', '-2.00', '-4.00');
    const report = await world.rows([half(), row, half(), back(row, '-4.00', '-1.00', '-3.00')]);
    expect(report).toMatchObject({ ...RECORDED_NOTHING, rejected: 1 });
    expect(told(report)).toEqual(['3 quote_id quote_exceeded']);
  });

  test('after which a requote may correct a wrong split', async () => {
    const row = quote();
    await world.rows([row]);
    const corrected = requote(row, amounts('10.00', '2.00', '8.00'));
    expect(await world.rows([reversal(row), corrected])).toMatchObject({ accepted: 2 });
    expect(await left(row)).toEqual([10, 2, 8]);
  });

  test('in currencies of no, three and four minor digits', async () => {
    const cases = [
      { currency: 'JPY', price: amounts('1000', '300', '700'), over: amounts('-1001', '-300', '-701') },
      { currency: 'KWD', price: amounts('1.001', '0.300', '0.701'), over: amounts('-1.002', '-0.300', '-0.702') },
      { currency: 'CLF', price: amounts('0.0003', '0.0001', '0.0002'), over: amounts('-0.0004', '-0.0001', '-0.0003') },
    ];
    for (const { currency, price, over } of cases) {
      const row = quote({ currency, ...price });
      await world.rows([row]);
      expect(told(await world.rows([reversal(row, over)]))).toEqual(['1 quote_id quote_exceeded']);
      const { spotPrice, partnerCut, invoiceAmount } = price;
      expect(await world.rows([back(row, `-${spotPrice}`, `-${partnerCut}`, `-${invoiceAmount}`)])).toMatchObject({
        accepted: 1,
      });
    }
  });

  test('at the largest amounts there are, to the cent', async () => {
    const row = quote(amounts('999999999999999.99', '0.01', '999999999999999.98'));
    await world.rows([row]);
    expect(told(await world.rows([back(row, '-999999999999999.99', '0', '-999999999999999.99')]))).toEqual([
      '1 quote_id quote_exceeded',
    ]);
    const all = back(row, '-999999999999999.99', '-0.01', '-999999999999999.98');
    expect(await world.rows([all])).toMatchObject({ accepted: 1 });
  });
});

describe('amounts in the ledger are those of the file', () => {
  const stored: readonly [currency: string, written: unknown, kept: string][] = [
    ['USD', 0.1, '0.1'],
    ['USD', 0.3, '0.3'],
    ['USD', 9999999999999.99, '9999999999999.99'],
    ['USD', '999999999999999.99', '999999999999999.99'],
    ['USD', '1357.850', '1357.85'],
    ['USD', '100.00', '100'],
    ['USD', '-0', '0'],
    ['USD', `10.${'0'.repeat(20_000)}`, '10'],
    ['USD', `${'0'.repeat(20_000)}10`, '10'],
    ['JPY', '1357.000', '1357'],
    ['KWD', '0.001', '0.001'],
    ['CLF', '0.0001', '0.0001'],
  ];
  for (const [currency, written, kept] of stored) {
    test(`${currency} ${String(written).slice(0, 24)} is kept as ${kept}`, async () => {
      const row = quote({ currency, spotPrice: written, partnerCut: '0', invoiceAmount: written });
      expect(await world.rows([row])).toMatchObject({ accepted: 1, errors: [] });
      expect(await ledger(world, row['quote_id'])).toMatchObject([{ currency, spot_price: kept, partner_cut: '0' }]);
    });
  }

  test('a quote of nothing is a quote, and nothing can be taken back of it', async () => {
    const free = quote(amounts('0', '0', '0.00'));
    const nothing = amounts('-0', '0', '0');
    expect(await world.rows([free, requote(free, nothing), reversal(free, nothing)])).toMatchObject({ accepted: 3 });
    expect(told(await world.rows([back(free, '-0.01', '0', '-0.01')]))).toEqual(['1 quote_id quote_exceeded']);
  });

  test('a thousand random ones come back to the last digit', async () => {
    const digits: Record<string, number> = { JPY: 0, USD: 2, KWD: 3, CLF: 4 };
    const units = fc.bigInt({ min: 0n, max: 10n ** 14n });
    const money = fc.tuple(fc.constantFrom(...Object.keys(digits)), units, units);
    const text = (value: bigint, places: number) =>
      places === 0
        ? `${value}`
        : `${value / 10n ** BigInt(places)}.${String(value % 10n ** BigInt(places)).padStart(places, '0')}`;
    const rows = fc.sample(money, { numRuns: 1_000, seed: 7 }).map(([currency, cut, share], index) => {
      const written = (value: bigint) => text(value, digits[currency] ?? 0);
      return quote({
        quote_id: `random-${index}`,
        currency,
        ...amounts(written(cut + share), written(cut), written(share)),
      });
    });
    expect(await world.rows(rows)).toMatchObject({ accepted: 1_000, rejected: 0 });
    const kept = (await ledger(world)).filter((entry) => entry.quote_id.startsWith('random-'));
    const trimmed = (value: unknown) => (String(value).includes('.') ? String(value).replace(/\.?0+$/, '') : value);
    expect(kept.map((entry) => [entry.spot_price, entry.partner_cut, entry.invoice_amount])).toEqual(
      rows.map((row) => [row['spotPrice'], row['partnerCut'], row['invoiceAmount']].map(trimmed)),
    );
  });

  test('0.1 + 0.2 = 0.3 balances, and 0.30000000000000004 is refused as too precise', async () => {
    const row = quote({ spotPrice: 0.3, partnerCut: 0.1, invoiceAmount: 0.2 });
    expect(await world.rows([row])).toMatchObject({ accepted: 1 });
    expect(told(await world.rows([quote({ spotPrice: 0.1 + 0.2, partnerCut: 0.1, invoiceAmount: 0.2 })]))).toEqual([
      '1 spotPrice amount_too_precise',
    ]);
  });

  test('a number beyond the reach of binary floating point is read from its text', async () => {
    const row = quote({ quote_id: 'exact', spotPrice: '@', partnerCut: 0, invoiceAmount: '@' });
    const text = ndjson(row).replaceAll('"@"', '900719925474099.29');
    expect(await world.importFiles([world.file('exact.ndjson', text)])).toMatchObject({ accepted: 1 });
    expect(await ledger(world, 'exact')).toMatchObject([{ spot_price: '900719925474099.29' }]);
  });
});
