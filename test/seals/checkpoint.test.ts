/** Checkpoints of the open month: taken once a day, and named by `verify` as soon as something under one is changed. */
import { createHash } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { takeDueCheckpoint } from '../../src/seals/checkpoint.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
  world.settings = { ...world.settings, checkpoints: 'daily' };
  await world.partners([partner()]);
  await world.rows([quote({ quote_id: 'q-1' }), quote({ quote_id: 'q-2' })]);
});
afterEach(() => world.end());

const due = () => takeDueCheckpoint(world.database, world);

test('a checkpoint is taken once a day of the issuer, also when nothing happened', async () => {
  const first = await due();
  expect(first).toMatchObject({ checkpoint_number: 1, previous: null, entries_to: 2 });
  expect(first?.seal).toBe(
    createHash('sha256')
      .update(first?.record ?? '')
      .digest('hex'),
  );
  expect(await due()).toBeUndefined();
  // 23:59 in New York.
  world.at('2026-08-02T03:59:00Z');
  expect(await due()).toBeUndefined();
  world.at('2026-08-02T04:00:00Z');
  const second = await due();
  expect(second?.record).toContain(`previous 1 ${first?.seal}\nsealed_after none\n`);
  expect(second?.record).toContain('\nentries 3 to 2\n');
  expect(second?.record).not.toMatch(/^rows 2026/m);
});
