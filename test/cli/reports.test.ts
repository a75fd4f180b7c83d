/** The reports as people, spreadsheets and programs get them, and the report of a close that finance gets by e-mail. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ParsedMail, simpleParser } from 'mailparser';
import readXlsx from 'read-excel-file/node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { holdDocument } from '../../src/documents/hold.ts';
import { command, job, type Ran } from '../support/program.ts';
import { openWorld, partner, quote, reversal, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([
    partner(),
    partner({ partner_id: 'a-partner-with-a-rather-long-identifier', currency: 'JPY' }),
    partner({ partner_id: 'quiet' }),
  ]);
  const sale = quote();
  await world.rows([
    sale,
    quote({
      ...{ partner_id: 'a-partner-with-a-rather-long-identifier', currency: 'JPY' },
      ...{ spotPrice: '4000000', partnerCut: '1200000', invoiceAmount: '2800000' },
    }),
  ]);
  await world.close();
  world.at('2026-09-01T10:00:00Z');
  await world.rows([
    reversal(sale, {
      accepted_at: '2026-07-30T12:00:00Z',
      spotPrice: '-4.00',
      partnerCut: '-1.20',
      invoiceAmount: '-2.80',
    }),
    quote({ accepted_at: '2026-08-05T12:00:00Z' }),
  ]);
});
afterAll(() => world.end());

const run = (now: string, ...args: string[]): Promise<Ran> =>
  command(args, { env: { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: now } });
const runJob = (now: string, name: string): Promise<Ran> =>
  job(name, { env: { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: now } });
const widest = (text: string) => Math.max(...text.split('\n').map((line) => line.length));

async function closeReports(): Promise<ParsedMail[]> {
  const names = readdirSync(join(world.home, 'outbox'))
    .filter((name) => name.startsWith('close-report'))
    .sort();
  return Promise.all(names.map((name) => simpleParser(readFileSync(join(world.home, 'outbox', name)))));
}

test('a close that ended before its report is reported by the next run, once', { timeout: 120_000 }, async () => {
  expect(await closeReports()).toEqual([]);
  // July was closed without a report on 1 August: a month ago, so it is no news any more. August is.
  await world.close();
  expect((await run('2026-09-01T11:00:00Z', 'deliver')).status).toBe(0);
  expect((await run('2026-09-01T11:00:00Z', 'deliver')).status).toBe(0);
  expect((await run('2026-09-01T11:00:00Z', 'close')).status).toBe(0);
  expect((await runJob('2026-09-01T12:00:00Z', 'month-close')).status).toBe(0);
  const reports = await closeReports();
  expect(reports.map((mail) => mail.subject)).toEqual(['[SANDBOX] August 2026 is closed: 1 sent']);
  expect([reports[0]?.to].flat().map((to) => to?.text)).toEqual(['"Finance" <finance@protection.example>']);
});

test('the close report has the documents issued, the change from last month, partners without activity, and late rows', async () => {
  const [mail] = await closeReports();
  const text = mail?.text ?? '';
  expect(text).toContain('August 2026, closed on 2026-09-01');
  expect(text).toContain('1 invoice, 0 credit notes, 0 statements');
  expect(text).toMatch(/Harbour Lights Ticketing +INV-2026-000003 +4\.20 +-2\.80/);
  expect(text).toMatch(
    /Partners in JPY:\npartner +this month +against 2026-07\nHarbour Lights Ticketing +0 +-2,800,000/,
  );
  expect(text).toMatch(/No activity \(2\):\n {2}Harbour Lights Ticketing, /);
  expect(text).toMatch(/Harbour Lights Ticketing +July 2026 +1 +-2\.80 +USD/);
  expect(widest(text)).toBeLessThanOrEqual(80);
});

test('report close has the same figures as JSON, lists held e-mails, and then exits 4', async () => {
  const before = await run('2026-09-02T12:00:00Z', '--json', 'report', 'close');
  expect(before.status).toBe(0);
  expect(before.json()).toMatchObject({
    ...{ month: '2026-08', previous: '2026-07', invoices: 1, late_entries: 1, held: [] },
    totals: { USD: { invoiceAmount: '4.20' } },
    late: [
      { partner_id: 'p-1', name: 'Harbour Lights Ticketing', month: '2026-07', entries: 1, invoice_amount: '-2.80' },
    ],
    deliveries: { sent: 1, pending: 0, held: 0, failed: 0, uncertain: 0 },
  });
  const [number] = (before.json() as { partners: { partner_id: string; documents: string[] }[] }).partners
    .filter((row) => row.partner_id === 'p-1')
    .flatMap((row) => row.documents);
  await world.database.transaction((tx) =>
    holdDocument(tx, world, { number: number as string, reason: 'they ask about a refund' }),
  );
  const after = await run('2026-09-02T12:00:00Z', 'report', 'close', '2026-08');
  expect(after.status).toBe(4);
  expect(after.stdout).toMatch(new RegExp(`${number} +Harbour Lights Ticketing +on hold +they ask about a refund`));
  expect((await run('2026-09-02T12:00:00Z', 'report', 'close', '2026-09')).status).toBe(3);
});

test('aging shows names, says that it ties, and goes to a spreadsheet by partner and by document', async () => {
  const people = await run('2026-09-05T12:00:00Z', 'report', 'aging');
  expect(people.status).toBe(0);
  expect(people.stdout).toContain('Ties to the journal.');
  expect(people.stdout).toMatch(/Harbour Lights Ticketing +4\.20 +7\.00\n/);
  expect(widest(people.stdout)).toBeLessThanOrEqual(80);
  const csv = await run('2026-09-05T12:00:00Z', 'report', 'aging', '--format', 'csv');
  expect(csv.stdout.split('\r\n')).toEqual([
    '\uFEFFpartner_id,partner_name,currency,not_due,days_1_30,days_31_60,days_61_90,over_90,open,disputed,credit,unapplied,net',
    'a-partner-with-a-rather-long-identifier,Harbour Lights Ticketing,JPY,0,2800000,0,0,0,2800000,0,0,0,2800000',
    'p-1,Harbour Lights Ticketing,USD,4.20,7.00,0.00,0.00,0.00,11.20,0.00,0.00,0.00,11.20',
    '',
  ]);
  const detail = await run('2026-09-05T12:00:00Z', 'report', 'aging', '--detail');
  expect(detail.stdout).toMatch(/INV-2026-000002 +Harbour Lights Ticketing +2026-08-31 +5 +7\.00 USD/);
  const documents = await run('2026-09-05T12:00:00Z', 'report', 'aging', '--detail', '--format', 'csv');
  expect(documents.stdout).toContain(
    'p-1,Harbour Lights Ticketing,INV-2026-000002,invoice,USD,2026-08-01,2026-08-31,5,days_1_30,7.00,0.00\r\n',
  );
  const workbook = join(world.home, 'aging.xlsx');
  expect((await run('2026-09-05T12:00:00Z', 'report', 'aging', '--format', 'xlsx', '-o', workbook)).status).toBe(0);
  const [first] = await readXlsx(workbook);
  expect(first?.data[2]?.slice(0, 5)).toEqual(['p-1', 'Harbour Lights Ticketing', 'USD', 4.2, 7]);
  const both = await run('2026-09-05T12:00:00Z', '--json', 'report', 'aging', '--format', 'csv');
  expect(both.status).toBe(2);
});

test('statement and trial balance: text within 80 columns, and CSV with the same figures', {
  timeout: 120_000,
}, async () => {
  const now = '2026-09-05T12:00:00Z';
  const statement = await run(now, 'report', 'statement', '--partner', 'p-1', '--from', '2026-07-01');
  expect(statement.status).toBe(0);
  expect(statement.stdout).toMatch(/2026-09-01 +INV-2026-000003 +4\.20 +11\.20/);
  expect(widest(statement.stdout)).toBeLessThanOrEqual(80);
  const lines = await run(now, 'report', 'statement', '--partner', 'p-1', '--format', 'csv');
  expect(lines.stdout.split('\r\n')).toEqual([
    '\uFEFFcurrency,partner_id,date,dated_on,fact,document,reference,amount,balance,kind',
    'USD,,2026-09-01,,opening,,,,7.00,',
    'USD,p-1,2026-09-01,2026-09-01,document_issued,INV-2026-000003,,4.20,11.20,',
    'USD,,2026-09-05,,closing,,,,11.20,',
    '',
  ]);
  const trial = await run(now, 'report', 'trial-balance', '--as-of', '2026-08-31');
  expect(trial.stdout).toContain('Debits equal credits in every currency.');
  expect(widest(trial.stdout)).toBeLessThanOrEqual(80);
  const csv = await run(now, 'report', 'trial-balance', '--format', 'csv');
  expect(csv.stdout).toContain('assets:receivable:billed,JPY,2800000,0\r\n');
  const coverage = await run(now, 'report', 'coverage', '--format', 'csv');
  expect(coverage.stdout).toContain('p-1,2026-08,document,INV-2026-000003,2\r\n');
});

test('the job sends reminders; remind --dry-run only lists them', { timeout: 120_000 }, async () => {
  const preview = await run('2026-09-07T16:00:00Z', 'remind', '--dry-run');
  expect(preview.status).toBe(0);
  expect(preview.stdout).toMatch(/Preview only: nothing was written/);
  const outbox = () => readdirSync(join(world.home, 'outbox')).filter((name) => name.startsWith('reminder')).length;
  expect(outbox()).toBe(0);
  await world.deliver();
  const ran = await runJob('2026-09-07T16:00:00Z', 'remind');
  expect(ran.status).toBe(0);
  expect(outbox()).toBe(2);
  const again = await run('2026-09-07T17:00:00Z', '--json', 'remind');
  expect(again.json()).toMatchObject({ reminders: [], emails: { sent: 0 } });
});

test('with the mail server down, remind says what is queued and exits 4, and deliver names what it then sends', async () => {
  const queued = await command(['remind'], {
    env: {
      ...{ RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: '2026-09-21T16:00:00Z' },
      SMTP_URL: 'smtp://127.0.0.1:1',
    },
  });
  expect([queued.status, queued.stdout]).toEqual([
    4,
    expect.stringMatching(/0 e-mails sent\.\n\d e-mails? queued: \d reminders?/),
  ]);
  const sent = await run('2026-09-21T17:00:00Z', 'deliver');
  expect(sent.stdout).toMatch(/Sent now without a document: \d reminders?/);
});

test('no report is made as of a day that has not come', async () => {
  const reports = [['aging'], ['trial-balance'], ['coverage'], ['statement', '--partner', 'p-1']];
  for (const report of reports) {
    const ran = await run('2026-09-08T12:00:00Z', 'report', ...report, '--as-of', '2026-12-31');
    expect([report, ran.status]).toEqual([report, 2]);
    expect(ran.stderr).toContain('--as-of 2026-12-31 is in the future: today is 2026-09-');
  }
});

test('aging that does not tie lists the differences and exits 4', async () => {
  await world.sql(
    `INSERT INTO credit_applications (credit_note_id, invoice_id, amount, applied_on, recorded_at, event_id)
     SELECT document_id, document_id, 1, '2026-09-05', now(), (SELECT min(event_id) FROM audit_events) FROM documents WHERE number = 'INV-2026-000001'`,
  );
  const people = await run('2026-09-08T12:00:00Z', 'report', 'aging');
  expect(people.status).toBe(4);
  expect(people.stdout).toContain('Does not tie to the journal: verify the ledger.');
  expect(people.stdout).toContain('INV-2026-000001: ');
});

test('books close shows what is missing, closes, and ends the reports’ being preliminary', async () => {
  // After the tests above: no checkpoint is earlier than the last one, which a command of 21 September took.
  const now = '2026-09-22T12:00:00Z';
  const before = await run(now, 'report', 'trial-balance', '--as-of', '2026-07-31');
  expect(before.stdout).toContain('Trial balance as of 31 July 2026\nPreliminary: no books are closed yet.');
  const table = await run(now, 'report', 'aging', '--as-of', '2026-07-31', '--format', 'csv');
  expect(table.stderr).toContain('Preliminary: no books are closed yet.');

  const dry = await run(now, 'books', 'close', '2026-08', '--dry-run');
  expect(dry.status).toBe(4);
  expect(dry.stdout).toContain('The books of August 2026 are open.');
  expect(dry.stdout).toContain("Close the books of 2026-07 first with 'reckoner books close 2026-07'.");
  expect(dry.stdout).toContain('Preview only: nothing was written.\n');
  expect((await run(now, 'books', 'close', '2026-08')).status).toBe(3);
  expect((await run(now, 'books', 'close', '2026-07', '--without', '0001')).status).toBe(2);

  const closed = await run(now, '--json', 'books', 'close', '2026-07');
  expect({ status: closed.status, stderr: closed.stderr }).toMatchObject({ status: 0 });
  const report = closed.json();
  expect(report).toMatchObject({
    ...{
      month: '2026-07',
      status: 'closed',
      dry_run: false,
      bank_feeds: [],
      exceptions: {},
      unapplied: [],
      obstacles: [],
    },
    trial_balance: { as_of: '2026-07-31', preliminary: false, balanced: true },
  });
  const again = await run(now, '--json', 'books', 'close', '2026-07');
  expect(again.json()).toEqual(report);
  const people = await run(now, 'books', 'close', '2026-07');
  expect(people.stdout).toMatch(
    /The books of July 2026 are closed\. They were already closed on \d{4}-\d\d-\d\d;[\s\S]*unapplied cash {2}none[\s\S]*Checkpoint:\n {2}size +\d+ facts\n {2}root +[A-Za-z0-9+/]{43}=\n$/,
  );
  expect(widest(people.stdout)).toBeLessThanOrEqual(80);
  const after = await run(now, '--json', 'report', 'trial-balance', '--as-of', '2026-07-31');
  expect(after.json()).toMatchObject({ preliminary: false, books_closed_to: '2026-07' });
  const statement = await run(now, 'report', 'statement', '--partner', 'p-1');
  expect(statement.stdout).toContain('Preliminary: the books are closed to July 2026.');
  const coverage = await run(now, 'report', 'coverage');
  expect(coverage.stdout).toContain('books open: 2026-08.');
  expect((await run(now, 'status')).stdout).toContain('Books        closed to 2026-07; open: 2026-08');
});
