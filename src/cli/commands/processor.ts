/** `reckoner processor`: balance transactions of connected accounts. */
import type { Definition } from '../define.ts';
import { defineImport } from './processor/import.ts';
import { defineMatch } from './processor/match.ts';
import { definePoll } from './processor/poll.ts';
import { defineReverse } from './processor/reverse.ts';

export const define: Definition = (group, act) => {
  for (const each of [defineImport, definePoll, defineMatch, defineReverse]) each(group, act);
};
