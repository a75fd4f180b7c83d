/** The words for fields that people read, in place of the paths that files, JSON and events have. */
import { expect, test } from 'vitest';
import { SECTIONS } from '../src/config/settings.ts';
import { refuse } from '../src/errors/refusals.ts';
import { fieldWords } from '../src/field-names.ts';
import { labelOf } from '../src/partners/change.ts';
import { changeText } from '../src/people/field-changes.ts';

test.each([
  ['address.line1', 'Address, line 1'],
  ['invoicing_contact.email', 'E-mail of the contact'],
  ['payment terms end of month', 'Due at the end of the month'],
  ['policies.parking.price.minimum', 'Minimum price (parking)'],
  ['policies.p.1.partner_cut_rate', "Partner's cut (p.1)"],
  ['holds.times', 'Holds, times the largest invoice'],
  ['holds.above.USD', 'Holds, above an amount, USD'],
  ['reminder_minimum.*', 'Smallest reminder, any other currency'],
  ['instructions.USD.wire.bank_address.line1', 'Bank details, USD, wire, bank address, line 1'],
  ['accounts.accounts.2.to', 'General-ledger account 2, account in the general ledger'],
  ['approvals.invoice.void.above.EUR', 'Approval rules, invoice void, above an amount, EUR'],
  ['accounts.names.p-1', 'General-ledger accounts, names of partners, p-1'],
])('people read the field %s as %s', (path, words) => {
  expect(fieldWords(path)).toBe(words);
});

test('a form, a preview and the history of a partner call a field by the same words', () => {
  expect(labelOf('line1')).toBe(fieldWords('address.line1'));
  expect(SECTIONS.small_difference).toBe('Small differences');
});

test('a change of a setting reads like a sentence, and a refused one names the field in words', () => {
  expect(changeText({ field: 'holds.times', old: '2.5', new: '3' })).toBe(
    '3 instead of 2.5 for “Holds, times the largest invoice”',
  );
  const problems = [{ path: 'accounts.0.to', reason: 'must not be empty' }];
  const { message, facts } = refuse('proposal_invalid', { section: 'accounts', problems });
  expect(message).toContain('General-ledger accounts 1');
  expect(facts).toEqual({ section: 'accounts', problems });
});
