/** Bank files of each format as banks write them: certain matches are applied, others suggested, and no line is lost. */
import { afterEach, describe, expect, test } from 'vitest';
import type { BankImport } from '../../src/payments/bank-import/import.ts';
import { type Books, bankFile, CSV_MAPS, inv, openBooks, refusalOf } from './books.ts';

let books: Books;
afterEach(async () => {
  await books.verified();
  await books.end();
});

/** Each new line as: amount, what it is, what it pays, what is suggested. */
const summary = (report: BankImport) =>
  report.new_lines.map((line) => [
    `${line.direction === 'debit' ? '-' : ''}${line.amount}`,
    line.outcome,
    line.applied.map((each) => `${each.number} ${each.amount}`).join(' + '),
    line.suggested.map((each) => `${each.number} ${each.confidence}`).join(' | '),
  ]);

describe('BAI2', () => {
  test('references in any notation, and a number that continues in the next record', async () => {
    books = await openBooks();
    const report = await books.bank('ach-october-01.bai');
    expect(report).toMatchObject({ format: 'bai2', lines: { total: 4, new: 4, known: 0 } });
    expect(summary(report)).toEqual([
      ['1250.00', 'payment', `${inv(1)} 1250.00`, ''],
      ['840.00', 'payment', `${inv(2)} 840.00`, ''],
      ['120.10', 'payment', `${inv(7)} 120.10`, ''],
      ['-45.50', 'ignored', '', ''],
    ]);
    expect(await books.balance(inv(2))).toMatchObject({ status: 'paid', amount_paid: '840.00', balance: '0.00' });
    const [payment] = await books.payments('p-1');
    expect(payment).toMatchObject({
      method: 'ach',
      received_on: '2026-10-01',
      payer: { name: 'HARBOUR LIGHTS', account: '1330000001' },
      applications: [
        {
          confidence: '0.95',
          confirmed_by: 'a bookkeeper',
          evidence: { rule: 'reference_and_payer', payer: { by: 'name' }, reference: { field: 'text', found: inv(1) } },
        },
      ],
    });
  });

  test('letters for zeros, another year, another payer: suggested; a number that is cut off, of its payer: applied', async () => {
    books = await openBooks();
    expect(summary(await books.bank('wires-october-05.bai'))).toEqual([
      ['980.50', 'payment', '', `${inv(5)} 0.60`],
      ['1500.00', 'payment', '', `${inv(10)} 0.60`],
      ['2100.00', 'payment', `${inv(11)} 2100.00`, ''],
      ['333.33', 'payment', '', `${inv(3)} 0.40`],
    ]);
    const open = (await books.documents()).filter((each) => each.status === 'open');
    expect(open).toHaveLength(11);
  });

  test('one transfer for two invoices, an amount from a known account, a return, and a payout', async () => {
    books = await openBooks();
    await books.bank('ach-october-01.bai');
    expect(summary(await books.bank('ach-october-12.bai'))).toEqual([
      ['1058.27', 'payment', `${inv(5)} 980.50 + ${inv(9)} 77.77`, ''],
      ['333.33', 'payment', `${inv(3)} 333.33`, ''],
      ['-120.10', 'return', '', ''],
      ['840.00', 'payout', '', ''],
      ['840.00', 'payment', `${inv(6)} 840.00`, ''],
    ]);
    // The return opened what its payment had paid.
    expect(await books.balance(inv(7))).toEqual({
      balance: '120.10',
      amount_paid: '0.00',
      credited: '0.00',
      status: 'open',
    });
    const returned = (await books.payments()).find((each) => each.status === 'reversed');
    expect(returned?.reversals).toMatchObject([{ kind: 'returned', code: 'R01', amount: '120.10' }]);
    const [amount] = (await books.payments('p-3')).filter((each) => each.amount === '333.33');
    expect(amount?.applications).toMatchObject([{ evidence: { rule: 'amount_and_account' }, confidence: '0.90' }]);
  });
});

describe('camt.053', () => {
  test('references in EndToEndId and inside a sentence; charges are no payment', async () => {
    books = await openBooks();
    const report = await books.bank('eur-october-01.camt053.xml');
    expect(summary(report)).toEqual([
      ['500.00', 'payment', `${inv(4)} 500.00`, ''],
      ['750.25', 'payment', `${inv(8)} 750.25`, ''],
      ['-12.50', 'booked', '', ''],
    ]);
    expect(report.statements).toMatchObject([
      { account: 'GB82WEST12345698765432', opening: '10000.00', closing: '11237.75' },
    ]);
  });

  test('a known IBAN with the only document of that amount; a return by its code; pending entries are skipped', async () => {
    books = await openBooks();
    await books.bank('eur-october-01.camt053.xml');
    const report = await books.bank('eur-october-06.camt053.xml');
    expect(summary(report)).toEqual([
      ['60.00', 'payment', `${inv(12)} 60.00`, ''],
      ['-500.00', 'return', '', ''],
    ]);
    expect(report.statements[0]?.pending).toBe(1);
    expect(await books.balance(inv(4))).toMatchObject({ status: 'open', balance: '500.00' });
    expect((await books.payments('p-4'))[0]?.reversals).toMatchObject([
      { code: 'AC04', reason: expect.stringContaining('account closed') },
    ]);
  });

  test('a batch gives each of its parts; a part payment leaves its invoice open; two numbers over two lines', async () => {
    books = await openBooks();
    expect(summary(await books.bank('usd-october-09.camt053.xml'))).toEqual([
      ['1250.00', 'payment', `${inv(1)} 1250.00`, ''],
      ['690.50', 'payment', `${inv(2)} 690.50`, ''],
      ['120.10', 'payment', `${inv(7)} 120.10`, ''],
      ['2433.33', 'payment', `${inv(3)} 333.33 + ${inv(11)} 2100.00`, ''],
      ['2897.00', 'payment', '', ''],
    ]);
    expect(await books.balance(inv(2))).toMatchObject({ status: 'open', balance: '149.50' });
    expect((await books.payments()).at(-1)).toMatchObject({ partner_id: null, status: 'unapplied', suggestions: [] });
  });
});

describe('CSV', () => {
  test('the plain map: the payment of another payer is not applied, a formula is only text', async () => {
    books = await openBooks();
    expect(summary(await books.bank('plain-october.csv'))).toEqual([
      ['1250.00', 'payment', `${inv(1)} 1250.00`, ''],
      ['1500.00', 'payment', '', `${inv(10)} 0.80`],
      ['840.00', 'payment', `${inv(2)} 840.00`, ''],
      ['-35.00', 'ignored', '', ''],
      ['980.50', 'payment', '', `${inv(5)} 0.60`],
    ]);
  });

  test('a German map: decimal commas, two columns, running balances, umlauts of Windows', async () => {
    books = await openBooks({ bank_csv: await mapsOf() });
    const report = await books.bank('sparkasse-october.csv', 'sparkasse');
    // 'Münchner' equals 'Muenchner'; a number without its zeros is not certain.
    expect(summary(report)).toEqual([
      ['1250.25', 'payment', `${inv(4)} 500.00 + ${inv(8)} 750.25`, ''],
      ['-12.50', 'ignored', '', ''],
      ['60.00', 'payment', '', `${inv(12)} 0.60`],
    ]);
    expect(report.new_lines[0]?.payer).toBe('Münchner Fest GmbH');
    expect(report.statements).toMatchObject([{ opening: '10000.00', closing: '11297.75' }]);
    const last = (await books.payments()).at(-1)?.payment_id ?? 0;
    await books.apply(last, inv(12));
    expect(await books.payment(last)).toMatchObject({
      status: 'applied',
      partner_id: 'p-4',
      applications: [
        { confidence: '1', evidence: { rule: 'by_hand', reference: { guess: 'zeros before the number are missing' } } },
      ],
    });
  });

  test('newest first, with a return of a payment in the same file', async () => {
    books = await openBooks({ bank_csv: await mapsOf() });
    expect(summary(await books.bank('newest-first-october.csv', 'newest_first'))).toEqual([
      ['-120.10', 'return', '', ''],
      ['333.33', 'payment', `${inv(3)} 333.33`, ''],
      ['120.10', 'payment', `${inv(7)} 120.10`, ''],
    ]);
    expect(await books.balance(inv(7))).toMatchObject({ status: 'open' });
  });
});

async function mapsOf() {
  const { settingsWith } = await import('./settings.ts');
  return settingsWith({ bank_csv: CSV_MAPS }).bank_csv;
}

describe('once and whole', () => {
  test('a file that was imported before does nothing', async () => {
    books = await openBooks();
    await books.bank('ach-october-01.bai');
    const before = await books.payments();
    const again = await books.bank('ach-october-01.bai');
    expect(again).toMatchObject({ already_imported: expect.any(String), lines: { total: 4, new: 0, known: 4 } });
    expect(await books.payments()).toEqual(before);
  });

  test('a line that another file brought is the same line', async () => {
    books = await openBooks();
    const csv = bankFile('plain-october.csv').toString();
    await books.bankText('first.csv', csv);
    const before = await books.payments();
    const more = `${csv}2026-10-04,77.77,USD,000123456789,CSV-0006,${inv(9)} harbour lights,,\n`;
    const report = await books.bankText('second.csv', more);
    expect(report.lines).toEqual({ total: 6, new: 1, known: 5 });
    expect((await books.payments()).slice(0, before.length)).toEqual(before);
    expect(await books.balance(inv(9))).toMatchObject({ status: 'paid' });
  });

  test('two equal lines without a reference are two payments, in whichever file they come again', async () => {
    books = await openBooks();
    const head = 'date,amount,currency,account,bank_reference,text,payer,payer_account\n';
    const line = '2026-10-04,50.00,USD,000123456789,,deposit,,\n';
    expect((await books.bankText('one.csv', head + line)).lines.new).toBe(1);
    expect((await books.bankText('two.csv', head + line + line)).lines.new).toBe(1);
    expect(await books.payments()).toHaveLength(2);
  });

  test('a preview reports the same and records nothing', async () => {
    books = await openBooks();
    const text = bankFile('plain-october.csv').toString();
    const preview = await books.bankText('plain-october.csv', text, { preview: true });
    expect(await books.payments()).toEqual([]);
    expect(summary(await books.bankText('plain-october.csv', text))).toEqual(summary(preview));
  });

  test('a file whose totals do not match its lines is refused, with the figures', async () => {
    books = await openBooks();
    const good = bankFile('ach-october-01.bai').toString();
    const damaged: readonly (readonly [string, string, RegExp])[] = [
      ['125000,0,ACH', '125001,0,ACH', /control total: the file states 2667580, its records give 2667581/],
      ['49,2667580,9/', '49,2667580,8/', /records: the file states 8, its records give 9/],
      ['98,2667580,1,11/', '98,2667580,2,11/', /accounts: the file states 2, its records give 1/],
      ['99,2667580,1,13/', '99,2667581,1,13/', /file trailer.*control total/],
    ];
    for (const [from, to, says] of damaged) {
      expect(good).toContain(from);
      const action = books.bankText('damaged.bai', good.replace(from, to));
      await expect(action).rejects.toThrow(says);
      expect(await refusalOf(action)).toBe('bank_file_totals');
    }
    const camt = bankFile('eur-october-01.camt053.xml').toString().replace('11237.75', '11237.76');
    await expect(books.bankText('damaged.xml', camt)).rejects.toThrow(
      /closing balance \(CLBD\): the file states 11237.76, its records give 11237.75/,
    );
    const cut = good.slice(0, good.indexOf('98,'));
    expect(await refusalOf(books.bankText('cut.bai', cut))).toBe('bank_file_invalid');
    expect(await books.payments()).toEqual([]);
    expect(await books.sql('SELECT * FROM bank_files')).toEqual([]);
  });

  test('a line of the day after tomorrow refuses the file; tomorrow may have begun at the bank', async () => {
    books = await openBooks();
    const line = (day: string) => `${day},10.00,USD,0001,B-${day},deposit,,\n`;
    const head = 'date,amount,currency,account,bank_reference,text,payer,payer_account\n';
    const action = books.bankText('future.csv', head + line('2026-10-16') + line('2026-10-17'));
    await expect(action).rejects.toThrow(/line 3.*2026-10-17.*future/s);
    expect(await refusalOf(action)).toBe('bank_file_invalid');
    expect(await books.payments()).toEqual([]);
    expect((await books.bankText('soon.csv', head + line('2026-10-16'))).lines.new).toBe(1);
  });

  test('an invalid date and a NUL character are refused with their place', async () => {
    books = await openBooks();
    const camt = bankFile('eur-october-01.camt053.xml').toString();
    for (const field of ['BookgDt', 'ValDt']) {
      const action = books.bankText('date.xml', camt.replace(`<${field}><Dt>2026-10-01`, `<${field}><Dt>2026-13-45`));
      await expect(action).rejects.toThrow(/entry 1.*'2026-13-45' is not a date/s);
      expect(await refusalOf(action)).toBe('bank_file_invalid');
    }
    const csv = 'date,amount,currency,account,bank_reference,text,payer,payer_account\n';
    const nul = books.bankText('nul.csv', `${csv}2026-10-14,10.00,USD,0001,B-1,a\u0000b,,\n`);
    expect(await refusalOf(nul)).toBe('bank_file_invalid');
  });

  test('a camt.053 entry that reverses a debit is no payment, whether it says true or 1', async () => {
    books = await openBooks();
    const camt = bankFile('eur-october-01.camt053.xml').toString();
    const reversal = camt.replace(
      '<CdtDbtInd>CRDT</CdtDbtInd><Sts>',
      '<CdtDbtInd>CRDT</CdtDbtInd><RvslInd>1</RvslInd><Sts>',
    );
    expect(summary(await books.bankText('reversal.xml', reversal))[0]).toEqual(['500.00', 'ignored', '', '']);
  });

  test('a line in another currency than the invoice that it names is not applied, and says so', async () => {
    books = await openBooks();
    const text = `date,amount,currency,account,bank_reference,text,payer,payer_account\n2026-10-14,500.00,USD,0001,B-1,${inv(4)},Somebody,\n`;
    const [line] = (await books.bankText('usd.csv', text)).new_lines;
    expect(line).toMatchObject({ applied: [], why: expect.stringContaining(`${inv(4)} is named, but it is in EUR`) });
  });

  test('a return of a payment of the same file names its line, in a preview too, and what is owed again', async () => {
    books = await openBooks({ bank_csv: await mapsOf() });
    const text = bankFile('newest-first-october.csv').toString();
    const preview = await books.bankText('newest.csv', text, { map: 'newest_first', preview: true });
    const report = await books.bankText('newest.csv', text, { map: 'newest_first' });
    expect(preview.new_lines.map((each) => each.why)).toEqual(report.new_lines.map((each) => each.why));
    expect(report.new_lines[0]?.why).toMatch(
      /^the payment of line \d+ is returned by the bank.*; the amount it paid on INV-2026-000007 is owed again$/,
    );
  });

  test('a document type with entities is refused', async () => {
    books = await openBooks();
    const bomb = '<?xml version="1.0"?><!DOCTYPE d [<!ENTITY a "aaaa">]><Document>&a;</Document>';
    expect(await refusalOf(books.bankText('bomb.xml', bomb))).toBe('bank_file_invalid');
  });

  test('two concurrent imports of one file record it once', async () => {
    books = await openBooks();
    const reports = await Promise.all([books.bank('plain-october.csv'), books.bank('plain-october.csv')]);
    expect(reports.map((each) => each.lines.new).sort()).toEqual([0, 5]);
    expect(await books.payments()).toHaveLength(4);
  });
});
