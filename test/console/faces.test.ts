/** Under the same filters the terminal, the console's page and its file have the same documents, payments and work. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openDispute } from '../../src/documents/disputes.ts';
import { BLUE_RIDGE, type Books, HARBOUR, inv, MUNICH, NORD, openBooks } from '../payments/books.ts';
import { ADMINISTRATOR, type Browser, invite, serveConsole, signedIn } from '../support/console.ts';
import { command } from '../support/program.ts';
import type { Served } from '../support/service.ts';

const MARA = 'mara@issuer.example';

let books: Books;
let served: Served;
let finance: Browser;
beforeAll(async () => {
  books = await openBooks();
  await invite(books, ADMINISTRATOR);
  await books.record({ number: inv(1), amount: '1250.00', reference: 'WIRE-1' });
  await books.record({ number: inv(2), amount: '100.00', reference: 'WIRE-2', receivedOn: '2026-10-02' });
  const { paymentId } = await books.record({ number: inv(3), amount: '33.33', reference: 'WIRE-3' });
  await books.reverse({ paymentId, kind: 'mistake', reason: 'recorded twice' });
  const lines = `date,amount,currency,account,bank_reference,text,payer,payer_account
2026-10-09,719.70,USD,0001,B-1,SOMEBODY,,
2026-10-10,6.00,USD,0001,B-2,tickets,,DE89370400440532013000
`;
  await books.bankText('lines.csv', lines);
  await books.database.transaction((tx) => openDispute(tx, books.acting, { number: inv(5), reason: 'price' }));
  served = await serveConsole(books);
  finance = await signedIn(served, await invite(books, MARA, { roles: ['finance'] }));
  const taken = await finance.get('/console/queue?queue=disputes');
  expect(taken.text).toContain(`dispute:${inv(5)}`);
  expect((await run(['--by', MARA, 'work', 'assign', `dispute:${inv(5)}`, '--to', MARA])).status).toBe(0);
});
afterAll(async () => {
  await served?.end();
  await books?.end();
});

const run = (args: readonly string[]) =>
  command(args, {
    env: {
      RECKONER_HOME: books.home,
      DATABASE_URL: books.databaseUrl,
      RECKONER_NOW: books.environment.now().toISO() as string,
    },
  });

interface Face {
  readonly list: string;
  readonly page: string;
  /** Of a row: its property in JSON, its first column in the file. */
  readonly id: string;
  /** Where its page has it. */
  readonly onPage: RegExp;
}
const DOCUMENTS: Face = {
  list: 'invoice list',
  page: '/console/invoices',
  id: 'number',
  onPage: /class="row number" href="[^"]*\/([A-Z]+-[\d-]+)"/g,
};
const PAYMENTS: Face = {
  list: 'payment list',
  page: '/console/payments/all',
  id: 'payment_id',
  onPage: /href="\/console\/payments\/(\d+)"/g,
};
const WORK: Face = {
  list: 'work list',
  page: '/console/queue',
  id: 'item',
  onPage: /aria-label="(?:Take|Give back) ([^"]+)"/g,
};

type Filter = Readonly<Record<string, string>>;
const inTerminal = async ({ list, id }: Face, filter: Filter): Promise<string[]> => {
  const options = Object.entries(filter).flatMap(([name, value]) =>
    value === 'yes' ? [`--${name}`] : [`--${name}`, value],
  );
  const ran = await run(['--json', ...list.split(' '), ...options]);
  expect([ran.status, ran.stderr]).toEqual([0, '']);
  return (ran.json() as Record<string, unknown>[]).map((row) => String(row[id])).toSorted();
};
const get = async (page: string, filter: Filter): Promise<string> => {
  const { status, text } = await finance.get(`${page}?${new URLSearchParams(filter)}`);
  expect(status).toBe(200);
  return text;
};
const onPage = async ({ page, onPage: pattern }: Face, filter: Filter): Promise<string[]> =>
  [...(await get(page, filter)).matchAll(pattern)].map(([, id]) => id as string).toSorted();
const inFile = async ({ page, id }: Face, filter: Filter): Promise<string[]> => {
  const [head = '', ...rows] = (await get(`${page}.csv`, filter)).trimEnd().split(/\r?\n/);
  expect(head.replace('\uFEFF', '').split(',')[0]).toBe(id);
  return rows.map((row) => row.split(',')[0] as string).toSorted();
};

/** Each with the number of rows that it leaves, so that none compares nothing with nothing. */
const DOCUMENT_FILTERS: readonly (readonly [Filter, number])[] = [
  [{}, 12],
  [{ status: 'open' }, 11],
  [{ status: 'paid' }, 1],
  [{ overdue: 'yes' }, 7],
  [{ month: '2026-09' }, 4],
  [{ partner: NORD }, 3],
  [{ amount: '840.00' }, 2],
  [{ text: 'harbour' }, 3],
  [{ from: '2026-10-01' }, 4],
  [{ to: '2026-08-31', status: 'open' }, 3],
  [{ partner: MUNICH, month: '2026-08' }, 1],
];
const PAYMENT_FILTERS: readonly (readonly [Filter, number])[] = [
  [{}, 5],
  [{ status: 'applied' }, 2],
  [{ status: 'unapplied' }, 2],
  [{ status: 'reversed' }, 1],
  [{ partner: HARBOUR }, 1],
  [{ partner: BLUE_RIDGE }, 1],
  [{ amount: '719.70' }, 1],
  [{ text: 'wire' }, 3],
  [{ text: 'DE8937' }, 1],
  [{ from: '2026-10-09' }, 4],
  [{ to: '2026-10-02', status: 'applied' }, 1],
];

describe.each([
  ['documents', DOCUMENTS, DOCUMENT_FILTERS],
  ['payments', PAYMENTS, PAYMENT_FILTERS],
] as const)('%s', (_, face, filters) => {
  test.each(filters)('%o', async (filter, count) => {
    const terminal = await inTerminal(face, filter);
    expect(terminal).toHaveLength(count);
    expect(await onPage(face, filter)).toEqual(terminal);
    expect(await inFile(face, filter)).toEqual(terminal);
  });
});

test.each([
  [{}, {}],
  [{ kind: 'receipts' }, { queue: 'receipts' }],
  [{ kind: 'disputes' }, { queue: 'disputes' }],
  [{ kind: 'e-mails' }, { queue: 'e-mails' }],
  [{ of: MARA }, { whose: 'mine' }],
  [{ nobodys: 'yes' }, { whose: 'nobody' }],
  [
    { kind: 'disputes', of: MARA },
    { queue: 'disputes', whose: 'mine' },
  ],
  [
    { kind: 'receipts', nobodys: 'yes' },
    { queue: 'receipts', whose: 'nobody' },
  ],
] as readonly (readonly [Filter, Filter])[])('work %o', async (filter, asked) => {
  const terminal = await inTerminal(WORK, filter);
  expect(terminal.length).toBeGreaterThan(0);
  expect(await onPage(WORK, asked)).toEqual(terminal);
});
