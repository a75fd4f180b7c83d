/**
 * Three months of dunning while bank files arrive late, and some partners are paused. A plain list, made from the
 * invoices, the payments, the pauses and the days on which files arrived, says who is reminded of what on which day.
 * The program's reminders are compared with it.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sendOtherEmails } from '../../src/mail/outbox.ts';
import { recordReminders } from '../../src/payments/remind.ts';
import { reminderEmail } from '../../src/payments/reminder-email.ts';
import { pauseReminders } from '../../src/payments/reminder-pauses.ts';
import { SEED, seeded } from '../support/random.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';
import { type Books, booksOf } from './books.ts';

let world: World;
let books: Books;
beforeAll(async () => {
  world = await openWorld();
  books = booksOf(world);
});
afterAll(() => world.end());

const LEVELS = [-7, 0, 7, 21, 45];
const NAMES = [
  ...['Alder Arena', 'Birch Theatre', 'Cedar Concerts', 'Dogwood Festival', 'Elm Stadium', 'Fir Playhouse'],
  ...['Ginkgo Cinema', 'Hazel Opera', 'Ivy Museum', 'Juniper Circus', 'Katsura Ballet', 'Larch Racing'],
  ...['Maple Gardens', 'Nutmeg Tours', 'Olive Cruises', 'Poplar Rides', 'Quince Markets', 'Rowan Games'],
];
const CURRENCIES = ['USD', 'EUR', 'GBP'] as const;
type Currency = (typeof CURRENCIES)[number];

interface Account {
  readonly name: string;
  readonly currency: Currency;
  /** The first day that its bank reports, and the day on which finance lists it as no longer reported. */
  readonly from: string;
  readonly endedOn: string | null;
  /** Days on which its bank is closed. */
  readonly holidays: readonly string[];
  readonly punctual: boolean;
}

/** Nobody has ever had a file of the account in GBP. Its payments are recorded by hand on their day. */
const ACCOUNTS: readonly Account[] = [
  { name: 'usd-1', currency: 'USD', from: '2026-07-01', endedOn: null, holidays: ['2026-09-07'], punctual: false },
  {
    name: 'usd-2',
    currency: 'USD',
    from: '2026-08-10',
    endedOn: '2026-09-18',
    holidays: ['2026-09-07'],
    punctual: false,
  },
  { name: 'eur-1', currency: 'EUR', from: '2026-07-01', endedOn: null, holidays: [], punctual: true },
];

interface Paid {
  /** The day on which the bank booked it. */
  readonly on: string;
  readonly account: Account | null;
  /** The day on which the program was told. */
  toldOn: string;
}

interface Invoice {
  readonly number: string;
  readonly partner: string;
  readonly currency: Currency;
  readonly issuedOn: string;
  readonly dueOn: string;
  readonly amount: string;
  paid: Paid | null;
}

const shifted = (day: string, days: number): string =>
  new Date(Date.parse(`${day}T00:00:00Z`) + days * 86_400_000).toISOString().slice(0, 10);
const weekday = (day: string): number => new Date(`${day}T00:00:00Z`).getUTCDay();
const isWeekend = (day: string): boolean => weekday(day) === 0 || weekday(day) === 6;
/** Friday's report decides the runs of Saturday, Sunday and Monday. */
function nextWorkingDay(day: string): string {
  let next = shifted(day, 1);
  while (isWeekend(next)) next = shifted(next, 1);
  return next;
}

const reportsOn = (account: Account, day: string): boolean =>
  !isWeekend(day) && !account.holidays.includes(day) && day >= account.from && day < (account.endedOn ?? '9999');

/** A day's statement of an account, with its credits. */
function camt(account: Account, day: string, opening: number, lines: readonly Invoice[]): string {
  const { currency: ccy } = account;
  const amount = (value: string) => `<Amt Ccy="${ccy}">${value}</Amt><CdtDbtInd>CRDT</CdtDbtInd>`;
  const balance = (code: string, value: number) =>
    `<Bal><Tp><CdOrPrtry><Cd>${code}</Cd></CdOrPrtry></Tp>${amount(value.toFixed(2))}<Dt><Dt>${day}</Dt></Dt></Bal>`;
  const entries = lines.map(
    (invoice) => `<Ntry>${amount(invoice.amount)}<Sts>BOOK</Sts><BookgDt><Dt>${day}</Dt></BookgDt>
      <AcctSvcrRef>R-${invoice.number}</AcctSvcrRef><NtryDtls><TxDtls>
      <Refs><EndToEndId>${invoice.number}</EndToEndId></Refs>
      <RltdPties><Dbtr><Nm>${invoice.partner}</Nm></Dbtr></RltdPties></TxDtls></NtryDtls></Ntry>`,
  );
  const sum = lines.reduce((total, each) => total + Number(each.amount), 0);
  return `<?xml version="1.0"?><Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.02"><BkToCstmrStmt>
    <GrpHdr><MsgId>M-${account.name}-${day}</MsgId><CreDtTm>${day}T23:00:00Z</CreDtTm></GrpHdr>
    <Stmt><Id>S-${account.name}-${day}</Id><CreDtTm>${day}T23:00:00Z</CreDtTm>
    <Acct><Id><Othr><Id>${account.name}</Id></Othr></Id><Ccy>${ccy}</Ccy></Acct>
    ${balance('OPBD', opening)}${balance('CLBD', opening + sum)}${entries.join('')}</Stmt></BkToCstmrStmt></Document>`;
}

test('three months of late bank files: no reminder of what was paid in time, and every other reminder', async () => {
  const { random } = seeded();
  const told = `seed ${SEED}`;
  world.at('2026-06-02T12:00:00Z');
  const currencyOf = (index: number) => CURRENCIES[index % 3] as Currency;
  const termsOf = (index: number) => (index * 7 + 3) % 37;
  await world.partners(
    NAMES.map((name, index) =>
      partner({
        ...{ partner_id: `p-${index}`, name, currency: currencyOf(index), payment_terms_days: termsOf(index) },
        invoicing_contact: { name: 'AP', email: `p-${index}@partner.example`, cc: [] },
      }),
    ),
  );

  const invoices: Invoice[] = [];
  const close = async (month: string, issuedOn: string) => {
    world.at(`${issuedOn}T12:00:00Z`);
    await world.close(month);
    await world.deliver();
    const issued = await world.sql<{ number: string; partner_id: string; due_on: string; gross: string }>(
      'SELECT number, partner_id, due_on::text, gross::text FROM documents WHERE month = $1 ORDER BY document_id',
      [month],
    );
    for (const { number, partner_id, due_on, gross } of issued) {
      const index = Number(partner_id.slice(2));
      const currency = currencyOf(index);
      const invoice: Invoice = {
        ...{ number, partner: NAMES[index] as string, currency, issuedOn, dueOn: due_on, amount: gross, paid: null },
      };
      invoices.push(invoice);
      if (random() < 0.25) continue;
      // Paid some days before or long after the due date, on a day on which the bank works.
      let on = shifted(due_on, Math.floor(random() * 60) - 12);
      if (on <= issuedOn) on = shifted(issuedOn, 1);
      const into = ACCOUNTS.filter((each) => each.currency === currency);
      while (currency === 'GBP' ? false : !into.some((each) => reportsOn(each, on))) on = shifted(on, 1);
      const open = into.filter((each) => reportsOn(each, on));
      invoice.paid = {
        on,
        account: open[Math.floor(random() * open.length)] ?? null,
        toldOn: currency === 'GBP' ? on : '',
      };
    }
  };

  for (const [at, month] of ['2026-06', '2026-07', '2026-08'].entries()) {
    const rows = NAMES.map((_, index) => {
      const amount = `${100 + index * 3 + at}.00`;
      return quote({
        ...{ partner_id: `p-${index}`, currency: currencyOf(index), accepted_at: `${month}-15T12:00:00Z` },
        ...{ spotPrice: amount, partnerCut: '0.00', invoiceAmount: amount },
      });
    });
    // Rows of later months are posted in advance of the clock only as far as their own month.
    world.at(`${month}-20T12:00:00Z`);
    if (at === 0) await world.rows(rows, { acceptDiffering: true });
    else ROWS.set(month, rows);
  }

  /** What waits at the bank: the days' files that were not delivered yet, by account. */
  const held = new Map<string, { day: string; lines: Invoice[] }[]>();
  const outageTo = new Map<string, string>();
  const balances = new Map<string, number>();
  const reported = new Map<string, string>();
  const expected: string[] = [];
  const naive: string[] = [];
  const lastLevel = new Map<string, number>();
  const pausedTo = new Map<string, string>();
  let lateAfterPause = 0;
  const first = '2026-07-01';
  const last = '2026-10-09';

  for (let day = first; day <= last; day = shifted(day, 1)) {
    if (day === '2026-07-01') await close('2026-06', day);
    for (const [closing, rowsOn, month] of [
      ['2026-08-01', '2026-07-20', '2026-07'],
      ['2026-09-01', '2026-08-20', '2026-08'],
    ] as const) {
      world.at(`${day}T11:00:00Z`);
      if (day === rowsOn) await world.rows(ROWS.get(month) ?? [], { acceptDiffering: true });
      if (day === closing) await close(month, day);
    }
    // In the morning, the bank delivers the files up to yesterday, unless it is late.
    for (const account of ACCOUNTS) {
      const queue = held.get(account.name) ?? [];
      held.set(account.name, queue);
      const yesterday = shifted(day, -1);
      if (reportsOn(account, yesterday)) {
        const lines = invoices.filter(({ paid }) => paid?.account === account && paid.on === yesterday);
        queue.push({ day: yesterday, lines });
      }
      if (!account.punctual && day < '2026-10-01' && random() < 0.12)
        outageTo.set(account.name, shifted(day, 1 + Math.floor(random() * 9)));
      if (day < (outageTo.get(account.name) ?? '')) continue;
      for (const { day: of, lines } of queue.splice(0)) {
        world.at(`${day}T12:00:00Z`);
        const opening = balances.get(account.name) ?? 0;
        await books.bankText(`${account.name}-${of}.xml`, camt(account, of, opening, lines));
        balances.set(account.name, opening + lines.reduce((sum, { amount }) => sum + Number(amount), 0));
        reported.set(account.name, of);
        for (const { paid } of lines) if (paid) paid.toldOn = day;
      }
    }
    const ended = ACCOUNTS.filter(({ endedOn }) => endedOn !== null && endedOn <= day).map(({ name }) => name);
    world.settings = {
      ...world.settings,
      ended_bank_accounts: Object.fromEntries(ended.map((name) => [name, 'closed at the bank'])),
    };
    for (const { number, partner: name, currency, amount, paid } of invoices) {
      if (paid?.account !== null || paid.on !== day) continue;
      world.at(`${day}T12:30:00Z`);
      const partnerId = `p-${NAMES.indexOf(name)}`;
      const payment = { amount, currency, method: 'wire', receivedOn: day, reference: `H-${number}` } as const;
      const { paymentId } = await books.record({ ...payment, partnerId });
      await books.apply(paymentId, number);
    }

    // A pause may end while files are late.
    const paused = NAMES[Math.floor(random() * NAMES.length * 3)];
    if (paused !== undefined && day < '2026-09-10') {
      const until = shifted(day, 2 + Math.floor(random() * 14));
      const partnerId = `p-${NAMES.indexOf(paused)}`;
      await world.database.transaction((tx) => pauseReminders(tx, world, { partnerId, until, reason: 'agreed' }));
      pausedTo.set(paused, until);
    }

    // Now and then the job does not run for a day.
    if (random() < 0.1) continue;
    world.at(`${day}T16:00:00Z`);
    await world.database.transaction((tx) => recordReminders(tx, world));
    const statuses: string[] = [];
    await sendOtherEmails({ ...world, composers: [reminderEmail], onEmail: ({ status }) => statuses.push(status) });
    expect(
      statuses.filter((status) => status !== 'sent'),
      `${told}, ${day}`,
    ).toEqual([]);

    // The list.
    for (const invoice of invoices) {
      const { number, dueOn, issuedOn, currency, paid } = invoice;
      if (paid && paid.toldOn !== '' && paid.toldOn <= day) continue;
      const feeds = ACCOUNTS.filter(
        (each) => each.currency === currency && reported.has(each.name) && !ended.includes(each.name),
      );
      const known = feeds.map(({ name }) => nextWorkingDay(reported.get(name) as string)).sort()[0] ?? day;
      const before = lastLevel.get(number) ?? Number.NEGATIVE_INFINITY;
      const reached = (to: string) =>
        LEVELS.filter((level) => {
          const falls = shifted(dueOn, level);
          return falls > issuedOn && falls <= to && level > before;
        });
      if ((pausedTo.get(invoice.partner) ?? '') >= day) continue;
      // No level is sent before every bank has reported the working day before.
      const level = known < day ? undefined : reached(day).at(-1);
      const asBefore = reached(day).at(-1);
      if (asBefore !== undefined && paid && paid.on < shifted(dueOn, asBefore)) naive.push(`${day} ${number}`);
      if (asBefore !== undefined && level === undefined && pausedTo.has(invoice.partner)) lateAfterPause += 1;
      if (level === undefined) continue;
      lastLevel.set(number, level);
      expected.push(`${day} ${number} ${level}`);
      // Nobody is reminded of what was in a bank before the day of the reminder, unless the bank had never reported.
      if (paid && feeds.some((each) => each === paid.account)) {
        expect(paid.on >= day, `${told}, ${day} ${number} ${level}`).toBe(true);
      }
    }
  }

  const sent = await world.sql<{ line: string }>(
    `SELECT e.day || ' ' || d.number || ' ' || r.dunning_level AS line
     FROM reminders r JOIN documents d USING (document_id) JOIN emails e USING (email_id)
     WHERE e.status = 'sent' ORDER BY e.day, d.document_id`,
  );
  expect(sent.map(({ line }) => line).sort(), told).toEqual(expected.sort());
  // It was no easy ride: without waiting, partners would have been reminded of what they had paid in time.
  expect(naive.length, told).toBeGreaterThan(3);
  expect(lateAfterPause, told).toBeGreaterThan(3);
  // Whoever never pays has heard all that fell due until the files ended.
  const unpaid = invoices.filter(({ paid }) => paid === null);
  expect(unpaid.length, told).toBeGreaterThan(5);
  for (const { number, dueOn } of unpaid) {
    const reached = LEVELS.filter((level) => shifted(dueOn, level) <= '2026-09-25');
    expect(lastLevel.get(number) ?? Number.NEGATIVE_INFINITY, `${told}, ${number}`).toBeGreaterThanOrEqual(
      reached.at(-1) ?? Number.NEGATIVE_INFINITY,
    );
  }
  await books.verified();
}, 300_000);

const ROWS = new Map<string, object[]>();
