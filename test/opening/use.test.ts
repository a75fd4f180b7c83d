/** What was carried over is matched by its old number, dunned, payable by its link, and on account statements. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openingImport } from '../../src/actions/opening.ts';
import { runAction } from '../../src/actions/run.ts';
import { compareInvoices, parseInvoiced } from '../../src/close/compare.ts';
import { previewClose } from '../../src/close/run.ts';
import { invoiceScreen, readInvoice } from '../../src/console/screens/invoice.tsx';
import { readDocuments } from '../../src/documents/documents.sql.ts';
import { readHistory } from '../../src/documents/history.ts';
import type { Month } from '../../src/month.ts';
import { CarriedNumbers } from '../../src/payments/reference.ts';
import { planReminders } from '../../src/payments/remind.ts';
import { readAccountStatement } from '../../src/reports/account-statement.ts';
import { importBankFile } from '../payments/import-file.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';
import { cash, csvOf, invoice } from './file.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  world.at('2026-07-01T10:00:00Z');
  world.settings = {
    ...world.settings,
    public_url: 'https://pay.issuer.example',
    bank_csv: {
      plain: {
        columns: { date: 'date', text: ['text'], payer: 'payer', amount: 'amount' },
        ...{ date_format: 'yyyy-MM-dd', decimal: '.', delimiter: ',', encoding: 'utf-8', skip_lines: 0 },
        account: 'ACC-1',
        currency: 'USD',
      },
    },
  } as never;
  await world.partners([partner({ name: 'Harbour Lights' })]);
  const items = [
    invoice('RE-2026-10442', '100.00'),
    invoice('RE-2026-10443', '40.00'),
    invoice('77', '30.00'),
    cash('Z-1', '5.00', { date: '2026-06-20', reference: 'too much' }),
  ];
  const file = { name: 'open.csv', bytes: Buffer.from(csvOf(items)) };
  const input = { file, cutOver: '2026-06-30', control: ['USD=165.00'], count: 4 };
  await runAction(world, openingImport, input, { deliver: false });
});
afterAll(() => world.end());

const documentNamed = async (number: string) =>
  (await world.database.reading((tx) => readDocuments(tx, { number })))[0];

describe('an old number in a remittance', () => {
  const carried = new CarriedNumbers([
    { written: 'RE-2026-10442', number: 'RE-2026-10442' },
    { written: '77', number: '77' },
    { written: '104430', number: '104430~2' },
  ]);
  const found = (text: string) =>
    carried.find([{ field: 'text', text }]).map(({ number, guess }) => [number, guess === undefined]);
  test.each([
    ['Invoice RE-2026-10442 thanks', [['RE-2026-10442', true]]],
    ['re 2026/10442', [['RE-2026-10442', true]]],
    ['RE202610442', [['RE-2026-10442', true]]],
    ['RE-2026-104421', []],
    ['our no. 104430.', [['104430~2', true]]],
    ['invoice 77', [['77', false]]],
    ['1077', []],
  ] as const)('%s', (text, expected) => {
    expect(found(text)).toEqual(expected);
  });
});

test('a bank line that names an old number pays the invoice of the previous system', async () => {
  world.at('2026-07-06T10:00:00Z');
  const bytes = Buffer.from('date,text,payer,amount\n2026-07-03,RE 2026/10442,Harbour Lights,100.00\n');
  const report = await world.database.transaction((tx) => importBankFile(tx, world, { name: 'bank.csv', bytes }));
  expect(report.new_lines[0]?.applied).toMatchObject([{ number: 'RE-2026-10442', amount: '100.00' }]);
  expect(await documentNamed('RE-2026-10442')).toMatchObject({ status: 'paid' });
});

test('an overdue one is reminded of, though no e-mail of ours was ever sent', async () => {
  world.at('2026-07-20T10:00:00Z');
  const accounts = (await world.sql<{ account: string }>('SELECT DISTINCT account FROM bank_lines')).map(
    ({ account }) => account,
  );
  const { plan } = await world.database.reading((tx) =>
    planReminders(tx, world, { accounts, reason: 'nothing to report' }),
  );
  expect(plan.reminders.flatMap(({ documents }) => documents.map(({ number }) => number))).toContain('RE-2026-10443');
});

test('delivery gives it a link of its payment page and sends nothing', async () => {
  const deliveries = await world.deliver();
  expect(deliveries.map(({ number, status }) => [number, status])).toContainEqual(['RE-2026-10443', 'no_email']);
  const open = await documentNamed('RE-2026-10443');
  expect(open?.payment_link).toMatch(/^https:\/\/pay\.issuer\.example\/pay\//);
  expect(open?.pdf_sha256).toBeNull();
  expect(await world.deliver()).toEqual([]);
});

test('the account statement and the invoice screen show it with its dates and what it is', async () => {
  const statement = await world.database.reading((tx) =>
    readAccountStatement(tx, { partnerId: 'p-1', today: '2026-07-20' } as never),
  );
  expect(JSON.stringify(statement)).toContain('RE-2026-10443');
  const view = await world.database.reading((tx) =>
    readInvoice(tx, { scope: null, period: null, params: { number: 'RE-2026-10443' }, today: '2026-07-20' }),
  );
  expect(view.history[0]?.says).toBe('carried over from the previous system, as of 2026-06-30');
  const screen = invoiceScreen(view, { user: { roles: [] } as never });
  expect(screen.title).toContain('RE-2026-10443');
  expect((await world.database.reading((tx) => readHistory(tx, view.document.document_id))).length).toBeGreaterThan(0);
});

test('a first close is compared with what the previous system invoiced, by partner and policy', async () => {
  await world.rows([quote({ accepted_at: '2026-07-10T12:00:00Z' })]);
  const { documents } = await previewClose(world.database, world, { month: '2026-07' as Month });
  const billed = documents.filter(({ purpose }) => purpose === 'month');
  const line = billed[0]?.lines[0];
  const of = (text: string) =>
    compareInvoices(
      billed,
      parseInvoiced({ name: 'old.csv', bytes: Buffer.from(`partner_id,policy_id,currency,amount\n${text}`) }),
    );
  const own = `p-1,${line?.policy_id},USD,${line?.invoice_amount}`;
  expect(of(own).map(({ result }) => result)).toEqual(['equal']);
  expect(
    of(`p-1,${line?.policy_id},USD,1.00\np-9,other,EUR,7`).map(({ result, difference }) => [result, difference]),
  ).toEqual([
    ['differs', expect.any(String)],
    ['missing here', '-7.00'],
  ]);
  expect(of('p-9,other,EUR,7').map(({ result }) => result)).toEqual(['missing there', 'missing here']);
  const [given] = compareInvoices(
    billed.map((each) => ({ ...each, document: 'credit_note' as const })),
    [],
  );
  expect([given?.here, given?.difference]).toEqual([`-${line?.invoice_amount}.00`, `-${line?.invoice_amount}.00`]);
  expect(await world.sql('SELECT FROM closed_months')).toEqual([]);
});
