import { Amount } from '#money';
import { PROBLEMS_TOLD } from '#reading/limits';
import { BankLine, signed, Totals } from './statement.ts';

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

  add(line: BankLine, balance: Amount | undefined) {
    const own = this.days.get(line.booked_on);
    if (own === undefined) this.days.set(line.booked_on, [this.positions.length]);
    else own.push(this.positions.length);
    this.positions.push(line.position);
    this.moved.push(unitsOf(signed(line)));
    this.balances.push(balance && unitsOf(balance));
  }

  /** Returns the opening and closing balances, if the file has them, and tells balances that no order explains. */
  check(totals: Totals) {
    const indexes = [...this.positions.keys()];
    const [forward, backward] = [this.inOrder(indexes), this.inOrder([...indexes].reverse())];
    const best = backward.faults.length < forward.faults.length ? backward : forward;
    const { faults, opening, closing } = (best.faults.length > 0 && this.orderedWithinDays()) || best;
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
  private orderedWithinDays() {
    let opening: bigint | undefined;
    let at: bigint | undefined;
    for (const [, indexes] of [...this.days].sort(([one], [other]) => (one < other ? -1 : 1))) {
      // By balance: the balances that follow it, and how many more lines leave it than lead to it.
      const next = new Map<bigint, bigint[]>();
      const surplus = new Map<bigint, number>();
      const froms: bigint[] = [];
      let sum = 0n;
      for (const index of indexes) {
        const [moved, to] = [this.moved[index] as bigint, this.balances[index]];
        if (to === undefined) return undefined;
        const from = to - moved;
        froms.push(from);
        sum += moved;
        surplus.set(from, (surplus.get(from) ?? 0) + 1);
        surplus.set(to, (surplus.get(to) ?? 0) - 1);
        if (next.get(from)?.push(to) === undefined) next.set(from, [to]);
      }
      const start = at ?? froms.find((from) => surplus.get(from) === 1) ?? (froms[0] as bigint);
      opening ??= start;
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

type Fault = Readonly<{ index: number; balance: bigint; expected: bigint }>;

/** Amounts have all digits of their currency. */
const unitsOf = (amount: Amount) => BigInt(amount.toString().replace('.', ''));
