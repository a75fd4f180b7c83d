/** CSV files of banks: headings or none, a column for the direction, encodings, rows to skip, balances, and known maps. */
import { describe, expect, test } from 'vitest';
import { bankCsvSchema, knownBankMaps, triedBankMap } from '../../src/config/bank-csv.ts';
import { readBankFile } from '../../src/payments/bank/read.ts';

const map = (input: object) => bankCsvSchema.parse({ account: '0001', ...input });

/** The lines of a file: day, signed amount and text. */
function lines(content: string | Buffer, input?: object, name?: string) {
  const maps = input === undefined ? {} : { own: map(input) };
  const file = { name: 'bank.csv', bytes: Buffer.from(content as string), map: name };
  return readBankFile(file, maps).statements.flatMap((statement) =>
    statement.lines.map(
      ({ booked_on, direction, amount, text }) => `${booked_on} ${direction === 'debit' ? '-' : ''}${amount} ${text}`,
    ),
  );
}

const AMOUNTS = { date: 'Day', amount: 'Sum', text: ['Text'] };

describe('a column map', () => {
  test('refuses a row with more cells than headings, such as 1,500.00 without quotes; empty ones are let be', () => {
    const file = (row: string) => `Day,Sum,Text\n${row}\n`;
    expect(() => lines(file('2026-10-06,1,500.00,x'), { columns: AMOUNTS })).toThrow(
      'line 2: has more cells than the file has columns',
    );
    expect(lines(file('2026-10-06,1.00,x,,'), { columns: AMOUNTS })).toEqual(['2026-10-06 1.00 x']);
    const numbered = { header: false, columns: { date: '1', amount: '2', text: ['3'] } };
    expect(() => lines('2026-10-05,7.00,x\n2026-10-06,1,500.00,x\n', numbered)).toThrow('line 2: has more cells');
  });

  test('names columns by number if the file has no headings', () => {
    const columns = { date: '1', amount: '2', text: ['4'] };
    expect(lines('2026-10-01,5.00,*,first\n2026-10-02,-6.10,*,second\n', { header: false, columns })).toEqual([
      '2026-10-01 5.00 first',
      '2026-10-02 -6.10 second',
    ]);
  });

  test('takes the direction from a column, and refuses a value that means neither', () => {
    const input = { columns: { ...AMOUNTS, indicator: 'Way' }, credit_values: ['Bij'], debit_values: ['Af'] };
    const file = (way: string, sum = '7.00') => `Day,Way,Sum,Text\n2026-10-01,${way},${sum},x\n`;
    expect(lines(file('Bij'), input)).toEqual(['2026-10-01 7.00 x']);
    expect(lines(file('af'), input)).toEqual(['2026-10-01 -7.00 x']);
    expect(() => lines(file('maybe'), input)).toThrow("line 2: 'maybe' in the column 'Way' means neither");
    expect(() => lines(file('Af', '-7.00'), input)).toThrow('has a minus sign, but');
  });

  test('refuses a column of the map that is twice in the headings; others may be', () => {
    expect(() => lines('Day,Sum,Text,Sum\n2026-10-01,1.00,x,2.00\n', { columns: AMOUNTS })).toThrow(
      "line 1: has the column 'Sum' twice",
    );
    expect(lines('Day,Sum,Text,,\n2026-10-01,1.00,x,,\n', { columns: AMOUNTS })).toEqual(['2026-10-01 1.00 x']);
  });

  test.each([
    ['an indicator without an amount', { columns: { date: 'D', credit: 'In', debit: 'Out', indicator: 'Way' } }],
    ['negate with an indicator', { columns: { ...AMOUNTS, indicator: 'Way' }, negate: true }],
    ['negate with credits and debits', { columns: { date: 'D', credit: 'In', debit: 'Out' }, negate: true }],
  ])('does not take %s', (_title, input) => {
    expect(() => map(input)).toThrow(/'indicator'/);
    expect(map({ columns: AMOUNTS, negate: true }).negate).toBe(true);
  });

  test('refuses a row with a credit and a debit; one of them may be zero', () => {
    const input = { columns: { date: 'Day', credit: 'In', debit: 'Out', text: ['Text'] } };
    const file = (credit: string, debit: string) => `Day,In,Out,Text\n2026-10-01,${credit},${debit},x\n`;
    expect(() => lines(file('100.00', '30.00'), input)).toThrow('line 2: has a credit and a debit');
    expect(lines(file('100.00', '0.00'), input)).toEqual(['2026-10-01 100.00 x']);
    expect(lines(file('0.00', '-30.00'), input)).toEqual(['2026-10-01 -30.00 x']);
  });

  describe('with separate columns for credits and debits', () => {
    const input = { columns: { date: 'Day', credit: 'In', debit: 'Out', text: ['Text'] } };
    const balanced = { columns: { ...input.columns, balance: 'Balance' } };
    const file = (...rows: readonly string[]) =>
      `Day,In,Out,Text,Balance\n${rows.map((row, index) => `2026-10-0${index + 1},${row}\n`).join('')}`;
    const signed = (text: string, of: object) => lines(text, of).map((each) => each.split(' ')[1]);

    test.each([
      [
        'reads a charge that is given back as a credit',
        ['350,,x,1350', ',12,x,1338', ',-12,x,1350'],
        '350.00 -12.00 12.00',
      ],
      [
        'reads it so if the bank writes debits with a minus sign',
        ['350,,x,1350', ',-12,x,1338', ',12,x,1350'],
        '350.00 -12.00 12.00',
      ],
      ['reads a credit that is taken back as a debit', ['350,,x,1350', '-350,,x,1000'], '350.00 -350.00'],
      ['reads credits with a minus sign if the balances say so', ['-350,,x,1350', '-1,,x,1351'], '350.00 1.00'],
      ['reads a charge that is given back as the only debit', ['350,,x,1350', ',-12,x,1362'], '350.00 12.00'],
    ])('and running balances, %s', (_title, rows, amounts) => {
      expect(signed(file(...rows), balanced).join(' ')).toBe(amounts);
    });

    test.each([
      ['most of its debits have none', [',5,x,', ',12,x,', ',-12,x,'], '-5.00 -12.00 12.00'],
      ['most of its debits have one too', [',-5,x,', ',-12,x,', ',12,x,'], '-5.00 -12.00 12.00'],
      ['all of its debits have one too', [',-5,x,', ',-12,x,'], '-5.00 -12.00'],
      ['most of its credits have none', ['5,,x,', '12,,x,', '-12,,x,'], '5.00 12.00 -12.00'],
    ])('reads an amount with a minus sign if %s', (_title, rows, amounts) => {
      expect(signed(file(...rows), input).join(' ')).toBe(amounts);
    });

    test.each([
      ['as many debits have one as none', [',12,x,', ',-12,x,'], "line 3: has a minus sign in the column 'Out'"],
      ['all credits have one', ['-5,,x,', '-12,,x,'], "line 2: has a minus sign in the column 'In'"],
    ])('refuses an amount with a minus sign if %s, and says what to do', (_title, rows, reason) => {
      expect(() => signed(file(...rows), input)).toThrow(reason);
      expect(() => signed(file(...rows), input)).toThrow(
        'import a longer period, or add the column of the running bal',
      );
    });

    test('refuses a line whose sign no running balance explains', () => {
      expect(() => lines(file('350,,x,1350', ',12,x,1338', ',-12,x,1326', ',12,x,1338'), balanced)).toThrow(
        'running bal',
      );
    });

    test('marks what is given back as a reversal', () => {
      const maps = { own: map(balanced) };
      const bytes = Buffer.from(file('350,,x,1350', ',12,x,1338', ',-12,x,1350'));
      const [statement] = readBankFile({ name: 'b.csv', bytes }, maps).statements;
      expect(statement?.lines.map(({ reversal }) => reversal)).toEqual([false, false, true]);
    });
  });

  test.each([
    ['1.250,50 €', '1250.50'],
    ['-12,00 EUR', '-12.00'],
    ['12,00 EUR-', '-12.00'],
    ['EUR 12,50', '12.50'],
    ['(€ 12,50)', '-12.50'],
  ])('reads the amount %s with its currency before or behind it', (written, amount) => {
    const input = { columns: AMOUNTS, decimal: ',', delimiter: ';', currency: 'EUR' };
    const file = `Day;Sum;Text\n2026-10-01;${written};x\n`;
    expect(lines(file, input)).toEqual([`2026-10-01 ${amount} x`]);
    expect(() => lines(file, { ...input, currency: 'USD' })).toThrow(
      `'${written}' is in EUR, but the column map says USD: add currency=EUR to the map`,
    );
  });

  test('skips the rows of a rule: pending ones, continuations and footers', () => {
    const skip_rows = [
      { column: 'Day', values: ['', 'Total*'] },
      { column: 'Status', values: ['Pending'] },
    ];
    const file = 'Day,Sum,Text,Status\n2026-10-01,1.00,a,Done\n,,more text,\n2026-10-02,2.00,b,pending\nTotals:,3.00\n';
    expect(lines(file, { columns: AMOUNTS, skip_rows })).toEqual(['2026-10-01 1.00 a']);
    expect(() => lines(file, { columns: AMOUNTS })).toThrow("line 5: has no column 'Text'");
  });

  test.each([
    [
      'windows-1250',
      Buffer.from(
        '446179 2C 53756D 2C 54657874 0A 323032362D31302D3031 2C 312E3030 2C 8E6C9D'.replaceAll(' ', ''),
        'hex',
      ),
      'Žlť',
    ],
    [
      'shift_jis',
      Buffer.from(
        '446179 2C 53756D 2C 54657874 0A 323032362D31302D3031 2C 312E3030 2C 90558D9E'.replaceAll(' ', ''),
        'hex',
      ),
      '振込',
    ],
    ['utf-16be', Buffer.from('\uFEFFDay,Sum,Text\n2026-10-01,1.00,Ü', 'utf16le').swap16(), 'Ü'],
  ])('may name any encoding, such as %s', (encoding, bytes, text) => {
    expect(lines(bytes, { columns: AMOUNTS, encoding })).toEqual([`2026-10-01 1.00 ${text}`]);
  });

  test('names an encoding that does not exist: refused', () => {
    expect(bankCsvSchema.safeParse({ columns: AMOUNTS, account: '1', encoding: 'utf-9' }).success).toBe(false);
  });

  test('may be like the map of a known bank', () => {
    const own = bankCsvSchema.parse({ like: 'chase', account: '0002' });
    expect(own).toMatchObject({ account: '0002', date_format: 'MM/dd/yyyy', columns: { date: 'Posting Date' } });
  });
});

describe('running balances', () => {
  const input = { columns: { ...AMOUNTS, balance: 'Balance' } };
  const file = (...rows: readonly string[]) =>
    `Day,Sum,Text,Balance\n${rows.map((row) => `2026-10-${row}\n`).join('')}`;

  test('out of order within a day are accepted if one order explains them all', () => {
    const rows = ['01,30.00,c,60.00', '01,10.00,a,10.00', '01,20.00,b,30.00', '02,-5.00,d,55.00'];
    expect(lines(file(...rows), input)).toHaveLength(4);
    const { statements } = readBankFile({ name: 'b.csv', bytes: Buffer.from(file(...rows)) }, { own: map(input) });
    expect(statements).toMatchObject([{ opening: {}, closing: {} }]);
    expect(`${statements[0]?.opening} ${statements[0]?.closing}`).toBe('0.00 55.00');
  });

  test.each([
    ['a row is missing', ['01,30.00,c,60.00', '01,10.00,a,10.00', '02,-5.00,d,55.00']],
    ['a sign is swapped', ['01,-30.00,c,60.00', '01,10.00,a,10.00', '01,20.00,b,30.00', '02,-5.00,d,55.00']],
    ['a row is doubled', ['01,30.00,c,60.00', '01,30.00,c,60.00', '01,10.00,a,10.00', '01,20.00,b,30.00']],
    ['a day is missing', ['01,10.00,a,10.00', '01,20.00,b,30.00', '03,5.00,d,60.00']],
  ])('are refused if %s', (_title, rows) => {
    expect(() => lines(file(...rows), input)).toThrow('running balance');
  });
});

/** A text in an encoding, whose bytes are found by decoding them all. */
function encoded(text: string, encoding: string): Buffer {
  const decoder = new TextDecoder(encoding);
  const bytesOf = new Map<string, number[]>();
  for (let first = 255; first >= 0; first -= 1) {
    for (const second of Array(256).keys()) bytesOf.set(decoder.decode(Uint8Array.of(first, second)), [first, second]);
  }
  for (const only of Array(256).keys()) bytesOf.set(decoder.decode(Uint8Array.of(only)), [only]);
  return Buffer.from([...text].flatMap((each) => bytesOf.get(each) ?? []));
}

describe('maps of known banks', () => {
  const known = knownBankMaps();

  test('are at least a dozen', () => expect(Object.keys(known).length).toBeGreaterThanOrEqual(12));

  test.each(Object.keys(known))('%s reads a file with its headings, and no other map takes it', (name) => {
    const { columns, delimiter, date_format, skip_lines, header, credit_values, encoding } = known[name] ?? map({});
    const cells: [string, string][] = [];
    const day = { yyyy: '2026', MM: '10', dd: '07', yy: '26' };
    for (const [field, column] of Object.entries(columns)) {
      if (column === undefined) continue;
      if (Array.isArray(column)) for (const each of column) cells.push([each, 'INV-1']);
      else if (/date/.test(field))
        cells.push([column, date_format.replace(/yyyy|MM|dd|yy/g, (part) => day[part as 'MM'])]);
      else if (field === 'amount' || field === 'credit' || field === 'balance') cells.push([column, '12']);
      else if (field === 'indicator') cells.push([column, credit_values?.[0] ?? 'C']);
      else if (field === 'currency') cells.push([column, 'EUR']);
      else cells.push([column, field === 'account' ? '0001' : '']);
    }
    for (const { column } of known[name]?.skip_rows ?? []) {
      if (!cells.some(([heading]) => heading === column)) cells.push([column, 'Done']);
    }
    if (header === false) cells.splice(2, 1, ['3', '*'], ['4', ''], ['5', 'INV-1']);
    const rows = [cells.map(([heading]) => heading), cells.map(([, value]) => value)].slice(header === false ? 1 : 0);
    const text = '\n'.repeat(skip_lines) + rows.map((row) => row.map((each) => `"${each}"`).join(delimiter)).join('\n');
    const bytes = encoding === 'utf-8' ? Buffer.from(text) : encoded(text, encoding);
    const tried = triedBankMap('account=0001', known[name]);
    expect(tried.success).toBe(true);
    const chosen = header === false ? name : undefined;
    const refusalOrLines = () => readBankFile({ name: 'a.csv', bytes, map: chosen }, { [name]: tried.data ?? map({}) });
    expect(refusalOrLines().statements).toMatchObject([{ account: '0001', lines: [{ direction: 'credit' }] }]);
  });
});

test('a map can be tried as a text', () => {
  const tried = triedBankMap(
    'date=Posted; amount=Sum; text=Memo|Note; date_format=dd.MM.yyyy; decimal=,; account=77',
    undefined,
  );
  expect(tried.data).toMatchObject({
    account: '77',
    decimal: ',',
    columns: { date: 'Posted', text: ['Memo', 'Note'] },
  });
  expect(triedBankMap('date=Posted', undefined).success).toBe(false);
});
