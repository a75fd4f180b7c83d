/** Identifiers: 1 to 128 of A-Z a-z 0-9 . _ : -, starting with a letter or digit; in rows and in partners.json alike. */
import { describe, expect, test } from 'vitest';
import { ROW_FIELDS, type RowTexts, rowProblem } from '../../src/ledger/row.ts';
import { IDENTIFIER } from '../../src/partners/file.ts';
import { quote, requote, reversal } from '../support/world.ts';

const GOOD = ['q', '7', 'Q-1', 'a.b_c:d-e', '0', 'x'.repeat(128), 'INV:2026-07', '1e5', 'NULL', 'constructor'];
const BAD: readonly [id: string, why: string][] = [
  ['x'.repeat(129), 'has 129 characters'],
  ['.hidden', 'starts with a dot'],
  ['-1', 'starts with a hyphen'],
  ['_id', 'starts with an underscore'],
  [':id', 'starts with a colon'],
  [' q-1', 'starts with a space'],
  ['q-1 ', 'ends with a space'],
  ['q 1', 'has a space inside'],
  ['q-1\n', 'ends with a line break'],
  ['q\t1', 'holds a tab'],
  ['q\u00001', 'holds a NUL'],
  ['q/1', 'holds a slash'],
  ['q\\N', 'holds a backslash'],
  ['q,1', 'holds a comma'],
  ['q"1', 'holds a quotation mark'],
  ["q';DROP TABLE ledger_rows;--", 'holds SQL'],
  ['=cmd|A1', 'is a spreadsheet formula'],
  ['é', 'holds an accent'],
  ['q１', 'holds a full-width digit'],
  ['𝟏', 'holds a mathematical digit'],
  ['q\u200B1', 'holds a zero-width space'],
  ['\uFEFFq1', 'starts with a byte order mark'],
  ['\u202Eq1', 'holds a change of direction'],
  ['\\N', "is COPY's own word for nothing"],
  ['__proto__', 'is a word of JavaScript that starts with an underscore'],
];
const FIELDS = ['partner_id', 'quote_id', 'requote_id', 'reversal_id', 'enrollment_id', 'policy_id'];
const NOW = Date.parse('2026-08-01T00:00:00Z');

/** A row that has the field, as texts. */
function rowWith(field: string, id: string): RowTexts {
  const row = field === 'reversal_id' ? reversal(quote()) : field === 'requote_id' ? requote(quote()) : quote();
  const texts = Object.fromEntries(ROW_FIELDS.map((name) => [name, String(row[name] ?? '')])) as RowTexts;
  return { ...texts, [field]: id };
}

describe('an identifier', () => {
  for (const id of GOOD) {
    test(`is accepted in every field: ${id.slice(0, 24)} (${id.length})`, () => {
      for (const field of FIELDS) expect(rowProblem(rowWith(field, id), NOW)).toBeUndefined();
      expect(IDENTIFIER.test(id)).toBe(true);
    });
  }

  for (const [id, why] of BAD) {
    test(`that ${why} is refused in every field`, () => {
      for (const field of FIELDS) {
        expect(rowProblem(rowWith(field, id), NOW)).toMatchObject({ field, code: 'identifier_malformed' });
      }
      expect(IDENTIFIER.test(id)).toBe(false);
    });
  }
});
