import { Amount } from '#money';
import { PROBLEMS_TOLD } from '#reading/limits';
import { BankLine, Totals } from './statement.ts';

/** The lines of an account with their running balances. Only numbers are kept, in minor units. */
export class RunningBalances {
  readonly currency: string;
  private readonly positions: number[] = [];
  private readonly days = new Map<string, number[]>();
  private readonly moved: bigint[] = [];
  private readonly balances: bigint[] = [];
  private isWhole = true;

  constructor(currency: string) {
    this.currency = currency;
  }

  add({ position, booked_on, direction, amount }: BankLine, balance: Amount | undefined) {
    if (balance === undefined) this.isWhole = false;
    if (!this.isWhole || balance === undefined) return;
    const units = unitsOf(amount);
    const own = this.days.get(booked_on);
    if (own === undefined) this.days.set(booked_on, [this.positions.length]);
    else own.push(this.positions.length);
    this.positions.push(position);
    this.moved.push(direction === 'credit' ? units : -units);
    this.balances.push(unitsOf(balance));
  }

  /** Returns the opening and closing balances, if all lines have a balance. */
  check(totals: Totals) {
    if (!this.isWhole) return { opening: undefined, closing: undefined };
    const indexes = this.positions.map((_, index) => index);
    const orders = [indexes, [...indexes].reverse()].map((order) => ({ order, faults: this.faultsIn(order) }));
    const { order, faults } = orders.reduce((best, each) => (each.faults.length < best.faults.length ? each : best));
    const byDay = faults.length === 0 ? undefined : this.orderedWithinDays();
    if (byDay !== undefined) return byDay;
    for (const { index, expected } of faults.slice(0, PROBLEMS_TOLD)) {
      const path = `line ${this.positions[index]}: running balance (of a bank that orders its lines otherwise, leave out the map's column 'balance')`;
      totals.expect(path, this.amount(this.balanceOf(index)).toString(), this.amount(expected).toString());
    }
    const [first = 0] = order;
    return { opening: this.amount(this.from(first)), closing: this.amount(this.balanceOf(order.at(-1) ?? 0)) };
  }

  private amount(units: bigint) {
    return Amount.ofMinorUnits(units, this.currency);
  }

  private balanceOf(index: number) {
    return this.balances[index] as bigint;
  }

  private movedBy(index: number) {
    return this.moved[index] as bigint;
  }

  private from(index: number) {
    return this.balanceOf(index) - this.movedBy(index);
  }

  private faultsIn(order: readonly number[]) {
    return order.slice(1).flatMap((index, at) => {
      const expected = this.balanceOf(order[at] as number) + this.movedBy(index);
      return expected === this.balanceOf(index) ? [] : [{ index, expected }];
    });
  }

  /**
   * Some banks list the lines of a day in another order than their balances. Each line leads from one balance to the
   * next, so all lines of a day must form one path through the day's balances (Euler), and a day begins where the day
   * before ended. Returns undefined if they do not.
   */
  private orderedWithinDays() {
    let opening: bigint | undefined;
    let at: bigint | undefined;
    for (const [, indexes] of [...this.days].sort(([one], [other]) => (one < other ? -1 : 1))) {
      const edges = indexes.map((index) => ({ from: this.from(index), to: this.balanceOf(index) }));
      const surplus = new Map<bigint, number>();
      for (const { from, to } of edges) {
        surplus.set(from, (surplus.get(from) ?? 0) + 1);
        surplus.set(to, (surplus.get(to) ?? 0) - 1);
      }
      const starts = edges.filter(({ from }) => surplus.get(from) === 1);
      const start: bigint | undefined = at ?? (starts[0] ?? edges[0])?.from;
      if (start === undefined || !isOnePath(edges, start)) return undefined;
      opening ??= start;
      at = edges.reduce((sum, { from, to }) => sum + to - from, start);
    }
    if (opening === undefined || at === undefined) return undefined;
    return { opening: this.amount(opening), closing: this.amount(at) };
  }
}

/** Amounts have all digits of their currency. */
const unitsOf = (amount: Amount) => BigInt(amount.toString().replace('.', ''));

/** Whether a path from `start` uses each edge once (Hierholzer's algorithm). */
function isOnePath(edges: readonly Readonly<{ from: bigint; to: bigint }>[], start: bigint) {
  const left = new Map<bigint, bigint[]>();
  for (const { from, to } of edges) {
    const next = left.get(from);
    if (next === undefined) left.set(from, [to]);
    else next.push(to);
  }
  const open = [start];
  const path: bigint[] = [];
  while (open.length > 0) {
    const next = left.get(open.at(-1) as bigint)?.pop();
    if (next === undefined) path.push(open.pop() as bigint);
    else open.push(next);
  }
  // Two pieces that do not meet leave a gap in the path.
  const steps = new Set(edges.map(({ from, to }) => `${from} ${to}`));
  const isWhole = path.every((to, index) => index === path.length - 1 || steps.has(`${path[index + 1]} ${to}`));
  return path.length === edges.length + 1 && isWhole;
}
