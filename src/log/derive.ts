/**
 * Derives the log again from the tables, and reports every checkpoint that does not match the tables. All facts are
 * read. Which ledger rows are read depends on `DerivedRows`, because one night is too short to hash the rows of all
 * years.
 */
import { Transaction } from '#database/transaction';
import { Month } from '#month';
import {
  Checkpoint,
  readCheckpoints,
  readClosesApart,
  readLastNumber,
  readMisnamed,
  readMonthRoots,
  readPartnerEdges,
  readRowsOutside,
} from './checkpoints.sql.ts';
import { PostedMonths, readFactLeaves, readLeaves, readRowLeaves } from './lines.sql.ts';
import { LeafRange } from './tree.ts';

/** The rows to hash: all rows, or the rows of a closed month and of the open months. */
export type DerivedRows = 'all' | { readonly month: Month | null };

export const isDerived = (rows: DerivedRows, month: Month) => rows === 'all' || rows.month === month;

/** A closed month whose rows are in an archive, with the numbers of its first and last row; null without rows. */
export type ColdMonth = Readonly<{ month: Month; store: string; first_no: number | null; last_no: number | null }>;

export interface LogDifference {
  readonly subject: string;
  readonly detail: string;
}

export interface DerivedLog {
  readonly checkpoints: number;
  readonly differences: readonly LogDifference[];
}

/** A checkpoint's name in a sentence. */
export const checkpointTitle = ({ size, closes }: Pick<Checkpoint, 'size' | 'closes'>) =>
  `checkpoint of ${size} facts${closes === null ? '' : ` (${closes})`}`;

/** The leaves of one checkpoint, as they are read again. */
type Part = Readonly<{
  checkpoint: Checkpoint;
  previous: Checkpoint | undefined;
  span: LeafRange;
  facts: LeafRange;
  /** Whether the part's ledger rows are read. */
  isWhole: boolean;
}>;

/** Derives the log from the tables, which do not have the rows of the cold months. */
export async function deriveLog(
  tx: Transaction,
  rows: DerivedRows,
  cold: readonly ColdMonth[] = [],
): Promise<DerivedLog> {
  const checkpoints = await readCheckpoints(tx);
  const whole = wholeCheckpoints(checkpoints, rows, cold);
  const parts = checkpoints.map((checkpoint, at): Part => {
    const previous = checkpoints[at - 1];
    const span = new LeafRange(previous?.size ?? 0);
    return { checkpoint, previous, span, facts: new LeafRange(), isWhole: whole.has(checkpoint.size) };
  });
  const partners = await PartnerRows.begin(tx, checkpoints.at(-1)?.last_no ?? 0, cold);
  const differences: LogDifference[] = [];
  const order = new Order(differences);
  const months = partners.monthsOf(rows);
  for (const run of runsOf(parts)) await readRun(tx, run, order, partners, months);
  await readRest(tx, checkpoints.at(-1)?.last_no ?? 0, order, partners, differences);
  const own = new Map((await readMisnamed(tx)).map((each) => [each.size, each.own]));
  for (const part of parts) differences.push(...compared(part, own.get(part.checkpoint.size)));
  for (const { closes, has_checkpoint } of await readClosesApart(tx)) {
    const detail = has_checkpoint ? 'is not recorded, but a checkpoint names it' : 'has no checkpoint';
    differences.push({ subject: `close of ${closes}`, detail });
  }
  differences.push(...partners.compared(rows));
  return { checkpoints: checkpoints.length, differences };
}

/**
 * The sizes of the checkpoints whose rows are read: the checkpoints from the previous close to the close of the month,
 * and all checkpoints since the last close. Without those among whose numbers are rows of a cold month.
 */
function wholeCheckpoints(
  checkpoints: readonly Checkpoint[],
  rows: DerivedRows,
  cold: readonly ColdMonth[],
): ReadonlySet<number> {
  const sizes = new Set<number>();
  let segment: number[] = [];
  let after = 0;
  for (const { size, closes, last_no } of checkpoints) {
    const isHot = !cold.some((each) => (each.first_no ?? last_no) < last_no + 1 && (each.last_no ?? after) > after);
    if (isHot) segment.push(size);
    after = last_no;
    if (!closes?.startsWith('month ')) continue;
    if (rows === 'all' || closes === `month ${rows.month}`) for (const each of segment) sizes.add(each);
    segment = [];
  }
  for (const each of segment) sizes.add(each);
  return sizes;
}

/** Groups neighbouring parts: in each group, either all rows of every part are read, or none. */
function runsOf(parts: readonly Part[]) {
  const runs: Part[][] = [];
  for (const part of parts) {
    const run = runs.at(-1);
    if (run?.[0]?.isWhole === part.isWhole) run.push(part);
    else runs.push([part]);
  }
  return runs;
}

/** Checks that facts are numbered in ascending order, and that no number occurs twice. */
class Order {
  private last = 0;
  private readonly differences: LogDifference[];

  constructor(differences: LogDifference[]) {
    this.differences = differences;
  }

  take(number: number) {
    if (number <= this.last) {
      this.differences.push({ subject: `fact ${number}`, detail: 'is the number of several facts' });
    }
    this.last = Math.max(this.last, number);
  }
}

/** Reads the leaves of a run. If it is not whole, only those of its rows that are posted to these months are read. */
async function readRun(
  tx: Transaction,
  run: readonly Part[],
  order: Order,
  partners: PartnerRows,
  months: readonly PostedMonths[],
) {
  const [first, last] = [run[0] as Part, run.at(-1) as Part];
  const range = { after: first.previous?.last_no ?? 0, to: last.checkpoint.last_no };
  let at = 0;
  const partOf = (number: number) => {
    while (number > (run[at] as Part).checkpoint.last_no) at += 1;
    return run[at] as Part;
  };
  const onFact = (number: number, content: Buffer, from: number) => {
    order.take(number);
    const part = partOf(number);
    part.facts.add(content, from);
    if (part.isWhole) part.span.add(content, from);
  };
  if (!first.isWhole) {
    await readFactLeaves(tx, range, onFact);
    return readRowLeaves(tx, { months, range }, partners.take);
  }
  await readLeaves(tx, range, {
    onFact,
    onRow: (number, content, from, to, key) => {
      order.take(number);
      partOf(number).span.add(content, from);
      partners.take(number, content, from, to, key);
    },
  });
}

/** Reads the facts that no checkpoint covers yet. Checks that the number of each such fact was drawn. */
async function readRest(
  tx: Transaction,
  after: number,
  order: Order,
  partners: PartnerRows,
  differences: LogDifference[],
) {
  const drawn = await readLastNumber(tx);
  await readLeaves(
    tx,
    { after, to: drawn },
    {
      onFact: (number) => order.take(number),
      onRow: (number, ...row) => {
        order.take(number);
        partners.take(number, ...row);
      },
    },
  );
  const notDrawn = await readRowsOutside(tx, { number: drawn });
  for (const range of [
    { after: Number.MIN_SAFE_INTEGER, to: 0 },
    { after: drawn, to: Number.MAX_SAFE_INTEGER },
  ]) {
    await readFactLeaves(tx, range, (number) => notDrawn.push(number));
  }
  for (const number of notDrawn) {
    differences.push({
      subject: `fact ${number}`,
      detail: `has a number that is not from 1 to ${drawn}, the last drawn`,
    });
  }
}

/** `own` is the name of the log, if the checkpoint has a different name. */
function compared({ checkpoint, previous, span, facts, isWhole }: Part, own: string | undefined): LogDifference[] {
  const subject = checkpointTitle(checkpoint);
  const { size, root, edge, facts_root } = checkpoint;
  const details: string[] = [];
  if (own !== undefined) details.push(`belongs to the log ${checkpoint.origin}; this log is ${own}`);
  if (isWhole) {
    if (span.to !== size) details.push(`has ${size} facts; the tables give ${span.to}`);
    else if (!span.bytes().equals(checkpoint.span)) details.push('covers facts that are not those of the tables');
  }
  if (!facts.root().equals(facts_root)) details.push('covers facts other than rows that are not those of the tables');
  try {
    const all = previous === undefined ? new LeafRange() : LeafRange.read(0, previous.size, previous.edge);
    all.append(LeafRange.read(previous?.size ?? 0, size, checkpoint.span));
    if (!all.bytes().equals(edge) || !all.root().equals(root)) details.push('does not continue the one before it');
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    details.push('is damaged: its hashes are not those of a tree of its size');
  }
  return details.map((detail) => ({ subject, detail }));
}

/** The trees over the rows of each partner in each month, with the roots that closes and checkpoints state. */
class PartnerRows {
  private readonly trees = new Map<string, LeafRange>();
  /** The roots of closed months, by month, partner, currency and arrangement. */
  private readonly roots = new Map<string, string>();
  private readonly edges: ReadonlyMap<string, Buffer>;
  private readonly closed: readonly Month[];
  /** The last log number that the edges of open months cover. */
  private readonly last: number;
  private readonly cold: ReadonlySet<string>;

  private constructor(
    months: Awaited<ReturnType<typeof readMonthRoots>>,
    edges: Awaited<ReturnType<typeof readPartnerEdges>>,
    last: number,
    cold: readonly ColdMonth[],
  ) {
    this.cold = new Set(cold.map(({ month }) => month));
    this.closed = months.map(({ month }) => month);
    for (const { month, roots } of months) {
      for (const [partner, root] of Object.entries(roots)) this.roots.set(`${month}\t${partner}`, root);
    }
    this.edges = new Map(edges.map(({ key, edge }) => [key, edge]));
    this.last = last;
  }

  static async begin(tx: Transaction, last: number, cold: readonly ColdMonth[]) {
    return new PartnerRows(await readMonthRoots(tx), await readPartnerEdges(tx), last, cold);
  }

  /** Adds the leaf of a row. The first close also bills the rows of earlier months. */
  readonly take = (number: number, content: Buffer, from: number, _: number, key: string) => {
    const tab = key.indexOf('\t');
    const posted = key.slice(0, tab);
    const month = this.closed.find((each) => each >= posted);
    if (month === undefined && number > this.last) return;
    const place = `${month ?? posted}${key.slice(tab)}`;
    const rows = this.trees.get(place) ?? new LeafRange();
    this.trees.set(place, rows);
    rows.add(content, from);
  };

  private isRead(month: string, scope: DerivedRows) {
    if (this.cold.has(month)) return false;
    return scope === 'all' || month === scope.month || !this.closed.includes(month as Month);
  }

  monthsOf(scope: DerivedRows): PostedMonths[] {
    const closed = this.closed.flatMap((month, at) =>
      this.isRead(month, scope) ? [{ after: this.closed[at - 1] ?? '', to: month }] : [],
    );
    return [...closed, { after: this.closed.at(-1) ?? '', to: '9999-99' }];
  }

  compared(scope: DerivedRows) {
    const differences: LogDifference[] = [];
    for (const place of new Set([...this.trees.keys(), ...this.roots.keys(), ...this.edges.keys()])) {
      const [month = '', partner = '', currency = ''] = place.split('\t');
      if (!this.isRead(month, scope)) continue;
      const rows = this.trees.get(place);
      const isClosed = this.closed.includes(month as Month);
      const given = isClosed ? rows?.root().toString('base64') : rows?.bytes().toString('base64');
      const stated = isClosed ? this.roots.get(place) : this.edges.get(place)?.toString('base64');
      if (given === stated) continue;
      const detail = isClosed
        ? 'does not have the root that the close of the month states'
        : 'does not have the subtrees that the next close continues';
      differences.push({ subject: `rows of ${partner} in ${month}, ${currency}`, detail });
    }
    return differences;
  }
}
