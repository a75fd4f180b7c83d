/** The arrangement of a row: that of its own month, and of a reversal that of what it reverses. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { lenientPolicies, openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';
import { ledger } from './ledger.ts';

const CONNECTED = {
  arrangement: 'connected_account',
  connected_account_id: 'acct_1',
  merchant_of_record: 'platform',
  split: 'sequential',
};
const [JULY, AUGUST, SEPTEMBER] = ['2026-07-15T12:00:00Z', '2026-08-15T12:00:00Z', '2026-09-15T12:00:00Z'];

let world: World;
beforeAll(async () => {
  world = await openWorld();
  world.at('2026-09-20T00:00:00Z');
});
afterAll(() => world.end());

const arrangements = async (quoteId: unknown) =>
  (await ledger(world, quoteId)).map(({ kind, arrangement }) => [kind, arrangement]);

describe('a row keeps the arrangement of its own month', () => {
  test('from the first row on, where the partner never had another', async () => {
    await world.partners([partner({ partner_id: 'p-platform', ...CONNECTED })]);
    const row = quote({ partner_id: 'p-platform', accepted_at: '2020-01-15T12:00:00Z' });
    await world.rows([row, requote(row), reversal(row)]);
    expect(await arrangements(row['quote_id'])).toEqual([
      ['quote_accepted', 'connected_account'],
      ['requote_accepted', 'connected_account'],
      ['reversal', 'connected_account'],
    ]);
  });

  test('before and after a change, also when it arrives after it', async () => {
    const seller = { partner_id: 'p-changing' };
    await world.partners([partner(seller)]);
    const early = quote({ ...seller, accepted_at: JULY });
    await world.rows([early]);
    await world.partners([partner({ ...seller, ...CONNECTED, arrangement_from: '2026-08' })]);
    const [late, next] = [quote({ ...seller, accepted_at: JULY }), quote({ ...seller, accepted_at: AUGUST })];
    await world.rows([next, late]);
    expect(await arrangements(early['quote_id'])).toEqual([['quote_accepted', 'invoicing']]);
    expect(await arrangements(late['quote_id'])).toEqual([['quote_accepted', 'invoicing']]);
    expect(await arrangements(next['quote_id'])).toEqual([['quote_accepted', 'connected_account']]);
  });

  test('to the instant at which the month turns in the zone of the partner', async () => {
    const seller = { partner_id: 'p-edge', time_zone: 'Pacific/Kiritimati' };
    await world.partners([partner(seller)]);
    await world.partners([partner({ ...seller, ...CONNECTED, arrangement_from: '2026-08' })]);
    const rows = ['2026-07-31T09:59:59.999999Z', '2026-07-31T10:00:00Z'].map((accepted_at) =>
      quote({ partner_id: 'p-edge', accepted_at }),
    );
    await world.rows(rows);
    expect(await arrangements(rows[0]?.['quote_id'])).toEqual([['quote_accepted', 'invoicing']]);
    expect(await arrangements(rows[1]?.['quote_id'])).toEqual([['quote_accepted', 'connected_account']]);
  });
});

describe('a reversal keeps the arrangement of what it reverses', () => {
  const seller = { partner_id: 'p-reversed', policies: lenientPolicies() };
  const { partner_id } = seller;
  const old = quote({ partner_id, accepted_at: JULY });
  const more = requote(old, { accepted_at: AUGUST });
  const late = { accepted_at: SEPTEMBER };
  beforeAll(async () => {
    await world.partners([partner(seller)]);
    await world.rows([old]);
    await world.partners([partner({ ...seller, ...CONNECTED, arrangement_from: '2026-08' })]);
    await world.rows([more]);
  });

  test('a quote of the ledger, months after the change', async () => {
    const part = { spotPrice: '-1.00', partnerCut: '-0.30', invoiceAmount: '-0.70' };
    const back = reversal(old, { ...late, ...part });
    await world.rows([back]);
    expect(await arrangements(old['quote_id'])).toEqual([
      ['quote_accepted', 'invoicing'],
      ['requote_accepted', 'connected_account'],
      ['reversal', 'invoicing'],
    ]);
    const [entry] = (await ledger(world, old['quote_id'])).filter(({ kind }) => kind === 'reversal');
    expect(entry).toMatchObject({ month: '2026-09', posted_month: '2026-09' });
  });

  test('a requote of the ledger that it names, which came after the change', async () => {
    const amounts = { spotPrice: '-5.00', partnerCut: '-1.50', invoiceAmount: '-3.50' };
    await world.rows([reversal(old, { ...late, ...amounts, requote_id: more['requote_id'] })]);
    expect((await arrangements(old['quote_id'])).at(-1)).toEqual(['reversal', 'connected_account']);
  });

  test('a quote of the same import, wherever it stands', async () => {
    const row = quote({ partner_id, accepted_at: JULY });
    await world.rows([reversal(row, late), row]);
    expect(await arrangements(row['quote_id'])).toEqual([
      ['reversal', 'invoicing'],
      ['quote_accepted', 'invoicing'],
    ]);
  });

  test('a requote of the same import, behind a duplicate of its quote', async () => {
    const row = quote({ partner_id, accepted_at: JULY });
    await world.rows([row]);
    const again = requote(row, { accepted_at: AUGUST });
    const amounts = { spotPrice: '-5.00', partnerCut: '-1.50', invoiceAmount: '-3.50' };
    const back = reversal(row, { ...late, ...amounts, requote_id: again['requote_id'] });
    expect(await world.rows([row, back, again, again])).toMatchObject({ accepted: 2, duplicates: 2 });
    expect(await arrangements(row['quote_id'])).toEqual([
      ['quote_accepted', 'invoicing'],
      ['reversal', 'connected_account'],
      ['requote_accepted', 'connected_account'],
    ]);
  });
});

describe('a change of arrangement', () => {
  const refusal = (reason: RegExp) => ({
    code: 'arrangement_change',
    facts: { partner_id: expect.any(String) as string, reason: expect.stringMatching(reason) as string },
  });
  const kept = (partnerId: string) =>
    world.sql(`SELECT from_month, arrangement FROM partner_arrangements WHERE partner_id = $1 ORDER BY from_month`, [
      partnerId,
    ]);

  test('is refused without the month that it begins in', async () => {
    const seller = { partner_id: 'p-no-month' };
    await world.partners([partner(seller)]);
    await expect(world.partners([partner({ ...seller, ...CONNECTED })])).rejects.toMatchObject(
      refusal(/arrangement_from/),
    );
    expect(await kept('p-no-month')).toEqual([{ from_month: '0001-01', arrangement: 'invoicing' }]);
  });

  test('is refused over a month that has rows, or one before it, and changes nothing else either', async () => {
    const seller = { partner_id: 'p-rows' };
    await world.partners([partner(seller)]);
    await world.rows([quote({ ...seller, accepted_at: AUGUST })]);
    for (const arrangement_from of ['2026-07', '2026-08']) {
      const wanted = partner({ ...seller, name: 'Renamed', ...CONNECTED, arrangement_from });
      await expect(world.partners([wanted])).rejects.toMatchObject(refusal(/2026-08, which has ledger rows/));
    }
    expect(await kept('p-rows')).toEqual([{ from_month: '0001-01', arrangement: 'invoicing' }]);
    const [stored] = await world.sql(`SELECT name FROM partners WHERE partner_id = 'p-rows'`);
    expect(stored).toEqual({ name: 'Harbour Lights Ticketing' });
  });

  test('is recorded for the month after, and importing it again changes nothing', async () => {
    const seller = { partner_id: 'p-rows', ...CONNECTED, arrangement_from: '2026-09' };
    expect(await world.partners([partner(seller)])).toEqual({ created: 0, updated: 1, unchanged: 0 });
    expect(await world.partners([partner(seller)])).toEqual({ created: 0, updated: 0, unchanged: 1 });
    expect(await kept('p-rows')).toEqual([
      { from_month: '0001-01', arrangement: 'invoicing' },
      { from_month: '2026-09', arrangement: 'connected_account' },
    ]);
  });

  test('back again needs a month of its own, not before the one that it undoes', async () => {
    const seller = { partner_id: 'p-rows' };
    await expect(world.partners([partner({ ...seller, arrangement_from: '2026-08' })])).rejects.toMatchObject(
      refusal(/is before the current arrangement/),
    );
    await world.partners([partner({ ...seller, arrangement_from: '2026-10' })]);
    expect((await kept('p-rows')).at(-1)).toEqual({ from_month: '2026-10', arrangement: 'invoicing' });
  });

  test('can be taken back before it has begun', async () => {
    const seller = { partner_id: 'p-undone' };
    await world.partners([partner(seller)]);
    await world.partners([partner({ ...seller, ...CONNECTED, arrangement_from: '2026-10' })]);
    await world.partners([partner({ ...seller, arrangement_from: '2026-10' })]);
    const row = quote({ ...seller, accepted_at: '2026-09-19T00:00:00Z' });
    await world.rows([row]);
    expect((await kept('p-undone')).at(-1)).toEqual({ from_month: '2026-10', arrangement: 'invoicing' });
  });

  test('that is planned cannot be moved by another month alone, which would have said nothing', async () => {
    const seller = { partner_id: 'p-moved' };
    await world.partners([partner(seller)]);
    await world.partners([partner({ ...seller, ...CONNECTED, arrangement_from: '2026-10' })]);
    const planned = await kept('p-moved');
    for (const arrangement_from of ['2026-09', '2026-12']) {
      const moved = partner({ ...seller, name: 'Renamed', ...CONNECTED, arrangement_from });
      await expect(world.partners([moved])).rejects.toMatchObject(refusal(/began in 2026-10, and this month cannot/));
    }
    expect(await kept('p-moved')).toEqual(planned);
    // Nor is the month lost where the file leaves it out.
    const silent = { created: 0, updated: 0, unchanged: 1 };
    expect(await world.partners([partner({ ...seller, ...CONNECTED })])).toEqual(silent);
    // What the refusal advises: back, then again for a later month.
    await world.partners([partner({ ...seller, arrangement_from: '2026-10' })]);
    await world.partners([partner({ ...seller, ...CONNECTED, arrangement_from: '2026-12' })]);
    expect(await kept('p-moved')).toEqual([
      { from_month: '0001-01', arrangement: 'invoicing' },
      { from_month: '2026-10', arrangement: 'invoicing' },
      { from_month: '2026-12', arrangement: 'connected_account' },
    ]);
  });

  test('and of nothing but the account is brought up to date in place', async () => {
    const seller = { partner_id: 'p-account', ...CONNECTED };
    await world.partners([partner(seller)]);
    const moved = { ...seller, connected_account_id: 'acct_2', split: 'real_time' };
    expect(await world.partners([partner(moved)])).toEqual({ created: 0, updated: 1, unchanged: 0 });
    expect(await kept('p-account')).toHaveLength(1);
  });
});
