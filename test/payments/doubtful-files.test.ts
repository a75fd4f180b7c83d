/** Files of banks in which something contradicts, or in which more is stated than one amount and one number. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { BankImport } from '../../src/payments/bank-import/import.ts';
import { readPayerAccounts } from '../../src/payments/payer-accounts.ts';
import { type Books, bankFile, type Owed, openBooks } from './books.ts';

const inv = (sequence: number): string => `INV-2026-${String(sequence).padStart(6, '0')}`;

/** INV-2026-000001 to -000009 are those of July, and -000010 to -000018 those of August. */
const owedIn = (currency: string): Owed[] => [
  ['blue', 'Bluebird Events Corp', currency, '350.00', '490.00'],
  ['cedar', 'Cedar Arena LLC', currency, '770.00', '210.00'],
  ['east', 'Harbour Tickets East Inc', currency, '700.00', '840.00'],
  ['ember', 'Ember Lodging LLC', currency, '308.00', '301.00'],
  ['flat1', 'Falcon Charters LLC', currency, '420.00', '420.00'],
  ['flat2', 'Orchid Cruises LLC', currency, '420.00', '420.00'],
  ['own', 'Granite Tours Inc', currency, '1400.00', '1050.00'],
  ['tick', 'The Ticket Company LLC', currency, '560.00', '420.00'],
  ['west', 'Harbour Tickets West Inc', currency, '980.00', '630.00'],
];

/** What was applied, else the first suggestion with a question mark, and the payer that the payment got. */
async function outcomes(books: Books, { new_lines }: BankImport): Promise<[string, string | null][]> {
  const found: [string, string | null][] = [];
  for (const { amount, direction, payment_id, suggested } of new_lines) {
    if (payment_id === null) {
      found.push([direction === 'debit' ? `-${amount}` : amount, null]);
      continue;
    }
    const { applications, partner_id } = await books.payment(payment_id);
    const applied = applications.map((each) => `${each.number} ${each.amount}`).join(' + ');
    found.push([applied || `${suggested[0]?.number}?`, partner_id]);
  }
  return found;
}

describe('A line', () => {
  let books: Books;
  beforeAll(async () => {
    books = await openBooks({}, undefined, {}, owedIn('USD'));
  });
  afterAll(() => books.end());

  test.each<[what: string, file: string, applied: string, payer: string | null]>([
    [
      "under half of a name that two partners share is held, though it names one's invoice",
      'near-twin-wrong-number.bai',
      `${inv(18)}?`,
      null,
    ],
    [
      'whose amount is exactly another open invoice of its payer is held',
      'own-other-invoice-exact.bai',
      `${inv(16)}?`,
      'own',
    ],
    ['with an empty company id pays the invoice that it names', 'blank-orig-id-learns.bai', `${inv(1)} 350.00`, 'blue'],
    ['of a stranger with an empty company id is held', 'blank-orig-id-wrong.bai', `${inv(10)}?`, null],
    [
      'of a payment provider that names a partner and its invoice pays it',
      'billcom-learns.bai',
      `${inv(5)} 420.00`,
      'flat1',
    ],
    ['of the same provider that names another partner is held', 'billcom-wrong.bai', `${inv(6)}?`, null],
    ["under a partner's name that names another partner's invoice is held", 'one-word-name.bai', `${inv(2)}?`, null],
    [
      'whose company id goes on in the next record pays the invoice that it names',
      'id-split-over-88-learns.bai',
      `${inv(11)} 210.00`,
      'cedar',
    ],
    ['of a stranger whose id begins like a known one is held', 'id-split-over-88-wrong.bai', `${inv(2)}?`, null],
    ['with the tags of Goldman Sachs pays the invoice that it names', 'goldman-tags.bai', `${inv(10)} 490.00`, 'blue'],
  ])('%s', async (_, file, applied, payer) => {
    expect(await outcomes(books, await books.bank(`doubtful/${file}`))).toEqual([[applied, payer]]);
  });

  test('from an account whose name is not the partner’s, or without digits, makes no account known', async () => {
    const known = await books.database.reading((tx) => readPayerAccounts(tx));
    // The id that goes on in the next record may be two texts, because the record before is not full.
    expect(known.map((each) => `${each.payer_account} ${each.partners.join(' ')}`)).toEqual(['101152046 blue']);
  });

  test('under the whole name of one partner that names the number of its near-twin is held', async () => {
    const other = await openBooks({}, undefined, {}, owedIn('USD'));
    try {
      const report = await other.bank('doubtful/near-twin-full-name.bai');
      expect(await outcomes(other, report)).toEqual([[`${inv(18)}?`, null]]);
    } finally {
      await other.end();
    }
  });
});

describe('A camt.053', () => {
  test('pays what the payer states of each document', async () => {
    const books = await openBooks({}, undefined, {}, owedIn('EUR'));
    try {
      const report = await books.bank('doubtful/strd-amounts.xml');
      expect(await outcomes(books, report)).toEqual([[`${inv(3)} 600.00 + ${inv(12)} 300.00`, 'east']]);
      expect([(await books.balance(inv(3))).balance, (await books.balance(inv(12))).balance]).toEqual([
        '100.00',
        '540.00',
      ]);
      // Two parts and the charge that the bank took from both.
      expect(
        (await books.bank('doubtful/charges-batch.xml')).new_lines.map((each) => [each.direction, each.amount]),
      ).toEqual([
        ['credit', '100.00'],
        ['credit', '200.00'],
        ['debit', '15.00'],
      ]);
      await books.verified();
    } finally {
      await books.end();
    }
  });

  test('with a charge that the bank states is paid in full, and the charge is a line of its own', async () => {
    const books = await openBooks({}, undefined, {}, [['nord', 'Nord GmbH', 'EUR', '1526.00']]);
    try {
      const report = await books.bank('doubtful/charges.xml');
      expect(await outcomes(books, report)).toEqual([
        [`${inv(1)} 1526.00`, 'nord'],
        ['-26.00', null],
      ]);
      expect((await books.balance(inv(1))).status).toBe('paid');
      expect(report.statements).toMatchObject([{ opening: '0.00', closing: '1500.00' }]);
      await books.verified();
    } finally {
      await books.end();
    }
  });

  test('whose payer instructed more than arrived is paid in full only within the small difference', async () => {
    const books = await openBooks({ small_difference: { EUR: '30.00' } }, undefined, {}, [
      ['nord', 'Nord GmbH', 'EUR', '1526.00', '1000.00'],
    ]);
    const instructed = (sequence: number, amount: string, of: string) =>
      bankFile('doubtful/charges.xml')
        .toString()
        .replace(/<Chrgs>.*<\/Chrgs>/, '')
        .replace('>1526.00<', `>${of}<`)
        .replaceAll('>1500.00<', `>${amount}<`)
        .replaceAll('CH1', `CH${sequence}`)
        .replace(inv(1), inv(sequence));
    try {
      const fee = await books.bankText('fee.xml', instructed(1, '1500.00', '1526.00'));
      expect(await outcomes(books, fee)).toEqual([[`${inv(1)} 1500.00`, 'nord']]);
      expect((await books.balance(inv(1))).status).toBe('paid');
      const part = await books.bankText('part.xml', instructed(2, '100.00', '1000.00'));
      expect(await outcomes(books, part)).toEqual([[`${inv(2)} 100.00`, 'nord']]);
      expect((await books.balance(inv(2))).balance).toBe('900.00');
      await books.verified();
    } finally {
      await books.end();
    }
  });
});
