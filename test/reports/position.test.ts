/** The position: what changed, cash by week, who owes most, days sales outstanding; as the console's landing page too. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readToday, todayScreen } from '../../src/console/screens/today.tsx';
import type { User } from '../../src/people/roles.ts';
import type { Scope } from '../../src/people/scope.ts';
import { describePosition, positionSheet, readPosition } from '../../src/reports/position.ts';
import { type ConsoleBooks, html, openConsole, SCRIPT, TODAY, textOf } from '../console/books.ts';

let books: ConsoleBooks;
beforeAll(async () => {
  books = await openConsole();
});
afterAll(() => books.end());

const read = (asked: { since?: string; scope?: Scope } = {}) =>
  books.database.reading((tx) => readPosition(tx, books, { today: TODAY, ...asked }));

test('the currency with the most open documents comes first, and each shows what is open, overdue and owed', async () => {
  const { currencies } = await read();
  const [eur, usd] = currencies;
  expect(currencies.map((each) => [each.currency, each.open_documents])).toEqual([
    ['EUR', 3],
    ['USD', 2],
  ]);
  expect(usd).toMatchObject({ open: '14.00', overdue: '14.00', credit: '0.00' });
  expect(usd?.owing).toEqual([
    { partner_id: 'p-1', partner_name: expect.any(String), open: usd?.open, overdue: usd?.overdue },
  ]);
  expect(eur?.owing.map(({ partner_id }) => partner_id)).toEqual(['p-2', 'p-1']);
});

test('cash is in the week it was received or is due, and money that was returned is not counted', async () => {
  const cash = async (currency: string) => (await read()).currencies.find((each) => each.currency === currency);
  const week = async () => (await cash('EUR'))?.received.find((each) => each.week === '2026-10-12')?.amount;
  expect(await week()).toBe('5.00');
  const { paymentId } = await books.record({ partnerId: 'p-2', currency: 'EUR', amount: '7.00', reference: 'TWICE' });
  expect(await week()).toBe('12.00');
  await books.reverse({ paymentId, kind: 'mistake', reason: 'entered twice' });
  expect(await week()).toBe('5.00');
  const usd = await cash('USD');
  expect([usd?.received.length, usd?.received.at(-1)?.week, usd?.expected[0]?.week]).toEqual([
    8,
    '2026-10-12',
    '2026-10-12',
  ]);
});

test('days sales outstanding are open invoices over what the closed months billed, times their days', async () => {
  // July and August, the only closed months, have 62 days.
  const [billed] = await books.sql<{ days: number }>(
    `SELECT round(62 * (SELECT sum(balance) FROM open_items('infinity') JOIN documents USING (document_id)
                        WHERE currency = 'EUR')
              / sum(gross))::integer AS days
     FROM documents WHERE currency = 'EUR' AND month BETWEEN '2026-07' AND '2026-08'`,
  );
  expect((await read()).currencies[0]?.days_sales_outstanding).toBe(billed?.days);
});

test('what changed is counted and summed by currency since the last working day, or since a day', async () => {
  const kinds = ({ changes }: Awaited<ReturnType<typeof read>>) => changes.map(({ kind }) => kind);
  const recent = await read();
  expect(recent.since).toBe('2026-10-14');
  expect(kinds(recent)).toEqual(['received', 'reversed']);
  expect(recent.changes[0]).toMatchObject({ count: 3, sums: [{ currency: 'EUR', count: 3, amount: '12.00' }] });
  const all = await read({ since: '2026-07-01' });
  expect(kinds(all)).toContain('invoice');
  expect(describePosition(all)).toMatch(/Since 1 July 2026:\n {2}5 invoices issued, [\d.]+ EUR, [\d.]+ USD/);
});

test('a reader of some partners sees only their figures', async () => {
  const own = await read({ scope: ['p-2'], since: '2026-07-01' });
  expect(own.currencies.map(({ currency }) => currency)).toEqual(['EUR']);
  expect(own.currencies[0]?.owing.map(({ partner_id }) => partner_id)).toEqual(['p-2']);
  expect(own.changes.find(({ kind }) => kind === 'invoice')?.count).toBe(2);
  expect(own.changes.some(({ kind }) => kind === 'settings')).toBe(false);
  expect((await read({ scope: [] })).currencies).toEqual([]);
});

test('the sheet has one figure per row', async () => {
  const { rows } = positionSheet(await read());
  expect(rows).toContainEqual({ currency: 'EUR', figure: 'received', week: '2026-10-12', amount: '5.00' });
  expect(rows).toContainEqual({ currency: 'USD', figure: 'overdue', amount: '14.00' });
});

test('the landing page shows bars with their amounts as text, and no markup of partners', async () => {
  const user = { login: 'mara@issuer.example', roles: [{ role: 'finance', partner_id: null }] } as unknown as User;
  const view = await books.database.reading((tx) => readToday(tx, {}, { ...books.seen(), context: books, user }));
  const page = html(todayScreen(view, { user }));
  expect(page).toContain('<title>Cash in EUR by week</title>');
  expect(page).toContain('Week of 2026-10-12: 5.00 EUR received');
  expect(page).toContain('aria-current="page" data-key="g t"');
  expect(page).not.toContain(SCRIPT);
  const words = textOf(todayScreen(view, { user }));
  expect(words).toContain('Waiting for you');
  expect(words).toContain('3 payments recorded');
  // The scale of the bars, and the sums of both halves, can be read without a pointer.
  expect(words).toMatch(/5\.00.EUR .*Received by week since \S+ 5\.00.EUR Expected by due date: 0\.00.EUR/);
  const viewer = { ...user, roles: [{ role: 'viewer', partner_id: null }] } as User;
  const read = await books.database.reading((tx) =>
    readToday(tx, {}, { ...books.seen(), context: books, user: viewer }),
  );
  expect(read.waiting).toBeNull();
});
