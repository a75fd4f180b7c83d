/**
 * What somebody with the owner's connection would do to have acted without a second person: with every guard off, before the
 * next checkpoint and after it. Each is done here and undone again; the check named beside it must find it.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { approveRequest, endRequest } from '../../src/actions/approve.ts';
import { invoiceHold } from '../../src/actions/invoice/hold.ts';
import { invoiceVoid } from '../../src/actions/invoice/void.ts';
import { runAction } from '../../src/actions/run.ts';
import { verify } from '../../src/audit/verify.ts';
import { recordSettingsChanges } from '../../src/people/settings-changes.ts';
import { refusalOf } from '../close/refusal.ts';
import { as, LEE, MARA, openApproving } from '../support/approving.ts';
import { ADMINISTRATOR } from '../support/console.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import type { World } from '../support/world.ts';
import { failing } from './failing.ts';
import { type Owner, openOwner } from './owner.ts';

let world: World;
let owner: Owner;
beforeAll(async () => {
  world = await openApproving();
  await recordSettingsChanges(world.database, world);
  owner = openOwner(world);
  const rules = { 'invoice.void': { always: true } as const, 'invoice.hold': { always: true } as const };
  const asked = async (action: typeof invoiceVoid | typeof invoiceHold, number: string) => {
    const { facts } = await refusalOf(
      runAction(await as(world, MARA, rules), action, { number, reason: 'wrong price' }),
    );
    return facts['request_id'] as number;
  };
  await approveRequest(await as(world, LEE), await asked(invoiceHold, 'INV-2026-000001'), QUIET);
  await approveRequest(await as(world, LEE), await asked(invoiceVoid, 'INV-2026-000002'), QUIET);
  await endRequest(await as(world, LEE), await asked(invoiceVoid, 'INV-2026-000001'), 'reject', 'the price is right');
});
afterAll(async () => {
  await owner.close();
  await world.end();
});
const QUIET = { deliver: false, reason: null };

/** The checks and rules that find what these statements leave. */
const found = (...statements: readonly string[]): Promise<string[]> =>
  owner.undone(async (tx) => {
    await tx.knex.raw(GUARDS_OFF);
    for (const statement of statements) {
      const { rowCount } = (await tx.knex.raw(statement.replaceAll('?', '\\?'))) as { rowCount: number | null };
      if (/^(UPDATE|DELETE|INSERT)/.test(statement)) expect([statement, rowCount]).not.toEqual([statement, 0]);
    }
    await tx.knex.raw(GUARDS_ON);
    return failing(await verify(tx, undefined, { schema: world.schema }));
  });

const ID = (login: string) => `(SELECT user_id FROM users WHERE personal(login) = '${login}')`;
const WITHOUT = (table: string, ...names: string[]) =>
  names.map((name) => `ALTER TABLE ${table} DROP CONSTRAINT ${name}`);
const MARKED = `jsonb_exists(details, 'approval')`;

/** What is done, the statements, and the check or rule that must find it although no checkpoint covers it yet. */
const FORGERIES: readonly (readonly [name: string, check: string, ...statements: string[]])[] = [
  [
    'an approval by whoever asked',
    'approval_by_another',
    ...WITHOUT('approval_decisions', 'approval_by_a_second_person'),
    `UPDATE approval_decisions SET decided_by = requested_by WHERE decision = 'approve'`,
  ],
  [
    'an approval by a user who is no approver',
    'approval_by_approver',
    `UPDATE approval_decisions SET decided_by = ${ID(ADMINISTRATOR)} WHERE decision = 'approve'`,
  ],
  [
    'a rejection that becomes an approval',
    'approval_of_event',
    `UPDATE approval_decisions SET decision = 'approve' WHERE decision = 'reject'`,
  ],
  [
    'a decision that is another user’s than its event',
    'approval_of_event',
    `UPDATE audit_events SET user_id = ${ID(ADMINISTRATOR)} WHERE action = 'approval.approve'`,
  ],
  [
    'an action whose event no longer names its request',
    'actions_approved',
    `UPDATE audit_events SET details = details - 'approval' WHERE action = 'invoice.void' AND ${MARKED}`,
  ],
  [
    'an action whose event names a request that nobody made',
    'act_approved',
    `UPDATE audit_events SET details = jsonb_set(details, '{approval,request}', '4711') WHERE action = 'invoice.void' AND ${MARKED}`,
  ],
  [
    'an action that uses the approval of another one',
    'actions_approved',
    `UPDATE audit_events SET details = jsonb_set(details, '{approval,request}', '1') WHERE action = 'invoice.void' AND ${MARKED}`,
  ],
  [
    'another input after the approval',
    'actions_approved',
    `UPDATE approval_requests SET input = jsonb_set(input, '{number}', '"INV-2026-000001"') WHERE action = 'invoice.void'`,
  ],
  [
    'another action after the approval',
    'actions_approved',
    `UPDATE approval_requests SET action = 'invoice.void' WHERE action = 'invoice.hold'`,
  ],
  [
    'another preview after the approval',
    'actions_approved',
    `UPDATE approval_requests SET preview = jsonb_set(preview, '{amounts,0,amount}', '"1.00"') WHERE action = 'invoice.void'`,
  ],
  [
    'a request that is longer valid',
    'actions_approved',
    `UPDATE approval_requests SET expires_at = expires_at + interval '1 year'`,
  ],
  [
    'a role of approver that no event granted',
    'event_makes_fact',
    `INSERT INTO user_roles (user_id, action, role, source, recorded_at, event_id)
     SELECT ${ID(ADMINISTRATOR)}, 'grant', 'approver', 'administrator', occurred_at, event_id
     FROM audit_events WHERE action = 'approval.approve' LIMIT 1`,
  ],
  [
    'a user that no event made',
    'event_makes_fact',
    `INSERT INTO users (kind, login, name, recorded_at, event_id)
     SELECT 'person', keep_text('eve@issuer.example'), keep_text('Eve'), occurred_at, event_id
     FROM audit_events WHERE action = 'approval.approve' LIMIT 1`,
  ],
  [
    'an identity that no event bound to its user',
    'event_makes_fact',
    `INSERT INTO user_identities (user_id, issuer, subject, recorded_at, event_id)
     SELECT ${ID(LEE)}, 'https://eve.example', 'eve', occurred_at, event_id
     FROM audit_events WHERE action = 'approval.approve' LIMIT 1`,
  ],
  ['a rejection removed', 'event_has_fact', `DELETE FROM approval_decisions WHERE decision = 'reject'`],
];

test('undamaged, verify finds nothing', async () => {
  expect(await found()).toEqual([]);
});

describe('before the next checkpoint', () => {
  test.each(FORGERIES)('%s is found by %s', async (_, check, ...statements) => {
    expect(await found(...statements)).toContain(check);
  });
});

describe('under a checkpoint', () => {
  beforeAll(async () => {
    world.settings = { ...world.settings, approvals: {} };
    world.at('2026-09-01T12:00:00Z');
    await world.close();
  });

  // What is inserted is numbered after the checkpoint, and the log has a preview's hash alone.
  const altered = FORGERIES.filter(
    ([, , ...statements]) => !statements.some((each) => /^INSERT|SET preview =/.test(each)),
  );
  test.each(altered.map(([name, , ...statements]) => [name, ...statements] as const))(
    '%s is found by the log too',
    async (_, ...statements) => {
      expect(await found(...statements)).toContain('log_derived_again');
    },
  );

  test('the record of the rules removed is found', async () => {
    expect(await found(`DELETE FROM audit_events WHERE action = 'settings.change'`)).toContain('log_derived_again');
  });

  test.each([
    ['users', `login = keep_text('eve@issuer.example') WHERE personal(login) = '${LEE}'`],
    ['users', `name = keep_text('Eve') WHERE kind = 'program'`],
    ['user_roles', `role = 'approver' WHERE role = 'administrator'`],
    ['user_roles', `action = 'revoke' WHERE role = 'finance'`],
  ])('%s with %s is found', async (table, change) => {
    expect(await found(`UPDATE ${table} SET ${change}`)).toContain('log_derived_again');
  });
});
