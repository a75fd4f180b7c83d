/** Rows of a file that may be a second telling of a sale are held: not recorded and not lost, until a person decides. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { isUrgent } from '../../src/findings/finding.ts';
import { readFindings } from '../../src/findings/findings.ts';
import { readHeldRows } from '../../src/ledger/held.sql.ts';
import { discardRows, releaseRows } from '../../src/ledger/held.ts';
import type { ImportReport } from '../../src/ledger/import.ts';
import { startOver } from '../close/start-over.ts';
import { openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';
import { csv, ledger, RECORDED_NOTHING, type Row, size } from './ledger.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
beforeEach(async () => {
  await startOver(world);
  await world.partners([partner(), partner({ partner_id: 'p-2' })]);
});
afterAll(() => world.end());

/** The held rows of a report as `line code`. */
const heldIn = (report: ImportReport): string[] => report.held_rows.map(({ line, code }) => `${line} ${code}`);
const undecided = () => world.database.reading((tx) => readHeldRows(tx, { undecided: true }));
/** The number of the first row that waits. */
const firstHeld = async (): Promise<number> => (await undecided())[0]?.held_row_id as number;
const release = (...ids: number[]) =>
  world.database.transaction((tx) => releaseRows(tx, world, { ids, reason: 'two seats' }));
const discard = (...ids: number[]) =>
  world.database.transaction((tx) => discardRows(tx, world, { ids, reason: 'sent twice' }));
const urgent = async () => {
  const question = {
    settings: world.settings,
    scope: null,
    today: '2026-08-01',
    now: world.environment.now().toMillis(),
    limit: null,
  };
  return (await world.database.reading((tx) => readFindings(tx, question)))
    .filter(isUrgent)
    .flatMap(({ kind, urgent }) => (kind === 'rows' ? [urgent] : []));
};
const expectVerified = async () => expect((await world.verify()).differences).toBe(0);

/** The same sale under another id. */
const again = (row: Row, overrides: Row = {}): Row => ({ ...row, quote_id: `${row['quote_id']}-again`, ...overrides });

describe('a sale under two ids', () => {
  test('is held if partner, policy, second, amounts and enrollment are the same, within a file', async () => {
    const sale = quote({ enrollment_id: 'ENR-77' });
    const report = await world.rows([sale, again(sale)]);
    expect(report).toMatchObject({ accepted: 1, duplicates: 0, held: 1, rejected: 0, errors: [], refused: false });
    expect(report.held_rows).toMatchObject([{ line: 2, field: 'quote_id', code: 'same_enrollment' }]);
    expect(report.held_rows[0]?.reason).toBe(`may repeat ${sale['quote_id']}: the same enrollment, second and amounts`);
    expect(await size(world)).toBe(1);
    expect(await urgent()).toEqual(['1 row of p-1 may repeat sales and is not recorded.']);
    await expectVerified();
  });

  test('is held in a later file, also in the same second of another fraction and offset', async () => {
    const sale = quote({ accepted_at: '2026-07-15T12:00:00.25Z' });
    await world.rows([sale]);
    const later = again(sale, { accepted_at: '2026-07-15T08:00:00.9-04:00' });
    expect(heldIn(await world.rows([quote(), later]))).toEqual(['2 same_enrollment']);
    await expectVerified();
  });

  const others: readonly [what: string, overrides: Row][] = [
    ['another second', { accepted_at: '2026-07-15T12:00:01Z' }],
    ['another enrollment', { enrollment_id: 'e-other' }],
    ['no enrollment', { enrollment_id: '' }],
    ['another price', { spotPrice: '11.00', invoiceAmount: '8.00' }],
    ['another cut', { partnerCut: '2.00', invoiceAmount: '8.00' }],
    ['another partner', { partner_id: 'p-2' }],
    ['another currency', { currency: 'EUR' }],
  ];
  for (const [what, overrides] of others) {
    test(`is recorded twice with ${what}, in one file and in two`, async () => {
      const sale = quote();
      expect(await world.rows([sale, again(sale, overrides)])).toMatchObject({ accepted: 2, held: 0 });
      const next = quote({ accepted_at: '2026-07-16T12:00:00Z' });
      await world.rows([next]);
      expect(await world.rows([again(next, overrides)])).toMatchObject({ accepted: 1, held: 0 });
    });
  }

  test('is held if the order reference is the same and one of them names no enrollment', async () => {
    const sale = quote({ order_reference: 'ORDER 1', enrollment_id: '' });
    const [second, third] = [again(sale), again(sale, { quote_id: 'third', enrollment_id: 'e-third' })];
    expect(heldIn(await world.rows([sale, second, third]))).toEqual(['2 same_order', '3 same_order']);
    const next = quote({ order_reference: 'ORDER 2' });
    await world.rows([next]);
    expect(heldIn(await world.rows([again(next, { enrollment_id: '' })]))).toEqual(['1 same_order']);
    await expectVerified();
  });

  test('is recorded for the four tickets of one order, in one file and in two', async () => {
    const tickets = [1, 2, 3, 4].map(() => quote({ order_reference: 'ORDER 1' }));
    expect(await world.rows(tickets.slice(0, 2))).toMatchObject({ accepted: 2, held: 0 });
    expect(await world.rows(tickets)).toMatchObject({ accepted: 2, duplicates: 2, held: 0 });
  });
});

describe('ids that other programs change', () => {
  const pairs: readonly [how: string, one: string, other: string][] = [
    ['leading zeros', '00042', '42'],
    ['case', 'Ab-77', 'aB-77'],
    ["a spreadsheet's exponent", '1234567890123456', '1.23457E15'],
    ['an exponent with two digits', '1234567890123456', '1.2e15'],
  ];
  for (const [how, one, other] of pairs) {
    for (const [first, second] of [
      [one, other],
      [other, one],
    ] as const) {
      const rows = () => [
        quote({ quote_id: first, enrollment_id: 'e-1', accepted_at: '2026-07-15T12:00:00Z' }),
        quote({ quote_id: second, enrollment_id: 'e-1', accepted_at: '2026-07-15T17:30:00Z' }),
      ];
      test(`are held with the same amounts and day: ${how} (${first}, then ${second}), in one file`, async () => {
        const report = await world.rows(rows());
        expect(heldIn(report)).toEqual(['2 same_id']);
        expect(report.held_rows[0]?.reason).toContain(`may repeat ${first}`);
      });

      test(`are held with the same amounts and day: ${how} (${first}, then ${second}), in two files`, async () => {
        const [sale, repeated] = rows();
        await world.rows([sale as Row]);
        expect(heldIn(await world.rows([repeated as Row]))).toEqual(['1 same_id']);
        await expectVerified();
      });
    }

    test(`are sales of their own with other amounts or on another local day: ${how}`, async () => {
      const sale = quote({ quote_id: one });
      const dearer = quote({ quote_id: other, spotPrice: '11.00', invoiceAmount: '8.00' });
      expect(await world.rows([sale, dearer])).toMatchObject({ accepted: 2, held: 0 });
      await startOver(world);
      await world.partners([partner()]);
      // 23:30 and 00:30 in New York, within one day of UTC.
      const late = quote({ quote_id: one, accepted_at: '2026-07-16T03:30:00Z' });
      const early = quote({ quote_id: other, accepted_at: '2026-07-16T04:30:00Z' });
      expect(await world.rows([late, early])).toMatchObject({ accepted: 2, held: 0 });
    });
  }

  test('are normal in their case alone, if the enrollments differ, but not in their zeros', async () => {
    const [upper, lower] = [quote({ quote_id: 'Q-1' }), quote({ quote_id: 'q-1' })];
    expect(await world.rows([upper, lower])).toMatchObject({ accepted: 2, held: 0 });
    const [long, short] = [quote({ quote_id: '0042' }), quote({ quote_id: '42' })];
    expect(await world.rows([long])).toMatchObject({ accepted: 1, held: 0 });
    expect(heldIn(await world.rows([quote({ quote_id: '042' }), short]))).toEqual(['1 same_id', '2 same_id']);
    expect(await world.rows([quote({ quote_id: 'Q-2' })])).toMatchObject({ accepted: 1 });
    expect(await world.rows([quote({ quote_id: 'q-2' })])).toMatchObject({ accepted: 1, held: 0 });
  });

  test('hold one row of many neighbors that round to the same exponent', async () => {
    const neighbors = [1, 2, 3].map((last) => quote({ quote_id: `123456789012345${last}` }));
    const report = await world.rows([...neighbors, quote({ quote_id: '1.23457E15' })]);
    expect(heldIn(report)).toEqual(['4 same_id']);
    await startOver(world);
    await world.partners([partner()]);
    expect(heldIn(await world.rows([quote({ quote_id: '1.23457E15' }), ...neighbors]))).toEqual(['2 same_id']);
  });
});

describe('requotes and reversals', () => {
  test('are held if they repeat another of their quote under another id', async () => {
    const sale = quote();
    const more = requote(sale);
    const part = { spotPrice: '-2.00', partnerCut: '-0.60', invoiceAmount: '-1.40' };
    const back = reversal(sale, { ...part, enrollment_id: '' });
    const rows = [sale, more, { ...more, requote_id: 'rq-again' }, back, { ...back, reversal_id: 'rv-again' }];
    expect(heldIn(await world.rows(rows))).toEqual(['3 same_enrollment', '5 same_quote']);
    const late = { ...back, reversal_id: 'rv-late' };
    expect(heldIn(await world.rows([late]))).toEqual(['1 same_quote']);
    await expectVerified();
  });

  test('are held with their sale, in its file and later, and follow its decision', async () => {
    const sale = quote();
    const repeated = again(sale);
    const [more, back] = [requote(repeated), reversal(repeated)];
    expect(heldIn(await world.rows([sale, repeated, back]))).toEqual(['2 same_enrollment', '3 held_sale']);
    expect(heldIn(await world.rows([more]))).toEqual(['1 held_sale']);
    await expectVerified();
    await release(await firstHeld());
    expect(await undecided()).toEqual([]);
    expect(await size(world)).toBe(4);
    await expectVerified();
  });

  test('of a discarded sale are held, and never recorded without it', async () => {
    const sale = quote();
    const repeated = again(sale);
    await world.rows([sale, repeated]);
    await discard(await firstHeld());
    expect(heldIn(await world.rows([reversal(repeated)]))).toEqual(['1 held_sale']);
    await expect(release(await firstHeld())).rejects.toMatchObject({ code: 'held_row_invalid' });
    expect(await size(world)).toBe(1);
    await expectVerified();
  });

  test('do not take a quote below zero with a requote that is held', async () => {
    const sale = quote();
    const more = requote(sale);
    const all = { spotPrice: '-20.00', partnerCut: '-6.00', invoiceAmount: '-14.00' };
    const rows = [sale, more, { ...more, requote_id: 'rq-again' }, reversal(sale, all)];
    expect(await world.rows(rows)).toMatchObject({ ...RECORDED_NOTHING, rejected: 1 });
    expect(await undecided()).toEqual([]);
  });
});

describe('the same file again', () => {
  test('changes nothing and still names the held row', async () => {
    const sale = quote();
    const rows = [sale, again(sale)];
    await world.rows(rows);
    const report = await world.rows(rows);
    expect(report).toMatchObject({ accepted: 0, duplicates: 1, held: 1, event_id: null });
    expect(report.held_rows).toMatchObject([{ held_row_id: await firstHeld(), line: 2, code: 'same_enrollment' }]);
    expect(await undecided()).toHaveLength(1);
  });

  for (const [decision, decide, recorded] of [
    ['released', release, 2],
    ['discarded', discard, 1],
  ] as const) {
    test(`has only duplicates after the held row is ${decision}`, async () => {
      const sale = quote();
      const rows = [sale, again(sale)];
      await world.rows(rows);
      await decide(await firstHeld());
      expect(await world.rows(rows)).toMatchObject({ accepted: 0, duplicates: 2, held: 0 });
      expect(await size(world)).toBe(recorded);
      expect(await urgent()).toEqual([]);
      await expectVerified();
    });
  }

  test('is a conflict if the held row has other content', async () => {
    const sale = quote();
    await world.rows([sale, again(sale)]);
    const changed = again(sale, { spotPrice: '11.00', invoiceAmount: '8.00' });
    expect(await world.rows([changed])).toMatchObject({ ...RECORDED_NOTHING, errors: [{ code: 'conflict' }] });
  });

  test('records nothing and holds nothing if another row is invalid', async () => {
    const sale = quote();
    const rows = [sale, again(sale), quote({ currency: 'usd' })];
    expect(await world.rows(rows)).toMatchObject({ ...RECORDED_NOTHING, held: 1, rejected: 1 });
    expect(await undecided()).toEqual([]);
    expect(await world.rows(rows, { skipInvalid: true })).toMatchObject({ accepted: 1, held: 1, rejected: 1 });
    expect(await undecided()).toHaveLength(1);
  });

  test('holds a row although the import records no other row', async () => {
    const sale = quote();
    await world.rows([sale]);
    expect(await world.rows([again(sale)])).toMatchObject({ accepted: 0, held: 1, refused: false });
    expect(await undecided()).toHaveLength(1);
    await expectVerified();
  });
});

describe('a decision', () => {
  test('records the row as it was held, under the event of the decision', async () => {
    const sale = quote({ order_reference: 'ORDER 1', cover_from: '2026-07-15', cover_to: '2026-07-20' });
    await world.rows([sale, again(sale)]);
    await release(await firstHeld());
    const [first, second] = await ledger(world);
    expect(second).toEqual({ ...first, quote_id: `${sale['quote_id']}-again` });
    const [event] = await world.sql(
      `SELECT e.action, e.details->>'reason' AS reason, e.details->>'accepted' AS accepted
       FROM ledger_rows r JOIN audit_events e USING (event_id) ORDER BY entry_id DESC LIMIT 1`,
    );
    expect(event).toEqual({ action: 'rows.release', reason: 'two seats', accepted: '1' });
  });

  test('is final, and names what is unknown', async () => {
    const sale = quote();
    await world.rows([sale, again(sale)]);
    const held_row_id = await firstHeld();
    await discard(held_row_id);
    await expect(release(held_row_id)).rejects.toMatchObject({
      code: 'held_row_decided',
      facts: { decision: 'discarded' },
    });
    await expect(discard(held_row_id + 1)).rejects.toMatchObject({ code: 'held_row_unknown' });
  });

  test('after the close of the month bills the row in the earliest open month', async () => {
    const sale = quote();
    await world.rows([sale, again(sale)]);
    await world.close('2026-07');
    expect(await release(await firstHeld())).toMatchObject({ late: 1 });
    expect(await ledger(world, `${sale['quote_id']}-again`)).toMatchObject([{ posted_month: '2026-08' }]);
    await expectVerified();
  });
});

test('Files are compared as one import, and a CSV file as an NDJSON file', async () => {
  const sale = quote();
  const files = [world.file('one.csv', csv(sale)), world.file('two.csv', csv(again(sale)))];
  const report = await world.importFiles(files);
  expect(report.held_rows).toMatchObject([{ file: files[1], line: 2, code: 'same_enrollment' }]);
});

test('A preview holds nothing', async () => {
  const sale = quote();
  expect(await world.rows([sale, again(sale)], { preview: true })).toMatchObject({ accepted: 1, held: 1 });
  expect(await undecided()).toEqual([]);
});
