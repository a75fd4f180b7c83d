import { Action } from './action.ts';
import { ACTION_NAMES, loadAction } from './registry.ts';

export const ACTIONS: ReadonlyMap<string, Action> = new Map(
  await Promise.all(ACTION_NAMES.map(async (name) => [name, await loadAction(name)] as const)),
);
