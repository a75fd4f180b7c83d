/** What stands on a document: lines by policy, kind and own month, their totals, and one document for each currency. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { DocumentJson } from '../../src/documents/document.ts';
import { openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';
import { startOver } from './start-over.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());
beforeEach(async () => {
  await startOver(world);
  await world.partners([partner()]);
});

/** The only document there is. */
async function onlyDocument(): Promise<DocumentJson> {
  const documents = await world.documents();
  expect(documents).toHaveLength(1);
  return documents[0] as DocumentJson;
}

const linesOf = (document: DocumentJson) =>
  document.lines.map(({ policy_id, kind, month, count, invoiceAmount }) => [
    policy_id,
    kind,
    month,
    count,
    invoiceAmount,
  ]);

test('rows of one policy, kind and month are one line, and the lines add up to the invoice', async () => {
  const first = quote();
  const parking = quote({ policy_id: 'parking', spotPrice: '2.50', partnerCut: '0.50', invoiceAmount: '2.00' });
  await world.rows([first, quote(), quote(), requote(first), reversal(first), parking]);
  await world.close();
  const invoice = await onlyDocument();
  expect(invoice.lines).toEqual([
    {
      policy_id: 'parking',
      kind: 'quote_accepted',
      month: '2026-07',
      count: 1,
      spotPrice: '2.50',
      partnerCut: '0.50',
      invoiceAmount: '2.00',
    },
    {
      policy_id: 'ticket-protection',
      kind: 'quote_accepted',
      month: '2026-07',
      count: 3,
      spotPrice: '30.00',
      partnerCut: '9.00',
      invoiceAmount: '21.00',
    },
    {
      policy_id: 'ticket-protection',
      kind: 'requote_accepted',
      month: '2026-07',
      count: 1,
      spotPrice: '5.00',
      partnerCut: '1.50',
      invoiceAmount: '3.50',
    },
    {
      policy_id: 'ticket-protection',
      kind: 'reversal',
      month: '2026-07',
      count: 1,
      spotPrice: '-10.00',
      partnerCut: '-3.00',
      invoiceAmount: '-7.00',
    },
  ]);
  expect(invoice).toMatchObject({
    number: 'INV-2026-000001',
    series: 'INV-2026',
    sequence: 1,
    document: 'invoice',
    purpose: 'month',
    status: 'open',
    partner_id: 'p-1',
    month: '2026-07',
    currency: 'USD',
    issued_on: '2026-08-01',
    due_on: '2026-08-31',
    spotPrice: '27.50',
    partnerCut: '8.00',
    invoiceAmount: '19.50',
    credit_applied: '0.00',
    amount_due: '19.50',
    credited: '0.00',
    amount_paid: '0.00',
    balance: '19.50',
    payment_link: null,
    pdf: null,
    email: { status: 'queued', to: null, sent_at: null },
    replaces: null,
    replaced_by: null,
    credits: null,
    void_reason: null,
  });
});

test('enrollments count accepted quotes only, those that were reversed and late ones too', async () => {
  const sold = quote();
  await world.rows([sold, requote(sold), requote(sold), reversal(sold), quote()]);
  await world.close('2026-07');
  expect(await onlyDocument()).toMatchObject({ enrollments: 2 });
  world.at('2026-09-01T10:00:00Z');
  await world.rows([quote(), quote({ accepted_at: '2026-08-10T00:00:00Z' })]);
  await world.close();
  expect((await world.documents()).map(({ enrollments }) => enrollments)).toEqual([2, 2]);
});

test('the document’s own month comes first, then earlier ones oldest first, each with its policies and kinds in order', async () => {
  const early = quote({ accepted_at: '2026-05-10T00:00:00Z' });
  await world.rows([early]);
  await world.close('2026-05');
  await world.close('2026-06');
  const june = quote({ accepted_at: '2026-06-10T00:00:00Z' });
  const sold = quote();
  await world.rows([
    reversal(early, { accepted_at: '2026-07-02T00:00:00Z' }),
    quote({ accepted_at: '2026-05-31T00:00:00Z', policy_id: 'parking' }),
    quote({ accepted_at: '2026-05-31T00:00:00Z' }),
    june,
    requote(june, { accepted_at: '2026-06-11T00:00:00Z' }),
    quote({ policy_id: 'parking' }),
    requote(sold),
    sold,
  ]);
  await world.close('2026-07');
  const invoice = (await world.documents()).at(-1) as DocumentJson;
  expect(linesOf(invoice)).toEqual([
    ['parking', 'quote_accepted', '2026-07', 1, '7.00'],
    ['ticket-protection', 'quote_accepted', '2026-07', 1, '7.00'],
    ['ticket-protection', 'requote_accepted', '2026-07', 1, '3.50'],
    ['ticket-protection', 'reversal', '2026-07', 1, '-7.00'],
    ['parking', 'quote_accepted', '2026-05', 1, '7.00'],
    ['ticket-protection', 'quote_accepted', '2026-05', 1, '7.00'],
    ['ticket-protection', 'quote_accepted', '2026-06', 1, '7.00'],
    ['ticket-protection', 'requote_accepted', '2026-06', 1, '3.50'],
  ]);
  expect(invoice.invoiceAmount).toBe('35.00');
});

test('each currency of a partner has its own invoice, numbered in order of the currency, with its own digits', async () => {
  await world.rows([
    quote({ currency: 'USD' }),
    quote({ currency: 'JPY', spotPrice: '1000', partnerCut: '300', invoiceAmount: '700' }),
    quote({ currency: 'KWD', spotPrice: '1.005', partnerCut: '0.001', invoiceAmount: '1.004' }),
    quote({ currency: 'EUR', spotPrice: '10.00', partnerCut: '0', invoiceAmount: '10' }),
  ]);
  await world.close();
  expect(
    (await world.documents()).map(({ number, currency, spotPrice, invoiceAmount, balance, lines }) => [
      number,
      currency,
      spotPrice,
      invoiceAmount,
      balance,
      lines[0]?.partnerCut,
    ]),
  ).toEqual([
    ['INV-2026-000001', 'EUR', '10.00', '10.00', '10.00', '0.00'],
    ['INV-2026-000002', 'JPY', '1000', '700', '700', '300'],
    ['INV-2026-000003', 'KWD', '1.005', '1.004', '1.004', '0.001'],
    ['INV-2026-000004', 'USD', '10.00', '7.00', '7.00', '3.00'],
  ]);
  expect(await world.months('2026-07')).toMatchObject([
    {
      invoices: 4,
      totals: [
        { currency: 'EUR' },
        { currency: 'JPY' },
        { currency: 'KWD', invoice_amount: '1.004' },
        { currency: 'USD' },
      ],
    },
  ]);
});

test('sums beyond the largest single amount stay exact to the cent', async () => {
  const most = { spotPrice: '999999999999999.99', partnerCut: '0.01', invoiceAmount: '999999999999999.98' };
  await world.rows([quote(most), quote(most), quote(most)]);
  await world.close();
  expect(await onlyDocument()).toMatchObject({
    spotPrice: '2999999999999999.97',
    partnerCut: '0.03',
    invoiceAmount: '2999999999999999.94',
    balance: '2999999999999999.94',
  });
});

test('a row belongs to the month of its partner’s zone, whatever the issuer’s', async () => {
  await world.partners([partner({ partner_id: 'p-2', time_zone: 'Pacific/Auckland' })]);
  // 12:00 UTC on the last of July is already the first of August in Auckland.
  await world.rows([
    quote({ accepted_at: '2026-07-31T12:00:00Z' }),
    quote({ partner_id: 'p-2', accepted_at: '2026-07-31T12:00:00Z' }),
  ]);
  world.at('2026-09-01T10:00:00Z');
  await world.close();
  expect((await world.documents()).map(({ partner_id, month }) => [partner_id, month])).toEqual([
    ['p-1', '2026-07'],
    ['p-2', '2026-08'],
  ]);
});

test('every partner with rows gets a document, and the others are counted', async () => {
  await world.partners(['p-2', 'p-3', 'p-4'].map((partner_id) => partner({ partner_id })));
  await world.partners([partner({ partner_id: 'p-4', active: false })]);
  await world.rows([quote(), quote({ partner_id: 'p-2' })]);
  await world.close();
  expect(await world.months('2026-07')).toMatchObject([
    {
      invoices: 2,
      partners_without_activity: 1,
      deliveries: { sent: 0, pending: 2, held: 0, failed: 0, uncertain: 0 },
    },
  ]);
});
