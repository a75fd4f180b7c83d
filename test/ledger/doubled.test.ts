/** Rows of the API are never held. Those that may repeat another one are a finding until somebody decides. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { isUrgent } from '../../src/findings/finding.ts';
import { readFindings } from '../../src/findings/findings.ts';
import { separateRows } from '../../src/ledger/held.ts';
import { takeCheckpoint } from '../../src/log/checkpoint.ts';
import { startOver } from '../close/start-over.ts';
import { type Caller, PRICED, type Served, serveWorld } from '../support/service.ts';
import { openWorld, partner, type World } from '../support/world.ts';
import { size } from './ledger.ts';

let world: World;
let served: Served | undefined;
let caller: Caller;
beforeAll(async () => {
  world = await openWorld();
});
beforeEach(async () => {
  await served?.end();
  await startOver(world);
  world.at('2026-07-15T12:00:00Z');
  await world.partners([partner(PRICED)]);
  served = await serveWorld(world);
  caller = await served.caller('p-1');
});
afterAll(async () => {
  await served?.end();
  await world.end();
});

/** Asks for a quote for an order at an instant of 12:00. */
async function quoted(second: string, order: string | null = 'ORDER 1'): Promise<string> {
  world.at(`2026-07-15T12:00:${second}Z`);
  const body = {
    policy_id: 'ticket-protection',
    insured_amount: '250',
    ...(order !== null && { order_reference: order }),
  };
  return (await caller.post('/api/v1/quote', body)).body['quote_id'] as string;
}
async function accept(id: string, second: string): Promise<string> {
  world.at(`2026-07-15T12:00:${second}Z`);
  expect(await caller.get(`/api/v1/quote/${id}/accept`)).toMatchObject({ status: 200 });
  return id;
}
const checkpoint = () => takeCheckpoint(world.database, world);
const urgent = async () => {
  const question = {
    settings: world.settings,
    scope: null,
    today: '2026-07-15',
    now: world.environment.now().toMillis(),
    limit: null,
  };
  return (await world.database.reading((tx) => readFindings(tx, question)))
    .filter(isUrgent)
    .flatMap(({ kind, urgent }) => (kind === 'rows' ? [urgent] : []));
};
const FOUND = '1 API row of p-1 may repeat another and will be billed.';

test('A quote that is asked for again after its acceptance, for the same order in the same second, is found', async () => {
  await accept(await quoted('01.1'), '01.2');
  await accept(await quoted('01.3'), '01.4');
  expect(await size(world)).toBe(2);
  expect(await urgent()).toEqual([]);
  await checkpoint();
  expect(await urgent()).toEqual([FOUND]);
  await checkpoint();
  expect(await urgent()).toEqual([FOUND]);
});

test('It is found after a checkpoint between the two, too', async () => {
  await accept(await quoted('01.1'), '01.2');
  await checkpoint();
  await accept(await quoted('01.3'), '01.4');
  await checkpoint();
  expect(await urgent()).toEqual([FOUND]);
});

test('The four tickets of an order, which are quoted before the first is accepted, are normal', async () => {
  const tickets: string[] = [];
  for (const second of ['01.1', '01.11', '01.12', '01.13']) tickets.push(await quoted(second));
  for (const [index, id] of tickets.entries()) await accept(id, `01.2${index}`);
  await checkpoint();
  expect(await urgent()).toEqual([]);
});

test('Quotes without an order, of other orders or of other seconds are normal', async () => {
  const orders: readonly (readonly [string, string | null])[] = [
    ['01.1', null],
    ['01.3', null],
    ['02.1', 'ORDER 1'],
    ['02.3', 'ORDER 2'],
    ['03.1', 'ORDER 1'],
  ];
  for (const [second, order] of orders) await accept(await quoted(second, order), `${second}5`);
  await checkpoint();
  expect(await urgent()).toEqual([]);
});

test('The same part of a quote reversed twice in one second is found', async () => {
  const id = await accept(await quoted('01.1'), '01.2');
  const back = { spotPrice: '-5.00', partnerCut: '-1.50', invoiceAmount: '-3.50' };
  for (const reversal_id of ['back-1', 'back-2'])
    expect(await caller.post(`/api/v1/quote/${id}/reverse`, { ...back, reversal_id })).toMatchObject({ status: 201 });
  await checkpoint();
  expect(await urgent()).toEqual([FOUND]);
});

test('The finding ends with a decision, with the reversal of one of the two, or with the close of the month', async () => {
  const twice = async () => {
    await accept(await quoted('01.1'), '01.2');
    return accept(await quoted('01.3'), '01.4');
  };
  const second = await twice();
  await checkpoint();
  await caller.post(`/api/v1/quote/${second}/reverse`, { reversal_id: 'back' });
  expect(await urgent()).toEqual([]);
  await accept(await quoted('05.1'), '05.2');
  await accept(await quoted('05.3'), '05.4');
  await checkpoint();
  expect(await urgent()).toEqual([FOUND]);
  const decision = { partner: 'p-1', reason: 'two seats' };
  await world.database.transaction((tx) => separateRows(tx, world, decision));
  expect(await urgent()).toEqual([]);
  await expect(world.database.transaction((tx) => separateRows(tx, world, decision))).rejects.toMatchObject({
    code: 'no_doubled_rows',
  });
  await accept(await quoted('07.1'), '07.2');
  await accept(await quoted('07.3'), '07.4');
  await checkpoint();
  expect(await urgent()).toEqual([FOUND]);
  world.at('2026-08-02T12:00:00Z');
  await world.close('2026-07');
  expect(await urgent()).toEqual([]);
  const { checks } = await world.verify();
  expect(checks.flatMap(({ differences }) => differences)).toEqual([]);
});
