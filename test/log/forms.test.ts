/** The forms of facts stand at the head of the rules, where verifiers read them. */
import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { CHECKS_SQL } from '../../src/audit/rules.ts';
import { formLines } from '../../src/log/forms.ts';

test('the forms in the rules are those that the program writes', () => {
  const text = readFileSync(CHECKS_SQL, 'utf8');
  const begins = text.indexOf('-- FORM ');
  const ends = text.lastIndexOf('\n-- FORM ');
  const after = text.indexOf('\n', ends + 1) + 1;
  const forms = `${formLines().join('\n')}\n`;
  if (process.env['UPDATE_FORMS']) writeFileSync(CHECKS_SQL, text.slice(0, begins) + forms + text.slice(after));
  else expect(text.slice(begins, after)).toBe(forms);
});
