/** Sales that a person credits, disputes or reverses by their rows: the amounts follow, and no row goes twice. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { creditInvoice } from '../../src/documents/credit.ts';
import { readOpenDisputes } from '../../src/documents/disputes.sql.ts';
import { closeDispute, openDispute } from '../../src/documents/disputes.ts';
import { unapplyCredit } from '../../src/documents/place-credit.ts';
import { reverseRows } from '../../src/documents/reverse-rows.ts';
import { voidDocument } from '../../src/documents/void.ts';
import { refuseReversal } from '../../src/ledger/held.ts';
import { startOver } from '../close/start-over.ts';
import { openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';

const INV_1 = 'INV-2026-000001';
const TERMS = { window_days: 60, after_window: 'none', cut: 'in_proportion' };
const policies = [
  {
    ...{ policy_id: 'ticket-protection', name: 'Ticket Protection', kind: 'non_insurance', partner_cut_rate: '0.30' },
    cancellation: TERMS,
  },
];
const sale = { accepted_at: '2026-07-20T12:00:00Z' };

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
beforeEach(async () => {
  await startOver(world);
  world.at('2026-08-10T12:00:00Z');
  await world.partners([partner({ policies }), partner({ partner_id: 'p-2', policies })]);
  const first = quote({ ...sale, quote_id: 'q-1' });
  await world.rows([
    first,
    requote(first, { requote_id: 'rq-1' }),
    quote({ ...sale, quote_id: 'q-2', spotPrice: '20.00', partnerCut: '6.00', invoiceAmount: '14.00' }),
    quote({ ...sale, quote_id: 'q-3' }),
    quote({ ...sale, quote_id: 'q-old', accepted_at: '2026-05-01T12:00:00Z' }),
    quote({ ...sale, quote_id: 'q-other', partner_id: 'p-2' }),
  ]);
  await world.close('2026-07', { firstMonth: '2026-07' });
});
afterAll(() => world.end());

const rows = async (...ids: string[]) =>
  (
    await world.sql<{ id: string }>(
      `SELECT entry_id AS id FROM ledger_rows WHERE coalesce(reversal_id, requote_id, quote_id) = ANY ($1) ORDER BY 1`,
      [ids],
    )
  ).map(({ id }) => Number(id));
const credit = async (...ids: string[]) => {
  const request = { number: INV_1, rows: await rows(...ids), reason: 'canceled' };
  return world.database.transaction((tx) => creditInvoice(tx, world, request));
};
const reverse = async (...ids: string[]) => {
  const request = { rows: await rows(...ids), reason: 'canceled' };
  return world.database.transaction((tx) => reverseRows(tx, world, request));
};
const refused = (work: Promise<unknown>) => expect(work).rejects.toMatchObject({ code: 'row_not_correctable' });
const says = async (work: Promise<unknown>) => {
  const { message } = await work.then(
    () => ({ message: 'nothing was refused' }),
    (error: Error) => error,
  );
  return message;
};
const amountOf = async (number: string) =>
  (
    await world.sql<{ amount: string }>(`SELECT invoice_amount::text AS amount FROM documents WHERE number = $1`, [
      number,
    ])
  )[0]?.amount;

describe('a credit of rows', () => {
  test('is their sum, and names them in its event', async () => {
    expect(await amountOf(await credit('q-1', 'rq-1', 'q-2'))).toBe('24.50');
    const [event] = await world.sql<{ details: object }>(
      `SELECT details FROM audit_events WHERE action = 'invoice.credit'`,
    );
    expect(event?.details).toEqual({
      ...{ amount: '24.50', currency: 'USD', reason: 'canceled' },
      rows: await rows('q-1', 'rq-1', 'q-2'),
    });
  });

  test('may follow another one of the same amount and reason, but not of the same row', async () => {
    const first = await credit('q-1');
    world.at('2026-08-10T12:01:00Z');
    expect(await amountOf(await credit('q-3'))).toBe('7.00');
    expect(await says(credit('q-3', 'q-1'))).toContain(`${first} credits it. Nothing was recorded.`);
    await world.database.transaction(async (tx) => {
      await unapplyCredit(tx, world, { creditNote: first, number: INV_1 });
      await voidDocument(tx, world, { number: first, reason: 'wrong row' });
    });
    expect(await amountOf(await credit('q-1'))).toBe('7.00');
  });

  test('takes no row of another invoice, no reversal, and no row twice', async () => {
    expect(await says(credit('q-other'))).toContain(`cannot be credited: ${INV_1} does not bill it`);
    const [id] = (await rows('q-2')) as [number];
    const twice = { number: INV_1, rows: [id, id], reason: 'canceled' };
    expect(await says(world.database.transaction((tx) => creditInvoice(tx, world, twice)))).toContain('given twice');
    await refused(credit('q-other'));
    expect(await world.sql('SELECT FROM documents WHERE credits IS NOT NULL')).toEqual([]);
  });

  test('takes no sale that was reversed', async () => {
    await reverse('q-2');
    expect(await says(credit('q-2'))).toMatch(/the reversal row-\d+ takes it back/);
  });
});

test('a dispute of rows is over their sum, and names them', async () => {
  const request = { number: INV_1, rows: await rows('q-1', 'q-2'), reason: 'canceled' };
  await world.database.transaction((tx) => openDispute(tx, world, request));
  const [open] = await world.database.reading((tx) => readOpenDisputes(tx, { number: INV_1 }));
  expect(open).toMatchObject({ amount: '21.00', number: INV_1 });
  await world.database.transaction((tx) => closeDispute(tx, world, { number: INV_1, reason: 'credited' }));
  await credit('q-1');
  await refused(world.database.transaction((tx) => openDispute(tx, world, request)));
});

describe('a reversal of rows', () => {
  test('takes back each sale whole, and is billed with the open month', async () => {
    expect(await reverse('q-1', 'q-2')).toMatchObject({ recorded: 2, requested: 0 });
    expect(
      await world.sql(
        `SELECT quote_id, posted_month, spot_price::text, partner_cut::text, invoice_amount::text FROM ledger_rows
         WHERE kind = 'reversal' ORDER BY quote_id`,
      ),
    ).toEqual([
      { quote_id: 'q-1', posted_month: '2026-08', spot_price: '-10', partner_cut: '-3', invoice_amount: '-7' },
      { quote_id: 'q-2', posted_month: '2026-08', spot_price: '-20', partner_cut: '-6', invoice_amount: '-14' },
    ]);
    expect((await world.verify()).checks.filter(({ differences }) => differences.length > 0)).toEqual([]);
  });

  test('of the rest of a sale takes what an earlier reversal left, and a sale of the same quote stays', async () => {
    await world.rows([
      reversal(quote({ ...sale, quote_id: 'q-2' }), {
        ...{ reversal_id: 'part', accepted_at: '2026-08-01T12:00:00Z' },
        ...{ spotPrice: '-5.00', partnerCut: '-1.50', invoiceAmount: '-3.50' },
      }),
    ]);
    expect(await reverse('q-2')).toMatchObject({ recorded: 1 });
    const back = () =>
      world.sql(
        `SELECT spot_price::text FROM ledger_rows WHERE reversal_id LIKE 'row-%' ORDER BY entry_id DESC LIMIT 1`,
      );
    expect(await back()).toEqual([{ spot_price: '-15' }]);
    await refused(reverse('q-2'));
    // The quote q-1 has a requote: each of its rows is taken back by itself.
    expect(await reverse('q-1')).toMatchObject({ recorded: 1 });
    expect(await reverse('rq-1')).toMatchObject({ recorded: 1 });
    await refused(reverse('rq-1'));
    expect((await world.verify()).checks.filter(({ differences }) => differences.length > 0)).toEqual([]);
  });

  test('that the terms do not cover waits for a decision, and a sale is not asked for twice', async () => {
    expect(await reverse('q-1', 'q-old')).toMatchObject({ recorded: 1, requested: 1 });
    const [held] = await world.sql<{ id: string; sign: string; source: string }>(
      'SELECT held_row_id AS id, sign FROM held_rows',
    );
    expect(held?.sign).toBe('too_late');
    await refused(reverse('q-old'));
    await world.database.transaction((tx) => refuseReversal(tx, world, { id: Number(held?.id), reason: 'too late' }));
    await refused(reverse('q-old'));
    expect((await world.verify()).checks.filter(({ differences }) => differences.length > 0)).toEqual([]);
  });

  test('of which the terms cover none is a request alone', async () => {
    expect(await reverse('q-old')).toMatchObject({ recorded: 0, requested: 1 });
    expect((await world.verify()).checks.filter(({ differences }) => differences.length > 0)).toEqual([]);
  });

  test('takes no reversed or credited sale, and no row that the ledger does not have', async () => {
    await credit('q-1');
    expect(await says(reverse('q-1'))).toContain('credits it');
    await world.rows([
      reversal(quote({ ...sale, quote_id: 'q-3' }), { reversal_id: 'theirs', accepted_at: '2026-08-01T12:00:00Z' }),
    ]);
    expect(await says(reverse('q-3'))).toContain('the reversal theirs takes it back');
    expect(await says(reverse('theirs'))).toContain('it is a reversal, not a sale');
    const unknown = { rows: [9_999_999], reason: 'x' };
    expect(await says(world.database.transaction((tx) => reverseRows(tx, world, unknown)))).toContain(
      'Row 9999999 cannot be reversed: the ledger has no such row',
    );
  });
});
