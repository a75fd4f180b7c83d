/** The console's partners: the figures of the aging, only what the reader may see, no secrets, and no markup of theirs. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { partnerScreen, readPartner } from '../../src/console/screens/partner.tsx';
import { partnerEmailsScreen, readPartnerEmails } from '../../src/console/screens/partner-emails.tsx';
import {
  partnerStatementScreen,
  readPartnerStatement,
  sheetOfStatement,
} from '../../src/console/screens/partner-statement.tsx';
import { partnerTermsScreen, percent, readPartnerTerms } from '../../src/console/screens/partner-terms.tsx';
import type { Transaction } from '../../src/database/transaction.ts';
import { holdDocument } from '../../src/documents/hold.ts';
import { partners } from '../../src/lists/partners.ts';
import { createClient } from '../../src/partners/clients.ts';
import type { Scope } from '../../src/people/scope.ts';
import { readAging } from '../../src/reports/aging.ts';
import { csvOf } from '../../src/sheet.ts';
import { reckoner } from '../support/program.ts';
import { partner } from '../support/world.ts';
import { type ConsoleBooks, FINANCE, html, listed, openConsole, SCRIPT, TODAY, textOf } from './books.ts';

let books: ConsoleBooks;
let secret: string;
beforeAll(async () => {
  books = await openConsole();
  const { transaction } = books.database;
  await transaction((tx) => holdDocument(tx, books.acting, { number: 'INV-2026-000002', reason: 'ask first' }));
  const { environment, actor } = books;
  const made = await transaction((tx) =>
    createClient(tx, 'p-1', {}, { environment: environment.name, actor, now: environment.now() }),
  );
  secret = made.client_secret;
});
afterAll(() => books.end());

const reading = <Result>(read: (tx: Transaction) => Promise<Result>): Promise<Result> => books.database.reading(read);
const listedPartners = (question: Readonly<Record<string, string>> = {}, scope: Scope = null) =>
  listed(books, partners, question, scope);
const idsOf = async (...given: Parameters<typeof listedPartners>) =>
  (await listedPartners(...given)).rows.map(({ partner_id }) => partner_id);

test('the list has the balances of the aging, by name', async () => {
  const aging = await reading((tx) => readAging(tx, { today: TODAY }));
  const { rows: lines } = await listedPartners();
  expect(lines.map(({ partner_id }) => partner_id)).toEqual(['p-2', 'p-1']);
  const balances = lines
    .flatMap((line) => line.balances)
    .sort((one, other) => (one.partner_id < other.partner_id ? -1 : 1));
  expect(balances.map(({ partner_id, currency, net }) => ({ partner_id, currency, net }))).toEqual(
    aging.partners.map(({ partner_id, currency, net }) => ({ partner_id, currency, net })),
  );
  for (const row of aging.partners) {
    const own = balances.find((each) => each.partner_id === row.partner_id && each.currency === row.currency);
    const overdue = [row.days_1_30, row.days_31_60, row.days_61_90, row.over_90].reduce(
      (sum, each) => sum + Number(each),
      0,
    );
    expect(Number(own?.overdue)).toBe(overdue);
  }
});

test('partners are found by name, id and contact, and those that no e-mail reaches are named', async () => {
  expect(await idsOf({ text: 'HARBOUR' })).toEqual(['p-1']);
  expect(await idsOf({ text: 'ap@partner' })).toEqual(['p-1']);
  expect(await idsOf({ text: 'nobody' })).toEqual([]);
  expect(await idsOf({ status: 'inactive' })).toEqual([]);
  expect(await idsOf({ status: 'contact' })).toContain('p-2');
  expect(textOf((await listedPartners()).screen)).toContain('no e-mail address');
  expect(textOf((await listedPartners({ text: 'nobody' })).screen)).toContain('No partners match.');
});

test('a list of more than 50 is read page by page, each partner once', async () => {
  const many = Array.from({ length: 60 }, (_, at) => partner({ partner_id: `z-${at}`, name: `Same name ${at % 7}` }));
  await books.partners(many);
  const first = await listedPartners();
  expect(first.rows).toHaveLength(50);
  const second = await idsOf({ after: first.next as string });
  const ids = [...first.rows.map(({ partner_id }) => partner_id), ...second];
  expect(new Set(ids).size).toBe(62);
});

describe('a reader of some partners', () => {
  test('lists these alone', async () => {
    expect(await idsOf({}, ['p-2'])).toEqual(['p-2']);
    expect(await idsOf({ text: 'harbour' }, ['p-2'])).toEqual([]);
  });

  test('gets the same answer for another partner as for one that does not exist', async () => {
    for (const id of ['p-1', 'p-unknown']) {
      const seen = books.seen(['p-2']);
      const refused = { code: 'partner_unknown' };
      await expect(reading((tx) => readPartner(tx, id, seen))).rejects.toMatchObject(refused);
      await expect(reading((tx) => readPartnerStatement(tx, id, {}, seen))).rejects.toMatchObject(refused);
      await expect(reading((tx) => readPartnerTerms(tx, id, seen))).rejects.toMatchObject(refused);
      await expect(
        reading((tx) => readPartnerEmails(tx, id, { ...seen, query: {}, context: seen })),
      ).rejects.toMatchObject(refused);
    }
  });
});

test('one partner shows its open items, its hold and its unapplied cash, each with its action', async () => {
  const one = await reading((tx) => readPartner(tx, 'p-1', books.seen()));
  expect(one.items.map(({ number }) => number)).toEqual(['INV-2026-000001', 'INV-2026-000002', 'INV-2026-000004']);
  expect(html(partnerScreen(one, FINANCE))).toContain('href="/console/actions/invoice.release?number=INV-2026-000002"');
  const two = await reading((tx) => readPartner(tx, 'p-2', books.seen()));
  expect(two.unapplied).toMatchObject([{ amount: '3.00', currency: 'EUR', reference: 'UNAPPLIED' }]);
  expect(html(partnerScreen(two, FINANCE))).toContain('href="/console/payments/');
});

test('the account statement downloads as the file that the command writes', async () => {
  const asked = { from: '2026-08-01', as_of: '2026-10-14' };
  const statement = await reading((tx) => readPartnerStatement(tx, 'p-1', asked, books.seen()));
  const env = { RECKONER_HOME: books.home, DATABASE_URL: books.databaseUrl, RECKONER_NOW: `${TODAY}T15:00:00Z` };
  const command = ['report', 'statement', '--partner', 'p-1', '--from', asked.from, '--as-of', asked.as_of];
  const { stdout } = await reckoner([...command, '--format', 'csv'], { env });
  expect(csvOf(sheetOfStatement(statement))).toBe(stdout);
  expect(textOf(partnerStatementScreen(statement, FINANCE))).toContain('equals the open items');
  const backwards = { from: '2026-10-14', as_of: '2026-08-01' };
  await expect(reading((tx) => readPartnerStatement(tx, 'p-1', backwards, books.seen()))).rejects.toMatchObject({
    code: 'argument_invalid',
  });
});

test('terms show policies, clients without secrets, and the changes with who made them', async () => {
  const [policy, ...policies] = partner()['policies'] as object[];
  const cancellation = { window_days: 14, after_window: 'pro_rata', cut: 'kept_by_partner' };
  await books.partners([partner({ payment_terms_days: 45, policies: [{ ...policy, cancellation }, ...policies] })]);
  const terms = await reading((tx) => readPartnerTerms(tx, 'p-1', books.seen()));
  expect(terms.clients.rows).toMatchObject([{ revoked_at: null, secrets: [{ ends_at: null }] }]);
  const page = html(partnerTermsScreen(terms, FINANCE));
  expect(JSON.stringify(terms)).not.toMatch(/[0-9a-f]{64}/);
  expect(page).not.toContain(secret);
  expect(page).toContain('30\u00a0%');
  expect(page).toContain('14 days, then pro rata by cover, cut kept by partner');
  expect(page).toContain('30 days, in proportion');
  expect(textOf(partnerTermsScreen(terms, FINANCE))).toMatch(/Days to pay 30 45/);
});

test('a rate is shown in percent without being calculated', () => {
  const shown = ['0.30', '0.3055', '0', '1', '0.005', '0.125', '1.5'].map((rate) =>
    percent(rate).replace('\u00a0', ' '),
  );
  expect(shown).toEqual(['30 %', '30.55 %', '0 %', '100 %', '0.5 %', '12.5 %', '150 %']);
});

test('a partner named like a script is text on every screen', async () => {
  const screens = [
    (await listedPartners()).screen,
    partnerScreen(await reading((tx) => readPartner(tx, 'p-2', books.seen())), FINANCE),
    partnerStatementScreen(await reading((tx) => readPartnerStatement(tx, 'p-2', {}, books.seen())), FINANCE),
    partnerTermsScreen(await reading((tx) => readPartnerTerms(tx, 'p-2', books.seen())), FINANCE),
    partnerEmailsScreen(
      await reading((tx) => readPartnerEmails(tx, 'p-2', { ...books.seen(), query: {}, context: books.seen() })),
      FINANCE,
    ),
  ];
  for (const screen of screens) {
    expect(html(screen)).toContain('&lt;script>alert(1)');
    expect(html(screen)).not.toContain(SCRIPT);
  }
});
