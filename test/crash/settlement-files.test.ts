/** kill -9 of a server while it records a settlement file: the file is recorded whole, or not at all, and can be sent again. */
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PRICED } from '../support/service.ts';
import { tally } from '../support/tally.ts';
import { openWorld, partner, type World } from '../support/world.ts';
import { prepareServing, type Serving } from './serving.ts';

let world: World;
let serving: Serving;

beforeAll(async () => {
  world = await openWorld();
  await world.partners([
    partner({
      ...{ ...PRICED, arrangement: 'connected_account', connected_account_id: 'acct_1' },
      ...{ merchant_of_record: 'third_party', split: 'sequential', balance_transactions_from: 'settlement_file' },
    }),
  ]);
  serving = await prepareServing(world);
});
afterAll(async () => {
  serving.end();
  await world.end();
});

const recorded = async () =>
  (
    await world.sql(
      `SELECT (SELECT count(*)::int FROM settlement_files) AS files, (SELECT count(*)::int FROM settlement_lines) AS lines,
              (SELECT count(*)::int FROM balance_transactions) AS moved, (SELECT count(*)::int FROM share_allocations) AS shares,
              (SELECT count(*)::int FROM idempotency_keys WHERE idempotency_key = 'october') AS keys,
              (SELECT count(*)::int FROM audit_events WHERE action = 'processor.import') AS events`,
    )
  )[0];

test('a settlement file whose recording is killed leaves nothing, and sent again is recorded once', async () => {
  const doomed = await serving.serve('processor.recorded');
  const made = await doomed.caller.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '250' });
  await doomed.caller.get(`/api/v1/quote/${made.body['quote_id']}/accept`);
  const file = `quote_id,transfer,payment,amount\n${made.body['quote_id']},tr_1,py_1,14.87\n`;
  const headers = { 'content-type': 'text/csv', 'idempotency-key': 'october' };
  const exited = once(doomed.child, 'exit');
  expect(await doomed.caller.post('/api/v1/settlement-files', file, headers).catch(() => 'cut off')).toBe('cut off');
  expect(await exited).toEqual([null, 'SIGKILL']);
  expect(await recorded()).toEqual({ files: 0, lines: 0, moved: 0, shares: 0, keys: 0, events: 0 });

  const { child, caller } = await serving.serve();
  const first = await caller.post('/api/v1/settlement-files', file, headers);
  expect(first).toMatchObject({ status: 201, body: { lines: 1, matched: 1 } });
  const again = await caller.post('/api/v1/settlement-files', file, { 'content-type': 'text/csv' });
  expect([again.status, again.text]).toEqual([200, first.text]);
  expect(await recorded()).toEqual({ files: 1, lines: 1, moved: 1, shares: 1, keys: 1, events: 1 });
  expect(await world.verify()).toMatchObject({ differences: 0 });
  child.kill('SIGKILL');
  tally('kills survived', 'of a settlement file that is recorded', 1);
});
