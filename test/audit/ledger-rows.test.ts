/** Rows of an export are made from lines of the log, as CSV and as JSON: both formats say the same. */
import { parse } from 'csv-parse/sync';
import { expect, test } from 'vitest';
import { documentKey, LEDGER_HEADER, ledgerRows, readOtherLines } from '../../src/audit/ledger-rows.ts';
import { LOG_FORMS } from '../../src/log/forms.ts';
import type { Month } from '../../src/month.ts';

const MONTH = '2026-08' as Month;
const NUMBERS = new Map([[documentKey('p-1', 'USD', 'invoicing'), 'INV-2026-000001']]);

type Line = Readonly<Record<string, string>>;
const USUAL: Line = {
  entry_id: '4711',
  posted_month: '2026-07',
  partner_id: 'p-1',
  kind: 'quote_accepted',
  quote_id: 'q-1',
  requote_id: '\\N',
  reversal_id: '\\N',
  enrollment_id: 'en-1',
  policy_id: 'ticket-protection',
  currency: 'USD',
  accepted_at: '2026-07-15T12:00:00.250000Z',
  spot_price: '12.5',
  partner_cut: '2',
  invoice_amount: '10.5',
  order_reference: '\\N',
  cover_from: '\\N',
  cover_to: '\\N',
  time_zone: 'America/New_York',
  month: '2026-07',
  arrangement: 'invoicing',
  recorded_at: '2026-08-01T12:00:00.000000Z',
  event_id: '12',
};
const NAMES = ['entry_id', ...(LOG_FORMS[0]?.columns ?? []).map(({ name }) => name)];
const lineOf = (line: Line) => `${['ledger_rows', ...NAMES.map((name) => ({ ...USUAL, ...line })[name])].join('\t')}\n`;

const factsOf = (grounds = new Map<string, string>()) => ({ month: MONTH, numbers: NUMBERS, grounds });
const asCsv = (lines: string, grounds?: Map<string, string>) =>
  String(ledgerRows('csv', factsOf(grounds))(Buffer.from(lines)));
const asJson = (lines: string, grounds?: Map<string, string>) =>
  String(ledgerRows('jsonl', factsOf(grounds))(Buffer.from(lines)));

test('a line becomes a row of the contract, with the digits of its currency and the number of its document', () => {
  expect(asCsv(lineOf({}))).toBe(
    'quote_accepted,p-1,q-1,,,en-1,ticket-protection,USD,2026-07-15T12:00:00.250000Z,12.50,2.00,10.50,,,,4711,2026-08,' +
      '2026-08-01T12:00:00.000000Z,INV-2026-000001,\n',
  );
  expect(JSON.parse(asJson(lineOf({})))).toEqual({
    ...{ kind: 'quote_accepted', partner_id: 'p-1', quote_id: 'q-1', enrollment_id: 'en-1' },
    ...{ requote_id: null, reversal_id: null },
    ...{
      policy_id: 'ticket-protection',
      currency: 'USD',
      accepted_at: '2026-07-15T12:00:00.250000Z',
      spotPrice: '12.50',
    },
    ...{ partnerCut: '2.00', invoiceAmount: '10.50', order_reference: null, cover_from: null, cover_to: null },
    ...{ entry_id: 4711, posted_month: '2026-08' },
    ...{ recorded_at: '2026-08-01T12:00:00.000000Z', document: 'INV-2026-000001', allowed_by: null },
  });
});

const ROWS: readonly (readonly [name: string, line: Line])[] = [
  ['without a fraction, in yen', { currency: 'JPY', spot_price: '1000', partner_cut: '300', invoice_amount: '700' }],
  ['of three digits', { currency: 'KWD', spot_price: '1.005', partner_cut: '0.3', invoice_amount: '0.705' }],
  [
    'taken back',
    { kind: 'reversal', spot_price: '-12.5', partner_cut: '-2', invoice_amount: '-10.5', reversal_id: 'r' },
  ],
  ['of nothing', { spot_price: '0', partner_cut: '0', invoice_amount: '0' }],
  ['with a requote', { requote_id: 'q-1:2', enrollment_id: '\\N' }],
  ['of another partner, on no document', { partner_id: 'p-2' }],
  ['of an order with cover', { order_reference: '#1001 B', cover_from: '2026-07-15', cover_to: '2026-08-31' }],
  ['of an order that looks like a formula', { order_reference: '=1+1' }],
  ['of an order with a comma, quotes and a backslash', { order_reference: 'a,"b"\\\\' }],
  // What no import takes, and an owner of the database could write.
  ['with a comma and quotes', { quote_id: 'a,"b"' }],
  ['with a line end, a tab and a backslash', { quote_id: 'a\\nb\\tc\\\\d\\re' }],
  ['with a letter of two bytes', { policy_id: 'Größe' }],
  ['that looks like a formula', { quote_id: '=1+1' }],
  ['that looks like one behind blanks', { quote_id: '  =1+1', enrollment_id: '\\n=1' }],
  ['that looks like one in full width', { quote_id: '＝1+1', policy_id: '＠x' }],
  ['that begins with a minus', { quote_id: '-x' }],
  ['that begins with a plus', { enrollment_id: '+5' }],
  ['that begins with an apostrophe', { policy_id: "'x" }],
  ['much longer than the others', { quote_id: 'x'.repeat(3000), policy_id: `"${'"'.repeat(2000)}` }],
];

test.each(ROWS)('a row %s reads the same in both formats', (_, line) => {
  const row = JSON.parse(asJson(lineOf(line)));
  const [read] = parse(LEDGER_HEADER + asCsv(lineOf(line)), { columns: true }) as Record<string, string>[];
  const amounts = ['spotPrice', 'partnerCut', 'invoiceAmount'];
  for (const [name, cell] of Object.entries(read ?? {})) {
    const text = amounts.includes(name) ? cell : cell.replace(/^'/, '');
    expect({ [name]: text }).toEqual({ [name]: String(row[name] ?? '') });
    if (!amounts.includes(name)) expect(cell).not.toMatch(/^[ \t\r\n]*[=+@＝＋－＠\t\r\n-]/);
  }
  expect(Object.keys(read ?? {})).toHaveLength(20);
});

test('many lines in one piece become as many rows, whatever is among them', () => {
  const lines = Array.from({ length: 300 }, (_, index) =>
    lineOf({ ...(ROWS[index % ROWS.length]?.[1] ?? {}), entry_id: `${index}` }),
  );
  const read = parse(LEDGER_HEADER + asCsv(lines.join('')), { columns: true }) as Record<string, string>[];
  expect(read.map((row) => row['entry_id'])).toEqual(lines.map((_, index) => `${index}`));
  expect(asCsv('')).toBe('');
});

test('an order reference that begins with a minus is no formula in CSV, and an amount below zero is a number', () => {
  const rows = parse(asCsv(lineOf({ order_reference: '-12/34', partner_cut: '-2' }))) as string[][];
  expect(rows[0]?.slice(10, 13)).toEqual(['-2.00', '10.50', "'-12/34"]);
});

test('a reversal names what allowed it, which the log has before it, also if its line is unusual', () => {
  const ground = (reversal: string, allowedBy: string) =>
    `reversal_grounds\t7\tp-1\t${reversal}\tq-1\t${allowedBy}\t\\N\t\\N\t\\N\t\\N\t2026-08-01T12:00:00.000000Z\t12\n`;
  const rows = [
    { kind: 'reversal', reversal_id: 'r-1' },
    { kind: 'reversal', reversal_id: 'r-2', order_reference: '=1+1' },
    { kind: 'reversal', reversal_id: 'Ö\\n3' },
    { kind: 'reversal', reversal_id: 'r-4' },
    { kind: 'requote_accepted', requote_id: 'r-1' },
  ];
  const expected = ['window', 'person', 'processor', '', ''];
  const others = Buffer.from(
    `${ground('r-1', 'window')}closed_months\t9\t2026-07\t\\N\n${ground('r-2', 'person')}${ground('Ö\\n3', 'processor')}`,
  );
  for (const format of [asCsv, asJson]) {
    const grounds = new Map<string, string>();
    expect(readOtherLines(others, grounds)).toEqual(['2026-07']);
    const text = format(rows.map(lineOf).join(''), grounds);
    const read =
      format === asCsv
        ? (parse(LEDGER_HEADER + text, { columns: true }) as Record<string, string>[])
        : text
            .trim()
            .split('\n')
            .map((line) => JSON.parse(line) as Record<string, string | null>);
    expect(read.map((row) => row['allowed_by'] ?? '')).toEqual(expected);
    expect(grounds.size).toBe(0);
  }
});
