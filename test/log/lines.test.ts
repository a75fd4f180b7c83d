/** How values are written to the lines of the log, awkward ones too. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { recordEvent } from '../../src/people/audit-events.ts';
import { checkpoint } from '../audit/books.ts';
import { linesTo } from '../support/log-lines.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());

const mapOf = async (value: unknown) =>
  (await world.sql<{ map: string }>('SELECT log_map($1::jsonb) AS map', [JSON.stringify(value)]))[0]?.map;

const lines = () => world.database.reading((tx) => linesTo(tx, 1_000_000));

test.each<[what: string, value: unknown, written: string]>([
  ['a flat object, in the order of its paths', { b: 'x', a: 1, B: true }, 'B:true&a:1&b=x'],
  ['objects and lists within it', { a: { b: [1, 'x', null] }, c: [] }, 'a.b.0:1&a.b.1=x&a.b.2:null&c:[]'],
  ['a text that looks like another value', { a: 'true', b: '1', c: 'null', d: '{}' }, 'a=true&b=1&c=null&d={}'],
  ['the signs of the form itself, in keys', { 'a.b=c:d&e%': 1 }, 'a%2Eb%3Dc%3Ad%26e%25:1'],
  ['the signs of the form itself, in texts', { a: 'b=1&c:2%26' }, 'a=b=1%26c:2%2526'],
  ['an empty text, an empty object and nothing', { a: '', b: {}, c: null }, 'a=&b:{}&c:null'],
  ['an amount as it was given', { a: 12.5, b: 1.5, c: -0.25 }, 'a:12.5&b:1.5&c:-0.25'],
  ['a bare text', 'x', '=x'],
  ['a bare list', [], ':[]'],
  [
    'more than ten items, in the order of their paths as texts',
    Array.from({ length: 11 }, (_, at) => at),
    '0:0&1:1&10:10&2:2&3:3&4:4&5:5&6:6&7:7&8:8&9:9',
  ],
  ['line ends and tabs, which the line escapes', { a: 'one\ntwo\tthree\\' }, 'a=one\ntwo\tthree\\'],
  ['letters of any alphabet', { Größe: '＝𝟙' }, 'Größe=＝𝟙'],
])('a map of %s', async (_, value, written) => {
  expect(await mapOf(value)).toBe(written);
});

test('the line of a fact stays one line of its columns, whatever its texts are', async () => {
  const reason = 'one\ntwo\r\n\tthree\\N \\n % & = :';
  await world.database.transaction((tx) =>
    recordEvent(tx, world.actor, {
      ...{ action: 'test.write', subject: 'a\tb\\', details: { reason, '\n': '\\N' }, now: '2026-08-01T10:00:00.25Z' },
    }),
  );
  const line = (await lines()).at(-1) ?? '';
  expect(line).not.toMatch(/[\n\r]/);
  const [kind, , , at, action, subject, details, claimedBy] = line.split('\t');
  expect([kind, at, action, subject, claimedBy]).toEqual([
    ...[
      'audit_events',
      '2026-08-01T10:00:00.250000Z',
      'test.write',
      'a\\tb\\\\',
      expect.stringMatching(/^#[A-Za-z0-9+/]{43}=$/),
    ],
  ]);
  expect(details).toBe('\\n=\\\\N&reason=one\\ntwo\\r\\n\\tthree\\\\N \\\\n %25 %26 = :');
});

test('amounts, times, NULL and the first instants of months are written in one form', async () => {
  const zones = ['America/New_York', 'Pacific/Kiritimati', 'Asia/Kathmandu'];
  await world.partners(zones.map((time_zone, at) => partner({ partner_id: `p-${at + 1}`, time_zone })));
  await world.rows([
    quote({ quote_id: 'q-1', spotPrice: '10.00', partnerCut: '0', invoiceAmount: '10.00', enrollment_id: undefined }),
    quote({
      ...{ quote_id: 'q-2', partner_id: 'p-2', accepted_at: '2026-07-15T12:00:00.123Z' },
      ...{ order_reference: '#1 \\N', cover_from: '2026-07-15', cover_to: '2099-12-31' },
    }),
    quote({ quote_id: 'q-3', partner_id: 'p-3', accepted_at: '2026-07-31T18:00:00Z' }),
  ]);
  await checkpoint(world);
  const found = (await lines()).map((line) => line.split('\t'));
  const rows = found.filter(([kind]) => kind === 'ledger_rows');
  expect(rows.map((row) => [row[4], ...row.slice(5, 7), ...row.slice(10, 17), row[19]])).toEqual([
    ['q-1', '\\N', '\\N', '2026-07-15T12:00:00.000000Z', '10', '0', '10', ...['\\N', '\\N', '\\N'], '2026-07'],
    [
      ...['q-2', '\\N', '\\N', '2026-07-15T12:00:00.123000Z', '10', '3', '7'],
      ...['#1 \\\\N', '2026-07-15', '2099-12-31', '2026-07'],
    ],
    ['q-3', '\\N', '\\N', '2026-07-31T18:00:00.000000Z', '10', '3', '7', ...['\\N', '\\N', '\\N'], '2026-07'],
  ]);
  // With the month after, so that every row is between two of them.
  expect(found.filter(([kind]) => kind === 'month_zones').map((line) => line.slice(2))).toEqual([
    ['America/New_York', '2026-07', '2026-07-01T04:00:00.000000Z'],
    ['America/New_York', '2026-08', '2026-08-01T04:00:00.000000Z'],
    ['Asia/Kathmandu', '2026-07', '2026-06-30T18:15:00.000000Z'],
    ['Asia/Kathmandu', '2026-08', '2026-07-31T18:15:00.000000Z'],
    ['Pacific/Kiritimati', '2026-07', '2026-06-30T10:00:00.000000Z'],
    ['Pacific/Kiritimati', '2026-08', '2026-07-31T10:00:00.000000Z'],
  ]);
});

test('the first instants of a month are recorded once, and those of a new month with its first row', async () => {
  const count = async () => Number((await world.sql<{ count: string }>('SELECT count(*) FROM month_zones'))[0]?.count);
  const before = await count();
  await world.rows([quote({ quote_id: 'q-4' })]);
  await checkpoint(world);
  expect(await count()).toBe(before);
  await world.rows([quote({ quote_id: 'q-5', accepted_at: '2026-08-01T08:00:00Z' })]);
  await checkpoint(world);
  expect(await count()).toBe(before + 1);
});
