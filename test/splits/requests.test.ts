/** Reversals that wait for a person, of sales whose share the processor routes: what the processor takes back decides them. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { processorImport } from '../../src/actions/processor/import.ts';
import { processorMatch } from '../../src/actions/processor/match.ts';
import { runAction } from '../../src/actions/run.ts';
import { readHeldRows } from '../../src/ledger/held.sql.ts';
import { grantReversal, refuseReversal } from '../../src/ledger/held.ts';
import type { Month } from '../../src/month.ts';
import { importBalanceTransactions, importSettlement } from '../../src/splits/import.ts';
import { recordRequestedReversals } from '../../src/splits/requested.ts';
import { recordReversals, reverseManually } from '../../src/splits/reverse.ts';
import { openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';
import { ndjson, reversedTransfers, share, type Told } from './balance-transactions.ts';

let world: World;
/** Imports rows. Reversals outside the terms wait. */
const send = (rows: readonly object[]) => world.rows(rows, { holds: true });
beforeAll(async () => {
  world = await openWorld();
  world.at('2026-08-03T10:00:00Z');
});
afterAll(async () => {
  expect((await world.verify()).checks.filter(({ differences }) => differences.length > 0)).toEqual([]);
  await world.end();
});

const MAY = '2026-05' as Month;
const CAME = '2026-05-15T12:00:01Z';
const WENT = '2026-07-30T12:00:00Z';
const connect = (partner_id: string, changes: object = {}) =>
  world.partners([
    partner({
      ...{ partner_id, arrangement: 'connected_account', connected_account_id: `acct_${partner_id}` },
      ...{ merchant_of_record: 'platform', split: 'real_time', ...changes },
    }),
  ]);
/** A sale of May over 10.00 = 3.00 + 7.00: too long ago for a reversal without a person. */
const sold = (partner_id: string, changes: object = {}) =>
  quote({ partner_id, accepted_at: '2026-05-15T12:00:00Z', ...changes });
const asked = (sale: Record<string, unknown>, reversal_id: string, changes: object = {}) =>
  reversal(sale, { reversal_id, accepted_at: '2026-08-01T12:00:00Z', ...changes });
/** 5.00 = 1.50 + 3.50. */
const HALF = { spotPrice: '-5.00', partnerCut: '-1.50', invoiceAmount: '-3.50' };
const take = (told: readonly Told[], partnerId: string) =>
  world.database.transaction((tx) =>
    importBalanceTransactions(tx, world, { name: 'balance', text: ndjson(told) }, `acct_${partnerId}`),
  );
const settle = (lines: readonly string[], partnerId: string) =>
  world.database.transaction((tx) =>
    importSettlement(tx, world, { name: 'settlement.csv', text: `${lines.join('\n')}\n` }, partnerId),
  );
const recordRequests = () => world.database.transaction((tx) => recordRequestedReversals(tx, world));
const reverseMonth = () => world.database.transaction((tx) => recordReversals(tx, world, MAY));
const reverseByHand = (balance_transaction: string, spotPrice: string) =>
  world.database.transaction((tx) => reverseManually(tx, world, { balance_transaction, spotPrice }));
const reversalsOf = async (partnerId: string) =>
  (
    await world.sql<{ row: string }>(
      `SELECT concat_ws(' ', CASE WHEN reversal_id LIKE 'txn%' THEN 'transfer' ELSE reversal_id END,
                trim_scale(spot_price), trim_scale(partner_cut), trim_scale(invoice_amount), ground) AS row
       FROM ledger_rows JOIN reversal_grounds USING (partner_id, reversal_id) WHERE partner_id = $1 ORDER BY entry_id`,
      [partnerId],
    )
  ).map(({ row }) => row);
const waiting = async (partner: string) =>
  (await world.database.reading((tx) => readHeldRows(tx, { partner, undecided: true }))).map(({ own_id }) => own_id);
const heldId = async (partner: string, id: string) =>
  (await world.database.reading((tx) => readHeldRows(tx, { partner }))).find(({ own_id }) => own_id === id)
    ?.held_row_id as number;

test('a request is recorded under its own id once the processor has taken our share back, and only once', async () => {
  await connect('once');
  const sale = sold('once');
  await send([sale]);
  const came = share(700, CAME, { quote_id: sale['quote_id'] as string });
  await take([came], 'once');
  expect(await send([asked(sale, 'refund-1')])).toMatchObject({ held: 1 });
  expect(await recordRequests()).toEqual([]);
  const text = ndjson([reversedTransfers(came, 700, WENT)]);
  const file = { name: 'balance.ndjson', bytes: Buffer.from(text) };
  await runAction(world, processorImport, { file, account: 'acct_once' } as never);
  expect(await reversalsOf('once')).toEqual(['refund-1 -10 -3 -7 processor']);
  expect(await waiting('once')).toEqual([]);
  expect(await reverseMonth()).toMatchObject({ recorded: [], manual_review: [] });
});

test('a month of reversed transfers records requests and other transfers together', async () => {
  await connect('both');
  const [one, other] = [sold('both'), sold('both')];
  await send([one, other]);
  const came = [one, other].map(({ quote_id }) => share(700, CAME, { quote_id: quote_id as string }));
  await take([...came, ...came.map((each) => reversedTransfers(each, 700, WENT))], 'both');
  // This one was requested before its transfer was known.
  await connect('both-late');
  const late = sold('both-late');
  await send([late]);
  await send([asked(late, 'late-1')]);
  const lateCame = share(700, CAME, { quote_id: late['quote_id'] as string });
  await take([lateCame, reversedTransfers(lateCame, 700, WENT)], 'both-late');
  const { recorded } = await reverseMonth();
  expect(recorded.map(({ partner_id, reversal_id }) => [partner_id, reversal_id.slice(0, 6)])).toEqual([
    ['both-late', 'late-1'],
    ['both', 'txn_00'],
    ['both', 'txn_00'],
  ]);
  expect(await reversalsOf('both-late')).toEqual(['late-1 -10 -3 -7 processor']);
});

test('of two requests of a quote, the one that the processor covers is recorded, and the other waits', async () => {
  await connect('two');
  const sale = sold('two');
  await send([sale]);
  const came = share(700, CAME, { quote_id: sale['quote_id'] as string });
  await take([came], 'two');
  await send([asked(sale, 'more', HALF)]);
  const less = { spotPrice: '-2.00', partnerCut: '-0.60', invoiceAmount: '-1.40' };
  await send([asked(sale, 'less', { ...less, accepted_at: '2026-08-01T11:00:00Z' })]);
  await take([reversedTransfers(came, 140, WENT)], 'two');
  await reverseMonth();
  expect(await reversalsOf('two')).toEqual(['less -2 -0.6 -1.4 processor']);
  expect(await waiting('two')).toEqual(['more']);
});

test('a settlement file that names a request decides it, with what the processor took back', async () => {
  await connect('named');
  const sale = sold('named');
  await send([sale]);
  const came = share(700, CAME, { quote_id: sale['quote_id'] as string });
  const back = reversedTransfers(came, 350, WENT);
  await send([asked(sale, 'refund-1')]);
  await take([came, back], 'named');
  await settle(
    [
      'quote_id,transfer,payment,amount,refunded,reversal_id',
      `${sale['quote_id']},,${back.source.id},-3.50,5.00,refund-1`,
    ],
    'named',
  );
  await reverseMonth();
  expect(await reversalsOf('named')).toEqual(['refund-1 -5 -1.5 -3.5 processor']);
  expect(await waiting('named')).toEqual([]);
  // The file of the partner that asked for more is a duplicate.
  expect(await send([asked(sale, 'refund-1')])).toMatchObject({ duplicates: 1, rejected: 0 });
});

test('what a person has refused and the processor reverses all the same is recorded under the id of the transfer', async () => {
  await connect('refused');
  const sale = sold('refused');
  await send([sale]);
  await send([asked(sale, 'refund-1')]);
  await world.database.transaction(async (tx) =>
    refuseReversal(tx, world, { id: await heldId('refused', 'refund-1'), reason: 'used' }),
  );
  const came = share(700, CAME, { quote_id: sale['quote_id'] as string });
  const back = reversedTransfers(came, 700, WENT);
  await take([came, back], 'refused');
  await settle(
    [
      'quote_id,transfer,payment,amount,refunded,reversal_id',
      `${sale['quote_id']},,${back.source.id},-7.00,10.00,refund-1`,
    ],
    'refused',
  );
  await reverseMonth();
  expect(await reversalsOf('refused')).toEqual(['transfer -10 -3 -7 processor']);
  expect(await send([asked(sale, 'refund-1')])).toMatchObject({ duplicates: 1 });
});

test('a transfer that finance reverses by hand records the request that it covers', async () => {
  await connect('hand');
  const sale = sold('hand');
  await send([sale]);
  await send([asked(sale, 'refund-1')]);
  const came = share(700, CAME, { quote_id: sale['quote_id'] as string });
  const back = reversedTransfers(came, 700, WENT);
  await take([came, back], 'hand');
  expect((await reverseByHand(back.id, '10.00')).recorded).toMatchObject([{ reversal_id: 'refund-1' }]);
  expect(await reversalsOf('hand')).toEqual(['refund-1 -10 -3 -7 processor']);
  await expect(reverseByHand(back.id, '10.00')).rejects.toMatchObject({ code: 'balance_transaction_not_reversible' });
});

test('a match by finance records the request that it covers', async () => {
  await connect('match');
  const sale = sold('match');
  await send([sale]);
  await send([asked(sale, 'refund-1')]);
  const came = share(700, CAME);
  const back = reversedTransfers(came, 700, WENT);
  await take([came, back], 'match');
  for (const { id } of [came, back]) {
    const input = { balance_transaction: id, quoteId: sale['quote_id'], reason: 'the partner says so' };
    await runAction(world, processorMatch, input as never);
  }
  expect(await reversalsOf('match')).toEqual(['refund-1 -10 -3 -7 processor']);
});

test('what follows a request in a file is recorded with it only if the processor covers it, too', async () => {
  await connect('after');
  const sale = sold('after', { accepted_at: '2026-07-10T12:00:00Z' });
  await send([sale]);
  const came = share(700, CAME, { quote_id: sale['quote_id'] as string });
  await take([came], 'after');
  const first = { spotPrice: '-2.00', partnerCut: '0.00', invoiceAmount: '-2.00' };
  const good = { ...HALF, accepted_at: '2026-08-02T12:00:00Z' };
  expect(await send([asked(sale, 'wrong-split', first), asked(sale, 'half', good)])).toMatchObject({ held: 2 });
  await take([reversedTransfers(came, 200, WENT)], 'after');
  await reverseMonth();
  expect(await reversalsOf('after')).toEqual(['wrong-split -2 0 -2 processor']);
  expect(await waiting('after')).toEqual(['half']);
});

test('a request that the ledger cannot record does not stop the others', async () => {
  await connect('stuck');
  const [sale, next] = [sold('stuck'), sold('stuck')];
  await send([sale, next]);
  const came = share(700, CAME, { quote_id: sale['quote_id'] as string });
  const nextCame = share(700, CAME, { quote_id: next['quote_id'] as string });
  await take([came, nextCame], 'stuck');
  await send([asked(sale, 'whole', { spotPrice: '-6.50', partnerCut: '-3.00', invoiceAmount: '-3.50' })]);
  const cut = { spotPrice: '-3.00', partnerCut: '-3.00', invoiceAmount: '0.00', accepted_at: '2026-08-01T11:00:00Z' };
  await send([asked(sale, 'cut', cut)]);
  await send([asked(next, 'next')]);
  await world.database.transaction(async (tx) =>
    grantReversal(tx, world, { id: await heldId('stuck', 'cut'), amounts: undefined, reason: 'agreed' }),
  );
  await take([reversedTransfers(came, 350, WENT), reversedTransfers(nextCame, 700, WENT)], 'stuck');
  expect(await recordRequests()).toMatchObject([{ own_id: 'next' }]);
  expect(await waiting('stuck')).toEqual(['whole']);
});

test('what the processor took back of a routed requote does not let an invoiced quote go', async () => {
  await world.partners([partner({ partner_id: 'mixed' })]);
  const sale = sold('mixed');
  await send([sale]);
  world.at('2026-08-03T10:00:00Z');
  await connect('mixed', { arrangement_from: '2026-06' });
  const raised = requote(sale, { accepted_at: '2026-06-10T12:00:00Z' });
  await send([raised]);
  const came = share(350, '2026-06-10T12:00:01Z', { quote_id: sale['quote_id'] as string });
  await take([came, reversedTransfers(came, 350, WENT)], 'mixed');
  // Of the quote itself, which was invoiced, nothing has gone back.
  expect(await send([asked(sale, 'of-the-quote', HALF)])).toMatchObject({ held: 1, accepted: 0 });
  expect(await recordRequests()).toEqual([]);
  const named = { ...HALF, requote_id: raised['requote_id'], accepted_at: '2026-08-01T11:00:00Z' };
  expect(await send([asked(sale, 'of-the-requote', named)])).toMatchObject({ held: 0, accepted: 1 });
  expect(await reversalsOf('mixed')).toEqual(['of-the-requote -5 -1.5 -3.5 processor']);
});

test('rows of one file are judged in the order of their times, and so are they checked', async () => {
  await connect('order');
  const sale = sold('order', { accepted_at: '2026-07-10T12:00:00Z' });
  await send([sale]);
  const came = share(700, CAME, { quote_id: sale['quote_id'] as string });
  await take([came, reversedTransfers(came, 200, WENT)], 'order');
  const first = { spotPrice: '-2.00', partnerCut: '0.00', invoiceAmount: '-2.00' };
  const good = { spotPrice: '-0.80', partnerCut: '-0.30', invoiceAmount: '-0.50', accepted_at: '2026-08-02T12:00:00Z' };
  expect(await send([asked(sale, 'second', good), asked(sale, 'first', first)])).toMatchObject({ accepted: 2 });
});

test('finance may record a transfer although the partner has reversed another part by the rules', async () => {
  await connect('finance');
  const sale = sold('finance', { accepted_at: '2026-07-10T12:00:00Z' });
  await send([sale]);
  const came = share(700, CAME, { quote_id: sale['quote_id'] as string });
  const back = reversedTransfers(came, 400, WENT);
  await send([asked(sale, 'by-rule', { spotPrice: '-2.00', partnerCut: '-0.60', invoiceAmount: '-1.40' })]);
  await take([came, back], 'finance');
  expect((await reverseByHand(back.id, '6.00')).recorded).toHaveLength(1);
  expect(await reversalsOf('finance')).toEqual(['by-rule -2 -0.6 -1.4 proportion', 'transfer -6 -2 -4 processor']);
});
