/**
 * The statement of an archived month, a text that proves what its close stated (docs/auditors.md), and the proof that a
 * store has these rows.
 */
import { hash } from 'node:crypto';
import { basename } from 'node:path';
import { Refusal, reasonOf } from '../errors/refusals.ts';
import { LeafRange } from '../log/tree.ts';
import { Amount, sumsOf } from '../money.ts';
import type { ArchivedFile } from './archive.sql.ts';

/** A month or a pack: its checkpoint in three lines, what is wrong, and what is not proved. */
export type Proof = Readonly<{
  path: string;
  months: string;
  checkpoint?: string;
  /** The SHA-256 of the statement. */
  statement?: string;
  rows?: number;
  totals?: Readonly<Record<string, { readonly invoiceAmount: string }>>;
  files: readonly ArchivedFile[];
  wrong: readonly string[];
  open: readonly string[];
}>;

export const unproved = (path: string, ...wrong: readonly string[]): Proof => ({
  ...{ path, months: basename(path, '.statement'), files: [], wrong, open: [] },
});

/** A statement, and what is wrong with files if a close stated these partners. */
export type Provable = Readonly<{
  path: string;
  text: () => Promise<string>;
  faultsOf: (files: readonly ArchivedFile[], stated: readonly string[]) => Promise<readonly string[]>;
}>;

/** Proves the rows of a month by its statement. This is the only description of the proof. */
export const proveStatement = (given: Provable): Promise<Proof> =>
  proved(given, basename(given.path, '.statement')).catch((error: unknown) => {
    if (error instanceof Refusal) throw error;
    return unproved(given.path, `${basename(given.path)} does not prove its rows: ${reasonOf(error)}`);
  });

async function proved({ path, text, faultsOf }: Provable, months: string): Promise<Proof> {
  const statement = await text();
  const [head = '', edge, lines, named] = statement.split('\n\n');
  const split = (part = '') => part.split('\n').filter(Boolean);
  const facts = split(lines);
  if (!RegExp(`^closed_months\\t\\d+\\t${months}\\t`).test(facts[0] ?? '')) throw new Error('it states another close');
  // The facts are the last leaves of the checkpoint.
  const [, size, root] = split(head);
  const subtrees = Buffer.concat(split(edge).map((each) => Buffer.from(each, 'base64')));
  const tree = LeafRange.read(0, Number(size) - facts.length, subtrees);
  for (const line of facts) tree.add(hash('sha256', `\0${line}`, 'buffer'));
  if (tree.root().toString('base64') !== root) throw new Error('its facts do not give the root of its checkpoint');
  const partners = facts.filter((line) => line.startsWith('month_partners')).map((line) => line.split('\t').slice(3));
  const totals = sumsOf(partners.map(([, currency = '', , , , , amount = '']) => Amount.of(amount, currency)));
  const files = split(named).map((line) => JSON.parse(line) as ArchivedFile);
  const stated = partners.map((columns) => columns.join(' '));
  return {
    ...{
      path,
      months,
      checkpoint: `${head}\n`,
      files,
      open: [],
      wrong: await faultsOf(files, stated),
    },
    statement: hash('sha256', statement),
    rows: partners.reduce((sum, [, , , entries]) => sum + Number(entries), 0),
    totals: Object.fromEntries(totals.map((sum) => [sum.currency, { invoiceAmount: sum.toString() }])),
  };
}

/** Compares the totals and roots of partners that were found with those that the close stated. */
export function otherTotals(found: readonly string[], stated: readonly string[]): string[] {
  const [are, were] = [new Set(found), new Set(stated)];
  if (are.size !== found.length) return ['the files have a partner twice'];
  return [
    ...found.filter((each) => !were.has(each)).map((each) => `the files have ${each}`),
    ...stated.filter((each) => !are.has(each)).map((each) => `the close stated ${each}`),
  ];
}

/** Compares the checkpoint of a month with the three lines of those that are held elsewhere. */
export function compareHeld(proof: Proof, held: readonly string[]): Proof {
  const { checkpoint, wrong } = proof;
  if (checkpoint === undefined) return proof;
  const [origin, size] = checkpoint.split('\n');
  const own = held.filter((each) => each.startsWith(`${origin}\n${size}\n`));
  const isOther = own.some((each) => each !== checkpoint);
  return {
    ...proof,
    wrong: isOther ? [...wrong, `the held checkpoint of ${size} facts is another`] : wrong,
    open: own.length > 0 ? [] : [`no held checkpoint has ${size} facts`],
  };
}
