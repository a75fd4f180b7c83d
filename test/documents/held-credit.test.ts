/** A credit note on hold: mailed to nobody and applied to nothing, until it is released. */
import pg from 'pg';
import { h } from 'preact';
import { render } from 'preact-render-to-string';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Settings } from '../../src/config/settings.ts';
import { invoiceScreen, readInvoice } from '../../src/console/screens/invoice.tsx';
import { applyPayment } from '../../src/payments/apply.ts';
import { recordPayment } from '../../src/payments/record.ts';
import { refundCredit, returnRefund } from '../../src/payments/refund.ts';
import { readAccountStatement } from '../../src/reports/account-statement.ts';
import { readAging } from '../../src/reports/aging.ts';
import { refusalOf } from '../close/refusal.ts';
import { startOver } from '../close/start-over.ts';
import { untilLockAwaited } from '../support/locks.ts';
import { readStatus } from '../support/status.ts';
import { openWorld, partner, quote, reversal, type World } from '../support/world.ts';
import {
  type Corrections,
  correctionsOf,
  creditInUse,
  document,
  emailsOf,
  expectVerified,
  refund,
  sale,
  story,
} from './correcting.ts';

let world: World;
let action: Corrections;
let settings: Settings;
beforeAll(async () => {
  world = await openWorld();
  settings = world.settings;
});
afterAll(() => world.end());
beforeEach(async () => {
  await startOver(world);
  world.settings = settings;
  action = correctionsOf(world);
  await world.partners([partner()]);
});

const [INV_1, INV_2, INV_3] = ['INV-2026-000001', 'INV-2026-000002', 'INV-2026-000003'];
const [CN_1, CN_2] = ['CN-2026-000001', 'CN-2026-000002'];
const REASON = '700.00 USD is above 50.00 USD, the limit above which documents are held';

function withHolds(holds: Partial<Settings['holds']>): void {
  world.settings = { ...settings, holds: { above: {}, times: null, ...holds } };
  action = correctionsOf(world);
}

async function closeOn(day: string, ...rows: Record<string, unknown>[]): Promise<void> {
  world.at(`${day}T10:00:00Z`);
  if (rows.length > 0) await world.rows(rows);
  await world.close();
}

/** June's sale of 1,000.00 with our share of 700.00, which July takes back in whole. */
const SPLIT = { spotPrice: '1000.00', partnerCut: '300.00', invoiceAmount: '700.00' };
const BACK = { spotPrice: '-1000.00', partnerCut: '-300.00', invoiceAmount: '-700.00' };
async function takenBack(): Promise<void> {
  const sold = quote({ accepted_at: '2026-06-04T12:00:00Z', ...SPLIT });
  await closeOn('2026-07-01', sold);
  world.at('2026-08-01T10:00:00Z');
  await world.rows([reversal(sold, { accepted_at: '2026-07-04T12:00:00Z', ...BACK })]);
  await world.close();
}

/** INV-1 of June over 60.00 is open, and the close put CN-1 of July over 40.00 on hold. It is 10 August. */
async function withHeldCredit(): Promise<void> {
  const sold = sale('2026-05', '40');
  await closeOn('2026-06-02', sold);
  await closeOn('2026-07-02', sale('2026-06', '60'));
  await world.database.transaction((tx) =>
    recordPayment(tx, world, {
      ...{ currency: 'USD', method: 'wire', receivedOn: '2026-07-02', reference: 'FT-0', amount: '40', number: INV_1 },
    }),
  );
  withHolds({ above: { USD: '39.99' } });
  await closeOn('2026-08-10', refund(sold, '2026-07'));
  withHolds({});
}
const HELD = {
  code: 'document_on_hold',
  facts: { number: CN_1, reason: '40.00 USD is above 39.99 USD, the limit above which documents are held' },
};
const refunded = (amount?: string) =>
  world.database.transaction((tx) =>
    refundCredit(tx, world, { number: CN_1, amount, method: 'wire', reference: 'OUT-1' }),
  );

test('a limit of 50.00 USD holds the invoice of 700.00 USD and the credit note that takes it back', async () => {
  withHolds({ above: { USD: '50.00' } });
  await takenBack();
  await world.deliver();
  for (const number of [INV_1, CN_1]) {
    expect(await emailsOf(world, number)).toMatchObject([
      { status: 'held', reason: expect.stringMatching(`: ${REASON.replaceAll(/[().]/g, '\\$&')}$`) },
    ]);
  }
  const { findings } = await world.database.reading((tx) => readStatus(tx, world));
  expect(findings.filter(({ kind }) => kind === 'holds')).toMatchObject([
    { title: INV_1, money: { amount: '700', currency: 'USD' } },
    {
      ...{ title: CN_1, money: { amount: '700', currency: 'USD' } },
      urgent: `${CN_1} was held by the close as unusual: ${REASON}. Check it.`,
      remedies: [{ action: 'invoice.release', input: { number: CN_1 } }],
    },
  ]);
  await expectVerified(world);
});

test('a credit note is compared with the largest invoice of the partner, not with its credit notes', async () => {
  withHolds({ times: '1.5' });
  const [thousand, five, hundred] = [sale('2026-04', '1000'), sale('2026-04', '5'), sale('2026-05', '100')];
  await closeOn('2026-07-02', thousand, five, hundred, sale('2026-06', '40'));
  const notes = async () => (await world.documents()).filter((each) => each.document === 'credit_note');
  // The largest invoice is 100.00 after April's was credited down to 5.00.
  await action.credit(INV_1, '1000');
  await closeOn('2026-08-02', refund(five, '2026-07'));
  await closeOn('2026-09-02', refund(hundred, '2026-08'));
  await closeOn('2026-10-02', refund(thousand, '2026-09'));
  expect((await notes()).map(({ invoiceAmount, email }) => [invoiceAmount, email?.status])).toEqual([
    ['1000.00', 'queued'],
    ['5.00', 'queued'],
    ['100.00', 'queued'],
    ['1000.00', 'held'],
  ]);
  expect((await story(world, 'CN-2026-000004')).find(([what]) => what === 'held')?.[1]).toBe(
    'put on hold: 1,000.00 USD is above 1.5 times 100.00 USD, the largest invoice of the 12 months before',
  );
});

test('a credit note held at one close is not applied at the next, and after its release at the one after that', async () => {
  withHolds({ above: { USD: '50.00' } });
  await takenBack();
  withHolds({});
  await closeOn('2026-09-02', sale('2026-08', '120'));
  expect(await document(world, INV_2)).toMatchObject({ credit_applied: '0.00', amount_due: '120.00' });
  expect(await document(world, CN_1)).toMatchObject({ balance: '700.00', status: 'open', email: { status: 'held' } });
  await expectVerified(world);
  await action.release(CN_1);
  await closeOn('2026-10-02', sale('2026-09', '130'));
  expect(await document(world, INV_3)).toMatchObject({ credit_applied: '130.00', amount_due: '0.00', status: 'paid' });
  expect(await document(world, CN_1)).toMatchObject({ balance: '570.00', email: { status: 'queued' } });
  expect(await creditInUse(world)).toEqual([`130 of ${CN_1} for ${INV_3}`]);
  await expectVerified(world);
});

test('held credit is neither applied nor refunded by hand, and nothing changes', async () => {
  await withHeldCredit();
  const payment = { currency: 'USD', method: 'wire', receivedOn: '2026-08-10', reference: 'FT-1' } as const;
  const { paymentId } = await world.database.transaction((tx) =>
    recordPayment(tx, world, { ...payment, partnerId: 'p-1', amount: '20' }),
  );
  const before = await world.documents();
  const withPayment = () =>
    world.database.transaction((tx) => applyPayment(tx, world, { paymentId, numbers: [INV_2], creditNotes: [CN_1] }));
  expect(await refusalOf(action.apply(CN_1, INV_2))).toMatchObject(HELD);
  expect(await refusalOf(refunded('10'))).toMatchObject(HELD);
  expect(await refusalOf(withPayment())).toMatchObject(HELD);
  expect(await world.documents()).toEqual(before);
  await action.release(CN_1);
  await action.apply(CN_1, INV_2, '5');
  await refunded('10');
  await withPayment();
  expect(await document(world, CN_1)).toMatchObject({ credited: '30.00', amount_paid: '10.00', status: 'paid' });
  expect(await document(world, INV_2)).toMatchObject({ balance: '10.00' });
  await expectVerified(world);
});

test('a hold by hand keeps the rest of a credit note from use; what was applied stays, and may be taken back', async () => {
  await withHeldCredit();
  await action.release(CN_1);
  await action.apply(CN_1, INV_2, '15');
  await refunded('10');
  await action.hold(CN_1, 'the insurer asks');
  expect(await refusalOf(action.apply(CN_1, INV_2))).toMatchObject({
    ...{ code: 'document_on_hold', facts: { reason: 'the insurer asks' } },
  });
  await action.unapply(CN_1, INV_2);
  await world.database.transaction((tx) => returnRefund(tx, world, { number: CN_1, reason: 'account closed' }));
  expect(await document(world, CN_1)).toMatchObject({ balance: '40.00', status: 'open' });
  expect(await refusalOf(action.apply(CN_1, INV_2))).toMatchObject({ code: 'document_on_hold' });
  expect(await refusalOf(refunded())).toMatchObject({ code: 'document_on_hold' });
  await expectVerified(world);
});

test('a replacement does not take the credit of its void invoice back while that credit is on hold', async () => {
  await withHeldCredit();
  await action.release(CN_1);
  await closeOn('2026-09-02', sale('2026-08', '90'));
  expect(await document(world, INV_3)).toMatchObject({ credit_applied: '40.00', balance: '50.00' });
  await action.hold(CN_1);
  await action.voided(INV_3);
  await action.rerun(INV_3);
  expect(await document(world, 'INV-2026-000004')).toMatchObject({ credit_applied: '0.00', balance: '90.00' });
  expect(await document(world, CN_1)).toMatchObject({ balance: '40.00', status: 'open' });
  await expectVerified(world);
});

test('a void does not end a hold: the replacement has it until it is released', async () => {
  await withHeldCredit();
  await action.voided(CN_1);
  await action.rerun(CN_1);
  expect(await document(world, CN_2)).toMatchObject({ replaces: CN_1, balance: '40.00', email: { status: 'held' } });
  expect(await refusalOf(action.apply(CN_2, INV_2))).toMatchObject({ ...HELD, facts: { ...HELD.facts, number: CN_2 } });
  const { findings } = await world.database.reading((tx) => readStatus(tx, world));
  expect(findings.filter(({ kind }) => kind === 'holds')).toMatchObject([
    { title: CN_2, urgent: expect.stringContaining('was held by the close') },
  ]);
  await action.release(CN_2);
  await action.voided(CN_2);
  await action.rerun(CN_2);
  expect(await document(world, 'CN-2026-000003')).toMatchObject({ email: { status: 'queued' } });
  await action.hold('CN-2026-000003', '');
  await action.voided('CN-2026-000003');
  await action.rerun('CN-2026-000003');
  expect(await story(world, 'CN-2026-000004')).toContainEqual(['held', 'put on hold']);
  await expectVerified(world);
});

test('an invoice on hold stays due: payments and credit are applied to it', async () => {
  await withHeldCredit();
  await action.release(CN_1);
  await action.hold(INV_2);
  await action.apply(CN_1, INV_2, '25');
  await action.credit(INV_2, '5');
  expect(await document(world, INV_2)).toMatchObject({ credited: '30.00', balance: '30.00' });
  await expectVerified(world);
});

test('held credit is open credit in the aging and the statement of account', async () => {
  await withHeldCredit();
  const today = '2026-08-10';
  const reports = async () => {
    const { partners, ties } = await world.database.reading((tx) => readAging(tx, { asOf: today, today }));
    const statement = await world.database.reading((tx) => readAccountStatement(tx, { partnerId: 'p-1', today }));
    const [account] = statement.accounts;
    const items = account?.open_items.map(({ number, balance }) => [number, balance]);
    return { credit: partners[0]?.credit, ties: [ties, statement.ties], closing: account?.closing, items };
  };
  const before = await reports();
  expect(before).toMatchObject({ credit: '40.00', ties: [true, true], closing: '20.00' });
  expect(before.items).toContainEqual([CN_1, '40.00']);
  await action.release(CN_1);
  expect(await reports()).toEqual(before);
});

const APPLIED = (atIssue: boolean) =>
  `INSERT INTO credit_applications (credit_note_id, invoice_id, amount, applied_on, recorded_at, at_issue, event_id)
   SELECT n.document_id, i.document_id, 1, '2026-08-10', now(), ${atIssue}, (SELECT min(event_id) FROM audit_events)
   FROM documents n, documents i WHERE n.number = '${CN_1}' AND i.number = '${INV_2}'`;
const PAID_OUT = `
  INSERT INTO credit_refunds (document_id, partner_id, currency, amount, method, account, reference, refunded_on, entry_on,
                              recorded_at, event_id)
  SELECT document_id, partner_id, currency, 1, 'wire', '', '', '2026-08-10', '2026-08-10', now(),
         (SELECT min(event_id) FROM audit_events)
  FROM documents WHERE number = '${CN_1}'`;
const PUT_ON_HOLD = `
  INSERT INTO holds (document_id, follows, reason, held_at, event_id)
  SELECT document_id, (SELECT max(hold_id) FROM holds h WHERE h.document_id = d.document_id), '', now(),
         (SELECT min(event_id) FROM audit_events)
  FROM documents d WHERE number = '${CN_1}'`;
const constraintOf = (statement: Promise<unknown>): Promise<string | undefined> =>
  statement.then(
    () => 'none',
    (error: { constraint?: string }) => error.constraint,
  );

test('the screen of a held credit note offers its release, and no use of its credit', async () => {
  await withHeldCredit();
  const offered = async () => {
    const view = await world.database.reading((tx) => readInvoice(tx, null, CN_1, '2026-08-10'));
    const roles = [{ role: 'finance', partner_id: null }];
    const { lead, actions } = invoiceScreen(view, { user: { roles } as never });
    const page = render(h('div', null, lead, actions));
    return ['on hold', 'Hold', 'Release', 'Apply to an invoice', 'Record a refund'].filter((each) =>
      page.includes(`>${each}<`),
    );
  };
  expect(await offered()).toEqual(['on hold', 'Release']);
  await action.release(CN_1);
  expect(await offered()).toEqual(['Hold', 'Apply to an invoice', 'Record a refund']);
});

test('the tables refuse held credit that is used, whatever the program says', async () => {
  await withHeldCredit();
  for (const use of [APPLIED(true), APPLIED(false), PAID_OUT]) {
    expect(await constraintOf(world.sql(use))).toBe('held_credit_not_used');
  }
  await action.release(CN_1);
  for (const use of [APPLIED(false), PAID_OUT]) expect(await constraintOf(world.sql(use))).toBe('none');
});

test('of two sessions that know nothing of each other, the second waits for the first', async () => {
  await withHeldCredit();
  await action.release(CN_1);
  const [first, second] = [new pg.Client(world.databaseUrl), new pg.Client(world.databaseUrl)];
  await Promise.all([first.connect(), second.connect()]);
  const beside = async (one: string, other: string, end: 'COMMIT' | 'ROLLBACK') => {
    await first.query('BEGIN');
    await first.query(one);
    const waiting = constraintOf(second.query(other));
    await untilLockAwaited(world);
    await first.query(end);
    return waiting;
  };
  try {
    expect(await beside(PUT_ON_HOLD, APPLIED(false), 'ROLLBACK')).toBe('none');
    expect(await beside(PAID_OUT, PUT_ON_HOLD, 'COMMIT')).toBe('none');
    await action.release(CN_1);
    expect(await beside(PUT_ON_HOLD, APPLIED(false), 'COMMIT')).toBe('held_credit_not_used');
  } finally {
    await Promise.all([first.end(), second.end()]);
  }
});

test('a hold and a use of the credit at the same time come one after the other', async () => {
  await withHeldCredit();
  await action.release(CN_1);
  const outcomes = await Promise.allSettled([
    action.hold(CN_1),
    action.apply(CN_1, INV_2, '1'),
    refunded('2'),
    action.apply(CN_1, INV_2, '3'),
  ]);
  const rejected = outcomes.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
  for (const each of rejected) expect(each).toMatchObject({ code: 'document_on_hold' });
  expect(outcomes[0]?.status).toBe('fulfilled');
  await expectVerified(world);
});
