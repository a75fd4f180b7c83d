/**
 * Random payments and corrections over closing months: whatever happens, aging ties on any date, debits are
 * credits, and the balances of closed books never move. The issuer's day is behind its partners', so that months close for
 * billing while it is still in them.
 */
import { DateTime } from 'luxon';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Transaction } from '../../src/database/transaction.ts';
import { creditInvoice } from '../../src/documents/credit.ts';
import { rerunMonth } from '../../src/documents/rerun.ts';
import { voidDocument } from '../../src/documents/void.ts';
import { writeOffInvoice } from '../../src/documents/write-off.ts';
import { Refusal } from '../../src/errors/refusals.ts';
import { type Month, monthAfter, monthBefore } from '../../src/month.ts';
import { applyPayment, unapplyPayment } from '../../src/payments/apply.ts';
import { closeException } from '../../src/payments/exceptions.ts';
import { recordPayment } from '../../src/payments/record.ts';
import { refundCredit, returnRefund } from '../../src/payments/refund.ts';
import { reversePayment } from '../../src/payments/reverse.ts';
import { readAccountStatement } from '../../src/reports/account-statement.ts';
import { readAging } from '../../src/reports/aging.ts';
import { readTrialBalance } from '../../src/reports/trial-balance.ts';
import { seeded } from '../support/random.ts';
import { expectStatementsToTie } from '../support/statements-tie.ts';
import { times } from '../support/sweep.ts';
import { openWorld, partner, quote, reversal, type World } from '../support/world.ts';

const ACTIONS = times({ few: 400, short: 1_000, long: 5_000 });
/** After so many actions everything is inspected. */
const INSPECTED = 100;
const { seed, random } = seeded();
const CURRENCIES: Readonly<Record<string, string>> = { 'p-1': 'USD', 'p-2': 'USD', 'p-3': 'JPY' };

let world: World;
beforeAll(async () => {
  world = await openWorld();
  // ORDER BY random() below is of the seed, too.
  await world.sql('SELECT setseed($1)', [seed / 2 ** 31]);
  world.settings = { ...world.settings, time_zone: 'Pacific/Honolulu', small_difference: { USD: '0.50' } };
  await world.partners(
    Object.entries(CURRENCIES).map(([partner_id, currency]) =>
      partner({ partner_id, currency, time_zone: 'Pacific/Auckland', payment_terms_days: 10 }),
    ),
  );
});
afterAll(() => world.end());

const pick = <Value>(values: readonly Value[]): Value => values[Math.floor(random() * values.length)] as Value;
const whole = (most: number): number => 1 + Math.floor(random() * most);

let now = DateTime.fromISO('2026-07-20T00:00:00Z', { zone: 'utc' });
const issuersDay = () => now.setZone('Pacific/Honolulu').toFormat('yyyy-MM-dd');

function pass(hours: number): void {
  now = now.plus({ hours });
  world.at(now.toISO() as string);
}

const done: Record<string, number> = {};
const refused: Record<string, number> = {};
let sales: Record<string, unknown>[] = [];
let payments = 0;

type Action = (tx: Transaction) => Promise<unknown>;
const numbers = async (kind: string) =>
  (
    await world.sql<{ number: string }>(`SELECT number FROM documents WHERE document = $1 ORDER BY random()`, [kind])
  ).map((row) => row.number);

const actions: Readonly<Record<string, () => Promise<Action | undefined>>> = {
  pay_an_invoice: async () => {
    const number = (await invoiceOpen()) ?? pick(await numbers('invoice'));
    if (number === undefined) return undefined;
    const [row] = await world.sql<{ currency: string; balance: string }>(
      `SELECT currency, balance FROM documents JOIN document_balances USING (document_id) WHERE number = $1`,
      [number],
    );
    const balance = Math.max(1, Math.floor(Number(row?.balance)));
    const amount = pick([balance, balance + 3, Math.ceil(balance / 2), whole(40)]);
    return (tx) => recordPayment(tx, world, { ...received(row?.currency ?? 'USD', amount), number });
  },
  pay_on_account: async () => {
    const [partnerId, currency] = pick(Object.entries(CURRENCIES));
    return (tx) => recordPayment(tx, world, { ...received(currency, whole(60)), partnerId });
  },
  apply: async () => {
    const paymentId = await somePayment();
    const number = await invoiceOpen();
    return paymentId && number ? (tx) => applyPayment(tx, world, { paymentId, numbers: [number] }) : undefined;
  },
  unapply: async () => {
    const paymentId = await somePayment();
    return paymentId ? (tx) => unapplyPayment(tx, world, { paymentId }) : undefined;
  },
  take_back: async () => {
    const paymentId = await somePayment();
    const kind = pick(['returned', 'mistake'] as const);
    return paymentId
      ? (tx) => reversePayment(tx, world, { paymentId, kind, reason: 'R01', on: someDayUpTo(issuersDay()) })
      : undefined;
  },
  void: async () => {
    const number = pick([...(await numbers('invoice')), ...(await numbers('credit_note'))]);
    return number ? (tx) => voidDocument(tx, world, { number, reason: 'wrong' }) : undefined;
  },
  credit: async () => {
    const number = pick(await numbers('invoice'));
    return number
      ? (tx) => creditInvoice(tx, world, { number, amount: String(whole(15)), reason: 'goodwill' })
      : undefined;
  },
  write_off: async () => {
    const number = random() < 0.3 ? await invoiceOpen() : undefined;
    return number ? (tx) => writeOffInvoice(tx, world, { number, reason: 'bankrupt' }) : undefined;
  },
  refund: async () => {
    const number = pick(await numbers('credit_note'));
    return number
      ? (tx) => refundCredit(tx, world, { number, method: 'wire', reference: `out-${whole(99)}`, account: '' } as never)
      : undefined;
  },
  refund_returned: async () => {
    const number = pick(await numbers('credit_note'));
    return number ? (tx) => returnRefund(tx, world, { number, reason: 'the account is closed' }) : undefined;
  },
  rerun: async () => {
    const [row] = await world.sql<{ month: Month }>(`SELECT month FROM closed_months ORDER BY random() LIMIT 1`);
    return row ? (tx) => rerunMonth(tx, world, row.month, { newTerms: random() < 0.5, changed: true }) : undefined;
  },
};

function received(currency: string, amount: number) {
  payments += 1;
  const receivedOn = someDayUpTo(issuersDay());
  return {
    amount: String(amount),
    currency,
    method: pick(['ach', 'wire', 'link'] as const),
    receivedOn,
    reference: `ref-${payments}`,
  };
}

/** Some of what is recorded today happened weeks ago, in a month whose books are closed by now. */
const someDayUpTo = (day: string): string =>
  random() < 0.7
    ? day
    : (DateTime.fromISO(day)
        .minus({ days: whole(45) })
        .toISODate() as string);

async function invoiceOpen(): Promise<string | undefined> {
  const rows = await world.sql<{ number: string }>(
    `SELECT number FROM documents JOIN document_balances USING (document_id)
     WHERE document = 'invoice' AND status = 'open' ORDER BY random() LIMIT 1`,
  );
  return rows[0]?.number;
}

async function somePayment(): Promise<number | undefined> {
  const rows = await world.sql<{ id: string }>(
    `SELECT payment_id AS id FROM payment_balances WHERE status <> 'reversed' ORDER BY random() LIMIT 1`,
  );
  return rows[0] && Number(rows[0].id);
}

async function sellAndClose(month: Month): Promise<void> {
  const rows: Record<string, unknown>[] = [];
  for (const [partner_id, currency] of Object.entries(CURRENCIES)) {
    for (let index = whole(6); index > 0; index -= 1) {
      const amounts = { spotPrice: '100', partnerCut: '30', invoiceAmount: '70' };
      rows.push(quote({ partner_id, currency, accepted_at: `${month}-10T03:00:00Z`, ...amounts }));
    }
  }
  // Some months bring more back than they sell.
  const back = sales.filter(() => random() < 0.4);
  sales = [...sales.filter((sale) => !back.includes(sale)), ...rows];
  for (const sale of back) {
    const amounts = { spotPrice: '-100', partnerCut: '-30', invoiceAmount: '-70' };
    rows.push(
      reversal(sale, {
        accepted_at: `${pick([month, (sale['accepted_at'] as string).slice(0, 7)])}-20T03:00:00Z`,
        ...amounts,
      }),
    );
  }
  const report = await world.rows(rows, { skipInvalid: true });
  expect(report.accepted, `seed ${seed}`).toBeGreaterThan(0);
  expect(await world.close()).toContain(month);
}

/** Finance looks at every possible duplicate before it closes the books: here each is another payment. */
async function keepPossibleDuplicates(): Promise<void> {
  const held = await world.sql<{ exception: string }>(
    `SELECT exception FROM payment_exceptions WHERE kind = 'possible_duplicate' ORDER BY exception`,
  );
  for (const { exception } of held) {
    await world.database.transaction((tx) => closeException(tx, world, { exception, reason: 'another payment' }));
  }
}

/** The sums of every month whose books are closed, as they were then. */
const closedBooks = new Map<string, string>();

async function bookOf(month: string): Promise<string> {
  const rows = await world.sql(
    `SELECT account, partner_id, currency, trim_scale(sum(amount))::text AS amount FROM journal_months WHERE month = $1
     GROUP BY account, partner_id, currency HAVING sum(amount) <> 0 ORDER BY account, partner_id, currency`,
    [month],
  );
  return rows.map((row) => Object.values(row).join(' ')).join('\n');
}

async function inspect(): Promise<void> {
  const told = `seed ${seed} on ${issuersDay()}`;
  for (const [month, book] of closedBooks) expect(await bookOf(month), `${told}: ${month}`).toBe(book);
  const today = issuersDay();
  const dates = [
    undefined,
    today,
    ...[...closedBooks.keys()].slice(-2).map((month) => endOf(month as Month)),
    someDayUpTo(today),
  ];
  for (const asOf of dates) {
    await world.database.reading(async (tx) => {
      const aging = await readAging(tx, { asOf, today });
      expect(
        {
          asOf,
          ties: aging.ties,
          tie: aging.tie.filter((each) => each.differences.length > 0),
          documents: aging.documents_differ,
        },
        told,
      ).toEqual({
        ...{ asOf, ties: true, tie: [], documents: [] },
      });
      for (const row of aging.partners) {
        for (const amount of [row.open, row.credit, row.unapplied])
          expect(Number(amount), told).toBeGreaterThanOrEqual(0);
      }
      expect((await readTrialBalance(tx, { asOf, today, detail: false })).balanced, told).toBe(true);
      for (const partnerId of Object.keys(CURRENCIES)) {
        expect((await readAccountStatement(tx, { partnerId, asOf, today })).ties, told).toBe(true);
      }
    });
  }
}

function unlessRefused(error: unknown): void {
  if (!(error instanceof Refusal)) throw error;
}

const endOf = (month: Month): string =>
  DateTime.fromISO(`${monthAfter(month)}-01`)
    .minus({ days: 1 })
    .toISODate() as string;

test(`after ${ACTIONS} random payments and corrections aging ties on any date, and closed books are as they were`, {
  timeout: 600_000,
}, async () => {
  let month = '2026-07' as Month;
  pass(0);
  const perMonth = Math.min(125, ACTIONS / 8);
  for (let count = 0; count < ACTIONS; count += 1) {
    if (count % perMonth === 0) {
      // Auckland is in the next month; Honolulu still in this one.
      now = DateTime.fromISO(`${monthAfter(month)}-01T00:30:00Z`, { zone: 'utc' });
      pass(0);
      expect(issuersDay().slice(0, 7)).toBe(month);
      await sellAndClose(month);
      month = monthAfter(month);
      // The issuer's day is still in the month that was billed, and so is this document.
      const number = pick(await numbers('invoice'));
      const credit = { number, amount: '1', reason: 'goodwill' };
      await world.database.transaction((tx) => creditInvoice(tx, world, credit)).catch(unlessRefused);
    }
    if (count % perMonth === Math.floor(perMonth / 2)) {
      const before = monthBefore(month);
      await keepPossibleDuplicates();
      await world.closeBooks(before);
      closedBooks.set(before, await bookOf(before));
      expect(closedBooks.get(before)).not.toBe('');
    }
    if (random() < 0.5) pass(whole(10));
    const name = pick(Object.keys(actions));
    const action = await actions[name]?.();
    if (action === undefined) continue;
    try {
      await world.database.transaction(action);
      done[name] = (done[name] ?? 0) + 1;
    } catch (error) {
      if (!(error instanceof Refusal)) throw new Error(`${name} with seed ${seed}`, { cause: error });
      refused[name] = (refused[name] ?? 0) + 1;
    }
    if (count % INSPECTED === INSPECTED - 1) await inspect();
  }
  await inspect();
  const today = issuersDay();
  expect(await expectStatementsToTie(world, { today, dates: 10, told: `seed ${seed}` })).toBeGreaterThanOrEqual(20);
  // A test that did nothing of a kind says nothing of it.
  for (const name of Object.keys(actions)) expect({ name, done: (done[name] ?? 0) > 0 }).toEqual({ name, done: true });
  expect(closedBooks.size).toBeGreaterThanOrEqual(8);
  const late = await world.sql(`SELECT FROM journal WHERE dated_on < entry_on AND fact = 'payment_received'`);
  expect(late.length).toBeGreaterThan(0);
  const behind = await world.sql(`SELECT FROM journal WHERE dated_on < entry_on AND fact LIKE 'document%'`);
  expect(behind).toEqual([]);
  // What is summed by month is what stands there line by line: two views of the same facts.
  const apart = await world.sql(
    `SELECT month, account, partner_id, currency, sum(listed) AS listed, sum(summed) AS summed
     FROM (SELECT month, account, partner_id, currency, amount AS listed, 0 AS summed FROM journal
           UNION ALL
           SELECT month, account, partner_id, currency, 0, amount FROM journal_months) AS both_ways
     GROUP BY month, account, partner_id, currency HAVING sum(listed) <> sum(summed)`,
  );
  expect(apart).toEqual([]);
  const found = await world.verify();
  for (const check of found.checks.filter((each) => ['rules_hold', 'log_derived_again'].includes(each.check))) {
    expect({ check: check.check, differences: check.differences, some: check.inspected > 0 }).toEqual({
      ...{ check: check.check, differences: [], some: true },
    });
  }
});
