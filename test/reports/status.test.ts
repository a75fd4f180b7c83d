/** `status`: months, unsent e-mails, the latest runs of the jobs, and one sentence for each thing that needs attention. */
import { DateTime } from 'luxon';
import { expect, test } from 'vitest';
import { retryEmails } from '../../src/delivery/retry-emails.ts';
import { openDispute } from '../../src/documents/disputes.ts';
import { holdDocument } from '../../src/documents/hold.ts';
import { voidDocument } from '../../src/documents/void.ts';
import { readDifferingCuts } from '../../src/ledger/quoted.sql.ts';
import { takeCheckpoint } from '../../src/log/checkpoint.ts';
import type { Month } from '../../src/month.ts';
import { sendEmails } from '../../src/month-end/month-end.ts';
import { recordPayment } from '../../src/payments/record.ts';
import { recordJobRun } from '../../src/reports/jobs.sql.ts';
import { importBalanceTransactions } from '../../src/splits/import.ts';
import { ndjson, share } from '../splits/balance-transactions.ts';
import type { MailServer } from '../support/mail-server.ts';
import { freshMailWorld } from '../support/mail-world.ts';
import { readStatus } from '../support/status.ts';
import { partner, quote, type World } from '../support/world.ts';

let server: MailServer;
let world: World;
freshMailWorld((opened) => {
  ({ world, server } = opened);
});

const status = () => world.database.reading((tx) => readStatus(tx, world));

const contact = (email: string) => ({ invoicing_contact: { name: '', email, cc: [] } });

/** Closes July with one invoice for each of these contacts: p-1, p-2, … */
async function closeJuly(...emails: string[]): Promise<void> {
  const partners = emails.map((email, index) => partner({ partner_id: `p-${index + 1}`, ...contact(email) }));
  await world.partners(partners);
  await world.rows(emails.map((_, index) => quote({ partner_id: `p-${index + 1}` })));
  await world.close();
}

const ran = (job: string, finishedAt: string, exitStatus: number) =>
  world.database.transaction((tx) => recordJobRun(tx, { job, startedAt: finishedAt, finishedAt, exitStatus }));

test('a new installation needs no attention', async () => {
  expect(await status()).toEqual({
    environment: 'sandbox',
    clock_ahead_seconds: 0,
    feeds: null,
    approvals: [],
    findings: [],
    settings_to_adopt: [],
    emails: { sent: 0, pending: 0, held: 0, failed: 0, uncertain: 0 },
    append_only: 'role_and_triggers',
    paused: null,
    moved: [],
    differing_cuts: [],
    partners: 0,
    months: { first: null, last_closed: null, due: [], overdue: [] },
    books: { closed_to: null, open: [], due: [] },
    general_ledger: [],
    checkpoints: { last: null, uncovered: 0, overdue_days: 0, unsigned: [], unstamped: [] },
    signing: { key: null, latest: null, latest_at_hand: false, lost: null },
    open_entries: 0,
    deliveries: { sent: 0, pending: 0, held: 0, failed: 0, uncertain: 0 },
    unfinished_emails: [],
    waiting: [],
    mail_failing: null,
    refused_in_a_row: null,
    links: [],
    connected: { accounts: [], stale: [], open: {}, unknown: 0, payouts: 0 },
    told_not_seen: [],
    webhooks: { active: 0, waiting: 0, troubled: [] },
    jobs: [],
    payment_exceptions: {},
    attention: [],
  });
});

test('the first and the last closed month, the months that are due, and the number of unbilled rows', async () => {
  await world.partners([partner()]);
  await world.rows(['2026-05', '2026-06', '2026-07'].map((month) => quote({ accepted_at: `${month}-10T12:00:00Z` })));
  expect(await status()).toMatchObject({
    partners: 1,
    months: { first: null, last_closed: null, due: ['2026-05', '2026-06', '2026-07'] },
    open_entries: 3,
  });
  await world.close('2026-05');
  await world.close('2026-06');
  expect(await status()).toMatchObject({
    months: { first: '2026-05', last_closed: '2026-06', due: ['2026-07'] },
    open_entries: 1,
  });
});

test('a month still open 24 hours after it ended everywhere needs attention, and not before', async () => {
  await world.partners([partner(), partner({ partner_id: 'p-2', time_zone: 'Pacific/Pago_Pago' })]);
  await world.rows([quote()]);
  world.at('2026-08-02T11:00:00Z');
  expect(await status()).toMatchObject({ months: { due: ['2026-07'], overdue: [] }, attention: [] });
  world.at('2026-08-02T11:00:01Z');
  const { months, attention } = await status();
  expect(months.overdue).toEqual([{ month: '2026-07', ended_at: '2026-08-01T11:00:00.000Z' }]);
  expect(attention).toEqual([
    "2026-07 ended in every time zone at 2026-08-01 11:00 UTC and is still open. See why with 'reckoner close'.",
  ]);
  await world.close();
  expect((await status()).months.overdue).toEqual([]);
});

test('cuts that are not the policy’s are those of open months, by the rate of today, whoever changed which', async () => {
  const policies = (rate: string) => [
    { policy_id: 'ticket-protection', name: 'Ticket Protection', kind: 'non_insurance', partner_cut_rate: rate },
  ];
  const row = (accepted_at: string, partnerCut: string, invoiceAmount: string) =>
    quote({ accepted_at, spotPrice: '10.00', partnerCut, invoiceAmount });
  const differing = async () => {
    const listed = (await status()).differing_cuts;
    // The same as of all rows of the open months, whether or not anything was reported of them.
    const { last_closed: after } = (await status()).months;
    expect(listed).toEqual(
      await world.database.reading((tx) => readDifferingCuts(tx, { after, to: '9999-11' as Month })),
    );
    return listed.map(({ partner_id, partner_cut_rate, rows }) => `${partner_id} ${partner_cut_rate} ${rows}`);
  };
  await world.partners(['p-1', 'p-2'].map((partner_id) => partner({ partner_id, policies: policies('0.30') })));
  await world.rows([row('2026-07-10T12:00:00Z', '3.00', '7.00'), row('2026-07-11T12:00:00Z', '2.00', '8.00')]);
  expect(await differing()).toEqual(['p-1 0.30 1']);
  await world.partners([partner({ policies: policies('0.20') })]);
  expect(await differing()).toEqual(['p-1 0.20 1']);
  await world.partners([partner({ policies: policies('0.25') })]);
  expect(await differing()).toEqual(['p-1 0.25 2']);
  await world.close('2026-07');
  expect(await differing()).toEqual([]);
  // A row of July that comes late posts to August.
  world.at('2026-08-05T00:00:00Z');
  await world.rows([row('2026-07-12T12:00:00Z', '3.00', '7.00')]);
  expect(await differing()).toEqual(['p-1 0.25 1']);
});

test('each missed month has a sentence of its own', async () => {
  await world.partners([partner()]);
  await world.rows([quote({ accepted_at: '2026-06-10T12:00:00Z' })]);
  await takeCheckpoint(world.database, world);
  world.at('2026-08-20T00:00:00Z');
  expect((await status()).attention.map((sentence) => sentence.slice(0, 7))).toEqual(['2026-06', '2026-07']);
});

test('every document is counted once: sent + pending + held + failed + uncertain = documents', async () => {
  await closeJuly('one@partner.example', '', 'gone@partner.example', 'later@partner.example', 'two@partner.example');
  expect((await status()).deliveries).toEqual({ sent: 0, pending: 5, held: 0, failed: 0, uncertain: 0 });
  server.replies.set('gone@partner.example', 550).set('later@partner.example', 450);
  await world.deliver();
  expect((await status()).deliveries).toEqual({ sent: 2, pending: 1, held: 1, failed: 1, uncertain: 0 });
});

test('unsent documents are listed by number, with the reason', async () => {
  await closeJuly('one@partner.example', '', 'gone@partner.example', 'later@partner.example');
  server.replies.set('gone@partner.example', 550).set('later@partner.example', 450);
  await world.deliver();
  expect((await status()).waiting).toEqual([
    {
      number: 'INV-2026-000002',
      partner_id: 'p-2',
      status: 'held',
      reason: expect.stringContaining('no invoicing contact'),
    },
    { number: 'INV-2026-000003', partner_id: 'p-3', status: 'failed', reason: expect.stringContaining('550') },
    { number: 'INV-2026-000004', partner_id: 'p-4', status: 'queued', reason: expect.stringContaining('450') },
  ]);
});

test('held, failed and uncertain documents need attention, each with what to do', async () => {
  await closeJuly('', '', 'gone@partner.example', 'cut@partner.example');
  server.replies.set('gone@partner.example', 550);
  server.behaviour = 'drop_after_data';
  await world.deliver();
  await world.deliver();
  expect((await status()).attention).toEqual([
    expect.stringMatching(
      /^INV-2026-000001 is held \(.*\)\. Supply what is missing\. Deliver it with 'reckoner deliver'\.$/,
    ),
    expect.stringMatching(/^INV-2026-000002 is held /),
    expect.stringMatching(
      /^INV-2026-000003 was permanently refused by the mail server \(.*\)\. Correct the partner's contact\. Resend it with 'reckoner invoice resend INV-2026-000003'\.$/,
    ),
    expect.stringMatching(
      /^INV-2026-000004 may or may not have arrived.*Ask the partner before sending it again\. Resend it with 'reckoner invoice resend INV-2026-000004'\.$/,
    ),
  ]);
});

test('a document that finance put on hold is listed and needs no attention', async () => {
  await closeJuly('one@partner.example', 'two@partner.example');
  await world.database.transaction((tx) => holdDocument(tx, world, { number: 'INV-2026-000002', reason: 'disputed' }));
  await world.deliver();
  expect(await status()).toMatchObject({
    deliveries: { sent: 1, held: 1 },
    waiting: [{ number: 'INV-2026-000002', status: 'held', reason: expect.stringContaining('disputed') }],
    attention: [],
  });
});

test('a mail server that refuses everybody is one thing to correct, and one command sends all of it again', async () => {
  const addresses = ['a', 'b', 'c', 'd'].map((name) => `ap@${name}.example`);
  await closeJuly(...addresses);
  server.behaviour = 'refuse_recipients';
  await world.deliver();
  await sendEmails(world, {});
  const found = await status();
  expect(found.refused_in_a_row).toMatchObject({
    since: '2026-08-01T10:00:00Z',
    documents: 4,
    others: [expect.any(Number), expect.any(Number)],
  });
  expect(found.attention).toEqual([
    expect.stringMatching(/refused 4 documents and 2 other e-mails in a row since 2026-08/),
  ]);
  expect(found.attention[0]).toContain("'reckoner deliver --retry failed --since 2026-08-01T10:00:00Z'");

  server.behaviour = 'accept';
  world.at('2026-08-01T12:00:00Z');
  const request = { status: 'failed', since: '2026-08-01T10:00:00Z' } as const;
  expect(await world.database.transaction((tx) => retryEmails(tx, world, request))).toEqual({
    documents: 4,
    others: 2,
  });
  expect(await world.database.transaction((tx) => retryEmails(tx, world, request))).toEqual({
    documents: 0,
    others: 0,
  });
  await world.deliver();
  await sendEmails(world, {});
  expect(server.mails.flatMap(({ to }) => to).sort()).toEqual(
    [...addresses, world.settings.auditor_email, world.settings.finance_email].sort(),
  );
  expect(await status()).toMatchObject({ deliveries: { sent: 4, failed: 0 }, refused_in_a_row: null, attention: [] });
});

test('a wrong address among right ones is a fault of the address', async () => {
  await closeJuly('a@one.example', 'gone@two.example', 'b@three.example', 'gone@four.example');
  server.replies.set('gone@two.example', 550).set('gone@four.example', 550);
  await world.deliver();
  expect((await status()).refused_in_a_row).toBeNull();
});

test('a document that is not delivered after 24 hours needs attention', async () => {
  await closeJuly('later@partner.example', 'one@partner.example');
  server.replies.set('later@partner.example', 450);
  await world.deliver();
  world.at('2026-08-02T10:00:00Z');
  await world.deliver();
  expect((await status()).attention).toEqual([]);
  world.at('2026-08-02T10:00:01Z');
  expect((await status()).attention).toEqual([
    expect.stringMatching(
      /^INV-2026-000001 was issued more than 24 hours ago and is still unsent \(.*\)\. Deliver it with 'reckoner deliver'\.$/,
    ),
  ]);
  server.replies.clear();
  await world.deliver();
  expect((await status()).attention).toEqual([]);
});

test('the last run of each job is listed, and needs attention if it failed or was called wrongly', async () => {
  await ran('month-close', '2026-07-31T10:00:00Z', 1);
  await ran('month-close', '2026-08-01T09:00:00Z', 0);
  await ran('deliver', '2026-08-01T09:00:00Z', 0);
  await ran('deliver', '2026-08-01T09:10:00Z', 1);
  await ran('watch', '2026-08-01T09:00:00Z', 4);
  const { jobs, attention } = await status();
  expect(jobs).toEqual([
    {
      job: 'deliver',
      started_at: '2026-08-01T09:10:00Z',
      finished_at: '2026-08-01T09:10:00Z',
      exit_status: 1,
      subject: null,
    },
    {
      job: 'month-close',
      started_at: '2026-08-01T09:00:00Z',
      finished_at: '2026-08-01T09:00:00Z',
      exit_status: 0,
      subject: null,
    },
    {
      job: 'watch',
      started_at: '2026-08-01T09:00:00Z',
      finished_at: '2026-08-01T09:00:00Z',
      exit_status: 4,
      subject: null,
    },
  ]);
  expect(attention).toEqual(['The last run of deliver failed at 2026-08-01T09:10:00Z (exit 1). Read its log.']);
});

test('what the nightly verify found needs attention until a verify finds nothing', async () => {
  await ran('verify', '2026-08-01T03:15:00Z', 4);
  expect((await status()).attention).toEqual([
    'The verify of 2026-08-01 03:15 UTC found differences between stored data and the ledger. Until they are ' +
      "explained, close nothing and keep an unchanged backup. See what differs with 'reckoner verify'.",
  ]);
  await ran('verify', '2026-08-01T09:00:00Z', 0);
  expect((await status()).attention).toEqual([]);
});

test('a job that has stopped running needs attention, until it was given up for a month', async () => {
  await ran('month-close', '2026-08-01T06:59:00Z', 0);
  await ran('verify', '2026-07-30T03:15:00Z', 0);
  await ran('backup', '2026-07-30T02:40:00Z', 0);
  expect((await status()).attention).toEqual([
    'backup last ran at 2026-07-30 02:40 UTC. It should run more often: check the scheduler.',
    'month-close last ran at 2026-08-01 06:59 UTC. It should run more often: check the scheduler.',
    'verify last ran at 2026-07-30 03:15 UTC. It should run more often: check the scheduler.',
  ]);
  world.at('2026-09-15T10:00:00Z');
  expect((await status()).attention).toEqual([]);
});

test('mail that fails altogether needs attention after an hour; one recipient who is put off does not', async () => {
  await closeJuly('one@partner.example', 'two@partner.example');
  server.replies.set('one@partner.example', 450);
  server.replies.set('two@partner.example', 450);
  await world.deliver();
  world.at('2026-08-01T11:00:00Z');
  expect(await status()).toMatchObject({ mail_failing: { since: '2026-08-01T10:00:00Z' }, attention: [] });
  world.at('2026-08-01T11:00:01Z');
  expect((await status()).attention).toEqual([
    expect.stringMatching(
      /^No e-mail has gone out since 2026-08-01 10:00 UTC \(.*450.*\)\. Check the mail server and SMTP_URL\. Try again with 'reckoner deliver'\.$/,
    ),
  ]);
  server.replies.delete('two@partner.example');
  await world.deliver();
  expect(await status()).toMatchObject({ mail_failing: null, attention: [] });
  world.at('2026-08-01T14:00:00Z');
  await world.deliver();
  expect(await status()).toMatchObject({ mail_failing: null, attention: [] });
});

test('at most 20 findings of a kind are named, and how many more there are', async () => {
  await closeJuly(...Array.from({ length: 23 }, () => ''));
  await world.deliver();
  const { attention, findings } = await status();
  expect(findings).toHaveLength(21);
  expect(attention.at(-1)).toBe("And 3 more of e-mails. See all of them with 'reckoner work list --kind e-mails'.");
});

test('at most 100 documents are listed, and all are counted', async () => {
  await closeJuly(...Array.from({ length: 101 }, () => ''));
  const { waiting, deliveries } = await status();
  expect(waiting).toHaveLength(100);
  expect(waiting[99]).toMatchObject({ number: 'INV-2026-000100' });
  expect(deliveries.pending).toBe(101);
});

test('the clock decides which months are due', async () => {
  await world.partners([partner()]);
  await world.rows([quote()]);
  const later = DateTime.fromISO('2026-09-10T00:00:00Z', { zone: 'utc' }) as DateTime<true>;
  expect(
    await world.database.reading((tx) =>
      readStatus(tx, { ...world, environment: { ...world.environment, now: () => later } }),
    ),
  ).toMatchObject({
    months: { due: ['2026-07', '2026-08'], overdue: [{ month: '2026-07' }, { month: '2026-08' }] },
  });
});

test('connected accounts: up to when each was read, quotes not routed as expected, and unknown balance transactions', async () => {
  const connected = { arrangement: 'connected_account', merchant_of_record: 'platform', split: 'real_time' };
  await world.partners([
    partner({ ...connected, connected_account_id: 'acct_1' }),
    partner({
      partner_id: 'p-2',
      ...connected,
      connected_account_id: 'acct_2',
      balance_transactions_from: 'settlement_file',
    }),
    partner({ partner_id: 'p-3', ...connected, connected_account_id: 'acct_3' }),
  ]);
  await world.rows([quote({ quote_id: 'came' }), quote({ quote_id: 'missing' })]);
  const before = await status();
  expect(before.connected).toMatchObject({ stale: ['acct_1'] });
  expect(before.attention).toContain(
    'acct_1 of p-1 was never read. Set STRIPE_SECRET_KEY_acct_1 to read it, or use settlement files with ' +
      "balance_transactions_from set to settlement_file. Read it with 'reckoner processor poll'. Import its balance " +
      "transactions with 'reckoner processor import FILE --account acct_1' without a key.",
  );
  const read_to = '2026-08-01T10:00:00Z';
  const moved = [share(700, '2026-07-15T12:00:05Z', { quote_id: 'came' }), share(650, '2026-07-16T12:00:00Z')];
  await world.database.transaction((tx) =>
    importBalanceTransactions(tx, world, { name: 'moved', text: ndjson(moved) }, 'acct_1'),
  );
  await world.close();
  const found = await status();
  expect(found.connected).toEqual({
    accounts: [
      { account: 'acct_1', partners: ['p-1'], balance_transactions_from: 'processor', read_to, followed: false },
      {
        account: 'acct_2',
        partners: ['p-2'],
        balance_transactions_from: 'settlement_file',
        read_to: null,
        followed: false,
      },
      { account: 'acct_3', partners: ['p-3'], balance_transactions_from: 'processor', read_to: null, followed: false },
    ],
    // A file of acct_1 was imported; of acct_3 nothing is to be expected yet.
    stale: [],
    open: { '2026-07': 1 },
    unknown: 1,
    payouts: 0,
  });
  expect(found.attention).toEqual([
    "1 quote of 2026-07 not routed as expected. See them with 'reckoner reconcile 2026-07'.",
    "1 balance transaction of connected accounts with unknown quotes. See them with 'reckoner reconcile MONTH'.",
  ]);
});

test('an account that was not read for 48 hours needs attention, and not before', async () => {
  const connected = { arrangement: 'connected_account', merchant_of_record: 'platform', split: 'real_time' };
  await world.partners([partner({ ...connected, connected_account_id: 'acct_1' })]);
  await world.rows([quote()]);
  await world.sql(
    `INSERT INTO audit_events (occurred_at, action, subject, details, os_user, host, via)
     VALUES (now(), 'processor.read', 'acct_1', '{}', 'ada', 'desk', 'command')`,
  );
  await world.sql(
    `INSERT INTO processor_readings (account, read_from, read_to, balance_transactions, new_balance_transactions, recorded_at, event_id)
     SELECT 'acct_1', NULL, '2026-08-01T10:00:00Z', 0, 0, now(), max(event_id) FROM audit_events`,
  );
  const stale = async (at: string) => {
    world.at(at);
    return (await status()).connected.stale;
  };
  expect(await stale('2026-08-03T10:00:00Z')).toEqual([]);
  expect(await stale('2026-08-03T10:00:01Z')).toEqual(['acct_1']);
});

test('a former account is watched for 180 days after its last sale', async () => {
  const connected = { arrangement: 'connected_account', merchant_of_record: 'platform', split: 'real_time' };
  await world.partners([partner({ ...connected, connected_account_id: 'acct_old' })]);
  await world.rows([quote()]);
  await world.partners([partner({ ...connected, connected_account_id: 'acct_new', arrangement_from: '2026-09' })]);
  const watched = async (at: string) => {
    world.at(at);
    const { connected: found, attention } = await status();
    return { accounts: found.accounts.map((each) => [each.account, each.followed]), stale: found.stale, attention };
  };
  const before = await watched('2026-08-20T10:00:00Z');
  expect(before.accounts).toEqual([
    ['acct_new', false],
    ['acct_old', false],
  ]);
  const after = await watched('2026-09-20T10:00:00Z');
  expect(after).toMatchObject({
    accounts: [
      ['acct_new', false],
      ['acct_old', true],
    ],
    // Nothing was sold under the new one yet.
    stale: ['acct_old'],
  });
  expect(after.attention).toContain(
    'acct_old, the former account of p-1, was never read: it may receive balance transactions for 180 days after the ' +
      "last sale. Set STRIPE_SECRET_KEY_acct_old to read it. Read it with 'reckoner processor poll'.",
  );
  // Its last sale was on 15 July.
  expect((await watched('2027-01-11T11:00:00Z')).accounts).toHaveLength(2);
  expect((await watched('2027-01-11T13:00:00Z')).accounts).toEqual([['acct_new', false]]);
});

test('the rows of a void invoice count as open, and a dispute of a paid invoice is named with what ends it', async () => {
  await world.partners([partner(), partner({ partner_id: 'p-2' })]);
  await world.rows([quote(), quote(), quote({ partner_id: 'p-2' })]);
  await world.close();
  expect((await status()).open_entries).toBe(0);
  await world.database.transaction((tx) => voidDocument(tx, world, { number: 'INV-2026-000001', reason: 'wrong' }));
  expect((await status()).open_entries).toBe(2);
  await world.database.transaction((tx) => openDispute(tx, world, { number: 'INV-2026-000002', reason: 'wrong' }));
  expect((await status()).findings.filter(({ kind }) => kind === 'disputes')).toEqual([]);
  const payment = {
    amount: '7.00',
    currency: 'USD',
    method: 'wire',
    receivedOn: '2026-08-01',
    reference: 'FT-1',
  } as const;
  await world.database.transaction((tx) => recordPayment(tx, world, { ...payment, number: 'INV-2026-000002' }));
  expect(await status()).toMatchObject({
    findings: expect.arrayContaining([
      expect.objectContaining({
        urgent: 'INV-2026-000002 is paid and still in dispute.',
        remedies: [{ label: 'Close the dispute', action: 'dispute.close', input: { number: 'INV-2026-000002' } }],
      }),
    ]),
  });
});
