/**
 * The schema that fresh migrations make, compared with the committed one, so that a change of the schema is read as a
 * change of the schema. After a wanted change: UPDATE_SCHEMA=1 npx vitest run test/database/schema.test.ts
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openWorld, type World } from '../support/world.ts';

const COMMITTED = fileURLToPath(new URL('schema.txt', import.meta.url));

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());

async function describeSchema(): Promise<string> {
  const columns = await world.sql<{ line: string }>(
    `SELECT format('%s.%s %s%s%s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
                   CASE WHEN a.attnotnull THEN ' not null' ELSE '' END,
                   coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '')) AS line
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
     LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
     WHERE n.nspname = 'public' AND c.relkind IN ('r', 'v') AND a.attnum > 0 AND NOT a.attisdropped
     ORDER BY c.relname COLLATE "C", a.attnum`,
  );
  const constraints = await world.sql<{ line: string }>(
    `SELECT format('%s: %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) AS line
     FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND conrelid <> 0 AND contype <> 'n'
     ORDER BY conrelid::regclass::text COLLATE "C", conname COLLATE "C"`,
  );
  const indexes = await world.sql<{ line: string }>(
    `SELECT indexdef AS line FROM pg_indexes WHERE schemaname = 'public' ORDER BY indexname COLLATE "C"`,
  );
  const triggers = await world.sql<{ line: string }>(
    `SELECT pg_get_triggerdef(t.oid) AS line FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
     WHERE c.relnamespace = 'public'::regnamespace AND NOT t.tgisinternal
     ORDER BY c.relname COLLATE "C", t.tgname COLLATE "C"`,
  );
  const privileges = await world.sql<{ line: string }>(
    `SELECT format('%s: %s', table_name, string_agg(privilege_type, ', ' ORDER BY privilege_type)) AS line
     FROM information_schema.role_table_grants WHERE grantee = 'reckoner_app' AND table_schema = 'public'
     GROUP BY table_name ORDER BY table_name COLLATE "C"`,
  );
  const section = (title: string, rows: { line: string }[]) =>
    `## ${title}\n${rows.map((row) => row.line).join('\n')}\n`;
  return [
    section('Columns', columns),
    section('Constraints', constraints),
    section('Indexes', indexes),
    section('Triggers', triggers),
    section('What the app may do', privileges),
  ].join('\n');
}

test('a fresh database has exactly the committed schema', async () => {
  const schema = await describeSchema();
  if (process.env['UPDATE_SCHEMA']) writeFileSync(COMMITTED, schema);
  expect(schema).toBe(readFileSync(COMMITTED, 'utf8'));
});

test('the app may add to the ledger, to closed months and to documents, and change nothing in them', async () => {
  const schema = await describeSchema();
  for (const table of [
    'ledger_rows',
    'closed_months',
    'documents',
    'document_lines',
    'credit_applications',
    'document_pdfs',
  ]) {
    expect(schema).toContain(`\n${table}: INSERT, SELECT\n`);
  }
});
