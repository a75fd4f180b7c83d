/** Reversals that wait for a person: granted, also with other amounts, or refused; and what happens to them meanwhile. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { readHeldRows } from '../../src/ledger/held.sql.ts';
import { grantReversal, refuseReversal } from '../../src/ledger/held.ts';
import { Amount } from '../../src/money.ts';
import { startOver } from '../close/start-over.ts';
import { type Caller, PRICED, type Served, serveWorld } from '../support/service.ts';
import { openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';

let world: World;
/** Imports rows. Reversals outside the terms wait. */
const send = (rows: readonly object[]) => world.rows(rows, { holds: true });
let served: Served;
let caller: Caller;
beforeAll(async () => {
  world = await openWorld();
  served = await serveWorld(world);
});
beforeEach(async () => {
  await startOver(world);
  world.at('2026-08-20T12:00:00Z');
  await world.partners([partner(PRICED)]);
  caller = await served.caller('p-1');
});
afterAll(async () => {
  await served.end();
  await world.end();
});

/** A sale of 10.00 = 3.00 + 7.00 in July, longer ago than the 30 days in which a reversal without terms is recorded. */
const sold = (overrides: object = {}) => quote({ accepted_at: '2026-07-15T12:00:00Z', ...overrides });
const undecided = () => world.database.reading((tx) => readHeldRows(tx, { undecided: true }));
const usd = (text: string) => Amount.of(text, 'USD');
const grant = (id: number, share?: string, cut?: string) =>
  world.database.transaction((tx) =>
    grantReversal(tx, world, {
      ...{ id, reason: 'goodwill' },
      amounts:
        share === undefined || cut === undefined ? undefined : { invoiceAmount: usd(share), partnerCut: usd(cut) },
    }),
  );
const refuse = (id: number) =>
  world.database.transaction((tx) => refuseReversal(tx, world, { id, reason: 'the event took place' }));
const reverse = (row: Record<string, unknown>, body: object) =>
  caller.post(`/api/v1/quote/${row['quote_id']}/reverse`, body);
const preview = (row: Record<string, unknown>, amounts: Record<string, string> = {}) =>
  caller.get(`/api/v1/quote/${row['quote_id']}/reverse/preview?${new URLSearchParams(amounts)}`);
const reversals = () =>
  world.sql(
    `SELECT reversal_id AS id, trim_scale(invoice_amount)::text AS share, ground
     FROM ledger_rows JOIN reversal_grounds USING (partner_id, reversal_id) ORDER BY entry_id`,
  );
const expectVerified = async () =>
  expect((await world.verify()).checks.filter(({ differences }) => differences.length > 0)).toEqual([]);

describe('a file that is sent again', () => {
  test('has duplicates where a person granted what the file asks, and where a person granted less', async () => {
    const [one, other, third] = [sold(), sold(), sold()];
    await send([one, other, third]);
    const file = [one, other, third].map((sale) => reversal(sale, { accepted_at: '2026-08-19T12:00:00Z' }));
    expect(await send(file)).toMatchObject({ accepted: 0, held: 3 });
    const [first, second, last] = await undecided();
    await grant(first?.held_row_id as number);
    await grant(second?.held_row_id as number, '5.00', '2.00');
    await refuse(last?.held_row_id as number);
    expect(await send(file)).toMatchObject({ accepted: 0, held: 0, duplicates: 3, rejected: 0 });
    // The same id with other content is a conflict, as ever.
    const changed = { ...file[1], spotPrice: '-9.00', invoiceAmount: '-6.00' };
    expect(await send([changed])).toMatchObject({ errors: [{ code: 'conflict' }] });
    await expectVerified();
  });
});

describe('a preview', () => {
  test('refuses what the reversal itself would be refused with', async () => {
    const sale = sold({ accepted_at: '2026-08-15T12:00:00Z' });
    await send([sale]);
    const bad = [
      { spotPrice: '-20.00', partnerCut: '-6.00', invoiceAmount: '-14.00' },
      { spotPrice: '-5.00', partnerCut: '-1.50', invoiceAmount: '-3.00' },
      { spotPrice: '-1.234', partnerCut: '-0.234', invoiceAmount: '-1.00' },
      { spotPrice: '5.00', partnerCut: '1.50', invoiceAmount: '3.50' },
      { spotPrice: '0', partnerCut: '0', invoiceAmount: '0' },
    ];
    for (const [index, amounts] of bad.entries()) {
      const foreseen = await preview(sale, amounts);
      const answer = await reverse(sale, { reversal_id: `bad-${index}`, ...amounts });
      const { instance: _, ...problem } = answer.body;
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(foreseen).toMatchObject({ status: answer.status, body: problem });
    }
    expect(await reversals()).toEqual([]);
  });
});

describe('a requote of a quote', () => {
  test('is not reversed beyond what the terms give of the quote, by a second reversal that names it', async () => {
    const cancellation = { window_days: '14', after_window: 'pro_rata' };
    await world.partners([partner({ policies: PRICED.policies.map((policy) => ({ ...policy, cancellation })) })]);
    // Half of the days of cover are over.
    const sale = sold({ cover_from: '2026-08-11', cover_to: '2026-08-30', accepted_at: '2026-07-01T12:00:00Z' });
    const raised = requote(sale, { accepted_at: '2026-07-02T12:00:00Z' });
    await send([sale, raised]);
    expect(await reverse(sale, { reversal_id: 'whole' })).toMatchObject({
      status: 201,
      body: { allowed_by: 'pro_rata' },
    });
    const named = await reverse(sale, {
      ...{ reversal_id: 'again', requote_id: raised['requote_id'] },
      ...{ spotPrice: '-2.50', partnerCut: '-0.75', invoiceAmount: '-1.75' },
    });
    expect(named).toMatchObject({ status: 202 });
    await expectVerified();
  });
});
