/**
 * The proof of a partner's month. It contains the lines of the partner's rows, the fact in which the month's close
 * states their root, and the proof that the log includes this fact (https://c2sp.org/tlog-proof). The count, the sums
 * and the root in that fact show that no row is missing. The proof does not reveal the rows of other partners.
 * Refusals: month_not_closed, partner_without_rows.
 */
import type { Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import { readClosedMonth } from '../ledger/closed-months.sql.ts';
import type { Month } from '../month.ts';
import { type Checkpoint, readCheckpoints } from './checkpoints.sql.ts';
import { type NumberRange, readLeaves, readMonthPartnerLines, readPartnerLines } from './lines.sql.ts';
import { noteOf } from './note.ts';
import { readSignatureLines } from './signatures.sql.ts';
import { inclusionProof, type KnownNodes, LeafRange } from './tree.ts';

export interface PartnerProof {
  readonly currency: string;
  readonly arrangement: string;
  /** The lines of the partner's rows, in the order of the log. */
  readonly rows: readonly string[];
  /** The fact, its place in the log, the hashes on the path to the root, and the checkpoint. */
  readonly proof: string;
}

/** One proof for each currency and arrangement of the partner in a closed month. */
export async function provePartner(
  tx: Transaction,
  { partnerId, month }: { readonly partnerId: string; readonly month: Month },
): Promise<PartnerProof[]> {
  const closed = await readClosedMonth(tx, month);
  if (closed === undefined) throw refuse('month_not_closed', { month });
  const checkpoints = await readCheckpoints(tx);
  const at = checkpoints.findIndex(({ closes }) => closes === `month ${month}`);
  const [own, before, last] = [checkpoints[at], checkpoints[at - 1], checkpoints.at(-1)];
  if (own === undefined || last === undefined) throw refuse('month_not_closed', { month });
  const facts = await readMonthPartnerLines(tx, { month, partnerId });
  if (facts.length === 0) throw refuse('partner_without_rows', { partner_id: partnerId, month });
  const { hashes, numbers } = await leavesOf(tx, { after: before?.last_no ?? 0, to: own.last_no });
  const known = knownNodes(checkpoints, own, hashes);
  const note = noteOf(last, (await readSignatureLines(tx, [last.size])).get(last.size) ?? []);
  const proofs: PartnerProof[] = [];
  for (const { number, line, currency, arrangement } of facts) {
    const index = own.size - numbers.length + numbers.indexOf(number);
    const path = inclusionProof(known, index, last.size).map((hash) => `${hash.toString('base64')}\n`);
    const proof = [
      ...['c2sp.org/tlog-proof@v1\n', `extra ${Buffer.from(line).toString('base64')}\n`, `index ${index}\n`],
      ...[...path, '\n', note],
    ].join('');
    const months = { after: closed.previous ?? '', to: month };
    const rows = await readPartnerLines(tx, months, { partnerId, currency, arrangement });
    proofs.push({ currency, arrangement, rows, proof });
  }
  return proofs;
}

/** The leaf hashes of a range, and the numbers of its facts. */
async function leavesOf(tx: Transaction, range: NumberRange): Promise<{ hashes: Buffer[]; numbers: number[] }> {
  const hashes: Buffer[] = [];
  const numbers: number[] = [];
  const take = (number: number, content: Buffer, from: number, to: number) => {
    hashes.push(Buffer.from(content.subarray(from, to)));
    numbers.push(number);
  };
  await readLeaves(tx, range, { onFact: take, onRow: take });
  return { hashes, numbers };
}

/** The subtrees of all checkpoints, and the single leaves of the checkpoint `own`. */
function knownNodes(checkpoints: readonly Checkpoint[], own: Checkpoint, hashes: readonly Buffer[]): KnownNodes {
  const known: KnownNodes = new Map();
  let before = 0;
  for (const { size, span, edge } of checkpoints) {
    LeafRange.read(before, size, span).enter(known);
    if (size <= own.size) LeafRange.read(0, size, edge).enter(known);
    before = size;
  }
  for (const [at, hash] of hashes.entries()) known.set(`0 ${own.size - hashes.length + at}`, hash.toString('latin1'));
  return known;
}
