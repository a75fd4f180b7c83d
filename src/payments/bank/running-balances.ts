import { Amount } from '#money';
import { PROBLEMS_TOLD } from '#reading/limits';
import { Totals } from './statement.ts';

/** The lines of an account with their running balances. Only numbers are kept, in minor units. */
export class RunningBalances {
  readonly currency: string;
  private readonly positions: number[] = [];
  private readonly days = new Map<string, number[]>();
  private readonly moved: bigint[] = [];
  private readonly balances: (bigint | undefined)[] = [];

  constructor(currency: string) {
    this.currency = currency;
  }

  add({ position, bookedOn, sum }: Movement, balance: Amount | undefined) {
    const own = this.days.get(bookedOn);
    if (own === undefined) this.days.set(bookedOn, [this.positions.length]);
    else own.push(this.positions.length);
    this.positions.push(position);
    this.moved.push(sum.minorUnits());
    this.balances.push(balance?.minorUnits());
  }

  /** Returns the opening and closing balances, if the file has them, and tells balances that no order explains. */
  check(totals: Totals) {
    const indexes = [...this.positions.keys()];
    const [forward, backward] = [this.inOrder(indexes), this.inOrder([...indexes].reverse())];
    const days = [...this.days].sort(([one], [other]) => (one < other ? -1 : 1));
    // Both orders can explain lines that sum to zero: the days decide.
    const seen = [...this.days.keys()];
    const isNewestFirst = (seen[0] ?? '') > (seen.at(-1) ?? '');
    const better = backward.faults.length - forward.faults.length;
    const best = better < 0 || (better === 0 && isNewestFirst) ? backward : forward;
    const byDay = () => this.orderedWithinDays(days) ?? this.inOrder(days.flatMap(([, own]) => own));
    const other = best.faults.length > 0 ? byDay() : best;
    const { faults, opening, closing } = other.faults.length === 0 ? other : best;
    for (const { index, balance, expected } of faults.slice(0, PROBLEMS_TOLD)) {
      const path = `line ${this.positions[index]}: running balance (of a bank that orders its lines otherwise, leave out the map's column 'balance')`;
      totals.expect(path, `${this.amount(balance)}`, `${this.amount(expected)}`);
    }
    return { opening: this.amount(opening), closing: this.amount(closing) };
  }

  private amount(units: bigint | undefined) {
    return units === undefined ? undefined : Amount.ofMinorUnits(units, this.currency);
  }

  /** Some banks write a balance only beside the last line of a day: it must include the lines since the balance before. */
  private inOrder(order: readonly number[]) {
    let opening: bigint | undefined;
    let at: bigint | undefined;
    let sum = 0n;
    let compared = 0;
    const faults: Fault[] = [];
    for (const index of order) {
      const [moved, balance] = [this.moved[index] as bigint, this.balances[index]];
      sum += moved;
      const expected = at === undefined ? undefined : at + moved;
      at = balance ?? expected;
      if (balance === undefined) continue;
      opening ??= balance - sum;
      if (expected === undefined) continue;
      compared += 1;
      if (expected !== balance) faults.push({ index, balance, expected });
    }
    // The only balance of several lines proves none of them.
    if (compared === 0 && order.length > 1) opening = undefined;
    return { faults, opening, closing: this.balances[order.at(-1) ?? 0] };
  }

  /**
   * Some banks list the lines of a day in another order than their balances. Each line leads from one balance to the
   * next, so all lines of a day must form one path through the day's balances (Euler), and a day begins where the day
   * before ended. Returns undefined if they do not.
   */
  private orderedWithinDays(days: readonly (readonly [string, readonly number[]])[]) {
    const paths: DayPath[] = [];
    for (const [, indexes] of days) {
      const path: DayPath = { next: new Map(), surplus: new Map(), sum: 0n };
      for (const index of indexes) {
        const [moved, to] = [this.moved[index] as bigint, this.balances[index]];
        if (to === undefined) return undefined;
        const from = to - moved;
        path.sum += moved;
        path.surplus.set(from, (path.surplus.get(from) ?? 0) + 1);
        path.surplus.set(to, (path.surplus.get(to) ?? 0) - 1);
        if (path.next.get(from)?.push(to) === undefined) path.next.set(from, [to]);
      }
      paths.push(path);
    }
    const opening = openingOf(paths);
    let at = opening;
    for (const { next, surplus, sum } of paths) {
      if (at === undefined) return undefined;
      const start = at;
      at = start + sum;
      const reached = new Set([start]);
      for (const each of reached) for (const to of next.get(each) ?? []) reached.add(to);
      const uneven = [...surplus].flatMap(([each, count]) => (count === 0 ? [] : `${each} ${count}`));
      const ends = start === at ? [] : [`${start} 1`, `${at} -1`];
      if (uneven.sort().join() !== ends.sort().join() || ![...next.keys()].every((each) => reached.has(each)))
        return undefined;
    }
    return { faults: [], opening, closing: at };
  }
}

type DayPath = {
  /** By balance: the balances that follow it. */
  readonly next: Map<bigint, bigint[]>;
  /** By balance: how many more lines leave it than lead to it. */
  readonly surplus: Map<bigint, number>;
  sum: bigint;
};

/** A day that sums to zero ends where it began, which can be any balance of it: the first other day shows where. */
function openingOf(days: readonly DayPath[]) {
  const open = days.find(({ sum }) => sum !== 0n);
  if (open !== undefined) return [...open.surplus].find(([, count]) => count === 1)?.[0];
  return [...(days[0]?.next.keys() ?? [])].find((each) => days.every(({ next }) => next.has(each)));
}

/** A line, or a remark of the bank with the amount zero. */
type Movement = Readonly<{ position: number; bookedOn: string; sum: Amount }>;

type Fault = Readonly<{ index: number; balance: bigint; expected: bigint }>;
