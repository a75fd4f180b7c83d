/** Creditor references (ISO 11649): a right one is certain, and a mistyped one names nothing at all. */
import { describe, expect, test } from 'vitest';
import {
  creditorReferenceOf,
  inFours,
  JOINT_LATER,
  jointReferenceOf,
  readJointBody,
} from '../../src/documents/creditor-reference.ts';
import { CarriedNumbers, findJoint, findReferences } from '../../src/payments/reference.ts';
import { seeded } from '../support/random.ts';

const number = (sequence: number, year = 2026) => `INV-${year}-${String(sequence).padStart(6, '0')}`;
const of = (written: string): string => creditorReferenceOf(written) as string;
const found = (text: string) => findReferences([{ field: 'text', text }]);
const named = (text: string) =>
  found(text).references.map((each) => (each.guess === undefined ? each.number : `${each.number}?`));
const NOTHING = { references: [], partial: [], short: [] };

/** Each wrong digit, and each two neighbors swapped, of which one at least is a digit. */
function mistyped(text: string): string[] {
  const wrong: string[] = [];
  for (const [at, character] of [...text].entries()) {
    if (!/\d/.test(character)) continue;
    for (const digit of '0123456789') {
      if (digit !== character) wrong.push(`${text.slice(0, at)}${digit}${text.slice(at + 1)}`);
    }
    const next = text.charAt(at + 1);
    if (/\d/.test(next) && next !== character)
      wrong.push(`${text.slice(0, at)}${next}${character}${text.slice(at + 2)}`);
  }
  return wrong;
}

describe('a reference', () => {
  test('has the check digits of the standard', () => {
    // The example of ISO 11649.
    expect(of('539007547034')).toBe('RF18539007547034');
    expect(of('INV-2026-000012')).toBe('RF88INV2026000012');
    expect(inFours(of('INV-2026-000012'))).toBe('RF88 INV2 0260 0001 2');
  });

  test('leads back to its number, for every number of three years', () => {
    let read = 0;
    for (const year of [2026, 2027, 2099]) {
      for (let sequence = 1; sequence <= 1_200_000; sequence += sequence < 20_000 ? 1 : 4_999) {
        const reference = of(number(sequence, year));
        expect(named(reference)).toEqual([number(sequence, year)]);
        read += 1;
      }
    }
    expect(read).toBeGreaterThan(60_000);
  });

  test('is not made of a number that does not fit, or whose letters would be lost', () => {
    expect(creditorReferenceOf('A'.repeat(22))).toBeUndefined();
    expect(creditorReferenceOf('Ä-12')).toBeUndefined();
    expect(creditorReferenceOf('-/-')).toBeUndefined();
    expect(creditorReferenceOf('a/12')).toBe(creditorReferenceOf('A-12'));
  });
});

describe('in a text', () => {
  const reference = of(number(12));
  const cases: readonly (readonly [written: string, ...numbers: string[]])[] = [
    ['RF88INV2026000012', number(12)],
    ['rf88inv2026000012', number(12)],
    ['RF88 INV2 0260 0001 2', number(12)],
    ['PAID RF88 INV2 0260 0001 2 THANKS', number(12)],
    ['RF88 INV-2026-000012', number(12)],
    ['/EREF+RF88INV2026000012 SVWZ+JULY', number(12)],
    ['REFRF88INV2026000012', number(12)],
    ['RF88INV2026 000012', number(12)],
    ['RF88INV2026000012 INV-2026-000013', number(12), number(13)],
    ['RF88INV2026000013'],
    ['RF88INV2O26OOOO12'],
    ['RF881NV2026000012'],
    ['RF88 INV2 0260 0001 3 INV-2026-000014', number(14)],
    ['INV-2026-000012 RF88INV2026000013', number(12)],
    // No creditor reference.
    ['TRF20 INV 2026 000012', number(12)],
    ['RF12 JULY INV-2026-000012', number(12)],
    ['PERF INV-2026-000012', number(12)],
    ['RF18 5390 0754 7034'],
  ];
  test.each(cases)('%s', (written, ...numbers) => expect(named(written)).toEqual(numbers));

  test('is shown as it was written', () => {
    expect(found('paid rf88 inv2 0260 0001 2').references).toMatchObject([
      { field: 'text', found: 'rf88 inv2 0260 0001 2' },
    ]);
    expect(of(number(12))).toBe(reference);
  });

  test('with one wrong digit or two swapped digits names nothing, in a sample of numbers', () => {
    let tried = 0;
    for (const sequence of [1, 9, 10, 12, 99, 123, 5_432, 98_765, 100_000, 123_456, 999_999, 1_000_000, 7_654_321]) {
      const right = of(number(sequence));
      for (const wrong of mistyped(right)) {
        for (const written of [wrong, inFours(wrong), `PAY ${wrong} THANKS`]) {
          expect([written, found(written)]).toEqual([written, NOTHING]);
          tried += 1;
        }
      }
    }
    expect(tried).toBeGreaterThan(4_000);
  });

  test('with a letter and its neighbor swapped names no other number', () => {
    for (const [at, character] of [...reference].slice(0, -1).entries()) {
      const swapped = `${reference.slice(0, at)}${reference.charAt(at + 1)}${character}${reference.slice(at + 2)}`;
      expect(named(swapped).filter((each) => each !== number(12))).toEqual([]);
    }
  });
});

describe('of the previous system', () => {
  const carried = new CarriedNumbers([
    { written: 'AB/10233', number: 'AB/10233' },
    { written: 'AB-10234', number: 'AB-10234' },
    { written: '10235', number: '10235' },
  ]);
  const names = (text: string) => carried.find([{ field: 'text', text }]).map((each) => [each.number, each.guess]);

  test('a number is certain by its reference, however short', () => {
    expect(names(of('AB/10233'))).toEqual([['AB/10233', undefined]]);
    expect(names(`X ${inFours(of('10235'))}`)).toEqual([['10235', undefined]]);
    expect(names('paid 10235')).toEqual([['10235', expect.any(String)]]);
  });

  test('a mistyped reference names no other number', () => {
    for (const written of ['AB/10233', '10235']) {
      for (const wrong of mistyped(of(written))) {
        expect(names(wrong)).toEqual([]);
        expect(names(inFours(wrong))).toEqual([]);
      }
    }
  });
});

describe('of several invoices', () => {
  const joint = (first: number, ...later: number[]) => jointReferenceOf(first, later) as string;
  const read = (text: string) => findJoint([{ field: 'text', text }]).map(({ body }) => readJointBody(body));
  const random = seeded().random;
  const samples = Array.from({ length: 300 }, (_, at): [number, number[]] => [
    1 + Math.floor(random() * 36 ** (1 + (at % 5))),
    Array.from({ length: JOINT_LATER }, (_each, place) => place + 1).filter(() => random() < (at % 10) / 10),
  ]);

  test('leads back to its invoices, in at most 31 characters as printed, however it is split', () => {
    for (const [first, later] of samples) {
      const reference = jointReferenceOf(first, later);
      if (first >= 36 ** 5) continue;
      expect(inFours(reference as string).length).toBeLessThanOrEqual(31);
      const at = 7 + Math.floor(random() * ((reference as string).length - 7));
      for (const written of [
        reference,
        inFours(reference as string),
        `/EREF+${reference} SVWZ+JULY`,
        `PAID ${inFours(reference as string).toLowerCase()} FROM US`,
        `${reference?.slice(0, at)} ${reference?.slice(at)}`,
        `${inFours(reference as string)} INV-2026-000012`,
      ])
        expect([written, read(written as string)]).toEqual([written, [{ first, later }]]);
    }
  });

  test('one wrong digit or two swapped digits name nothing', () => {
    let tried = 0;
    for (const [first, later] of samples.slice(0, 60)) {
      for (const wrong of mistyped(joint(first, ...later))) {
        for (const written of [wrong, inFours(wrong)]) {
          expect([written, read(written)]).toEqual([written, []]);
          tried += 1;
        }
      }
    }
    expect(tried).toBeGreaterThan(1_000);
  });

  test('too many, or too late a document, get none', () => {
    expect(jointReferenceOf(1, [JOINT_LATER + 1])).toBeUndefined();
    expect(jointReferenceOf(36 ** 5, [1])).toBeUndefined();
    expect(joint(36 ** 5 - 1, 1)).toHaveLength(13);
  });
});
