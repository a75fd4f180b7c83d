/** What `init --check` tells before a month closes: who could not be invoiced, written to or paid by. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Environment } from '../../src/config/environment.ts';
import { firstSettings } from '../../src/config/first-settings.ts';
import type { Settings } from '../../src/config/settings.ts';
import { taxSchema } from '../../src/config/tax.ts';
import { deactivateUser, identify } from '../../src/people/users.ts';
import { ADVISED_RULES, type Gap, type Readiness, readReadiness } from '../../src/reports/readiness.ts';
import { startOver } from '../close/start-over.ts';
import { ADMINISTRATOR, invite } from '../support/console.ts';
import { LOG_KEY } from '../support/log-keys.ts';
import { reckoner } from '../support/program.ts';
import { openWorld, partner, quote, realSettings, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld({ logKey: LOG_KEY });
});
afterAll(() => world.end());
beforeEach(async () => {
  await startOver(world);
  rmSync(join(world.home, 'templates'), { recursive: true, force: true });
});

const READY: Partial<Environment> = { smtpUrl: 'smtp://mail.example', stripeKey: 'sk_test_1' };

function readiness(settings: Partial<Settings> = {}, environment: Partial<Environment> = READY): Promise<Readiness> {
  return world.database.reading((tx) =>
    readReadiness(tx, {
      environment: { ...world.environment, ...environment },
      settings: { ...realSettings(world.settings), instructions: realInstructions(), ...settings },
    }),
  );
}
const gaps = async (...given: Parameters<typeof readiness>): Promise<readonly Gap[]> =>
  (await readiness(...given)).missing;

/** The sandbox's with other account numbers: a bank that is not invented. */
function realInstructions(): Settings['instructions'] {
  const text = JSON.stringify(world.settings.instructions).replaceAll('000123456789', '7788990011');
  return JSON.parse(text.replaceAll('GB82WEST12345698765432', 'DE89370400440532013000')) as Settings['instructions'];
}

test('nothing is missing where everything is there', async () => {
  await world.partners([partner(), partner({ partner_id: 'p-2', currency: 'EUR' })]);
  expect(await gaps()).toEqual([]);
});

test('a currency without instructions is named with the partners who are invoiced in it', async () => {
  await world.partners([
    partner(),
    partner({ partner_id: 'p-2', currency: 'EUR' }),
    partner({ partner_id: 'p-3', currency: 'EUR' }),
    partner({ partner_id: 'p-4', currency: 'JPY', active: false }),
  ]);
  const { USD } = realInstructions();
  expect(await gaps({ instructions: { USD: USD as object } })).toEqual([
    { scope: 'currency', id: 'EUR', needs: 'payment instructions', partners: ['p-2', 'p-3'] },
  ]);
});

test('dollars lack ACH where there is a wire only', async () => {
  await world.partners([partner()]);
  expect(await gaps({ instructions: { '*': realInstructions()['*'] as object } })).toEqual([
    { scope: 'currency', id: 'USD', needs: 'ACH instructions', partners: ['p-1'] },
  ]);
});

test('a partner with e-invoices is named where only some of its policies are outside the scope of tax', async () => {
  const outside = { policy: 'parking', category: 'outside_scope', reason: 'Not taxable' };
  const tax = taxSchema.parse({ from: '2026-07', rules: [{ category: 'standard', rate: '19' }, outside] });
  const of = (partner_id: string, overrides: object = {}) =>
    partner({ partner_id, e_invoice: 'facturx', ...overrides });
  const policies = (partner()['policies'] as { policy_id: string }[]).slice(1);
  await world.partners([of('p-1'), of('p-2', { e_invoice: 'none' }), of('p-3', { policies })]);
  const mixed = (await gaps({ tax })).filter(({ needs }) => needs.includes('BR-O-11'));
  expect(mixed.map(({ scope, id }) => [scope, id])).toEqual([['partner', 'p-1']]);
  expect(mixed[0]?.needs).toMatch(/^other tax rules, or no e-invoice: policy parking is outside the scope of tax/);
});

test('another recognition of sales than that of the closed months is named', async () => {
  await world.partners([partner()]);
  expect(await gaps({ recognition: 'over_cover' })).toEqual([]);
  await world.rows([quote()]);
  await world.close();
  expect(await gaps()).toEqual([]);
  expect(await gaps({ recognition: 'over_cover' })).toEqual([
    { scope: 'settings', id: 'recognition', needs: `"at_sale", as this ledger's months were closed` },
  ]);
});

const INSURANCE = [{ policy_id: 'cover', name: 'Cover', kind: 'insurance', partner_cut_rate: '0.3' }];

test('the partners whose policies are insurance are named, because taxes on premiums are not calculated', async () => {
  await world.partners([partner(), partner({ partner_id: 'p-2', policies: INSURANCE })]);
  expect((await readiness()).premium_taxes_not_calculated).toEqual(['p-2']);
});

test('a partner needs a contact, an address and an active policy', async () => {
  const policies = [{ policy_id: 'x', name: 'X', kind: 'insurance', partner_cut_rate: '0.3', active: false }];
  const invoicing_contact = { name: '', email: '', cc: [] };
  await world.partners([partner({ invoicing_contact, address: {}, policies })]);
  const needed = ['invoicing_contact.email', 'address.line1', 'address.city', 'address.country', 'an active policy'];
  expect(await gaps()).toEqual(needed.map((needs) => ({ scope: 'partner', id: 'p-1', needs })));
});

test('mail without a server, and links of Stripe without a key', async () => {
  const nothing = { smtpUrl: undefined, stripeKey: undefined };
  const ids = async (payment_link: Settings['payment_link']) =>
    (await gaps({ payment_link }, nothing)).map(({ scope, id }) => `${scope} ${id}`);
  expect(await ids({ provider: 'page' })).toEqual(['environment SMTP_URL']);
  expect(await ids({ provider: 'stripe', printed_url: 'page', methods: ['card'] })).toEqual([
    'environment SMTP_URL',
    'environment STRIPE_SECRET_KEY',
  ]);
});

test('for Stripe: currencies that it does not take or that no method pays in, and the limits of the others', async () => {
  const currencies = ['USD', 'EUR', 'CLF', 'KWD', 'JPY', 'ISK'];
  await world.partners(currencies.map((currency) => partner({ partner_id: `p-${currency}`, currency })));
  const ach = await readiness({
    payment_link: { provider: 'stripe', printed_url: 'page', methods: ['us_bank_account'] },
  });
  expect(ach.missing.map(({ id, needs }) => `${id}: ${needs}`)).toEqual([
    'CLF: a payment link: Stripe accepts no payments in CLF',
    ...['EUR', 'ISK', 'JPY', 'KWD'].map(
      (currency) => `${currency}: a payment method: none of us_bank_account can pay in ${currency}`,
    ),
  ]);
  expect(ach.link_limits).toEqual({
    CLF: 'none',
    EUR: 'from 0.50 to 999,999.99',
    ISK: 'up to 999,999',
    JPY: 'from 50 to 99,999,999',
    KWD: 'up to 99,999.990, in steps of 0.010',
    USD: 'from 0.50 to 999,999.99',
  });
  const cards = await gaps({ payment_link: { provider: 'stripe', printed_url: 'page', methods: ['card'] } });
  expect(cards.map(({ id }) => id)).toEqual(['CLF']);
});

test('a template of the house by which no letter can be written is named', async () => {
  const folder = join(world.home, 'templates', 'email');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'invoice.txt.hbs'), 'Dear {{contact}}');
  expect(await gaps()).toEqual([
    { scope: 'template', id: join(folder, 'invoice.txt.hbs'), needs: expect.stringContaining('"contact" not defined') },
  ]);
  writeFileSync(join(folder, 'invoice.txt.hbs'), 'Dear {{contactName}} {{#if}}');
  expect(await gaps()).toMatchObject([{ scope: 'template', id: join(folder, 'invoice.txt.hbs') }]);
});

test('an override of a page is named: pages have no templates', async () => {
  const folder = join(world.home, 'templates', 'pages');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'payment.html.hbs'), 'Pay {{balance}}');
  expect(await gaps()).toEqual([
    {
      scope: 'template',
      id: join(folder, 'payment.html.hbs'),
      needs: expect.stringContaining('pages cannot be overridden'),
    },
  ]);
});

test('a page that is not https', async () => {
  expect(await gaps({ public_url: 'http://billing.fathom.example' })).toMatchObject([
    { id: 'public_url', needs: expect.stringContaining('https') },
  ]);
});

test('the rules of approval that are missing once two users may approve, and none before', async () => {
  const ruled = Object.fromEntries(ADVISED_RULES.map((action) => [action, { always: true } as const]));
  const { 'user.deactivate': _, ...most } = ruled;
  // By these, one administrator could create the second person.
  expect(Object.keys(firstSettings('production').approvals ?? {})).toEqual(
    ADVISED_RULES.filter((name) => /^user\./.test(name)),
  );
  const production = () => gaps({}, { ...READY, name: 'production' });
  const approvals = async () => (await production()).filter(({ id }) => id === 'approvals');
  expect(await approvals()).toEqual([]);
  await invite(world, ADMINISTRATOR, { roles: ['administrator', 'finance', 'approver'] });
  expect(await approvals()).toEqual([]);
  await invite(world, 'lee@issuer.example', { roles: ['approver'] });
  expect(await approvals()).toMatchObject([
    {
      needs: expect.stringContaining(
        `rules for ${Object.keys(most).join(', ')}, such as {"partner.import": {}}: 2 people`,
      ),
    },
  ]);
  // A sandbox needs none. One that names some is told of the others.
  expect(await gaps()).toEqual([]);
  // Of two, each can remove the other, who may have left.
  const under = async (approvals: Settings['approvals']) =>
    (await gaps({ approvals })).filter(({ id }) => id === 'approvals');
  expect(await under(most)).toEqual([]);
  expect(await under(ruled)).toMatchObject([
    { needs: expect.stringMatching(/^no rule for user\.deactivate, or a third approver: with two, the rule prevents/) },
  ]);
  await invite(world, 'pat@issuer.example', { roles: ['approver'] });
  expect(await under(most)).toMatchObject([{ needs: expect.stringMatching(/^rules for user\.deactivate, /) }]);
  expect(await under(ruled)).toEqual([]);
  await world.database.transaction(async (tx) => {
    const actor = await identify(tx, world.actor, { login: ADMINISTRATOR, unattended: false });
    for (const login of ['lee@issuer.example', 'pat@issuer.example'])
      await deactivateUser(tx, { ...world, actor }, { login, reason: null });
  });
  expect(await under(most)).toEqual([]);
});

test('what the sandbox invented', async () => {
  const invented = await gaps({ ...world.settings });
  expect(invented.map(({ id }) => id)).toContain('instructions.USD.ach');
});

test('people read it in 80 columns', async () => {
  const fresh = await openWorld();
  const currencies = ['USD', 'EUR', 'GBP', 'CLF'];
  await fresh.partners(
    currencies.flatMap((currency) =>
      [1, 2, 3, 4].map((each) =>
        partner({
          ...{ partner_id: `a-rather-long-partner-id-${currency}-${each}`, currency },
          ...(currency === 'GBP' && { policies: INSURANCE }),
        }),
      ),
    ),
  );
  const settings = { ...firstSettings('sandbox'), instructions: {}, payment_link: { provider: 'stripe' } };
  writeFileSync(join(fresh.home, 'settings.json'), JSON.stringify(settings));
  const env = { RECKONER_HOME: fresh.home, DATABASE_URL: fresh.databaseUrl };
  const ran = await reckoner(['init', '--check'], { env });
  expect({ status: ran.status, stderr: ran.stderr }).toEqual({ status: 4, stderr: '' });
  const lines = ran.stdout.split('\n');
  expect(lines.filter((each) => each.length > 80)).toEqual([]);
  expect(ran.stdout.replace(/\s+/g, ' ')).toContain('and 1 more');
  expect(ran.stdout).toContain('Not calculated: premium taxes of insurance for');
  expect(ran.stdout).toContain('Payment links in GBP: from 0.30 to 999,999.99.');
  await fresh.end();
});

test('a connected account needs a key, then a first reading, unless its settlement files tell of it', async () => {
  const connected = { arrangement: 'connected_account', merchant_of_record: 'platform', split: 'real_time' };
  await world.partners([
    partner({ ...connected, connected_account_id: 'acct_1' }),
    partner({ partner_id: 'p-2', ...connected, connected_account_id: 'acct_2' }),
    partner({
      partner_id: 'p-3',
      ...connected,
      connected_account_id: 'acct_3',
      balance_transactions_from: 'settlement_file',
    }),
  ]);
  const connectedKeys = new Map([['acct_2', 'sk_test_acct2']]);
  expect(await gaps({}, { ...READY, connectedKeys })).toMatchObject([
    {
      scope: 'environment',
      id: 'STRIPE_SECRET_KEY_acct_1',
      needs: expect.stringMatching(/cannot be read/),
      partners: ['p-1'],
    },
    {
      scope: 'account',
      id: 'acct_2',
      needs: 'a first reading, which checks the key',
      remedies: [{ command: 'processor poll' }],
      partners: ['p-2'],
    },
  ]);
});

test('production without a key that signs checkpoints is told so', async () => {
  expect(await gaps({}, { ...READY, logKey: undefined })).toEqual([
    { scope: 'environment', id: 'LOG_SIGNING_KEY_FILE', needs: expect.stringMatching(/^a key that signs checkpoints/) },
  ]);
});
