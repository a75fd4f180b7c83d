import { afterEach, beforeEach, expect, test } from 'vitest';
import { approveRequest } from '../../src/actions/approve.ts';
import { invoiceHold } from '../../src/actions/invoice/hold.ts';
import { partnerImport } from '../../src/actions/partner.ts';
import { runAction } from '../../src/actions/run.ts';
import { userDeactivate, userInvite } from '../../src/actions/user.ts';
import type { Settings } from '../../src/config/settings.ts';
import type { Role } from '../../src/people/roles.ts';
import { recordSettingsChanges } from '../../src/people/settings-changes.ts';
import { type CloseReport, readCloseReport } from '../../src/reports/close.ts';
import { describeClose } from '../../src/reports/close-text.ts';
import { ADVISED_RULES } from '../../src/reports/readiness.ts';
import { refusalOf } from '../close/refusal.ts';
import { as } from '../support/approving.ts';
import { ADMINISTRATOR as ADA, invite } from '../support/console.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

const LEE = 'lee@issuer.example';
const QUIET = { deliver: false } as const;
const RULES: Settings['approvals'] = Object.fromEntries(
  [...ADVISED_RULES.filter((action) => action !== 'user.deactivate'), 'invoice.hold'].map((action) => [
    action,
    { always: true } as const,
  ]),
);

let world: World;
beforeEach(async () => {
  world = await openWorld();
  world.settings = { ...world.settings, approvals: RULES };
  await recordSettingsChanges(world.database, world);
  // What verify asks about rules counts from an hour after their change.
  world.at('2026-08-01T14:00:00Z');
});
afterEach(() => world.end());

const by = (login: string) => as(world, login, world.settings.approvals);
const importing = {
  file: { name: 'partners.json', bytes: Buffer.from(JSON.stringify([partner(), partner({ partner_id: 'p-2' })])) },
};
const hold = async (number: string, login = ADA) =>
  runAction(await by(login), invoiceHold, { number, reason: 'to look at' }, QUIET);
const differences = async (): Promise<string[]> => {
  const { checks } = await world.verify();
  return checks
    .filter(({ check }) => ['actions_approved', 'actions_compared', 'rules_hold'].includes(check))
    .flatMap(({ differences: found }) => found.map(({ detail }) => detail));
};
const alone = () =>
  world.sql<{ action: string; alone: string; partners: string[] | null }>(
    `SELECT action, details->'one_person'->>'action' AS alone, details->'one_person'->'partners' AS partners
     FROM audit_events WHERE jsonb_exists(details, 'one_person') ORDER BY event_id`,
  );

/** Ada by herself, with July closed: p-1 and p-2 each owe an invoice. */
async function founded(): Promise<void> {
  await runAction(world, partnerImport, importing, QUIET);
  await invite(world, ADA, { roles: ['administrator', 'finance', 'approver'] });
  await world.rows([quote(), quote({ partner_id: 'p-2' })]);
  await world.close();
}
/** Lee, invited by Ada, who is still alone then. */
const second = async (given: { roles: Role[]; partnerId?: string }) =>
  runAction(await by(ADA), userInvite, { login: LEE, ...given }, QUIET);
const [INV_1, INV_2] = ['INV-2026-000001', 'INV-2026-000002'];

test('without users and with one, what needs a second person is done, and its events say that there was none', async () => {
  await founded();
  await hold(INV_1);
  const imported = { alone: 'partner.import', partners: null };
  expect(await alone()).toEqual([
    { action: 'partner.import', ...imported },
    { action: 'partner.create', ...imported },
    { action: 'partner.create', ...imported },
    { action: 'invoice.hold', alone: 'invoice.hold', partners: ['p-1'] },
  ]);
  expect(await differences()).toEqual([]);
  const report = await world.database.reading((tx) => readCloseReport(tx));
  expect(report).toMatchObject({ approvals: null, done_alone: { 'partner.import': 3 } });
  expect(describeClose(report as CloseReport)).toMatch(
    / {2}Approvals {2}done alone, as no one else could approve: partner\.import\s+\(3\s+events\)\n/,
  );
});

test('the only approver is the second person of everybody else', async () => {
  await founded();
  await second({ roles: ['finance'] });
  expect((await refusalOf(hold(INV_1, LEE))).facts).toMatchObject({ approvers: [ADA] });
});

test('somebody who can approve for one partner binds the rule there, and nowhere else', async () => {
  await founded();
  await second({ roles: ['approver'], partnerId: 'p-1' });
  expect((await refusalOf(hold(INV_1))).code).toBe('approval_needed');
  await hold(INV_2);
  expect(await alone()).toContainEqual({ action: 'invoice.hold', alone: 'invoice.hold', partners: ['p-2'] });
  expect(await differences()).toEqual([]);
});

test('a second approver who is removed for a moment leaves the action in the report of the close, and verify holds', async () => {
  await founded();
  await second({ roles: ['approver'] });
  expect((await refusalOf(hold(INV_1))).code).toBe('approval_needed');
  // Of two approvers, each removes the other alone: the other one may have left.
  await runAction(await by(ADA), userDeactivate, { login: LEE, reason: 'on leave' }, QUIET);
  await hold(INV_1);
  await second({ roles: ['approver'] });
  expect((await refusalOf(hold(INV_2))).code).toBe('approval_needed');
  world.at('2026-09-01T10:00:00Z');
  await world.close('2026-08', { allowEmpty: true });
  expect(await world.database.reading((tx) => readCloseReport(tx))).toMatchObject({
    done_alone: { 'invoice.hold': 1, 'user.invite': 2 },
  });
  expect(await differences()).toEqual([]);
});

test('what waits for an approver who has left is withdrawn when whoever asked does it alone', async () => {
  await founded();
  await second({ roles: ['approver'] });
  const asked = Number((await refusalOf(hold(INV_1))).facts['request_id']);
  const approving = async () => approveRequest(await by(ADA), asked, { ...QUIET, reason: null });
  await expect(approving()).rejects.toThrow('another user must decide');
  await runAction(await by(ADA), userDeactivate, { login: LEE, reason: 'has left' }, QUIET);
  await expect(approving()).rejects.toThrow(
    `no one else can approve it now. ${ADA} can repeat the action, which then needs no approval.`,
  );
  await hold(INV_1);
  expect(
    await world.sql(
      `SELECT request_id::int, decision, reason, jsonb_exists(details, 'one_person') AS alone
       FROM approval_decisions d JOIN audit_events e USING (event_id)`,
    ),
  ).toEqual([
    {
      ...{ request_id: asked, decision: 'withdraw', alone: false },
      reason: 'done alone: no one else could approve it any more',
    },
  ]);
  expect(await differences()).toEqual([]);
});

test('with the rule for user.deactivate, who removes the second approver needs that approver', async () => {
  await founded();
  await second({ roles: ['approver'] });
  world.settings = { ...world.settings, approvals: { ...RULES, 'user.deactivate': { always: true } } };
  const removing = runAction(await by(ADA), userDeactivate, { login: LEE, reason: 'on leave' }, QUIET);
  const { code, facts } = await refusalOf(removing);
  expect([code, facts['approvers']]).toEqual(['approval_needed', [LEE]]);
  await approveRequest(await by(LEE), Number(facts['request_id']), { ...QUIET, reason: null });
  await hold(INV_1);
  expect(await differences()).toEqual([]);
});

test('verify finds an action that says it was done by one person, although somebody else could approve it', async () => {
  await founded();
  await hold(INV_1);
  await second({ roles: ['approver'] });
  const asked = Number((await refusalOf(hold(INV_2))).facts['request_id']);
  await approveRequest(await by(LEE), asked, { ...QUIET, reason: null });
  expect(await differences()).toEqual([]);
  await world.sql(GUARDS_OFF);
  await world.sql(
    `UPDATE audit_events SET details = details - 'approval' || '{"one_person": {"action": "invoice.hold", "partners": null}}'
     WHERE action = 'invoice.hold' AND subject = '${INV_2}'`,
  );
  await world.sql(GUARDS_ON);
  expect(await differences()).toEqual([
    expect.stringMatching(/^is invoice\.hold of INV-2026-000002, done by one person; user \d+ could have approved it$/),
    expect.stringContaining('was approved, and no event of invoice.hold'),
  ]);
});

test('in production, the report of a close says that one person does everything', async () => {
  const own = await openWorld();
  try {
    await own.sql(GUARDS_OFF);
    await own.sql(`UPDATE installation SET environment = 'production'`);
    await own.sql(GUARDS_ON);
    await own.partners([partner()]);
    await own.rows([quote()]);
    await own.close();
    const report = async () => describeClose((await own.database.reading((tx) => readCloseReport(tx))) as CloseReport);
    const said = 'one person: actions are not approved by a second person';
    expect(await report()).toContain(`  Approvals  ${said}\n`);
    await invite(own, ADA, { roles: ['administrator', 'finance', 'approver'] });
    await invite(own, LEE, { roles: ['approver'] });
    const next = async (of: string, approvals: Settings['approvals']) => {
      await own.rows([quote({ accepted_at: `${of}-01T08:00:00Z` })]);
      own.settings = { ...own.settings, approvals };
      own.at(`2026-${String(Number(of.slice(5)) + 1).padStart(2, '0')}-01T10:00:00Z`);
      await own.close();
    };
    await next('2026-08', {});
    const free = 'no rules: 2 people could approve, but no action requires it';
    expect((await report()).replaceAll(/\s+/g, ' ')).toContain(`Approvals ${free} `);
    await next('2026-09', RULES);
    expect(await report()).not.toContain('Approvals');
    await invite(own, 'pat@issuer.example', { roles: ['approver'], partnerId: 'p-1' });
    await runAction(await as(own, ADA, RULES), userDeactivate, { login: LEE, reason: 'has left' }, QUIET);
    await next('2026-10', RULES);
    expect((await report()).replaceAll(/\s+/g, ' ')).toContain(
      `Approvals ${said}; 1 person could approve everything, compared with 2 at the previous close `,
    );
    await own.sql(GUARDS_OFF);
    await own.sql(`UPDATE audit_events SET details = details || '{"approvers": 0}' WHERE subject = '2026-10'`);
    await own.sql(GUARDS_ON);
    expect(await report()).toContain('  Approvals  approvers of some partners only: ');
  } finally {
    await own.end();
  }
});
