/** Changed journals for accounting programs, and how verify.py refuses them. (verify.mjs compares them with nothing, and says so.) */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { packageRoot } from '../../src/package.ts';
import { tool } from '../support/tools.ts';
import type { World } from '../support/world.ts';
import { exported, month, openBooks } from './books.ts';
import { Forger } from './forger.ts';

interface ForgedText {
  readonly name: string;
  readonly format: 'hledger' | 'beancount';
  readonly change: (journal: string) => string;
}

const FILES = { hledger: 'journal.ledger', beancount: 'journal.beancount' } as const;
let world: World;
const packs = new Map<string, string>();
beforeAll(async () => {
  world = await openBooks();
  for (const format of ['hledger', 'beancount'] as const) {
    packs.set(format, await exported(world, { kind: 'journal', format }));
    packs.set(`late ${format}`, await exported(world, { kind: 'journal', format, from: month('2026-08') }));
  }
});
afterAll(() => world.end());

const verified = (pack: string) => {
  const program = join(packageRoot, 'templates/export/verify.py');
  const { status, stdout, stderr } = spawnSync(tool('python3'), [program, pack], { encoding: 'utf8' });
  return { status, output: `${stdout}${stderr}` };
};

const text = (format: ForgedText['format'], name: string, change: ForgedText['change']): ForgedText => ({
  name: `${name}, for ${format}`,
  ...{ format, change },
});
const both = (name: string, hledger: (text: string) => string, beancount: (text: string) => string) => [
  text('hledger', name, hledger),
  text('beancount', name, beancount),
];
/** Without the block that begins so. */
const without = (begin: RegExp) => (journal: string) =>
  journal
    .split('\n\n')
    .filter((block) => !begin.test(block))
    .join('\n\n');
const same = (change: (text: string) => string): [(text: string) => string, (text: string) => string] => [
  change,
  change,
];

const TEXTS: readonly ForgedText[] = [
  ...both(
    'an expense on another account, with its balances',
    (journal) => journal.replace(/^ {4}expenses:bad-debts /gm, '    income:adjustments:p-1 '),
    (journal) => journal.replace(/^( {2}|.* balance )Expenses:Bad-debts /gm, '$1Income:Adjustments:Id-p--1 '),
  ),
  ...both('an amount', ...same((journal) => journal.replace('-38.50 USD', '-39.50 USD'))),
  ...both(
    'other amounts in a whole entry',
    (journal) => journal.replace(/(\(document_issued:4\)[\s\S]*?)38\.50([\s\S]*?)38\.50/, '$139.50$239.50'),
    (journal) => journal.replace(/("document_issued:4"[\s\S]*?)38\.50([\s\S]*?)38\.50/, '$139.50$239.50'),
  ),
  ...both('an entry that is left out', without(/written_off:2/), without(/written_off:2/)),
  ...both('another date', ...same((journal) => journal.replace(/2026-08-20 (\* .*written_off)/, '2026-08-21 $1'))),
  ...both(
    'another document',
    ...same((journal) => journal.replace(/(written_off.*)INV-2026-000003/, '$1INV-2026-000004')),
  ),
  ...both('no balances at the end of a month', without(/^2026-08-31 \* balances/), without(/^2026-09-01 balance/)),
  ...both(
    'another balance',
    (journal) => journal.replace(/= 0\.705 KWD/, '= 0.706 KWD'),
    (journal) => journal.replace(/0\.705 ~ 0 KWD/, '0.706 ~ 0 KWD'),
  ),
  ...both(
    'a file that it includes',
    (journal) => `${journal}include other.journal\n\n`,
    (journal) => `${journal}include "other.beancount"\n\n`,
  ),
  ...both(
    'a rule that adds postings',
    (journal) => `${journal}= expenses\n    (income:hidden)    1.00 USD\n\n`,
    (journal) => `${journal}plugin "other"\n\n`,
  ),
  ...both(
    'a comment that hides an entry',
    (journal) => journal.replace('(written_off:2)', '(written_off:2);'),
    (journal) => journal.replace(/^(.*"written_off")/m, '; $1'),
  ),
  ...both(
    'an account that is not declared',
    (journal) => journal.replace(/^account expenses:bad-debts\n/m, ''),
    (journal) => journal.replace(/^.*open Expenses:Bad-debts\n.*\n/m, ''),
  ),
  text('beancount', 'an account that is another one', (journal) =>
    journal.replace('account: "expenses:bad-debts"', 'account: "expenses:partner-cut:p-9"'),
  ),
  text('hledger', 'an account that is escaped without need', (journal) =>
    journal.replaceAll('bad-debts', 'bad%2Ddebts'),
  ),
];

describe('verify.py', () => {
  test.each(['hledger', 'beancount', 'late hledger', 'late beancount'])('accepts an honest journal: %s', (pack) => {
    expect(verified(packs.get(pack) as string)).toMatchObject({ status: 0 });
  });

  test.each(TEXTS.map((forged, at) => [forged.name, forged, at] as const))(
    'refuses %s',
    (_, { format, change }, at) => {
      const forger = new Forger(packs.get(format) as string, join(world.home, `forged-${at}`));
      forger.edit(FILES[format], change);
      forger.fit();
      expect(verified(forger.folder)).toEqual({
        status: 1,
        output: expect.stringMatching(new RegExp(`^1?[0-9]+ problems?: ${FILES[format]}\\.$`, 'm')),
      });
    },
  );
});
