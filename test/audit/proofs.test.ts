/** Proofs of single things, read back by the definition of their trees, and what cannot be proved. */
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Subject } from '../../src/audit/proof.sql.ts';
import { type ProofResult, type ProvedFact, prove } from '../../src/audit/proof.ts';
import { booksOf } from '../payments/books.ts';
import type { World } from '../support/world.ts';
import { openBooks } from './books.ts';

let world: World;
let paymentId: number;
beforeAll(async () => {
  world = await openBooks();
  const books = booksOf(world);
  world.at('2026-10-15T10:00:00Z');
  const paid = { amount: '5', number: 'INV-2026-000004', currency: 'USD', receivedOn: '2026-10-15' };
  ({ paymentId } = await books.record({ ...paid, reference: 'FT-1' }));
  world.at('2026-11-01T10:00:00Z');
  await world.close();
  await books.reverse({ paymentId, kind: 'returned' });
});
afterAll(() => world.end());

const prov = (subject: Subject): Promise<ProofResult> => world.database.reading((tx) => prove(tx, subject));
const sha = (...parts: Buffer[]) => createHash('sha256').update(Buffer.concat(parts)).digest();

/** The root that a leaf and its path give, by RFC 9162, 2.1.3.2. */
function rootOf(line: string, index: number, leaves: number, path: readonly string[]): string {
  let [at, last, hash] = [index, leaves - 1, sha(Buffer.of(0), Buffer.from(line))];
  for (const each of path) {
    const sibling = Buffer.from(each, 'hex');
    expect(last).toBeGreaterThan(0);
    if (at % 2 === 1 || at === last) {
      hash = sha(Buffer.of(1), sibling, hash);
      while (at % 2 === 0 && at !== 0) [at, last] = [at >> 1, last >> 1];
    } else hash = sha(Buffer.of(1), hash, sibling);
    [at, last] = [at >> 1, last >> 1];
  }
  expect(last).toBe(0);
  return hash.toString('hex');
}

/** Each fact is under the record of its month, and each record under its seal. Gives the facts as objects. */
function readBack({ proof }: ProofResult): (Record<string, string> & { table: string })[] {
  const seals = new Map(proof.records.map(({ month, seal, record }) => [month, { seal, record }]));
  for (const { seal, record } of seals.values()) expect(sha(Buffer.from(record)).toString('hex')).toBe(seal);
  expect([...seals.keys()]).toEqual([...new Set(proof.facts.map(({ month }) => month))].sort());
  return proof.facts.map((fact: ProvedFact) => {
    const { month, table, columns, columns_path, line, index, leaves, path } = fact;
    const lines = (seals.get(month)?.record ?? '').split('\n');
    if (table === 'ledger_rows') {
      expect(lines).toContain(`rows_root ${rootOf(line, index, leaves, path)}`);
      expect([lines.includes(`rows ${leaves}`), columns_path]).toEqual([true, null]);
      expect(lines).toContain(`rows_columns ${columns.split('\t').join(' ')}`);
    } else {
      const stated = `facts_of ${table} ${leaves - 1}`;
      expect(lines).toContain(`${stated} ${rootOf(line, index, leaves, path)}`);
      expect(lines).toContain(`${stated} ${rootOf(columns, 0, leaves, columns_path ?? [])}`);
    }
    const values = line.split('\t');
    return { table, ...Object.fromEntries(columns.split('\t').map((name, at) => [name, values[at] ?? ''])) };
  });
}

test('every row of a closed month is proved by itself', async () => {
  const rows = await world.sql<{ id: string }>('SELECT entry_id::text AS id FROM ledger_rows ORDER BY entry_id');
  expect(rows.length).toBeGreaterThan(10);
  for (const { id } of rows) {
    const proved = readBack(await prov({ row: Number(id) }));
    expect(proved).toMatchObject([{ table: 'ledger_rows', entry_id: id }]);
  }
});

test('every document is proved with all its lines, its PDF and its void, and nothing of another', async () => {
  const documents = await world.sql<{ number: string; id: string; sealed: boolean }>(
    `SELECT number, document_id::text AS id, fact_id <= (SELECT max(facts_to) FROM seals) AS sealed FROM documents`,
  );
  const seen = new Set<string>();
  for (const { number, id, sealed } of documents) {
    if (!sealed) continue;
    const facts = readBack(await prov({ document: number }));
    expect(facts.filter((fact) => fact['document_id'] !== id)).toEqual([]);
    const of = (table: string) => facts.filter((fact) => fact.table === table);
    for (const table of ['document_lines', 'document_pdfs', 'voids']) {
      const [stored] = await world.sql<{ facts: number }>(
        `SELECT count(*)::int AS facts FROM ${table} WHERE document_id = ${id}
         AND fact_id <= (SELECT max(facts_to) FROM seals)`,
      );
      expect([number, table, of(table).length]).toEqual([number, table, stored?.facts]);
      if (of(table).length > 0) seen.add(table);
    }
    expect(of('documents')).toMatchObject([{ number }]);
  }
  expect([...seen].sort()).toEqual(['document_lines', 'document_pdfs', 'voids']);
});

test('every audit event under a seal is proved by itself', async () => {
  const events = await world.sql<{ id: string; sealed: boolean }>(
    `SELECT event_id::text AS id, fact_id <= (SELECT max(facts_to) FROM seals) AS sealed FROM audit_events`,
  );
  expect(new Set(events.map(({ sealed }) => sealed))).toEqual(new Set([true, false]));
  for (const { id, sealed } of events) {
    const asked = prov({ event: Number(id) });
    if (sealed) expect(readBack(await asked)).toMatchObject([{ table: 'audit_events', event_id: id }]);
    else await expect(asked).rejects.toMatchObject({ code: 'not_sealed', facts: { subject: `event ${id}` } });
  }
});

test('a payment is proved with what is recorded of it, and what no seal covers yet is named', async () => {
  const proved = await prov({ payment: paymentId });
  const facts = readBack(proved);
  expect(facts.filter((fact) => fact['payment_id'] !== String(paymentId))).toEqual([]);
  expect(facts.map(({ table }) => table)).toEqual(['payment_applications', 'payment_sources', 'payments']);
  expect(proved.unsealed).toEqual([{ table: 'payment_reversals', facts: 1 }]);
});

test('what is not there, or under no seal, is refused', async () => {
  const unknown = [
    { row: 999_999 },
    { document: 'INV-2026-999999' },
    { payment: 999_999 },
    { event: 999_999 },
  ] as const;
  const codes = ['row_unknown', 'document_unknown', 'payment_unknown', 'event_unknown'];
  for (const [at, subject] of unknown.entries()) await expect(prov(subject)).rejects.toMatchObject({ code: codes[at] });
});
