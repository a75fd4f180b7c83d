import type { Action } from './action.ts';
import { type ActionName, LOADING, loadAction } from './registry.ts';

const NAMES = Object.keys(LOADING) as ActionName[];

export const ACTIONS: ReadonlyMap<string, Action> = new Map(
  await Promise.all(NAMES.map(async (name) => [name, await loadAction(name)] as const)),
);
