/**
 * The proof of a partner's month. It contains the lines of the partner's rows, the fact in which the month's close
 * states their root, and the proof that the log includes this fact (https://c2sp.org/tlog-proof). The count, the sums
 * and the root in that fact show that no row is missing. The proof does not reveal the rows of other partners.
 */
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { readClosedMonth } from '#ledger/closed-months.sql';
import { Month } from '#month';
import { readCheckpoints } from './checkpoints.sql.ts';
import { NumberRange, readLeaves, readMonthPartnerLines, readPartnerLines } from './lines.sql.ts';
import { readNoteOf } from './signatures.sql.ts';
import { hashLines, inclusionProof, knownNodes } from './tree.ts';

export type PartnerProof = Readonly<{
  currency: string;
  arrangement: string;
  rows: readonly string[];
  /** The fact, its place in the log, the hashes on the path to the root, and the checkpoint. */
  proof: string;
}>;

/** One proof for each currency and arrangement of the partner in a closed month. */
export async function provePartner(
  tx: Transaction,
  { partnerId, month }: Readonly<{ partnerId: string; month: Month }>,
  needLeaves: (numbers: NumberRange) => Promise<void>,
): Promise<PartnerProof[]> {
  const closed = await readClosedMonth(tx, month);
  if (closed === undefined) throw refuse('month_not_closed', { month });
  const checkpoints = await readCheckpoints(tx);
  const at = checkpoints.findIndex(({ closes }) => closes === `month ${month}`);
  const [own, before, last] = [checkpoints[at], checkpoints[at - 1], checkpoints.at(-1)];
  if (own === undefined || last === undefined) throw refuse('month_not_closed', { month });
  const facts = await readMonthPartnerLines(tx, { month, partnerId });
  if (facts.length === 0) throw refuse('partner_without_rows', { partner_id: partnerId, month });
  const range = { after: before?.last_no ?? 0, to: own.last_no };
  await needLeaves(range);
  const { hashes, numbers } = await leavesOf(tx, range);
  const known = knownNodes(checkpoints);
  for (const [at, hash] of hashes.entries()) known.set(`0 ${own.size - hashes.length + at}`, hash.toString('latin1'));
  const note = await readNoteOf(tx, last);
  const lines = await readPartnerLines(tx, { after: closed.previous ?? '', to: month }, partnerId);
  return facts.map(({ number, line, currency, arrangement }) => {
    const index = own.size - numbers.length + numbers.indexOf(number);
    const path = hashLines(inclusionProof(known, index, last.size));
    const extra = Buffer.from(line).toString('base64');
    const proof = `c2sp.org/tlog-proof@v1\nextra ${extra}\nindex ${index}\n${path}\n${note}`;
    return { currency, arrangement, rows: lines.get(`${currency} ${arrangement}`) ?? [], proof };
  });
}

async function leavesOf(tx: Transaction, range: NumberRange) {
  const hashes: Buffer[] = [];
  const numbers: number[] = [];
  const take = (number: number, content: Buffer, from: number, to: number) => {
    hashes.push(Buffer.from(content.subarray(from, to)));
    numbers.push(number);
  };
  await readLeaves(tx, range, { onFact: take, onRow: take });
  return { hashes, numbers };
}
