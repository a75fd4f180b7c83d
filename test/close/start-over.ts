/**
 * Empties a world between two tests: its tables, outbox and what the host has seen are as on the first day, its clock and settings too.
 * A database of its own for every test would take most of the time.
 */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { readSettings } from '../../src/config/settings.ts';
import { keepLog } from '../support/kept-logs.ts';
import type { World } from '../support/world.ts';

export const FIRST_DAY = '2026-08-01T10:00:00Z';

export async function startOver(world: World): Promise<void> {
  await keepLog(world);
  world.at(FIRST_DAY);
  world.settings = readSettings(world.environment);
  await emptyTables(world);
  const outbox = join(world.home, 'outbox');
  for (const file of readdirSync(outbox)) rmSync(join(outbox, file));
  // What the emptied tables were.
  for (const name of ['log-head', 'last-seen']) rmSync(join(world.home, name), { recursive: true, force: true });
}

/** As after a migration: nothing is recorded. */
export async function emptyTables(world: Pick<World, 'sql'>): Promise<void> {
  // As a superuser, who can let the guards of deleted rows pass within this transaction. To switch off the triggers that
  // call them would change a hundred tables, and every session would plan its statements anew.
  await world.sql(`
    SET session_replication_role = replica;
    DO $$
    DECLARE
      guards text[] := ARRAY(SELECT pg_get_functiondef(each::regproc) FROM unnest(
        ARRAY['refuse_change', 'refuse_lost_policy', 'refuse_change_without_event']) AS each);
      guard text;
      name regclass;
    BEGIN
      SET CONSTRAINTS ALL IMMEDIATE;
      FOREACH guard IN ARRAY guards LOOP
        EXECUTE regexp_replace(guard, 'AS \\$function\\$.*', $as$AS 'BEGIN RETURN OLD; END'$as$);
      END LOOP;
      FOR name IN
        SELECT c.oid FROM pg_class c
        WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
          AND c.relname NOT IN ('installation', 'schema_records') AND c.relname NOT LIKE 'migrations%'
          AND pg_relation_size(c.oid) > 0
      LOOP
        EXECUTE format('DELETE FROM %s', name);
      END LOOP;
      FOREACH guard IN ARRAY guards LOOP
        EXECUTE guard;
      END LOOP;
    END
    $$;
    SET session_replication_role = origin;`);
}
