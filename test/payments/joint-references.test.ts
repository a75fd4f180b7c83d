/** A wire for several invoices with one reference is applied to exactly these invoices, or to none of them. */
import { afterAll, beforeEach, expect, test } from 'vitest';
import { inFours } from '../../src/documents/creditor-reference.ts';
import { readJointReference } from '../../src/documents/joint-references.sql.ts';
import { correctionsOf } from '../documents/correcting.ts';
import { type Books, inv, openBooks } from './books.ts';

/** 1,250.00, 980.50 and 77.77 of Harbour Lights. */
const [JULY, AUGUST, SEPTEMBER] = [inv(1), inv(5), inv(9)];

let books: Books;
let kept: Books | undefined;
beforeEach(async () => {
  await kept?.end();
  books = await openBooks({ small_difference: { USD: '25.00', percent: '2' } });
  kept = books;
});
afterAll(() => kept?.end());

async function referenceOf(...numbers: string[]): Promise<string> {
  const rows = await books.sql<{ id: string }>('SELECT document_id AS id FROM documents WHERE number = ANY ($1)', [
    numbers,
  ]);
  const ids = rows.map(({ id }) => Number(id));
  return (await books.database.reading((tx) => readJointReference(tx, ids))) as string;
}

let lines = 0;
async function wire(amount: string, text: string, payer = '') {
  lines += 1;
  const head = 'date,amount,currency,account,bank_reference,text,payer,payer_account\n';
  const line = `2026-10-15,${amount},USD,1,B-${lines},${text},${payer},\n`;
  const { new_lines } = await books.bankText(`w${lines}.csv`, head + line);
  return books.payment(new_lines[0]?.payment_id as number);
}
const appliedTo = ({ applications }: Awaited<ReturnType<typeof wire>>) =>
  applications.map(({ number, amount }) => [number, amount]);

test('a wire of exactly their sum pays them, whoever sent it', async () => {
  const reference = await referenceOf(JULY, SEPTEMBER);
  expect(inFours(reference)).toMatch(/^RF\d\d PAY0 [\w ]+$/);
  const payment = await wire('1327.77', `WIRE IN ${inFours(reference)} THX`, 'SOME HOLDING AG');
  expect(appliedTo(payment)).toEqual([
    [JULY, '1250.00'],
    [SEPTEMBER, '77.77'],
  ]);
  expect(await books.balance(AUGUST)).toMatchObject({ balance: '980.50' });
  await books.verified();
});

test('a wire less a small fee pays them, and the fee is borne by us', async () => {
  const payment = await wire('2295.27', await referenceOf(JULY, AUGUST, SEPTEMBER), 'HARBOUR LIGHTS TICKETING');
  expect(appliedTo(payment).map(([number]) => number)).toEqual([JULY, AUGUST, SEPTEMBER]);
  for (const number of [JULY, AUGUST, SEPTEMBER]) expect((await books.balance(number)).status).toBe('paid');
  await books.verified();
});

test('a wire that is short pays none of them, and all are suggested', async () => {
  const payment = await wire('1000.00', await referenceOf(JULY, AUGUST), 'HARBOUR LIGHTS TICKETING');
  expect([payment.unapplied, appliedTo(payment)]).toEqual(['1000.00', []]);
  for (const [number, balance] of [
    [JULY, '1250.00'],
    [AUGUST, '980.50'],
  ] as const)
    expect(await books.balance(number)).toMatchObject({ balance, status: 'open' });
  await books.verified();
});

test('the reference is read with spaces, dashes and small letters', async () => {
  const reference = await referenceOf(JULY, SEPTEMBER);
  const noisy = `pmt ${reference.toLowerCase().replace(/(.{5})(.{3})/, '$1 $2-')} inv`;
  expect(appliedTo(await wire('1327.77', noisy, 'SOMEBODY')).length).toBe(2);
});

test('a mistyped reference pays nothing', async () => {
  const reference = await referenceOf(JULY, SEPTEMBER);
  const mistyped = reference.replace(/^RF\d/, (head) => `RF${(Number(head[2]) + 1) % 10}`);
  expect(appliedTo(await wire('1327.77', mistyped, 'SOMEBODY'))).toEqual([]);
});

test('a reference still means the same invoices after others were issued, paid or replaced', async () => {
  const reference = await referenceOf(JULY, AUGUST);
  await books.record({ number: JULY, amount: '1250.00', reference: 'PAID', receivedOn: '2026-10-14' });
  const action = correctionsOf(books);
  await action.voided(SEPTEMBER);
  await action.rerun(SEPTEMBER);
  const payment = await wire('980.50', reference, 'HARBOUR LIGHTS TICKETING');
  expect(appliedTo(payment)).toEqual([[AUGUST, '980.50']]);
});

test('invoices of two currencies or partners have no common reference', async () => {
  expect(await referenceOf(JULY, inv(2))).toBeUndefined();
});
