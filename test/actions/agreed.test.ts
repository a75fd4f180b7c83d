/** What was agreed on before an action is compared with what it does: amounts that are split, and each transaction of a run. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { ActionContext } from '../../src/actions/action.ts';
import { approveRequest } from '../../src/actions/approve.ts';
import { monthClose } from '../../src/actions/close.ts';
import { digestOf } from '../../src/actions/consequence.ts';
import { invoiceVoid } from '../../src/actions/invoice/void.ts';
import { invoiceWriteOff } from '../../src/actions/invoice/write-off.ts';
import { paymentApply, paymentUnapply } from '../../src/actions/payment/apply.ts';
import { paymentImport } from '../../src/actions/payment/import.ts';
import { paymentRecord } from '../../src/actions/payment/record.ts';
import { OutdatedPreview, previewAction, runAction } from '../../src/actions/run.ts';
import type { Settings } from '../../src/config/settings.ts';
import type { Database } from '../../src/database/database.ts';
import type { Transaction } from '../../src/database/transaction.ts';
import { Amount } from '../../src/money.ts';
import type { Month } from '../../src/month.ts';
import { recordSettingsChanges } from '../../src/people/settings-changes.ts';
import { foundBy } from '../audit/failing.ts';
import { refusalOf } from '../close/refusal.ts';
import { as, LEE, MARA, openApproving } from '../support/approving.ts';
import { invite } from '../support/console.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { LEDGER_LOCK } from '../support/locks.ts';
import { type KeptWorld, openWorld, quote, reversal, type World } from '../support/world.ts';

const SAM = 'sam@issuer.example';
const RULE: Settings['approvals'] = { 'payment.record': { above: { USD: '100.00', EUR: '100.00' } } };

let kept: KeptWorld;
let world: World;
beforeAll(async () => {
  const first = await openApproving();
  await invite(first, SAM, { roles: ['finance'] });
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
});

let payments = 0;
async function pay(amount: string, { by = MARA, partnerId = 'p-1', currency = 'USD' } = {}): Promise<unknown> {
  payments += 1;
  return runAction(await as(world, by, RULE), paymentRecord, {
    ...{ amount, currency, partnerId, method: 'wire', receivedOn: '2026-08-01', reference: `WIRE-${payments}` },
  });
}
const differences = async (check: string) => foundBy(await world.verify(), check);

describe('an amount that is split', () => {
  test('is compared as a whole: of one user, one action, one partner and one currency within 30 days', async () => {
    await pay('50.00');
    await pay('50.00');
    const refused = await refusalOf(pay('50.00'));
    expect(refused.code).toBe('approval_needed');
    expect(refused.facts['above']).toEqual([{ currency: 'USD', amount: '50.00', before: '100.00', above: '100.00' }]);
    await expect(pay('50.00')).rejects.toThrow(
      'With 100.00 USD of the last 30 days, 50.00 USD comes to more than the limit of 100.00 USD.',
    );
    await pay('50.00', { partnerId: 'p-2' });
    await pay('50.00', { currency: 'EUR' });
    await pay('50.00', { by: SAM });
    world.at('2026-08-31T10:00:01Z');
    await pay('50.00');
    expect(await differences('actions_compared')).toEqual([]);
  });

  test('is not recorded twice at once, each of which alone would be allowed', async () => {
    const both = await Promise.allSettled([pay('60.00'), pay('60.00')]);
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });

  test('counts money that leaves beside money that comes', () => {
    const amount = (text: string) => ({ amount: Amount.of(text, 'USD') });
    const after = { 'line 1': amount('90000.00'), 'line 2': amount('-89950.00') };
    const amounts = paymentImport.amounts?.(
      { before: {}, after },
      { file: { name: 'x', bytes: Buffer.of() } },
      {} as never,
    );
    expect(amounts?.map(String)).toEqual(['179950.00']);
  });

  test('what a second person approved is not counted again', async () => {
    await pay('90.00');
    const { facts } = await refusalOf(pay('500.00'));
    await approveRequest(await as(world, LEE, RULE), Number(facts['request_id']), { deliver: false, reason: null });
    await pay('10.00');
    expect(await differences('actions_compared')).toEqual([]);
  });
});

describe('what somebody else changes after an action was permitted and before it is done', () => {
  const number = 'INV-2026-000001';
  const above = (amount: string): Settings['approvals'] => ({ 'invoice.write_off': { above: { USD: amount } } });
  let payment: number;
  /** 1.00 of 7.00 is open, until the payment is taken back. */
  beforeEach(async () => {
    const paid = await runAction(await as(world, MARA, {}), paymentRecord, {
      ...{ amount: '6.00', currency: 'USD', number, method: 'wire', receivedOn: '2026-08-01', reference: 'PART' },
    });
    payment = (paid.json as { payment_id: number }).payment_id;
  });
  /** The action, with the payment taken back just before it is done: under a rule that is after it was done aside. */
  function interrupted({ at }: { at: number }): typeof invoiceWriteOff {
    let times = 0;
    return {
      ...invoiceWriteOff,
      async perform(tx, context, input) {
        times += 1;
        if (times === at)
          await runAction(await as(world, SAM, {}), paymentUnapply, { reason: 'wrong', paymentId: payment });
        return invoiceWriteOff.perform(tx, context, input);
      },
    };
  }
  const input = { number, reason: 'small' };

  test('is judged by the rule as well', async () => {
    const refused = await refusalOf(runAction(await as(world, MARA, above('5.00')), interrupted({ at: 2 }), input));
    expect(refused.code).toBe('approval_needed');
    expect(refused.facts['above']).toMatchObject([{ amount: '7.00' }]);
  });

  test('is not done by an approval that showed something else', async () => {
    const rules = above('0.50');
    const { facts } = await refusalOf(runAction(await as(world, MARA, rules), invoiceWriteOff, input));
    const approver = (await as(world, LEE, rules)).actor;
    const approval = { requestId: Number(facts['request_id']), approver, reason: null };
    const refused = await refusalOf(
      runAction(await as(world, MARA, rules), interrupted({ at: 1 }), input, { approval }),
    );
    expect(refused.code).toBe('approval_outdated');
    expect(await world.sql('SELECT FROM approval_decisions')).toEqual([]);
  });

  test('is seen although it happens while the action waits for its locks', async () => {
    const apply = async (paymentId: number, amount: string) =>
      runAction(await as(world, SAM, {}), paymentApply, { paymentId, numbers: ['INV-2026-000002'], amount });
    const paid = await runAction(await as(world, MARA, {}), paymentRecord, {
      ...{
        amount: '6.00',
        currency: 'USD',
        partnerId: 'p-2',
        method: 'wire',
        receivedOn: '2026-08-01',
        reference: 'ALL',
      },
    });
    const { payment_id: paymentId } = paid.json as { payment_id: number };
    await apply(paymentId, '5.00');
    const rules: Settings['approvals'] = { 'payment.unapply': { always: true } };
    const { facts } = await refusalOf(
      runAction(await as(world, MARA, rules), paymentUnapply, { reason: 'wrong', paymentId }),
    );
    const waiting: typeof paymentUnapply = {
      ...paymentUnapply,
      async perform(tx, context, given) {
        await apply(paymentId, '1.00');
        return paymentUnapply.perform(tx, context, given);
      },
    };
    const approver = (await as(world, LEE, rules)).actor;
    const approval = { requestId: Number(facts['request_id']), approver, reason: null };
    const refused = await refusalOf(
      runAction(await as(world, MARA, rules), waiting, { reason: 'wrong', paymentId }, { approval }),
    );
    expect(refused.code).toBe('approval_outdated');
  });

  test.each(['5.00', '9.00'])(
    'leaves one write-off of what is open by then where the rule allows it: above %s',
    async (most) => {
      const allowed = most === '9.00';
      const done = runAction(await as(world, MARA, above(most)), interrupted({ at: 2 }), input, { deliver: false });
      await (allowed ? done : refusalOf(done));
      expect(await world.sql('SELECT amount::text FROM write_offs')).toEqual(allowed ? [{ amount: '7.00' }] : []);
    },
  );
});

describe('what was agreed on is computed once', () => {
  /** The context, and how often the ledger is locked for a close in its committed transactions. */
  function counted(context: ActionContext): { context: ActionContext; locks: () => number } {
    let locks = 0;
    const count = (tx: Transaction): Transaction => ({
      ...tx,
      ask(statement) {
        if (statement.text === LEDGER_LOCK) locks += 1;
        return tx.ask(statement);
      },
    });
    const { transaction } = context.database;
    const database: Database = { ...context.database, transaction: (work) => transaction((tx) => work(count(tx))) };
    return { context: { ...context, database }, locks: () => locks };
  }

  test('a confirmed close locks the ledger once', async () => {
    world.at('2026-09-02T10:00:00Z');
    await world.rows([quote({ accepted_at: '2026-08-10T10:00:00Z' })]);
    const context = await as(world, MARA, {});
    const shown = digestOf(await previewAction(context, monthClose, { month: '2026-08' as Month }));
    const seen = counted(context);
    await runAction(seen.context, monthClose, { month: '2026-08' as Month }, { deliver: false, shown });
    expect(seen.locks()).toBe(1);
    expect((await world.verify()).checks.flatMap(({ differences }) => differences)).toEqual([]);
  });

  test('an approved close locks the ledger once', async () => {
    world.at('2026-09-02T10:00:00Z');
    await world.rows([quote({ accepted_at: '2026-08-10T10:00:00Z' })]);
    const rules: Settings['approvals'] = { 'month.close': { always: true } };
    const { facts } = await refusalOf(runAction(await as(world, MARA, rules), monthClose, {}, { deliver: false }));
    const seen = counted(await as(world, LEE, rules));
    await approveRequest(seen.context, Number(facts['request_id']), { deliver: false, reason: null });
    expect(seen.locks()).toBe(1);
  });

  test('a confirmed void is done once', async () => {
    const context = await as(world, MARA, {});
    const input = { number: 'INV-2026-000001', reason: 'wrong' };
    const shown = digestOf(await previewAction(context, invoiceVoid, input));
    let times = 0;
    const action: typeof invoiceVoid = {
      ...invoiceVoid,
      perform(...given) {
        times += 1;
        return invoiceVoid.perform(...given);
      },
    };
    await runAction(context, action, input, { deliver: false, shown });
    expect(times).toBe(1);
  });
});

test('verify finds an action that should have asked for approval and did not', async () => {
  world.settings = { ...world.settings, approvals: RULE };
  await recordSettingsChanges(world.database, world);
  world.at('2026-08-01T12:00:00Z');
  await pay('60.00');
  await pay('40.00');
  expect(await differences('actions_compared')).toEqual([]);
  const forged = async (change: string, check = 'actions_compared') => {
    await world.sql(GUARDS_OFF);
    await world.sql(
      `UPDATE audit_events SET details = ${change} WHERE event_id =
         (SELECT max(event_id) FROM audit_events WHERE action = 'payment.record')`,
    );
    await world.sql(GUARDS_ON);
    return (await differences(check)).map(({ detail }) => detail).join('\n');
  };
  expect(await forged(`jsonb_set(details, '{compared,amounts,0,amount}', '"140.00"')`)).toContain(
    'is payment.record of 140.00 USD without a second person, after 60.00 (it states 60.00) in the days before, above 100.00',
  );
  const higher = `jsonb_set(details, '{compared,amounts,0}',
    '{"currency": "USD", "amount": "140.00", "before": "60.00", "above": "1000.00"}')`;
  expect(await forged(higher)).toContain('needs a second person above 1000.00 USD; the settings say 100.00');
  expect(await forged(higher, 'amounts_compared')).toContain(
    'action payment.record, about USD, limit_stated 1000.00, settings_have 100.00',
  );
  expect(await forged(`details - 'compared'`, 'act_needed_approval')).toContain('Found: action payment.record, ');
});

test.each<[what: string, after: Settings['approvals'], found: string]>([
  ['where another setting changed in the hour before', RULE, '100.00'],
  ['where the rule has no limit any more', { 'payment.record': { always: true } }, ''],
])('verify finds a limit that was forged %s', async (_, after, found) => {
  world.settings = { ...world.settings, approvals: RULE };
  await recordSettingsChanges(world.database, world);
  world.at('2026-08-01T12:00:00Z');
  world.settings = { ...world.settings, approvals: after, finance_email: 'other@issuer.example' };
  await recordSettingsChanges(world.database, world);
  world.at(after === RULE ? '2026-08-01T12:30:00Z' : '2026-08-01T17:00:00Z');
  await pay('60.00');
  await world.sql(GUARDS_OFF);
  await world.sql(
    `UPDATE audit_events SET details = jsonb_set(details, '{compared,amounts,0,above}', '"1000.00"')
     WHERE event_id = (SELECT max(event_id) FROM audit_events WHERE action = 'payment.record')`,
  );
  await world.sql(GUARDS_ON);
  expect((await differences('actions_compared')).map(({ detail }) => detail)).toEqual([
    `states that payment.record needs a second person above 1000.00 USD; the settings say ${found}`,
  ]);
});

test('a close puts unusual documents on hold without a second person, where a hold by hand needs one', async () => {
  const approvals: Settings['approvals'] = { 'invoice.hold': { always: true } };
  world.settings = { ...world.settings, approvals, holds: { above: { USD: '1.00' }, times: null } };
  await recordSettingsChanges(world.database, world);
  world.at('2026-09-02T10:00:00Z');
  await world.rows([quote({ accepted_at: '2026-08-10T10:00:00Z' })]);
  await runAction(await as(world, MARA, approvals), monthClose, { month: '2026-08' as Month }, { deliver: false });
  expect(await world.sql(`SELECT FROM current_holds`)).toHaveLength(1);
  expect([...(await differences('act_needed_approval')), ...(await differences('actions_approved'))]).toEqual([]);
});

describe('a run over several months', () => {
  const CLOSE: Settings['approvals'] = { 'month.close': { always: true } };
  beforeEach(async () => {
    world.at('2026-09-15T10:00:00Z');
    await world.rows([
      quote({ accepted_at: '2026-08-10T10:00:00Z' }),
      quote({ accepted_at: '2026-09-10T10:00:00Z', partner_id: 'p-2' }),
    ]);
    world.at('2026-10-02T10:00:00Z');
  });
  const closedMonths = async () =>
    (await world.sql<{ month: string }>('SELECT month FROM closed_months ORDER BY month')).map(({ month }) => month);
  const QUIET = { deliver: false, reason: null };

  /** Something is imported just before it is done. */
  function disturbed(context: ActionContext): ActionContext {
    const database: Database = {
      ...context.database,
      async transaction(work) {
        await world.rows([quote({ accepted_at: '2026-09-11T10:00:00Z', partner_id: 'p-2' })]);
        return context.database.transaction(work);
      },
    };
    return { ...context, database };
  }
  async function asked(): Promise<number> {
    const { code, facts } = await refusalOf(
      runAction(await as(world, MARA, CLOSE), monthClose, {}, { deliver: false }),
    );
    expect(code).toBe('approval_needed');
    return Number(facts['request_id']);
  }

  test('is done as it was approved, all of it in one transaction', async () => {
    await approveRequest(await as(world, LEE, CLOSE), await asked(), QUIET);
    expect(await closedMonths()).toEqual(['2026-07', '2026-08', '2026-09']);
    expect(await differences('actions_approved')).toEqual([]);
  });

  test('closes no month where one of them would be another one than was approved', async () => {
    const request = await asked();
    const refused = await refusalOf(approveRequest(disturbed(await as(world, LEE, CLOSE)), request, QUIET));
    expect(refused.code).toBe('approval_outdated');
    expect(await closedMonths()).toEqual(['2026-07']);
  });

  test('closes no month where one of them would be another one than was confirmed', async () => {
    const context = await as(world, MARA, {});
    const shown = digestOf(await previewAction(context, monthClose, {}));
    await expect(runAction(disturbed(context), monthClose, {}, { deliver: false, shown })).rejects.toThrow(
      OutdatedPreview,
    );
    expect(await closedMonths()).toEqual(['2026-07']);
    await expect(runAction(context, monthClose, {}, { deliver: false, shown })).rejects.toThrow(OutdatedPreview);
    expect(await closedMonths()).toEqual(['2026-07']);
  });

  test('that finds nothing to do any more is refused as outdated, approved or confirmed', async () => {
    const request = await asked();
    const context = await as(world, MARA, {});
    const shown = digestOf(await previewAction(context, monthClose, {}));
    await runAction(context, monthClose, {}, { deliver: false });
    expect((await refusalOf(approveRequest(await as(world, LEE, CLOSE), request, QUIET))).code).toBe(
      'approval_outdated',
    );
    await expect(runAction(context, monthClose, {}, { deliver: false, shown })).rejects.toThrow(OutdatedPreview);
  });

  test('counts what it credits to one partner beside what it bills to another', async () => {
    const sold = quote({ accepted_at: '2026-08-12T10:00:00Z' });
    await world.rows([sold]);
    await runAction(await as(world, MARA, {}), monthClose, { month: '2026-08' as Month }, { deliver: false });
    await world.rows([reversal(sold, { accepted_at: '2026-09-12T10:00:00Z' })]);
    const { amounts, changes } = await previewAction(await as(world, MARA, {}), monthClose, {});
    expect(amounts.map((each) => each.forPeople())).toEqual(['14.00 USD']);
    for (const field of ['invoices in USD', 'credit notes in USD']) {
      expect(changes).toContainEqual({ of: '2026-09', field, before: null, after: '7.00 USD' });
    }
  });

  test('above an amount is compared once for all of its months', async () => {
    const rule: Settings['approvals'] = { 'month.close': { above: { USD: '20.00' } } };
    await runAction(await as(world, MARA, rule), monthClose, {}, { deliver: false });
    expect(await closedMonths()).toEqual(['2026-07', '2026-08', '2026-09']);
    expect(await differences('actions_compared')).toEqual([]);
  });
});
