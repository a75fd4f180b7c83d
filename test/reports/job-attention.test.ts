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
