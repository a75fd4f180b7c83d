/** The console's connected accounts: what `reconcile` reports, and nothing of another partner's. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type AccountsQuestion,
  accountsScreen,
  readAccounts,
  sheetOfAccounts,
} from '../../src/console/screens/accounts.tsx';
import type { Month } from '../../src/month.ts';
import type { Scope } from '../../src/people/scope.ts';
import { csvOf } from '../../src/sheet.ts';
import { importBalanceTransactions } from '../../src/splits/import.ts';
import { reconcileMonth } from '../../src/splits/reconcile-month.ts';
import { ndjson, share } from '../splits/balance-transactions.ts';
import { reckoner } from '../support/program.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';
import { FINANCE, html, SCRIPT, textOf } from './books.ts';

const NOW = '2026-08-20T10:00:00Z';
let world: World;
beforeAll(async () => {
  world = await openWorld();
  world.at('2026-08-03T10:00:00Z');
  const routed = { arrangement: 'connected_account', merchant_of_record: 'platform', split: 'real_time' };
  const account = (id: string) => ({ ...routed, connected_account_id: id, connected_account_type: 'standard' });
  await world.partners([
    partner({ ...account('acct_1') }),
    partner({ partner_id: 'p-2', name: SCRIPT, ...account('acct_2') }),
  ]);
  const at = '2026-07-15T12:00:01Z';
  const matched = quote();
  await world.rows([matched, quote({ quote_id: 'q-missing' }), quote({ partner_id: 'p-2', quote_id: 'q-other' })]);
  const told = [share(700, at, { quote_id: String(matched['quote_id']) }), share(700, at, {})];
  await world.database.transaction((tx) =>
    importBalanceTransactions(tx, world, { name: 'file', text: ndjson(told) }, 'acct_1'),
  );
  await world.close();
  world.at(NOW);
});
afterAll(() => world.end());

const accounts = (asked: AccountsQuestion = {}, scope: Scope = null) =>
  world.database.reading((tx) =>
    readAccounts(tx, asked, { today: '2026-08-20', scope, environment: world.environment, settings: world.settings }),
  );

test('the month is reconciled as the command does it, and downloads as its file', async () => {
  const view = await accounts();
  const found = await world.database.reading((tx) =>
    reconcileMonth(tx, { settings: world.settings, now: world.environment.now() }, '2026-07' as Month),
  );
  expect(view.found).toMatchObject({ partners: found.partners, exceptions: found.exceptions });
  const env = { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: NOW };
  const { stdout } = await reckoner(['reconcile', '2026-07', '--format', 'csv'], { env });
  expect(csvOf(sheetOfAccounts(view))).toBe(stdout);
  expect(textOf(accountsScreen(view, FINANCE))).toMatch(/q-missing .* missing/);
});

test('money without a quote is shown with the quotes that it may be of', async () => {
  const page = html(accountsScreen(await accounts(), FINANCE));
  expect(page).toContain('Match to q-missing');
  expect(page).toContain('Close without a quote');
});

test('a reader of one partner sees its account alone, and no quote of another', async () => {
  const view = await accounts({ show: 'all' }, ['p-2']);
  expect(view.found.partners.map(({ partner_id }) => partner_id)).toEqual(['p-2']);
  expect(view.found.exceptions.map(({ quote_id }) => quote_id)).toEqual(['q-other']);
  expect(view.health.accounts.map(({ account }) => account)).toEqual(['acct_2']);
  const page = html(accountsScreen(view, FINANCE));
  expect(page).not.toContain('acct_1');
  expect(page).not.toContain('q-missing');
  expect(page).not.toContain(SCRIPT);
});

test('a month that is none is refused', async () => {
  await expect(accounts({ month: '2026-13' })).rejects.toMatchObject({ code: 'argument_invalid' });
});
