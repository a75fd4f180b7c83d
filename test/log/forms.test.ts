/** The forms of facts, which the program and the verifiers read at the head of the rules. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { LOG_FORMS } from '../../src/log/forms.ts';
import { MINOR_DIGITS } from '../../src/money.ts';
import { CHECKS_SQL } from '../../src/package.ts';

const TYPE = /^(text|int|amount|rate|number|day|time|flag|hex|map|personal)(@[a-z_]+)?$/;

test('each kind of fact has one form, and ledger rows come first', () => {
  const lines = readFileSync(CHECKS_SQL, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('-- FORM '));
  const kinds = LOG_FORMS.map(({ kind }) => kind);
  expect(kinds.length).toBeGreaterThan(90);
  expect(kinds).toHaveLength(lines.length);
  expect(new Set(kinds).size).toBe(kinds.length);
  expect(kinds[0]).toBe('ledger_rows');
});

test('each column of a form has a name and a type that verifiers can read', () => {
  for (const { kind, columns } of LOG_FORMS) {
    expect(
      columns.map(({ name }) => name).filter((name) => !/^[a-z][a-z0-9_]*$/.test(name)),
      kind,
    ).toEqual([]);
    expect(
      columns.map(({ type }) => type).filter((type) => !TYPE.test(type)),
      kind,
    ).toEqual([]);
  }
});

test('the currencies that the verifiers read have the minor digits of the program', () => {
  const read = [...readFileSync(CHECKS_SQL, 'utf8').matchAll(/^-- CURRENCIES (\d) (.+)$/gm)].flatMap(
    ([, digits, codes = '']) => codes.split(' ').map((code) => [code, Number(digits)]),
  );
  expect(new Map(read as [string, number][])).toEqual(MINOR_DIGITS);
});
