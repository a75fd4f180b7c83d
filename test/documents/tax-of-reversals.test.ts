/** A reversal takes back the tax that was charged, whatever the rules and the partner's country have become since. */
import { beforeEach, expect, test } from 'vitest';
import { type SettingsFile, settingsSchema } from '../../src/config/settings.ts';
import { type DocumentJson, documentJson } from '../../src/documents/document.ts';
import type { Month } from '../../src/month.ts';
import { readTaxReport } from '../../src/reports/tax.ts';
import { freshMailWorld } from '../support/mail-world.ts';
import { partner, requote, reversal, type World } from '../support/world.ts';
import { type Corrections, correctionsOf, document, expectVerified, refund, sale } from './correcting.ts';

let world: World;
let action: Corrections;
freshMailWorld((opened) => {
  ({ world } = opened);
});

const RULES: NonNullable<SettingsFile['tax']>['rules'] = [
  { country: 'DE', category: 'standard', rate: '19' },
  { country: 'FR', category: 'reverse_charge' },
  { country: 'AT', category: 'standard', rate: '19' },
];

function configure(rules = RULES, from = '2026-07', registration = 'DE123456788'): void {
  const tax = { from, rules, countries: { DE: { registration } } };
  world.settings = { ...world.settings, tax: settingsSchema.shape.tax.parse(tax) };
}

const moveTo = (country: string) =>
  world.partners([
    partner({
      address: { line1: '1 Quay', line2: '', city: 'Town', region: '', postal_code: '10115', country },
      currency: 'EUR',
    }),
  ]);

beforeEach(async () => {
  action = correctionsOf(world);
  configure();
  await moveTo('DE');
});

const euros = (month: string, amount: string, more: Record<string, unknown> = {}) =>
  sale(month, amount, { currency: 'EUR', ...more });

/** Closes a month with these rows, early in the next. */
async function closeWith(month: '2026-07' | '2026-08' | '2026-09', ...rows: Record<string, unknown>[]): Promise<void> {
  const next = { '2026-07': '2026-08', '2026-08': '2026-09', '2026-09': '2026-10' }[month];
  world.at(`${next}-01T10:00:00Z`);
  await world.rows(rows);
  const preview = await world.preview();
  await world.close();
  const closed = await world.documents({ months: [month as Month] });
  // A dry run says the same.
  const amounts = ({ number, lines, tax, gross, taxTotals }: DocumentJson) => ({
    number,
    lines,
    tax,
    gross,
    taxTotals,
  });
  expect(preview.documents.map(documentJson).map(amounts)).toEqual(closed.map(amounts));
}

const taxPayable = async (): Promise<Record<string, string>> => {
  const days = { from: '2026-07-01', to: '2026-12-31', basis: 'tax-point' as const };
  const { lines, ties } = await world.database.reading((tx) => readTaxReport(tx, days));
  expect(ties).toBe(true);
  return Object.fromEntries(lines.map(({ country, category, rate, tax }) => [`${country} ${category} ${rate}`, tax]));
};

test('a partner that has moved to another country gets back the tax of the country that it bought in', async () => {
  const sold = euros('2026-07', '100');
  await closeWith('2026-07', sold);
  await moveTo('FR');
  await closeWith('2026-08', refund(sold, '2026-08'));
  expect(await document(world, 'CN-2026-000001')).toMatchObject({
    ...{ invoiceAmount: '100.00', tax: '19.00', gross: '119.00', registration: 'DE123456788' },
    taxTotals: [{ country: 'DE', category: 'standard', rate: '19', taxable: '100.00', tax: '19.00' }],
  });
  expect(await taxPayable()).toEqual({ 'DE standard 19': '0.00' });
  await expectVerified(world);
});

test('a rule that was edited or left out afterwards changes nothing in what a reversal takes back', async () => {
  const [one, other] = [euros('2026-07', '100'), euros('2026-07', '50')];
  await closeWith('2026-07', one, other);
  configure([{ country: 'DE', category: 'standard', rate: '7' }]);
  await closeWith('2026-08', refund(one, '2026-08'));
  expect(await document(world, 'CN-2026-000001')).toMatchObject({ tax: '19.00', gross: '119.00' });
  configure([{ country: 'FR', category: 'reverse_charge' }]);
  await closeWith('2026-09', refund(other, '2026-09'));
  expect(await document(world, 'CN-2026-000002')).toMatchObject({ tax: '9.50', gross: '59.50' });
  await expectVerified(world);
});

test('reversals of one line whose sales were taxed differently are divided by it', async () => {
  const sold = euros('2026-07', '100');
  const late = euros('2026-07', '40');
  await closeWith('2026-07', sold);
  await moveTo('FR');
  // Both were sold in July; August bills the late one, under reverse charge.
  await closeWith('2026-08', late);
  await closeWith('2026-09', euros('2026-09', '500'), refund(sold, '2026-09'), refund(late, '2026-09'));
  const september = await document(world, 'INV-2026-000003');
  // Totals of the country where it is now are first: the number on the document is ours there, and there is none.
  expect(september).toMatchObject({
    ...{ net: '360.00', tax: '-19.00', gross: '341.00', registration: '' },
    taxTotals: [
      { country: 'FR', category: 'reverse_charge', taxable: '460.00', tax: '0.00' },
      { country: 'DE', category: 'standard', rate: '19', taxable: '-100.00', tax: '-19.00' },
    ],
  });
  expect(september.lines.map(({ kind, invoiceAmount, tax }) => [kind, invoiceAmount, tax?.category])).toEqual([
    ['quote_accepted', '500.00', 'reverse_charge'],
    ['reversal', '-40.00', 'reverse_charge'],
    ['reversal', '-100.00', 'standard'],
  ]);
  await expectVerified(world);
});

test('two countries with one rate have totals of their own, also in credits', async () => {
  const sold = euros('2026-07', '100');
  await closeWith('2026-07', sold);
  await moveTo('AT');
  await closeWith('2026-08', euros('2026-08', '300.03'), refund(sold, '2026-08'));
  expect(await document(world, 'INV-2026-000002')).toMatchObject({
    ...{ tax: '38.01', gross: '238.04' },
    taxTotals: [
      { country: 'AT', rate: '19', taxable: '300.03', tax: '57.01' },
      { country: 'DE', rate: '19', taxable: '-100.00', tax: '-19.00' },
    ],
  });
  expect(await taxPayable()).toEqual({ 'AT standard 19': '57.01', 'DE standard 19': '0.00' });
  for (const amount of ['33.33', '166.70']) await action.credit('INV-2026-000002', amount);
  expect(await document(world, 'INV-2026-000002')).toMatchObject({ balance: '0.00' });
  expect(await taxPayable()).toEqual({ 'AT standard 19': '0.00', 'DE standard 19': '19.00' });
  await expectVerified(world);
});

test('a reversal follows the document that bills its sale now: the replacement, or none', async () => {
  const [one, other, third] = [euros('2026-07', '100'), euros('2026-07', '50'), euros('2026-07', '30')];
  await closeWith('2026-07', one, other, third);
  configure([{ country: 'DE', category: 'standard', rate: '7' }]);
  expect(await action.rerun('INV-2026-000001')).toMatchObject({ replaced: [{ why: ['the tax'] }] });
  configure();
  await closeWith('2026-08', refund(one, '2026-08'));
  expect(await document(world, 'CN-2026-000001')).toMatchObject({ tax: '7.00' });
  // The rules of today would tax July otherwise; the reversal in August follows July, so nothing differs in it.
  expect(await action.rerun('CN-2026-000001')).toMatchObject({ unchanged: 1, replaced: [] });
  await action.rerun('INV-2026-000002');
  await action.unapply('CN-2026-000001', 'INV-2026-000003');
  expect(await action.rerun('CN-2026-000001')).toMatchObject({ replaced: [{ why: ['the tax'] }] });
  expect(await document(world, 'CN-2026-000002')).toMatchObject({ tax: '19.00' });
  // Billed on no live document: the rules say what it has.
  await action.voided('INV-2026-000003');
  configure([{ country: 'DE', category: 'standard', rate: '7' }]);
  await closeWith('2026-09', refund(other, '2026-09'));
  expect(await document(world, 'CN-2026-000003')).toMatchObject({ tax: '3.50' });
  await expectVerified(world);
});

test('the reversal of a requote takes back the tax of the requote, and what one month sells and takes back has one tax', async () => {
  const sold = euros('2026-07', '100');
  const more = requote(sold, { accepted_at: '2026-08-10T12:00:00Z' });
  const ofMore = {
    accepted_at: '2026-09-11T12:00:00Z',
    spotPrice: '-5.00',
    partnerCut: '-1.50',
    invoiceAmount: '-3.50',
  };
  await closeWith('2026-07', sold);
  await moveTo('FR');
  const again = euros('2026-08', '10');
  await closeWith('2026-08', more, again, refund(again, '2026-08'));
  expect((await document(world, 'INV-2026-000002')).taxTotals).toMatchObject([
    { country: 'FR', category: 'reverse_charge', taxable: '3.50' },
  ]);
  await moveTo('DE');
  await closeWith('2026-09', reversal(more, ofMore), refund(sold, '2026-09'));
  expect((await document(world, 'CN-2026-000001')).taxTotals).toMatchObject([
    { country: 'DE', category: 'standard', taxable: '100.00', tax: '19.00' },
    { country: 'FR', category: 'reverse_charge', taxable: '3.50', tax: '0.00' },
  ]);
  await expectVerified(world);
});

test('what a first month billed of the months before it is taken back as it was taxed there', async () => {
  const sold = euros('2026-06', '100');
  configure([{ country: 'DE', category: 'standard', rate: '19', from: '2026-01-01' }]);
  await world.rows([sold]);
  await world.close('2026-07', { firstMonth: '2026-07' });
  expect(await document(world, 'INV-2026-000001')).toMatchObject({ month: '2026-07', tax: '19.00' });
  configure([{ country: 'DE', category: 'standard', rate: '7', from: '2026-01-01' }]);
  await closeWith('2026-08', refund(sold, '2026-08'));
  expect(await document(world, 'CN-2026-000001')).toMatchObject({ tax: '19.00' });
  await expectVerified(world);
});

test('our tax number is the one that we have now, also where a reversal has the tax of before', async () => {
  const sold = euros('2026-07', '100');
  configure(RULES, '2026-07', '');
  await closeWith('2026-07', sold);
  configure();
  await closeWith('2026-08', euros('2026-08', '300'), refund(sold, '2026-08'));
  expect(await document(world, 'INV-2026-000002')).toMatchObject({
    registration: 'DE123456788',
    taxTotals: [{ taxable: '200.00', tax: '38.00' }],
  });
});

test('reasons that a total had together are stated once each when one of them is taken back', async () => {
  const exempt = (policy: string, reason: string) => ({ policy, category: 'exempt', reason }) as const;
  configure([exempt('ticket-protection', 'Insurance'), exempt('parking', 'Lease')]);
  const sold = euros('2026-07', '100');
  await closeWith('2026-07', sold, euros('2026-07', '50', { policy_id: 'parking' }));
  await closeWith('2026-08', euros('2026-08', '300'), refund(sold, '2026-08'));
  expect((await document(world, 'INV-2026-000002')).taxTotals).toMatchObject([{ reason: 'Insurance; Lease' }]);
});

test('a reduced rate and another of the same height have totals and marks of their own', async () => {
  configure([
    { policy: 'parking', category: 'standard', rate: '8', reduced: true },
    { category: 'standard', rate: '8' },
  ]);
  await closeWith('2026-07', euros('2026-07', '100'), euros('2026-07', '50.06', { policy_id: 'parking' }));
  const invoice = await document(world, 'INV-2026-000001');
  expect(invoice.taxTotals).toMatchObject([
    { rate: '8', reduced: false, taxable: '100.00', tax: '8.00' },
    { rate: '8', reduced: true, taxable: '50.06', tax: '4.00' },
  ]);
  expect(invoice.lines.map(({ policy_id: policy, tax }) => [policy, tax?.reduced])).toEqual([
    ['parking', true],
    ['ticket-protection', false],
  ]);
  await action.credit('INV-2026-000001', '150.06');
  expect(await document(world, 'INV-2026-000001')).toMatchObject({ balance: '0.00' });
  await expectVerified(world);
});

test('a credit at a rate that was wrong is taken back before the rerun, and given again at the right one', async () => {
  await closeWith('2026-07', euros('2026-07', '100'));
  const note = await action.credit('INV-2026-000001', '40');
  configure([{ country: 'DE', category: 'standard', rate: '20' }]);
  await action.unapply(note, 'INV-2026-000001');
  await action.voided(note);
  await action.rerun('INV-2026-000001');
  await action.credit('INV-2026-000002', '40');
  await action.credit('INV-2026-000002', '60');
  expect(await document(world, 'INV-2026-000002')).toMatchObject({ gross: '120.00', balance: '0.00' });
  expect(await taxPayable()).toEqual({ 'DE standard 19': '0.00', 'DE standard 20': '0.00' });
  await expectVerified(world);
});
