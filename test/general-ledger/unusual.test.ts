/** What an accountant would not expect to go wrong: an empty month, odd names, rules of partner and policy at once. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { storedAccounts } from '../../src/config/accounts.ts';
import { exportGl } from '../../src/general-ledger/export.ts';
import { filesOf } from '../../src/general-ledger/files.ts';
import { type GlLine, mapped, type Posting } from '../../src/general-ledger/journal.ts';
import type { Month } from '../../src/month.ts';
import { readDueHandOffs, readHandOffsOf } from '../../src/reports/hand-offs.ts';
import { refusalOf } from '../close/refusal.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';
import { everyAccount, writeAccounts } from './months.ts';
import { readBack, sumsBy, tableOf } from './read-back.ts';

/** As long as QuickBooks takes it. */
const LONG = `Association of ${'Open-Air Theatres and '.repeat(12)}Halls`.slice(0, 100);

describe('a month without postings, and partners that are hard to write', () => {
  let world: World;
  beforeAll(async () => {
    world = await openWorld();
    writeAccounts(world, everyAccount());
    await world.partners([
      partner({ partner_id: 'constructor', name: LONG }),
      partner({ partner_id: 'p-2', name: 'Second, "partner"; of\u00a0two' }),
    ]);
    await world.rows([quote({ partner_id: 'constructor' }), quote({ partner_id: 'p-2' })]);
    await world.close('2026-07');
    // July is billed in August, and nothing is posted in September.
    world.at('2026-09-02T15:00:00Z');
    await world.close('2026-08', { allowEmpty: true });
    world.at('2026-10-02T15:00:00Z');
    await world.close('2026-09', { allowEmpty: true });
    world.at('2026-10-15T15:00:00Z');
    await world.closeBooks('2026-07', '2026-08', '2026-09');
  });
  afterAll(() => world.end());
  const exported = (month: string) =>
    world.database.transaction((tx) => exportGl(tx, world, { month: month as Month, format: 'quickbooks' }));

  test('a rule for a partner or a policy that nobody knows is refused, and is not passed over', async () => {
    const { accounts } = everyAccount() as { accounts: object[] };
    const slips = [
      { account: 'income:sales', partner: 'p-22', to: 'Sales of p-2' },
      { account: 'income:sales', partner: 'p-2', policy: 'skiing', to: 'Sales of skis' },
    ];
    writeAccounts(world, { accounts: [...slips, ...accounts] });
    expect(await refusalOf(exported('2026-08'))).toMatchObject({
      code: 'accounts_invalid',
      facts: {
        problems: [
          { path: 'accounts.0.partner', reason: 'no partner has the id p-22' },
          { path: 'accounts.1.policy', reason: 'no policy has the id skiing' },
        ],
      },
    });
    writeAccounts(world, everyAccount());
  });

  test('an empty month has nothing to export, and nobody is asked to export it', async () => {
    expect(await exported('2026-09')).toMatchObject({ recorded: false, part: undefined, files: [], lines: [] });
    await world.database.reading(async (tx) => {
      expect(await readDueHandOffs(tx, world)).toEqual([]);
      const of = (month: string) => readHandOffsOf(tx, { ...world, month: month as Month });
      expect([await of('2026-09'), (await of('2026-08')).map(({ state }) => state)]).toEqual([[], ['missing']]);
    });
  });

  test('a name stands whole in the file, whatever its partner is called', async () => {
    const { files } = await exported('2026-08');
    const names = readBack('quickbooks', files).map(({ name }) => name);
    expect(new Set(names.filter((name) => name !== ''))).toEqual(new Set([LONG, 'Second partner']));
  });

  test('a partner that is renamed afterwards changes nothing of what was exported', async () => {
    const before = await exported('2026-08');
    await world.partners([partner({ partner_id: 'constructor', name: 'Renamed' }), partner({ partner_id: 'p-2' })]);
    const again = await exported('2026-08');
    expect([again.recorded, again.movable]).toEqual([false, []]);
    expect(again.files).toEqual(before.files);
    const moved = world.database.transaction((tx) =>
      exportGl(tx, world, { month: '2026-08' as Month, format: 'quickbooks', reclassify: true }),
    );
    expect((await moved).recorded).toBe(false);
  });
});

const posting = (of: Partial<Posting>): Posting => ({
  ...{ control: 'income:sales', account: 'income:sales:parking', partner_id: 'p-1', policy_id: 'parking' },
  ...{ currency: 'USD', amount: '-1.00', ...of },
});

test('of rules of a partner, a policy and a currency, the most specific wins, in whatever order they stand', () => {
  const rules = [
    { account: 'income:sales', to: 'any' },
    { account: 'income:sales', currency: 'USD', to: 'dollars' },
    { account: 'income:sales', policy: 'parking', to: 'parking' },
    { account: 'income:sales', policy: 'parking', currency: 'USD', to: 'parking in dollars' },
    { account: 'income:sales', partner: 'p-1', to: 'p-1' },
    { account: 'income:sales', partner: 'p-1', policy: 'parking', to: 'parking of p-1' },
    { account: 'income:sales:parking', to: 'its subaccount' },
  ];
  const went = (given: readonly object[], of: Partial<Posting> = {}) =>
    mapped(storedAccounts({ accounts: given }), [posting(of)], new Map()).lines[0]?.to_account;
  for (const order of [rules, [...rules].reverse()]) {
    for (let count = rules.length; count > 0; count -= 1) {
      const left = order.filter((rule) => rules.indexOf(rule) < count);
      expect(went(left)).toBe(rules[count - 1]?.to);
    }
    expect(went(order, { account: 'income:sales:skis', policy_id: 'skis', partner_id: 'p-2' })).toBe('dollars');
    expect(went(order, { account: 'income:sales:skis', policy_id: 'skis', partner_id: 'p-2', currency: 'EUR' })).toBe(
      'any',
    );
  }
});

describe('a QuickBooks file', () => {
  const line = (of: Partial<GlLine>): GlLine => ({
    ...posting({}),
    ...{ to_account: 'Sales', class: '', location: '', name: '', memo: 'income:sales' },
    ...of,
  });
  const journal = {
    ...({ format: 'quickbooks', part: 1, kind: 'journal' } as const),
    ...{ month: '2026-09' as Month, checkpoint: 'a'.repeat(64) },
    ...{ books_closed: true, accounts: storedAccounts({ accounts: [{ account: 'x', to: 'x' }] }) },
  } as const;

  test('is never written with a journal that balances over its currencies and not in each', () => {
    const lines = [line({ currency: 'USD', amount: '-5.00' }), line({ currency: 'EUR', amount: '5.00', memo: 'b' })];
    expect(() => filesOf({ ...journal, lines })).toThrow(/debits .* and credits .* differ/);
  });

  test('keeps account names with commas, quotes and colons as they are', () => {
    const odd = 'Receivables: "North", 1/2';
    const lines = [line({ amount: '-5.00' }), line({ amount: '5.00', to_account: odd, name: "O'Neill, Ltd." })];
    const [file] = filesOf({ ...journal, lines });
    const rows = tableOf(file?.content.toString() ?? '');
    expect(rows.map((row) => [row['Account Name'], row['Name']])).toEqual([
      [odd, "O'Neill, Ltd."],
      ['Sales', ''],
    ]);
    expect([...sumsBy(readBack('quickbooks', file === undefined ? [] : [file]), ({ id }) => id).values()]).toEqual([
      0n,
    ]);
  });
});
