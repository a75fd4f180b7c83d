/** docs/rules.md lists which rule finds a change of each column of each kind of fact: it is made again and compared. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readRules } from '../../../src/audit/rules.ts';
import { packageRoot } from '../../../src/package.ts';
import { REACH } from '../../support/sweep.ts';
import { needs, tool } from '../../support/tools.ts';

const PAGE = join(packageRoot, 'docs/rules.md');
/** Kinds that are changed in each run. A long sweep changes all kinds, which takes minutes. */
const FEW = ['month_partners', 'user_roles', 'voids', 'several columns'];

const sweep = (...args: readonly string[]) =>
  execFileSync(tool('python3'), [join(import.meta.dirname, 'sweep.py'), ...args], { encoding: 'utf8', maxBuffer: 1e8 });

/**
 * Rules about things that these logs do not have, or that another rule sees as well in them: forgeries of other ledgers
 * called for them. The grounds of reversals show the first four too.
 */
const NOT_ALONE = [
  ...['quote_known', 'quote_not_below_zero', 'requote_known', 'reversal_routed_as_sale'],
  ...[
    'month_ended_everywhere',
    'close_names_missing_feeds',
    'line_adds_up',
    'numbers_without_gaps',
    'terms_of_partner',
  ],
  ...['tax_rounded_once', 'tax_of_reversals', 'correction_dated', 'small_difference_allowed', 'bank_balances_continue'],
  ...['user_limited', 'amounts_compared'],
  'portal_delivery',
];

const sectionsOf = (page: string) =>
  page
    .split(/^(?=## )/m)
    .filter((section) => section.startsWith('## '))
    .map((section) => section.trim());

test('the rules find the changes that the page of the rules lists', { timeout: 1_800_000 }, (context) => {
  needs('python3', context);
  const isWhole = REACH === 'long' || Boolean(process.env['UPDATE_RULES']);
  const made = sweep(...(isWhole ? [] : ['--kinds', FEW.join(',')]));
  if (process.env['UPDATE_RULES']) writeFileSync(PAGE, made);
  const page = readFileSync(PAGE, 'utf8');
  if (isWhole) expect(made).toBe(page);
  else {
    expect(sectionsOf(made).length).toBe(FEW.length);
    expect(sectionsOf(page)).toEqual(expect.arrayContaining(sectionsOf(made)));
  }
});

test('each rule but a few alone finds a change, and each column that no rule guards has its reason', () => {
  const page = readFileSync(PAGE, 'utf8');
  const rules = sectionsOf(page).find((section) => section.startsWith('## Rules')) ?? '';
  const rows = [...rules.matchAll(/^\| (\w+) \| (\d+) \| (\d+) \|$/gm)];
  expect(rows.map(([, name]) => name).toSorted()).toEqual(
    readRules()
      .rules.map(({ name }) => name)
      .toSorted(),
  );
  expect(rows.filter(([, , , alone]) => alone === '0').map(([, name]) => name)).toEqual(NOT_ALONE);
  expect(page).not.toContain('Without a reason');
});
