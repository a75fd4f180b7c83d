/** What holds for every list: its columns have values, and terminal, files and pages show the same rows. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { askForApproval } from '../../src/approvals/requests.ts';
import { stateFeed } from '../../src/close/stated.ts';
import { todayOf } from '../../src/config/today.ts';
import { readList, readListSheet } from '../../src/console/list.tsx';
import { openDispute } from '../../src/documents/disputes.ts';
import { exportGl } from '../../src/general-ledger/export.ts';
import { cellOf, columnOf, type List, type ListQuery, readSums, sheetOf } from '../../src/lists/list.ts';
import { Amount, sumsOf } from '../../src/money.ts';
import type { Month } from '../../src/month.ts';
import { createClient } from '../../src/partners/clients.ts';
import { recordSettingsChanges } from '../../src/people/settings-changes.ts';
import { identify } from '../../src/people/users.ts';
import { everyAccount, writeAccounts } from '../general-ledger/months.ts';
import { type Books, HARBOUR, inv, openBooks } from '../payments/books.ts';
import { ADMINISTRATOR, invite, serveConsole, signedIn } from '../support/console.ts';
import { withoutEvent } from '../support/guards.ts';
import type { Served } from '../support/service.ts';
import { quote, reversal } from '../support/world.ts';

const FOLDER = join(import.meta.dirname, '../../src/lists');
const LISTS: readonly List[] = (
  await Promise.all(
    readdirSync(FOLDER).map(async (file) => Object.values((await import(join(FOLDER, file))) as object)),
  )
)
  .flat()
  .filter((each): each is List => typeof each === 'object' && 'columns' in each);

let books: Books;
let served: Served;
beforeAll(async () => {
  books = await openBooks();
  const { database, environment, actor, settings } = books;
  await invite(books, ADMINISTRATOR);
  await recordSettingsChanges(database, books);
  await books.record({ number: inv(1), amount: '10.00', reference: 'one' });
  const sale = quote({ partner_id: HARBOUR, accepted_at: '2026-10-10T12:00:00Z' });
  await books.rows([sale, { ...sale, quote_id: 'again' }]);
  const sold = await books.sql<Record<string, string>>(
    `SELECT partner_id, quote_id, enrollment_id, policy_id, currency, (-invoice_amount)::text AS "spotPrice",
            '0' AS "partnerCut", (-invoice_amount)::text AS "invoiceAmount" FROM ledger_rows WHERE posted_month <= '2026-09'`,
  );
  const back = sold.map((row) => reversal(row, { ...row, kind: 'reversal', accepted_at: '2026-10-14T12:00:00Z' }));
  await books.rows(back, { holds: true });
  await books.sql(
    `INSERT INTO doubled_rows SELECT posted_month, partner_id, entry_id, 'first' FROM ledger_rows WHERE quote_id = $1`,
    [sale['quote_id']],
  );
  await books.record({ number: inv(2), amount: '20.00', reference: 'two' });
  const { new_lines: lines } = await books.bankText(
    'lines.csv',
    `date,amount,currency,account,bank_reference,text,payer,payer_account
2026-10-09,6.00,USD,0001,B-1,tickets,,DE89370400440532013000
2026-10-09,719.70,USD,0001,B-2,STRIPE TRANSFER po_1,STRIPE,
`,
  );
  await books.assign(lines[0]?.payment_id as number, HARBOUR);
  await database.transaction(async (tx) => {
    await createClient(tx, HARBOUR, {}, { actor, environment: environment.name, now: environment.now() });
    for (const [partnerId, month] of [
      ['p-1', '2026-08'],
      ['p-2', '2026-08'],
      [HARBOUR, '2026-09'],
      ['p-2', '2026-09'],
    ] as const) {
      await stateFeed(tx, books.acting, {
        ...{ partnerId, month: month as Month, stated: { entries: 1, totals: { USD: '1.00' } }, complete: true },
      });
    }
    await openDispute(tx, books.acting, { number: inv(1), reason: 'price' });
    const asker = await identify(tx, actor, { login: ADMINISTRATOR, unattended: false });
    const preview = { title: 'Release', changes: [], amounts: [{ currency: 'USD', amount: '1.00' }], text: '' };
    await askForApproval(
      tx,
      { environment, settings, actor: asker },
      {
        ...{ action: 'invoice.release', input: {}, subject: inv(1), partnerIds: [HARBOUR], reason: null },
        ...{ preview, hash: '0'.repeat(64), userId: asker.user?.user_id ?? 0 },
      },
    );
  });
  await books.sql(
    withoutEvent(
      'webhooks',
      `INSERT INTO webhooks (partner_id, url, secret_version, key_check, acknowledged)
       VALUES ('${HARBOUR}', 'https://partner.example/events', 1, 'x', 0)`,
    ),
  );
  writeAccounts(books, everyAccount());
  await database.transaction((tx) =>
    exportGl(tx, books, { month: '2026-07' as Month, format: 'xero', preliminary: true }),
  );
  served = await serveConsole(books);
  await signedIn(served, await invite(books, 'mara@issuer.example', { roles: ['finance'] }));
});
afterAll(async () => {
  await served?.end();
  await books?.end();
});

const context = () => ({ environment: books.environment, settings: books.settings });
const seen = () => ({ scope: null, period: null, today: todayOf(books), context: context() });
/** What the command is asked that takes an argument. */
const QUESTIONS: Readonly<Record<string, Readonly<Record<string, string>>>> = { 'partner history': { id: HARBOUR } };
/** The rows that a sum counts: of the balances of a roll-forward, the first opening and the last closing ones. */
function counted(list: List, name: string, rows: readonly unknown[]) {
  if (list.command !== 'report roll-forward' || !['opening', 'closing', 'aging'].includes(name)) return rows;
  const months = (rows as readonly { month: Month }[]).map(({ month }) => month).toSorted();
  const only = months.at(name === 'opening' ? 0 : -1);
  return rows.filter((row) => (row as { month: Month }).month === only);
}
const questionOf = ({ command }: List) => QUESTIONS[command] ?? {};
const read = (list: List, asked: Partial<ListQuery<unknown>> = {}) =>
  books.database.reading((tx) =>
    list.read(tx, { ...seen(), filter: questionOf(list), sort: list.sorts[1], after: null, limit: null, ...asked }),
  );

test.each(LISTS.map((list) => [list.command, list] as const))(
  '%s shows texts, not their commitments',
  async (_, list) => {
    const shown = await books.database.reading(async (tx) => {
      const rows = await list.read(tx, {
        ...seen(),
        filter: questionOf(list),
        sort: list.sorts[1],
        after: null,
        limit: null,
      });
      return JSON.stringify([rows, await list.json?.(tx, rows, todayOf(books))]);
    });
    expect(shown).not.toMatch(/#[A-Za-z0-9+/]{43}=/);
  },
);

test('there are lists', () => {
  expect(LISTS.length).toBeGreaterThan(15);
  expect(new Set(LISTS.map(({ command }) => command)).size).toBe(LISTS.length);
});

describe.each(LISTS.map((list) => [list.command, list] as const))('%s', (_, list) => {
  test('has a row here, and each column without a value of its own is a property of it', async () => {
    const [row] = await read(list);
    expect(row).toBeDefined();
    const missing = Object.entries(list.columns).filter(
      ([name, { value }]) => value === undefined && !(name in (row as object)),
    );
    expect(missing.map(([name]) => name)).toEqual([]);
    for (const name of Object.keys(list.columns)) expect(cellOf(list, name, row, seen().today)).toBeDefined();
  });

  test.runIf(list.page !== undefined)('has each heading of its page once', () => {
    const headings = (list.page ?? []).map((name) => columnOf(list, name).heading).filter((heading) => heading !== '');
    expect(headings).toEqual([...new Set(headings)]);
  });

  test('has the same rows in the file of its page as the command', async () => {
    const sheet = await books.database.reading((tx) => readListSheet(tx, list, questionOf(list), seen()));
    expect(sheet).toEqual(sheetOf(list, await read(list), seen().today));
    expect(Object.keys(sheet.columns)).toEqual([...list.sheet]);
  });

  test.runIf(list.page !== undefined)('goes on after any row, in each order, with the rows that follow', async () => {
    const keyOf = (row: unknown) => list.key?.(row);
    const every = (await read(list)).map(keyOf);
    expect(new Set(every).size).toBe(every.length);
    for (const sort of list.sorts) {
      const all = (await read(list, { sort })).map(keyOf);
      expect([sort, all.toSorted()]).toEqual([sort, every.toSorted()]);
      const at = Math.floor((all.length - 1) / 2);
      const after = (await read(list, { sort, after: all[at] as string, limit: 2 })).map(keyOf);
      expect([sort, after]).toEqual([sort, all.slice(at + 1, at + 3)]);
      const page = (view: { rows: readonly unknown[] }) => view.rows.map(keyOf);
      // Some lists begin with those rows that wait.
      const question = { ...questionOf(list), sort, after: all[at] as string, view: 'all' };
      expect(page(await books.database.reading((tx) => readList(tx, list, question, seen())))).toEqual(
        all.slice(at + 1, at + 51),
      );
    }
  });

  test.runIf(list.ofLedger === undefined)(
    'has neither rows nor totals for somebody who may see no partner',
    async () => {
      expect(await read(list, { scope: [] })).toEqual([]);
      const view = await books.database.reading((tx) => readList(tx, list, questionOf(list), { ...seen(), scope: [] }));
      expect([view.rows, view.sums]).toEqual([[], { count: 0, totals: [] }]);
    },
  );

  test.runIf(list.ofPeriod)('has neither rows nor totals for somebody who may see none of its months', async () => {
    const month = '1999-01' as Month;
    const limited = { ...seen(), period: { from: month, to: month } };
    const view = await books.database.reading((tx) => readList(tx, list, { view: 'all' }, limited));
    expect([view.rows, view.sums]).toEqual([[], { count: 0, totals: [] }]);
  });

  test('counts all rows, and its sums are those of its rows, whatever the page', async () => {
    const rows = await read(list);
    const asked = { ...seen(), filter: questionOf(list), sort: list.sorts[1], after: null, limit: 1 };
    const { count, totals } = await books.database.reading((tx) => readSums(tx, list, asked));
    expect(count).toBe(rows.length);
    const named = new Set(totals.flatMap((total) => Object.keys(total)));
    // Events have no amounts.
    if (list.command !== 'audit list' && (list.sums !== undefined || list.summed !== undefined))
      expect(named.size).toBeGreaterThan(0);
    // A page reads fields that files do not have.
    const shown = await read(list, { sort: list.sorts[0], limit: 1000 });
    for (const name of [...named].filter((each) => each in list.columns)) {
      const amounts = counted(list, name, shown).flatMap((row) => [cellOf(list, name, row, seen().today)].flat());
      const sums = sumsOf(amounts.filter((each) => each instanceof Amount));
      const given = totals.flatMap((total) => total[name] ?? []).filter((each) => !each.isZero());
      expect([name, new Set(given.map((each) => each.forPeople()))]).toEqual([
        name,
        new Set(sums.filter((each) => !each.isZero()).map((each) => each.forPeople())),
      ]);
    }
  });

  test.runIf(list.page !== undefined)('says nothing of rows that its reader may not see, also after one', async () => {
    const keyOf = (row: unknown) => list.key?.(row) ?? '';
    const own = new Set((await read(list, { scope: [HARBOUR] })).map(keyOf));
    const others = (await read(list)).map(keyOf).filter((key) => !own.has(key));
    for (const sort of list.sorts) {
      const all = (await read(list, { sort })).map(keyOf);
      const inOrder = all.toSorted((one, other) => Number(one) - Number(other)).join();
      // Ids tell nothing.
      if (inOrder === all.join() || inOrder === all.toReversed().join()) continue;
      for (const after of others) {
        expect([sort, after, await read(list, { scope: [HARBOUR], sort, after })]).toEqual([sort, after, []]);
      }
    }
  });
});
