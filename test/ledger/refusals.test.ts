/** Every refusal of a row: one line per rule with its field and code, from NDJSON and from CSV, and nothing recorded. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ROW_CODES, type RowCode } from '../../src/ledger/row.ts';
import { openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';
import { csv, csvLine, HEADER, ndjson, RECORDED_NOTHING, type Row, size } from './ledger.ts';

const REQUIRED = [
  ...['kind', 'partner_id', 'quote_id', 'policy_id', 'currency', 'accepted_at'],
  ...['spotPrice', 'partnerCut', 'invoiceAmount'],
];
const without = (row: Row, field: string): Row =>
  Object.fromEntries(Object.entries(row).filter(([name]) => name !== field));
const amounts = (spotPrice: string, partnerCut: string, invoiceAmount: string) => ({
  spotPrice,
  partnerCut,
  invoiceAmount,
});

/** In the ledger before any of these tests. */
const KNOWN = quote({
  ...{ quote_id: 'known', order_reference: 'ORD-1', cover_from: '2026-07-15', cover_to: '2026-07-31' },
});
const KNOWN_REQUOTE = requote(KNOWN, { requote_id: 'known-requote' });
const ELSEWHERE = quote({ quote_id: 'elsewhere', partner_id: 'p-2' });

type Refused = readonly [code: RowCode, field: string, sentence: string, row: Row];

/** Rows that arrive in either format behind a good one, so on line 2 of NDJSON and on line 3 of CSV. */
const ROWS: readonly Refused[] = [
  ...REQUIRED.map(
    (field): Refused => ['field_missing', field, `a row without ${field} is refused`, without(quote(), field)],
  ),
  ['field_missing', 'requote_id', 'a requote without requote_id is refused', requote(KNOWN, { requote_id: '' })],
  ['field_missing', 'reversal_id', 'a reversal without reversal_id is refused', reversal(KNOWN, { reversal_id: '' })],
  ['field_unexpected', 'requote_id', 'a quote with a requote_id is refused', quote({ requote_id: 'rq' })],
  ['field_unexpected', 'reversal_id', 'a quote with a reversal_id is refused', quote({ reversal_id: 'rv' })],
  ['field_unexpected', 'reversal_id', 'a requote with a reversal_id is refused', requote(KNOWN, { reversal_id: 'rv' })],
  ['kind_unknown', 'kind', 'a refund by another name is refused', quote({ kind: 'refund' })],
  ['kind_unknown', 'kind', 'a kind in capitals is refused', quote({ kind: 'QUOTE_ACCEPTED' })],
  ['identifier_malformed', 'partner_id', 'a partner id with a space is refused', quote({ partner_id: 'p 1' })],
  ['identifier_malformed', 'quote_id', 'a quote id of 129 characters is refused', quote({ quote_id: 'q'.repeat(129) })],
  ['identifier_malformed', 'requote_id', 'a requote id with a slash is refused', requote(KNOWN, { requote_id: 'a/b' })],
  ['identifier_malformed', 'reversal_id', 'a dotted start is refused', reversal(KNOWN, { reversal_id: '.rv' })],
  ['identifier_malformed', 'enrollment_id', 'an umlaut is refused', quote({ enrollment_id: 'übung' })],
  [
    'identifier_malformed',
    'policy_id',
    'a policy id with a tab is refused',
    quote({ policy_id: 'ticket\tprotection' }),
  ],
  ['currency_unknown', 'currency', 'a currency outside ISO 4217 is refused', quote({ currency: 'XYZ' })],
  ['currency_unknown', 'currency', 'a currency in small letters is refused', quote({ currency: 'usd' })],
  [
    'time_malformed',
    'accepted_at',
    'a time without an offset is refused',
    quote({ accepted_at: '2026-07-15T12:00:00' }),
  ],
  ['time_in_future', 'accepted_at', "tomorrow's row is refused", quote({ accepted_at: '2026-08-02T12:00:00Z' })],
  ['amount_malformed', 'spotPrice', 'thousands separators are refused', quote({ spotPrice: '1 000.00' })],
  ['amount_malformed', 'partnerCut', 'an exponent is refused', quote({ partnerCut: '3e0' })],
  ['amount_malformed', 'invoiceAmount', 'a currency symbol is refused', quote({ invoiceAmount: '$7.00' })],
  [
    'amount_too_precise',
    'spotPrice',
    'a tenth of a cent is refused, not rounded',
    quote(amounts('10.001', '3', '7.001')),
  ],
  [
    'amount_too_precise',
    'partnerCut',
    'half a yen is refused',
    quote({ ...amounts('1', '0.5', '0.5'), currency: 'JPY' }),
  ],
  ['amount_too_large', 'spotPrice', '10^15 is refused', quote(amounts('1000000000000000', '0', '1000000000000000'))],
  ['amount_sign', 'spotPrice', 'a quote below zero is refused', quote(amounts('-10', '-3', '-7'))],
  ['amount_sign', 'partnerCut', 'a quote with a negative cut is refused', quote(amounts('7.00', '-3.00', '10.00'))],
  ['amount_sign', 'invoiceAmount', 'a lower requote is refused', requote(KNOWN, amounts('1', '2', '-1'))],
  ['amount_sign', 'spotPrice', 'a reversal above zero is refused', reversal(KNOWN, amounts('10', '3', '7'))],
  ['amounts_unbalanced', 'spotPrice', 'a row that is a cent off is refused', quote(amounts('10.00', '3.00', '6.99'))],
  ...(
    [
      ['of 129 characters', 'x'.repeat(129)],
      ['that begins with a space', ' ORD-1'],
      ['that ends with a no-break space', 'ORD-1\u00a0'],
      ['with a tab', 'ORD\t1'],
      ['with an invisible character', 'ORD\u200b1'],
      ['of half a character', 'ORD\ud83d'],
      ['with bytes that are not UTF-8', 'ORD\ufffd'],
    ] as const
  ).map(
    ([what, order_reference]): Refused => [
      ...(['reference_malformed', 'order_reference'] as const),
      `an order reference ${what} is refused`,
      quote({ order_reference }),
    ],
  ),
  ...['2026-02-30', '2026-7-01', '1969-12-31', '2026-07-01T00:00:00Z', '٢٠٢٦-07-01'].flatMap((day): Refused[] => [
    ['date_malformed', 'cover_from', `cover from ${day} is refused`, quote({ cover_from: day })],
    ['date_malformed', 'cover_to', `cover to ${day} is refused`, quote({ cover_from: '2026-07-01', cover_to: day })],
  ]),
  ['field_missing', 'cover_from', 'cover that only ends is refused', quote({ cover_to: '2026-07-31' })],
  [
    'cover_ends_before_start',
    'cover_to',
    'cover that ends before it begins is refused',
    quote({ cover_from: '2026-07-31', cover_to: '2026-07-30' }),
  ],
  ['partner_unknown', 'partner_id', 'a partner nobody imported is refused', quote({ partner_id: 'p-9' })],
  ['partner_inactive', 'partner_id', 'a quote of a partner that has left is refused', quote({ partner_id: 'p-left' })],
  [
    'policy_unknown',
    'policy_id',
    'a policy the partner does not sell is refused',
    quote({ policy_id: 'cancellation' }),
  ],
  ['policy_unknown', 'policy_id', "another partner's policy is refused", quote({ policy_id: 'only-p-2' })],
  ['policy_inactive', 'policy_id', 'a quote of a withdrawn policy is refused', quote({ policy_id: 'withdrawn' })],
  ['conflict', 'quote_id', 'a known quote with other amounts is refused', { ...KNOWN, ...amounts('11', '3', '8') }],
  [
    'conflict',
    'quote_id',
    'a known quote at another time is refused',
    { ...KNOWN, accepted_at: '2026-07-15T12:00:01Z' },
  ],
  ['conflict', 'quote_id', 'a known quote of another enrollment is refused', { ...KNOWN, enrollment_id: 'e-other' }],
  ['conflict', 'quote_id', 'a known quote without its enrollment is refused', without(KNOWN, 'enrollment_id')],
  ['conflict', 'quote_id', 'a known quote of another order is refused', { ...KNOWN, order_reference: 'ORD-2' }],
  ['conflict', 'quote_id', 'a known quote without its order is refused', without(KNOWN, 'order_reference')],
  ['conflict', 'quote_id', 'a known quote with other cover is refused', { ...KNOWN, cover_from: '2026-07-16' }],
  ['conflict', 'quote_id', 'a known quote without its last day is refused', without(KNOWN, 'cover_to')],
  ['conflict', 'quote_id', 'a known quote of another policy is refused', { ...KNOWN, policy_id: 'parking' }],
  ['conflict', 'quote_id', 'a known quote in another currency is refused', { ...KNOWN, currency: 'EUR' }],
  ['conflict', 'requote_id', 'a known requote of another quote is refused', { ...KNOWN_REQUOTE, quote_id: 'other' }],
  ['quote_unknown', 'quote_id', 'a requote of a quote nobody knows is refused', requote(quote())],
  ['quote_unknown', 'quote_id', 'a reversal of a quote nobody knows is refused', reversal(quote())],
  [
    'quote_unknown',
    'quote_id',
    "a reversal of another partner's quote is refused",
    reversal({ ...ELSEWHERE, partner_id: 'p-1' }),
  ],
  [
    'quote_mismatch',
    'policy_id',
    "a requote under another policy than its quote's is refused",
    requote(KNOWN, { policy_id: 'parking' }),
  ],
  ['quote_mismatch', 'currency', 'a reversal in another currency is refused', reversal(KNOWN, { currency: 'EUR' })],
  [
    'requote_unknown',
    'requote_id',
    'a reversal of a requote nobody knows is refused',
    reversal(KNOWN, { requote_id: 'rq-0' }),
  ],
  [
    'quote_exceeded',
    'quote_id',
    'a reversal of more than there is is refused',
    reversal(KNOWN, amounts('-16', '-4', '-12')),
  ],
  [
    'quote_exceeded',
    'quote_id',
    'a reversal of too large a cut is refused',
    reversal(KNOWN, amounts('-10', '-10', '0')),
  ],
];

type Broken = readonly [code: RowCode, field: string, sentence: string, line: number, text: string];
const GOOD = csvLine(quote());

/** What only NDJSON can get wrong. */
const NDJSON: readonly Broken[] = [
  ['json_malformed', '', 'a line that is no JSON is refused', 2, `${ndjson(quote())}{"kind":\n`],
  ['json_malformed', '', 'an array is refused', 1, '["quote_accepted","p-1"]\n'],
  ['json_malformed', '', 'a bare number is refused', 2, '\n12.50\n'],
  ['json_malformed', '', 'null is refused', 1, 'null'],
  ['json_malformed', '', 'two objects on one line are refused', 1, ndjson(quote()).replace('\n', ndjson(quote()))],
  ['not_utf8', '', 'a line in another encoding is refused', 2, `${ndjson(quote())}\ufffd\ufffd{"kind":\n`],
  [
    'field_repeated',
    'spotPrice',
    'a field that is named twice is refused, and neither of its values taken',
    1,
    ndjson(quote()).replace('"spotPrice"', '"spotPrice":"20.00","spotPrice"'),
  ],
  ['field_unknown', 'spot_price', 'a field of another name is refused', 1, ndjson(quote({ spot_price: '10.00' }))],
  [
    'field_unknown',
    '__proto__',
    'a field named __proto__ is refused',
    1,
    `{"__proto__":{"kind":"reversal"},${ndjson(quote()).slice(1)}`,
  ],
  [
    'field_malformed',
    'spotPrice',
    'an amount that is an object is refused',
    1,
    ndjson(quote({ spotPrice: { value: 10 } })),
  ],
  ['field_malformed', 'quote_id', 'an id that is a list is refused', 1, ndjson(quote({ quote_id: ['q-1'] }))],
  ['field_malformed', 'kind', 'a field that is true is refused', 1, ndjson(quote({ kind: true }))],
  ['amount_malformed', 'spotPrice', 'a number written 1e1 is refused', 1, ndjson(quote()).replace('"10.00"', '1e1')],
  [
    'line_too_long',
    '',
    'a line of more than a million characters is refused',
    2,
    `${ndjson(quote())}{"kind":"${'x'.repeat(1_200_000)}"}\n`,
  ],
  ['trailer_invalid', '', 'a trailer without totals is refused', 2, `${ndjson(quote())}{"trailer":{}}\n`],
  ['trailer_invalid', '', 'a trailer in a row is refused', 1, `{"trailer":{"count":1},${ndjson(quote()).slice(1)}`],
  ['after_trailer', '', 'a row after the trailer is refused', 2, `{"trailer":{"count":0}}\n${ndjson(quote())}`],
];

/** What only CSV can get wrong. */
const CSV: readonly Broken[] = [
  ['header_missing', '', 'an empty file is refused', 1, ''],
  ['header_missing', '', 'a file of blank lines is refused', 1, '\n\r\n\n'],
  ['field_unknown', 'spot_price', 'a column of another name is refused', 1, `${HEADER},spot_price\n${GOOD},10.00\n`],
  ['field_unknown', 'quote_accepted', 'a file without a header is refused', 1, `${GOOD}\n`],
  ['field_repeated', 'currency', 'a column that is named twice is refused', 1, `${HEADER},currency\n${GOOD},EUR\n`],
  [
    'field_missing',
    'invoiceAmount',
    'a header without invoiceAmount is refused',
    1,
    `${HEADER.replace(',invoiceAmount', '')}\n`,
  ],
  ['column_count', '', 'a row with a column too many is refused', 3, `${HEADER}\n${GOOD}\n${csvLine(quote())},\n`],
  ['column_count', '', 'a row with a column too few is refused', 2, `${HEADER}\n${GOOD.replace(/,[^,]*$/, '')}\n`],
  ['trailer_invalid', '', 'a trailer with a word is refused', 3, `${HEADER}\n${GOOD}\nTRAILER,one\n`],
  ['trailer_invalid', '', 'a trailer with a currency twice is refused', 2, `${HEADER}\nTRAILER,0,USD=0,USD=1\n`],
  ['after_trailer', '', 'a row after the trailer is refused', 3, `${HEADER}\nTRAILER,0\n${GOOD}\n`],
  [
    'csv_malformed',
    '',
    'a quote in the middle of a field is refused, once',
    2,
    `${HEADER}\n${GOOD.replace('p-1', 'p"-"1"')}\n`,
  ],
  ['csv_malformed', '', 'text behind a closing quote is refused', 2, `${HEADER}\n${GOOD.replace('p-1', '"p"-1')}\n`],
  [
    'csv_malformed',
    '',
    'a quote that is never closed is refused where it opens',
    3,
    `${HEADER}\n${GOOD}\n"${csvLine(quote())}\n${csvLine(quote())}\n`,
  ],
  ['csv_malformed', '', 'a header with a stray quote is refused', 1, `ki"nd${HEADER.slice(4)}\n${GOOD}\n`],
  [
    'line_too_long',
    '',
    'a line of more than a million characters is refused',
    3,
    `${HEADER}\n${GOOD}\n${'x'.repeat(1_200_000)}\n`,
  ],
];

let world: World;
beforeAll(async () => {
  world = await openWorld();
  const policy = { kind: 'insurance', partner_cut_rate: '0.30' };
  const policies = [
    { ...policy, policy_id: 'ticket-protection', name: 'Ticket Protection' },
    { ...policy, policy_id: 'parking', name: 'Parking' },
  ];
  world.at('2026-07-01T00:00:00Z');
  await world.partners([
    partner({ policies: [...policies, { ...policy, policy_id: 'withdrawn', name: 'Withdrawn', active: false }] }),
    partner({ partner_id: 'p-2', policies: [...policies, { ...policy, policy_id: 'only-p-2', name: 'Only p-2' }] }),
    partner({ partner_id: 'p-left', active: false }),
  ]);
  world.at('2026-08-01T12:00:00Z');
  expect(await world.rows([KNOWN, KNOWN_REQUOTE, ELSEWHERE])).toMatchObject({ accepted: 3, rejected: 0 });
});
afterAll(() => world.end());

async function expectRefused(name: string, text: string, line: number, field: string, code: string): Promise<void> {
  const file = world.file(name, text);
  const report = await world.importFiles([file]);
  const reason = expect.stringMatching(/\S/) as string;
  expect(report).toMatchObject({ ...RECORDED_NOTHING, duplicates: 0, rejected: 1 });
  expect(report.errors).toEqual([{ file, line, field, code, reason }]);
  expect(await size(world)).toBe(3);
}

describe('from NDJSON', () => {
  for (const [code, field, sentence, row] of ROWS) {
    test(`${sentence}: ${code}`, () => expectRefused('rows.ndjson', ndjson(quote(), row), 2, field, code));
  }
  for (const [code, field, sentence, line, text] of NDJSON) {
    test(`${sentence}: ${code}`, () => expectRefused('rows.ndjson', text, line, field, code));
  }
});

describe('from CSV', () => {
  for (const [code, field, sentence, row] of ROWS) {
    test(`${sentence}: ${code}`, () => expectRefused('rows.csv', csv(quote(), row), 3, field, code));
  }
  for (const [code, field, sentence, line, text] of CSV) {
    test(`${sentence}: ${code}`, () => expectRefused('rows.csv', text, line, field, code));
  }
});

test('every code that a row can be refused with has a case here', () => {
  const cases = new Set<string>([...ROWS, ...NDJSON, ...CSV].map(([code]) => code));
  expect(ROW_CODES.length).toBeGreaterThanOrEqual(28);
  expect([...cases].sort()).toEqual([...ROW_CODES].sort());
});

test('every code that the queries find is in the list of codes', () => {
  const source = readFileSync(new URL('../../src/ledger/rows.sql.ts', import.meta.url), 'utf8');
  const found = [
    ...source.matchAll(/'((?:partner|policy|quote|requote)_(?:unknown|inactive|mismatch|exceeded)|conflict)'/g),
  ];
  const codes = new Set(found.map((match) => match[1]));
  expect(codes.size).toBe(9);
  expect(ROW_CODES).toEqual(expect.arrayContaining([...codes]));
});
