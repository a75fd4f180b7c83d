/** Payment exceptions: each is listed with what resolves it, `status` counts it, and only that resolves it. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readExceptions } from '../../src/payments/exceptions.sql.ts';
import { closeException } from '../../src/payments/exceptions.ts';
import { processEvents } from '../../src/payments/processor-events/process.ts';
import { thisProcess } from '../../src/people/audit-events.ts';
import { readStatus } from '../../src/reports/status.ts';
import { type Books, inv, openBooks, refusalOf } from './books.ts';
import { event, stripePayment } from './stripe-events.ts';

let books: Books;
beforeAll(async () => {
  books = await openBooks();
});
afterAll(() => books.end());

const exceptions = () => books.database.reading(readExceptions);
const kinds = async () => (await exceptions()).map(({ kind }) => kind).sort();
const close = (exception: string) =>
  books.database.transaction((tx) => closeException(tx, books.acting, { exception, reason: 'looked at' }));
const attention = async () =>
  (await books.database.reading((tx) => readStatus(tx, books))).attention.filter((each) =>
    each.startsWith('Payment exceptions'),
  );
const HEAD = 'date,amount,currency,account,bank_reference,text,payer,payer_account\n';

test('without anything to review there are no exceptions', async () => {
  expect(await exceptions()).toEqual([]);
  expect(await attention()).toEqual([]);
});

test('an unknown payer is an exception until the payment is applied', async () => {
  await books.bankText('unknown.csv', `${HEAD}2026-10-14,300.00,USD,1,B-1,thanks,Somebody Else,\n`);
  expect(await exceptions()).toMatchObject([{ kind: 'unknown_payer', amount: '300.00', since: '2026-10-14' }]);
  const [{ exception } = { exception: '' }] = await exceptions();
  expect(await attention()).toEqual([
    "Payment exceptions: 1 payment of an unknown payer. 'reckoner payment exceptions' lists them.",
  ]);
  expect(await refusalOf(close(exception))).toBe('exception_needs_action');
  await books.apply(Number(exception.replace('payment-', '')), inv(1));
  expect(await exceptions()).toEqual([]);
});

test('a return of an unknown payment is closed with a reason, which is recorded with the actor', async () => {
  await books.bankText('return.csv', `${HEAD}2026-10-14,-55.00,USD,1,B-2,RETURN R01,Somebody Else,\n`);
  const [{ exception, amount } = { exception: '', amount: '' }] = await exceptions();
  expect([await kinds(), amount]).toEqual([['bank_line'], '-55.00']);
  await close(exception);
  expect(await exceptions()).toEqual([]);
  expect(await refusalOf(close(exception))).toBe('exception_unknown');
  const [kept] = await books.sql(
    `SELECT c.reason, e.action, e.claimed_by FROM payment_exception_closings c JOIN audit_events e USING (event_id)`,
  );
  expect(kept).toEqual({ reason: 'looked at', action: 'payment.close_exception', claimed_by: 'a bookkeeper' });
});

test('an unreadable event is closed with a reason, and is not reported again', async () => {
  const unreadable = event('charge.refunded', { id: 'py_1', object: 'charge', amount: 'many' });
  expect((await books.events([unreadable])).manual_review).toHaveLength(1);
  expect(await kinds()).toEqual(['event']);
  await close((await exceptions())[0]?.exception ?? '');
  const { manual_review, waiting } = await books.database.transaction((tx) =>
    processEvents(tx, { ...books.acting, actor: thisProcess('command') }),
  );
  expect([manual_review, waiting, await exceptions()]).toEqual([[], [], []]);
});

test('a dispute of an unknown payment waits for the payment', async () => {
  const linked = stripePayment({ invoice: inv(4), amount: 84000, key: 'X1' });
  await books.events([linked.disputed()]);
  expect(await kinds()).toEqual(['waiting_event']);
  expect(await refusalOf(close((await exceptions())[0]?.exception ?? ''))).toBe('exception_needs_action');
  await books.events([linked.ordered(), linked.completed()]);
  expect(await kinds()).toEqual([]);
});

test('a payout of unknown payments cannot be closed with a reason', async () => {
  await books.bankText('payout.csv', `${HEAD}2026-10-15,1.00,USD,1,B-9,STRIPE,,\n`);
  const open = (await exceptions()).filter(({ kind }) => kind === 'payout');
  expect(open).toHaveLength(1);
  expect(await refusalOf(close(open[0]?.exception ?? ''))).toBe('exception_needs_action');
  await books.verified();
});
