/** Approvals: what needs a second person, who may be that person, and what happens to a request. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { approveRequest, endRequest, previewRequest } from '../../src/actions/approve.ts';
import { invoiceHold } from '../../src/actions/invoice/hold.ts';
import { invoiceRerun } from '../../src/actions/invoice/rerun.ts';
import { invoiceVoid } from '../../src/actions/invoice/void.ts';
import { invoiceWriteOff } from '../../src/actions/invoice/write-off.ts';
import { paymentRecord } from '../../src/actions/payment/record.ts';
import { runAction } from '../../src/actions/run.ts';
import { changeRoles, identify } from '../../src/people/users.ts';
import { foundBy } from '../audit/failing.ts';
import { refusalOf } from '../close/refusal.ts';
import { as, LEE, MARA, openApproving, PAT } from '../support/approving.ts';
import { ADMINISTRATOR, invite } from '../support/console.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { partner, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openApproving();
});
afterAll(() => world.end());

const [FIRST, SECOND] = ['INV-2026-000001', 'INV-2026-000002'] as const;
const QUIET = { deliver: false, reason: null };

/** Mara asks, and gets the number of the request. */
async function askToVoid(number: string = SECOND): Promise<number> {
  const { code, facts } = await refusalOf(
    runAction(await as(world, MARA), invoiceVoid, { number, reason: 'wrong price' }, { deliver: false }),
  );
  expect(code).toBe('approval_needed');
  return facts['request_id'] as number;
}
const approve = async (login: string, requestId: number) => approveRequest(await as(world, login), requestId, QUIET);
const voids = () => world.sql<{ number: string }>('SELECT number FROM voids JOIN documents USING (document_id)');
const decisions = (requestId: number) =>
  world.sql<{ decision: string; login: string }>(
    `SELECT decision, personal(login) AS login FROM approval_decisions JOIN users ON user_id = decided_by WHERE request_id = $1`,
    [requestId],
  );
/** Ends what a test left waiting. */
async function withdrawAll(): Promise<void> {
  const open = await world.sql<{ request_id: string; login: string }>(
    `SELECT request_id, personal(login) AS login FROM approval_requests JOIN users ON user_id = requested_by
     WHERE request_id NOT IN (SELECT request_id FROM approval_decisions)`,
  );
  for (const { request_id, login } of open) {
    await endRequest(await as(world, login), Number(request_id), 'withdraw', null);
  }
}
const differences = async () => {
  const found = await world.verify();
  return found.checks.filter((each) => each.differences.length > 0);
};

describe('an action that needs approval', () => {
  afterEach(withdrawAll);

  test('is not done, and leaves one request with what it would do, however often it is asked for', async () => {
    const requestId = await askToVoid();
    expect(await askToVoid()).toBe(requestId);
    expect(await voids()).toEqual([]);
    const [request] = await world.sql(
      `SELECT action, subject, partner_ids, input, preview->'amounts' AS amounts, reason FROM approval_requests
       WHERE request_id = $1`,
      [requestId],
    );
    expect(request).toEqual({
      ...{ action: 'invoice.void', subject: SECOND, partner_ids: ['p-2'], reason: 'wrong price' },
      input: { number: SECOND, reason: 'wrong price' },
      amounts: [{ currency: 'USD', amount: '14.00' }],
    });
  });

  test('says who may approve: approvers of its partners, and never whoever asked', async () => {
    const rules = { 'invoice.void': { always: true } as const };
    const asked = (number: string) =>
      as(world, MARA, rules).then((context) => refusalOf(runAction(context, invoiceVoid, { number, reason: 'x' })));
    expect((await asked(FIRST)).facts['approvers']).toEqual([LEE, PAT]);
    expect((await asked(SECOND)).facts['approvers']).toEqual([LEE]);
  });

  test('is done by approval as the action of whoever asked, and its events name both', async () => {
    const context = await as(world, MARA);
    const { facts } = await refusalOf(runAction(context, invoiceHold, { number: FIRST, reason: 'asks' }));
    const requestId = facts['request_id'] as number;
    await approve(LEE, requestId);
    const events = await world.sql(
      `SELECT action, personal(login) AS login, personal_json(details->'approval') AS approval FROM audit_events JOIN users USING (user_id)
       WHERE action IN ('approval.approve', 'invoice.hold') ORDER BY audit_events.event_id`,
    );
    expect(events).toEqual([
      { action: 'approval.approve', login: LEE, approval: null },
      { action: 'invoice.hold', login: MARA, approval: { request: requestId, approved_by: LEE } },
    ]);
    expect((await refusalOf(approve(LEE, requestId))).code).toBe('approval_decided');
  });

  test('below the threshold needs none, and above it or in another currency it does', async () => {
    const pay = (amount: string, currency: string, above: Record<string, string>) =>
      as(world, MARA, { 'payment.record': { above } }).then((context) =>
        runAction(context, paymentRecord, {
          ...{ amount, currency, partnerId: 'p-1', method: 'wire', receivedOn: '2026-08-01' },
          reference: `${amount} ${currency}`,
        }),
      );
    await pay('10.00', 'USD', { USD: '10.00' });
    expect((await refusalOf(pay('10.01', 'USD', { USD: '10.00' }))).code).toBe('approval_needed');
    expect((await refusalOf(pay('1.00', 'EUR', { USD: '10.00' }))).code).toBe('approval_needed');
  });
});

describe('an approval to run a document again', () => {
  afterEach(withdrawAll);

  test('holds for the names and addresses that it showed, and for no others', async () => {
    const rules = { 'invoice.rerun': { always: true } as const };
    const named = (name: string) => world.partners([partner({ partner_id: 'p-2', name })]);
    const ask = async () =>
      refusalOf(runAction(await as(world, MARA, rules), invoiceRerun, { number: SECOND }, { deliver: false }));
    await named('Other Tickets Limited');
    const requestId = (await ask()).facts['request_id'] as number;
    await named('Somebody Else');
    expect((await refusalOf(approve(LEE, requestId))).code).toBe('approval_outdated');
    await named('Other Tickets Limited');
    expect((await ask()).facts['request_id']).toBe(requestId);
    await named('Other Tickets');
  });
});

describe('the rule for voiding', () => {
  afterEach(withdrawAll);
  const rerun = async (rules: Parameters<typeof as>[2]) =>
    refusalOf(runAction(await as(world, MARA, rules), invoiceRerun, { number: SECOND }, { deliver: false }));

  test('applies to a rerun that would void the document it replaces, beside the own rule of reruns', async () => {
    await world.partners([partner({ partner_id: 'p-2', name: 'Renamed Tickets' })]);
    const before = await voids();
    for (const rules of [
      { 'invoice.void': { always: true } },
      { 'invoice.void': { above: { USD: '1.00' } } },
      { 'invoice.void': { always: true }, 'invoice.rerun': { above: { USD: '1000.00' } } },
      { 'invoice.void': { above: { USD: '1000.00' } }, 'invoice.rerun': { always: true } },
    ] as const) {
      expect((await rerun(rules)).code).toBe('approval_needed');
    }
    expect(await voids()).toEqual(before);
    await world.partners([partner({ partner_id: 'p-2', name: 'Other Tickets' })]);
  });
});

describe('whoever may not decide', () => {
  afterEach(withdrawAll);

  test('is refused: whoever asked, whoever is no approver, and an approver of other partners', async () => {
    const requestId = await askToVoid();
    expect((await refusalOf(approve(MARA, requestId))).code).toBe('approval_own');
    expect((await refusalOf(approve(ADMINISTRATOR, requestId))).code).toBe('role_needed');
    expect((await refusalOf(approve(PAT, requestId))).code).toBe('role_needed');
    expect((await refusalOf(endRequest(await as(world, PAT), requestId, 'reject', 'no'))).code).toBe('role_needed');
    const withdrawn = endRequest(await as(world, LEE), requestId, 'withdraw', null);
    expect((await refusalOf(withdrawn)).code).toBe('approval_of_another');
    expect([await voids(), await decisions(requestId)]).toEqual([[], []]);
  });

  test('is refused by the database as well', async () => {
    const requestId = await askToVoid();
    const decide = (login: string, decision = 'approve', at = '2026-08-01T10:00:00Z', requester = MARA) =>
      world.sql(
        `INSERT INTO approval_decisions (request_id, requested_by, decision, decided_by, reason, recorded_at, event_id)
         SELECT $1, r.user_id, $2, u.user_id, 'sql', $3, (SELECT max(event_id) FROM audit_events)
         FROM users u, users r WHERE personal(u.login) = $4 AND personal(r.login) = $5`,
        [requestId, decision, at, login, requester],
      );
    await expect(decide(MARA)).rejects.toMatchObject({ constraint: 'approval_by_a_second_person' });
    await expect(decide(MARA, 'approve', undefined, LEE)).rejects.toMatchObject({
      constraint: 'approval_decision_of_its_request',
    });
    await expect(decide(PAT)).rejects.toMatchObject({ constraint: 'approval_by_an_approver' });
    await expect(decide(ADMINISTRATOR, 'reject')).rejects.toMatchObject({ constraint: 'approval_by_an_approver' });
    await expect(decide(LEE, 'withdraw')).rejects.toMatchObject({ constraint: 'approval_by_a_second_person' });
    await expect(decide(LEE, 'approve', '2026-08-15T10:00:00Z')).rejects.toMatchObject({
      constraint: 'approval_before_it_expires',
    });
    await expect(world.sql('DELETE FROM approval_requests')).rejects.toThrow('append-only');
  });
});

describe('a request', () => {
  afterEach(withdrawAll);

  test('that would do something else by now is not approved, and asking again replaces it', async () => {
    const context = await as(world, MARA);
    const writeOff = () => refusalOf(runAction(context, invoiceWriteOff, { number: FIRST, reason: 'small' }));
    const requestId = (await writeOff()).facts['request_id'] as number;
    const paid = { amount: '2.00', currency: 'USD', method: 'wire', receivedOn: '2026-08-01' } as const;
    await runAction(await as(world, MARA, {}), paymentRecord, { ...paid, number: FIRST, reference: 'PART' });
    const { code, facts } = await refusalOf(approve(LEE, requestId));
    expect([code, facts['shown'] === facts['now']]).toEqual(['approval_outdated', false]);
    expect(await decisions(requestId)).toEqual([]);
    const again = (await writeOff()).facts['request_id'] as number;
    expect(again).toBeGreaterThan(requestId);
    expect(await decisions(requestId)).toEqual([{ decision: 'withdraw', login: MARA }]);
  });

  test('can be rejected with a reason, or withdrawn, and is not approved afterwards', async () => {
    const rejected = await askToVoid();
    await endRequest(await as(world, LEE), rejected, 'reject', 'the price is right');
    expect((await refusalOf(approve(LEE, rejected))).facts).toMatchObject({ decision: 'rejected', decided_by: LEE });
    const withdrawn = await askToVoid();
    expect(withdrawn).toBeGreaterThan(rejected);
    await endRequest(await as(world, MARA), withdrawn, 'withdraw', null);
    expect((await refusalOf(approve(LEE, withdrawn))).code).toBe('approval_decided');
    expect(await voids()).toEqual([]);
  });

  test('expires, and is made anew when it is asked for again', async () => {
    const requestId = await askToVoid();
    world.at('2026-08-15T10:00:00Z');
    expect((await refusalOf(approve(LEE, requestId))).code).toBe('approval_expired');
    expect(await askToVoid()).toBeGreaterThan(requestId);
    world.at('2026-08-01T10:00:00Z');
  });

  test('of a user who has lost the role is not done', async () => {
    const requestId = await askToVoid();
    const finance = { role: 'finance', partner_id: null } as const;
    const change = async (grant: boolean) =>
      world.database.transaction(async (tx) => {
        const actor = await identify(tx, world.actor, { login: ADMINISTRATOR, unattended: false });
        const roles = grant ? { grant: [finance], revoke: [] } : { grant: [], revoke: [finance] };
        return changeRoles(tx, { ...world, actor }, { login: MARA, ...roles });
      });
    await change(false);
    expect((await refusalOf(approve(LEE, requestId))).facts).toMatchObject({ login: MARA, role: 'finance' });
    await change(true);
    expect(await decisions(requestId)).toEqual([]);
  });

  test('of two approvers at once is approved by one, and its action is done once', async () => {
    await invite(world, 'sam@issuer.example', { roles: ['approver'] });
    const requestId = await askToVoid();
    expect((await previewRequest(await as(world, LEE), requestId))?.changes).not.toEqual([]);
    const both = await Promise.allSettled([approve(LEE, requestId), approve('sam@issuer.example', requestId)]);
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    const reason = both.find((each) => each.status === 'rejected')?.reason as { code: string };
    expect(reason.code).toBe('approval_decided');
    expect([await voids(), (await decisions(requestId)).length]).toEqual([[{ number: SECOND }], 1]);
  });
});

test('the checks find nothing after all of it, and each approval or event that somebody forged', async () => {
  expect(await differences()).toEqual([]);
  const subjects = async (rule: string) => foundBy(await world.verify(), rule).map(({ subject }) => subject);
  const [{ approved = '' } = {}] = await world.sql<{ approved: string }>(
    `SELECT max(request_id) AS approved FROM approval_decisions WHERE decision = 'approve'`,
  );
  const lee = (await world.sql<{ user_id: string }>('SELECT user_id FROM users WHERE personal(login) = $1', [LEE]))[0]
    ?.user_id;
  await world.sql(GUARDS_OFF);
  // The role was given after the approval.
  await world.sql(
    `UPDATE user_roles SET log_no = (SELECT max(log_no) + 1000 FROM audit_events) WHERE role = 'approver' AND user_id IN
       (SELECT decided_by FROM approval_decisions WHERE request_id = $1)`,
    [approved],
  );
  expect(await subjects('approval_by_approver')).toContain(`approval_by_approver: request ${approved}`);
  await world.sql(
    `UPDATE audit_events SET details = jsonb_set(details, '{approval,request}', '4711'), user_id = $1
     WHERE action = 'invoice.hold' AND jsonb_exists(details, 'approval')`,
    [lee],
  );
  await world.sql(GUARDS_ON);
  expect(await subjects('act_approved')).toEqual([expect.stringMatching(/^act_approved: event \d+$/)]);
});
