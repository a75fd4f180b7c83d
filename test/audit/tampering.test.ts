/**
 * Whoever owns the database can switch its guards off and rewrite it. Each way of doing so, done here as the owner and
 * undone again, is named by a check; the one that no check inside of the database can name is named by what left it.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findBrokenSeals } from '../../src/audit/checks/seals.ts';
import { exportPack } from '../../src/audit/export.ts';
import { verify } from '../../src/audit/verify.ts';
import { copyOut } from '../../src/database/copy.ts';
import type { Transaction } from '../../src/database/transaction.ts';
import type { Month } from '../../src/month.ts';
import { readClosedBooks } from '../../src/seals/books.sql.ts';
import { writeBooksRecord } from '../../src/seals/books.ts';
import {
  copiesOfFacts,
  OTHER_TABLES,
  ROW_COLUMNS,
  SEALED_TABLES,
  type SealedTable,
} from '../../src/seals/canonical.ts';
import { hashAgain } from '../../src/seals/checkpoint.ts';
import { hashRows } from '../../src/seals/rows.ts';
import { recomputeSeals, sealMonth } from '../../src/seals/seal.ts';
import { readLastFact } from '../../src/seals/seals.sql.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import type { World } from '../support/world.ts';
import { exported, month, openBooks, verifyPack } from './books.ts';
import { type Owner, openOwner } from './owner.ts';

let world: World;
let owner: Owner;
let before: string;

beforeAll(async () => {
  world = await openBooks();
  // What left the house in time.
  before = await exported(world, { kind: 'ledger' });
  owner = openOwner(world);
});
afterAll(async () => {
  await owner.close();
  await world.end();
});

/** Does the work over a database damaged by these statements, with every trigger off, and undoes the damage. */
const damaged = <Result>(statements: readonly string[], work: (tx: Transaction) => Promise<Result>): Promise<Result> =>
  owner.undone(async (tx) => {
    await tx.knex.raw(GUARDS_OFF);
    for (const statement of statements) {
      const { rowCount } = (await tx.knex.raw(statement)) as { rowCount: number | null };
      if (/^(UPDATE|DELETE|INSERT)/.test(statement)) expect([statement, rowCount]).not.toEqual([statement, 0]);
    }
    return work(tx);
  });

const brokenSeals = async (tx: Transaction) =>
  (await findBrokenSeals(tx, { hashedAgain: () => hashAgain(tx, null) })).differences.map(({ subject }) => subject);

async function failing(tx: Transaction): Promise<string[]> {
  await tx.knex.raw(GUARDS_ON);
  const { checks } = await verify(tx, undefined, { schema: world.schema });
  return checks.filter(({ differences }) => differences.length > 0).map(({ check }) => check);
}

test('undamaged, all seals are what they were', async () => {
  expect(await damaged([], brokenSeals)).toEqual([]);
  expect(await damaged([], failing)).toEqual([]);
}, 120_000);

/** Another value of a column's type. Constraints are dropped first: their owner could, too. */
const OTHER_VALUE: Readonly<Record<string, (column: string) => string>> = {
  text: (column) => `coalesce(${column}, '') || 'x'`,
  billing_month: () => `'2020-01'`,
  bigint: (column) => `coalesce(${column}, 0) + 1000000`,
  integer: (column) => `coalesce(${column}, 0) + 1000`,
  numeric: (column) => `coalesce(${column}, 0) + 0.01`,
  boolean: (column) => `NOT ${column}`,
  date: (column) => `coalesce(${column}, '2020-01-01') + 1`,
  'timestamp with time zone': (column) => `coalesce(${column}, now()) + interval '1 microsecond'`,
  jsonb: () => `'{"other": true}'`,
  'text[]': (column) => `${column} || '{other}'::text[]`,
  bytea: (column) => `${column} || '\\x00'::bytea`,
};

async function columnsOf(table: string): Promise<{ name: string; type: string; generated: boolean }[]> {
  return world.sql(
    `SELECT attname AS name, format_type(atttypid, NULL) AS type, attgenerated <> '' AS generated FROM pg_attribute
     WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum`,
    [table],
  );
}

/** Drops what would refuse the change: constraints, keys, identities. */
const withoutConstraints = (table: string) => `
  DO $$
  DECLARE
    name text;
  BEGIN
    FOR name IN SELECT conname FROM pg_constraint WHERE conrelid = '${table}'::regclass
                AND contype NOT IN ('n', 't') LOOP
      EXECUTE format('ALTER TABLE ${table} DROP CONSTRAINT IF EXISTS %I CASCADE', name);
    END LOOP;
    FOR name IN SELECT format('ALTER COLUMN %I DROP NOT NULL', attname) FROM pg_attribute
                WHERE attrelid = '${table}'::regclass AND attnum > 0 AND attnotnull AND NOT attisdropped AND attidentity = '' LOOP
      EXECUTE 'ALTER TABLE ${table} ' || name;
    END LOOP;
    FOR name IN SELECT indexrelid::regclass FROM pg_index WHERE indrelid = '${table}'::regclass LOOP
      EXECUTE format('DROP INDEX %s', name);
    END LOOP;
    FOR name IN SELECT attname FROM pg_attribute WHERE attrelid = '${table}'::regclass AND attidentity <> '' LOOP
      EXECUTE format('ALTER TABLE ${table} ALTER COLUMN %I DROP IDENTITY', name);
    END LOOP;
  END
  $$`;

/** Does the work over one change more, and undoes that change alone. */
async function changed<Result>(
  tx: Transaction,
  change: string,
  work: (tx: Transaction) => Promise<Result>,
): Promise<Result> {
  await tx.knex.raw('SAVEPOINT before');
  const { rowCount } = (await tx.knex.raw(change)) as { rowCount: number | null };
  expect([change, rowCount]).toEqual([change, 1]);
  const result = await work(tx);
  await tx.knex.raw('ROLLBACK TO SAVEPOINT before');
  return result;
}

test('any field of any ledger row', async () => {
  const types = new Map((await columnsOf('ledger_rows')).map(({ name, type }) => [name, type]));
  const rows = await world.sql<{ entry_id: string }>(
    `SELECT entry_id FROM ledger_rows WHERE posted_month = '2026-07' ORDER BY entry_id`,
  );
  const root = async (tx: Transaction) =>
    (await hashRows(tx, { after: '', to: '2026-07' })).finish().root.toString('hex');
  let inspected = 0;
  await damaged([withoutConstraints('ledger_rows')], async (tx) => {
    const sealed = await root(tx);
    for (const column of ROW_COLUMNS) {
      const value = column.endsWith('month') ? `'2026-08'` : OTHER_VALUE[types.get(column) ?? '']?.(column);
      const change = (entryId: string) => `UPDATE ledger_rows SET ${column} = ${value} WHERE entry_id = ${entryId}`;
      for (const { entry_id } of rows) {
        expect([column, entry_id, await changed(tx, change(entry_id), root)]).not.toEqual([column, entry_id, sealed]);
        inspected += 1;
      }
      const seals = await changed(tx, change(rows[0]?.entry_id ?? ''), brokenSeals);
      expect([column, seals]).toEqual([column, expect.arrayContaining(['seal of 2026-07'])]);
    }
  });
  expect(inspected).toBe(5 * ROW_COLUMNS.length);
}, 120_000);

test('nothing of a ledger row is left out of its line', async () => {
  const columns = (await columnsOf('ledger_rows')).map(({ name }) => name);
  expect([...columns].sort()).toEqual([...ROW_COLUMNS].sort());
});

test('NULL and a text that looks like it are not the same', async () => {
  const { differing } = await damaged(
    [withoutConstraints('ledger_rows'), `UPDATE ledger_rows SET enrollment_id = NULL WHERE entry_id = 1`],
    async (tx) => {
      const seals = async () => {
        const records: (string | undefined)[] = [];
        for await (const { record } of recomputeSeals(tx, (await hashAgain(tx, month('2026-07'))).months))
          records.push(record);
        return records.join();
      };
      const none = await seals();
      await tx.knex.raw(`UPDATE ledger_rows SET enrollment_id = '\\N' WHERE entry_id = 1`);
      const text = await seals();
      await tx.knex.raw(`UPDATE ledger_rows SET enrollment_id = '' WHERE entry_id = 1`);
      return { differing: new Set([none, text, await seals()]).size };
    },
  );
  expect(differing).toBe(3);
});

/** Tables that these books do not fill get one row of their own. */
const SOME_VALUE: Readonly<Record<string, string>> = {
  text: `'a'`,
  billing_month: `'2026-01'`,
  bigint: '1',
  integer: '1',
  numeric: '1',
  boolean: 'true',
  date: `'2026-01-01'`,
  'timestamp with time zone': `'2026-01-01T00:00:00Z'`,
  jsonb: `'{}'`,
  'text[]': `'{a}'`,
  bytea: `'a'`,
};

const linesOf = async (tx: Transaction, table: SealedTable): Promise<string> => {
  const pieces: Buffer[] = [];
  const copies = await copiesOfFacts(tx, { after: 0, to: Number.MAX_SAFE_INTEGER }, [table]);
  for (const { copy } of copies) await copyOut(tx, copy, (piece) => void pieces.push(piece));
  return Buffer.concat(pieces).toString();
};

describe('any field of any fact under a seal', () => {
  test.each(SEALED_TABLES.map((table) => [table.name, table] as const))(
    '%s',
    async (name, table) => {
      const all = await columnsOf(name);
      expect(all).not.toEqual([]);
      const columns = all.filter((column) => table.columns.includes(column.name) && !column.generated);
      const [{ filled } = { filled: 0 }] = await world.sql<{ filled: number }>(
        `SELECT count(*)::int AS filled FROM ${name} WHERE fact_id <= (SELECT max(facts_to) FROM seals)`,
      );
      const written = columns.filter((column) => column.name !== 'fact_id');
      const row = `INSERT INTO ${name} (${written.map((column) => `"${column.name}"`).join(', ')})
                 VALUES (${written.map(({ type }) => SOME_VALUE[type]).join(', ')})`;
      const first = `(SELECT min(fact_id) FROM ${name})`;
      let inspected = 0;
      await damaged([withoutConstraints(name), ...(filled > 0 ? [] : [row])], async (tx) => {
        const sealed = await linesOf(tx, table);
        for (const column of columns) {
          const value = OTHER_VALUE[column.type]?.(`"${column.name}"`);
          expect([column, value]).not.toEqual([column, undefined]);
          const change = `UPDATE ${name} SET "${column.name}" = ${value} WHERE fact_id = ${first}`;
          expect([column.name, await changed(tx, change, (each) => linesOf(each, table))]).not.toEqual([
            column.name,
            sealed,
          ]);
          if (filled > 0) expect([column.name, await changed(tx, change, brokenSeals)]).not.toEqual([column.name, []]);
          inspected += 1;
        }
        const removed = `DELETE FROM ${name} WHERE fact_id = ${first}`;
        if (filled > 0) expect(await changed(tx, removed, brokenSeals)).not.toEqual([]);
      });
      expect(inspected).toBeGreaterThan(2);
    },
    120_000,
  );

  test('these books fill all tables of documents', async () => {
    const names = SEALED_TABLES.map(({ name }) => name);
    const ofDocuments = names.slice(names.indexOf('documents'), names.indexOf('document_pdfs') + 1);
    const unused = ['skipped_numbers', 'document_taxes'];
    for (const name of ['audit_events', 'issuer_versions', ...ofDocuments.filter((each) => !unused.includes(each))]) {
      expect([name, (await world.sql(`SELECT FROM ${name}`)).length > 0]).toEqual([name, true]);
    }
  });
});

test('a seal over a table or a column that the database misses is an error, and covers no less', async () => {
  const [known] = SEALED_TABLES;
  if (known === undefined) throw new Error('no table is sealed');
  const missing = [
    { ...known, name: 'no_such_table' },
    { ...known, columns: [...known.columns, 'no_such_column'] },
  ];
  for (const table of missing) {
    await expect(world.database.reading((tx) => linesOf(tx, table))).rejects.toThrow(/covered by seals: .*no_such_/);
  }
});

test('every table is either sealed, with all of its columns, or in the list of those that are not, with a reason', async () => {
  const tables = await world.sql<{ name: string }>(
    `SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
       AND relname NOT LIKE 'migrations%' ORDER BY relname`,
  );
  const sealed = new Map(SEALED_TABLES.map((table) => [table.name, table]));
  let inspected = 0;
  for (const { name } of tables) {
    expect([name, sealed.has(name) !== (OTHER_TABLES[name] !== undefined)]).toEqual([name, true]);
    const table = sealed.get(name);
    if (table === undefined) continue;
    inspected += 1;
    const covered = [...table.columns, ...Object.keys(table.leftOut ?? {})];
    const forgotten = (await columnsOf(name)).filter((column) => !covered.includes(column.name));
    expect([name, forgotten]).toEqual([name, []]);
    const [{ trigger } = { trigger: false }] = await world.sql<{ trigger: boolean }>(
      `SELECT count(*) = 1 AS trigger FROM pg_trigger WHERE tgrelid = $1::regclass AND tgname = 'facts_in_order'`,
      [name],
    );
    expect([name, trigger]).toEqual([name, true]);
  }
  expect(inspected).toBeGreaterThanOrEqual(12);
});

const ROW = `(SELECT min(entry_id) FROM ledger_rows)`;
const ROW_IN_USD = `(SELECT min(entry_id) FROM ledger_rows WHERE currency = 'USD')`;
const NEW_ROW = `INSERT INTO ledger_rows (partner_id, posted_month, kind, quote_id, policy_id, currency, accepted_at, spot_price,
    partner_cut, invoice_amount, time_zone, month, arrangement, recorded_at, event_id)
  SELECT partner_id, posted_month, kind, 'q-new', policy_id, currency, accepted_at, 0, 0, 0, time_zone, month,
    arrangement, recorded_at, event_id FROM ledger_rows WHERE entry_id = ${ROW}`;

/** One line for each way to rewrite the past, with all checks that must say so. */
const TAMPERINGS: readonly [what: string, checks: readonly string[], ...statements: string[]][] = [
  ['a row of nothing added', ['seals_recomputed'], NEW_ROW],
  [
    'a balance of closed books',
    ['balances_of_closed_books', 'closed_books_recomputed'],
    `UPDATE book_balances SET amount = amount + 1 WHERE month = '2026-07'`,
  ],
  [
    'a correction moved into closed books',
    ['seals_recomputed', 'balances_of_closed_books', 'closed_books_recomputed'],
    `UPDATE write_offs SET written_off_on = '2026-07-31', reopened_on = NULL`,
  ],
  [
    'an exported journal moved to another account of theirs',
    ['seals_recomputed', 'gl_export_files_as_written'],
    `UPDATE gl_export_lines SET to_account = 'Elsewhere' WHERE line = 1`,
  ],
  ['a row removed', ['seals_recomputed', 'documents_match_rows'], `DELETE FROM ledger_rows WHERE entry_id = ${ROW}`],
  [
    'two rows swapped',
    ['seals_recomputed'],
    withoutConstraints('ledger_rows'),
    `UPDATE ledger_rows SET entry_id = CASE entry_id WHEN 1 THEN 2 ELSE 1 END WHERE entry_id IN (1, 2)`,
  ],
  [
    'the clock of a row',
    ['seals_recomputed'],
    `UPDATE ledger_rows SET recorded_at = recorded_at - interval '1 day' WHERE entry_id = ${ROW}`,
  ],
  [
    'the effective time of a row, within its month',
    ['seals_recomputed'],
    `UPDATE ledger_rows SET accepted_at = accepted_at + interval '1 hour' WHERE entry_id = ${ROW}`,
  ],
  [
    "a document's total, with its lines",
    ['seals_recomputed', 'documents_match_rows'],
    `UPDATE documents SET spot_price = spot_price + 1, partner_cut = partner_cut + 1 WHERE number = 'INV-2026-000002'`,
    `UPDATE document_lines SET spot_price = spot_price + 1, partner_cut = partner_cut + 1
     WHERE document_id = (SELECT document_id FROM documents WHERE number = 'INV-2026-000002') AND position = 1`,
  ],
  [
    "a document's number",
    ['seals_recomputed', 'numbers_without_gaps'],
    `UPDATE documents SET sequence = 77 WHERE number = 'INV-2026-000002'`,
  ],
  [
    "a partner's name on a document",
    ['seals_recomputed', 'document_pdfs_as_issued'],
    `UPDATE documents SET partner_name = 'Another' WHERE number = 'INV-2026-000002'`,
  ],
  ['a reason of a void', ['seals_recomputed'], `UPDATE voids SET reason = 'their wish'`],
  ['who did it', ['seals_recomputed'], `UPDATE audit_events SET claimed_by = 'Grace' WHERE action = 'invoice.void'`],
  ['an event that never was', ['seals_recomputed'], `DELETE FROM audit_events WHERE action = 'invoice.hold'`],
  [
    'counts of a close',
    ['seals_recomputed'],
    `UPDATE closed_months SET partners_without_activity = 7 WHERE month = '2026-08'`,
  ],
  [
    'the day of a close',
    ['seals_recomputed'],
    `UPDATE closed_months SET closed_at = closed_at - interval '1 day' WHERE month = '2026-08'`,
  ],
  [
    'a seal record without its hash',
    ['seals_recomputed'],
    'ALTER TABLE seals DROP CONSTRAINT seal_is_the_hash_of_its_record',
    `UPDATE seals SET record = replace(record, 'rows 5', 'rows 6') WHERE month = '2026-09'`,
  ],
  [
    'a seal record with its hash',
    ['seals_recomputed'],
    `UPDATE seals SET record = s.text, seal = encode(sha256(convert_to(s.text, 'UTF8')), 'hex')
     FROM (SELECT replace(record, 'rows 5', 'rows 6') AS text FROM seals WHERE month = '2026-09') AS s WHERE month = '2026-09'`,
  ],
  ['a seal taken away, with those after it', ['seals_recomputed'], `DELETE FROM seals WHERE month >= '2026-08'`],
];

describe('verify names', () => {
  test.each(TAMPERINGS)(
    '%s',
    async (_, checks, ...statements) => {
      const found = await damaged(statements, failing);
      expect(found).toEqual(expect.arrayContaining([...checks]));
    },
    120_000,
  );
});

test('a month rewritten with its seal shows in the chain: the next seal has the old one', async () => {
  const found = await damaged(
    [`UPDATE ledger_rows SET recorded_at = recorded_at - interval '1 day' WHERE entry_id = ${ROW}`],
    async (tx) => {
      for await (const { record } of recomputeSeals(tx, (await hashAgain(tx, month('2026-07'))).months)) {
        await tx.knex.raw(
          `UPDATE seals SET record = ?, seal = encode(sha256(convert_to(?, 'UTF8')), 'hex') WHERE month = '2026-07'`,
          [record ?? '', record ?? ''],
        );
      }
      return brokenSeals(tx);
    },
  );
  expect(found).toEqual(['seal of 2026-08']);
});

test.each<[what: string, named: string[], ...statements: string[]]>([
  // Documents say the last seal before them. Whoever draws them anew, too, is betrayed by those that were sent.
  ['only the seals printed on documents show it', ['document_pdfs_as_issued']],
  [
    'with PDFs said to be of other libraries, which cannot be drawn again, nothing inside shows it',
    [],
    `UPDATE document_pdfs SET libraries = '{"fontkit": "0"}'`,
  ],
])('everything rewritten with all seals: %s, and each seal that left the house does', async (what, named, ...more) => {
  const out = join(world.home, `rewritten ${what}`);
  const old = JSON.parse(readFileSync(join(before, 'manifest.json'), 'utf8')) as {
    months: { month: string; seal: string }[];
  };
  const inside = await damaged(
    [`UPDATE ledger_rows SET enrollment_id = 'e-other' WHERE entry_id = ${ROW}`, ...more],
    async (tx) => {
      const seals = (await tx.knex.raw('SELECT month, sealed_at, facts_to FROM seals ORDER BY month')) as {
        rows: { month: Month; sealed_at: string; facts_to: number }[];
      };
      const last = await readLastFact(tx);
      await tx.knex.raw('DELETE FROM seals');
      for (const [at, { month: of, facts_to }] of seals.rows.entries()) {
        await tx.knex.raw(`SELECT setval('fact_numbers', ${facts_to})`);
        const sealing = { month: of, previous: seals.rows[at - 1]?.month ?? null };
        await sealMonth(tx, sealing, seals.rows[0]?.sealed_at ?? '');
      }
      await tx.knex.raw(`SELECT setval('fact_numbers', ${last})`);
      for (const books of await readClosedBooks(tx)) {
        const { record, seal } = await writeBooksRecord(tx, books);
        await tx.knex.raw('UPDATE book_closes SET record = ?, seal = ? WHERE month = ?', [record, seal, books.month]);
      }
      const found = await failing(tx);
      await exportPack(tx, world.environment, {
        kind: 'ledger',
        from: month('2026-07'),
        to: month('2026-09'),
        format: 'csv',
        out,
      });
      return found;
    },
  );
  expect(inside).toEqual(named);
  expect(verifyPack([out])).toMatchObject({ status: 0 });
  // An earlier pack, a mailed or printed seal, the last document that was sent: any one of them.
  const chain = verifyPack([out, '--previous', before]);
  expect(chain.status).toBe(1);
  expect(chain.output).toMatch(/2026-07 had [0-9a-f]{64}, and has [0-9a-f]{64}/);
  for (const { month: of, seal } of old.months) {
    expect(verifyPack([out, '--seal', `${of}=${seal}`]).output).toContain(`but you gave ${seal}`);
  }
});

describe('the verifier names, in a pack exported after it,', () => {
  /** What no seal can be changed for: the evidence and the seal record disagree. */
  const EXPORTED: readonly [what: string, says: RegExp, ...statements: string[]][] = [
    [
      'a row changed',
      /FAIL {2}seals[\s\S]*sealed\/2026-07\/ledger_rows\.tsv is not what was sealed/,
      `UPDATE ledger_rows SET quote_id = 'q-other' WHERE entry_id = ${ROW_IN_USD}`,
    ],
    [
      'a row removed',
      /2026-07\/ledger_rows\.tsv is not what was sealed[\s\S]*the rows in USD do not add up to the total/,
      `DELETE FROM ledger_rows WHERE entry_id = ${ROW_IN_USD}`,
    ],
    [
      'an amount',
      /FAIL {2}rows[\s\S]*the rows in USD do not add up to the total of the record/,
      `UPDATE ledger_rows SET spot_price = spot_price + 1, partner_cut = partner_cut + 1
       WHERE entry_id = ${ROW_IN_USD}`,
    ],
    [
      'a document total',
      /FAIL {2}documents[\s\S]*INV-2026-000002 is not the sum of its lines/,
      `UPDATE documents SET spot_price = spot_price + 1, partner_cut = partner_cut + 1 WHERE number = 'INV-2026-000002'`,
    ],
    [
      'a line and its total',
      /line 1 of INV-2026-000002 is not the sum of its rows/,
      `UPDATE documents SET spot_price = spot_price + 1, partner_cut = partner_cut + 1 WHERE number = 'INV-2026-000002'`,
      `UPDATE document_lines SET spot_price = spot_price + 1, partner_cut = partner_cut + 1
       WHERE position = 1 AND document_id = (SELECT document_id FROM documents WHERE number = 'INV-2026-000002')`,
    ],
    ['a number', /INV-2026: 2 is missing/, `UPDATE documents SET sequence = 77 WHERE number = 'INV-2026-000002'`],
    [
      'a document taken away',
      /rows of p-2 in 2026-07 in JPY are on no document/,
      `DELETE FROM documents WHERE partner_id = 'p-2' AND month = '2026-07'`,
    ],
    [
      'the amount of a correction in closed books',
      /books\/2026-08\/entries\.tsv: is not what was sealed/,
      `UPDATE write_offs SET amount = amount + 1`,
    ],
    ['a reason', /sealed\/2026-08\/voids\.tsv: is not what was sealed/, `UPDATE voids SET reason = 'their wish'`],
    [
      'a seal record with its hash',
      /2026-09 was sealed after [0-9a-f]{64}, not after [0-9a-f]{64}/,
      `UPDATE seals SET record = s.text, seal = encode(sha256(convert_to(s.text, 'UTF8')), 'hex')
       FROM (SELECT replace(record, 'issued_on 2026-09-01', 'issued_on 2026-09-02') AS text FROM seals WHERE month = '2026-08') AS s WHERE month = '2026-08'`,
    ],
  ];
  test.each(EXPORTED)('%s', async (what, says, ...statements) => {
    const out = join(world.home, `tampered ${what}`);
    await damaged(statements, (tx) =>
      exportPack(tx, world.environment, {
        kind: 'ledger',
        from: month('2026-07'),
        to: month('2026-09'),
        format: 'csv',
        out,
      }),
    );
    const { status, output } = verifyPack([out]);
    expect(output).toMatch(says);
    expect(status).toBe(1);
  });
});
