/** What a measure gives: a figure of ours beside its floor of the same run, and whether their ratio meets its goal. */

export interface Outcome {
  readonly measure: string;
  readonly ours: number;
  readonly floor: number;
  readonly unit: 's' | 'MiB' | 'per s';
  /** Of ours / floor. */
  readonly goal: { readonly atMost: number } | { readonly atLeast: number };
  /** What else there is to say of it: a percentile, a size. */
  readonly note?: string;
}

/** As `--json` gives it. */
export interface OutcomeJson {
  readonly measure: string;
  readonly ours: number;
  readonly floor: number;
  readonly unit: string;
  readonly ratio: number;
  readonly goal: string;
  readonly met: boolean;
}

/** `met` is judged before anything is rounded. */
export function outcomeJson({ measure, ours, floor, unit, goal }: Outcome): OutcomeJson {
  const ratio = ours / floor;
  const [sign, bound, met] =
    'atMost' in goal ? ['<=', goal.atMost, ratio <= goal.atMost] : ['>=', goal.atLeast, ratio >= goal.atLeast];
  const rounded = (figure: number, digits: number) => Number(figure.toFixed(digits));
  return {
    measure,
    ours: rounded(ours, 3),
    floor: rounded(floor, 3),
    unit,
    ratio: rounded(ratio, 2),
    goal: `${sign} ${bound}`,
    met: Boolean(met),
  };
}

export function median(figures: readonly number[]): number {
  const sorted = [...figures].sort((one, other) => one - other);
  const [low, high] = [sorted[Math.floor((sorted.length - 1) / 2)], sorted[Math.floor(sorted.length / 2)]];
  if (low === undefined || high === undefined) throw new Error('nothing was measured');
  return (low + high) / 2;
}
