/**
 * Proofs that the seals of closed months cover one item, without disclosing the other rows and facts. A proof has the
 * lines about the item, the path of each to the Merkle root of its table, and the seal records (docs/pack-format.md,
 * Proofs). Refusals: row_unknown, document_unknown, payment_unknown, event_unknown, not_sealed, not_as_sealed.
 */
import type { Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import type { Month } from '../month.ts';
import { copiesOfFacts, ROW_COLUMNS, readRowLine, SEALED_TABLES } from '../seals/canonical.ts';
import { hashRows } from '../seals/rows.ts';
import { hashFacts } from '../seals/seal.ts';
import { type Fact, readFacts, readPlaceOfRow, readSealedMonths, type SealedMonth, type Subject } from './proof.sql.ts';

/** A line with its inclusion path (RFC 9162, 2.1.3), which lists the siblings from the leaf upwards. */
export interface ProvedFact {
  readonly month: Month;
  readonly table: string;
  /** The header of the table: leaf 0 of a table of facts. */
  readonly columns: string;
  /** Null for `ledger_rows`, whose columns the record states. */
  readonly columns_path: readonly string[] | null;
  readonly line: string;
  readonly index: number;
  readonly leaves: number;
  readonly path: readonly string[];
}

export interface Proof {
  readonly format: 'reckoner-proof';
  readonly version: 2;
  /** `row 12`, `document INV-2026-000001`, `payment 3`, `event 40`. */
  readonly subject: string;
  readonly records: readonly { readonly month: Month; readonly seal: string; readonly record: string }[];
  readonly facts: readonly ProvedFact[];
}

export interface ProofResult {
  readonly proof: Proof;
  /** Facts of the subject that no seal covers yet, by table. They are not in the proof. */
  readonly unsealed: readonly { readonly table: string; readonly facts: number }[];
}

export async function prove(tx: Transaction, subject: Subject): Promise<ProofResult> {
  const [[kind, id] = ['', '']] = Object.entries(subject);
  const name = `${kind} ${id}`;
  if ('row' in subject) return proveRow(tx, subject.row, name);
  const found = await readFacts(tx, subject);
  const main = MAIN_TABLE[kind as keyof typeof MAIN_TABLE];
  const first = found.find(({ table }) => table === main);
  if (first === undefined) throw refuseUnknown(subject);
  if (first.month === null) throw refuse('not_sealed', { subject: name });
  const sealed = found.filter((each): each is SealedFact => each.month !== null);
  const months = [...new Set(sealed.map(({ month }) => month))].sort();
  const [records, facts]: [SealedMonth[], ProvedFact[]] = [await readSealedMonths(tx, months), []];
  for (const month of records) {
    const own = sealed.filter((each) => each.month === month.month);
    facts.push(...(await proveFacts(tx, month, own, name)));
  }
  const waiting = found.filter(({ month }) => month === null).map(({ table }) => table);
  const unsealed = [...new Set(waiting)].map((table) => ({
    table,
    facts: waiting.filter((each) => each === table).length,
  }));
  return { proof: proofOf(name, records, facts), unsealed };
}

const proofOf = (subject: string, records: readonly SealedMonth[], facts: readonly ProvedFact[]): Proof => ({
  format: 'reckoner-proof',
  version: 2,
  subject,
  records: records.map(({ month, seal, record }) => ({ month, seal, record })),
  facts,
});

// --- Which facts ------------------------------------------------------------------------------------------------------

const MAIN_TABLE = { document: 'documents', payment: 'payments', event: 'audit_events' } as const;

function refuseUnknown(subject: Exclude<Subject, { row: number }>) {
  if ('document' in subject) return refuse('document_unknown', { number: subject.document });
  if ('payment' in subject) return refuse('payment_unknown', { payment_id: subject.payment });
  return refuse('event_unknown', { event_id: subject.event });
}

interface SealedFact extends Fact {
  readonly month: Month;
}

// --- Their paths ------------------------------------------------------------------------------------------------------

const TAB = 0x09;
const hex = (path: readonly Buffer[] | undefined) => (path ?? []).map((hash) => hash.toString('hex'));

/** The facts of one month: each table is read once, in constant memory, and compared with the record. */
async function proveFacts(
  tx: Transaction,
  { month, record, facts_after: after, facts_to: to }: SealedMonth,
  facts: readonly SealedFact[],
  subject: string,
): Promise<ProvedFact[]> {
  const names = new Set(facts.map(({ table }) => table));
  const tables = SEALED_TABLES.filter(({ name }) => names.has(name));
  const proved: ProvedFact[] = [];
  for (const { name: table, copy } of (await copiesOfFacts(tx, { after, to }, tables)).sort(byName)) {
    const wanted = new Set(facts.filter((each) => each.table === table).map(({ fact_id }) => fact_id));
    const lines = new Map<number, string>();
    const tree = await hashFacts(tx, copy, (line, index) => {
      if (index > 0 && !wanted.has(Number(line.toString('latin1', 0, line.indexOf(TAB))))) return false;
      lines.set(index, line.toString());
      return true;
    });
    const { root, paths } = tree.finish();
    const { leaves } = tree;
    if (!record.includes(`\nfacts_of ${table} ${leaves - 1} ${root.toString('hex')}\n`))
      throw refuse('not_as_sealed', { subject, month, table });
    const columns = lines.get(0) as string;
    const columns_path = hex(paths.get(0));
    for (const [index, line] of lines) {
      if (index > 0)
        proved.push({ month, table, columns, columns_path, line, index, leaves, path: hex(paths.get(index)) });
    }
  }
  return proved;
}

const byName = (one: { name: string }, other: { name: string }) => (one.name < other.name ? -1 : 1);

async function proveRow(tx: Transaction, entryId: number, subject: string): Promise<ProofResult> {
  const [place] = await readPlaceOfRow(tx, entryId);
  if (place === undefined) throw refuse('row_unknown', { entry_id: entryId });
  const { month, previous, index } = place;
  if (month === null) throw refuse('not_sealed', { subject });
  const records = await readSealedMonths(tx, [month]);
  const line = (await readRowLine(tx, entryId)) as string;
  const tree = await hashRows(tx, { after: previous ?? '', to: month }, index);
  const { root, paths } = tree.finish();
  if (!records[0]?.record.includes(`\nrows_root ${root.toString('hex')}\n`))
    throw refuse('not_as_sealed', { subject, month, table: 'ledger_rows' });
  const fact = {
    ...{ month, table: 'ledger_rows', columns: ROW_COLUMNS.join('\t'), columns_path: null, line },
    ...{ index, leaves: tree.leaves, path: hex(paths.get(index)) },
  };
  return { proof: proofOf(subject, records, [fact]), unsealed: [] };
}
