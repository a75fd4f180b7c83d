/**
 * What a page of the console costs, counted instead of timed: how many statements it asks, and how many rows of the tables
 * that grow it reads. The ledger is small, and large enough that a query for each line or a scan of a whole table shows.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Database } from '../../src/database/database.ts';
import { query, type Transaction } from '../../src/database/transaction.ts';
import { takeCheckpoint } from '../../src/log/checkpoint.ts';
import type { Month } from '../../src/month.ts';
import { type Books, booksOf } from '../payments/books.ts';
import { ADMINISTRATOR, type Browser, invite, signedIn } from '../support/console.ts';
import {
  addressOf,
  askToRelease,
  isMoved,
  isOpen,
  makePack,
  type Route,
  serveRoutes,
  sizeIn,
} from '../support/console-routes.ts';
import type { Served } from '../support/service.ts';
import { openWorld, partner, quote } from '../support/world.ts';

/** More than a page of each list has. */
const PARTNERS = 60;
const MONTHS = ['2026-02', '2026-03', '2026-04', '2026-05', '2026-06', '2026-07'] as const;
const CENT = { spotPrice: '10.01', partnerCut: '3.01' };
const ROWS_A_MONTH = 5;

/** What grows with the business, and is never to be read as a whole for one page. */
const GROWING = ['ledger_rows', 'documents', 'audit_events', 'emails', 'payments'] as const;
type Growing = (typeof GROWING)[number];

/** Besides the session's. A page of a list has fifty lines. */
const MOST_STATEMENTS = 31;
/** The rows that a page may read of a table, as a share of all: a page of a list, joined a few times. */
const MOST_READ = 0.5;

/** Why a page reads more: how often it may read each of these tables as a whole. It is never the ledger's rows. */
interface Exception {
  readonly path: RegExp;
  readonly whole: Readonly<Partial<Record<Exclude<Growing, 'ledger_rows'>, number>>>;
  readonly because: string;
}
const EXCEPTIONS: readonly Exception[] = [
  {
    path: /^\/(close(\/:month)?|reports\/close(\.\w+)?)$/,
    whole: { documents: 2, emails: 1.5, payments: 2.5 },
    because:
      'the strip has eleven months of the six here, a report two with their e-mails, the sign-off what payments wait',
  },
  {
    path: /^\/(invoices|payments\/all)\.\w+$/,
    whole: { documents: 4.5, emails: 1, payments: 2.5 },
    because: 'a file has every invoice, or every payment',
  },
  {
    path: /^\/payments\/lines\.\w+$/,
    whole: { documents: 1 },
    because: 'a file has every line of the bank, with the documents that it pays',
  },
  { path: /^\/invoices$/, whole: { documents: 2 }, because: 'below the rows are the sums of all documents' },
  { path: /^\/payments\/all$/, whole: { payments: 2 }, because: 'below the rows are the sums of all payments' },
  {
    path: /^\/(payments(\/:exception)?|queue)$/,
    whole: { documents: 4.5, emails: 2.5, payments: 3 },
    because:
      'what is open is a sum over everything that was ever settled, every e-mail here waits or failed, and while a bank ' +
      'file is late, the invoices whose reminders wait are read too',
  },
  {
    path: /^\/(reports\/position\.\w+)?$/,
    whole: { documents: 9, emails: 2.5, payments: 5.5 },
    because: 'what is open is a sum over everything that was ever settled, and what waits is the work queue',
  },
  {
    path: /^\/aging(\.\w+)?$/,
    whole: { documents: 5.5, payments: 4.5 },
    because: 'what was open on a day is a sum over all facts until then, compared with the journal of open books',
  },
  {
    path: /^\/reports\/trial-balance(\.\w+)?$/,
    whole: { documents: 4.5, payments: 3.5 },
    because: 'the books of this ledger were never closed; of a closed month its stored balances are read',
  },
  {
    path: /^\/reports\/bank-reconciliation(\.\w+)?$/,
    whole: { documents: 3, payments: 6 },
    because:
      'the balance of the books is a sum over every posting, and what is in transit is every posting without a line',
  },
  {
    path: /^\/reports\/roll-forward(\.\w+)?$/,
    whole: { documents: 12.5, payments: 9 },
    because:
      'each of twelve months is compared with its open items, which a ledger of open books adds up from the beginning; totals read them again',
  },
  {
    path: /^\/reports\/movements(\.\w+)?$/,
    whole: { documents: 5, payments: 2.5 },
    because: 'every fact of the months is a movement, and the totals read them again',
  },
  {
    path: /^\/reports\/reserve(\.\w+)?$/,
    whole: { documents: 9.5, payments: 4 },
    because: 'it is the aging, with what was billed; totals read them again',
  },
  {
    path: /^\/reports\/general-ledger\/entries(\.\w+)?$/,
    whole: { documents: 3, payments: 2.5 },
    because: 'it lists every entry of a month, and its totals read them again',
  },
  {
    path: /^\/reports\/(tax|unearned)(\.\w+)?$/,
    whole: { documents: 6, payments: 3 },
    because: 'it is compared with the postings of the journal',
  },
  {
    path: /^\/reports\/cash-application(\.\w+)?$/,
    whole: { documents: 1, payments: 4 },
    because: 'a month counts every credit of its bank files, with what became of it',
  },
  {
    path: /^\/reports\/coverage(\.\w+)?$/,
    whole: { documents: 6.5 },
    because: 'a gap is found by every document of every month',
  },
  {
    path: /^\/partners(\/:id(\/(statement|emails)(\.\w+)?)?)?$/,
    whole: { documents: 3.5, emails: 2, payments: 3.5 },
    because: 'what a partner owes is a sum over everything that was ever settled',
  },
  {
    path: /^\/audit(\.\w+)?$/,
    whole: { documents: 1.5, audit_events: 1 },
    because: 'a page counts up to 1,001 events, and a file has every event, with the pages of their subjects',
  },
  {
    path: /^\/(accounts(\.\w+)?|settings)$/,
    whole: { documents: 1.5, emails: 2.5 },
    because: 'the months that have statements, and how the mail fares, are found in whole tables',
  },
  {
    path: /^\/audit\/checkpoints(\.\w+|\/:size)?$/,
    whole: { emails: 1.5 },
    because: 'the letters about checkpoints are e-mails',
  },
];

let books: Books;
let served: Served;
let browser: Browser;
let routes: readonly Route[];
const sizes = {} as Record<Growing, number>;
let counted: { statements: number; read: Record<Growing, number> };

/** Rows and index entries that this session has fetched of each table so far, in transactions that are not reported yet. */
async function fetched(tx: Transaction): Promise<Record<Growing, number>> {
  const rows = await query<{ name: Growing; count: number }>(
    tx,
    `SELECT c.relname AS name, pg_stat_get_xact_tuples_returned(c.oid) + coalesce((
              SELECT sum(pg_stat_get_xact_tuples_returned(i.indexrelid)) FROM pg_index i
              WHERE i.indrelid = c.oid), 0)::bigint AS count
     FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relname = ANY (:names::text[])`,
    { names: GROWING },
  );
  return Object.fromEntries(rows.map(({ name, count }) => [name, count])) as Record<Growing, number>;
}

/** Counts what transactions of the server ask and read. */
function countReads(database: Database): void {
  const { reading } = database;
  const counting: Database['reading'] = (work) =>
    reading(async (tx) => {
      const before = await fetched(tx);
      const result = await work({
        ...tx,
        ask(statement) {
          counted.statements += 1;
          return tx.ask(statement);
        },
      });
      const after = await fetched(tx);
      for (const name of GROWING) counted.read[name] += after[name] - before[name];
      return result;
    });
  Object.assign(database, { reading: counting });
}

const nothing = () => ({ statements: 0, read: Object.fromEntries(GROWING.map((name) => [name, 0])) as typeof sizes });

const dayAfter = (month: string, day: number): string =>
  `${month.slice(0, 5)}${String(Number(month.slice(5)) + 1).padStart(2, '0')}-${String(day).padStart(2, '0')}`;

/** Six closed months of many partners and the rows of a running one; most invoices are paid, and as many receipts wait. */
async function makeLedger(): Promise<Books> {
  const world = await openWorld({ fresh: true });
  const ids = Array.from({ length: PARTNERS }, (_, index) => `p-${index + 1}`);
  const rowsOf = (month: string) =>
    ids.flatMap((partner_id) =>
      Array.from({ length: ROWS_A_MONTH }, (_, nth) =>
        // An odd sum that differs from those of the months before, so that deliveries are not compared by their rows.
        quote({
          partner_id,
          accepted_at: `${month}-10T12:00:00Z`,
          ...(nth <= 2 * (Number(month.slice(5)) % 3) && CENT),
        }),
      ),
    );
  await world.partners(ids.map((partner_id) => partner({ partner_id, name: `Hall ${partner_id}` })));
  for (const month of MONTHS) {
    world.at(`${dayAfter(month, 2)}T15:00:00Z`);
    await world.rows(rowsOf(month));
    await world.close();
  }
  world.at('2026-08-20T15:00:00Z');
  await world.rows(rowsOf('2026-08'));
  await takeCheckpoint(world.database, world);
  const made = booksOf(world);
  const documents = await made.documents();
  const lines = documents.map(({ number, partner_id, month }, index) => {
    // Of 60 partners in turn, every seventh is another one each time.
    const known = index % 7 > 0;
    const said = known ? [number, `Hall ${partner_id}`, `ACC-${partner_id}`] : ['thank you', 'Someone', `X-${index}`];
    return [dayAfter(month, 10), '35.00,USD,000123456789', `B-${index}`, ...said].join(',');
  });
  await made.bankText(
    'bank.csv',
    ['date,amount,currency,account,bank_reference,text,payer,payer_account', ...lines, ''].join('\n'),
  );
  await made.sql(
    `UPDATE emails SET status = 'failed', reason = 'no such user', attempts = 1, attempted_at = queued_at
     WHERE document_id IN (SELECT document_id FROM documents WHERE month = '2026-07')`,
  );
  await made.sql(
    `INSERT INTO audit_events (occurred_at, action, subject, details, os_user, host, via)
     SELECT '2026-08-10T12:00:00Z', 'quote.accept', 'q-' || n, '{}', 'sales', 'shop', 'http' FROM generate_series(1, 2000) n`,
  );
  // A page of a large ledger finds its rows by an index: PostgreSQL is to see that one is there, though these tables are small.
  const [{ name } = { name: '' }] = await made.sql<{ name: string }>('SELECT current_database() AS name');
  await made.sql(`ALTER DATABASE "${name}" SET enable_seqscan = off`);
  await made.sql(`ALTER DATABASE "${name}" SET seq_page_cost = 11`);
  await made.sql('VACUUM ANALYZE');
  return made;
}

beforeAll(async () => {
  counted = nothing();
  books = await makeLedger();
  await invite(books, ADMINISTRATOR);
  const link = await invite(books, 'mara@issuer.example', { roles: ['administrator', 'finance', 'approver'] });
  ({ served, routes } = await serveRoutes(books));
  browser = await signedIn(served, link);
  countReads(served.database);
  for (const name of GROWING) {
    const [row] = await books.sql<{ count: number }>(`SELECT count(*)::int AS count FROM ${name}`);
    sizes[name] = row?.count ?? 0;
  }
});
afterAll(async () => {
  await served.end();
  await books.end();
});

const pages = (): readonly Route[] =>
  routes.filter((route) => route.method === 'GET' && !isOpen(route) && !isMoved(route));

test('the ledger is large enough to tell', () => {
  expect(sizes).toMatchObject({ documents: PARTNERS * MONTHS.length, payments: PARTNERS * MONTHS.length });
  expect(Math.min(...Object.values(sizes))).toBeGreaterThan(300);
});

/** What is wrong with the counts of a page; nothing, if they are within its limits. */
function faults({ path }: Pick<Route, 'path'>, { statements, read }: typeof counted): string[] {
  const whole: Exception['whole'] = EXCEPTIONS.find((each) => each.path.test(path))?.whole ?? {};
  const limits: Partial<Record<Growing, number>> = whole;
  return [
    ...(statements > MOST_STATEMENTS ? [`${path} asks ${statements} statements`] : []),
    ...GROWING.filter((name) => read[name] > sizes[name] * (limits[name] ?? MOST_READ)).map(
      (name) => `${path} reads ${read[name]} rows of ${name}, which has ${sizes[name]}`,
    ),
  ];
}

test('a page asks few statements and reads a part of each table', async () => {
  const [first] = await books.documents({ months: ['2026-07' as Month] });
  const { number = '', partner_id: partnerId = '' } = first ?? {};
  const [waiting] = await books.sql<{ id: string }>('SELECT min(payment_id) AS id FROM unapplied_payments');
  const objects = {
    ...{ number, partnerId, month: '2026-07', exception: `payment-${waiting?.id}` },
    ...{
      task: await makePack(books),
      requestId: await askToRelease(books, number, partnerId),
      size: await sizeIn(books),
    },
  };
  const wrong: string[] = [];
  for (const route of pages()) {
    counted = nothing();
    const { status } = await browser.get(addressOf(route, objects));
    // The document was not delivered, so it has no files.
    if (status !== 200 && !/\/(document\.pdf|pdfs\.zip|void-copy\.pdf|e-invoice\.xml)$/.test(route.path))
      wrong.push(`${route.path}: ${status}`);
    wrong.push(...faults(route, counted));
  }
  expect(wrong).toEqual([]);
  expect(pages().length).toBeGreaterThan(90);
});

test('aging lists every partner of a currency with the total, as its file does', async () => {
  const { text } = await browser.get('/console/aging');
  const [{ owing } = { owing: 0 }] = await books.sql<{ owing: number }>(
    'SELECT count(DISTINCT partner_id)::int AS owing FROM documents JOIN open_documents USING (document_id)',
  );
  expect(owing).toBeGreaterThan(50);
  expect(new Set(text.match(/partner=p-\d+/g)).size).toBe(owing);
  expect(text).toMatch(/<tfoot>.*Total<.*[1-9][\d,]*\.00.*<\/tfoot>/s);
  const { text: file } = await browser.get('/console/aging.csv');
  expect(new Set(file.match(/^p-\d+/gm)).size).toBe(owing);
});

test('every exception is of a page', () => {
  const unused = EXCEPTIONS.filter(({ path }) => !pages().some((route) => path.test(route.path)));
  expect(unused).toEqual([]);
});

test('a query for each line, a page that reads all rows and a join that reads a table again are noticed', async () => {
  const counts = async (work: (tx: Transaction) => Promise<unknown>) => {
    counted = nothing();
    await served.database.reading(work);
    return faults({ path: '/search' }, counted);
  };
  const each = await counts(async (tx) => {
    for (const month of Array.from({ length: 50 }, () => '2026-07')) {
      await query(tx, `SELECT month FROM closed_months WHERE month = :month`, { month });
    }
  });
  expect(each).toEqual(['/search asks 50 statements']);
  const scan = await counts((tx) => query(tx, 'SELECT sum(invoice_amount) AS sum FROM ledger_rows'));
  expect(scan).toEqual([expect.stringContaining('rows of ledger_rows')]);
  const index = await counts((tx) => query(tx, 'SELECT count(*) AS count FROM documents WHERE document_id > 0'));
  expect(index).toEqual([expect.stringContaining('rows of documents')]);
});
