/** Forged packs whose voids, write-offs, bank lines, partners or dictionary say something else than what was sealed. */
import { appended, type Forgery, fitted, forgery, inLine, resealed, shortened } from './forgeries.ts';

/** Exchanges two lines of a file. */
const exchanged = (name: string, one: number, other: number) =>
  fitted((pack) =>
    pack.lines(name, (lines) => lines.with(one, lines[other] as string).with(other, lines[one] as string)),
  );
const OCTOBER = 'sealed/2026-10';

const DOCUMENTS: readonly Forgery[] = [
  forgery(
    'voids.csv',
    'invoices-csv',
    'the day of a void in the voids',
    inLine('voids.csv', /^INV-2026-000001/, '2026-08-20', '2026-08-02'),
  ),
  forgery(
    'voids.csv',
    'invoices-csv',
    'another reason of a void',
    inLine('voids.csv', /^INV-2026-000001/, 'a wrong address', 'their wish'),
  ),
  forgery('voids.csv', 'invoices-csv', 'a void left out', shortened('voids.csv')),
  forgery('voids.csv', 'invoices-csv', 'a void twice in the voids', appended('voids.csv')),
  forgery('voids.csv', 'invoices-csv', 'voids in another order', exchanged('voids.csv', 1, 2)),
  forgery(
    'voids.jsonl',
    'invoices-jsonl',
    'the event of a void in JSON',
    inLine('voids.jsonl', 'INV-2026-000001', /"event_id" : \d+/, '"event_id" : 1'),
  ),
  forgery(
    'write-offs.csv',
    'invoices-csv',
    'the amount of a write-off',
    inLine('write-offs.csv', 'insolvent', /,0[.]\d+,/, ',9.705,'),
  ),
  forgery(
    'write-offs.csv',
    'invoices-csv',
    'a write-off of another invoice',
    inLine('write-offs.csv', 'too small', 'INV-2026-000003', 'INV-2026-000004'),
  ),
  forgery(
    'write-offs.csv',
    'invoices-csv',
    'the entry date of a write-off',
    inLine('write-offs.csv', 'too small', /2026-08-20,2026-08-20,/, '2026-08-20,2026-09-01,'),
  ),
  forgery('write-offs.csv', 'invoices-csv', 'a write-off left out', shortened('write-offs.csv')),
  forgery('write-offs.csv', 'invoices-csv', 'a write-off twice', appended('write-offs.csv')),
  forgery(
    'write-offs.csv',
    'invoices-csv',
    'a reversal as a write-off',
    inLine('write-offs.csv', 'not insolvent', 'reversed', 'written_off'),
  ),
];

const BANK: readonly Forgery[] = [
  forgery(
    'bank-lines.csv',
    'payments-csv',
    'the amount of a bank line',
    inLine('bank-lines.csv', ',1250.00,', ',1250.00,', ',1350.00,'),
  ),
  forgery(
    'bank-lines.csv',
    'payments-csv',
    'the direction of a bank line',
    inLine('bank-lines.csv', ',debit,', ',debit,', ',credit,'),
  ),
  forgery(
    'bank-lines.csv',
    'payments-csv',
    'the payment of a bank line',
    inLine('bank-lines.csv', ',1250.00,', /,payment,\d+,/, ',payment,1,'),
  ),
  forgery(
    'bank-lines.csv',
    'payments-csv',
    'a payment as ignored',
    inLine('bank-lines.csv', ',1250.00,', /,payment,\d+,/, ',ignored,,'),
  ),
  forgery(
    'bank-lines.csv',
    'payments-csv',
    'another file of a bank line',
    inLine('bank-lines.csv', ',1250.00,', /[0-9a-f]{64}/, '0'.repeat(64)),
  ),
  forgery('bank-lines.csv', 'payments-csv', 'a bank line left out', shortened('bank-lines.csv')),
  forgery('bank-lines.csv', 'payments-csv', 'a bank line twice', appended('bank-lines.csv')),
  forgery('bank-lines.csv', 'payments-csv', 'bank lines in another order', exchanged('bank-lines.csv', 1, 2)),
  forgery(
    'bank-lines.csv',
    'payments-csv',
    'a statement whose lines do not add up to it',
    resealed((pack) =>
      pack.edit(`${OCTOBER}/bank_statements.tsv`, (text) => text.replace(/\t2210\.1\t/, '\t2220.1\t')),
    ),
  ),
];

const PARTNERS: readonly Forgery[] = [
  forgery('partners.csv', 'partners-csv', 'other terms of a partner', inLine('partners.csv', /^p-1,/, ',45,', ',60,')),
  forgery('partners.csv', 'partners-csv', 'a partner left out', shortened('partners.csv')),
  forgery('partners.csv', 'partners-csv', 'partners in another order', exchanged('partners.csv', 1, 2)),
  forgery(
    'partners.jsonl',
    'partners-jsonl',
    'another address for invoices',
    inLine('partners.jsonl', '"p-1"', 'ap@partner.example', 'ap@evil.example'),
  ),
  forgery(
    'policies.csv',
    'partners-csv',
    'another rate of a policy',
    inLine('policies.csv', /^p-1,parking/, '0.20', '0.25'),
  ),
  forgery('policies.csv', 'partners-csv', 'a policy left out', shortened('policies.csv')),
  forgery(
    'policies.csv',
    'partners-csv',
    'a policy more',
    fitted((pack) =>
      pack.lines('policies.csv', (lines) => [...lines, (lines.at(-1) as string).replace('ticket-protection', 'z')]),
    ),
  ),
  forgery(
    'partner-changes.csv',
    'partners-csv',
    'the new value of a change',
    inLine('partner-changes.csv', 'payment_terms_days,30,45', '30,45', '30,60'),
  ),
  forgery(
    'partner-changes.csv',
    'partners-csv',
    'the old value of a change',
    inLine('partner-changes.csv', 'payment_terms_days,30,45', '30,45', '40,45'),
  ),
  forgery(
    'partner-changes.csv',
    'partners-csv',
    'who changed a partner',
    inLine('partner-changes.csv', 'payment_terms_days,30,45', ',Ada,', ',Eve,'),
  ),
  forgery('partner-changes.csv', 'partners-csv', 'a change left out', shortened('partner-changes.csv')),
  forgery('partner-changes.csv', 'partners-csv', 'changes in another order', exchanged('partner-changes.csv', 1, 2)),
  forgery(
    'partner-changes.jsonl',
    'partners-jsonl',
    'a number as a text',
    inLine('partner-changes.jsonl', '"old" : 30', '"new" : 45', '"new" : "45"'),
  ),
  forgery(
    'partner-changes.csv',
    'partners-csv',
    'a change from a value that there was not, sealed again',
    resealed((pack) => {
      for (const name of [`${OCTOBER}/audit_events.tsv`, 'partner-changes.csv'])
        pack.edit(name, (text) =>
          text.replace('"old": 30', '"old": 31').replace('payment_terms_days,30,45', 'payment_terms_days,31,45'),
        );
    }),
  ),
  forgery(
    'partners.csv',
    'partners-csv',
    'a partner whose present terms no change made, sealed again',
    resealed((pack) => {
      for (const name of [`${OCTOBER}/audit_events.tsv`, 'partner-changes.csv'])
        pack.edit(name, (text) =>
          text.replace('"new": 45', '"new": 46').replace('payment_terms_days,30,45', 'payment_terms_days,30,46'),
        );
    }),
  ),
];

const DICTIONARY: readonly Forgery[] = [
  forgery('dictionary.csv', 'ledger-csv', 'a column that is not described', shortened('dictionary.csv')),
  forgery(
    'dictionary.csv',
    'ledger-csv',
    'a description of another file',
    inLine('dictionary.csv', /^ledger[.]csv,document/, 'ledger.csv', 'ledger.jsonl'),
  ),
  forgery('dictionary.csv', 'ledger-csv', 'descriptions in another order', exchanged('dictionary.csv', 1, 2)),
  forgery(
    'dictionary.csv',
    'ledger-csv',
    'a type that is none',
    inLine('dictionary.csv', /^ledger[.]csv,spotPrice/, 'amount', 'money'),
  ),
  forgery(
    'dictionary.csv',
    'ledger-csv',
    'a column without a meaning',
    inLine('dictionary.csv', /^ledger[.]csv,currency/, /,text,.*$/, ',text,'),
  ),
];

export const FORGED_DATA = [...DOCUMENTS, ...BANK, ...PARTNERS, ...DICTIONARY];
