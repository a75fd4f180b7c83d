/** Reversed transfers are reversed in the ledger once, in the statement that billed them, at the price that is known. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { importRows } from '../../src/ledger/import.ts';
import type { Month } from '../../src/month.ts';
import { importBalanceTransactions, importSettlement } from '../../src/splits/import.ts';
import { reconcileMonth } from '../../src/splits/reconcile-month.ts';
import { recordReversals, reverseManually } from '../../src/splits/reverse.ts';
import { untilLockAwaited } from '../support/locks.ts';
import { openWorld, partner, quote, requote, type World } from '../support/world.ts';
import { ndjson, reversedTransfers, share, type Told } from './balance-transactions.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  world.at('2026-08-03T10:00:00Z');
});
afterAll(async () => {
  expect(await world.verify()).toMatchObject({ differences: 0 });
  await world.end();
});

const JULY = '2026-07' as Month;
const CAME = '2026-07-15T12:00:01Z';
const WENT = '2026-07-20T12:00:00Z';
const connected = (partner_id: string, changes: object = {}) =>
  partner({
    ...{ partner_id, arrangement: 'connected_account', connected_account_id: `acct_${partner_id}` },
    ...{ merchant_of_record: 'platform', split: 'real_time', ...changes },
  });
const take = (balance_transactions: readonly Told[], partnerId: string) =>
  world.database.transaction((tx) =>
    importBalanceTransactions(
      tx,
      world,
      { name: 'balance_transactions', text: ndjson(balance_transactions) },
      `acct_${partnerId}`,
    ),
  );
const settle = (lines: readonly string[], partnerId: string) =>
  world.database.transaction((tx) =>
    importSettlement(tx, world, { name: 'settlement.csv', text: `${lines.join('\n')}\n` }, partnerId),
  );
const reverse = () => world.database.transaction((tx) => recordReversals(tx, world, JULY));
const rowsOf = (partnerId: string) =>
  world.sql(
    `SELECT kind, arrangement, requote_id, trim_scale(spot_price)::text AS spot, trim_scale(partner_cut)::text AS cut,
            trim_scale(invoice_amount)::text AS invoice
     FROM ledger_rows WHERE partner_id = $1 ORDER BY entry_id`,
    [partnerId],
  );
const open = async (quoteId: unknown) =>
  (
    await world.database.reading((tx) =>
      reconcileMonth(tx, { settings: world.settings, now: world.environment.now() }, JULY),
    )
  ).exceptions.filter((each) => each.quote_id === quoteId);

test('a reversed transfer of the routed requote of an invoiced quote is reversed under the connected account', async () => {
  await world.partners([partner({ partner_id: 'era' })]);
  const sold = quote({ partner_id: 'era', accepted_at: '2026-06-20T12:00:00Z' });
  await world.rows([sold]);
  await world.partners([connected('era', { arrangement_from: '2026-07' })]);
  const raised = requote(sold, { accepted_at: '2026-07-10T12:00:00Z' });
  await world.rows([raised]);
  const came = share(350, CAME);
  const back = reversedTransfers(came, 350, WENT);
  await take([came, back], 'era');
  const id = sold['quote_id'] as string;
  await settle(
    ['quote_id,transfer,payment,amount', `${id},,${came.source.id},3.50`, `${id},,${back.source.id},-3.50`],
    'era',
  );
  expect((await reverse()).recorded).toHaveLength(1);
  expect((await rowsOf('era')).at(-1)).toEqual({
    ...{ kind: 'reversal', arrangement: 'connected_account', requote_id: raised['requote_id'] },
    ...{ spot: '-5', cut: '-1.5', invoice: '-3.5' },
  });
  expect((await open(id)).map((each) => [each.status, each.open])).toEqual([['reversed', '0.00']]);
});

test('if it may be of several requotes, it needs manual review', async () => {
  await world.partners([partner({ partner_id: 'two' })]);
  const sold = quote({ partner_id: 'two', accepted_at: '2026-06-20T12:00:00Z' });
  await world.rows([sold]);
  await world.partners([connected('two', { arrangement_from: '2026-07' })]);
  await world.rows([1, 2].map((day) => requote(sold, { accepted_at: `2026-07-1${day}T12:00:00Z` })));
  const came = share(700, CAME, { quote_id: sold['quote_id'] as string });
  const back = reversedTransfers(came, 350, WENT);
  await take([came, back], 'two');
  expect(await reverse()).toMatchObject({
    recorded: [],
    manual_review: [{ quote_id: sold['quote_id'], reason: expect.stringContaining('several requotes') }],
  });
  const person = world.database.transaction((tx) =>
    reverseManually(tx, world, { balance_transaction: back.id, spotPrice: '5.00' }),
  );
  await expect(person).rejects.toMatchObject({ code: 'balance_transaction_not_reversible' });
});

test('what the ledger refuses needs manual review, and no event says that it was recorded', async () => {
  await world.partners([connected('used')]);
  const [sold, other] = [quote({ partner_id: 'used' }), quote({ partner_id: 'used' })];
  await world.rows([sold, other]);
  const came = share(700, CAME, { quote_id: sold['quote_id'] as string });
  const back = reversedTransfers(came, 700, WENT);
  await take([came, back], 'used');
  // Another sale was reversed under the id that this reversal would get.
  const reversal = { kind: 'reversal', reversal_id: back.id, accepted_at: '2026-07-20T12:00:00Z' };
  await world.rows([{ ...other, ...reversal, spotPrice: '-10.00', partnerCut: '-3.00', invoiceAmount: '-7.00' }]);
  const events = () => world.sql(`SELECT event_id FROM audit_events WHERE action = 'processor.reverse'`);
  const before = await events();
  const { recorded, manual_review } = await world.database.transaction((tx) =>
    reverseManually(tx, world, { balance_transaction: back.id, spotPrice: '10.00' }),
  );
  expect([recorded, manual_review]).toMatchObject([[], [{ reason: expect.stringContaining('the ledger refuses it') }]]);
  expect(await events()).toEqual(before);
});

test('the whole share is reversed and the partner keeps its cut: the price from finance counts', async () => {
  await world.partners([connected('cut')]);
  const sold = quote({ partner_id: 'cut' });
  await world.rows([sold]);
  const came = share(700, CAME, { quote_id: sold['quote_id'] as string });
  const back = reversedTransfers(came, 700, WENT);
  await take([came, back], 'cut');
  await world.database.transaction((tx) =>
    reverseManually(tx, world, { balance_transaction: back.id, spotPrice: '7.00' }),
  );
  expect((await rowsOf('cut')).at(-1)).toMatchObject({ kind: 'reversal', spot: '-7', cut: '0', invoice: '-7' });
});

test("a reversal waits for the partner's own import of it, and is not recorded again", async () => {
  await world.partners([connected('race')]);
  const sold = quote({ partner_id: 'race' });
  await world.rows([sold]);
  const came = share(700, CAME, { quote_id: sold['quote_id'] as string });
  const back = reversedTransfers(came, 350, WENT);
  await take([came, back], 'race');
  await settle(
    ['quote_id,transfer,payment,amount,refunded', `${sold['quote_id']},,${back.source.id},-3.50,5.00`],
    'race',
  );
  const own = { ...sold, kind: 'reversal', reversal_id: 'of-the-partner', accepted_at: WENT };
  const text = JSON.stringify({ ...own, spotPrice: '-5.00', partnerCut: '-1.50', invoiceAmount: '-3.50' });
  let ours: ReturnType<typeof reverse> | undefined;
  await world.database.transaction(async (tx) => {
    await importRows(tx, [{ name: 'own', format: 'ndjson', text: `${text}\n` }], {
      skipInvalid: false,
      now: world.environment.now(),
      actor: world.actor,
      ceilings: world.settings.reversals,
      environment: world.environment,
    });
    ours = reverse();
    await untilLockAwaited(world);
  });
  expect((await ours)?.recorded.filter(({ partner_id }) => partner_id === 'race')).toEqual([]);
  expect((await rowsOf('race')).map(({ kind }) => kind)).toEqual(['quote_accepted', 'reversal']);
});

test('a payment of our invoice on the same account is no share', async () => {
  await world.partners([connected('own')]);
  const created = Math.floor(Date.parse(CAME) / 1000);
  const paid = {
    ...{ id: 'txn_own', object: 'balance_transaction', type: 'payment', currency: 'usd', created },
    ...{ amount: 5000, fee: 40, net: 4960 },
    source: {
      ...{ id: 'py_own', object: 'charge', source_transfer: null, livemode: false },
      metadata: { invoice: 'INV-2026-000001', partner_id: 'own' },
    },
  };
  await take([paid as unknown as Told], 'own');
  expect(await world.sql(`SELECT kind FROM balance_transactions WHERE id = 'txn_own'`)).toEqual([{ kind: 'other' }]);
});
