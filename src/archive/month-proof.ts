/**
 * The proof of an archived month. Beside its Parquet files is a statement, a text that proves without the database what
 * the close stated (docs/auditors.md, Old months). Refusal: duckdb_missing.
 */
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Transaction } from '../database/transaction.ts';
import { Refusal, reasonOf } from '../errors/refusals.ts';
import { writeWhole } from '../files.ts';
import { type Checkpoint, readCheckpoints } from '../log/checkpoints.sql.ts';
import { copyLines, readLeaves } from '../log/lines.sql.ts';
import { bodyOf, readNote, type TreeHead } from '../log/note.ts';
import { hashLines, LeafRange } from '../log/tree.ts';
import { Amount, sumsOf } from '../money.ts';
import type { Month } from '../month.ts';
import { counted, plural } from '../text.ts';
import type { ArchivedFile } from './archive.sql.ts';
import { type PartnerTotals, readTotals, withDuckDb } from './parquet.ts';
import { needRows } from './rows.ts';
import { sha256Of } from './store.ts';

export const statementPath = (folder: string, month: Month): string => join(folder, `${month}.statement`);

/** Writes the statement of a close, whose first fact has the number `first`. It always has the same bytes. */
export async function writeStatement(
  tx: Transaction,
  folder: string,
  { month, first, files }: { readonly month: Month; readonly first: number; readonly files: readonly ArchivedFile[] },
): Promise<void> {
  const checkpoints = await readCheckpoints(tx);
  const at = checkpoints.findIndex(({ closes }) => closes === `month ${month}`);
  const [before, own] = [checkpoints[at - 1], checkpoints[at] as Checkpoint];
  const range = { after: before?.last_no ?? 0, to: first - 1 };
  await needRows(tx, { numbers: range });
  const tree = before === undefined ? new LeafRange() : LeafRange.read(0, before.size, before.edge);
  const add = (_: number, content: Buffer, from: number) => tree.add(content, from);
  await readLeaves(tx, range, { onFact: add, onRow: add });
  const facts: Buffer[] = [];
  await copyLines(tx, { after: range.to, to: own.last_no }, (piece) => void facts.push(Buffer.from(piece)));
  const named = files.map(({ name, sha256, bytes, entries }) => `${sha256} ${bytes} ${entries} ${name}\n`);
  const parts = [bodyOf(own), hashLines(tree.hashes()), Buffer.concat(facts), named.join('')];
  await writeWhole(statementPath(folder, month), parts.join('\n'), 'replace');
}

/** What was found of a month or a pack, without the database. */
export type Proof = Readonly<{
  path: string;
  months: string;
  rows: number | null;
  /** The amounts to invoice, by currency. */
  totals: Readonly<Record<string, string>>;
  /** Of its checkpoint. The root is in Base64. */
  origin: string | null;
  size: number | null;
  root: string | null;
  files: readonly StatedFile[];
  wrong: readonly string[];
  /** What is not proved. */
  open: readonly string[];
}>;

type StatedFile = Pick<ArchivedFile, 'name' | 'sha256'>;

export const unproved = (path: string, ...wrong: readonly string[]): Proof => ({
  ...{ path, months: basename(path, '.statement'), rows: null, totals: {} },
  ...{ origin: null, size: null, root: null, files: [], wrong, open: [] },
});

/** Proves the rows of a month by its statement and the files beside it. Every proof of an archived month is this one. */
export async function proveMonth(path: string): Promise<Proof> {
  try {
    return await proved(path, basename(path, '.statement'));
  } catch (error) {
    if (error instanceof Refusal) throw error;
    return unproved(path, `${basename(path)} does not prove its rows: ${reasonOf(error)}`);
  }
}

async function proved(path: string, month: string): Promise<Proof> {
  const parts = readFileSync(path, 'utf8').split('\n\n');
  const [body = [], edge = [], facts = [], named = []] = parts.map((part) => part.trim().split('\n'));
  const head = readNote(`${body.join('\n')}\n\n`)?.head;
  const fields = facts.map((line) => line.split('\t'));
  if (head === undefined || fields[0]?.[0] !== 'closed_months' || fields[0][2] !== month) {
    throw new RangeError(`it is not the statement of ${month}`);
  }
  // The facts are the last leaves of the checkpoint.
  const leaves = Buffer.concat(edge.map((each) => Buffer.from(each, 'base64')));
  const tree = LeafRange.read(0, head.size - facts.length, leaves);
  for (const line of facts) tree.add(hash('sha256', `\0${line}`, 'buffer'));
  const root = tree.root().toString('base64');
  if (root !== body[2]) throw new RangeError('its facts do not give the root of its checkpoint');
  const partners = fields.filter(([kind]) => kind === 'month_partners').map(partnerOf);
  const files = named.filter(Boolean).map((line) => ({ name: line.replace(/.*[ /]/, ''), sha256: line.slice(0, 64) }));
  const totals = sumsOf(partners.map((each) => Amount.of(each.invoice_amount, each.currency)));
  return {
    ...{ path, months: month, origin: head.origin, size: head.size, root, files, open: [] },
    rows: partners.reduce((sum, { entries }) => sum + entries, 0),
    totals: Object.fromEntries(totals.map((sum) => [sum.currency, sum.toString()])),
    wrong: await faultsOf(dirname(path), files, partners),
  };
}

function partnerOf([, , , partner_id, currency, arrangement, entries, ...amounts]: readonly string[]): PartnerTotals {
  const [spot_price, partner_cut, invoice_amount, , root] = amounts;
  const sums = { spot_price, partner_cut, invoice_amount };
  return { partner_id, currency, arrangement, entries: Number(entries), ...sums, root } as PartnerTotals;
}

async function faultsOf(
  folder: string,
  files: readonly StatedFile[],
  partners: readonly PartnerTotals[],
): Promise<string[]> {
  const paths = files.map(({ name }) => join(folder, name));
  const hashes = await Promise.all(paths.map((path) => sha256Of(path).catch(reasonOf)));
  const others = files.filter(({ sha256 }, at) => sha256 !== hashes[at]);
  if (others.length > 0) return others.map(({ name }) => `${name} is missing, or not the file that was archived`);
  const read = await withDuckDb(async (connection) => (paths.length === 0 ? [] : readTotals(connection, paths)));
  const [found, stated] = [totalsOf(read), totalsOf(partners)];
  return [...new Set([...stated.keys(), ...found.keys()])].flatMap((key) => {
    const [is, was] = [found, stated].map((totals) => totals.get(key) ?? 'no rows');
    return is === was ? [] : [`${key}: the files have ${is}, and the close stated ${was}`];
  });
}

const totalsOf = (all: readonly PartnerTotals[]): Map<string, string> =>
  new Map(
    all.map(({ partner_id, currency, arrangement, entries, root, ...sums }) => {
      const amounts = [sums.spot_price, sums.partner_cut, sums.invoice_amount].map((sum) => Amount.of(sum, currency));
      return [`${partner_id} ${currency} ${arrangement}`, [plural(entries, 'row'), ...amounts, root].join(' ')];
    }),
  );

/** Compares the checkpoint of a month with those that are held elsewhere. */
export function compareHeld(proof: Proof, held: readonly TreeHead[]): Proof {
  if (proof.size === null) return proof;
  const own = held.filter(({ origin, size }) => origin === proof.origin && size === proof.size);
  const differs = own.some(({ root }) => root.toString('base64') !== proof.root);
  const its = `checkpoint of ${counted(proof.size)} facts`;
  const wrong = differs ? [...proof.wrong, `the ${its} that is held has another root`] : proof.wrong;
  return { ...proof, wrong, open: own.length > 0 ? [] : [`no ${its} is held`] };
}
