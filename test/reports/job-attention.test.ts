/** What a job tells: each thing once, and again after a day. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { tellAttention } from '../../src/reports/job-attention.ts';
import { openWorld, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());

const tell = (now: string, ...items: string[]) =>
  world.database.transaction((tx) =>
    tellAttention(tx, { job: 'deliver', items: items.map((item) => ({ item, count: 1 })), now }),
  );

test('a thing is told once, and again after a day; one that is gone is told when it comes back', async () => {
  expect(await tell('2026-08-01T00:00:00Z', 'a', 'b')).toEqual(['a', 'b']);
  expect(await tell('2026-08-01T00:10:00Z', 'a')).toEqual([]);
  expect(await tell('2026-08-01T00:20:00Z', 'a', 'b')).toEqual(['b']);
  expect(await tell('2026-08-02T00:00:00Z', 'a', 'b')).toEqual(['a', 'b']);
});

test('two things of one name do not end the job', async () => {
  expect(await tell('2026-08-03T00:00:00Z', 'c', 'c')).toContain('c');
  expect(await tell('2026-08-03T00:10:00Z', 'c', 'c')).toEqual([]);
});

test('more of a thing is told at once, less of it is not', async () => {
  const count = (now: string, counted: number) =>
    world.database.transaction((tx) =>
      tellAttention(tx, { job: 'verify', items: [{ item: 'd', count: counted }], now }),
    );
  expect(await count('2026-08-04T00:00:00Z', 2)).toEqual(['d']);
  expect(await count('2026-08-04T01:00:00Z', 2)).toEqual([]);
  expect(await count('2026-08-04T02:00:00Z', 3)).toEqual(['d']);
  expect(await count('2026-08-04T03:00:00Z', 1)).toEqual([]);
  expect(await count('2026-08-04T04:00:00Z', 2)).toEqual(['d']);
});
