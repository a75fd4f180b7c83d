/** The data map names every column that may contain the commitment of a personal text, and the database keeps no text there. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PARTLY_PERSONAL, PERSONAL_COLUMNS } from '../../src/log/personal.sql.ts';
import { packageRoot } from '../../src/package.ts';
import { openWorld, type World } from '../support/world.ts';

const COLUMNS = [...PERSONAL_COLUMNS, ...PARTLY_PERSONAL].sort();

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());

test('the data map has exactly the personal columns of the forms', () => {
  const text = readFileSync(join(packageRoot, 'docs', 'personal-data.md'), 'utf8');
  const [, map = ''] = /\n\| column \|.*\n\|[-|]+\n((?:\|.*\n)+)/.exec(text) ?? [];
  const named = map.split('\n').flatMap((row) => (row.split('|')[1] ?? '').match(/`[a-z_.]+`/g) ?? []);
  expect(named.map((each) => each.replaceAll('`', '')).sort()).toEqual(COLUMNS);
});

test('every table with a personal column replaces texts when a row is inserted', async () => {
  const guarded = await world.sql<{ table: string }>(
    `SELECT tgrelid::regclass::text AS table FROM pg_trigger WHERE tgname = 'personal_texts_kept' ORDER BY 1`,
  );
  // A request is hashed with its commitments before it is inserted.
  const tables = new Set(COLUMNS.map((each) => each.split('.')[0]).filter((table) => table !== 'approval_requests'));
  expect(guarded.map(({ table }) => table)).toEqual([...tables].sort());
});

test('every personal column refuses a plain text, also without the triggers', async () => {
  const checked = await world.sql<{ column: string }>(
    `SELECT conrelid::regclass || '.' || a.attname AS column
     FROM pg_constraint k JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
     WHERE k.contype = 'c' AND k.conname = format('%s_%s_kept', k.conrelid::regclass, a.attname)`,
  );
  expect(checked.map(({ column }) => column).sort()).toEqual([...PERSONAL_COLUMNS].sort());
});
