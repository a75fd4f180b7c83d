/**
 * How far a sweep goes. `npm test` does a few of each, so that the guard bites; `.ci/run` more of them; the nightly run
 * and `npm run test:long` all.
 */
const REACHES = ['few', 'short', 'long'] as const;
export type Reach = (typeof REACHES)[number];

export const REACH: Reach = ((given = process.env['RECKONER_SWEEP'] || 'few'): Reach => {
  const reach = REACHES.find((each) => each === given);
  if (reach === undefined) throw new Error(`RECKONER_SWEEP must be one of ${REACHES.join(', ')}: ${given}`);
  return reach;
})();

/** Whether this run does what is left out of `npm test`. */
export const SWEEPING = REACH !== 'few';

/** How often: by the reach of this run, or by a variable that repeats one failing case (`RECKONER_HISTORIES=1`). */
export function times(counts: Readonly<Record<Reach, number>>, variable?: string): number {
  const given = variable && process.env[variable];
  return given ? Number(given) : counts[REACH];
}

/** So many of a list, evenly spaced and always the same. */
export function someOf<Value>(all: readonly Value[], count: number): readonly Value[] {
  if (count >= all.length) return all;
  return Array.from({ length: count }, (_, index) => all[Math.floor((index * all.length) / count)] as Value);
}
