/** Choices from a seed. The same seed always gives the same choices. */
import { seeded } from '../../support/random.ts';

export interface Draw {
  /** From 0 up to, but not including, 1. */
  readonly unit: () => number;
  /** A whole number from the first to the last, both included. */
  readonly whole: (first: number, last: number) => number;
  readonly one: <Of>(of: readonly Of[]) => Of;
  readonly shuffled: <Of>(of: readonly Of[]) => Of[];
  readonly digits: (count: number) => string;
  /** Around 0, with a standard deviation of 1. */
  readonly normal: () => number;
}

export function drawFrom(seed: number): Draw {
  const { random: unit } = seeded(seed);
  const whole = (first: number, last: number) => first + Math.floor(unit() * (last - first + 1));
  const one = <Of>(of: readonly Of[]): Of => {
    if (of.length === 0) throw new RangeError('there is nothing to choose from');
    return of[whole(0, of.length - 1)] as Of;
  };
  const shuffled = <Of>(of: readonly Of[]): Of[] => {
    const rest = [...of];
    return of.map(() => rest.splice(whole(0, rest.length - 1), 1)[0] as Of);
  };
  const digits = (count: number) => Array.from({ length: count }, (_, at) => whole(at === 0 ? 1 : 0, 9)).join('');
  const normal = () => Math.sqrt(-2 * Math.log(1 - unit())) * Math.cos(2 * Math.PI * unit());
  return { unit, whole, one, shuffled, digits, normal };
}
