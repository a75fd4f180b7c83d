/** Payment exceptions: each is listed with what resolves it, `status` counts it, and only that resolves it. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { exceptionJson } from '../../src/cli/commands/payment/exceptions.ts';
import { readExceptions } from '../../src/payments/exceptions.sql.ts';
import { closeException, listExceptions } from '../../src/payments/exceptions.ts';
import { processEvents } from '../../src/payments/processor-events/process.ts';
import { thisProcess } from '../../src/people/audit-events.ts';
import { readStatus } from '../support/status.ts';
import { quote } from '../support/world.ts';
import { type Books, booksOf, inv, openBooks, refusalOf } from './books.ts';
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
  (await books.database.reading((tx) => readStatus(tx, books))).attention.filter((each) => each.startsWith('payment-'));
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
    `${exception} of 2026-10-14, 300.00 USD: unknown payer. Decide on it with 'reckoner payment exceptions'.`,
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
    `SELECT c.reason, e.action, personal(e.claimed_by) AS claimed_by FROM payment_exception_closings c JOIN audit_events e USING (event_id)`,
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

/** Runs the command that an exception names, as the program parses it. */
async function accept(command: string, by: Books = books): Promise<void> {
  const [, , action, id, ...options] = command.split(' ');
  const values = (name: string) => options.flatMap((each, index) => (each === name ? [options[index + 1] ?? ''] : []));
  const paymentId = Number(id);
  const duplicateOf = Number(values('--duplicate-of')[0]);
  if (action === 'apply') await by.apply(paymentId, values('--invoice'));
  else await by.reverse({ paymentId, kind: 'duplicate', duplicateOf });
}
const listed = (settings: { small_difference: Record<string, string> } = books.acting.settings) =>
  books.database.reading(async (tx) => Promise.all((await listExceptions(tx, settings)).map(exceptionJson)));

test('a suggestion shows payer, bank text, amount, date and why, and its command accepts it', async () => {
  const other = `${HEAD}2026-10-14,980.50,USD,1,B-20,INV-2O26-OOOOO5 thanks,HARBOUR LIGHTS,ACC-900020\n`;
  await books.bankText('misspelled.csv', other);
  const [exception] = await listed();
  expect(exception).toMatchObject({
    kind: 'suggestion',
    partner_id: null,
    payer: { name: 'HARBOUR LIGHTS', account: 'ACC-900020' },
    text: expect.stringContaining('INV-2O26-OOOOO5'),
    amount: '980.50',
    since: '2026-10-14',
    suggestions: [
      { number: inv(5), partner_id: 'p-1', command: expect.stringMatching(/^reckoner payment apply \d+ --invoice/) },
    ],
  });
  await accept(exception?.commands[0] ?? '');
  expect([(await books.balance(inv(5))).status, await listed()]).toEqual(['paid', []]);
});

test("the invoice of another partner than the account's is suggested, and the command that is named accepts it", async () => {
  const strange = `${HEAD}2026-10-14,120.10,USD,1,B-21,INV-2026-000007,HARBOUR LIGHTS,ACC-900020\n`;
  await books.bankText('parent.csv', strange);
  const [exception] = await listed();
  expect(exception).toMatchObject({
    kind: 'suggestion',
    partner_id: 'p-1',
    suggestions: [{ number: inv(7), partner_id: 'p-3' }],
  });
  for (const command of exception?.commands.slice(0, 1) ?? []) await accept(command);
  expect([(await books.balance(inv(7))).status, await listed()]).toEqual(['paid', []]);
});

test('invoices that add up are accepted together by one command, and then nothing is left', async () => {
  await books.bankText('sum.csv', `${HEAD}2026-10-14,2340.00,USD,1,B-22,thanks,SOCIETE THEATRALE DU NORD,\n`);
  const [exception] = await listed();
  expect(exception?.sets).toMatchObject([{ numbers: [inv(2), inv(10)] }]);
  await accept(exception?.sets[0]?.command ?? '');
  expect([(await books.balance(inv(2))).status, (await books.balance(inv(10))).status, await listed()]).toEqual([
    'paid',
    'paid',
    [],
  ]);
  await books.verified();
});

test('invoices less a bank fee are accepted in full, however small the last of them is', async () => {
  // 2.50 is more than 2 percent of the last invoice, and less of them all.
  const small = booksOf(books, { small_difference: { USD: '25.00' } });
  await small.bankText('fee.csv', `${HEAD}2026-10-14,1025.27,USD,1,B-23,thanks,HARBOUR LIGHTS TICKETING,ACC-900023\n`);
  const [exception] = await listed(small.acting.settings);
  expect(exception?.sets).toMatchObject([{ numbers: [inv(1), inv(9)] }]);
  await accept(exception?.sets[0]?.command ?? '', small);
  expect([(await books.balance(inv(1))).status, (await books.balance(inv(9))).status, await listed()]).toEqual([
    ...['paid', 'paid'],
    [],
  ]);
});

test('suggestions are those of today: a payer that was named, and an invoice that came later, count', async () => {
  await books.bankText('later.csv', `${HEAD}2026-10-14,44.44,USD,1,B-60,thanks,Somebody Else,\n`);
  const own = async () => (await listed()).find((each) => each.amount === '44.44');
  expect(await own()).toMatchObject({ kind: 'unknown_payer', suggestions: [] });
  await books.assign((await own())?.payment_id ?? 0, 'p-3');
  expect(await own()).toMatchObject({ kind: 'unapplied_cash', suggestions: [] });
  const accepted_at = '2026-10-05T12:00:00Z';
  const amounts = { spotPrice: '44.44', partnerCut: '0', invoiceAmount: '44.44' };
  await books.rows([quote({ partner_id: 'p-3', accepted_at, ...amounts })]);
  books.at('2026-11-02T15:00:00Z');
  await books.close();
  const { number = '' } = (await books.documents()).at(-1) ?? {};
  expect(await own()).toMatchObject({ kind: 'suggestion', suggestions: [{ number, partner_id: 'p-3' }] });
  const counted = (await books.database.reading((tx) => readStatus(tx, books))).payment_exceptions;
  expect(counted).toMatchObject({ suggestion: 1 });
  await accept((await own())?.commands[0] ?? '');
  expect([(await books.balance(number)).status, await own()]).toEqual(['paid', undefined]);
});

test('an account that a line of a file pays from is known to the later lines of the file', async () => {
  const lines = [
    `2026-10-15,2000.00,USD,1,B-61,${inv(11)},BLUE RIDGE ARENA,ACC-900061`,
    '2026-10-15,100.00,USD,1,B-62,thanks,BLUE RIDGE ARENA,ACC-900061',
  ];
  const { new_lines } = await books.bankText('account.csv', `${HEAD}${lines.join('\n')}\n`);
  expect(new_lines).toMatchObject([
    { applied: [{ number: inv(11), amount: '2000.00' }] },
    { applied: [{ number: inv(11), amount: '100.00' }], why: expect.stringContaining('from a known account') },
  ]);
});

test('a possible duplicate that is another payment is kept with a reason, and is unapplied cash then', async () => {
  const line = (reference: string) => `${HEAD}2026-10-13,11.11,USD,1,${reference},thanks,HARBOUR LIGHTS,ACC-900020\n`;
  await books.bankText('kept.csv', line('B-30'));
  await books.bankText('kept-again.csv', line(''));
  const held = (await listed()).find((each) => each.kind === 'possible_duplicate');
  expect(held?.commands.at(-1)).toContain(`reckoner payment close-exception ${held?.exception} --reason`);
  await close(held?.exception ?? '');
  const after = (await listed()).filter((each) => each.amount === '11.11');
  expect(after.map(({ kind, suggestions }) => [kind, suggestions])).toEqual([
    ['unapplied_cash', []],
    ['unapplied_cash', []],
  ]);
  for (const { payment_id } of after) {
    await books.reverse({ paymentId: payment_id ?? 0, kind: 'refunded', reason: 'sent back' });
  }
  expect(await listed()).toEqual([]);
});

test('unapplied cash of a known payer is on the list and in status, until it is used', async () => {
  const { paymentId } = await books.record({ amount: '521.25', partnerId: 'p-3', reference: 'FT-30' });
  expect(await listed()).toMatchObject([
    {
      kind: 'unapplied_cash',
      partner_id: 'p-3',
      partner_name: 'Blue Ridge Arena LLC',
      amount: '521.25',
      suggestions: [],
    },
  ]);
  expect(await attention()).toEqual([
    expect.stringMatching(
      /^payment-\d+ of .*, 521\.25 USD: unapplied cash\. Decide on it with 'reckoner payment exceptions'\.$/,
    ),
  ]);
  expect(await refusalOf(close(`payment-${paymentId}`))).toBe('exception_needs_action');
  await books.apply(paymentId, inv(3));
  expect(await listed()).toMatchObject([{ kind: 'unapplied_cash', amount: '187.92' }]);
  await books.reverse({ paymentId, kind: 'refunded', amount: '187.92' });
  expect(await listed()).toEqual([]);
});

test('a payout of unknown payments cannot be closed with a reason', async () => {
  await books.bankText('payout.csv', `${HEAD}2026-10-15,1.00,USD,1,B-9,STRIPE,,\n`);
  const open = (await exceptions()).filter(({ kind }) => kind === 'payout');
  expect(open).toHaveLength(1);
  expect(await refusalOf(close(open[0]?.exception ?? ''))).toBe('exception_needs_action');
  await books.verified();
});
