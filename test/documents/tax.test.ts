/** Documents with the tax that finance configured: what is owed has it, and each correction takes that of what it corrects. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { type SettingsFile, settingsSchema } from '../../src/config/settings.ts';
import { documentSnapshot } from '../../src/documents/document.ts';
import { readDocuments } from '../../src/documents/documents.sql.ts';
import { renderDocumentEmail } from '../../src/mail/document-text.ts';
import { templatesOf } from '../../src/mail/templates.ts';
import { lastDay, type Month } from '../../src/month.ts';
import { type CloseReport, readCloseReport } from '../../src/reports/close.ts';
import { describeClose } from '../../src/reports/close-text.ts';
import type { TaxPeriod } from '../../src/reports/tax.sql.ts';
import { readTaxReport } from '../../src/reports/tax.ts';
import { readTrialBalance } from '../../src/reports/trial-balance.ts';
import { refusalOf } from '../close/refusal.ts';
import { freshMailWorld } from '../support/mail-world.ts';
import { needs, tool } from '../support/tools.ts';
import { partner, quote, requote, reversal, type World } from '../support/world.ts';
import { type Corrections, correctionsOf, document, expectVerified, refund, sale } from './correcting.ts';

let world: World;
let action: Corrections;
freshMailWorld((opened) => {
  ({ world } = opened);
});

type Rules = NonNullable<SettingsFile['tax']>['rules'];

/** Germany's tax, as a finance department might write it down. */
const GERMAN: Rules = [
  { country: 'DE', category: 'standard', rate: '16', until: '2026-07-31' },
  { country: 'DE', category: 'standard', rate: '19', from: '2026-08-01' },
  { country: 'DE', policy: 'parking', category: 'standard', rate: '7' },
  { country: 'FR', category: 'reverse_charge', reason_code: 'VATEX-EU-AE' },
  { kind: 'non_insurance', country: 'AT', category: 'exempt', reason: 'Insurance, exempt from VAT' },
];

function configure(rules: Rules, from = '2026-07'): void {
  const tax = { from, rules, countries: { DE: { registration: 'DE123456788' }, JP: { name: 'Consumption tax' } } };
  world.settings = { ...world.settings, tax: settingsSchema.shape.tax.parse(tax) };
}

const from = (country: string, more: Record<string, unknown> = {}) =>
  partner({
    address: { line1: '1 Quay', line2: '', city: 'Town', region: '', postal_code: '10115', country },
    currency: 'EUR',
    ...more,
  });

const INV_1 = 'INV-2026-000001';

beforeEach(async () => {
  action = correctionsOf(world);
  configure(GERMAN);
  await world.partners([from('DE')]);
});

const euros = (month: string, amount: string, more: Record<string, unknown> = {}) =>
  sale(month, amount, { currency: 'EUR', ...more });

test('an invoice adds tax by rate, rounded once for each, and owes the gross amount', async () => {
  await world.rows([
    euros('2026-07', '10.03'),
    euros('2026-07', '10.03'),
    euros('2026-07', '10.05', { policy_id: 'parking' }),
  ]);
  await world.close();
  const invoice = await document(world, INV_1);
  expect(invoice).toMatchObject({
    invoiceAmount: '30.11',
    net: '30.11',
    tax: '3.91',
    gross: '34.02',
    amount_due: '34.02',
    balance: '34.02',
    registration: 'DE123456788',
  });
  // 20.06 × 16 % = 3.2096, and 10.05 × 7 % = 0.7035.
  expect(invoice.taxTotals).toMatchObject([
    { category: 'standard', rate: '16', taxable: '20.06', tax: '3.21', name: 'VAT', country: 'DE' },
    { category: 'standard', rate: '7', taxable: '10.05', tax: '0.70' },
  ]);
  expect(invoice.lines.map(({ policy_id, tax }) => [policy_id, tax?.category, tax?.rate])).toEqual([
    ['parking', 'standard', '7'],
    ['ticket-protection', 'standard', '16'],
  ]);
  await expectVerified(world);
});

test('a document without tax configured has no field of it', async () => {
  world.settings = { ...world.settings, tax: null };
  await world.rows([euros('2026-07', '10')]);
  await world.close();
  const invoice = await document(world, INV_1);
  expect(Object.keys(invoice)).not.toEqual(expect.arrayContaining(['tax']));
  expect(invoice).toMatchObject({ amount_due: '10.00' });
  expect(invoice.lines[0]).not.toHaveProperty('tax');
  expect(invoice).not.toHaveProperty('taxTotals');
});

test('reverse charge and exempt sales state why no tax is charged', async () => {
  await world.partners([from('FR', { partner_id: 'p-fr' }), from('AT', { partner_id: 'p-at' })]);
  await world.rows([euros('2026-07', '100', { partner_id: 'p-fr' }), euros('2026-07', '100', { partner_id: 'p-at' })]);
  await world.close();
  const [austrian, french] = await world.documents();
  expect(french).toMatchObject({
    tax: '0.00',
    gross: '100.00',
    taxTotals: [
      {
        category: 'reverse_charge',
        rate: '0',
        reason: 'Reverse charge',
        reason_code: 'VATEX-EU-AE',
        taxable: '100.00',
      },
    ],
  });
  expect(austrian).toMatchObject({ taxTotals: [{ category: 'exempt', reason: 'Insurance, exempt from VAT' }] });
  await expectVerified(world);
});

test('a sale without a rule stops the close, which names the partner, the policy and the day', async () => {
  await world.partners([from('ES', { partner_id: 'p-es' })]);
  await world.rows([euros('2026-07', '10'), euros('2026-07', '10', { partner_id: 'p-es' })]);
  const refusal = await refusalOf(world.close());
  expect(refusal).toMatchObject({
    code: 'tax_rule_missing',
    facts: { lines: [{ partner_id: 'p-es', policy_id: 'ticket-protection', country: 'ES', date: '2026-07-31' }] },
  });
  expect(await world.documents()).toEqual([]);
});

test('insurance is not charged by a rule for all sales: the close stops, and says what to add', async () => {
  const policies = [{ policy_id: 'cover', name: 'Cover', kind: 'insurance', partner_cut_rate: '0.30' }];
  await world.partners([from('DE', { partner_id: 'p-ins', policies })]);
  await world.rows([euros('2026-07', '10', { partner_id: 'p-ins', policy_id: 'cover' })]);
  await expect(world.close()).rejects.toThrow(
    [
      'No tax rule applies to a sale billed in 2026-07:',
      '  p-ins (DE), policy cover: rule 1 charges tax, and does not name "kind": "insurance", rule 2 begins on 2026-08-01; ' +
        "the sale's tax point is 2026-07-31",
      'In settings.json, extend the days of the rule ("from", "until"), or add a rule for those days under tax.rules.',
      'For insurance, add a rule with "kind": "insurance", mostly of the category exempt.',
    ].join('\n'),
  );
  configure([{ kind: 'insurance', category: 'exempt', reason: 'Insurance, exempt from VAT' }, ...GERMAN]);
  await world.close();
  expect(await document(world, INV_1)).toMatchObject({ tax: '0.00', taxTotals: [{ category: 'exempt' }] });
  await expectVerified(world);
});

test('a reversal has the tax of what it reverses, also after the rate has changed', async () => {
  const sold = euros('2026-07', '100');
  const again = euros('2026-08', '50');
  await world.rows([sold]);
  await world.close();
  world.at('2026-09-01T10:00:00Z');
  await world.rows([again, euros('2026-08', '200'), refund(sold, '2026-08'), refund(again, '2026-08')]);
  await world.close();
  const august = await document(world, 'INV-2026-000002');
  // 250 - 50 sold in August at 19 %, and 100 of July taken back at 16 %.
  expect(august.taxTotals).toMatchObject([
    { rate: '19', taxable: '200.00', tax: '38.00' },
    { rate: '16', taxable: '-100.00', tax: '-16.00' },
  ]);
  expect(august.lines.map(({ kind, invoiceAmount, tax }) => [kind, invoiceAmount, tax?.rate])).toEqual([
    ['quote_accepted', '250.00', '19'],
    ['reversal', '-50.00', '19'],
    ['reversal', '-100.00', '16'],
  ]);
  expect(august).toMatchObject({ gross: '122.00', amount_due: '122.00' });
  await expectVerified(world);
});

test('a sale from before tax began needs a rule for its own month: nothing refunds tax that nobody charged', async () => {
  configure([{ category: 'standard', rate: '19' }], '2026-08');
  const sold = euros('2026-07', '100');
  await world.rows([sold]);
  await world.close();
  expect(await document(world, INV_1)).toMatchObject({ amount_due: '100.00' });
  world.at('2026-09-01T10:00:00Z');
  await world.rows([euros('2026-08', '300'), refund(sold, '2026-08')]);
  expect(await refusalOf(world.close())).toMatchObject({
    code: 'tax_rule_missing',
    facts: { lines: [{ partner_id: 'p-1', date: '2026-07-31' }] },
  });
  await expect(world.close()).rejects.toThrow(
    /p-1 \(DE\), policy ticket-protection: rule 1 begins on 2026-08-01; the sale's tax point is 2026-07-31\nIn settings\.json, extend the days of the rule \("from", "until"\), or add a rule for those days under tax\.rules\.$/,
  );
  // The rule's own first day is what the refusal asks for.
  configure([{ category: 'standard', rate: '19', from: '2026-07-01' }], '2026-08');
  await world.preview();
  const before = { category: 'exempt', reason: 'Billed without VAT', until: '2026-07-31' } as const;
  configure([{ category: 'standard', rate: '19' }, before], '2026-08');
  await world.close();
  expect(await document(world, 'INV-2026-000002')).toMatchObject({
    ...{ net: '200.00', tax: '57.00', gross: '257.00' },
    taxTotals: [
      { rate: '19', taxable: '300.00', tax: '57.00' },
      { category: 'exempt', taxable: '-100.00', tax: '0.00' },
    ],
  });
  await expectVerified(world);
});

test('a reversal of a requote has the tax of the requote', async () => {
  const sold = quote({ currency: 'EUR' });
  const more = requote(sold, { accepted_at: '2026-08-10T12:00:00Z' });
  await world.rows([sold]);
  await world.close();
  world.at('2026-09-01T10:00:00Z');
  const back = reversal(more, {
    ...{ accepted_at: '2026-08-11T12:00:00Z', spotPrice: '-5.00', partnerCut: '-1.50', invoiceAmount: '-3.50' },
  });
  await world.rows([more, back]);
  await world.close();
  expect((await document(world, 'INV-2026-000002')).taxTotals).toMatchObject([{ rate: '19', taxable: '0.00' }]);
  await expectVerified(world);
});

test('a month below zero is a credit note with its tax', async () => {
  const sold = euros('2026-07', '33.33');
  await world.rows([sold]);
  await world.close();
  world.at('2026-09-01T10:00:00Z');
  await world.rows([refund(sold, '2026-08')]);
  await world.close();
  expect(await document(world, 'CN-2026-000001')).toMatchObject({
    ...{ invoiceAmount: '33.33', tax: '5.33', gross: '38.66', balance: '38.66' },
    taxTotals: [{ rate: '16', taxable: '33.33', tax: '5.33' }],
  });
  await expectVerified(world);
});

test('where net and gross have different signs, what is owed decides between invoice and credit note', async () => {
  configure([
    { policy: 'parking', category: 'zero' },
    { category: 'standard', rate: '50' },
  ]);
  const sold = euros('2026-07', '100');
  await world.rows([sold]);
  await world.close();
  world.at('2026-09-01T10:00:00Z');
  await world.rows([refund(sold, '2026-08'), euros('2026-08', '110', { policy_id: 'parking' })]);
  await world.close();
  // 110 without tax, less 100 with 50: 10 net, and 40 in the partner's favor.
  expect(await document(world, 'CN-2026-000001')).toMatchObject({
    ...{ invoiceAmount: '-10.00', tax: '50.00', gross: '40.00', balance: '40.00' },
  });
  await expectVerified(world);
});

test('credits before tax credit exactly the tax of the invoice in the end', async () => {
  configure([{ category: 'standard', rate: '19' }]);
  await world.rows([euros('2026-07', '100')]);
  await world.close();
  for (const amount of ['33.33', '33.33', '33.34']) await action.credit(INV_1, amount);
  const notes = (await world.documents()).filter(({ document: kind }) => kind === 'credit_note');
  expect(notes.map(({ invoiceAmount, tax, gross }) => [invoiceAmount, tax, gross])).toEqual([
    ['33.33', '6.33', '39.66'],
    ['33.33', '6.34', '39.67'],
    ['33.34', '6.33', '39.67'],
  ]);
  expect(await document(world, INV_1)).toMatchObject({ amount_due: '119.00', balance: '0.00', status: 'paid' });
  expect(await refusalOf(action.credit(INV_1, '0.01'))).toMatchObject({ code: 'credit_exceeds_invoice' });
  await expectVerified(world);
});

test('a credit has the tax of its invoice, also after the rate has changed and where no rule is left', async () => {
  await world.rows([euros('2026-07', '100')]);
  await world.close();
  configure([{ country: 'FR', category: 'reverse_charge' }]);
  await action.credit(INV_1, '25');
  expect(await document(world, 'CN-2026-000001')).toMatchObject({
    ...{ invoiceAmount: '25.00', tax: '4.00', gross: '29.00' },
    taxTotals: [{ rate: '16', taxable: '25.00', tax: '4.00' }],
  });
  expect(await document(world, INV_1)).toMatchObject({ balance: '87.00' });
  await expectVerified(world);
});

test('a month between two rules that do not meet stops the close, and a rerun under rules that left it out', async () => {
  configure([
    { category: 'standard', rate: '16', until: '2026-06-30' },
    { category: 'standard', rate: '19', from: '2026-08-01' },
  ]);
  await world.rows([euros('2026-07', '100')]);
  expect(await refusalOf(world.close())).toMatchObject({
    code: 'tax_rule_missing',
    facts: { lines: [{ partner_id: 'p-1', date: '2026-07-31' }] },
  });
  configure(GERMAN);
  await world.close();
  configure([{ category: 'standard', rate: '19', from: '2026-08-01' }]);
  expect(await refusalOf(action.rerun(INV_1))).toMatchObject({ code: 'tax_rule_missing' });
  expect(await document(world, INV_1)).toMatchObject({ status: 'open', tax: '16.00' });
});

test('of 200 lines the tax is that of their sum, not the sum of rounded taxes', async () => {
  const policies = Array.from({ length: 200 }, (_, index) => ({
    ...{ policy_id: `policy-${index}`, name: `Policy ${index}`, kind: 'non_insurance', partner_cut_rate: '0.30' },
  }));
  configure([{ category: 'standard', rate: '19' }]);
  await world.partners([from('DE', { policies })]);
  await world.rows(policies.map(({ policy_id }) => euros('2026-07', '0.07', { policy_id })));
  await world.close();
  const invoice = await document(world, INV_1);
  expect(invoice.lines).toHaveLength(200);
  // 14.00 × 19 %; 200 taxes of 0.0133, rounded one by one, would be 2.00.
  expect(invoice).toMatchObject({ net: '14.00', tax: '2.66', gross: '16.66', balance: '16.66' });
  for (const amount of ['0.01', '0.02', '13.97']) await action.credit(INV_1, amount);
  expect(await document(world, INV_1)).toMatchObject({ balance: '0.00', status: 'paid' });
  await expectVerified(world);
});

test('a credit over several rates is divided by what is left of each', async () => {
  await world.rows([euros('2026-07', '60'), euros('2026-07', '40', { policy_id: 'parking' })]);
  await world.close();
  await action.credit(INV_1, '10.01');
  expect(await document(world, 'CN-2026-000001')).toMatchObject({
    invoiceAmount: '10.01',
    taxTotals: [
      { rate: '16', taxable: '6.01', tax: '0.96' },
      { rate: '7', taxable: '4.00', tax: '0.28' },
    ],
  });
  await action.credit(INV_1, '89.99');
  expect(await document(world, INV_1)).toMatchObject({ balance: '0.00' });
  await expectVerified(world);
});

test('a rerun finds a corrected rate, replaces the invoice, and else changes nothing', async () => {
  await world.rows([euros('2026-07', '100')]);
  await world.close();
  expect(await action.rerun(INV_1)).toMatchObject({ unchanged: 1, replaced: [] });
  configure([{ category: 'standard', rate: '20' }]);
  expect(await action.rerun(INV_1)).toMatchObject({ replaced: [{ number: INV_1, why: ['the tax'] }] });
  expect(await document(world, 'INV-2026-000002')).toMatchObject({ tax: '20.00', balance: '120.00' });
  expect(await document(world, INV_1)).toMatchObject({ status: 'void', tax: '16.00' });
  await expectVerified(world);
});

test('a month before tax began is run again without tax', async () => {
  configure(GERMAN, '2026-08');
  await world.rows([euros('2026-07', '100')]);
  await world.close();
  expect(await action.rerun(INV_1)).toMatchObject({ unchanged: 1 });
  expect(await document(world, INV_1)).toMatchObject({ amount_due: '100.00' });
});

test('a write-off gives up the gross amount and leaves the tax payable', async () => {
  await world.rows([euros('2026-07', '100')]);
  await world.close();
  await action.writeOff(INV_1);
  const balances = await world.sql<{ account: string; amount: string }>(
    `SELECT account, sum(amount)::text AS amount FROM journal WHERE account ~ 'tax|bad-debts|receivable:billed' GROUP BY account
     ORDER BY account`,
  );
  expect(balances).toEqual([
    { account: 'assets:receivable:billed:p-1', amount: '0.00' },
    { account: 'expenses:bad-debts', amount: '116.00' },
    { account: 'liabilities:tax:DE:standard:16', amount: '-16.00' },
  ]);
  await expectVerified(world);
});

test('yen have no decimals, and a reduced rate is marked', async () => {
  configure([
    { country: 'JP', category: 'standard', rate: '10' },
    { country: 'JP', policy: 'parking', category: 'standard', rate: '8', reduced: true },
  ]);
  await world.partners([from('JP', { partner_id: 'p-jp', currency: 'JPY' })]);
  const yen = { partner_id: 'p-jp', currency: 'JPY' };
  await world.rows([sale('2026-07', '1005', yen), sale('2026-07', '1006', { ...yen, policy_id: 'parking' })]);
  await world.close();
  expect((await document(world, INV_1)).taxTotals).toMatchObject([
    { rate: '10', taxable: '1005', tax: '101', reduced: false, name: 'Consumption tax' },
    { rate: '8', taxable: '1006', tax: '80', reduced: true },
  ]);
  await expectVerified(world);
});

/** What a document prints and mails. */
async function delivered(number: string): Promise<{ pdf: string; mail: string }> {
  const results = await world.deliver();
  expect(results.map(({ status }) => status)).toEqual(results.map(() => 'sent'));
  const [row] = await world.sql<{ pdf: Buffer; id: number }>(
    `SELECT pdf, document_id::int AS id FROM document_pdfs JOIN documents USING (document_id) WHERE number = $1`,
    [number],
  );
  const file = join(world.home, `${number}.pdf`);
  writeFileSync(file, row?.pdf ?? '');
  const [snapshot] = await world.database.reading((tx) => readDocuments(tx, { number }));
  if (snapshot === undefined) throw new Error(`there is no ${number}`);
  const additions = { paymentLink: null, instructions: null, instructionsChanged: false };
  const facts = { contactName: '', attachments: [], rowsOmitted: false };
  const mail = renderDocumentEmail(documentSnapshot(snapshot, additions), facts, templatesOf(world.environment));
  return {
    pdf: execFileSync(tool('pdftotext'), [file, '-'], { encoding: 'utf8' }).replace(/\s+/g, ' '),
    mail: mail.text,
  };
}

test('the PDF and the e-mail have a row for each rate and the total with tax, and name our number there', async (context) => {
  needs('pdfinfo', context); // and pdftotext, of the same package
  await world.partners([from('FR', { partner_id: 'p-fr' })]);
  await world.rows([
    ...[euros('2026-07', '100'), euros('2026-07', '50', { policy_id: 'parking' })],
    euros('2026-07', '80', { partner_id: 'p-fr' }),
  ]);
  await world.close();
  const german = await delivered(INV_1);
  for (const text of ['VAT 16% on 100.00', 'VAT 7% on 50.00', 'Total with tax', 'VAT registration DE123456788'])
    expect(german.pdf).toContain(text);
  const steps = ['Total before tax:', 'VAT 16% on 100.00:', 'VAT 7% on 50.00:', 'Total with tax:', 'Amount due:'];
  const places = steps.map((text) => german.mail.indexOf(text));
  expect(places.every((place, at) => place > (places[at - 1] ?? 0))).toBe(true);
  expect(german.mail).toMatch(/Amount due: (EUR )?169.50/);
  const french = await delivered('INV-2026-000002');
  expect(french.pdf).toContain('Reverse charge, no VAT on 80.00');
  expect(french.mail).toContain('Reverse charge, no VAT on 80.00');
  // The reason, or what a mark means, is below the amounts.
  expect(french.mail).toMatch(/Issue date: .*\n\nReverse charge\n/);
});

test('the long name of a tax, with our number there, is a line of its own below our e-mail address', async (context) => {
  needs('pdfinfo', context);
  const countries = { JP: { name: 'Japanese consumption tax (JCT)', registration: 'T7000012050002' } };
  const tax = { from: '2026-07', rules: [{ category: 'standard', rate: '10' }], countries };
  world.settings = { ...world.settings, tax: settingsSchema.shape.tax.parse(tax) };
  await world.partners([from('JP', { partner_id: 'p-jp', currency: 'JPY' })]);
  await world.rows([sale('2026-07', '1000', { partner_id: 'p-jp', currency: 'JPY' })]);
  await world.close();
  await delivered(INV_1);
  const lines = execFileSync(tool('pdftotext'), [join(world.home, `${INV_1}.pdf`), '-'], { encoding: 'utf8' }).split(
    '\n',
  );
  expect(lines.map((line) => line.trim())).toContain('Japanese consumption tax (JCT) registration T7000012050002');
});

test('the close report says that its amounts are before tax, and how much tax the documents add', async () => {
  await world.rows([euros('2026-07', '1000'), euros('2026-07', '50', { policy_id: 'parking' })]);
  await world.close();
  const read = async () => (await world.database.reading((tx) => readCloseReport(tx))) as CloseReport;
  const report = await read();
  expect(report.taxes).toEqual({ EUR: '163.50' });
  expect(describeClose(report)).toContain('Amounts are before tax. The documents of the month add tax: 163.50 EUR.');
  world.at('2026-09-01T10:00:00Z');
  world.settings = { ...world.settings, tax: null };
  await world.rows([euros('2026-08', '10')]);
  await world.close();
  const untaxed = await read();
  expect(untaxed).not.toHaveProperty('taxes');
  expect(describeClose(untaxed)).not.toContain('tax');
});

test('the tax of a sale is in its own month, and that of a credit in the month of the credit', async () => {
  const report = (basis: TaxPeriod['basis'], month: string) =>
    world.database.reading((tx) => readTaxReport(tx, { from: `${month}-01`, to: lastDay(month as Month), basis }));
  const balances = async (asOf: string) => {
    const { accounts } = await world.database.reading((tx) =>
      readTrialBalance(tx, { asOf, today: '2026-10-15', detail: true }),
    );
    return Object.fromEntries(
      accounts.map(({ account, debit, credit }) => [account, credit === '0.00' ? debit : `-${credit}`]),
    );
  };
  const late = euros('2026-07', '10');
  await world.rows([euros('2026-07', '100'), euros('2026-07', '50', { policy_id: 'parking' })]);
  await world.close();
  const line = { country: 'DE', category: 'standard', currency: 'EUR' };
  const july = {
    ties: true,
    lines: [
      { ...line, rate: '16', issued: 1, voided: 0, taxable: '100.00', late: '0.00', tax: '16.00' },
      { ...line, rate: '7', taxable: '50.00', tax: '3.50' },
    ],
  };
  expect(await report('tax-point', '2026-07')).toMatchObject(july);
  expect(await report('issued', '2026-07')).toMatchObject({ ties: true, lines: [] });
  expect(await report('issued', '2026-08')).toMatchObject(july);
  expect(await balances('2026-07-31')).toMatchObject({
    'assets:receivable:unbilled:p-1': '169.50',
    'liabilities:tax:DE:standard:16': '-16.00',
    'liabilities:tax:DE:standard:7': '-3.50',
  });
  await world.closeBooks('2026-07');
  await action.credit(INV_1, '15');
  expect(await report('tax-point', '2026-07')).toMatchObject(july);
  world.at('2026-09-01T10:00:00Z');
  await world.rows([late, euros('2026-08', '20')]);
  await world.close();
  // Late, July's sale has July's rate, in the first month that is open.
  expect(await report('tax-point', '2026-08')).toMatchObject({
    ties: true,
    lines: [
      { rate: '19', taxable: '20.00', late: '0.00', tax: '3.80' },
      { rate: '16', issued: 2, taxable: '0.00', late: '10.00', tax: '0.00' },
      { rate: '7', taxable: '-5.00', tax: '-0.35' },
    ],
  });
  expect(await balances('2026-08-31')).toMatchObject({ 'assets:receivable:unbilled:p-1': '35.40' });
  await expectVerified(world);
});

test('a void takes tax out of its month while the books are open, and afterwards on its own day', async () => {
  const of = (from: string, to = from) =>
    world.database.reading((tx) => readTaxReport(tx, { from, to, basis: 'tax-point' }));
  const july = () => of('2026-07-31');
  await world.rows([euros('2026-07', '100')]);
  await world.close();
  await action.voided(INV_1);
  expect(await july()).toMatchObject({ ties: true, lines: [{ issued: 1, voided: 1, taxable: '0.00', tax: '0.00' }] });
  configure([{ category: 'standard', rate: '10' }]);
  await action.rerun(INV_1);
  const replaced = {
    ties: true,
    lines: [
      { rate: '16', tax: '0.00' },
      { rate: '10', taxable: '100.00', tax: '10.00' },
    ],
  };
  expect(await july()).toMatchObject(replaced);
  await world.closeBooks('2026-07');
  world.at('2026-08-20T10:00:00Z');
  await action.voided('INV-2026-000002');
  world.at('2026-08-22T10:00:00Z');
  configure([{ category: 'standard', rate: '16' }]);
  await action.rerun('INV-2026-000002');
  expect(await july()).toMatchObject(replaced);
  expect(await of('2026-08-01', '2026-08-19')).toMatchObject({ ties: true, lines: [] });
  const out = { rate: '10', issued: 0, voided: 1, taxable: '-100.00', tax: '-10.00' };
  const into = { rate: '16', issued: 1, voided: 0, taxable: '100.00', tax: '16.00' };
  // The replacement enters its tax on the day of the void, because the books of August are open.
  expect(await of('2026-08-20')).toMatchObject({ ties: true, lines: [into, out] });
  expect(await of('2026-08-22')).toMatchObject({ ties: true, lines: [] });
  await expectVerified(world);
});

test('the books of a month wait for the replacement of a taxed document whose void took tax out of them', async () => {
  const taxOf = async (month: string) => {
    const period = { from: `${month}-01`, to: lastDay(month as Month), basis: 'tax-point' } as const;
    const { ties, lines } = await world.database.reading((tx) => readTaxReport(tx, period));
    return { ties, ...Object.fromEntries(lines.map(({ rate, tax }) => [rate, tax])) };
  };
  await world.partners([from('DE'), from('AT', { partner_id: 'p-2' })]);
  const exempt = euros('2026-07', '20', { partner_id: 'p-2', policy_id: 'parking' });
  await world.rows([euros('2026-07', '100'), exempt]);
  await world.close();
  await action.voided(INV_1);
  // Exempt sales are reported by the month of supply, too.
  await action.voided('INV-2026-000002');
  await expect(world.closeBooks('2026-07')).rejects.toThrow(
    /2026-07 .* while 2 taxed documents \(INV-2026-000001 INV-2026-000002\) are void without a replacement/,
  );
  await action.rerunMonth('2026-07');
  await world.closeBooks('2026-07');
  // The void of 31 August takes 16.00 out of the books of August, and the replacement of September puts it back there.
  world.at('2026-08-31T10:00:00Z');
  await action.voided('INV-2026-000003');
  expect(await taxOf('2026-08')).toEqual({ ties: true, '16': '-16.00' });
  world.at('2026-09-02T10:00:00Z');
  await world.rows([euros('2026-08', '20')]);
  await world.close('2026-08');
  await expect(world.closeBooks('2026-08')).rejects.toThrow(/2026-08 .* 1 taxed document \(INV-2026-000003\) is void/);
  await action.rerun('INV-2026-000003');
  const august = { ties: true, '16': '0.00', '19': '3.80' };
  expect(await taxOf('2026-08')).toEqual(august);
  expect(await taxOf('2026-09')).toEqual({ ties: true });
  // The void of the replacement takes its tax out of the books of September, also while those of August are open.
  world.at('2026-09-03T10:00:00Z');
  await action.voided('INV-2026-000006');
  await world.closeBooks('2026-08');
  world.at('2026-10-01T10:00:00Z');
  await world.close('2026-09', { allowEmpty: true });
  await expect(world.closeBooks('2026-09')).rejects.toThrow(/2026-09 .* 1 taxed document \(INV-2026-000006\) is void/);
  await action.rerun('INV-2026-000006');
  await world.closeBooks('2026-09');
  expect(await taxOf('2026-07')).toEqual({ ties: true, '0': '0.00', '16': '16.00' });
  expect(await taxOf('2026-08')).toEqual(august);
  expect(await taxOf('2026-09')).toEqual({ ties: true, '16': '0.00' });
  expect(await taxOf('2026-10')).toEqual({ ties: true });
  expect(
    await world.sql(`SELECT month, -sum(amount) AS tax FROM book_balances WHERE control = 'liabilities:tax'
                     GROUP BY month ORDER BY month`),
  ).toMatchObject([{ tax: '16' }, { tax: '19.8' }, { tax: '19.8' }]);
  await expectVerified(world);
});
