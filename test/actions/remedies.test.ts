/** What refusals and findings say to do is what an action does, and a command that can be copied. */
import ts from 'typescript-api';
import { expect, test } from 'vitest';
import type { Action } from '../../src/actions/action.ts';
import { commandText } from '../../src/actions/command.ts';
import { fieldsOf } from '../../src/actions/fields.ts';
import { ACTIONS } from '../../src/actions/loaded.ts';
import { paymentApply } from '../../src/actions/payment/apply.ts';
import { refuse } from '../../src/errors/refusals.ts';
import { remediesInSource, SOURCES, sourceOf, textOf } from '../support/remedies-in-source.ts';

const number = 'INV-2026-000003';
const VOID = { number, voided_on: '2026-10-01', purpose: 'month', month: '2026-09', replaced_by: null };

test('every remedy of a refusal, a finding or a report is an action that exists, and its input has these fields', () => {
  const { actions } = remediesInSource();
  expect(actions.length).toBeGreaterThan(60);
  const wrong = actions.flatMap(({ file, action: name, fields }) => {
    const action = ACTIONS.get(name);
    if (action === undefined) return [`${file}: there is no action ${name}`];
    const known = new Set(fieldsOf(action.input).map(({ name }) => name));
    return fields.filter((field) => !known.has(field)).map((field) => `${file}: ${name} has no ${field}`);
  });
  expect(wrong).toEqual([]);
});

test('no sentence of the program holds a command: remedies do', () => {
  // What only a terminal shows, and text of the documentation.
  const free = /^src\/(?:cli|demo)\//;
  const written: string[] = [];
  let inspected = 0;
  for (const file of SOURCES.filter((each) => !free.test(each))) {
    const visit = (node: ts.Node): void => {
      const text = textOf(node);
      if (text !== undefined) inspected += 1;
      // The help of an action's command is the command line's.
      const isHelp =
        ts.isPropertyAssignment(node.parent ?? node) &&
        /^help$/.test((node.parent as ts.PropertyAssignment).name?.getText() ?? '');
      if (text !== undefined && !isHelp && /'reckoner (?!lease)/.test(text)) written.push(`${file}: ${text}`);
      ts.forEachChild(node, visit);
    };
    visit(sourceOf(file));
  }
  expect(inspected).toBeGreaterThan(5000);
  expect(written).toEqual([]);
});

test.each([
  [refuse('document_on_hold', { number, since: '2026-10-01', reason: '' }), `reckoner invoice release ${number}`],
  [refuse('document_void', VOID), `reckoner invoice rerun ${number}`],
  [
    refuse('invoice_disputed', { number, since: '2026-10-01', amount: '7.00 USD' }),
    `reckoner dispute close ${number} --reason REASON`,
  ],
])('$code', ({ message, remedies }, command) => {
  expect(message).not.toContain('reckoner');
  const [remedy] = remedies;
  if (remedy === undefined || !('action' in remedy)) throw new Error('there is no action');
  expect(commandText(ACTIONS.get(remedy.action) as Action, remedy.input)).toBe(command);
});

test('a field that takes several values, and what must be given', () => {
  expect(commandText(paymentApply, { paymentId: '7', numbers: ['INV-1', 'INV-2'], creditNotes: ['CN-1'] })).toBe(
    'reckoner payment apply 7 --invoice INV-1 --invoice INV-2 --credit CN-1',
  );
  expect(commandText(paymentApply, {})).toBe('reckoner payment apply ID --invoice NUMBER');
  expect(commandText(paymentApply, { paymentId: '7', numbers: ['INV 1 "$x"'] })).toBe(
    'reckoner payment apply 7 --invoice "INV 1 \\"\\$x\\""',
  );
});
