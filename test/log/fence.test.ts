/** No fact appears below a checkpoint after it, whatever writers do meanwhile, and no writer waits for a checkpoint. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openDatabase } from '../../src/database/database.ts';
import { takeCheckpoint } from '../../src/log/checkpoint.ts';
import { readCheckpoints } from '../../src/log/checkpoints.sql.ts';
import { deriveLog } from '../../src/log/derive.ts';
import { recordEvent } from '../../src/people/audit-events.ts';
import { seeded } from '../support/random.ts';
import { times } from '../support/sweep.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner()]);
  await world.rows([quote({ quote_id: 'q-first' })]);
});
afterAll(() => world.end());

const CHECKPOINTS = times({ few: 15, short: 50, long: 200 });

test(`none of ${CHECKPOINTS} checkpoints gets a fact below it from ten writers with rollbacks and a long import`, async () => {
  const { random } = seeded();
  const writers = await openDatabase(world.environment, { poolSize: 12 });
  let done = false;
  let slowest = 0;
  let written = 0;
  const write = async () => {
    while (!done) {
      const undone = random() < 0.1;
      const since = performance.now();
      await writers
        .transaction(async (tx) => {
          for (let at = 0; at < 3; at += 1) {
            await recordEvent(tx, world.actor, {
              ...{ action: 'test.write', subject: 'fence', details: {}, now: world.environment.now().toISO() },
            });
          }
          if (undone) throw new Error('rolled back');
        })
        .catch((error: Error) => expect(error.message).toBe('rolled back'));
      slowest = Math.max(slowest, performance.now() - since);
      written += 1;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  // Draws its numbers at once and holds them for a while, as a long import does.
  const hold = async () => {
    while (!done) {
      await writers.transaction(async (tx) => {
        await recordEvent(tx, world.actor, {
          ...{ action: 'test.hold', subject: 'fence', details: {}, now: world.environment.now().toISO() },
        });
        await new Promise((resolve) => setTimeout(resolve, 200));
      });
    }
  };
  const work = Promise.all([...Array.from({ length: 10 }, write), hold()]);
  for (let taken = 0; taken < CHECKPOINTS; ) {
    const checkpoint = await takeCheckpoint(world.database, world);
    if (checkpoint === undefined) continue;
    taken += 1;
  }
  done = true;
  await work;
  await writers.close();
  // A fact that appeared later would give the checkpoints above it other leaves.
  const { differences } = await world.database.reading((tx) => deriveLog(tx, 'all'));
  expect(differences).toEqual([]);
  expect((await world.database.reading((tx) => readCheckpoints(tx))).length).toBe(CHECKPOINTS);
  expect(written).toBeGreaterThan(CHECKPOINTS);
  process.stdout.write(
    `fence: ${written} writes beside ${CHECKPOINTS} checkpoints, the slowest ${Math.round(slowest)} ms\n`,
  );
}, 300_000);

test('a transaction that does not end delays only the checkpoint, which says so', async () => {
  const writers = await openDatabase(world.environment, { poolSize: 2 });
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  let begun = () => {};
  const isHolding = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const holding = writers.transaction(async (tx) => {
    await recordEvent(tx, world.actor, {
      ...{ action: 'test.hold', subject: 'fence', details: {}, now: world.environment.now().toISO() },
    });
    begun();
    await held;
  });
  await isHolding;
  await expect(takeCheckpoint(world.database, world, 50)).rejects.toMatchObject({ code: 'log_behind' });
  await world.rows([quote({ quote_id: 'q-meanwhile' })]);
  release();
  await holding;
  expect(await takeCheckpoint(world.database, world)).toBeDefined();
  await writers.close();
});
