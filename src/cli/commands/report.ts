/** `reckoner report`. */
import type { Definition } from '../define.ts';
import { defineAging } from './report/aging.ts';
import { defineClose } from './report/close.ts';
import { defineCoverage } from './report/coverage.ts';
import { defineStatement } from './report/statement.ts';
import { defineTrialBalance } from './report/trial-balance.ts';

export const define: Definition = (group, act) => {
  for (const each of [defineAging, defineStatement, defineTrialBalance, defineClose, defineCoverage]) each(group, act);
};
