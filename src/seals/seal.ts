/**
 * Seals. The seal of a closed month is the SHA-256 of its seal record, a few lines with the Merkle root of the month's
 * rows, the hashes of all facts since the previous seal, and the previous seal (docs/auditors.md). Changing anything
 * that a seal covers changes that seal and every later one. Seals are printed, mailed and exported, so a change is
 * noticed.
 */
import { createHash } from 'node:crypto';
import { copyLines, copyOut, countLines } from '../database/copy.ts';
import type { Transaction } from '../database/transaction.ts';
import type { Month } from '../month.ts';
import { copiesOfFacts, FORM, ROW_COLUMNS } from './canonical.ts';
import { MerkleTree } from './merkle.ts';
import { hashClosingMonth, hashed, type TreeSummary } from './rows.ts';
import {
  type Before,
  insertSeal,
  readLastFact,
  readLastSeal,
  readMonthToSeal,
  readSeals,
  type Seal,
} from './seals.sql.ts';

const BEFORE_THE_FIRST: Before = { month: null, seal: null, facts_to: 0 };

/**
 * Seals a month that was just closed. `previous` is the month closed before it. The seal covers the facts recorded
 * since the last seal. The caller holds the whole ledger lock.
 */
export async function sealMonth(
  tx: Transaction,
  { month, previous }: { readonly month: Month; readonly previous: Month | null },
  now: string,
): Promise<{ record: string; seal: string }> {
  const before = (await readLastSeal(tx)) ?? BEFORE_THE_FIRST;
  const factsTo = await readLastFact(tx);
  const tree = await hashClosingMonth(tx, { after: previous ?? '', to: month });
  const record = await writeRecord(tx, { month, before, factsTo, sealedAt: now }, hashed(tree));
  await insertSeal(tx, { month, previous: before.month, facts_to: factsTo, sealed_at: now, record });
  return { record, seal: sealOf(record) };
}

export const sealOf = (record: string): string => createHash('sha256').update(record).digest('hex');

interface MonthToSeal {
  readonly month: Month;
  readonly before: Before;
  readonly factsTo: number;
  readonly sealedAt: string;
}

/** The seal record of a closed month over these rows, from current data. */
async function writeRecord(
  tx: Transaction,
  { month, before, factsTo, sealedAt }: MonthToSeal,
  { count, root }: TreeSummary,
): Promise<string> {
  const facts = await readMonthToSeal(tx, month);
  const lines = [
    `reckoner seal ${FORM}`,
    `installation ${facts.installation_id} ${facts.environment}`,
    `month ${month}`,
    `previous ${before.month === null ? 'none' : `${before.month} ${before.seal}`}`,
    `issued_on ${facts.issued_on}`,
    `closed_at ${instant(facts.closed_at)}`,
    `sealed_at ${instant(sealedAt)}`,
    `rows ${count}`,
    `rows_root ${root}`,
    `rows_columns ${ROW_COLUMNS.join(' ')}`,
    `closed_with ${facts.entries} rows, ${facts.late_entries} late, ${facts.partners_with_documents} partners with ` +
      `documents, ${facts.partners_without_activity} without activity`,
    ...facts.totals.map(
      ({ currency, spot_price, partner_cut, invoice_amount }) =>
        `total ${currency} ${spot_price} ${partner_cut} ${invoice_amount}`,
    ),
    `facts ${before.facts_to + 1} to ${factsTo}`,
  ];
  const tables: string[] = [];
  for (const { name, copy } of await copiesOfFacts(tx, { after: before.facts_to, to: factsTo })) {
    const tree = await hashFacts(tx, copy);
    tables.push(`facts_of ${name} ${tree.leaves - 1} ${tree.finish().root.toString('hex')}`);
  }
  lines.push(...tables.sort());
  return lines.map((line) => `${line}\n`).join('');
}

/** 2026-08-01T10:00:00Z → 2026-08-01T10:00:00.000000Z */
export function instant(text: string): string {
  const [seconds, fraction = ''] = text.replace(/Z$/, '').split('.');
  return `${seconds}.${fraction.padEnd(6, '0')}Z`;
}

/**
 * The Merkle tree over the lines of a COPY; the header line is leaf 0. `choose` selects the lines whose paths are
 * requested.
 */
export async function hashFacts(
  tx: Transaction,
  copy: string,
  choose?: (line: Buffer, index: number) => boolean,
): Promise<MerkleTree> {
  const tree = new MerkleTree();
  await copyLines(tx, copy, (content, before, end) => {
    if (choose?.(content.subarray(before + 1, end), tree.leaves)) tree.chooseNext();
    tree.addContent(content, before, end);
  });
  return tree;
}

/** The output of a COPY with a header line: its rows and its SHA-256. */
export async function hashCopy(tx: Transaction, copy: string): Promise<{ rows: number; sha256: string }> {
  const hash = createHash('sha256');
  let lines = 0;
  await copyOut(tx, copy, (chunk) => {
    hash.update(chunk);
    lines += countLines(chunk);
  });
  return { rows: lines - 1, sha256: hash.digest('hex') };
}

/** A seal, and its record recomputed from current data. */
interface RecomputedSeal {
  readonly month: Month;
  /** Undefined if the closed month has no seal. */
  readonly seal: Seal | undefined;
  /** Computed with the stored seal of the previous month. */
  readonly record: string | undefined;
}

/** Recomputes the seals of the closed months whose rows were hashed. */
export async function* recomputeSeals(
  tx: Transaction,
  rows: ReadonlyMap<Month, TreeSummary>,
): AsyncGenerator<RecomputedSeal> {
  let before = BEFORE_THE_FIRST;
  for (const each of await readSeals(tx)) {
    const seal = each.seal ? (each as Seal) : undefined;
    const ofMonth = rows.get(each.month);
    if (ofMonth !== undefined) {
      const toSeal = seal && { month: seal.month, before, factsTo: seal.facts_to, sealedAt: seal.sealed_at };
      const record = toSeal && (await writeRecord(tx, toSeal, ofMonth));
      yield { month: each.month, seal, record };
    }
    if (seal) before = { month: seal.month, seal: seal.seal, facts_to: seal.facts_to };
  }
}
