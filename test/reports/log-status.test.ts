/** What the status says of the log: what no checkpoint covers yet, signatures, and the keys that make them. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { takeCheckpoint } from '../../src/log/checkpoint.ts';
import { signCheckpoints } from '../../src/log/sign.ts';
import { readStatus } from '../../src/reports/status.ts';
import { describeStatus } from '../../src/reports/status-text.ts';
import { startOver } from '../close/start-over.ts';
import { LOG_KEY, logKeyOf, newLogPem } from '../support/log-keys.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());
beforeEach(async () => {
  await startOver(world);
  keys();
  await world.partners([partner()]);
  await world.rows([quote({ accepted_at: '2026-08-01T09:00:00Z' })]);
});

const keys = (logKey?: typeof LOG_KEY, logKeyBefore?: typeof LOG_KEY) =>
  Object.assign(world.environment, { logKey, logKeyBefore });
const take = () => takeCheckpoint(world.database, world);
const sign = () => signCheckpoints(world);
const status = () => world.database.reading((tx) => readStatus(tx, world));
const urgent = async () => (await status()).findings.flatMap((each) => each.urgent ?? []);
const line = async () => {
  const found = /^Checkpoint +(.*(?:\n {13}.*)*)/m.exec(describeStatus(await status(), { urgent: [] }));
  return found?.[1]?.replaceAll(/\s+/g, ' ');
};

test('before the first checkpoint, guards alone protect every fact', async () => {
  const { checkpoints } = await status();
  expect(checkpoints).toMatchObject({ last: null, overdue_days: 0, unsigned: [], unstamped: [] });
  expect(checkpoints.uncovered).toBeGreaterThan(2);
  expect(await line()).toBe(`none yet: guards alone protect ${checkpoints.uncovered} facts; not signed`);
});

test('after a checkpoint it says how old it is, and how many facts are newer; rolled-back numbers are not counted', async () => {
  const size = (await take())?.size;
  world.at('2026-08-01T16:30:00Z');
  expect(await line()).toBe(`of ${size} facts, 6 hours ago; nothing is newer; not signed`);
  await world.rows([quote({ accepted_at: '2026-08-01T12:00:00Z' })], { preview: true });
  expect((await status()).checkpoints.uncovered).toBe(0);
  await world.rows([quote({ accepted_at: '2026-08-01T12:00:00Z' })]);
  // The row, its receipt and the event of its import.
  expect(await line()).toBe(`of ${size} facts, 6 hours ago; guards alone protect 3 newer facts; not signed`);
});

test('a checkpoint is overdue on the third day after a fact that none covers, and a quiet ledger needs none', async () => {
  await take();
  world.at('2026-08-20T10:00:00Z');
  expect((await status()).checkpoints.overdue_days).toBe(0);
  await world.rows([quote({ accepted_at: '2026-08-20T09:00:00Z' })]);
  world.at('2026-08-22T10:00:00Z');
  expect((await status()).checkpoints.overdue_days).toBe(1);
  expect(await urgent()).toEqual([]);
  world.at('2026-08-23T10:00:00Z');
  expect(await urgent()).toEqual([
    'The next checkpoint has been overdue for 2 days: guards alone protect 3 facts. The jobs deliver and month-close ' +
      'take one each day.',
  ]);
  await take();
  expect(await urgent()).toEqual([]);
});

test('a missing key refuses nothing, and is named until it is back', async () => {
  keys(LOG_KEY);
  await take();
  await sign();
  expect(await line()).toMatch(/; signed by sandbox\.\S+$/);
  keys();
  expect(await urgent()).toEqual([
    expect.stringMatching(/^Checkpoints are no longer signed: LOG_SIGNING_KEY_FILE is not set\. .* the key sandbox\./),
  ]);
  world.at('2026-09-01T12:00:00Z');
  expect(await world.close()).toEqual(['2026-08']);
  expect(await line()).toMatch(/; signed by sandbox\.\S+, but the key is now missing$/);
  keys(LOG_KEY);
  expect(await urgent()).toEqual([]);
  world.at('2026-09-02T13:00:00Z');
  const [size] = (await status()).checkpoints.unsigned;
  expect(await urgent()).toContain(
    `1 checkpoint without a signature for more than a day, first the checkpoint of ${size} facts. The job deliver ` +
      'signs them.',
  );
  await sign();
  expect((await status()).checkpoints.unsigned).toEqual([]);
});

test('a new key needs the key before it at hand; without it the log says that it is lost, and so does the status for a week', async () => {
  keys(LOG_KEY);
  await take();
  await sign();
  const second = logKeyOf(newLogPem());
  keys(second);
  expect(await urgent()).toEqual([
    expect.stringMatching(/^LOG_SIGNING_KEY_FILE has a new key, .* LOG_SIGNING_KEY_BEFORE_FILE/),
  ]);
  keys(second, LOG_KEY);
  expect(await urgent()).toEqual([]);
  keys(second);
  await world.rows([quote({ accepted_at: '2026-08-01T09:30:00Z' })]);
  await take();
  await sign();
  expect(await urgent()).toEqual([
    'The signing key changed on 2026-08-01, and the log states: the previous key is lost. Give the auditor the new key ' +
      'by telephone or in person.',
  ]);
  await take();
  await sign();
  world.at('2026-08-08T10:00:01Z');
  expect(await urgent()).toEqual([]);
});
