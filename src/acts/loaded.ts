/** Every act, loaded. */
import type { Act } from './act.ts';
import { type ActName, LOADING, loadAct } from './registry.ts';

const NAMES = Object.keys(LOADING) as ActName[];

export const ACTS: ReadonlyMap<string, Act> = new Map(
  await Promise.all(NAMES.map(async (name) => [name, await loadAct(name)] as const)),
);
