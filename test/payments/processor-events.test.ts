/** The processor's events: repeated, reordered, of the other mode, unreadable; the books end the same. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { rerunDocument } from '../../src/documents/rerun.ts';
import { voidDocument } from '../../src/documents/void.ts';
import { COMMITMENTS_USED } from '../../src/log/personal.sql.ts';
import { reversePayment } from '../../src/payments/reverse.ts';
import { amountOfUnits } from '../../src/processors/stripe/events.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { someOf, times } from '../support/sweep.ts';
import { type Books, inv, openBooks, refusalOf } from './books.ts';
import { event, makeLinks, stripePayment } from './stripe-events.ts';

let books: Books;
beforeAll(async () => {
  books = await openBooks();
});
afterAll(async () => {
  await books.verified();
  await books.end();
});

const stateOf = async (own: Books) => ({
  payments: (await own.payments()).map(
    ({ amount, applied, unapplied, reversed, status, partner_id, method, received_on, disputes }) => ({
      ...{ amount, applied, unapplied, reversed, status, partner_id, method, received_on },
      disputes: disputes.map(({ outcome, amount: disputed }) => ({ outcome, disputed })),
    }),
  ),
  documents: (await own.documents()).map(({ number, amount_paid, balance, status }) => ({
    number,
    amount_paid,
    balance,
    status,
  })),
});

test('ACH debit: an ordered payment is not paid; it is recorded once when it is', async () => {
  const linked = stripePayment({ invoice: inv(1), amount: 125000, key: 'ACH' });
  expect(await books.events([linked.ordered()])).toMatchObject({ stored: 1, effects: 0, without_effect: 1 });
  expect(await books.balance(inv(1))).toMatchObject({ status: 'open', amount_paid: '0.00' });
  const paid = linked.paidLater();
  expect(await books.events([paid, linked.intentSucceeded()])).toMatchObject({ stored: 2, effects: 1 });
  expect(await books.events([paid])).toMatchObject({ stored: 0, known: 1, effects: 0 });
  expect(await books.balance(inv(1))).toMatchObject({ status: 'paid', amount_paid: '1250.00' });
  expect(await books.payments('p-1')).toMatchObject([
    {
      method: 'link',
      source: 'processor',
      reference: linked.ids.intent,
      applications: [{ evidence: { rule: 'processor' } }],
    },
  ]);
});

test('a failure after the success changes nothing: states move forward', async () => {
  const linked = stripePayment({ invoice: inv(9), amount: 7777, key: 'FWD' });
  await books.events([linked.completed()]);
  await books.events([linked.failedLater(), linked.ordered()]);
  expect(await books.balance(inv(9))).toMatchObject({ status: 'paid' });
});

test('a refund event states the total: each adds the difference, and reopens the invoice by it', async () => {
  const linked = stripePayment({ invoice: inv(2), amount: 84000, key: 'REF' });
  await books.events([linked.completed(), linked.refunded(10000)]);
  expect(await books.balance(inv(2))).toMatchObject({ balance: '100.00', amount_paid: '740.00' });
  await books.events([linked.refunded(30000), linked.refunded(10000)]);
  expect(await books.balance(inv(2))).toMatchObject({ balance: '300.00', amount_paid: '540.00' });
});

test.each(['refund.failed', 'refund.updated', 'charge.refund.updated'])(
  'a refund that fails later pays its invoice again: %s',
  async (type) => {
    const own = await openBooks();
    const linked = stripePayment({ invoice: inv(2), amount: 84000, key: 'FAIL' });
    await own.events([linked.completed(), linked.refunded(10000, 10)]);
    // That it succeeded is no news.
    const succeeded = linked.refund(10000, { status: 'succeeded', type, made: 10 });
    expect(await own.events([succeeded])).toMatchObject({ effects: 0, without_effect: 1, manual_review: [] });
    expect(await own.balance(inv(2))).toMatchObject({ status: 'open', balance: '100.00' });
    const failed = linked.refund(10000, { type, made: 10, after: 3600 });
    expect(await own.events([failed])).toMatchObject({ effects: 1, manual_review: [] });
    expect(await own.balance(inv(2))).toMatchObject({ status: 'paid', amount_paid: '840.00' });
    // Made anew, to the same total.
    await own.events([linked.refunded(10000, 7200), { ...failed, id: 'evt_again' }]);
    expect(await own.balance(inv(2))).toMatchObject({ status: 'open', balance: '100.00' });
    await own.verified();
    await own.end();
  },
);

test('what the processor says last of the total counts, and only a part that failed is paid again', async () => {
  const own = await openBooks();
  const linked = stripePayment({ invoice: inv(2), amount: 84000, key: 'LAST' });
  await own.events([
    linked.completed(),
    linked.refunded(30000, 20),
    linked.changed(10000, 30),
    linked.refunded(20000, 10),
  ]);
  expect(await own.balance(inv(2))).toMatchObject({ balance: '100.00', amount_paid: '740.00' });
  await own.events([linked.changed(0, 40)]);
  expect(await own.balance(inv(2))).toMatchObject({ status: 'paid' });
  await own.verified();
  await own.end();
});

test('a refund that failed after its data was erased is paid again', async () => {
  const own = await openBooks();
  const linked = stripePayment({ invoice: inv(2), amount: 84000, key: 'ERASED' });
  await own.events([linked.completed(), linked.refunded(10000, 10), linked.refunded(30000, 20)]);
  await own.sql(GUARDS_OFF);
  await own.sql(`UPDATE processor_events SET payload = NULL`);
  await own.sql(GUARDS_ON);
  await own.events([linked.refund(10000, { made: 10, after: 30 }), linked.refunded(20000, 15)]);
  expect(await own.balance(inv(2))).toMatchObject({ balance: '200.00' });
  await own.events([linked.refund(10000, { made: 10, after: 40, type: 'refund.updated' })]);
  expect(await own.balance(inv(2))).toMatchObject({ balance: '200.00' });
  await own.events([linked.refund(20000, { made: 20, after: 50 })]);
  expect(await own.balance(inv(2))).toMatchObject({ status: 'paid' });
  await own.end();
});

test('a refund of unknown status needs a review, and one that was entered by hand and failed does', async () => {
  const own = await openBooks();
  const linked = stripePayment({ invoice: inv(2), amount: 84000, key: 'HAND' });
  await own.events([linked.completed()]);
  const [payment] = await own.payments();
  await own.database.transaction((tx) =>
    reversePayment(tx, own.acting, {
      ...{ paymentId: payment?.payment_id ?? 0, kind: 'refunded', amount: '100.00', reason: 'refunded at Stripe' },
    }),
  );
  expect(await own.events([linked.refunded(10000, 10)])).toMatchObject({ effects: 0 });
  const report = await own.events([
    linked.refund(10000, { made: 10, after: 20 }),
    linked.refund(500, { made: 30, type: 'refund.updated', status: 'lost_in_the_post' }),
  ]);
  expect(report.manual_review.map(({ reason }) => reason)).toEqual([
    'a refund of 100.00 USD entered by hand failed: record the money as a payment again',
    'a refund that is lost_in_the_post is not known',
  ]);
  await own.verified();
  await own.end();
});

test('a dispute that was lost is won by the appeal', async () => {
  const own = await openBooks();
  const linked = stripePayment({ invoice: inv(6), amount: 84000, key: 'APPEAL' });
  await own.events([linked.completed(), linked.disputed(), linked.closed('lost')]);
  const report = await own.events([linked.appealed('appeal_needs_response'), linked.appealed('appeal_under_review')]);
  expect(report).toMatchObject({ effects: 0, without_effect: 2, manual_review: [] });
  expect(await own.balance(inv(6))).toMatchObject({ status: 'open' });
  await own.events([linked.closed('won'), linked.appealed('appeal_under_review')]);
  expect(await own.balance(inv(6))).toMatchObject({ status: 'paid' });
  expect((await own.payments('p-2')).flatMap((each) => each.disputes)).toMatchObject([{ outcome: 'won' }]);
  await own.verified();
  await own.end();
});

test('a payment of a void invoice that was given back pays neither the invoice nor its replacement', async () => {
  const own = await openBooks();
  const linked = stripePayment({ invoice: inv(1), amount: 5000, key: 'BACK' });
  await own.database.transaction((tx) => voidDocument(tx, own.acting, { number: inv(1), reason: 'wrong' }));
  await own.events([linked.completed(), linked.refunded(5000)]);
  const { issued } = await own.database.transaction((tx) => rerunDocument(tx, own.acting, inv(1), { newTerms: false }));
  expect(await own.events([linked.intentSucceeded()])).toMatchObject({ stored: 1, effects: 0, without_effect: 1 });
  expect(await own.balance(issued[0]?.number ?? '')).toMatchObject({ status: 'open', amount_paid: '0.00' });
  await own.end();
});

test('a dispute withdraws the payment until it is won; an inquiry withdraws nothing', async () => {
  const linked = stripePayment({ invoice: inv(6), amount: 84000, key: 'DIS' });
  await books.events([linked.completed(), linked.disputed('warning_needs_response')]);
  expect(await books.balance(inv(6))).toMatchObject({ status: 'paid' });
  await books.events([linked.withdrawn()]);
  expect(await books.balance(inv(6))).toMatchObject({ status: 'open', amount_paid: '0.00' });
  const [payment] = (await books.payments('p-2')).filter((each) => each.disputes.length > 0);
  expect(payment).toMatchObject({ status: 'reversed', disputes: [{ outcome: null, amount: '840.00' }] });
  await books.events([linked.closed('won')]);
  expect(await books.balance(inv(6))).toMatchObject({ status: 'paid', amount_paid: '840.00' });
});

test('unreadable events need a review; events of others change nothing', async () => {
  const report = await books.events([
    event('charge.dispute.escalated', { id: 'du_x' }),
    event('payment_intent.succeeded', { id: 'pi_broken', status: 'succeeded' }),
    event('customer.created', { id: 'cus_1' }),
    event('payment_intent.succeeded', {}, { account: 'acct_other' }),
    stripePayment({ amount: 500, key: 'NOINV' }).intentSucceeded(),
    stripePayment({ invoice: 'INV-1999-000001', amount: 600, key: 'NODOC' }).intentSucceeded(),
  ]);
  expect(report.manual_review.map((each) => each.type)).toEqual([
    'charge.dispute.escalated',
    'payment_intent.succeeded',
  ]);
  const unknown = (await books.payments()).filter((each) => each.partner_id === null);
  expect(unknown.map((each) => each.amount)).toEqual(['5.00', '6.00']);
});

test('a refund and a dispute of an unknown payment wait for it', async () => {
  const linked = stripePayment({ invoice: inv(10), amount: 150000, key: 'LATE' });
  const report = await books.events([linked.disputed(), linked.closed('lost')]);
  expect(report.waiting).toHaveLength(2);
  expect((await books.events([linked.completed()])).waiting).toEqual([]);
  expect(await books.balance(inv(10))).toMatchObject({ status: 'open', amount_paid: '0.00' });
});

test('events of the other mode refuse their whole file', async () => {
  const good = stripePayment({ invoice: inv(11), amount: 210000, key: 'MODE' }).completed();
  const live = event('payment_intent.succeeded', {}, { livemode: true });
  expect(await refusalOf(books.events([good, live]))).toBe('processor_environment');
  expect(await books.balance(inv(11))).toMatchObject({ status: 'open' });
});

test('an event from the future is refused with its line; an unpaired surrogate is stored as U+FFFD', async () => {
  for (const created of ['999999999999', Date.parse('2026-10-17T12:00:00Z') / 1000]) {
    const action = books.events([event('customer.created', { id: 'cus_2' }, { created })]);
    await expect(action).rejects.toThrow(/line 1.*created/s);
    expect(await refusalOf(action)).toBe('processor_events_invalid');
  }
  const object = { id: 'cus_3', name: 'a\u0000b \ud800 \\u0000 😀', note: '\\ud83d\\ude00' };
  expect(await books.events([event('customer.created', object)])).toMatchObject({ stored: 1, without_effect: 1 });
  const [kept] = await books.sql(
    `SELECT payload->'data'->'object' AS object FROM processor_events WHERE payload->'data'->'object'->>'id' = 'cus_3'`,
  );
  expect(kept).toEqual({ object: { ...object, name: 'a\ufffdb \ufffd \\u0000 😀' } });
});

test('events that wait leave no audit event', async () => {
  const linked = stripePayment({ amount: 900, key: 'WAITS' });
  await books.events([linked.disputed()]);
  const audited = () => books.sql(`SELECT count(*)::int AS events FROM audit_events`);
  const before = await audited();
  expect((await books.events([])).waiting).toHaveLength(1);
  expect(await audited()).toEqual(before);
  await books.events([linked.completed()]);
  expect(await audited()).not.toEqual(before);
});

test('amounts are exact in every currency of the processor', () => {
  const cases: readonly (readonly [string, string, string | undefined])[] = [
    ['98050', 'usd', '980.50'],
    ['5', 'usd', '0.05'],
    ['700', 'jpy', '700'],
    ['70000', 'isk', '700'],
    ['70050', 'isk', undefined],
    ['1230', 'kwd', '1.230'],
    ['12', 'mga', '12.00'],
    ['1', 'xxx', undefined],
    ['99999999', 'eur', '999999.99'],
  ];
  for (const [units, currency, amount] of cases) expect(amountOfUnits(units, currency)?.toString()).toBe(amount);
});

function permutations<Item>(items: readonly Item[]): Item[][] {
  if (items.length < 2) return [[...items]];
  return items.flatMap((item, at) =>
    permutations([...items.slice(0, at), ...items.slice(at + 1)]).map((rest) => [item, ...rest]),
  );
}

describe('a payment pays an invoice only through a link that we made', () => {
  const suggested = async (reference: string) => {
    const [payment] = (await books.payments()).filter((each) => each.reference === reference);
    return payment?.suggestions.map((each) => [each.number, each.evidence.why.split(':')[0]]);
  };

  test('the metadata of a charge that a platform routed pays nothing, and a person is told', async () => {
    const charge = {
      ...{ id: 'py_routed1', object: 'charge', amount: 210000, amount_refunded: 0, currency: 'usd', paid: true },
      ...{ status: 'succeeded', source_transfer: 'tr_1', metadata: { invoice: inv(11) } },
    };
    const report = await books.events([event('charge.succeeded', charge)]);
    expect(report.manual_review.map((each) => each.reason)).toContain(
      `routed by transfer tr_1, and its metadata names ${inv(11)}: a share pays no invoice`,
    );
    const direct = { ...charge, id: 'ch_direct1', source_transfer: null, metadata: {}, application_fee_amount: 500 };
    expect(await books.events([event('charge.succeeded', direct)])).toMatchObject({ effects: 0, without_effect: 1 });
    expect(await books.balance(inv(11))).toMatchObject({ status: 'open', amount_paid: '0.00' });
    expect((await books.payments()).filter((each) => each.amount === '2100.00')).toEqual([]);
  });

  test('metadata alone waits a day for the event that names the link, then is a suggestion', async () => {
    const told = stripePayment({ invoice: inv(7), amount: 4242, key: 'TOLD' });
    expect((await books.events([told.intentSucceeded()])).waiting.map((each) => each.reason)).toEqual([
      `for the event that names the payment link that was paid: only its metadata names ${inv(7)}`,
    ]);
    books.at('2026-10-16T15:00:00Z');
    expect(await books.events([])).toMatchObject({ effects: 1, waiting: [] });
    expect(await suggested(told.ids.intent)).toEqual([[inv(7), `only its metadata names ${inv(7)}`]]);
    books.at('2026-10-15T15:00:00Z');
  });

  test.each([
    [
      'of a link that is not ours',
      'FOREIGN',
      'plink_foreign',
      `its metadata names ${inv(11)}, but its link is not ours`,
    ],
    ['without a link', 'NOLINK', null, undefined],
  ])('a session %s', async (_, key, link, why) => {
    const paid = stripePayment({ invoice: inv(11), amount: 200000, key, link });
    const report = await books.events([paid.completed()]);
    if (why === undefined) expect(report.waiting).toHaveLength(1);
    else expect(await suggested(paid.ids.intent)).toEqual([[inv(11), why]]);
    expect(await books.balance(inv(11))).toMatchObject({ status: 'open', amount_paid: '0.00' });
  });

  test('another amount, currency or installation than the link was made with', async () => {
    const made = stripePayment({ invoice: inv(3), amount: 33333, key: 'SHORT' });
    await makeLinks(books.sql, [made.completed()]);
    const link = 'plink_madeSHORT';
    for (const [key, other] of [
      ['LESS', { amount: 33332 }],
      ['YEN', { amount: 33333, currency: 'jpy' }],
      ['EURO', { amount: 33333, currency: 'eur' }],
    ] as const) {
      await books.events([stripePayment({ invoice: inv(3), link, key, ...other }).completed()]);
      expect(await books.balance(inv(3))).toMatchObject({ status: 'open', amount_paid: '0.00' });
    }
    const object = { ...(made.completed() as { data: { object: object } }).data.object, id: 'cs_test_x1234567' };
    const elsewhere = { ...object, metadata: { invoice: inv(3), installation: 'another' } };
    await books.events([event('checkout.session.completed', elsewhere)]);
    expect(await books.balance(inv(3))).toMatchObject({ status: 'open', amount_paid: '0.00' });
    await books.events([made.completed()]);
    expect(await books.balance(inv(3))).toMatchObject({ status: 'paid', amount_paid: '333.33' });
  });
});

describe('in any order, together or one by one, events lead to the same books', () => {
  const linked = stripePayment({ invoice: inv(1), amount: 125000, key: 'ANY' });
  const stories = {
    'paid, refunded in part, disputed and won': [
      linked.ordered(),
      linked.paidLater(),
      linked.refunded(25000),
      linked.disputed('needs_response', 100000),
      linked.closed('won', 100000),
    ],
    'paid, refunded twice, of which the first refund fails': [
      linked.completed(),
      linked.refunded(10000, 10),
      linked.refunded(25000, 20),
      linked.refund(10000, { made: 10, after: 30 }),
      linked.refund(10000, { made: 10, after: 40, type: 'refund.updated' }),
    ],
    'paid, refunded in vain, and refunded anew': [
      linked.completed(),
      linked.refunded(25000, 10),
      linked.refund(25000, { made: 10, after: 20 }),
      linked.changed(0, 30),
      linked.refunded(25000, 40),
    ],
    'paid, disputed, lost and won by the appeal': [
      linked.completed(),
      linked.disputed(),
      linked.closed('lost'),
      linked.appealed('appeal_under_review'),
      linked.closed('won'),
    ],
    'paid, disputed and lost': [
      linked.completed(),
      linked.intentSucceeded(),
      linked.disputed(),
      linked.withdrawn(),
      linked.closed('lost'),
    ],
  };
  const RECORDED = [
    ...['payments', 'payment_sources', 'payment_applications', 'payment_unapplications', 'payment_reversals'],
    ...['payment_reinstatements', 'payment_assignments', 'payment_suggestions', 'processor_events', 'disputes'],
    ...['processor_event_outcomes', 'dispute_outcomes', 'small_differences', 'payouts', 'payout_settlements'],
    ...['payout_payments', 'bank_line_outcomes'],
  ];
  for (const [name, events] of Object.entries(stories)) {
    test(name, { timeout: 240_000 }, async () => {
      const own = await openBooks();
      let expected: unknown;
      const all = permutations(events);
      expect(all).toHaveLength(120);
      const orders = someOf(all, times({ few: 20, short: 60, long: 120 }));
      for (const [index, order] of orders.entries()) {
        // Each order from the same beginning: what was recorded is taken away behind the program's back.
        await own.sql(GUARDS_OFF);
        await own.sql(RECORDED.map((table) => `DELETE FROM ${table}`).join('; '));
        await own.sql(
          `DELETE FROM personal_texts WHERE commitment NOT IN (SELECT commitment FROM (${COMMITMENTS_USED}) AS used)`,
        );
        await own.sql(GUARDS_ON);
        if (index % 2 === 0) await own.events(order);
        else for (const each of order) await own.events([each]);
        const state = await stateOf(own);
        expected ??= state;
        expect(state).toEqual(expected);
      }
      await own.verified();
      await own.end();
    });
  }
});
