/** The roll-forward of 24 months of three currencies, against sums that hledger gives for the exported journal. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { settingsSchema } from '../../src/config/settings.ts';
import { creditInvoice } from '../../src/documents/credit.ts';
import { rerunMonth } from '../../src/documents/rerun.ts';
import { voidDocument } from '../../src/documents/void.ts';
import { undoWriteOff, writeOffInvoice } from '../../src/documents/write-off.ts';
import { type List, readSums, sheetOf } from '../../src/lists/list.ts';
import { movements } from '../../src/lists/movements.ts';
import { reserve } from '../../src/lists/reserve.ts';
import { rollForward } from '../../src/lists/roll-forward.ts';
import { lastDay, type Month, monthsBetween } from '../../src/month.ts';
import { readAging } from '../../src/reports/aging.ts';
import { MOVEMENTS, type RollForwardRow } from '../../src/reports/roll-forward.sql.ts';
import { readTaxReport } from '../../src/reports/tax.ts';
import { textJournals } from '../audit/books.ts';
import { type Books, booksOf } from '../payments/books.ts';
import { needs, tool } from '../support/tools.ts';
import { openWorld, partner, quote, reversal } from '../support/world.ts';

const MONTHS = monthsBetween('2026-07' as Month, '2028-06' as Month);
const [FIRST, LAST] = [MONTHS[0] as Month, MONTHS[23] as Month];
const monthAfter = (at: number): Month => MONTHS[at + 1] ?? ('2028-07' as Month);

let books: Books;
beforeAll(async () => {
  const world = await openWorld();
  const rules = [
    { partner: 'p-de', category: 'standard', rate: '19' },
    { partner: 'p-jp', category: 'standard', rate: '10' },
    { category: 'outside_scope', reason: 'Outside the scope' },
  ];
  const tax = settingsSchema.shape.tax.parse({ from: FIRST, rules });
  world.settings = {
    ...world.settings,
    tax,
    small_difference: { EUR: '5.00', percent: '100' },
    ended_bank_accounts: { '0001': 'moved' },
  };
  world.at('2026-07-01T10:00:00Z');
  await world.partners([
    partner({ partner_id: 'hq', name: 'Granite Ticketing LLC' }),
    partner({ name: 'Larkspur', parent: 'hq' }),
    partner({ partner_id: 'p-de', name: 'Leuchtturm AG', currency: 'EUR' }),
    partner({ partner_id: 'p-jp', name: '東京チケット', currency: 'JPY' }),
  ]);
  books = booksOf(world);
  const sold: Record<string, unknown>[] = [];
  for (const [at, month] of MONTHS.entries()) {
    world.at(`${monthAfter(at)}-01T10:00:00Z`);
    const accepted_at = `${month}-15T12:00:00Z`;
    const share = (amount: string) => ({ spotPrice: amount, partnerCut: '0', invoiceAmount: amount });
    const sales = [
      quote({ accepted_at, ...share('70.10') }),
      quote({ accepted_at, partner_id: 'hq', ...share('33.33') }),
      quote({ accepted_at, partner_id: 'p-de', currency: 'EUR', ...share('1.53') }),
      quote({ accepted_at, partner_id: 'p-de', currency: 'EUR', ...share(`${200 + at}.00`) }),
      quote({ accepted_at, partner_id: 'p-jp', currency: 'JPY', ...share('1005') }),
    ];
    const back = sold.at(-8);
    const report = await world.rows([
      ...sales,
      ...(back && at % 4 === 3 ? [reversal(back, { ...minus(back), accepted_at })] : []),
    ]);
    expect(report.rejected).toBe(0);
    sold.push(...sales);
    await world.close();
    await correct(month, at);
    if (at > 1) await world.closeBooks(MONTHS[at - 2] as Month);
  }
}, 240_000);
afterAll(() => books.end());

const minus = (row: Record<string, unknown>) =>
  Object.fromEntries(['spotPrice', 'partnerCut', 'invoiceAmount'].map((name) => [name, `-${row[name]}`]));

/** In turn: payments in full, in part, short by bank charges, of strangers and of a parent; credit, write-offs, voids. */
async function correct(month: Month, at: number): Promise<void> {
  const receivedOn = `${monthAfter(at)}-01`;
  const open = (await books.documents({ months: [month] })).filter(({ status }) => status === 'open');
  const of = (id: string) => open.find(({ partner_id }) => partner_id === id);
  const [usd, eur, yen] = [of('p-1'), of('p-de'), of('p-jp')];
  const kinds = [
    async () => {
      if (eur)
        await books.record({ number: eur.number, amount: eur.balance, currency: 'EUR', receivedOn, reference: 'R' });
    },
    async () => {
      const head = 'date,amount,currency,account,bank_reference,text,payer,payer_account';
      await books.bankText(`${month}.csv`, `${head}\n${receivedOn},25.50,USD,0001,B-${at},thanks,Stranger ${at},\n`);
      if (at % 2 === 0) return;
      const unknown = (await books.payments()).filter(
        ({ partner_id, status }) => partner_id === null && status !== 'reversed',
      );
      await books.assign(unknown[0]?.payment_id as number, 'p-1');
    },
    async () => {
      if (usd)
        await books.database.transaction((tx) =>
          creditInvoice(tx, books, { number: usd.number, amount: '5.05', reason: 'kindness' }),
        );
      if (eur)
        await books.database.transaction((tx) =>
          creditInvoice(tx, books, { number: eur.number, amount: '10.00', reason: 'kindness' }),
        );
    },
    async () => {
      if (yen)
        await books.database.transaction((tx) =>
          writeOffInvoice(tx, books, { number: yen.number, reason: 'insolvent' }),
        );
      if (yen && at % 2 === 0)
        await books.database.transaction((tx) => undoWriteOff(tx, books, { number: yen.number, reason: 'paid' }));
      if (eur) {
        const short = (Number(eur.balance) - 2.5).toFixed(2);
        await books.record({ number: eur.number, amount: short, currency: 'EUR', receivedOn, reference: 'short' });
      }
    },
    async () => {
      if (usd === undefined) return;
      await books.database.transaction((tx) => voidDocument(tx, books, { number: usd.number, reason: 'wrong name' }));
      if (at % 2 === 0)
        await books.database.transaction((tx) => rerunMonth(tx, books, month, { newTerms: false, changed: true }));
    },
    async () => {
      const paid = await books.record({ partnerId: 'hq', amount: '90.00', receivedOn, reference: `hq-${at}` });
      if (at % 4 === 1) await books.reverse({ paymentId: paid.paymentId, on: receivedOn });
    },
  ];
  await kinds[at % kinds.length]?.();
}

const asked = (filter: object) =>
  ({
    filter,
    scope: null,
    period: null,
    today: '2028-07-01',
    sort: 'partner_id',
    after: null,
    limit: null,
    context: books,
  }) as never;
const rowsOf = (filter: object = {}): Promise<RollForwardRow[]> =>
  books.database.reading((tx) => rollForward.read(tx, asked({ from: FIRST, to: LAST, ...filter })));

/** Thousandths, which every currency here has at most. */
const units = (text: string): bigint => BigInt(Math.round(Number(text.replaceAll(',', '')) * 1000));

/** Changes by month, from hledger: `query` selects entries by description or account. */
function hledgerSums(journal: string, query: readonly string[], historical = false): Map<string, bigint> {
  const kind = historical ? ['--historical'] : [];
  const args = ['balance', '-f', journal, ...query, '-M', '-b', FIRST, '-e', '2028-07', ...kind];
  const ran = spawnSync(tool('hledger'), [...args, '-E', '--flat', '-N', '-O', 'csv', '--layout', 'tidy'], {
    encoding: 'utf8',
    env: { ...process.env, LANG: 'C.UTF-8' },
  });
  expect(ran.stderr).toBe('');
  const sums = new Map<string, bigint>();
  for (const line of ran.stdout.trim().split('\n').slice(1)) {
    const [account = '', period = '', , , currency = '', value = '0'] = line
      .split(',')
      .map((cell) => cell.replace(/^"|"$/g, ''));
    const partnerId = account
      .split(':')
      .slice(account.startsWith('assets') ? 3 : 2)
      .join(':');
    const key = `${partnerId} ${currency} ${period.slice(0, 7)}`;
    if (units(value) !== 0n) sums.set(key, (sums.get(key) ?? 0n) + units(value));
  }
  return new Map([...sums].filter(([, sum]) => sum !== 0n).sort());
}

const OWED = ['assets:receivable:billed', 'liabilities:partner-credit', 'liabilities:unapplied'];
const BY_HLEDGER: Readonly<Record<string, readonly string[]>> = {
  'invoiced tax': ['desc:^document_(issued|voided) INV'],
  'credited tax': ['desc:^document_(issued|voided) CN'],
  cash: ['desc:^(payment_(received|assigned|reversed|reinstated)|credit_refund)'],
  written_off: ['desc:^writ(ten_off|e_off_undone)'],
  differences: ['desc:^small_difference'],
};

test('opening, movements and closing of 24 months are what hledger sums up of the journal', async (context) => {
  needs('hledger', context);
  const journals = await textJournals(books, FIRST, LAST, join(books.home, 'journal'));
  const journal = journals.get('hledger') as string;
  const rows = await rowsOf();
  expect(rows.length).toBeGreaterThan(90);
  const ours = (amountOf: (row: RollForwardRow) => bigint) =>
    new Map(
      rows
        .map((row) => [`${row.partner_id ?? ''} ${row.currency} ${row.month}`, amountOf(row)] as const)
        .filter(([, amount]) => amount !== 0n)
        .sort(),
    );
  expect(ours(({ closing }) => units(closing))).toEqual(hledgerSums(journal, OWED, true));
  const billed = (row: RollForwardRow) => units(row.invoiced) + units(row.credited) + units(row.tax);
  const documents = [...(BY_HLEDGER['invoiced tax'] ?? []), ...(BY_HLEDGER['credited tax'] ?? [])];
  expect(ours(billed)).toEqual(hledgerSums(journal, [...OWED, ...documents]));
  for (const name of ['cash', 'written_off', 'differences'] as const) {
    const theirs = hledgerSums(journal, [...OWED, ...(BY_HLEDGER[name] ?? [])]);
    expect(theirs.size, name).toBeGreaterThan(0);
    expect(
      ours((row) => units(row[name])),
      name,
    ).toEqual(theirs);
  }
}, 120_000);

test('each closing balance is the sum of its row, the next opening balance, and the net of the aging', async () => {
  const rows = await rowsOf();
  const aging = await books.database.reading((tx) => readAging(tx, { asOf: '2027-03-31', today: '2028-07-01' }));
  const before = new Map<string, string>();
  for (const row of rows) {
    const key = `${row.partner_id} ${row.currency}`;
    expect(units(row.opening)).toBe(units(before.get(key) ?? '0'));
    expect(MOVEMENTS.reduce((sum, name) => sum + units(row[name]), units(row.opening))).toBe(units(row.closing));
    expect([key, row.month, units(row.aging)]).toEqual([key, row.month, units(row.closing)]);
    before.set(key, row.closing);
  }
  const march = rows.filter(({ month, closing }) => month === '2027-03' && units(closing) !== 0n);
  const net = new Map(
    aging.partners.map(({ partner_id, currency, net: owed }) => [`${partner_id} ${currency}`, units(owed)]),
  );
  expect(
    new Map(march.map(({ partner_id, currency, closing }) => [`${partner_id} ${currency}`, units(closing)])),
  ).toEqual(new Map([...net].filter(([, owed]) => owed !== 0n)));
});

test('the tax of a month is that of the tax report by the days of issue', async () => {
  for (const month of ['2026-08', '2026-10', '2027-05'] as Month[]) {
    const { lines } = await books.database.reading((tx) =>
      readTaxReport(tx, { from: `${month}-01`, to: lastDay(month), basis: 'issued' }),
    );
    const rows = await rowsOf({ from: month, to: month, group: 'all' });
    for (const currency of ['EUR', 'JPY']) {
      const stated = lines.filter((line) => line.currency === currency).reduce((sum, { tax }) => sum + units(tax), 0n);
      expect(stated).toBeGreaterThan(0n);
      expect(units(rows.find((row) => row.currency === currency)?.tax ?? '')).toBe(stated);
    }
  }
});

test('the family of a payer is one row, and what it moves among its partners is nothing', async () => {
  const [family, own] = [await rowsOf({ group: 'family', currency: 'USD' }), await rowsOf({ currency: 'USD' })];
  const ofHq = family.filter(({ partner_id }) => partner_id === 'hq');
  expect(family.filter(({ partner_id }) => partner_id === 'p-1')).toEqual([]);
  for (const row of ofHq) {
    const parts = own.filter(
      ({ partner_id, month }) => month === row.month && ['hq', 'p-1'].includes(partner_id ?? ''),
    );
    expect(units(row.closing)).toBe(parts.reduce((sum, { closing }) => sum + units(closing), 0n));
  }
  expect(await rowsOf({ group: 'family', partner: 'hq' })).toEqual(ofHq);
  expect((await rowsOf({ partner: 'p-1' })).map(({ partner_id }) => partner_id)).toContain('p-1');
});

test('whoever may see one partner only does not learn who pays for it', async () => {
  const limited = { ...(asked({ group: 'family' }) as object), scope: ['p-1'] } as never;
  const rows = await books.database.reading(async (tx) => [
    ...(await rollForward.read(tx, limited)),
    ...(await reserve.read(tx, limited)),
  ]);
  expect(rows.length).toBeGreaterThan(2);
  expect(new Set(rows.map(({ partner_id }) => partner_id))).toEqual(new Set(['p-1']));
});

test('each cell leads to facts that add up to it, with their documents and payments', async () => {
  const rows = [...(await rowsOf()), ...(await rowsOf({ group: 'family' })), ...(await rowsOf({ group: 'all' }))];
  let cells = 0;
  for (const name of MOVEMENTS) {
    for (const row of rows.filter((each) => units(each[name]) !== 0n).filter((_, at) => at % 9 === 0)) {
      const at = rollForward.columns[name].to?.(row)?.[1] as Record<string, string>;
      const { unknown, ...filter } = at;
      const found = await books.database.reading((tx) =>
        movements.read(tx, asked({ ...filter, ...(unknown && { unknown: true }) })),
      );
      expect(
        found.reduce((sum, { amount }) => sum + units(amount), 0n),
        JSON.stringify(at),
      ).toBe(units(row[name]));
      expect(found.every(({ document, payment_id }) => document !== null || payment_id !== null)).toBe(true);
      cells += 1;
    }
  }
  expect(cells).toBeGreaterThan(30);
});

test('a partner in the sum of all partners is only its own rows, and its cells lead to its own facts', async () => {
  const of = (rows: readonly RollForwardRow[]) => rows.map(({ month, closing }) => [month, units(closing)]);
  const sum = await rowsOf({ group: 'all', partner: 'p-de' });
  expect(sum.length).toBeGreaterThan(20);
  expect(of(sum)).toEqual(of(await rowsOf({ partner: 'p-de' })));
  for (const row of sum.filter(({ moved }) => moved.includes('invoiced'))) {
    const at = rollForward.columns.invoiced.to?.(row)?.[1];
    expect(at).toMatchObject({ partner: 'p-de', currency: 'EUR', from: row.month, to: row.month });
    expect(rollForward.columns.closing.to?.(row)?.[0]).toBe('partners/p-de/statement');
  }
});

test('a month whose movements add up to zero is a row, and its cells lead to them', async () => {
  const { paymentId } = await books.record({
    partnerId: 'hq',
    amount: '11.00',
    currency: 'EUR',
    receivedOn: '2028-07-01',
    reference: 'twice',
  });
  await books.reverse({ paymentId, kind: 'mistake', on: '2028-07-01', reason: 'entered twice' });
  const rows = await rowsOf({ partner: 'hq', currency: 'EUR', to: '2028-07' });
  expect(rows.map(({ month, cash, closing, moved }) => [month, units(cash), units(closing), moved])).toEqual([
    ['2028-07', 0n, 0n, ['cash']],
  ]);
  const at = rollForward.columns.cash.to?.(rows[0] as RollForwardRow)?.[1] as object;
  const found = await books.database.reading((tx) => movements.read(tx, asked(at)));
  expect(found.map(({ amount }) => units(amount))).toEqual([-11_000n, 11_000n]);
  expect(rollForward.columns.invoiced.to?.(rows[0] as RollForwardRow)).toBeNull();
});

test('the total of a currency has the first opening, all movements and the last closing, in each face', async () => {
  const rows = await rowsOf();
  const { totals: sums } = await books.database.reading((tx) =>
    readSums(tx, rollForward as never, asked({ from: FIRST, to: LAST }), null),
  );
  const sheet = sheetOf(rollForward as List, rows, '2028-07-01');
  const total = (currency: string, name: string) => {
    const found = sheet.totals
      ?.map(({ row }) => row as Record<string, string>)
      .find((row) => row['currency'] === currency);
    return units(found?.[name] ?? '');
  };
  for (const currency of ['EUR', 'JPY', 'USD']) {
    const own = rows.filter((row) => row.currency === currency);
    const sumOf = (name: 'opening' | 'closing' | 'cash', month?: Month) =>
      own.filter((row) => !month || row.month === month).reduce((sum, row) => sum + units(row[name]), 0n);
    const expected = [sumOf('opening', FIRST), sumOf('cash'), sumOf('closing', LAST)];
    const names = ['opening', 'cash', 'closing'] as const;
    expect(names.map((name) => total(currency, name))).toEqual(expected);
    const paged = sums.find((each) => each['opening']?.currency === currency);
    expect(names.map((name) => units(String(paged?.[name])))).toEqual(expected);
    expect(['opening', ...MOVEMENTS].reduce((sum, name) => sum + total(currency, name), 0n)).toBe(expected[2]);
  }
});

test('a currency that begins late or ends early has a total of zero where it has no balance', async () => {
  const all = await rowsOf({ from: '2026-08', to: '2027-01', group: 'all' });
  expect(new Set(all.map(({ currency, cash }) => `${currency} ${cash.split('.')[1]?.length ?? 0}`))).toEqual(
    new Set(['EUR 2', 'JPY 0', 'USD 2']),
  );
  const without = (currency: string, month: string) => (row: RollForwardRow) =>
    row.currency !== currency || row.month !== month;
  const rows = all.filter(without('EUR', '2026-08')).filter(without('JPY', '2027-01'));
  const totals = (sheetOf(rollForward as List, rows, '2028-07-01').totals ?? []).map(
    ({ row }) => row as Record<string, string>,
  );
  const usd = all.filter(({ currency }) => currency === 'USD');
  const last = all.find(({ currency, month }) => currency === 'EUR' && month === '2027-01');
  expect(totals).toMatchObject([
    { currency: 'EUR', opening: '0.00', closing: last?.closing, aging: last?.closing },
    { currency: 'JPY', closing: '0', aging: '0' },
    { currency: 'USD', opening: usd[0]?.opening, closing: usd.at(-1)?.closing },
  ]);
  const { totals: sums } = await books.database.reading((tx) =>
    readSums(tx, rollForward as never, asked({}), rows as never),
  );
  expect(sums.map((sum) => ['opening', 'closing', 'aging'].map((name) => String(sum[name])))).toEqual(
    totals.map((total) => ['opening', 'closing', 'aging'].map((name) => total[name])),
  );
});

test('months after today, and too many of them, are refused', async () => {
  await expect(rowsOf({ to: '2028-09' })).rejects.toThrow(/2028-09/);
  await expect(rowsOf({ from: '2018-01' })).rejects.toThrow(/more than 120 months/);
});

test('the reserve is the sum of each bucket at its rate, and its open invoices are those of the aging', async () => {
  const loss_rates = { not_due: '0.5', days_1_30: '2', days_31_60: '10', days_61_90: '25', over_90: '60' };
  const read = (filter: object, settings: object = { loss_rates }) =>
    books.database.reading((tx) =>
      reserve.read(tx, {
        ...(asked({ as_of: '2027-03-31', ...filter }) as object),
        context: { ...books, settings: { ...books.settings, ...settings } },
      } as never),
    );
  const aging = await books.database.reading((tx) => readAging(tx, { asOf: '2027-03-31', today: '2028-07-01' }));
  const rows = await read({});
  expect(rows.map(({ partner_id, currency, open }) => [partner_id, currency, open]).sort()).toEqual(
    aging.partners.map(({ partner_id, currency, open }) => [partner_id, currency, open]).sort(),
  );
  const [yen] = rows.filter(({ currency }) => currency === 'JPY');
  // Nine months of 1,106 with tax, less those that were written off or are not due.
  expect(units(yen?.over_90 ?? '')).toBeGreaterThan(0n);
  const expected = Object.entries(loss_rates).map(([name, rate]) =>
    Math.round((Number(yen?.[name as 'open']) * Number(rate)) / 100),
  );
  expect(Number(yen?.reserve)).toBe(expected.reduce((sum, each) => sum + each, 0));
  expect(yen?.days_sales_outstanding).toBe(Math.round((Number(yen?.open) / Number(yen?.billed)) * 90));
  expect(Number(yen?.billed)).toBe(3 * 1106);
  // Open credit and unapplied cash stand apart, also of unknown payers, and what is left is the net of the aging.
  const net = (list: readonly { partner_id: string | null; currency: string; net: string }[]) =>
    list.map((each) => [each.partner_id, each.currency, units(each.net)]);
  const head = 'date,amount,currency,account,bank_reference,text,payer,payer_account';
  await books.bankText('stranger.csv', `${head}\n2028-07-01,25.50,USD,0001,B-99,thanks,A stranger,\n`);
  for (const asOf of ['2027-03-31', '2028-07-01']) {
    const { partners } = await books.database.reading((tx) => readAging(tx, { asOf, today: '2028-07-01' }));
    const found = await read({ as_of: asOf });
    expect(net(found).filter(([, , owed]) => owed !== 0n)).toEqual(net(partners).filter(([, , owed]) => owed !== 0n));
    expect(found.some(({ credit }) => units(credit) > 0n)).toBe(true);
    expect(found.some(({ partner_id }) => partner_id === null)).toBe(asOf === '2028-07-01');
  }
  const usd = (await read({ group: 'family', currency: 'usd' })).map(({ partner_id }) => partner_id);
  expect(usd).toEqual(['hq']);
  const of = async (filter: object) =>
    (await read(filter)).map(({ open, credit, billed, reserve: sum }) => [open, credit, billed, sum]);
  const german = await of({ partner: 'p-de' });
  expect(german.length).toBe(1);
  expect(await of({ partner: 'p-de', group: 'all' })).toEqual(german);
  expect(await of({ partner: 'p-de', group: 'family' })).toEqual(german);
  expect(await of({ partner: 'hq', group: 'family' })).toEqual(
    await of({ partner: 'hq', group: 'family', currency: 'USD' }),
  );
  expect((await read({ group: 'all' })).map(({ currency }) => currency)).toEqual(['EUR', 'JPY', 'USD']);
  expect((await read({}, {})).map(({ reserve: none }) => none)).toEqual(rows.map(() => null));
});
