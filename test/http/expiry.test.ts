/** When a quote or requote can be accepted no more: above its policy's largest price, or once it has expired. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Caller, PRICED, type Served, serveWorld } from '../support/service.ts';
import { openWorld, partner, quote as quoteRow, type World } from '../support/world.ts';
import { offersOf } from './offers.ts';

const QUOTED_AT = '2026-07-15T12:00:00.250Z';
let world: World;
let served: Served;
let harbour: Caller;

/** Moves the clock; tokens of before may be over. */
async function at(instant: string): Promise<void> {
  world.at(instant);
  harbour = await served.caller('p-1');
}

beforeEach(async () => {
  world = await openWorld();
  world.at(QUOTED_AT);
  await world.partners([partner(PRICED)]);
  served = await serveWorld(world);
  harbour = await served.caller('p-1');
});
afterEach(async () => {
  await served.end();
  await world.end();
});

const { quoted, accepted, requoted } = offersOf(() => harbour);
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

describe('the largest price of a policy', () => {
  const limit = (largest_price: string | null) =>
    world.partners([partner({ ...PRICED, policies: [{ ...PRICED.policies[0], largest_price }] })]);

  test('limits quotes and requotes, and is named with the price', async () => {
    await limit('21.25');
    const id = await accepted('250');
    expect(
      await harbour.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '250.06' }),
    ).toMatchObject({
      status: 422,
      body: { ...{ code: 'policy_price_exceeded', policy_id: 'ticket-protection', price: '21.26' }, largest: '21.25' },
    });
    expect(await refused(harbour.post(`/api/v1/quote/${id}/requote`, { insured_amount: '300' }))).toEqual([
      422,
      'policy_price_exceeded',
    ]);
  });

  test('also holds when a price is accepted that was quoted before; what was accepted stays accepted', async () => {
    await limit(null);
    const [open, before] = [await quoted('1000'), await accepted('250')];
    const more = await requoted(before, '500');
    const answer = await harbour.get(`/api/v1/quote/${before}/accept`);
    await limit('20');
    expect(await refused(harbour.get(`/api/v1/quote/${open}/accept`))).toEqual([422, 'policy_price_exceeded']);
    expect(await refused(harbour.get(`/api/v1/requote/${more}/accept`))).toEqual([422, 'policy_price_exceeded']);
    expect(await harbour.get(`/api/v1/quote/${before}/accept`)).toMatchObject({ status: 200, text: answer.text });
  });
});

describe('a quote that has expired', () => {
  test('is recorded from a file only as accepted before it expired', async () => {
    const { body } = await harbour.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '250' });
    expect(body['expires_at']).toBe('2026-08-14T12:00:00.250Z');
    const row = (accepted_at: string) => {
      const { quote_id, spotPrice, partnerCut, invoiceAmount } = body;
      return quoteRow({
        quote_id,
        accepted_at,
        ...Object.fromEntries(
          Object.entries({ spotPrice, partnerCut, invoiceAmount }).map(([name, value]) => [name, String(value)]),
        ),
      });
    };
    await at('2026-08-20T12:00:00Z');
    const late = await world.rows([row('2026-08-14T14:00:00.250+02:00')]);
    expect(late).toMatchObject({ accepted: 0, errors: [{ line: 1, field: 'accepted_at', code: 'quote_expired' }] });
    expect(late.errors[0]?.reason).toContain('could be accepted until 2026-08-14T12:00:00.250Z');
    expect(await world.rows([row('2026-08-14T12:00:00.249999Z')])).toMatchObject({ accepted: 1, rejected: 0 });
    expect(await refused(harbour.get(`/api/v1/quote/${body['quote_id']}/accept`))).toEqual([409, 'recorded_otherwise']);
  });

  test('is not requoted; its requote answers the same under its key for good, and cannot be accepted late', async () => {
    const [open, taken] = [await quoted('250'), await accepted('250')];
    const key = { 'idempotency-key': 'requote-before-expiry' };
    const ask = () => harbour.post(`/api/v1/quote/${taken}/requote`, { insured_amount: '500' }, key);
    const first = await ask();
    const late = await ask();
    expect([first.status, late.text]).toEqual([201, first.text]);
    await at('2026-08-14T12:00:00.250Z');
    expect(await refused(harbour.post(`/api/v1/quote/${open}/requote`, { insured_amount: '500' }))).toEqual([
      422,
      'quote_not_accepted',
    ]);
    expect((await ask()).text).toBe(first.text);
    expect(await refused(harbour.get(`/api/v1/requote/${first.body['requote_id']}/accept`))).toEqual([
      422,
      'quote_expired',
    ]);
  });

  test('was accepted once, however many ask in its last millisecond and the one after', async () => {
    const id = await quoted('250');
    await at('2026-08-14T12:00:00.249Z');
    const rows = await counts();
    const both = await Promise.all([1, 2, 3].map(() => harbour.get(`/api/v1/quote/${id}/accept`)));
    await at('2026-08-14T12:00:00.250Z');
    const late = await harbour.get(`/api/v1/quote/${id}/accept`);
    expect(new Set([...both, late].map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(late.status).toBe(200);
    expect((await counts())?.['entries']).toBe(Number(rows?.['entries']) + 1);
  });
});
