/** What a measure gives: a figure of ours beside its floor, taken in the same run. */

export interface Measured {
  readonly measure: string;
  readonly ours: number;
  readonly floor: number;
  /** Of both figures. */
  readonly unit: string;
  /** Ours by the floor's. */
  readonly ratio: number;
  readonly goal: string;
  readonly met: boolean;
}

export function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((one, other) => one - other);
  const middle = Math.floor(sorted.length / 2);
  const [upper, lower] = [sorted[middle], sorted[sorted.length % 2 === 1 ? middle : middle - 1]];
  if (upper === undefined || lower === undefined) throw new RangeError('there is no median of nothing');
  return (upper + lower) / 2;
}

/** Both figures to as many digits as are worth reading, and their ratio before that. */
export function measured(
  facts: { measure: string; ours: number; floor: number; unit: string; cpu?: string },
  goal: { readonly atMost: number } | { readonly atLeast: number },
): Measured {
  const ratio = facts.ours / facts.floor;
  const readable = (number: number) => Number(number.toPrecision(4));
  return {
    ...facts,
    ours: readable(facts.ours),
    floor: readable(facts.floor),
    ratio: readable(ratio),
    goal: 'atMost' in goal ? `≤ ${goal.atMost}` : `≥ ${goal.atLeast}`,
    met: 'atMost' in goal ? ratio <= goal.atMost : ratio >= goal.atLeast,
  };
}

/** Whether this module is the program that was started, and not imported by the runner. */
export const isProgram = (url: string): boolean => process.argv[1] !== undefined && url === `file://${process.argv[1]}`;
