/** The rule for adjustments: what several actions of several users take from our share of one partner counts together. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { approveRequest } from '../../src/actions/approve.ts';
import { reversalGrant } from '../../src/actions/held.ts';
import { invoiceCredit } from '../../src/actions/invoice/credit.ts';
import { invoiceWriteOff } from '../../src/actions/invoice/write-off.ts';
import { ACTIONS } from '../../src/actions/loaded.ts';
import { paymentApply } from '../../src/actions/payment/apply.ts';
import { paymentImport } from '../../src/actions/payment/import.ts';
import { paymentRecord } from '../../src/actions/payment/record.ts';
import { ledgerImport } from '../../src/actions/rows.ts';
import { runAction } from '../../src/actions/run.ts';
import { userDeactivate } from '../../src/actions/user.ts';
import type { Settings } from '../../src/config/settings.ts';
import { CHECKS_SQL } from '../../src/package.ts';
import { recordSettingsChanges } from '../../src/people/settings-changes.ts';
import { foundBy } from '../audit/failing.ts';
import { refusalOf } from '../close/refusal.ts';
import { as, LEE, MARA, openApproving, PAT } from '../support/approving.ts';
import { ADMINISTRATOR, invite } from '../support/console.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { type KeptWorld, openWorld, quote, reversal, type World } from '../support/world.ts';

const SAM = 'sam@issuer.example';
const RULE: Settings['approvals'] = { adjustments: { above: { USD: '5.00' } } };
/** p-1 owes 7.00 on the first and p-2 14.00 on the second invoice. */
const [FIRST, SECOND] = ['INV-2026-000001', 'INV-2026-000002'] as const;
const QUIET = { deliver: false } as const;
const [SALE, OTHER_SALE] = [quote(), quote({ partner_id: 'p-2' })];

let kept: KeptWorld;
let world: World;
beforeAll(async () => {
  const first = await openApproving();
  await invite(first, SAM, { roles: ['finance'] });
  await first.rows([SALE, OTHER_SALE].map((row) => ({ ...row, accepted_at: '2026-07-31T12:00:00Z' })));
  kept = await first.keep();
});
afterAll(async () => {
  await world.end();
  await kept.discard();
});
beforeEach(async () => {
  await world?.end();
  world = await openWorld({ from: kept });
  world.at('2026-08-01T10:00:00Z');
  world.settings = { ...world.settings, approvals: RULE, small_difference: { USD: '3.00', percent: '50' } };
  await recordSettingsChanges(world.database, world);
  // The rules ask about settings from an hour after their change.
  world.at('2026-08-01T14:00:00Z');
});

const by = (login: string, rules = RULE) => as(world, login, rules);
const credit = async (number: string, amount: string, { login = MARA, rules = RULE } = {}) =>
  runAction(await by(login, rules), invoiceCredit, { number, amount, reason: 'goodwill', again: true }, QUIET);
const writeOff = async (number: string, login = MARA) =>
  runAction(await by(login), invoiceWriteOff, { number, reason: 'insolvent' }, QUIET);
let payments = 0;
const record = async (amount: string, given: { number: string } | { partnerId: string }, login = MARA) => {
  payments += 1;
  const wire = { amount, currency: 'USD', method: 'wire', receivedOn: '2026-08-01' } as const;
  return runAction(await by(login), paymentRecord, { ...wire, ...given, reference: `WIRE-${payments}` }, QUIET);
};
const fileOf = (rows: readonly object[]) => ({
  name: 'rows.ndjson',
  bytes: Buffer.from(rows.map((row) => `${JSON.stringify(row)}\n`).join('')),
});
/** A reversal of our share alone, which waits for a person. Returns the number of its held row. */
async function asked(sale: Record<string, unknown>, share: string): Promise<number> {
  const amounts = { spotPrice: `-${share}`, partnerCut: '0', invoiceAmount: `-${share}` };
  const row = reversal(sale, { ...amounts, accepted_at: '2026-08-01T09:00:00Z' });
  const { held_rows } = await world.rows([row], { holds: true });
  return held_rows[0]?.held_row_id as number;
}
const grant = async (row: number, amounts: { invoiceAmount?: string; partnerCut?: string } = {}) =>
  runAction(await by(MARA), reversalGrant, { row, ...amounts, reason: 'goodwill' }, QUIET);
const approve = async (requestId: number) => approveRequest(await by(LEE), requestId, { ...QUIET, reason: null });

const compared = async () =>
  (
    await world.sql<{ action: string; partner: string; amount: string; before: string }>(
      `SELECT e.action, a.partner, a.amount, a.before FROM audit_events e
       CROSS JOIN LATERAL jsonb_to_recordset(e.details->'compared'->'adjustments')
         AS a (partner text, amount text, before text)
       ORDER BY e.event_id, a.partner`,
    )
  ).map(({ action, partner, amount, before }) => `${action} ${partner} ${amount} after ${before}`);
const differences = async () => {
  const { checks } = await world.verify();
  return checks.filter(({ differences: found }) => found.length > 0);
};

describe('adjustments of one partner', () => {
  test('count together over all users, and not those of another partner', async () => {
    await credit(FIRST, '3.00');
    await credit(SECOND, '4.00');
    const { code, facts } = await refusalOf(credit(FIRST, '2.01', { login: SAM }));
    expect([code, facts['above']]).toEqual([
      'approval_needed',
      [{ partner: 'p-1', currency: 'USD', amount: '2.01', before: '3.00', above: '5.00' }],
    ]);
    await expect(credit(FIRST, '2.01', { login: SAM })).rejects.toThrow(
      'With 3.00 USD of the last 30 days, 2.01 USD of adjustments for p-1 comes to more than the limit of 5.00 USD.',
    );
    await credit(FIRST, '2.00', { login: SAM });
    expect(await compared()).toEqual([
      'invoice.credit p-1 3.00 after 0.00',
      'invoice.credit p-2 4.00 after 0.00',
      'invoice.credit p-1 2.00 after 3.00',
    ]);
    expect(await differences()).toEqual([]);
  });

  test('are credit, write-offs, small differences and granted reversals', async () => {
    await credit(FIRST, '1.00');
    await record('4.50', { number: FIRST }, SAM);
    expect(await compared()).toEqual(['invoice.credit p-1 1.00 after 0.00', 'payment.record p-1 1.50 after 1.00']);
    await grant(await asked(SALE, '2.00'));
    await grant(await asked(OTHER_SALE, '3.00'), { invoiceAmount: '2.00', partnerCut: '0' });
    expect((await compared()).slice(2)).toEqual([
      'reversal.grant p-1 2.00 after 2.50',
      'reversal.grant p-2 2.00 after 0.00',
    ]);
    expect((await refusalOf(credit(FIRST, '0.51'))).code).toBe('approval_needed');
    expect((await refusalOf(writeOff(SECOND))).facts['above']).toMatchObject([
      { partner: 'p-2', amount: '14.00', before: '2.00' },
    ]);
    expect(await differences()).toEqual([]);
  });

  test('are what an application and a bank file post to bank charges, and a payment in full is none', async () => {
    const { json } = await record('6.00', { partnerId: 'p-1' });
    const { payment_id: paymentId } = json as { payment_id: number };
    await runAction(await by(SAM), paymentApply, { paymentId, numbers: [FIRST] }, QUIET);
    await record('14.00', { number: SECOND });
    const bank = `date,amount,currency,account,bank_reference,text,payer,payer_account\n2026-08-01,3.00,USD,1,B-1,x,,\n`;
    const file = { name: 'bank.csv', bytes: Buffer.from(bank) };
    await runAction(await by(MARA), paymentImport, { file }, QUIET);
    expect(await compared()).toEqual(['payment.apply p-1 1.00 after 0.00']);
    const events = await world.sql(`SELECT action FROM audit_events WHERE jsonb_exists(details, 'compared')`);
    expect(events).toEqual([{ action: 'payment.apply' }]);
    expect(await differences()).toEqual([]);
  });

  test('are not reversals that the rules for cancellations allow, and not sales', async () => {
    await runAction(await by(MARA), ledgerImport, { files: [fileOf([quote(), reversal(SALE)])] }, QUIET);
    expect(await compared()).toEqual([]);
    await credit(FIRST, '5.00');
    expect(await differences()).toEqual([]);
  });

  test('no longer count after 30 days', async () => {
    await credit(FIRST, '5.00');
    world.at('2026-08-31T13:59:59Z');
    expect((await refusalOf(credit(FIRST, '1.00'))).code).toBe('approval_needed');
    world.at('2026-08-31T14:00:01Z');
    await credit(FIRST, '1.00');
    expect(await differences()).toEqual([]);
  });

  test('of two users at once are compared one after the other', async () => {
    const both = await Promise.allSettled([credit(FIRST, '3.00'), credit(FIRST, '3.00', { login: SAM })]);
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(await compared()).toEqual(['invoice.credit p-1 3.00 after 0.00']);
    expect(await differences()).toEqual([]);
  });

  test('that a second person approved do not count', async () => {
    const { facts } = await refusalOf(credit(FIRST, '6.00'));
    await approve(facts['request_id'] as number);
    await credit(FIRST, '1.00', { login: SAM });
    expect(await compared()).toEqual(['invoice.credit p-1 1.00 after 0.00']);
    expect(await differences()).toEqual([]);
  });

  test('need approval always, with a rule without amounts or in a currency without an amount', async () => {
    const always = { adjustments: { always: true } } as const;
    expect((await refusalOf(credit(FIRST, '0.01', { rules: always }))).facts['above']).toEqual([]);
    const euros = { adjustments: { above: { EUR: '5.00' } } };
    expect((await refusalOf(credit(FIRST, '0.01', { rules: euros }))).code).toBe('approval_needed');
    await runAction(await by(MARA, always), ledgerImport, { files: [fileOf([quote()])] });
  });
});

describe('an action with a rule of its own', () => {
  test('needs approval if either rule wants it', async () => {
    const strict = { ...RULE, 'invoice.credit': { above: { USD: '1.00' } } };
    const own = await refusalOf(credit(FIRST, '2.00', { rules: strict }));
    expect(own.facts['above']).toEqual([{ currency: 'USD', amount: '2.00', before: '0.00', above: '1.00' }]);
    const loose = { ...RULE, 'invoice.credit': { above: { USD: '100.00' } } };
    await credit(FIRST, '4.00', { rules: loose });
    const shared = await refusalOf(credit(FIRST, '2.00', { rules: loose }));
    expect(shared.facts['above']).toMatchObject([{ partner: 'p-1', before: '4.00' }]);
    const always = { ...RULE, 'invoice.credit': { always: true } as const };
    expect((await refusalOf(credit(FIRST, '0.10', { rules: always }))).code).toBe('approval_needed');
  });
});

test('while nobody else can approve, the rule does not bind, and the event says so', async () => {
  for (const login of [MARA, PAT]) {
    await runAction(await as(world, ADMINISTRATOR, {}), userDeactivate, { login, reason: 'has left' }, QUIET);
  }
  await invite(world, 'kim@issuer.example', { roles: ['finance'] });
  expect((await refusalOf(credit(FIRST, '6.00', { login: SAM }))).facts).toMatchObject({ approvers: [LEE] });
  await runAction(await as(world, ADMINISTRATOR, {}), userDeactivate, { login: LEE, reason: 'has left' }, QUIET);
  await credit(FIRST, '6.00', { login: SAM });
  expect(
    await world.sql(
      `SELECT details->'one_person'->>'action' AS alone FROM audit_events WHERE action = 'invoice.credit'`,
    ),
  ).toEqual([{ alone: 'invoice.credit' }]);
  expect(await differences()).toEqual([]);
});

test('the rules recompute what was adjusted from the facts, and find what an event states otherwise', async () => {
  await credit(FIRST, '2.00');
  await credit(FIRST, '1.00', { login: SAM });
  expect(await differences()).toEqual([]);
  const [{ details } = { details: {} }] = await world.sql<{ details: object }>(
    `SELECT details FROM audit_events WHERE action = 'invoice.credit' ORDER BY event_id DESC LIMIT 1`,
  );
  const found = async (rule: string, change: string) => {
    const update = (to: string) =>
      `UPDATE audit_events SET details = ${to} WHERE event_id =
         (SELECT max(event_id) FROM audit_events WHERE action = 'invoice.credit')`;
    await world.sql(GUARDS_OFF);
    await world.sql(update(change));
    await world.sql(GUARDS_ON);
    const said = foundBy(await world.verify(), rule).map(({ detail }) => detail.replace(/.* Found: /, ''));
    await world.sql(GUARDS_OFF);
    await world.sql(update(`'${JSON.stringify(details)}'`));
    await world.sql(GUARDS_ON);
    return said;
  };
  const stating = (field: string, value: string) =>
    found('adjustments_compared', `jsonb_set(details, '{compared,adjustments,0,${field}}', '"${value}"')`);
  expect(await stating('amount', '0.50')).toEqual([
    'of amount, partner p-1, currency USD, stated 0.50, adjusted 1.00, settings_have –',
  ]);
  expect(await stating('before', '0.00')).toEqual([
    'of before, partner p-1, currency USD, stated 0.00, adjusted 2.00, settings_have –',
  ]);
  expect(await stating('above', '9.00')).toEqual([
    'of limit, partner p-1, currency USD, stated 9.00, adjusted –, settings_have 5.00',
  ]);
  expect(await stating('partner', 'p-2')).toHaveLength(3);
  expect(await found('act_needed_approval', `details - 'compared'`)).toEqual([
    expect.stringContaining('action invoice.credit'),
  ]);
});

test('the rules find an adjustment that should have asked for approval', async () => {
  await credit(FIRST, '4.00');
  const loose = { adjustments: { above: { USD: '50.00' } } };
  // A process with settings that nobody recorded.
  await credit(FIRST, '3.00', { rules: loose });
  const said = foundBy(await world.verify(), 'adjustments_compared').map(({ detail }) =>
    detail.replace(/.* Found: /, ''),
  );
  expect(said).toEqual(['of limit, partner p-1, currency USD, stated 50.00, adjusted –, settings_have 5.00']);
});

test('the actions that the rules in SQL count are those that adjust', () => {
  const [, list = ''] =
    /adjusting\(action\) AS \(VALUES ([^;]*?)\)\nSELECT/.exec(readFileSync(CHECKS_SQL, 'utf8')) ?? [];
  const counted = [...list.matchAll(/'([a-z_.]+)'/g)].map(([, name]) => name);
  const adjusting = [...ACTIONS.values()].filter(({ adjusts }) => adjusts !== undefined).map(({ name }) => name);
  expect(counted.length).toBeGreaterThan(5);
  expect(counted.sort()).toEqual(adjusting.sort());
});
