/** Quotes, requotes and their acceptance as a partner's developer meets them, and what the ledger has of them after. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { describeDifferingCut } from '../../src/ledger/quoted.ts';
import { readStatus } from '../../src/reports/status.ts';
import { type Caller, PRICED, type Served, serveWorld } from '../support/service.ts';
import { openWorld, partner, requote as requoteRow, reversal, type World } from '../support/world.ts';
import { offersOf } from './offers.ts';

let world: World;
let served: Served;
let harbour: Caller;
let lantern: Caller;

beforeAll(async () => {
  world = await openWorld();
  world.at('2026-07-15T12:00:00.250Z');
  await world.partners([
    partner(PRICED),
    partner({ ...PRICED, partner_id: 'p-2', name: 'Lantern' }),
    partner({
      ...PRICED,
      partner_id: 'p-yen',
      name: 'Tokyo Tickets',
      currency: 'JPY',
      time_zone: 'Asia/Tokyo',
      policies: [{ ...PRICED.policies[0], price: { rate: '0.085', minimum: '200' } }],
    }),
  ]);
  const quotes = { valid_days: 30, largest_price: { '*': '999999999999999' } };
  served = await serveWorld(world, { settings: { quotes } });
  harbour = await served.caller('p-1');
  lantern = await served.caller('p-2');
});
afterAll(async () => {
  expect(await world.verify()).toMatchObject({ differences: 0 });
  await served.end();
  await world.end();
});

const { quoted, accepted, requoted } = offersOf(() => harbour);
const rowsOf = (quoteId: string) =>
  world.sql<Record<string, string>>(
    `SELECT kind, requote_id, enrollment_id, spot_price::text, partner_cut::text, invoice_amount::text, month,
            posted_month, time_zone, arrangement, accepted_at
     FROM ledger_rows WHERE quote_id = $1 ORDER BY entry_id`,
    [quoteId],
  );
const counts = async () =>
  (
    await world.sql(
      `SELECT (SELECT count(*) FROM ledger_rows)::int AS entries, (SELECT count(*) FROM quotes)::int AS quotes,
              (SELECT count(*) FROM requotes)::int AS requotes,
              (SELECT count(*) FROM quote_acceptances)::int + (SELECT count(*) FROM requote_acceptances)::int AS accepted`,
    )
  )[0];
const refused = async (answer: Promise<{ status: number; body: Record<string, unknown> }>) => {
  const before = await counts();
  const { status, body } = await answer;
  expect(await counts()).toEqual(before);
  return [status, body['code']];
};

describe('the settings', () => {
  let limited: Served;
  beforeAll(async () => {
    limited = await serveWorld(world, {
      settings: { quotes: { valid_days: 1, largest_price: { USD: '85', '*': '1' } } },
    });
  });
  afterAll(() => limited.end());
  const ask = async (insured_amount: string) =>
    (await limited.caller('p-1')).post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount });

  test('name the largest price that is quoted', async () => {
    expect(await ask('1000')).toMatchObject({ status: 201, body: { spotPrice: 85 } });
    expect(await ask('1000.10')).toMatchObject({
      status: 422,
      body: { code: 'price_too_large', currency: 'USD', largest: '85' },
    });
  });

  test('say how long a quote can be accepted; one that was accepted in time stays accepted', async () => {
    const [late, early] = [await ask('250'), await ask('250')];
    expect(late.body).toMatchObject({ quoted_at: '2026-07-15T12:00:00.250Z', expires_at: '2026-07-16T12:00:00.250Z' });
    const accept = async (id: unknown) => (await limited.caller('p-1')).get(`/api/v1/quote/${id}/accept`);
    world.at('2026-07-16T12:00:00.249Z');
    const accepted = await accept(early.body['quote_id']);
    expect(accepted.status).toBe(200);
    world.at('2026-07-16T12:00:00.250Z');
    expect(await refused(accept(late.body['quote_id']))).toEqual([422, 'quote_expired']);
    expect(await accept(early.body['quote_id'])).toMatchObject({ status: 200, text: accepted.text });
    const read = await (await limited.caller('p-1')).get(`/api/v1/quote/${late.body['quote_id']}`);
    expect(read.body).toMatchObject({ status: 'expired', accepted_at: null });
    world.at('2026-07-15T12:00:00.250Z');
  });
});

describe('a quote', () => {
  test('is the price by the policy’s terms, in the partner’s currency, and records no row', async () => {
    const answer = await harbour.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '250.00' });
    expect(answer.status).toBe(201);
    expect(answer.text).toContain(
      '"currency":"USD","insured_amount":250.00,"spotPrice":21.25,"partnerCut":6.38,"invoiceAmount":14.87',
    );
    expect(await rowsOf(answer.body['quote_id'] as string)).toEqual([]);
    expect((await harbour.get(`/api/v1/quote/${answer.body['quote_id']}`)).text).toBe(answer.text);
  });

  test('reads a number from its text, never through binary floating point', async () => {
    const body = '{"policy_id":"ticket-protection","insured_amount":999999999999999.99}';
    const answer = await harbour.post('/api/v1/quote', body);
    expect(answer.text).toContain('"insured_amount":999999999999999.99,"spotPrice":85000000000000.00,');
    expect((await harbour.post('/api/v1/quote', body.replace('999999999999999.99', '0.10'))).text).toContain(
      '"insured_amount":0.10',
    );
  });

  test('in yen has no decimals and refuses an amount with decimals', async () => {
    const tokyo = await served.caller('p-yen');
    const answer = await tokyo.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: 12_345 });
    expect(answer.text).toContain(
      '"currency":"JPY","insured_amount":12345,"spotPrice":1049,"partnerCut":315,"invoiceAmount":734',
    );
    const wrong = await tokyo.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '10.5' });
    expect(wrong).toMatchObject({
      status: 400,
      body: { code: 'request_invalid', problems: [{ path: 'insured_amount' }] },
    });
  });

  test.each([
    ['an exponent', '1e3'],
    ['a plus', '"+1"'],
    ['separators', '"1,000.00"'],
    ['too many decimals', '1.234'],
    ['a negative amount', '-1'],
    ['too much', '1000000000000000'],
    ['nothing', 'null'],
    ['a list', '[1]'],
    ['an object', '{"amount":1}'],
    ['true', 'true'],
    ['an empty text', '""'],
  ])('refuses %s as the insured amount', async (_, value) => {
    const body = `{"policy_id":"ticket-protection","insured_amount":${value}}`;
    expect(await refused(harbour.post('/api/v1/quote', body))).toEqual([400, 'request_invalid']);
  });

  test.each([
    ['no JSON', '{"policy_id":'],
    ['a text', '"ticket-protection"'],
    ['an unknown field', '{"policy_id":"ticket-protection","insured_amount":"1","currency":"EUR"}'],
    ['a missing field', '{"policy_id":"ticket-protection"}'],
    ['a number as the policy', '{"policy_id":5,"insured_amount":"1"}'],
    ['nothing at all', ''],
  ])('refuses a body that is %s', async (_, body) => {
    expect(await refused(harbour.post('/api/v1/quote', body))).toEqual([400, 'request_invalid']);
  });

  test.each([
    ['true', 'insured_amount', 'must be a decimal, as a number or a string'],
    ['1e3', 'insured_amount', 'is not a plain decimal such as 12.50'],
  ])('says what is expected of %s', async (value, path, reason) => {
    const body = `{"policy_id":"ticket-protection","insured_amount":${value}}`;
    expect(await harbour.post('/api/v1/quote', body)).toMatchObject({ body: { problems: [{ path, reason }] } });
  });

  test('refuses a field that is given twice', async () => {
    const body = '{"policy_id":"ticket-protection","insured_amount":"1","insured_amount":"2"}';
    expect(await harbour.post('/api/v1/quote', body)).toMatchObject({
      status: 400,
      body: { problems: [{ path: 'insured_amount', reason: 'is given more than once' }] },
    });
  });

  test('of many unknown fields the refusal names the first twenty', async () => {
    const fields = Object.fromEntries(Array.from({ length: 300 }, (_, nth) => [`k${nth}`, '1']));
    const body = { policy_id: 'ticket-protection', insured_amount: '1', ...fields };
    const answer = await harbour.post('/api/v1/quote', body);
    expect(answer).toMatchObject({ status: 400, body: { code: 'request_invalid' } });
    expect(answer.body['problems']).toHaveLength(20);
  });

  test('says that a string was expected instead of a number', async () => {
    const answer = await harbour.post('/api/v1/quote', '{"policy_id":5,"insured_amount":"1"}');
    expect(answer).toMatchObject({
      body: { problems: [{ path: 'policy_id', reason: 'must be a string, not a number' }] },
    });
  });

  test('of another partner’s policy, or a policy without a price, is refused', async () => {
    const ask = (policy_id: string) => harbour.post('/api/v1/quote', { policy_id, insured_amount: '1' });
    expect(await refused(ask('nobodys'))).toEqual([404, 'policy_unknown']);
    expect(await refused(ask('unpriced'))).toEqual([422, 'policy_not_priced']);
  });
});

describe('accepting a quote', () => {
  test('records one ledger row at that instant, in the month of the partner’s zone, and answers its values', async () => {
    const id = await quoted();
    const answer = await harbour.get(`/api/v1/quote/${id}/accept`);
    expect(answer.status).toBe(200);
    expect(answer.text).toMatch(
      new RegExp(
        `^{"quote_id":"${id}","enrollment_id":"e-[0-9a-f-]{36}","currency":"USD",` +
          `"accepted_at":"2026-07-15T12:00:00.250Z","spotPrice":21.25,"partnerCut":6.38,"invoiceAmount":14.87}$`,
      ),
    );
    expect(await rowsOf(id)).toEqual([
      {
        kind: 'quote_accepted',
        requote_id: null,
        enrollment_id: answer.body['enrollment_id'],
        spot_price: '21.25',
        partner_cut: '6.38',
        invoice_amount: '14.87',
        month: '2026-07',
        posted_month: '2026-07',
        time_zone: 'America/New_York',
        arrangement: 'invoicing',
        accepted_at: new Date('2026-07-15T12:00:00.250Z'),
      },
    ]);
    expect((await harbour.get(`/api/v1/quote/${id}`)).body).toMatchObject({
      status: 'accepted',
      enrollment_id: answer.body['enrollment_id'],
      accepted_at: '2026-07-15T12:00:00.250Z',
    });
  });

  test('again, by GET or POST, half an hour later, gives the same bytes and records nothing', async () => {
    const id = await quoted();
    const first = await harbour.get(`/api/v1/quote/${id}/accept`);
    const before = await counts();
    world.at('2026-07-15T12:30:00Z');
    const again = await Promise.all([
      harbour.get(`/api/v1/quote/${id}/accept`),
      harbour.post(`/api/v1/quote/${id}/accept`),
    ]);
    world.at('2026-07-15T12:00:00.250Z');
    expect(again.map(({ text }) => text)).toEqual([first.text, first.text]);
    expect(await counts()).toEqual(before);
  });

  test('forty times concurrently records one row and gives everyone the same answer', async () => {
    const id = await quoted();
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        index % 2 === 0 ? harbour.get(`/api/v1/quote/${id}/accept`) : harbour.post(`/api/v1/quote/${id}/accept`),
      ),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(await rowsOf(id)).toHaveLength(1);
  });

  test('cannot be done by HEAD, a prefetch or a cache', async () => {
    const id = await quoted();
    const path = `/api/v1/quote/${id}/accept`;
    const head = await fetch(`${served.url}${path}`, {
      method: 'HEAD',
      headers: { authorization: `Bearer ${harbour.token}`, 'x-service-partner-id': 'p-1' },
    });
    expect([head.status, head.headers.get('allow')]).toEqual([405, 'GET, POST']);
    for (const header of [{ purpose: 'prefetch' }, { 'sec-purpose': 'prefetch;prerender' }, { 'x-moz': 'prefetch' }]) {
      expect(await refused(harbour.get(path, header as Record<string, string>))).toEqual([422, 'prefetch_refused']);
    }
    expect(await rowsOf(id)).toEqual([]);
    const answer = await harbour.get(path);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(answer.headers.get('etag')).toBeNull();
  });

  test('of another partner’s quote is refused like an unknown quote', async () => {
    const id = await quoted();
    const theirs = await lantern.get(`/api/v1/quote/${id}/accept`);
    const nobodys = await lantern.get('/api/v1/quote/q-nobody/accept');
    expect([theirs.status, theirs.body['code'], theirs.body['detail']]).toEqual([
      404,
      'quote_unknown',
      `No such quote: ${id}. Check the id.`,
    ]);
    expect(nobodys.status).toBe(404);
    expect(await refused(lantern.get(`/api/v1/quote/${id}`))).toEqual([404, 'quote_unknown']);
    expect(await refused(lantern.post(`/api/v1/quote/${id}/requote`, { insured_amount: '9' }))).toEqual([
      404,
      'quote_unknown',
    ]);
    expect(await rowsOf(id)).toEqual([]);
  });

  test('needs the partner header with the token’s own partner', async () => {
    const id = await quoted();
    const bare = { authorization: `Bearer ${harbour.token}` };
    const without = await fetch(`${served.url}/api/v1/quote/${id}/accept`, { headers: bare });
    expect([without.status, ((await without.json()) as { code: string }).code]).toEqual([
      400,
      'partner_header_missing',
    ]);
    const wrong = harbour.get(`/api/v1/quote/${id}/accept`, { 'x-service-partner-id': 'p-2' });
    expect(await refused(wrong)).toEqual([403, 'partner_header_mismatch']);
    expect(await rowsOf(id)).toEqual([]);
  });

  test('is refused once its policy is inactive, but earlier acceptances still get their answer', async () => {
    const [before, after] = [await accepted(), await quoted()];
    const first = await harbour.get(`/api/v1/quote/${before}/accept`);
    await world.partners([partner({ policies: [{ ...PRICED.policies[0], active: false }] })]);
    expect(await refused(harbour.get(`/api/v1/quote/${after}/accept`))).toEqual([422, 'policy_inactive']);
    expect((await harbour.get(`/api/v1/quote/${before}/accept`)).text).toBe(first.text);
    await world.partners([partner({ ...PRICED, active: false })]);
    expect(await refused(harbour.get(`/api/v1/quote/${after}/accept`))).toEqual([422, 'partner_inactive']);
    expect(
      await refused(harbour.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '1' })),
    ).toEqual([422, 'partner_inactive']);
    await world.partners([partner(PRICED)]);
    expect((await harbour.get(`/api/v1/quote/${after}/accept`)).status).toBe(200);
  });

  test('is refused if finance has imported a row of the same quote', async () => {
    const id = await quoted();
    await world.rows([
      {
        ...{ kind: 'quote_accepted', partner_id: 'p-1', quote_id: id, policy_id: 'ticket-protection', currency: 'USD' },
        ...{ accepted_at: '2026-07-15T11:00:00Z', spotPrice: '21.25', partnerCut: '6.38', invoiceAmount: '14.87' },
      },
    ]);
    expect(await refused(harbour.get(`/api/v1/quote/${id}/accept`))).toEqual([409, 'recorded_otherwise']);
  });

  test('keeps its price: a row of a file that differs from the quote is a conflict, unless it is accepted as it is', async () => {
    const id = await quoted();
    const row = {
      ...{ kind: 'quote_accepted', partner_id: 'p-1', quote_id: id, policy_id: 'ticket-protection', currency: 'USD' },
      ...{ accepted_at: '2026-07-15T11:00:00Z', spotPrice: '21.25', partnerCut: '21.25', invoiceAmount: '0.00' },
    };
    const refusedImport = await world.rows([row]);
    expect(refusedImport).toMatchObject({
      accepted: 0,
      rejected: 1,
      errors: [{ field: 'quote_id', code: 'conflict' }],
    });
    expect(refusedImport.errors[0]?.reason).toContain('priced by the API at 21.25 USD, cut 6.38, invoice 14.87');
    expect(await rowsOf(id)).toEqual([]);
    const cut = {
      partner_id: 'p-1',
      policy_id: 'ticket-protection',
      currency: 'USD',
      partner_cut_rate: '0.30',
      rows: 1,
    };
    expect(await world.rows([row], { acceptDiffering: true })).toMatchObject({
      accepted: 1,
      differing_cuts: [{ ...cut, partner_cut: '21.25', by_rate: '6.38' }],
    });
    const [event] = await world.sql(`SELECT details FROM audit_events ORDER BY event_id DESC LIMIT 1`);
    expect(event).toMatchObject({ details: { accept_differing: true, differing_cuts: [cut] } });
    const { differing_cuts } = await world.database.reading((tx) => readStatus(tx, world));
    expect(differing_cuts).toMatchObject([{ ...cut, partner_cut: '21.25' }]);
    expect(describeDifferingCut(differing_cuts[0] as (typeof differing_cuts)[0])).toBe(
      '1 row of p-1, ticket-protection, has a cut of 21.25 USD; the rate of 0.30 gives 6.38 USD.',
    );
  });

  test('a requote in a file that differs from the requote of the API is a conflict as well', async () => {
    const id = await accepted();
    const requoted = await harbour.post(`/api/v1/quote/${id}/requote`, { insured_amount: '500' });
    const row = {
      ...{ kind: 'requote_accepted', partner_id: 'p-1', quote_id: id, policy_id: 'ticket-protection', currency: 'USD' },
      ...{ requote_id: requoted.body['requote_id'], accepted_at: '2026-07-15T11:30:00Z' },
      ...{ spotPrice: '1.00', partnerCut: '0.30', invoiceAmount: '0.70' },
    };
    expect((await world.rows([row])).errors).toMatchObject([{ field: 'requote_id', code: 'conflict' }]);
  });

  test('uses the partner’s current time zone', async () => {
    const id = await quoted('250.00');
    world.at('2026-07-31T23:30:00Z');
    await world.partners([partner({ ...PRICED, time_zone: 'Asia/Tokyo' })]);
    const own = await served.caller('p-1');
    expect((await own.get(`/api/v1/quote/${id}/accept`)).status).toBe(200);
    expect(await rowsOf(id)).toMatchObject([{ month: '2026-08', time_zone: 'Asia/Tokyo' }]);
    await world.partners([partner(PRICED)]);
    world.at('2026-07-15T12:00:00.250Z');
  });
});

describe('a requote', () => {
  test('adds the difference to the accepted price as a ledger row of its own', async () => {
    const quoteId = await accepted('250.00');
    const answer = await harbour.post(`/api/v1/quote/${quoteId}/requote`, { insured_amount: 300 });
    expect(answer.status).toBe(201);
    // 25.50 = 7.65 + 17.85, less 21.25 = 6.38 + 14.87
    expect(answer.text).toContain(
      '"incrementalSpotPrice":4.25,"incrementalPartnerCut":1.27,"incrementalInvoiceAmount":2.98',
    );
    const requoteId = answer.body['requote_id'] as string;
    expect(await rowsOf(quoteId)).toHaveLength(1);
    const done = await harbour.get(`/api/v1/requote/${requoteId}/accept`);
    expect(done).toMatchObject({ status: 200, body: { requote_id: requoteId, quote_id: quoteId } });
    expect(done.text).toContain(
      '"incrementalSpotPrice":4.25,"incrementalPartnerCut":1.27,"incrementalInvoiceAmount":2.98',
    );
    const [first, second] = await rowsOf(quoteId);
    expect(second).toMatchObject({
      kind: 'requote_accepted',
      requote_id: requoteId,
      enrollment_id: first?.['enrollment_id'],
      spot_price: '4.25',
      partner_cut: '1.27',
      invoice_amount: '2.98',
    });
  });

  test('starts from the last accepted price, so that many small steps add up to the last price', async () => {
    const quoteId = await accepted('100.00');
    for (const insured of ['101.17', '133.33', '133.34', '777.77']) {
      expect((await harbour.get(`/api/v1/requote/${await requoted(quoteId, insured)}/accept`)).status).toBe(200);
    }
    const [sums] = await world.sql(
      `SELECT sum(spot_price)::text AS spot, sum(partner_cut)::text AS cut, sum(invoice_amount)::text AS rest
       FROM ledger_rows WHERE quote_id = $1`,
      [quoteId],
    );
    // 777.77 × 8.5 % = 66.11045, and 30 % of 66.11 = 19.833
    expect(sums).toEqual({ spot: '66.11', cut: '19.83', rest: '46.28' });
  });

  test('of the same price adds nothing and is not refused', async () => {
    const quoteId = await accepted('10.00');
    const requoteId = await requoted(quoteId, '12.00');
    const answer = await harbour.get(`/api/v1/requote/${requoteId}/accept`);
    expect(answer.text).toContain(
      '"incrementalSpotPrice":0.00,"incrementalPartnerCut":0.00,"incrementalInvoiceAmount":0.00',
    );
  });

  test('is refused at a lower price, before the quote is accepted, and after it is reversed', async () => {
    const open = await quoted();
    const ask = (quoteId: string, insured_amount: string) =>
      harbour.post(`/api/v1/quote/${quoteId}/requote`, { insured_amount });
    expect(await refused(ask(open, '300'))).toEqual([422, 'quote_not_accepted']);
    const quoteId = await accepted('250.00');
    expect(await refused(ask(quoteId, '249.00'))).toEqual([422, 'requote_lower']);
    const waiting = await requoted(quoteId, '300');
    const facts = { partner_id: 'p-1', quote_id: quoteId, policy_id: 'ticket-protection', currency: 'USD' };
    const amounts = { spotPrice: '-21.25', partnerCut: '-6.38', invoiceAmount: '-14.87' };
    expect(await world.rows([reversal(facts, { ...amounts, accepted_at: '2026-07-15T11:00:00Z' })])).toMatchObject({
      accepted: 1,
    });
    expect(await refused(ask(quoteId, '300'))).toEqual([422, 'quote_reversed']);
    expect(await refused(harbour.get(`/api/v1/requote/${waiting}/accept`))).toEqual([422, 'quote_reversed']);
    expect((await harbour.get(`/api/v1/quote/${quoteId}`)).body['status']).toBe('reversed');
  });

  test('makes the quote’s other open requotes stale once accepted, and gives its answer again', async () => {
    const quoteId = await accepted('100.00');
    const [low, high] = [await requoted(quoteId, '150'), await requoted(quoteId, '200')];
    const first = await harbour.get(`/api/v1/requote/${low}/accept`);
    expect(first.status).toBe(200);
    expect(await refused(harbour.get(`/api/v1/requote/${high}/accept`))).toEqual([409, 'requote_stale']);
    expect((await harbour.post(`/api/v1/requote/${low}/accept`)).text).toBe(first.text);
  });

  test('accepted concurrently with others: one is recorded, the others are stale', async () => {
    const quoteId = await accepted('100.00');
    const ids: string[] = [];
    for (let insured = 150; insured < 162; insured += 1) ids.push(await requoted(quoteId, insured));
    const answers = await Promise.all([...ids, ...ids].map((id) => harbour.get(`/api/v1/requote/${id}/accept`)));
    const winners = new Set(answers.filter(({ status }) => status === 200).map(({ text }) => text));
    expect(winners.size).toBe(1);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 409]));
    expect(await rowsOf(quoteId)).toHaveLength(2);
  });

  test('is stale if finance imported a requote meanwhile: no price is charged twice', async () => {
    const quoteId = await accepted('100.00');
    const waiting = await requoted(quoteId, '200');
    const facts = { partner_id: 'p-1', quote_id: quoteId, policy_id: 'ticket-protection', currency: 'USD' };
    expect(await world.rows([requoteRow(facts, { accepted_at: '2026-07-15T11:00:00Z' })])).toMatchObject({
      accepted: 1,
    });
    expect(await refused(harbour.get(`/api/v1/requote/${waiting}/accept`))).toEqual([409, 'requote_stale']);
    expect((await harbour.get(`/api/v1/requote/${await requoted(quoteId, '200')}/accept`)).text).toContain(
      '"incrementalSpotPrice":3.50',
    );
  });

  test('priced before its policy or its partner became inactive is refused, but earlier acceptances keep their answer', async () => {
    const quoteId = await accepted('100.00');
    const before = await requoted(quoteId, '150');
    const first = await harbour.get(`/api/v1/requote/${before}/accept`);
    const after = await requoted(quoteId, '200');
    await world.partners([partner({ policies: [{ ...PRICED.policies[0], active: false }] })]);
    expect(await refused(harbour.get(`/api/v1/requote/${after}/accept`))).toEqual([422, 'policy_inactive']);
    expect((await harbour.get(`/api/v1/requote/${before}/accept`)).text).toBe(first.text);
    await world.partners([partner({ ...PRICED, active: false })]);
    expect(await refused(harbour.get(`/api/v1/requote/${after}/accept`))).toEqual([422, 'partner_inactive']);
    await world.partners([partner(PRICED)]);
    expect((await harbour.get(`/api/v1/requote/${after}/accept`)).status).toBe(200);
  });

  test('keeps the terms of its quote, whatever the policy costs now', async () => {
    const quoteId = await accepted('250.00');
    await world.partners([
      partner({
        policies: [{ ...PRICED.policies[0], partner_cut_rate: '0.10', price: { rate: '0.5', minimum: '2.00' } }],
      }),
    ]);
    const answer = await harbour.post(`/api/v1/quote/${quoteId}/requote`, { insured_amount: '300' });
    await world.partners([partner(PRICED)]);
    expect(answer.text).toContain(
      '"incrementalSpotPrice":4.25,"incrementalPartnerCut":1.27,"incrementalInvoiceAmount":2.98',
    );
  });
});

describe('an idempotency key', () => {
  test('gives a repeated POST its first answer and creates nothing', async () => {
    const body = { policy_id: 'ticket-protection', insured_amount: '80' };
    const first = await harbour.post('/api/v1/quote', body, { 'idempotency-key': 'order-1' });
    const before = await counts();
    const again = await harbour.post('/api/v1/quote', ' {"insured_amount":80, "policy_id":"ticket-protection"}', {
      'idempotency-key': 'order-1',
    });
    expect([again.status, again.text]).toEqual([201, first.text]);
    expect([first, again].map(({ headers }) => headers.get('idempotent-replayed'))).toEqual([null, 'true']);
    expect(await counts()).toEqual(before);
  });

  test('is refused for another request, whether the body or the path differs', async () => {
    const key = { 'idempotency-key': 'order-2' };
    const quoteId = (await harbour.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '80' }, key))
      .body['quote_id'];
    const other = harbour.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '81' }, key);
    expect(await refused(other)).toEqual([409, 'idempotency_key_reused']);
    expect(await refused(harbour.post(`/api/v1/quote/${quoteId}/accept`, undefined, key))).toEqual([
      409,
      'idempotency_key_reused',
    ]);
  });

  test('belongs to one partner, and a refused request leaves it unused', async () => {
    const key = { 'idempotency-key': 'order-3' };
    const wrong = await harbour.post('/api/v1/quote', { policy_id: 'nobodys', insured_amount: '80' }, key);
    expect(wrong.status).toBe(404);
    const body = { policy_id: 'ticket-protection', insured_amount: '80' };
    const [one, other] = await Promise.all([
      harbour.post('/api/v1/quote', body, key),
      lantern.post('/api/v1/quote', body, key),
    ]);
    expect([one.status, other.status]).toEqual([201, 201]);
    expect(one.body['quote_id']).not.toBe(other.body['quote_id']);
  });

  test('of a refused request is carried out when the cause is gone, and its answer is kept then', async () => {
    const key = { 'idempotency-key': 'order-5' };
    const ask = () => harbour.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '80' }, key);
    await world.partners([partner({ policies: [{ ...PRICED.policies[0], active: false }] })]);
    expect(await refused(ask())).toEqual([422, 'policy_inactive']);
    expect((await ask()).headers.get('idempotent-replayed')).toBeNull();
    await world.partners([partner(PRICED)]);
    const [first, again] = [await ask(), await ask()];
    expect([first.status, first.headers.get('idempotent-replayed')]).toEqual([201, null]);
    expect([again.status, again.headers.get('idempotent-replayed'), again.text]).toEqual([201, 'true', first.text]);
    const id = first.body['quote_id'];
    const accept = () =>
      harbour.post(`/api/v1/quote/${id}/requote`, { insured_amount: '90' }, { 'idempotency-key': 'r-5' });
    expect(await refused(accept())).toEqual([422, 'quote_not_accepted']);
    await harbour.get(`/api/v1/quote/${id}/accept`);
    expect((await accept()).status).toBe(201);
  });

  test('with twenty concurrent requests creates one quote', async () => {
    const before = (await counts())?.['quotes'] as number;
    const answers = await Promise.all(
      Array.from({ length: 20 }, () =>
        harbour.post(
          '/api/v1/quote',
          { policy_id: 'ticket-protection', insured_amount: '80' },
          { 'idempotency-key': 'order-4' },
        ),
      ),
    );
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect((await counts())?.['quotes']).toBe(before + 1);
  });
});

test('a partner reads its own documents and no others', async () => {
  await accepted('250.00');
  world.at('2026-08-02T12:00:00Z');
  await world.close('2026-07');
  const [own, theirs] = [await served.caller('p-1'), await served.caller('p-2')];
  const answer = await own.get('/api/v1/invoices');
  expect(answer.status).toBe(200);
  expect(answer.body).toEqual(JSON.parse(JSON.stringify(await world.documents({ partnerId: 'p-1' }))));
  expect(answer.body).toHaveLength(1);
  expect((await theirs.get('/api/v1/invoices')).text).toBe('[]');
});

test('the database itself refuses a second step, an accepted price restated, and another partner’s client', async () => {
  const [row] = await world.sql<{ quote_id: string; step: number }>(
    `SELECT quote_id, step FROM requote_acceptances LIMIT 1`,
  );
  const insert = (columns: string) =>
    world.sql(
      `INSERT INTO requote_acceptances (quote_id, step, requote_id, partner_id, client_id, posted_month, entry_id) SELECT ${columns} FROM requote_acceptances WHERE quote_id = $1 AND step = $2`,
      [row?.quote_id, row?.step],
    );
  await expect(insert(`quote_id, step, 'rq-other', partner_id, client_id, posted_month, entry_id`)).rejects.toThrow(
    'requote_one_accepted_per_step',
  );
  await expect(insert(`quote_id, step + 5, requote_id, partner_id, client_id, posted_month, entry_id`)).rejects.toThrow(
    'requote_accepted_once',
  );
  await expect(world.sql(`UPDATE quotes SET spot_price = spot_price + 1`)).rejects.toThrow('append-only');
  const copy = (changed: string) =>
    world.sql(
      `INSERT INTO quotes SELECT 'q-copy', partner_id, ${changed} FROM quotes WHERE partner_id = 'p-1' LIMIT 1`,
    );
  const rest = 'policy_id, currency, insured_amount, price_rate, price_minimum, partner_cut_rate';
  await expect(
    copy(
      `(SELECT client_id FROM api_clients WHERE partner_id = 'p-2' LIMIT 1), ${rest}, spot_price, partner_cut, invoice_amount, quoted_at`,
    ),
  ).rejects.toThrow('quote_client_is_the_partners');
  await expect(copy(`client_id, ${rest}, spot_price + 1, partner_cut, invoice_amount + 1, quoted_at`)).rejects.toThrow(
    /quote_(price|cut)_follows_terms/,
  );
  await expect(
    copy(`client_id, ${rest}, spot_price, partner_cut + 0.01, invoice_amount - 0.01, quoted_at`),
  ).rejects.toThrow('quote_cut_follows_terms');
});
