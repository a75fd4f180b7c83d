/** What refusals and findings say to do is what an act does, and a command that can be copied. */
import { expect, test } from 'vitest';
import type { Act } from '../../src/acts/act.ts';
import { commandText } from '../../src/acts/command.ts';
import { fieldsOf } from '../../src/acts/fields.ts';
import { paymentApply } from '../../src/acts/payment/apply.ts';
import { ACTS } from '../../src/acts/registry.ts';
import { refuse } from '../../src/errors/refusals.ts';
import type { Remedy } from '../../src/remedy.ts';

const number = 'INV-2026-000003';
const VOID = { number, voided_on: '2026-10-01', purpose: 'month', month: '2026-09', replaced_by: null };

/** What is wrong with a remedy: its act is unknown, or has no such field. */
function problemOf({ action, input }: Remedy): string | undefined {
  const act = ACTS.get(action);
  if (act === undefined) return `there is no act ${action}`;
  const names = new Set(fieldsOf(act.input).map(({ name }) => name));
  return Object.keys(input).find((name) => !names.has(name));
}

test.each([
  [refuse('document_on_hold', { number, since: '2026-10-01', reason: '' }), `reckoner invoice release ${number}`],
  [refuse('document_void', VOID), `reckoner invoice rerun ${number}`],
  [
    refuse('invoice_disputed', { number, since: '2026-10-01', amount: '7.00 USD' }),
    `reckoner dispute close ${number} --reason REASON`,
  ],
])('$code', ({ message, remedies }, command) => {
  expect(message).not.toContain('reckoner');
  expect(remedies.map(problemOf)).toEqual([undefined]);
  const [{ action, input } = { action: '', input: {} }] = remedies;
  expect(commandText(ACTS.get(action) as Act, input)).toBe(command);
});

test('a field that takes several values, and what must be given', () => {
  expect(commandText(paymentApply, { paymentId: '7', numbers: ['INV-1', 'INV-2'], creditNotes: ['CN-1'] })).toBe(
    'reckoner payment apply 7 --invoice INV-1 --invoice INV-2 --credit CN-1',
  );
  expect(commandText(paymentApply, {})).toBe('reckoner payment apply ID --invoice NUMBER');
});
