/** Three months of three currencies, with what moves money in them, and a map of all their accounts. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { creditInvoice } from '../../src/documents/credit.ts';
import { writeOffInvoice } from '../../src/documents/write-off.ts';
import { recordSettingsChanges } from '../../src/people/settings-changes.ts';
import { booksOf } from '../payments/books.ts';
import { openWorld, partner, quote, reversal, type World } from '../support/world.ts';

export const MONTHS = ['2026-07', '2026-08', '2026-09'] as const;

/** A rule for every account of these months. */
export const ACCOUNTS = {
  accounts: [
    { account: 'assets:receivable:billed', to: 'Receivable' },
    { account: 'assets:receivable:billed', currency: 'EUR', to: 'Rec. EUR' },
    { account: 'assets:receivable:unbilled', to: 'Unbilled' },
    { account: 'assets:bank', to: 'Bank' },
    { account: 'assets:bank:0002', to: 'Bank Tokyo' },
    { account: 'liabilities:unapplied', to: 'Unapplied' },
    { account: 'liabilities:partner-credit', to: 'Credit', by_partner: true },
    { account: 'income:sales', to: 'Sales' },
    { account: 'income:sales', policy: 'parking', to: 'Sales park', class: 'Parking' },
    { account: 'income:sales', policy: 'parking', partner: 'p-3', to: 'Sales JP', location: 'Tokyo' },
    { account: 'income:adjustments', to: 'Adjustment' },
    { account: 'expenses:partner-cut', to: 'Commission' },
    { account: 'expenses:bad-debts', to: 'Bad debts' },
  ],
  names: { 'p-2': 'Nord (Lille)' },
};

/** A rule for every account that there is, for tests in which anything can happen. */
export const everyAccount = (sales = 'Sales'): object => ({
  accounts: [
    ...['assets:receivable:billed', 'assets:receivable:unbilled', 'assets:receivable:processor', 'assets:bank'],
    ...[
      'assets:processor',
      'liabilities:unapplied',
      'liabilities:partner-credit',
      'liabilities:tax',
      'liabilities:unearned',
    ],
    'income:adjustments',
    ...['income:interest', 'expenses:partner-cut', 'expenses:bad-debts', 'expenses:bank-charges'],
    ...['expenses:processor-fees', 'equity:conversion', 'equity:opening-balances'],
  ]
    .map((account, at): object => ({ account, to: `${1000 + at}` }))
    .concat({ account: 'income:sales', to: sales }),
  names: {
    ...{ 'p-2': 'Second partner', 'p-3': 'Third partner', 'p-4': 'Fourth partner', 'p-5': 'Fifth partner' },
    'p-split': 'Partner with a processor',
  },
});

export const writeAccounts = ({ home }: Pick<World, 'home'>, accounts: object = ACCOUNTS): void =>
  writeFileSync(join(home, 'accounts.json'), JSON.stringify(accounts));

const PARTNERS = [
  ['p-1', 'Harbour Lights, "Ticketing"', 'USD', 1],
  ['p-2', 'Société Théâtrale du Nord', 'EUR', 1],
  ['p-3', '東京チケット', 'JPY', 100],
] as const;

const price = (currency: string, units: number, amount: number): string =>
  currency === 'JPY' ? String(amount * units) : (amount * units).toFixed(2);

/** It is 15 October 2026, the three months are closed for billing, and those of `books` are closed for good. */
export async function openMonths(...books: readonly string[]): Promise<World> {
  const world = await openWorld();
  // With the most accounts: partner cuts are ours.
  world.settings = { ...world.settings, we_are: 'principal' };
  await recordSettingsChanges(world.database, world);
  writeAccounts(world);
  await world.partners(PARTNERS.map(([partner_id, name, currency]) => partner({ partner_id, name, currency })));
  for (const [index, month] of MONTHS.entries()) {
    world.at(`2026-${String(8 + index).padStart(2, '0')}-02T15:00:00Z`);
    const rows = PARTNERS.flatMap(([partner_id, , currency, units]) =>
      ['ticket-protection', 'parking'].map((policy_id, at) =>
        quote({
          ...{ partner_id, currency, policy_id, accepted_at: `${month}-1${at}T12:00:00Z` },
          spotPrice: price(currency, units, 1000 * (index + 1) + at),
          partnerCut: price(currency, units, 300),
          invoiceAmount: price(currency, units, 1000 * (index + 1) + at - 300),
        }),
      ),
    );
    const taken = { spotPrice: '-250.00', partnerCut: '-75.00', invoiceAmount: '-175.00' };
    const back = reversal(rows[0] as Record<string, unknown>, { accepted_at: `${month}-20T12:00:00Z`, ...taken });
    await world.rows([...rows, back]);
    await world.close();
    if (month === '2026-07') await correct(world);
    if (month === '2026-08') await pay(world);
  }
  world.at('2026-10-15T15:00:00Z');
  const head = 'date,amount,currency,account,bank_reference,text,payer,payer_account';
  await booksOf(world).bankText('bank.csv', `${head}\n2026-09-30,77.70,USD,0001,FT-9,thanks,Nobody Known,\n`);
  await world.closeBooks(...books);
  return world;
}

const numberOf = async (world: World, partnerId: string, month: string): Promise<string> =>
  (await world.documents({ partnerId })).find((each) => each.month === month)?.number as string;

/** In August: a credit note in EUR, and a write-off in JPY. */
async function correct(world: World): Promise<void> {
  world.at('2026-08-10T15:00:00Z');
  const credited = { number: await numberOf(world, 'p-2', '2026-07'), amount: '12.34', reason: 'goodwill' };
  const given = { number: await numberOf(world, 'p-3', '2026-07'), reason: 'insolvent' };
  await world.database.transaction(async (tx) => {
    await creditInvoice(tx, world, credited);
    await writeOffInvoice(tx, world, given);
  });
}

/** In September: a payment of an invoice with what is left over, and one to another bank. */
async function pay(world: World): Promise<void> {
  const money = booksOf(world);
  world.at('2026-09-25T15:00:00Z');
  const paid = await money.record({ partnerId: 'p-1', amount: '2500.00', receivedOn: '2026-09-20', account: '0001' });
  await money.apply(paid.paymentId, await numberOf(world, 'p-1', '2026-07'));
  const yen = { partnerId: 'p-3', amount: '50000', currency: 'JPY', account: '0002', reference: 'J-1' };
  await money.record({ ...yen, receivedOn: '2026-09-21' });
}
