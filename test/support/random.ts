/** Random numbers from a seed that a failing test prints: RECKONER_SEED=… runs the same sequence again. */
import { randomInt } from 'node:crypto';

export interface Seeded {
  readonly seed: number;
  /** From 0 up to, but not including, 1. */
  readonly random: () => number;
}

/** mulberry32: 32 bits of state are plenty for choosing what to do next. */
export function seeded(seed = Number(process.env['RECKONER_SEED'] ?? randomInt(2 ** 31))): Seeded {
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
