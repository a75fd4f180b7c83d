/** What a document's history says: who approved, internal notes, why cash was unapplied; hashes are apart. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { approveRequest } from '../../src/actions/approve.ts';
import { invoiceCredit } from '../../src/actions/invoice/credit.ts';
import { invoiceHold } from '../../src/actions/invoice/hold.ts';
import { invoiceVoid } from '../../src/actions/invoice/void.ts';
import { paymentApply, paymentUnapply } from '../../src/actions/payment/apply.ts';
import { runAction } from '../../src/actions/run.ts';
import { invoiceScreen, readInvoice } from '../../src/console/screens/invoice.tsx';
import { readDocuments } from '../../src/documents/documents.sql.ts';
import { afterwords, readHistory } from '../../src/documents/history.ts';
import { settledWithoutCash } from '../../src/documents/settled.ts';
import { Refusal } from '../../src/errors/refusals.ts';
import { Amount } from '../../src/money.ts';
import { listExceptions } from '../../src/payments/exceptions.ts';
import { FINANCE, textOf } from '../console/books.ts';
import { type Books, booksOf } from '../payments/books.ts';
import { as, LEE, MARA, openApproving } from '../support/approving.ts';
import type { World } from '../support/world.ts';

const [FIRST, SECOND] = ['INV-2026-000001', 'INV-2026-000002'];

let world: World;
let books: Books;
beforeAll(async () => {
  world = await openApproving();
  books = booksOf(world, { approvals: {} });
});
afterAll(() => world.end());

const documentOf = async (number: string) => {
  const [document] = await world.database.reading((tx) => readDocuments(tx, { number }));
  if (document === undefined) throw new Error(`there is no ${number}`);
  return document;
};
const historyOf = async (number: string) => {
  const { document_id } = await documentOf(number);
  return world.database.reading((tx) => readHistory(tx, document_id));
};
const sentences = async (number: string) => (await historyOf(number)).map((each) => each.says + afterwords(each));
const pageOf = async (number: string) => {
  const view = await world.database.reading((tx) =>
    readInvoice(tx, { scope: null, period: null, params: { number }, today: '2026-08-02' }),
  );
  return textOf(invoiceScreen(view, FINANCE));
};
const free = (login = MARA) => as(world, login, {});
const quiet = { later: () => undefined };

async function approved(requested: Promise<unknown>): Promise<number> {
  const refusal = await requested.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(refusal instanceof Refusal)) throw new Error('no approval was needed');
  const requestId = refusal.facts['request_id'] as number;
  await approveRequest(await as(world, LEE), requestId, { reason: null, ...quiet });
  return requestId;
}

describe('the history of a document', () => {
  test('names who approved an action, and the number of the request', async () => {
    const request = await approved(runAction(await as(world, MARA), invoiceHold, { number: FIRST, reason: 'asks' }));
    expect(await sentences(FIRST)).toContain(`put on hold: asks; approved by ${LEE}, request ${request}`);
    expect((await historyOf(FIRST)).at(-1)?.approval).toEqual({ by: LEE, request });
    expect(await pageOf(FIRST)).toContain(`Put on hold: asks; approved by ${LEE}, request ${request}`);
  });

  test('has the internal note of a credit and of a void, which the document does not', async () => {
    const credit = { number: SECOND, amount: '2.00', reason: 'wrong price', note: 'their clerk misread it' };
    await runAction(await free(), invoiceCredit, credit, quiet);
    const note = 'CN-2026-000001';
    expect(await sentences(SECOND)).toContain(
      `2.00 USD credited by ${note}: wrong price; internal note: their clerk misread it`,
    );
    const { reason, document_id } = await documentOf(note);
    expect(reason).toBe('wrong price');
    const kept = await world.sql(
      `SELECT FROM emails e WHERE to_jsonb(e)::text LIKE '%misread%'
       UNION ALL SELECT FROM documents d WHERE d.document_id = $1 AND to_jsonb(d)::text LIKE '%misread%'`,
      [document_id],
    );
    expect(kept).toEqual([]);
  });

  test('keeps hashes and hosts for the technical part', async () => {
    const history = await historyOf(FIRST);
    expect(history.map(({ says }) => says).join()).not.toMatch(/sha256|<|bytes/);
    expect(history.map(({ technical }) => technical).join()).toMatch(/\d+ bytes, sha256 [0-9a-f]{64}/);
    const page = await pageOf(FIRST);
    expect(page.indexOf('SHA-256')).toBeGreaterThan(page.indexOf('Technical'));
  });
});

describe('cash that was taken back', () => {
  test('says why in the history, and is not suggested for the same invoice again', async () => {
    await books.record({ partnerId: 'p-2', amount: '12.00', reference: SECOND, receivedOn: '2026-08-01' });
    const [waiting] = await world.database.reading((tx) => listExceptions(tx, world.settings));
    expect(waiting?.suggestions.map(({ number }) => number)).toContain(SECOND);
    const paymentId = Number(waiting?.exception.replace('payment-', ''));
    await runAction(await free(), paymentApply, { paymentId, numbers: [SECOND], on: '2026-08-01' });
    const [day] = await world.sql<{ on: string }>('SELECT applied_on::text AS on FROM payment_applications');
    expect(day?.on).toBe('2026-08-01');
    await runAction(await free(), paymentUnapply, { paymentId, reason: 'meant for another one' });
    expect((await sentences(SECOND)).at(-1)).toMatch(/^payment of 12\.00 USD, .*unapplied: meant for another one$/);
    const [again] = await world.database.reading((tx) => listExceptions(tx, world.settings));
    expect(again?.suggestions.map(({ number }) => number)).not.toContain(SECOND);
  });

  test('cannot be applied on a day in the future', async () => {
    const [{ id } = { id: 0 }] = await world.sql<{ id: number }>('SELECT max(payment_id)::int AS id FROM payments');
    await expect(
      runAction(await free(), paymentApply, { paymentId: id, numbers: [SECOND], on: '2027-01-01' }),
    ).rejects.toMatchObject({ code: 'date_in_future' });
  });
});

describe('the head of a document', () => {
  test('adds up: the amount due, less what settled it and what was paid, is the balance', async () => {
    const row = await documentOf(SECOND);
    const of = (text: string) => Amount.of(text, row.currency);
    const settled = settledWithoutCash(row).reduce((sum, { amount }) => sum.plus(amount), of('0'));
    expect(of(row.amount_due).minus(settled).minus(of(row.amount_paid)).toString()).toBe(of(row.balance).toString());
    expect(await pageOf(SECOND)).toMatch(
      /Balance 12\.00 USD\s+Amount due 14\.00 USD\s+Credited 2\.00 USD\s+Paid 0\.00/,
    );
  });

  test('of a credit note says what is open and where it went, and shows no lines and no rows', async () => {
    const page = await pageOf('CN-2026-000001');
    expect(page).toMatch(/Open credit 0\.00 USD\s+Amount 2\.00 USD\s+Applied to invoices 2\.00 USD/);
    expect(page).not.toMatch(/Amount due|Paid|No lines|Rows \(CSV\)/);
  });

  test('of a void document has its internal note in the history only', async () => {
    await runAction(await free(), invoiceVoid, { number: FIRST, reason: 'wrong', note: 'ours' }, quiet);
    expect(await sentences(FIRST)).toContain('voided: wrong; internal note: ours');
    expect((await documentOf(FIRST)).void_reason).toBe('wrong');
  });
});
