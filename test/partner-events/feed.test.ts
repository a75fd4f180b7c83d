/** A partner's events: what they say, in which order, who sees them, and that none is lost, doubled or moved. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { closeDispute, openDispute } from '../../src/documents/disputes.ts';
import { discardRows, refuseReversal } from '../../src/ledger/held.ts';
import { EVENT_TYPES } from '../../src/partner-events/event.ts';
import { Publisher } from '../../src/partner-events/publish.ts';
import { refundCredit, returnRefund } from '../../src/payments/refund.ts';
import { correctionsOf, document, expectVerified } from '../documents/correcting.ts';
import { booksOf } from '../payments/books.ts';
import { type Caller, PRICED, type Served, serveWorld } from '../support/service.ts';
import { openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';

interface Event {
  readonly event_id: string;
  readonly position: number;
  readonly type: string;
  readonly recorded_at: string;
  readonly data: Record<string, unknown>;
}

let world: World;
let served: Served;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner(PRICED), partner({ ...PRICED, partner_id: 'p-2' }), partner({ partner_id: 'p-3' })]);
  served = await serveWorld(world);
});
afterAll(async () => {
  await served.end();
  await world.end();
});

const eventsOf = async (caller: Caller, query = '?limit=1000'): Promise<Event[]> => {
  const { status, body, text } = await caller.get(`/api/v1/events${query}`);
  if (status !== 200) throw new Error(text);
  return body as unknown as Event[];
};
function signal(): { readonly given: Promise<void>; readonly give: () => void } {
  let give: () => void = () => {};
  const given = new Promise<void>((resolve) => {
    give = resolve;
  });
  return { given, give };
}
const typesOf = (events: readonly Event[]) => events.map(({ type }) => type);

describe('a partner reads', () => {
  let caller: Caller;
  let other: Caller;
  const imported = quote({
    ...{ quote_id: 'q-imported', enrollment_id: '', accepted_at: '2026-07-10T12:00:00Z' },
    ...{ order_reference: 'ORD-1', cover_from: '2026-07-10' },
  });

  beforeAll(async () => {
    caller = await served.caller('p-1');
    other = await served.caller('p-2');
    const made = await caller.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '250' });
    await caller.get(`/api/v1/quote/${made.body['quote_id']}/accept`);
    await world.rows([
      ...[
        imported,
        requote(imported, { requote_id: 'rq-imported' }),
        reversal(imported, { reversal_id: 'rv-imported' }),
      ],
      ...[quote({ accepted_at: '2026-07-11T12:00:00Z' }), quote({ partner_id: 'p-2', quote_id: 'q-of-other' })],
      quote({ partner_id: 'p-3', quote_id: 'q-3' }),
    ]);
    await world.close('2026-07');
    await world.deliver();
    world.at('2026-08-05T12:00:00Z');
    const books = booksOf(world);
    const correct = correctionsOf(world);
    const { paymentId } = await books.record({ amount: '2.00', number: 'INV-2026-000001', receivedOn: '2026-08-04' });
    await books.unapply(paymentId);
    const note = await correct.credit('INV-2026-000001', '3.00');
    await correct.unapply(note, 'INV-2026-000001');
    const refund = { number: note, amount: '1.00', method: 'ach', reference: 'out-1' } as const;
    await world.database.transaction((tx) => refundCredit(tx, books.acting, refund));
    const returned = { number: note, reason: 'account closed' };
    await world.database.transaction((tx) => returnRefund(tx, books.acting, returned));
    const disputed = { number: 'INV-2026-000001', reason: 'too many', amount: '1.00', owner: 'Bea' };
    await world.database.transaction((tx) => openDispute(tx, world, disputed));
    await world.database.transaction((tx) => closeDispute(tx, world, { number: 'INV-2026-000001', reason: 'agreed' }));
    await correct.hold('INV-2026-000001', 'an internal matter');
    await correct.release('INV-2026-000001');
    await correct.rerun('INV-2026-000001').catch(() => {});
    await correct.voided('INV-2026-000001', 'an internal reason');
    await correct.rerunMonth('2026-07', { partnerId: 'p-1' });
    caller = await served.caller('p-1');
    other = await served.caller('p-2');
  });

  test('what happened, from the first event, each at its position', async () => {
    const events = await eventsOf(caller);
    expect(typesOf(events)).toEqual([
      ...['quote.accepted', 'quote.accepted', 'requote.accepted', 'reversal.recorded', 'quote.accepted'],
      ...['invoice.issued', 'document.sent', 'payment.applied', 'payment.unapplied'],
      ...['credit_note.issued', 'credit.applied', 'credit.unapplied', 'credit.refunded', 'credit.refund_returned'],
      ...['dispute.opened', 'dispute.closed', 'document.voided', 'invoice.issued', 'credit.applied'],
    ]);
    expect(events.map(({ position }) => position)).toEqual(events.map((_, index) => index + 1));
    expect(new Set(events.map(({ event_id: id }) => id)).size).toBe(events.length);
    expect(await eventsOf(caller)).toEqual(events);
    await expectVerified(world);
  });

  test('the values that the calls answered, with every amount exact', async () => {
    const events = await eventsOf(caller);
    const accepted = events[0]?.data as { quote_id: string };
    const { body } = await caller.get(`/api/v1/quote/${accepted.quote_id}/accept`);
    expect(accepted).toMatchObject({ ...body, policy_id: 'ticket-protection', posted_month: '2026-08' });
    expect(events[1]?.data).toMatchObject({ quote_id: 'q-imported', enrollment_id: null, spotPrice: 10 });
    expect(events[1]?.data).toMatchObject({ order_reference: 'ORD-1', cover_from: '2026-07-10', cover_to: null });
    expect(events[2]?.data).toMatchObject({ requote_id: 'rq-imported', incrementalInvoiceAmount: 3.5 });
    expect(events[3]?.data).toMatchObject({ reversal_id: 'rv-imported', requote_id: null, invoiceAmount: -7 });
    const invoice = await document(world, 'INV-2026-000001');
    const issued = events[5]?.data as object;
    expect(invoice).toMatchObject({ ...issued, amount_due: invoice.amount_due });
    expect(events[7]?.data).toEqual({
      ...{ number: 'INV-2026-000001', currency: 'USD', amount: '2.00', method: 'wire', received_on: '2026-08-04' },
    });
    expect(events[17]?.data).toMatchObject({ replaces: 'INV-2026-000001' });
    const { text } = await caller.get('/api/v1/events?limit=2');
    expect(text).toContain('"spotPrice":21.25,"partnerCut":6.38,"invoiceAmount":14.87');
    expect(JSON.stringify(events)).not.toMatch(/internal|Bea|too many|agreed/);
  });

  test('its own events alone, counted from 1', async () => {
    expect((await eventsOf(other)).map(({ position, type, data }) => [position, type, data['number']])).toEqual([
      [1, 'quote.accepted', undefined],
      [2, 'invoice.issued', 'INV-2026-000002'],
      [3, 'document.sent', 'INV-2026-000002'],
    ]);
  });

  test('page by page to the end, and nothing more until something happens', async () => {
    const read: Event[] = [];
    for (let path: string | undefined = '/api/v1/events?limit=5'; path !== undefined; ) {
      const { body, headers } = await caller.get(path);
      read.push(...(body as unknown as Event[]));
      path = /^<http:\/\/127\.0\.0\.1(.+)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1];
    }
    expect(read).toEqual(await eventsOf(caller));
    expect(await eventsOf(caller, `?cursor=${read.length}`)).toEqual([]);
    expect(await eventsOf(caller, `?cursor=${read.length - 1}`)).toEqual(read.slice(-1));
    expect(await eventsOf(caller, '?cursor=0&limit=1')).toEqual(read.slice(0, 1));
  });

  test('one type, with the positions that the events have among all', async () => {
    const all = await eventsOf(caller);
    const { body, headers } = await caller.get('/api/v1/events?type=invoice.issued&limit=1');
    expect(body).toEqual([all[5]]);
    expect(headers.get('link')).toContain('/api/v1/events?limit=1&type=invoice.issued&cursor=6');
    const rest = await eventsOf(caller, '?type=invoice.issued&cursor=6');
    expect(rest).toEqual(all.filter(({ type, position }) => type === 'invoice.issued' && position > 6));
  });

  test.each([
    ['an unknown parameter', '?after=3', 'after', 'is not a known parameter'],
    [
      'a cursor that is no position',
      '?cursor=INV-2026-000001',
      'cursor',
      'must be the position of an event, such as 17',
    ],
    ['a cursor below zero', '?cursor=-1', 'cursor', 'must be the position of an event, such as 17'],
    [
      'a cursor that is no count',
      '?cursor=9999999999999999999',
      'cursor',
      'must be the position of an event, such as 17',
    ],
    ['a cursor after the end', '?cursor=4000', 'cursor', /is after your last event/],
    ['a limit of zero', '?limit=0', 'limit', 'must be a whole number from 1 to 1000'],
    ['a type that does not exist', '?type=hold.made', 'type', /./],
  ])('%s is refused by its name', async (_, query, path, reason) => {
    expect(await caller.get(`/api/v1/events${query}`)).toMatchObject({
      status: 400,
      body: {
        code: 'request_invalid',
        problems: [{ path, reason: typeof reason === 'string' ? reason : expect.stringMatching(reason) }],
      },
    });
  });

  test('with the header of another partner nothing', async () => {
    const answer = await caller.get('/api/v1/events', { 'x-service-partner-id': 'p-2' });
    expect(answer).toMatchObject({ status: 403, body: { code: 'partner_header_mismatch' } });
  });

  test('every type that the description names is one that facts have', async () => {
    const [view] = await world.sql<{ sql: string }>(
      `SELECT pg_get_viewdef('partner_event_facts') || pg_get_functiondef('row_event_type'::regproc) AS sql`,
    );
    const documents = ['invoice.issued', 'credit_note.issued', 'statement.issued'];
    for (const type of EVENT_TYPES) expect(documents.includes(type) || view?.sql.includes(`'${type}'`)).toBe(true);
  });
});

describe('publishing', () => {
  const publisher = () => new Publisher(served.database);
  const positions = async (partnerId: string) =>
    (
      await world.sql<{ position: string; entry_id: string }>(
        'SELECT position, entry_id FROM partner_events WHERE partner_id = $1 ORDER BY position',
        [partnerId],
      )
    ).map(({ position, entry_id: entry }) => [Number(position), entry]);

  test('waits for who took a lower id, and blocks nobody', async () => {
    const before = (await positions('p-3')).length;
    const slow = signal();
    const inserted = signal();
    const insert = (quoteId: string) => `
      INSERT INTO audit_events (occurred_at, action, subject, details, os_user, host, via)
      VALUES (now(), 'ledger.import', '${quoteId}',
              '{"totals": {"USD": {"rows": 1, "spotPrice": "1", "partnerCut": "0", "invoiceAmount": "1"}}}', '', '', 'command');
      INSERT INTO ledger_rows (partner_id, posted_month, kind, quote_id, policy_id, currency, accepted_at, spot_price,
        partner_cut, invoice_amount, time_zone, month, arrangement, recorded_at, event_id)
      VALUES ('p-3', '2026-08', 'quote_accepted', '${quoteId}', 'parking', 'USD', '2026-08-01T09:00:00Z', 1, 0, 1,
              'America/New_York', '2026-08',
              'invoicing', now(), (SELECT event_id FROM audit_events WHERE subject = '${quoteId}'));
      INSERT INTO ledger_receipts (event_id, posted_month, partner_id, currency, entries, spot_price, partner_cut,
        invoice_amount)
      SELECT event_id, '2026-08', 'p-3', 'USD', 1, 1, 0, 1 FROM audit_events WHERE subject = '${quoteId}'`;
    const longImport = world.database.transaction(async (tx) => {
      await tx.knex.raw(insert('q-slow'));
      inserted.give();
      await slow.given;
    });
    await inserted.given;
    await served.database.transaction((tx) => tx.knex.raw(insert('q-fast')));
    const reader = publisher();
    await reader.publish(50);
    expect(await positions('p-3')).toHaveLength(before);
    slow.give();
    await longImport;
    await reader.publish(50);
    const rows = await world.sql<{ quote_id: string }>(
      `SELECT quote_id FROM partner_events e JOIN ledger_rows r USING (partner_id, entry_id)
       WHERE partner_id = 'p-3' AND position > $1 ORDER BY position`,
      [before],
    );
    expect(rows.map(({ quote_id: id }) => id)).toEqual(['q-slow', 'q-fast']);
  });

  test('leaves no gap for a transaction that was undone', async () => {
    const before = (await positions('p-3')).length;
    await world.rows([quote({ partner_id: 'p-3' })], { preview: true });
    await world.rows([quote({ partner_id: 'p-3' })]);
    await publisher().publish(1000);
    expect((await positions('p-3')).map(([position]) => position)).toEqual(
      Array.from({ length: before + 1 }, (_, index) => index + 1),
    );
    await expectVerified(world);
  });

  test('at once by many, next to acceptances and imports: a reader sees each event once, in order', async () => {
    const caller = await served.caller('p-2');
    let last = (await eventsOf(caller)).length;
    const first = last;
    const seen: Event[] = [];
    let working = true;
    const read = async () => {
      const page = await eventsOf(caller, `?cursor=${last}&limit=7`);
      seen.push(...page);
      last = page.at(-1)?.position ?? last;
      return page.length;
    };
    const reading = (async () => {
      while (working) if ((await read()) === 0) await sleep(2);
    })();
    const accept = async () => {
      for (let each = 0; each < 12; each += 1) {
        const made = await caller.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '250' });
        const { status } = await caller.get(`/api/v1/quote/${made.body['quote_id']}/accept`);
        expect(status).toBe(200);
      }
    };
    const bring = async (name: string) => {
      for (let each = 0; each < 4; each += 1) {
        const rows = Array.from({ length: 25 }, (_, row) =>
          quote({ partner_id: 'p-2', quote_id: `${name}-${each}-${row}`, accepted_at: '2026-07-31T12:00:00Z' }),
        );
        const file = world.file(`${name}.ndjson`, rows.map((row) => JSON.stringify(row)).join('\n'));
        expect(await world.importFiles([file])).toMatchObject({ accepted: 25 });
      }
    };
    const publish = async () => {
      const own = publisher();
      for (let each = 0; each < 40; each += 1) await Promise.all([own.publish(20), own.publish(0), sleep(5)]);
    };
    await Promise.all([accept(), accept(), accept(), bring('one'), bring('two'), publish(), publish()]);
    working = false;
    await reading;
    while ((await read()) > 0);
    expect(seen.map(({ position }) => position)).toEqual(seen.map((_, index) => first + index + 1));
    const ids = seen.map(({ data }) => data['quote_id']);
    expect(ids).toHaveLength(3 * 12 + 2 * 4 * 25);
    expect(new Set(ids).size).toBe(ids.length);
    // Pages that are read in several slices.
    const positionsOf = async (query: string) => (await eventsOf(caller, query)).map(({ position }) => position);
    const all = Array.from({ length: last }, (_, index) => index + 1);
    for (const limit of [99, 100, 101, 200, 230])
      expect(await positionsOf(`?limit=${limit}`)).toEqual(all.slice(0, limit));
    expect(await positionsOf('?limit=1000')).toEqual(all);
    expect(await positionsOf('?limit=1000&cursor=30&type=quote.accepted')).toEqual(all.slice(30));
    await expectVerified(world);
  });
});

test('a refused reversal tells why, but one that is discarded with its sale does not tell an internal reason', async () => {
  await world.partners([partner({ partner_id: 'p-4' })]);
  const send = (rows: readonly object[]) => world.rows(rows, { holds: true });
  const sold = { partner_id: 'p-4', accepted_at: '2026-06-01T12:00:00Z' };
  const [sale, other] = [quote({ ...sold, quote_id: 'q-sale' }), quote({ ...sold, quote_id: 'q-other' })];
  const double = { ...sale, quote_id: 'q-double' };
  const late = { accepted_at: '2026-08-05T11:00:00Z' };
  await send([sale, other]);
  await send([double, reversal(double, { ...late, reversal_id: 'of-double' })]);
  await send([reversal(other, { ...late, reversal_id: 'late' })]);
  const held = await world.sql<{ held_row_id: string; own_id: string }>(
    `SELECT held_row_id, own_id(h) AS own_id FROM held_rows h WHERE partner_id = 'p-4'`,
  );
  const idOf = (ownId: string) => Number(held.find(({ own_id }) => own_id === ownId)?.held_row_id);
  await world.database.transaction((tx) =>
    discardRows(tx, world, { ids: [idOf('q-double')], reason: 'their export is broken' }),
  );
  await world.database.transaction((tx) => refuseReversal(tx, world, { id: idOf('late'), reason: 'after the event' }));
  const caller = await served.caller('p-4');
  const rejected = (await eventsOf(caller)).filter(({ type }) => type === 'reversal.rejected');
  expect(rejected.map(({ data }) => [data['reversal_id'], data['reason']])).toEqual([['late', 'after the event']]);
  const body = { reversal_id: 'of-double', spotPrice: '-10.00', partnerCut: '-3.00', invoiceAmount: '-7.00' };
  expect((await caller.post('/api/v1/quote/q-double/reverse', body)).text).not.toContain('their export is broken');
  await expectVerified(world);
});
