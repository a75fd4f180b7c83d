/** Every act says what a form and an approval need to know of it. */
import { describe, expect, test } from 'vitest';
import { fieldsOf, inputOfForm } from '../../src/acts/fields.ts';
import { invoiceVoid } from '../../src/acts/invoice/void.ts';
import { paymentApply } from '../../src/acts/payment/apply.ts';
import { ACTS } from '../../src/acts/registry.ts';
import { readInput } from '../../src/acts/run.ts';

describe('every act', () => {
  test('describes each field of its input in words', () => {
    const fields = [...ACTS.values()].flatMap(({ input }) => fieldsOf(input));
    expect(fields.length).toBeGreaterThan(20);
    for (const { label, help } of fields) {
      expect(label).toMatch(/^[A-Z]/);
      expect(help).toMatch(/^[A-Z0-9].*\.$/);
    }
  });

  test('has a name of noun and verb that no other has, and a title', () => {
    for (const [name, { title }] of ACTS) {
      expect(name).toMatch(/^[a-z_]+\.[a-z_]+$/);
      expect(title).toMatch(/^[A-Z]/);
    }
  });
});

describe('a form', () => {
  test('leaves out what is empty, and reads numbers, flags and several values', () => {
    const form = new URLSearchParams('paymentId=12&numbers=INV-1&numbers=INV-2&numbers=&amount=');
    expect(inputOfForm(paymentApply.input, form)).toEqual({ paymentId: 12, numbers: ['INV-1', 'INV-2'] });
    const flagged = new URLSearchParams('number=INV-1&reason=wrong+price&onLatestDate=on&unknown=1');
    expect(inputOfForm(invoiceVoid.input, flagged)).toEqual({
      number: 'INV-1',
      reason: 'wrong price',
      onLatestDate: true,
    });
  });

  test('is refused by the name of the field that cannot be read', () => {
    expect(() => readInput(invoiceVoid, { number: 'INV-1', reason: ' ' })).toThrow(
      "--reason ' ' must be one line of 1 to 500 characters.",
    );
    expect(() => readInput(invoiceVoid, { reason: 'wrong price' })).toThrow("--number '' is missing.");
    expect(() => readInput(paymentApply, { paymentId: 'twelve', numbers: ['INV-1'] })).toThrow('--payment-id');
  });
});
