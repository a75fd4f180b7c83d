/**
 * Empties a world between two tests: its tables, queue and outbox are as on the first day, its clock and settings too.
 * A database of its own for every test would take most of the time.
 */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { readSettings } from '../../src/config/settings.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import type { World } from '../support/world.ts';

export const FIRST_DAY = '2026-08-01T10:00:00Z';

export async function startOver(world: World): Promise<void> {
  world.at(FIRST_DAY);
  world.settings = readSettings(world.environment);
  await emptyTables(world);
  const outbox = join(world.home, 'outbox');
  for (const file of readdirSync(outbox)) rmSync(join(outbox, file));
}

/** As after a migration: nothing is recorded. */
export async function emptyTables(world: World): Promise<void> {
  // What is append-only can be emptied only by a superuser who switches the guards off.
  await world.sql(`
    ${GUARDS_OFF}
    DO $$
    DECLARE
      name regclass;
    BEGIN
      FOR name IN
        SELECT c.oid FROM pg_class c
        WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
          AND c.relname <> 'installation' AND c.relname NOT LIKE 'migrations%' AND pg_relation_size(c.oid) > 0
      LOOP
        EXECUTE format('DELETE FROM %s', name);
      END LOOP;
      DELETE FROM graphile_worker._private_jobs;
    END
    $$;
    ${GUARDS_ON}`);
}
