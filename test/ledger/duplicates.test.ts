/** The same row again is counted and not recorded, however it is written; the same id with other content is a conflict. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';
import { csv, ledger, ndjson, RECORDED_NOTHING, size, told } from './ledger.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner(), partner({ partner_id: 'p-2' })]);
});
afterAll(() => world.end());

const DUPLICATE = { accepted: 0, duplicates: 1, rejected: 0, errors: [], refused: false };
const PRICE = { spotPrice: '1357.85', partnerCut: '357.85', invoiceAmount: '1000' };

describe('a row that the ledger has already is a duplicate', () => {
  const same: readonly [how: string, overrides: Record<string, unknown>][] = [
    ['to the letter', {}],
    ['with trailing zeros', { spotPrice: '1357.850', partnerCut: '357.8500', invoiceAmount: '1000.00' }],
    ['with leading zeros', { spotPrice: '01357.85' }],
    ['with numbers instead of strings', { spotPrice: 1357.85, partnerCut: 357.85, invoiceAmount: 1000 }],
    ['at the same instant in another offset', { accepted_at: '2026-07-15T14:00:00+02:00' }],
    ['at the same instant without its seconds', { accepted_at: '2026-07-15T12:00Z' }],
    ['at the same instant with its zeros', { accepted_at: '2026-07-15T12:00:00.000000Z' }],
    ['with null for what it does not have', { requote_id: null, reversal_id: '', cover_to: null }],
  ];
  for (const [how, overrides] of same) {
    test(how, async () => {
      const row = quote({ ...PRICE, order_reference: 'ORD-1', cover_from: '2026-07-15' });
      expect(await world.rows([row])).toMatchObject({ accepted: 1 });
      expect(await world.rows([{ ...row, ...overrides }])).toMatchObject(DUPLICATE);
      expect(await ledger(world, row['quote_id'])).toHaveLength(1);
    });
  }

  test('also when it is a requote or a reversal', async () => {
    const first = quote();
    const [more, back] = [requote(first), reversal(first)];
    const report = await world.rows([first, more, back]);
    expect(report).toMatchObject({ accepted: 3, duplicates: 0 });
    expect(await world.rows([back, more, first])).toMatchObject({ accepted: 0, duplicates: 3, rejected: 0 });
  });

  test('also after its partner and its policy have become inactive', async () => {
    const seller = { partner_id: 'p-leaving' };
    await world.partners([partner(seller)]);
    // Recorded with a clock two minutes ahead, so accepted after the moment at which the partner leaves.
    const row = quote({ ...seller, accepted_at: '2026-08-01T10:04:00Z' });
    expect(await world.rows([row])).toMatchObject({ accepted: 1 });
    world.at('2026-08-01T10:02:00Z');
    await world.partners([partner({ ...seller, active: false })]);
    expect(await world.rows([row])).toMatchObject(DUPLICATE);
  });
});

describe('the same row twice in one import', () => {
  test('is recorded once, from one file', async () => {
    const row = quote(PRICE);
    const again = { ...row, spotPrice: 1357.85, accepted_at: '2026-07-15T07:00:00-05:00' };
    expect(await world.rows([row, again, row])).toMatchObject({ accepted: 1, duplicates: 2, rejected: 0 });
    expect(await ledger(world, row['quote_id'])).toHaveLength(1);
  });

  test('is recorded once, from two files of different formats', async () => {
    const row = quote(PRICE);
    const files = [world.file('one.csv', csv(row)), world.file('two.ndjson', ndjson(row))];
    expect(await world.importFiles(files)).toMatchObject({ accepted: 1, duplicates: 1, rejected: 0 });
  });

  test('is recorded once when the same file is named twice', async () => {
    const file = world.file('twice.csv', csv(quote(), quote(), quote()));
    expect(await world.importFiles([file, file])).toMatchObject({ accepted: 3, duplicates: 3, rejected: 0 });
  });

  test('with other content is a conflict with the first, which is named by its line', async () => {
    const row = quote();
    const before = await size(world);
    const report = await world.rows([quote(), row, { ...row, enrollment_id: 'e-other' }]);
    expect(report).toMatchObject({ ...RECORDED_NOTHING, duplicates: 0, rejected: 1 });
    expect(told(report)).toEqual(['3 quote_id conflict']);
    expect(report.errors[0]?.reason).toContain('line 2');
    expect(await size(world)).toBe(before);
  });

  test('with --skip-invalid is the first one, and later ones with other content are left out', async () => {
    const row = quote();
    const report = await world.rows([row, { ...row, policy_id: 'parking' }, row], { skipInvalid: true });
    expect(report).toMatchObject({ accepted: 1, duplicates: 1, rejected: 1, refused: false });
    expect((await ledger(world, row['quote_id'])).map((entry) => entry.policy_id)).toEqual(['ticket-protection']);
  });

  test('counts the good one where the first was bad by itself', async () => {
    const row = quote();
    const report = await world.rows([{ ...row, spotPrice: '10.001' }, row], { skipInvalid: true });
    expect(report).toMatchObject({ accepted: 1, duplicates: 0, rejected: 1 });
    expect(told(report)).toEqual(['1 spotPrice amount_too_precise']);
  });
});

describe('rows of the same id are different rows', () => {
  test('of two partners', async () => {
    const row = quote();
    const report = await world.rows([row, { ...row, partner_id: 'p-2' }]);
    expect(report).toMatchObject({ accepted: 2, duplicates: 0 });
  });

  test('of two kinds', async () => {
    const row = quote({ quote_id: 'one-id' });
    const report = await world.rows([
      row,
      requote(row, { requote_id: 'one-id' }),
      reversal(row, { reversal_id: 'one-id' }),
    ]);
    expect(report).toMatchObject({ accepted: 3, duplicates: 0 });
  });

  test('that differ in capitals', async () => {
    expect(await world.rows([quote({ quote_id: 'Q-case' }), quote({ quote_id: 'q-case' })])).toMatchObject({
      accepted: 2,
    });
  });
});

describe('two imports at once', () => {
  test('of the same file record exactly one set of rows', async () => {
    const rows = Array.from({ length: 500 }, () => quote());
    const file = world.file('race.ndjson', ndjson(...rows));
    const before = await size(world);
    const reports = await Promise.all([1, 2, 3].map(() => world.importFiles([file])));
    expect(reports.map(({ accepted }) => accepted).sort()).toEqual([0, 0, 500]);
    expect(reports.map(({ duplicates }) => duplicates).sort()).toEqual([0, 500, 500]);
    expect((await size(world)) - before).toBe(500);
  });

  test('each with a full reversal of the same quote: one is recorded, one refused', async () => {
    const row = quote();
    await world.rows([row]);
    const files = ['a', 'b'].map((name) => world.file(`reversal-${name}.ndjson`, ndjson(reversal(row))));
    const reports = await Promise.all(files.map((file) => world.importFiles([file])));
    expect(reports.map(({ accepted }) => accepted).sort()).toEqual([0, 1]);
    expect(reports.flatMap(told)).toEqual(['1 quote_id quote_exceeded']);
    expect((await ledger(world, row['quote_id'])).map((entry) => entry.kind)).toEqual(['quote_accepted', 'reversal']);
  });

  test('with the same reversal in different words: one is recorded, one is a conflict', async () => {
    const row = quote({ spotPrice: '100', partnerCut: '30', invoiceAmount: '70' });
    await world.rows([row]);
    const half = { reversal_id: 'rv-raced', spotPrice: '-50', partnerCut: '-15', invoiceAmount: '-35' };
    const third = { ...half, spotPrice: '-30', partnerCut: '-9', invoiceAmount: '-21' };
    const files = [half, third].map((each, index) => world.file(`words-${index}.ndjson`, ndjson(reversal(row, each))));
    const reports = await Promise.all(files.map((file) => world.importFiles([file])));
    expect(reports.map(({ accepted }) => accepted).sort()).toEqual([0, 1]);
    expect(reports.flatMap(told)).toEqual(['1 reversal_id conflict']);
  });
});
