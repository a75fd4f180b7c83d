/** Control totals: a delivery that differs from what its sender states of it records nothing, and the difference is named. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ledgerImport } from '../../src/actions/rows.ts';
import { runAction } from '../../src/actions/run.ts';
import { controlOfCells } from '../../src/ledger/control.ts';
import { openWorld, partner, quote, reversal, type World } from '../support/world.ts';
import { csv, ndjson, RECORDED_NOTHING, type Row, size, told } from './ledger.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner()]);
});
afterAll(() => world.end());

const of = (invoiceAmount: string, overrides: Row = {}) =>
  quote({ spotPrice: invoiceAmount, partnerCut: '0', invoiceAmount, ...overrides });
const stating = (count: number | undefined, totals?: Record<string, string>) => ({ control: { count, totals } });
const reasons = ({ errors }: { errors: readonly { reason: string }[] }) => errors.map(({ reason }) => reason);
const lastImport = async () =>
  (
    await world.sql<{ control: unknown }>(
      `SELECT details->'control' AS control FROM audit_events WHERE action = 'ledger.import' ORDER BY event_id DESC LIMIT 1`,
    )
  )[0]?.control;

describe('totals given with the import', () => {
  test('a delivery that agrees is recorded, and its event keeps what was stated', async () => {
    const report = await world.rows(
      [of('8'), of('2', { currency: 'EUR' }), of('5')],
      stating(3, { EUR: '2.00', USD: '13.00' }),
    );
    expect(report).toMatchObject({
      ...{ accepted: 3, refused: false, errors: [] },
      control: [{ by: 'option', file: null, agrees: true, found: { count: 3, totals: { EUR: '2.00', USD: '13.00' } } }],
    });
    expect(await lastImport()).toEqual([{ by: 'option', file: null, count: 3, totals: { EUR: '2.00', USD: '13.00' } }]);
  });

  test('a truncated file records nothing and says how many rows and how much are missing', async () => {
    const before = await size(world);
    const report = await world.rows([of('8')], stating(2, { USD: '28.18' }));
    expect(report).toMatchObject({ ...RECORDED_NOTHING, rejected: 0 });
    expect(told(report)).toEqual(['0 count control_differs', '0 USD control_differs']);
    expect(reasons(report)).toEqual([
      'states 2 rows, but there are 1: 1 too few',
      'states 28.18 USD, but the rows amount to 8.00 USD: 20.18 USD too little',
    ]);
    expect(await size(world)).toBe(before);
  });

  test('a row whose amount is exactly the difference is named with its line', async () => {
    const report = await world.rows([of('8'), of('20.18'), of('5')], stating(undefined, { USD: '13.00' }));
    expect(report.refused).toBe(true);
    expect(told(report)).toEqual(['0 USD control_differs', '2 invoiceAmount control_differs']);
    expect(reasons(report)[1]).toBe('is exactly the difference in USD');
  });

  test('a repeated line is named with the line that it repeats', async () => {
    const one = of('8');
    const report = await world.rows([one, of('5'), one], stating(2, { USD: '13.00' }));
    expect(told(report)).toEqual(['0 count control_differs', '0 USD control_differs', '3  control_differs']);
    expect(reasons(report)[2]).toBe('repeats line 1');
  });

  test('rows repeated under other ids are named if together they are the difference', async () => {
    const seconds = ['10', '11', '12'].map((second) => `2026-07-15T12:00:${second}Z`);
    const block = () =>
      seconds.map((accepted_at) => of('4', { accepted_at, enrollment_id: `e-${accepted_at.slice(-3)}` }));
    const report = await world.rows([...block(), of('9'), ...block()], stating(4, { USD: '21.00' }));
    expect(reasons(report).slice(2)).toEqual([1, 2, 3].map((line) => `equals line ${line} except for its id`));
    expect(
      told(report)
        .slice(2)
        .map((each) => each.split(' ')[0]),
    ).toEqual(['5', '6', '7']);
  });

  test('a repeated line counts: the sender stated both', async () => {
    const one = of('8');
    expect(await world.rows([one, one], stating(2, { USD: '16' }))).toMatchObject({ accepted: 1, duplicates: 1 });
  });

  test('the same delivery again agrees and changes nothing', async () => {
    const rows = [of('8'), of('5')];
    await world.rows(rows, stating(2, { USD: '13' }));
    const again = await world.rows(rows, stating(2, { USD: '13' }));
    expect(again).toMatchObject({ accepted: 0, duplicates: 2, refused: false, control: [{ agrees: true }] });
  });

  test('reversals are signed', async () => {
    const one = of('8');
    const back = { spotPrice: '-8', partnerCut: '0', invoiceAmount: '-8' };
    expect(await world.rows([one, reversal(one, back)], stating(2, { USD: '0' }))).toMatchObject({ accepted: 2 });
  });

  test('a currency of which nothing is stated contradicts stated totals, but not a stated number', async () => {
    const rows = [of('8'), of('5', { currency: 'EUR' })];
    expect(reasons(await world.rows(rows, stating(2, { USD: '8' })))[0]).toBe(
      'states 0.00 EUR, but the rows amount to 5.00 EUR: 5.00 EUR too much',
    );
    expect(await world.rows(rows, stating(2))).toMatchObject({ accepted: 2 });
  });

  test('with --skip-invalid a rejected row contradicts them; without, the row itself is what is reported', async () => {
    const rows = [of('8'), of('5', { policy_id: 'unknown' })];
    const skipped = await world.rows(rows, { ...stating(2, { USD: '13' }), skipInvalid: true });
    expect(skipped).toMatchObject({ ...RECORDED_NOTHING, rejected: 1 });
    expect(told(skipped)).toEqual(['2 policy_id policy_unknown', '0 count control_differs', '0 USD control_differs']);
    expect(told(await world.rows(rows, stating(2, { USD: '13' })))).toEqual(['2 policy_id policy_unknown']);
    expect(await world.rows(rows, { ...stating(1, { USD: '8' }), skipInvalid: true })).toMatchObject({ accepted: 1 });
  });
});

const trailers = {
  csv: (count: number, ...totals: string[]) => ['TRAILER', count, ...totals].join(','),
  ndjson: (count: number, ...totals: string[]) =>
    JSON.stringify({ trailer: { count, totals: Object.fromEntries(totals.map((each) => each.split('='))) } }),
};
const written = { csv, ndjson };

describe.each(['csv', 'ndjson'] as const)('a trailer of a file in %s', (format) => {
  const trailer = trailers[format];
  const fileOf = (rows: Row[], ...more: string[]) =>
    world.file(`rows.${format}`, [written[format](...rows).trimEnd(), ...more, ''].join('\n'));
  const lineAfter = (rows: number) => rows + (format === 'csv' ? 2 : 1);

  test('that agrees is no row, and is kept with the import', async () => {
    const report = await world.importFiles([fileOf([of('8'), of('5')], trailer(2, 'USD=13.00'))]);
    expect(report).toMatchObject({ accepted: 2, control: [{ by: 'trailer', agrees: true }] });
    expect(await lastImport()).toEqual([
      { by: 'trailer', file: 0, line: lineAfter(2), count: 2, totals: { USD: '13.00' } },
    ]);
  });

  test('that the rows contradict refuses the file, at the line of the trailer', async () => {
    const report = await world.importFiles([fileOf([of('8')], trailer(2, 'USD=13.00'))]);
    expect(report).toMatchObject(RECORDED_NOTHING);
    expect(told(report)).toEqual([`${lineAfter(1)} count control_differs`, `${lineAfter(1)} USD control_differs`]);
  });

  test('with anything after it refuses the whole file, also with --skip-invalid', async () => {
    const end = trailer(1, 'USD=8');
    const more = format === 'csv' ? csv(of('5')).trimEnd().split('\n').slice(1) : [ndjson(of('5')).trimEnd()];
    const report = await world.importFiles([fileOf([of('8')], end, ...more)], { skipInvalid: true });
    expect(report).toMatchObject(RECORDED_NOTHING);
    expect(told(report)).toEqual([`${lineAfter(2)}  after_trailer`]);
    const twice = await world.importFiles([fileOf([of('8')], end, end)]);
    expect(told(twice)).toEqual([`${lineAfter(2)}  after_trailer`]);
  });

  test('that cannot be understood refuses the whole file', async () => {
    const report = await world.importFiles([fileOf([of('8')], trailer(1, 'USD=8.001'))], { skipInvalid: true });
    expect(report).toMatchObject(RECORDED_NOTHING);
    expect(told(report)).toEqual([`${lineAfter(1)}  trailer_invalid`]);
  });

  test('of each file is compared with the rows of its own file', async () => {
    const one = fileOf([of('8')], trailer(1, 'USD=8'));
    const other = world.file(`other.${format}`, `${written[format](of('5')).trimEnd()}\n${trailer(2, 'USD=5')}\n`);
    const report = await world.importFiles([one, other]);
    expect(report.control.map(({ agrees }) => agrees)).toEqual([true, false]);
    expect(report.errors).toMatchObject([{ file: other, field: 'count' }]);
  });

  test('of a file without rows states none', async () => {
    expect(await world.importFiles([fileOf([], trailer(0))])).toMatchObject({ accepted: 0, refused: false });
  });
});

test('a total in a trailer is read whole, with every sign of equality', () => {
  expect(controlOfCells(['TRAILER', '1', 'USD=1.00'])).toEqual({ count: 1, totals: { USD: '1.00' } });
  for (const total of ['USD=1=3', 'USD==1', 'USD=', 'USD', '=1']) {
    expect([total, typeof controlOfCells(['TRAILER', '1', total])]).toEqual([total, 'string']);
  }
});

test('a spreadsheet may fill a trailer up with empty cells, and a row may begin with the id TRAILER', async () => {
  const header = 'quote_id,kind,partner_id,policy_id,currency,accepted_at,spotPrice,partnerCut,invoiceAmount';
  const line = 'TRAILER,quote_accepted,p-1,ticket-protection,USD,2026-07-15T12:00:00Z,1,0,1';
  const file = world.file('padded.csv', `${header}\n${line}\nTRAILER,1,USD=1.00,,,,,,\n`);
  expect(await world.importFiles([file])).toMatchObject({ accepted: 1, control: [{ agrees: true }] });
});

describe('a file of totals among uploaded files', () => {
  const upload = (name: string, text: string) => ({ name, bytes: Buffer.from(text) });
  const importing = (...files: { name: string; bytes: Buffer }[]) => runAction(world, ledgerImport, { files });

  test('belongs to the file that it is named after', async () => {
    const totals = (count: number) => upload('july.csv.totals.json', JSON.stringify({ count, totals: { USD: 8 } }));
    const rows = upload('july.csv', csv(of('8')));
    const wrong = await importing(totals(2), rows);
    expect(wrong).toMatchObject({
      json: {
        accepted: 0,
        errors: [{ file: 'july.csv.totals.json', line: 0, field: 'count', code: 'control_differs' }],
      },
    });
    expect(wrong.text).toContain('Nothing recorded: the rows differ from the stated totals.');
    const right = await importing(rows, totals(1));
    expect(right).toMatchObject({ json: { accepted: 1, control: [{ by: 'totals_file', file: 'july.csv' }] } });
    expect(right.text).toContain('The rows agree with the stated totals.');
  });

  test.each(['{"count": 1, "rows": 1}', '{"count": 1, "count": 2}', '{}', '[]', '{"totals": {"USD": "x"}}', 'none'])(
    'that reads %s is refused',
    async (text) => {
      const before = await size(world);
      await expect(
        importing(upload('july.csv', csv(of('8'))), upload('july.csv.totals.json', text)),
      ).rejects.toMatchObject({
        code: 'totals_invalid',
      });
      expect(await size(world)).toBe(before);
    },
  );
});
