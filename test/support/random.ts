/**
 * Random numbers from a seed that a failing test prints. Every run uses the same seed, so that a failing run is caused
 * by the change and not by chance. RECKONER_SEED=random takes a new one (the nightly run); RECKONER_SEED=… repeats one.
 */
import { randomInt } from 'node:crypto';

const FIXED_SEED = 20_260_701;

/** The seed of this process: the same for every test in it. */
export const SEED = ((given = process.env['RECKONER_SEED']): number => {
  if (given === undefined || given === '') return FIXED_SEED;
  if (given === 'random') return randomInt(2 ** 31);
  const seed = Number(given);
  if (!Number.isSafeInteger(seed) || seed < 0)
    throw new Error(`RECKONER_SEED must be a whole number or "random": ${given}`);
  return seed;
})();

export interface Seeded {
  readonly seed: number;
  /** From 0 up to, but not including, 1. */
  readonly random: () => number;
}

/** mulberry32: 32 bits of state are plenty for choosing what to do next. */
export function seeded(seed = SEED): Seeded {
  let state = seed >>> 0;
  return {
    seed,
    random: () => {
      state = (state + 0x6d2b79f5) >>> 0;
      let mixed = Math.imul(state ^ (state >>> 15), state | 1);
      mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    },
  };
}
