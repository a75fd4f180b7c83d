/** The two closes of a month: billing on the first, the books when the bank has reported everything. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { closeBooks, closeDueBooks, runCloseBooks } from '../../src/close/books.ts';
import type { Settings } from '../../src/config/settings.ts';
import { type Database, openDatabase } from '../../src/database/database.ts';
import { voidDocument } from '../../src/documents/void.ts';
import type { Month } from '../../src/month.ts';
import { closeException } from '../../src/payments/exceptions.ts';
import { recordPayment } from '../../src/payments/record.ts';
import { readAccountStatement } from '../../src/reports/account-statement.ts';
import { readAging } from '../../src/reports/aging.ts';
import { readBooksReport } from '../../src/reports/books.ts';
import { readTrialBalance } from '../../src/reports/trial-balance.ts';
import { failing, foundBy } from '../audit/failing.ts';
import { type Books, booksOf } from '../payments/books.ts';
import { settingsWith } from '../payments/settings.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';
import { refusalOf } from './refusal.ts';
import { startOver } from './start-over.ts';

const [SEPTEMBER, OCTOBER, NOVEMBER] = ['2026-09', '2026-10', '2026-11'] as Month[] as [Month, Month, Month];

let world: World;
let books: Books;
/** Another machine on the same database. */
let other: Database;
beforeAll(async () => {
  world = await openWorld();
  other = await openDatabase(world.environment, { poolSize: 4 });
});
afterAll(async () => {
  await other.close();
  await world.end();
});

/** Invoices of 7.00 for August (issued 1 September) and September (1 October); October is closed for billing as well. */
beforeEach(async () => {
  await startOver(world);
  world.settings = { ...world.settings, books_close_day: null, ended_bank_accounts: {} };
  world.at('2026-08-20T12:00:00Z');
  await world.partners([partner()]);
  for (const month of ['2026-08', '2026-09', '2026-10']) {
    world.at(`${month}-21T12:00:00Z`);
    await world.rows([quote({ accepted_at: `${month}-20T12:00:00Z` })]);
    const [year, number] = month.split('-').map(Number) as [number, number];
    world.at(`${year}-${String(number + 1).padStart(2, '0')}-01T12:00:00Z`);
    await world.close();
  }
  world.at('2026-11-03T15:00:00Z');
  books = booksOf(world);
});

const set = (settings: Partial<Settings>) => {
  world.settings = { ...world.settings, ...settings };
};
const closeOf = (month: Month, without?: { accounts: string[]; reason: string }) =>
  runCloseBooks(world.database, world, { month, ...(without && { without }) });
const closeTo = (month: Month) =>
  world.closeBooks(...['2026-08', '2026-09', '2026-10', '2026-11'].filter((each) => each <= month));
const booksOfMonth = (month: Month) => world.database.reading((tx) => readBooksReport(tx, world, { month }));
const trial = (asOf: string) =>
  world.database.reading((tx) => readTrialBalance(tx, { asOf, today: '2026-11-03', detail: true }));
const accountsOn = async (asOf: string) =>
  Object.fromEntries((await trial(asOf)).accounts.map(({ account, debit, credit }) => [account, `${debit} ${credit}`]));
const agingOn = (asOf: string) => world.database.reading((tx) => readAging(tx, { asOf, today: '2026-11-03' }));

/** An account statement 0001 to a day, with a credit of 7.00 for an invoice where one is named. */
function camt(
  closedOn: string,
  line?: { invoice: string; on: string; amount?: string },
  account = '0001',
  opening = '0.00',
): string {
  const amount = line?.amount ?? '7.00';
  const closing = (Number(opening) + (line ? Number(amount) : 0)).toFixed(2);
  const entry = line
    ? `<Ntry><Amt Ccy="USD">${amount}</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts>BOOK</Sts>
       <BookgDt><Dt>${line.on}</Dt></BookgDt><AcctSvcrRef>R-${line.invoice}-${line.on}</AcctSvcrRef>
       <NtryDtls><TxDtls><Refs><EndToEndId>${line.invoice}</EndToEndId></Refs>
       <RltdPties><Dbtr><Nm>Harbour Lights Ticketing</Nm></Dbtr></RltdPties></TxDtls></NtryDtls></Ntry>`
    : '';
  const balance = (code: string, value: string, on: string) =>
    `<Bal><Tp><CdOrPrtry><Cd>${code}</Cd></CdOrPrtry></Tp><Amt Ccy="USD">${value}</Amt><CdtDbtInd>CRDT</CdtDbtInd>
     <Dt><Dt>${on}</Dt></Dt></Bal>`;
  return `<?xml version="1.0"?><Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.02"><BkToCstmrStmt>
    <GrpHdr><MsgId>M-${account}-${closedOn}</MsgId><CreDtTm>${closedOn}T23:00:00Z</CreDtTm></GrpHdr>
    <Stmt><Id>S-${account}-${closedOn}</Id><CreDtTm>${closedOn}T23:00:00Z</CreDtTm>
    <Acct><Id><Othr><Id>${account}</Id></Othr></Id><Ccy>USD</Ccy></Acct>
    ${balance('OPBD', opening, closedOn)}${balance('CLBD', closing, closedOn)}
    ${entry}</Stmt></BkToCstmrStmt></Document>`;
}
const bank = (...given: Parameters<typeof camt>) =>
  books.bankText(`${given[2] ?? '0001'}-${given[0]}.xml`, camt(...given));

describe('while the books of a month are open', () => {
  test('a line booked on 30 October and imported on 3 November stands in October', async () => {
    const before = await accountsOn('2026-10-31');
    expect(before['assets:receivable:billed:p-1']).toBe('14.00 0.00');
    await bank('2026-10-30', { invoice: 'INV-2026-000001', on: '2026-10-30' });

    expect(await accountsOn('2026-10-29')).toEqual(before);
    const after = await accountsOn('2026-10-31');
    expect(after['assets:bank:0001']).toBe('7.00 0.00');
    expect(after['assets:receivable:billed:p-1']).toBe('7.00 0.00');
    expect(await agingOn('2026-10-31')).toMatchObject({ ties: true, totals: [{ open: '7.00', not_due: '7.00' }] });
    const statement = await world.database.reading((tx) =>
      readAccountStatement(tx, { partnerId: 'p-1', asOf: '2026-10-31', today: '2026-11-03' }),
    );
    expect(statement.accounts[0]?.lines.at(-1)).toMatchObject({
      ...{ fact: 'payment_received', date: '2026-10-30', dated_on: '2026-10-30', amount: '-7.00' },
    });
    await books.verified();
  });

  test('reports of a day in it are preliminary', async () => {
    expect(await trial('2026-10-31')).toMatchObject({ preliminary: true, books_closed_to: null });
    await closeTo(SEPTEMBER);
    expect(await trial('2026-09-30')).toMatchObject({ preliminary: false, books_closed_to: SEPTEMBER });
    expect(await trial('2026-10-01')).toMatchObject({ preliminary: true, books_closed_to: SEPTEMBER });
    expect(await agingOn('2026-09-15')).toMatchObject({ preliminary: false });
    expect(await agingOn('2026-10-15')).toMatchObject({ preliminary: true });
  });

  test('a late ledger row still posts to the earliest month that is open for billing', async () => {
    await world.rows([quote({ accepted_at: '2026-10-25T12:00:00Z' })]);
    expect(await world.sql(`SELECT DISTINCT posted_month FROM ledger_rows WHERE accepted_at > '2026-10-21'`)).toEqual([
      { posted_month: NOVEMBER },
    ]);
  });
});

describe('once the books of a month are closed', () => {
  test('a payment of October is entered on the first open day, with its true date beside it', async () => {
    await closeTo(OCTOBER);
    const october = await accountsOn('2026-10-31');
    await books.record({ amount: '7', number: 'INV-2026-000001', receivedOn: '2026-10-30', reference: 'FT-9' });
    expect((await books.payments())[0]).toMatchObject({ received_on: '2026-10-30', entry_on: '2026-11-01' });
    expect(await accountsOn('2026-10-31')).toEqual(october);
    expect((await accountsOn('2026-11-01'))['assets:receivable:billed:p-1']).toBe('14.00 0.00');
    await books.verified();
  });

  test('a correction of November is dated in November, and October stays as it is', async () => {
    await closeTo(OCTOBER);
    const october = await accountsOn('2026-10-31');
    await world.database.transaction((tx) => voidDocument(tx, world, { number: 'INV-2026-000002', reason: 'wrong' }));
    expect(await world.sql('SELECT entry_on::text FROM voids')).toEqual([{ entry_on: '2026-11-03' }]);
    expect(await accountsOn('2026-10-31')).toEqual(october);
  });

  test('the database refuses a fact dated in it, whoever records it', async () => {
    await closeTo(SEPTEMBER);
    const write = (entryOn: string) =>
      world.sql(
        `INSERT INTO write_offs (document_id, amount, reason, written_off_on, recorded_at, event_id, reopened_on)
         SELECT min(document_id), 1, 'x', '${entryOn}', now(), (SELECT min(event_id) FROM audit_events), NULL FROM documents`,
      );
    await expect(write('2026-09-30')).rejects.toThrow(/the books are closed to 2026-09/);
    await write('2026-10-01');
    await expect(
      world.sql(`INSERT INTO payments (identity, source, currency, amount, method, account, received_on, entry_on, reference, recorded_at, event_id)
        SELECT 'x', 'hand', 'USD', 1, 'wire', '', '2026-09-30', '2026-09-30', 'x', now(), min(event_id) FROM audit_events`),
    ).rejects.toThrow(/payments cannot be dated 2026-09-30: the books are closed to 2026-09/);
  });

  test('the database refuses what was open at its end once it is stored, whoever adds to it', async () => {
    await closeTo(SEPTEMBER);
    const documents = (month: Month) =>
      world.sql(
        `INSERT INTO book_open_documents (month, document_id, balance)
         SELECT '${month}', max(document_id), 1 FROM documents`,
      );
    await expect(documents(SEPTEMBER)).rejects.toThrow(
      'what was open at the end of 2026-09 was stored when its books were closed',
    );
    await expect(documents(OCTOBER)).rejects.toThrow(/book_open_document_of_closed_books/);
    await books.record({ amount: '1', number: 'INV-2026-000002', reference: 'FT-1', receivedOn: '2026-10-30' });
    await expect(
      world.sql(`INSERT INTO book_unapplied_cash (month, payment_id, partner_id, amount)
        SELECT '${SEPTEMBER}', payment_id, NULL, 1 FROM payments`),
    ).rejects.toThrow(/what was open at the end of 2026-09/);
  });

  test('closing them again changes nothing', async () => {
    await closeTo(OCTOBER);
    const closed = await booksOfMonth(OCTOBER);
    world.at('2026-11-20T12:00:00Z');
    await closeOf(OCTOBER);
    expect(await booksOfMonth(OCTOBER)).toEqual(closed);
    expect(await world.sql(`SELECT count(*)::int AS n FROM audit_events WHERE action = 'books.close'`)).toEqual([
      { n: 3 },
    ]);
  });

  test('the close records who closed, how far each bank account was reported, and the balances at the end', async () => {
    await bank('2026-10-31', { invoice: 'INV-2026-000001', on: '2026-10-30' });
    await closeTo(OCTOBER);
    const [event] = await world.sql(
      `SELECT details, personal(claimed_by) AS claimed_by FROM audit_events WHERE subject = '2026-10' AND action = 'books.close'`,
    );
    expect(event).toEqual({
      details: { bank_feeds: [{ account: '0001', reported_to: '2026-10-31' }], without: [] },
      claimed_by: 'Ada',
    });
    const stored = await world.sql<{ account: string; amount: string }>(
      `SELECT account, round(amount, 2)::text AS amount FROM book_balances WHERE month = '2026-10' ORDER BY account`,
    );
    expect(stored).toEqual([
      { account: 'assets:bank:0001', amount: '7.00' },
      { account: 'assets:receivable:billed:p-1', amount: '7.00' },
      { account: 'assets:receivable:unbilled:p-1', amount: '7.00' },
      { account: 'income:sales:ticket-protection', amount: '-21.00' },
    ]);
    // The checkpoint follows the last fact of the close, and covers it.
    const covered = await world.sql(
      `SELECT c.previous, k.last_no >= c.log_no AND c.log_no > c.facts_to AS is_covered
       FROM book_closes c JOIN log_checkpoints k ON k.closes = 'books ' || c.month WHERE c.month = '2026-10'`,
    );
    expect(covered).toEqual([{ previous: '2026-09', is_covered: true }]);
  });
});

describe('the books of a month cannot be closed', () => {
  test('before its billing close', async () => {
    await closeTo(OCTOBER);
    world.at('2026-12-01T03:00:00Z');
    expect((await refusalOf(closeOf(NOVEMBER))).code).toBe('month_not_ended');
    world.at('2026-12-01T06:00:00Z');
    expect(await refusalOf(closeOf(NOVEMBER))).toEqual({ code: 'month_not_closed', facts: { month: NOVEMBER } });
  });

  test('before those of an earlier month', async () => {
    expect(await refusalOf(closeOf(OCTOBER))).toEqual({
      code: 'earlier_books_open',
      facts: { month: OCTOBER, open: '2026-08' },
    });
  });

  test('where it is before the first month', async () => {
    expect((await refusalOf(closeOf('2026-07' as Month))).code).toBe('before_first_month');
    await closeTo(OCTOBER);
    expect((await refusalOf(closeOf('2026-07' as Month))).code).toBe('before_first_month');
  });

  test('while a bank account is reported only to a day before its end, and nothing is recorded then', async () => {
    await closeTo(SEPTEMBER);
    await bank('2026-10-30', { invoice: 'INV-2026-000001', on: '2026-10-30' });
    const before = await world.sql('SELECT last_value FROM log_numbers');
    expect(await refusalOf(closeOf(OCTOBER))).toEqual({
      code: 'bank_feed_behind',
      facts: { month: OCTOBER, ends_on: '2026-10-31', accounts: [{ account: '0001', reported_to: '2026-10-30' }] },
    });
    expect(await world.sql('SELECT last_value FROM log_numbers')).toEqual(before);
    await bank('2026-11-02', undefined, '0001', '7.00');
    await closeOf(OCTOBER);
    await books.verified();
  });

  test('while a bank statement in the middle of it is missing, until that arrives', async () => {
    await closeTo(SEPTEMBER);
    await bank('2026-10-12', { invoice: 'INV-2026-000001', on: '2026-10-12' });
    await bank('2026-11-02', undefined, '0001', '19.00');
    const before = await world.sql('SELECT last_value FROM log_numbers');
    expect(await refusalOf(closeOf(OCTOBER))).toMatchObject({
      code: 'bank_feed_gap',
      facts: {
        month: OCTOBER,
        gaps: [
          {
            ...{ account: '0001', exception: expect.stringMatching(/^bank-statement-\d+$/) },
            reason: expect.stringContaining('opens with 19.00, but 0001-2026-10-12.xml ends with 7.00 on 2026-10-12'),
          },
        ],
      },
    });
    expect((await booksOfMonth(OCTOBER)).obstacles.map(({ code }) => code)).toEqual(['bank_feed_gap']);
    expect(await world.sql('SELECT last_value FROM log_numbers')).toEqual(before);
    await bank('2026-10-20', { invoice: 'INV-2026-999999', on: '2026-10-20', amount: '12.00' }, '0001', '7.00');
    await closeOf(OCTOBER);
    await books.verified();
  });

  test('while the days to its end are missing, although a later statement is there, unless the gap is explained', async () => {
    await bank('2026-09-29', { invoice: 'INV-2026-000001', on: '2026-09-29' });
    await bank('2026-10-31', undefined, '0001', '19.00');
    await closeTo('2026-08' as Month);
    const refusal = await refusalOf(closeOf(SEPTEMBER));
    expect(refusal.code).toBe('bank_feed_gap');
    const [{ exception }] = refusal.facts['gaps'] as [{ exception: string }];
    await world.database.transaction((tx) =>
      closeException(tx, world, { exception, reason: 'the bank moved the account' }),
    );
    await closeTo(OCTOBER);
  });

  test('while a payment in it may be a duplicate, until finance decides', async () => {
    await closeTo(SEPTEMBER);
    const head = 'date,amount,currency,account,bank_reference,text,payer,payer_account';
    const line = (reference: string) => `${head}\n2026-10-31,3.00,USD,0009,${reference},thanks,Somebody,\n`;
    const first = await books.bankText('once.csv', line('B-9'));
    const again = await books.bankText('twice.csv', line(''));
    const [kept, held] = [first, again].map((each) => each.new_lines[0]?.payment_id ?? 0) as [number, number];
    expect(await refusalOf(closeOf(OCTOBER))).toMatchObject({
      code: 'possible_duplicates_open',
      facts: { month: OCTOBER, payments: [`payment-${held}`] },
    });
    // Booked as no customer's, the first stays in the bank: the second may still be its duplicate.
    await books.reverse({ paymentId: kept, kind: 'other', account: 'income:interest' });
    expect((await refusalOf(closeOf(OCTOBER))).code).toBe('possible_duplicates_open');
    // A duplicate is taken back on the day of its receipt, so that no balance has the money twice.
    await books.reverse({ paymentId: held, kind: 'duplicate', duplicateOf: kept });
    const [bank] = await world.sql(
      `SELECT sum(amount)::text AS amount FROM journal WHERE account = 'assets:bank:0009' AND entry_on <= '2026-10-31'`,
    );
    expect(bank).toEqual({ amount: '3.00' });
    await closeOf(OCTOBER);
    await books.verified();
  });

  test('but a gap after its end keeps only the next month open', async () => {
    await closeTo('2026-08' as Month);
    await bank('2026-09-30', { invoice: 'INV-2026-000001', on: '2026-09-29' });
    await bank('2026-10-31', undefined, '0001', '19.00');
    await closeOf(SEPTEMBER);
    expect((await refusalOf(closeOf(OCTOBER))).code).toBe('bank_feed_gap');
  });

  test('while a line of its last day may be missing, because its last file has no closing date', async () => {
    await closeTo('2026-08' as Month);
    const columns = { date: 'date', amount: 'amount', balance: 'balance', bank_reference: 'ref', account: 'account' };
    set(settingsWith({ bank_csv: { balances: { columns } } }));
    books = booksOf(world);
    const csv = (line: string) =>
      books.bankText(`${line}.csv`, `date,amount,balance,ref,account\n${line},0001\n`, { map: 'balances' });
    await csv('2026-09-30,7.00,7.00,B-1');
    await csv('2026-10-31,5.00,77.00,B-3');
    expect((await refusalOf(closeOf(SEPTEMBER))).code).toBe('bank_feed_gap');
    await csv('2026-09-30,65.00,72.00,B-2');
    await closeTo(OCTOBER);
  });

  test('an account whose files state no balances is named: a missing file cannot be noticed', async () => {
    await bank('2026-10-31');
    const head = 'date,amount,currency,account,bank_reference,text,payer,payer_account';
    await books.bankText('plain.csv', `${head}\n2026-10-31,-3.00,USD,0002,FT-1,fee,,\n`);
    expect((await booksOfMonth(OCTOBER)).bank_feeds).toMatchObject([
      { account: '0001', balances_stated: true },
      { account: '0002', balances_stated: false },
    ]);
  });

  test('unless the account is named as one that reports no more, which the event keeps', async () => {
    await closeTo(SEPTEMBER);
    await bank('2026-10-12', undefined, '0002');
    expect((await refusalOf(closeOf(OCTOBER))).code).toBe('bank_feed_behind');
    expect(await refusalOf(closeOf(OCTOBER, { accounts: ['0003'], reason: 'x' }))).toEqual({
      code: 'bank_account_unknown',
      facts: { account: '0003', known: ['0002'] },
    });
    await closeOf(OCTOBER, { accounts: ['0002'], reason: 'closed in October' });
    const [event] = await world.sql(
      `SELECT details FROM audit_events WHERE action = 'books.close' AND subject = '2026-10'`,
    );
    expect(event).toMatchObject({
      details: { without: [{ account: '0002', reported_to: '2026-10-12', reason: 'closed in October' }] },
    });
    // The books shown again tell why as well.
    expect((await booksOfMonth(OCTOBER)).bank_feeds).toMatchObject([{ account: '0002', ended: 'closed in October' }]);
  });

  test('or the settings name it for good', async () => {
    await closeTo(SEPTEMBER);
    await bank('2026-10-12', undefined, '0002');
    set({ ended_bank_accounts: { '0002': 'closed in October' } });
    await closeOf(OCTOBER);
    expect((await booksOfMonth(OCTOBER)).bank_feeds).toEqual([
      {
        account: '0002',
        reported_to: '2026-10-12',
        balances_stated: true,
        complete: false,
        ended: 'closed in October',
      },
    ]);
  });

  test('and the report before the close says all that is missing at once', async () => {
    await bank('2026-10-30', { invoice: 'INV-2026-999999', on: '2026-10-30', amount: '5.00' });
    const found = await booksOfMonth(OCTOBER);
    expect(found.obstacles.map(({ code }) => code)).toEqual(['earlier_books_open', 'bank_feed_behind']);
    expect(found).toMatchObject({ status: 'open', checkpoint: null, unapplied: [{ currency: 'USD', amount: '5.00' }] });
    expect(Object.values(found.exceptions).reduce((sum, count) => sum + count, 0)).toBe(1);
    expect(found.trial_balance).toMatchObject({ as_of: '2026-10-31', preliminary: true, balanced: true });
  });
});

describe('a payment that is recorded while the books close', () => {
  /** A promise to be kept from outside. */
  const signal = () => {
    let resolve = () => {};
    const promise = new Promise<void>((given) => {
      resolve = given;
    });
    return { promise, resolve };
  };
  const waiting = async () => {
    for (let tries = 0; tries < 2000; tries += 1) {
      const [row] = await world.sql<{ waiting: number }>(
        `SELECT count(*)::int AS waiting FROM pg_locks JOIN pg_database b ON b.oid = database
         WHERE datname = current_database() AND relation = 'ledger_gate'::regclass AND NOT granted`,
      );
      if ((row?.waiting ?? 0) > 0) return;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    throw new Error('nothing waits for the lock');
  };
  const payment = { amount: '7', number: 'INV-2026-000001', receivedOn: '2026-10-30', reference: 'FT-9' };

  test('waits for the close, and is dated after it', async () => {
    await closeTo(SEPTEMBER);
    const [closed, commit] = [signal(), signal()];
    const closing = other.transaction(async (tx) => {
      await closeBooks(tx, world, { month: OCTOBER });
      closed.resolve();
      await commit.promise;
    });
    await closed.promise;
    const recording = books.record(payment);
    await waiting().finally(commit.resolve);
    await Promise.all([closing, recording]);
    expect((await books.payments())[0]).toMatchObject({ received_on: '2026-10-30', entry_on: '2026-11-01' });
    await books.verified();
  });

  test('or holds it up, and is counted in it', async () => {
    await closeTo(SEPTEMBER);
    const [recorded, commit] = [signal(), signal()];
    const recording = other.transaction(async (tx) => {
      await recordPayment(tx, books.acting, { currency: 'USD', method: 'wire', ...payment });
      recorded.resolve();
      await commit.promise;
    });
    await recorded.promise;
    const closing = closeOf(OCTOBER);
    await waiting().finally(commit.resolve);
    await Promise.all([closing, recording]);
    expect((await books.payments())[0]).toMatchObject({ entry_on: '2026-10-30' });
    expect(
      await world.sql(`SELECT account FROM book_balances WHERE month = '2026-10' AND account LIKE 'assets:bank%'`),
    ).toHaveLength(1);
    await books.verified();
  });

  test('ten closes at once close the books once', async () => {
    await closeTo(SEPTEMBER);
    await Promise.all(Array.from({ length: 10 }, () => runCloseBooks(other, world, { month: OCTOBER })));
    expect(await world.sql('SELECT month FROM book_closes ORDER BY month')).toHaveLength(3);
    await books.verified();
  });
});

describe('with a day in the settings', () => {
  const due = async () => {
    const closed: Month[] = [];
    const refusal = await closeDueBooks(world.database, world, (month) => closed.push(month));
    return { closed, refusal: refusal?.code };
  };

  test('the job closes every month whose day has come', async () => {
    expect(await due()).toEqual({ closed: [], refusal: undefined });
    set({ books_close_day: 5 });
    world.at('2026-11-04T15:00:00Z');
    expect(await due()).toEqual({ closed: ['2026-08', '2026-09'], refusal: undefined });
    world.at('2026-11-05T15:00:00Z');
    expect(await due()).toEqual({ closed: [OCTOBER], refusal: undefined });
    expect(await due()).toEqual({ closed: [], refusal: undefined });
  });

  test('but not while a bank account is behind', async () => {
    set({ books_close_day: 5 });
    world.at('2026-11-05T15:00:00Z');
    await bank('2026-10-30');
    expect(await due()).toEqual({ closed: ['2026-08', '2026-09'], refusal: 'bank_feed_behind' });
  });
});

describe('verify sees', () => {
  const found = async (check: string) => {
    return foundBy(await world.verify(), check);
  };
  const damage = async (...statements: string[]) => {
    for (const statement of [GUARDS_OFF, ...statements, GUARDS_ON]) {
      await world.sql(statement);
    }
  };

  test('a payment moved into closed books, and every account that it moved', async () => {
    await closeTo(OCTOBER);
    await books.record({ amount: '7', number: 'INV-2026-000001', receivedOn: '2026-11-02', reference: 'FT-9' });
    await damage(
      `UPDATE payments SET entry_on = '2026-10-30', received_on = '2026-10-30'`,
      `UPDATE payment_applications SET entry_on = '2026-10-30', applied_on = '2026-10-30'`,
    );
    expect(await found('entry_in_open_books')).toHaveLength(2);
    expect((await found('books_of_journal')).map(({ detail }) => detail).sort()).toEqual([
      expect.stringContaining('Found: account assets:bank, currency USD,'),
      expect.stringContaining('Found: account assets:receivable:billed:p-1, currency USD,'),
    ]);
  });

  test('a balance that was changed with the payment behind it', async () => {
    await books.record({ amount: '7', number: 'INV-2026-000001', receivedOn: '2026-10-02', reference: 'FT-9' });
    await closeTo(OCTOBER);
    await damage(
      `UPDATE payments SET amount = 8`,
      `UPDATE book_balances SET amount = 8 WHERE account = 'assets:bank'`,
      `INSERT INTO book_balances (month, control, account, currency, amount)
       VALUES ('2026-10', 'liabilities:unapplied', 'liabilities:unapplied:p-1', 'USD', -1)`,
    );
    expect(await found('books_of_journal')).toEqual([]);
    expect(await found('log_derived_again')).not.toEqual([]);
  });

  test('the verify of a month looks at the books of all months', async () => {
    await closeTo(OCTOBER);
    await damage(`UPDATE book_balances SET amount = amount + 1 WHERE month = '2026-08' AND control = 'income:sales'`);
    expect(failing(await world.verify(OCTOBER))).toEqual(
      expect.arrayContaining(['log_derived_again', 'books_of_journal']),
    );
  });
});
