/** JSON with exact numbers: whatever is written as a number is read as that text, and nothing else is touched. */

import { describe, expect, test } from 'vitest';
import {
  ExactNumber,
  halfCharacters,
  parseExactFields,
  parseExactJson,
  parseExactJsonOfOthers,
  repeatedName,
} from '../src/json.ts';
import { cpuMilliseconds } from './support/cpu.ts';
import fc from './support/property.ts';

/** A JSON text, and what it must be read as. */
interface Written {
  readonly json: string;
  readonly value: unknown;
}

const space = fc.constantFrom('', '', ' ', '\n', '\t', '\r\n  ');
const number = fc
  .tuple(
    fc.constantFrom('', '-'),
    fc.oneof(fc.constant('0'), fc.stringMatching(/^[1-9]\d{0,30}$/)),
    fc.oneof(fc.constant(''), fc.stringMatching(/^\.\d{1,30}$/)),
    fc.oneof(
      { weight: 4, arbitrary: fc.constant('') },
      { weight: 1, arbitrary: fc.stringMatching(/^[eE][+-]?\d{1,4}$/) },
    ),
  )
  .map((parts): Written => ({ json: parts.join(''), value: parts.join('') }));
/** Strings that look like what surrounds them: digits, quotes, backslashes, line separators, halves of characters. */
const string = fc
  .string({ unit: fc.constantFrom(...'0123456789.-eE"\\{}[]:, \n\0é', '\u2028', '😀', '\ud800'), maxLength: 12 })
  .map((value): Written => ({ json: JSON.stringify(value), value }));
const word = fc.constantFrom<Written>(
  { json: 'true', value: true },
  { json: 'false', value: false },
  { json: 'null', value: null },
);

const { written } = fc.letrec<{ written: Written }>((tie) => ({
  written: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    number,
    string,
    word,
    fc.tuple(space, fc.array(tie('written'), { maxLength: 4 })).map(
      ([gap, items]): Written => ({
        json: `[${gap}${items.map((item) => item.json).join(`${gap},`)}${gap}]`,
        value: items.map((item) => item.value),
      }),
    ),
    fc
      .tuple(space, fc.uniqueArray(fc.tuple(string, tie('written')), { maxLength: 4, selector: ([key]) => key.json }))
      .map(
        ([gap, members]): Written => ({
          json: `{${gap}${members.map(([key, item]) => `${key.json}${gap}:${gap}${item.json}`).join(`,${gap}`)}}`,
          value: Object.fromEntries(members.map(([key, item]) => [key.value as string, item.value])),
        }),
      ),
  ),
}));

describe('reading JSON exactly', () => {
  test('gives every number as its own text and everything else as JSON.parse does', () => {
    fc.assert(
      fc.property(written, ({ json, value }) => {
        expect(parseExactJson(json)).toEqual(value);
      }),
      { numRuns: 1000 },
    );
  });

  test('refuses exactly what JSON.parse refuses', () => {
    const jsonLike = fc.string({ unit: fc.constantFrom(...'[]{}",:\\0123456789.-+eE truefalsn'), maxLength: 16 });
    fc.assert(
      fc.property(jsonLike, (text) => {
        const outcome = (parse: (text: string) => unknown) => {
          try {
            parse(text);
            return 'read';
          } catch (error) {
            return (error as Error).name;
          }
        };
        expect(outcome(parseExactJson)).toBe(outcome(JSON.parse));
      }),
      { numRuns: 2000 },
    );
  });

  test.each([
    ['0.1', '0.1'],
    ['0.30000000000000004', '0.30000000000000004'],
    ['9999999999999.99', '9999999999999.99'],
    ['9007199254740993', '9007199254740993'],
    ['1357.850', '1357.850'],
    ['-0', '-0'],
    ['1e2', '1e2'],
    ['1E400', '1E400'],
    ['0.000000000000000000000000000001', '0.000000000000000000000000000001'],
  ])('keeps %s as it is written', (json, text) => {
    expect(parseExactJson(json)).toBe(text);
    expect(parseExactJson(`{"amount":${json}}`)).toEqual({ amount: text });
  });

  test('takes no digit out of a string, however it is escaped', () => {
    expect(parseExactJson(String.raw`{"a\"1":"2\\","3":"\\\"4","\u0035":"\u0036"}`)).toEqual({
      'a"1': '2\\',
      '3': '\\"4',
      '5': '6',
    });
  });

  test('takes __proto__ for an ordinary name', () => {
    const value = parseExactJson('{"__proto__":{"polluted":1}}') as Record<string, unknown>;
    expect(Object.keys(value)).toEqual(['__proto__']);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  test('reads a string of two million characters and a nest of ten thousand lists', () => {
    const long = 'x1"'.repeat(700_000);
    expect(parseExactJson(JSON.stringify({ long }))).toEqual({ long });
    let nest = parseExactJson(`${'['.repeat(10_000)}1${']'.repeat(10_000)}`);
    while (Array.isArray(nest)) nest = nest[0];
    expect(nest).toBe('1');
  });
});

describe('a name that stands twice in one object', () => {
  test.each([
    ['{"a":1,"a":2}', 'a'],
    ['{"a":1, "b":{"c":[{"d":1,"d":1}]} }', 'd'],
    ['{"a":{"a":1},"b":1,"b" :2}', 'b'],
    ['{"a":1,"\\u0061":2}', 'a'],
    ['{"":1,"":2}', ''],
    ['{"__proto__":1,"__proto__":2}', '__proto__'],
    ['{"constructor":1,"constructor":2}', 'constructor'],
    ['[{"a\\"b":1,"a\\"b":2}]', 'a"b'],
  ])('is found in %s', (json, name) => {
    expect(() => JSON.parse(json) as unknown).not.toThrow();
    expect(repeatedName(json)).toBe(name);
  });

  test.each([
    '{"a":"a","b":["a","a"],"c":{"a":1}}',
    '[{"a":1},{"a":1}]',
    '{"a":"\\"a\\":","b":"{\\"b\\":1"}',
    '{"a":"x\\\\","b":1}',
    '"a"',
    '1',
  ])('is none in %s', (json) => {
    expect(() => JSON.parse(json) as unknown).not.toThrow();
    expect(repeatedName(json)).toBeUndefined();
  });

  test('is none in whatever was written from an object', () => {
    fc.assert(
      fc.property(written, ({ json }) => {
        expect(repeatedName(json)).toBeUndefined();
      }),
      { numRuns: 1000 },
    );
  });

  test('is found however the names are escaped, and wherever they stand', () => {
    const other = fc.tuple(string, written).map(([key, item]) => `${key.json}:${item.json}`);
    fc.assert(
      fc.property(string, fc.array(other, { maxLength: 3 }), written, ({ value }, others, item) => {
        const name = value as string;
        const escaped = [...Array(name.length).keys()].map(
          (at) => `\\u${name.charCodeAt(at).toString(16).padStart(4, '0')}`,
        );
        const json = `[{${[`"${escaped.join('')}":1`, ...others, `${JSON.stringify(name)}:${item.json}`].join(',')}}]`;
        expect(repeatedName(json)).toBeDefined();
      }),
      { numRuns: 500 },
    );
  });
});

test('half a character is found wherever it stands, and a whole one is none', () => {
  const value = { name: 'a\ud800b', whole: '😀', list: ['ok', { deep: '\udc00' }], 7: null, yes: true };
  expect(halfCharacters(value)).toEqual(['name', 'list.1.deep']);
  expect(halfCharacters('\ud83d')).toEqual(['']);
  expect(halfCharacters('\ud83d\ude00')).toEqual([]);
});

describe('reading the fields of a request', () => {
  test('tells a number from every string, also from one that is written like its mark', () => {
    const text = String.raw`{"a": 5, "b": "5", "c": "\u0000number:5", "d": "\u0000string:x", "\u0065": "\"", "f": "\\"}`;
    expect(parseExactFields(text)).toEqual({
      ...{ a: new ExactNumber('5'), b: '5', c: '\u0000number:5', d: '\u0000string:x', e: '"', f: '\\' },
    });
  });

  test('does not begin with a text of more fields or items than any call takes', () => {
    const fields = (count: number) => `{${Array.from({ length: count }, (_, nth) => `"k${nth}":1`).join(',')}}`;
    expect(() => parseExactFields(fields(501))).not.toThrow();
    for (const text of [fields(502), `{"a":[${'{},'.repeat(20_000)}1]}`]) {
      expect(() => parseExactFields(text)).toThrow('it has more than 500 commas');
    }
  });
});

describe('text that would take the program long, or that the database cannot hold', () => {
  test('is refused: brackets in each other, and numbers of many digits', () => {
    const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;
    for (const read of [parseExactJsonOfOthers, parseExactFields]) {
      expect(() => read(nested(100))).not.toThrow();
      expect(() => read(`{"a": "${nested(5_000)}"}`)).not.toThrow();
      const taken = cpuMilliseconds(() => {
        for (const text of [nested(101), nested(200_000), `{"a":${nested(30_000)}}`]) {
          expect(() => read(text)).toThrow('nested more than 100 levels deep');
        }
      });
      expect(taken).toBeLessThan(200);
      for (const number of ['9'.repeat(500_000), '1e20000', `0.${'1'.repeat(1000)}`]) {
        expect(() => read(`{"a": ${number}}`)).toThrow('a number has more than 1000 digits');
      }
    }
  });
});
