/** The work queue: each state that waits for a person is an item, which leaves when it is settled; and who is responsible. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { endRequest } from '../../src/actions/approve.ts';
import { disputeClose, disputeOpen } from '../../src/actions/dispute.ts';
import { emailDismiss } from '../../src/actions/email.ts';
import { invoiceHold, invoiceRelease } from '../../src/actions/invoice/hold.ts';
import { invoiceRerun } from '../../src/actions/invoice/rerun.ts';
import { invoiceVoid } from '../../src/actions/invoice/void.ts';
import { paymentApply } from '../../src/actions/payment/apply.ts';
import { paymentCloseException } from '../../src/actions/payment/exception.ts';
import { paymentRecord } from '../../src/actions/payment/record.ts';
import { runAction } from '../../src/actions/run.ts';
import { workAssign } from '../../src/actions/work/assign.ts';
import { readWork, type WorkItem } from '../../src/actions/work/items.ts';
import { askForApproval } from '../../src/approvals/requests.ts';
import { readQueue } from '../../src/console/screens/queue.tsx';
import type { Transaction } from '../../src/database/transaction.ts';
import { deactivateUser } from '../../src/people/users.ts';
import { recordAttention } from '../../src/reports/jobs.sql.ts';
import { refusalOf } from '../close/refusal.ts';
import { as, LEE, MARA, openApproving, PAT } from '../support/approving.ts';
import { ADMINISTRATOR, invite } from '../support/console.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import type { World } from '../support/world.ts';

const [FIRST, SECOND] = ['INV-2026-000001', 'INV-2026-000002'] as const;
const NONE = {};

let world: World;
beforeAll(async () => {
  world = await openApproving();
  world.at('2026-08-10T10:00:00Z');
});
afterAll(() => world.end());

const question = (scope: readonly string[] | null = null) => ({
  ...{ settings: world.settings, scope },
  now: world.environment.now().toMillis(),
  today: world.environment.now().toISODate(),
});
const work = (scope: readonly string[] | null = null) => world.database.reading((tx) => readWork(tx, question(scope)));
const found = async (item: string): Promise<WorkItem | undefined> => (await work()).find((each) => each.item === item);
const mara = (rules = NONE) => as(world, MARA, rules);
/** As a delivery leaves an e-mail; one that was sent is a fact, which only the owner can put back. */
async function email(where: string, status: string, queuedAt = '2026-08-10T08:00:00Z'): Promise<void> {
  await world.sql(GUARDS_OFF);
  await world.sql(
    `UPDATE emails SET status = '${status}', reason = 'said so', queued_at = '${queuedAt}',
            sent_at = CASE '${status}' WHEN 'sent' THEN attempted_at END WHERE ${where}`,
  );
  await world.sql(GUARDS_ON);
}
const OF_FIRST = `document_id = (SELECT document_id FROM documents WHERE number = '${FIRST}')`;

test('nothing waits after a close whose e-mails have gone', async () => {
  expect(await work()).toEqual([]);
});

describe('an item is there while its state lasts:', () => {
  test('a request for approval', async () => {
    const { facts } = await refusalOf(
      runAction(await as(world, MARA), invoiceVoid, { number: SECOND, reason: 'wrong price' }),
    );
    const item = `approval:${facts['request_id']}`;
    expect(await found(item)).toMatchObject({
      ...{ kind: 'approvals', since: '2026-08-10', title: `invoice.void ${SECOND}` },
      ...{ money: { currency: 'USD', amount: '14.00' }, partners: [{ id: 'p-2' }] },
    });
    await endRequest(await as(world, MARA), Number(facts['request_id']), 'withdraw', null);
    expect(await found(item)).toBeUndefined();
  });

  test('an invoice on hold, by finance or by the settings of a close', async () => {
    await runAction(await mara(), invoiceHold, { number: FIRST, reason: 'ask first' });
    expect(await found(`hold:${FIRST}`)).toMatchObject({
      ...{ kind: 'holds', state: 'on hold', reason: 'ask first', money: { amount: '7.00' } },
      remedies: [{ label: 'Release it', action: 'invoice.release', input: { number: FIRST } }],
    });
    await runAction(await mara(), invoiceRelease, { number: FIRST });
    expect(await found(`hold:${FIRST}`)).toBeUndefined();
  });

  test.each(['held', 'failed', 'bounced', 'uncertain'])('a document whose e-mail is %s', async (status) => {
    await email(OF_FIRST, status);
    expect(await found(`delivery:${FIRST}`)).toMatchObject({
      ...{ kind: 'e-mails', state: status, reason: 'said so', money: { amount: '7.00', currency: 'USD' } },
      remedies: [status === 'held' ? { command: 'deliver' } : { action: 'invoice.resend', input: { number: FIRST } }],
    });
    await email(OF_FIRST, 'sent');
    expect(await found(`delivery:${FIRST}`)).toBeUndefined();
  });

  test('an e-mail that no mail server takes for an hour', async () => {
    await email(OF_FIRST, 'queued');
    expect(await found(`delivery:${FIRST}`)).toMatchObject({ state: 'no server accepts it', tone: 'bad' });
    await email(OF_FIRST, 'queued', '2026-08-10T09:30:00Z');
    expect(await found(`delivery:${FIRST}`)).toBeUndefined();
    await email(OF_FIRST, 'sent');
  });

  test('an e-mail to the auditor that failed, until it is dismissed', async () => {
    const [letter] = await world.sql<{ email_id: string }>(
      `INSERT INTO emails (kind, checkpoint_size, message_id, status, reason, queued_at)
       SELECT 'checkpoint', size, '<work@issuer.example>', 'failed', 'no such user', '2026-08-10T08:00:00Z'
       FROM log_checkpoints WHERE closes = 'month 2026-07' RETURNING email_id`,
    );
    const emailId = Number(letter?.email_id);
    expect(await found(`email:${emailId}`)).toMatchObject({
      ...{ kind: 'e-mails', money: null, partners: [], reason: 'no such user' },
      remedies: [{ action: 'email.resend', input: { emailId: String(emailId) } }, { action: 'email.dismiss' }],
    });
    await runAction(await mara(), emailDismiss, { emailId, reason: 'read elsewhere' });
    expect(await found(`email:${emailId}`)).toBeUndefined();
  });

  test('a dispute, of what is disputed', async () => {
    await runAction(await mara(), disputeOpen, { number: SECOND, reason: 'wrong count', amount: '2.50' });
    expect(await found(`dispute:${SECOND}`)).toMatchObject({
      ...{ kind: 'disputes', money: { amount: '2.50', currency: 'USD' }, reason: 'wrong count' },
    });
    await runAction(await mara(), disputeClose, { number: SECOND, reason: 'explained' });
    expect(await found(`dispute:${SECOND}`)).toBeUndefined();
  });

  test('a receipt that pays nothing yet, and one that may be the same as another', async () => {
    const PAID = { partnerId: 'p-2', currency: 'USD', receivedOn: '2026-08-09' } as const;
    await runAction(await mara(), paymentRecord, { ...PAID, amount: '3.00', method: 'wire', reference: 'W-1' });
    await runAction(await mara(), paymentRecord, { ...PAID, amount: '3.00', method: 'ach', reference: 'W-1B' });
    const receipts = (await work()).filter(({ kind }) => kind === 'receipts');
    expect(receipts.map(({ state }) => state).sort()).toEqual(['possible duplicate', 'unapplied cash']);
    const [duplicate, unapplied] = receipts.sort((one, other) => (one.state < other.state ? -1 : 1));
    const exception = duplicate?.item.replace('receipt:', '') as string;
    await runAction(await mara(), paymentCloseException, { exception, reason: 'two payments' });
    const paymentIds = [...(await work())].map(({ item }) => Number(item.replace('receipt:payment-', '')));
    for (const paymentId of paymentIds) await runAction(await mara(), paymentApply, { paymentId, numbers: [SECOND] });
    expect(await found(unapplied?.item as string)).toBeUndefined();
    expect(await work()).toEqual([]);
  });

  test('what verify and reconcile found when they ran last', async () => {
    const tell = (job: string, ...items: { item: string; count: number }[]) =>
      world.database.transaction((tx) =>
        recordAttention(tx, { job, items, now: world.environment.now().toISO(), againAfterHours: 20 }),
      );
    await tell('verify', { item: 'log_derived_again', count: 3 });
    await tell('reconcile', { item: '2026-07', count: 2 });
    expect((await work()).map(({ item, reason }) => [item, reason])).toEqual([
      ['reconcile:2026-07', '2 open with the processor'],
      ['verify:log_derived_again', '3 differences: do not change the database; find the cause'],
    ]);
    await tell('verify');
    await tell('reconcile');
    expect(await work()).toEqual([]);
  });

  test('a void document that nothing replaces', async () => {
    await runAction(await mara(), invoiceVoid, { number: FIRST, reason: 'wrong price' });
    expect(await found(`gap:${FIRST}`)).toMatchObject({ kind: 'documents', money: { amount: '7.00' } });
    await runAction(await mara(), invoiceRerun, { number: FIRST });
    expect(await found(`gap:${FIRST}`)).toBeUndefined();
  });
});

describe('an item is assigned', () => {
  const ITEM = `hold:${SECOND}`;
  beforeAll(async () => {
    await runAction(await mara(), invoiceHold, { number: SECOND, reason: 'ask first' });
  });
  const assign = async (to?: string, item = ITEM) => runAction(await mara(), workAssign, { item, ...(to && { to }) });
  const mine = async (login: string) => {
    const user = { login, roles: [{ role: 'finance', partner_id: null }] } as const;
    const asked = { queue: 'holds', whose: 'mine' };
    return (await world.database.reading((tx) => readQueue(tx, asked, { ...question(), user }))).items.length;
  };

  test('to a user, whose it is in every list until it is given back, with an event for each', async () => {
    expect((await assign(LEE)).text).toBe(`${ITEM} is assigned to ${LEE}.`);
    expect([await mine(LEE), await mine(MARA)]).toEqual([1, 0]);
    await assign(MARA);
    expect([await mine(LEE), await mine(MARA)]).toEqual([0, 1]);
    expect((await assign()).text).toBe(`${ITEM} is now unassigned.`);
    const events = await world.sql<{ subject: string; to: string | null; login: string }>(
      `SELECT subject, personal(details->>'to') AS to, personal(login) AS login FROM audit_events JOIN users USING (user_id)
       WHERE action = 'work.assign' ORDER BY audit_events.event_id`,
    );
    expect(events).toEqual([LEE, MARA, null].map((to) => ({ subject: ITEM, to, login: MARA })));
  });

  test('to nobody who may not see it, to no program, not twice, and not once it is settled', async () => {
    const refused = async (to: string | undefined, item?: string) => (await refusalOf(assign(to, item))).code;
    expect(await refused('nobody@issuer.example')).toBe('user_unknown');
    expect(await refused('cron')).toBe('work_assignee_unfit');
    expect(await refused(PAT)).toBe('work_assignee_unfit');
    expect(await refused(undefined)).toBe('work_assigned_already');
    expect(await refused(LEE, 'hold:INV-2026-000999')).toBe('work_item_unknown');
    expect((await found(ITEM))?.assignee).toBeNull();
  });

  test('of two partners by and to those alone who may see both', async () => {
    const amounts = [
      { amount: '5.00', currency: 'USD' },
      { amount: '900.00', currency: 'EUR' },
      { amount: '1200', currency: 'JPY' },
    ];
    const ofBoth = async (tx: Transaction) => {
      const context = await mara();
      const request = { action: 'payment.apply', input: { paymentId: 1 }, subject: '1', partnerIds: ['p-1', 'p-2'] };
      return askForApproval(tx, context, {
        ...{ ...request, reason: null, hash: '0'.repeat(64), userId: context.actor.user?.user_id ?? 0 },
        preview: { title: 'Apply a payment', changes: [], amounts, text: 'both' },
      });
    };
    const { request_id: requestId } = await world.database.transaction(ofBoth);
    const item = `approval:${requestId}`;
    const both = [
      { id: 'p-1', name: 'Harbour Lights Ticketing' },
      { id: 'p-2', name: 'Other Tickets' },
    ];
    expect((await found(item))?.partners).toEqual(both);
    expect(await found(item)).toMatchObject({
      money: amounts[0],
      reason: `also 900.00 EUR and 1,200 JPY; requested by ${MARA}`,
    });
    for (const scope of [['p-1'], ['p-2']]) expect((await work(scope)).some((each) => each.item === item)).toBe(false);
    expect((await work(['p-1', 'p-2'])).some((each) => each.item === item)).toBe(true);
    // Who can approve sees first what waits for an approval.
    const first = async (role: 'approver' | 'viewer') => {
      const user = { login: LEE, roles: [{ role, partner_id: null }] } as const;
      return (await world.database.reading((tx) => readQueue(tx, {}, { ...question(), user }))).items[0]?.item;
    };
    expect([await first('approver'), await first('viewer')]).toEqual([item, ITEM]);
    const one = 'one@issuer.example';
    await invite(world, one, { roles: ['finance'], partnerId: 'p-1' });
    const byOne = async () => runAction(await as(world, one, NONE), workAssign, { item, to: LEE });
    expect((await refusalOf(byOne())).code).toBe('role_needed');
    expect((await refusalOf(assign(one, item))).code).toBe('work_assignee_unfit');
    await invite(world, one, { roles: ['finance'], partnerId: 'p-2' });
    expect((await byOne()).text).toContain(LEE);
    await assign(one, item);
    await endRequest(await mara(), requestId, 'withdraw', null);
  });

  test("to a user who is deactivated afterwards, and is nobody's then", async () => {
    const gone = 'gone@issuer.example';
    await invite(world, gone, { roles: ['finance'] });
    await assign(gone);
    const administrator = await as(world, ADMINISTRATOR);
    await world.database.transaction((tx) => deactivateUser(tx, administrator, { login: gone, reason: null }));
    expect((await found(ITEM))?.assignee).toBeNull();
  });
});

test('the oldest comes first, of one day by currency and the larger amount, and never by a conversion', async () => {
  await runAction(await mara(), disputeOpen, { number: SECOND, reason: 'wrong count', amount: '1.00' });
  world.at('2026-08-12T10:00:00Z');
  const PAID = { partnerId: 'p-2', receivedOn: '2026-08-11', method: 'wire' } as const;
  for (const [currency, amount] of [
    ['USD', '9.00'],
    ['EUR', '1.00'],
    ['USD', '90.00'],
  ] as const) {
    await runAction(await mara(), paymentRecord, { ...PAID, currency, amount, reference: `${currency} ${amount}` });
  }
  const order = (await work()).map(({ since, money }) => [since, money && `${money.currency} ${money.amount}`]);
  expect(order).toEqual([
    ['2026-08-10', 'USD 8.00'],
    ['2026-08-10', 'USD 1.00'],
    ['2026-08-11', 'EUR 1.00'],
    ['2026-08-11', 'USD 90.00'],
    ['2026-08-11', 'USD 9.00'],
  ]);
});

test('a reader of one partner has the items of that partner alone', async () => {
  expect(await work(['p-1'])).toEqual([]);
  const number = (await world.documents()).find((each) => each.partner_id === 'p-1' && each.status === 'open')?.number;
  const PAID = { partnerId: 'p-2', receivedOn: '2026-08-11', method: 'wire', currency: 'USD' } as const;
  await runAction(await mara(), paymentRecord, { ...PAID, amount: '7.00', reference: `for ${number}` });
  const [all, own] = [await work(), await work(['p-2'])];
  expect(own.map(({ item }) => item)).toEqual(all.map(({ item }) => item));
  // Perhaps it pays what another partner owes. That is not for everybody to read.
  const reasons = (items: WorkItem[]) => items.filter(({ reason }) => reason.includes(`perhaps ${number}`)).length;
  expect([reasons(all), reasons(own)]).toEqual([1, 0]);
});

test('an invoice on hold leaves the queue when it is paid, as nobody needs to release it', async () => {
  expect(await found(`hold:${SECOND}`)).toBeDefined();
  const { balance: amount = '', currency = '' } =
    (await world.documents()).find((each) => each.number === SECOND) ?? {};
  const paid = { amount, currency, receivedOn: '2026-08-11', method: 'wire', reference: 'HELD-1' } as const;
  await runAction(await mara(), paymentRecord, { ...paid, number: SECOND });
  expect(await found(`hold:${SECOND}`)).toBeUndefined();
});
