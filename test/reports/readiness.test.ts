/** What `init --check` tells before a month closes: who could not be invoiced, written to or paid by. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Environment } from '../../src/config/environment.ts';
import { firstSettings } from '../../src/config/first-settings.ts';
import type { Settings } from '../../src/config/settings.ts';
import { taxSchema } from '../../src/config/tax.ts';
import { deactivateUser, identify } from '../../src/people/users.ts';
import { type Gap, type Readiness, readReadiness } from '../../src/reports/readiness.ts';
import { startOver } from '../close/start-over.ts';
import { ADMINISTRATOR, invite } from '../support/console.ts';
import { reckoner } from '../support/program.ts';
import { SEAL_KEY } from '../support/seal-keys.ts';
import { openWorld, partner, realSettings, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld({ sealKey: SEAL_KEY });
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
  expect(mixed[0]?.needs).toMatch(/^other rules of tax, or no e-invoice: policy parking is outside the scope of tax/);
});

test('a partner needs a contact, an address and an active policy', async () => {
  const policies = [{ policy_id: 'x', name: 'X', kind: 'insurance', partner_cut_rate: '0.3', active: false }];
  const invoicing_contact = { name: '', email: '', cc: [] };
  await world.partners([partner({ invoicing_contact, address: {}, policies })]);
  const needed = ['invoicing_contact.email', 'address.line1', 'address.city', 'address.country', 'an active policy'];
  expect(await gaps()).toEqual(needed.map((needs) => ({ scope: 'partner', id: 'p-1', needs })));
});

test('mail without a server, links of Stripe without a key and signed links without a secret', async () => {
  const nothing = { smtpUrl: undefined, stripeKey: undefined };
  const ids = async (payment_link: Settings['payment_link']) =>
    (await gaps({ payment_link }, nothing)).map(({ scope, id }) => `${scope} ${id}`);
  expect(await ids({ provider: 'page' })).toEqual(['environment SMTP_URL']);
  expect(await ids({ provider: 'stripe', printed_url: 'page', methods: ['card'] })).toEqual([
    'environment SMTP_URL',
    'environment STRIPE_SECRET_KEY',
  ]);
  const template = 'https://pay.example/{number}';
  const bySignature = { provider: 'template', template, signature_parameter: 's', printed_url: 'page' } as const;
  expect(await ids(bySignature)).toEqual(['environment SMTP_URL', 'environment PAYMENT_LINK_SECRET']);
});

test('for Stripe: currencies that it does not take or that no method pays in, and the limits of the others', async () => {
  const currencies = ['USD', 'EUR', 'CLF', 'KWD', 'JPY', 'ISK'];
  await world.partners(currencies.map((currency) => partner({ partner_id: `p-${currency}`, currency })));
  const ach = await readiness({
    payment_link: { provider: 'stripe', printed_url: 'page', methods: ['us_bank_account'] },
  });
  expect(ach.missing.map(({ id, needs }) => `${id}: ${needs}`)).toEqual([
    'CLF: a payment link: Stripe takes no payments in CLF',
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

test('a page that is not https', async () => {
  expect(await gaps({ public_url: 'http://billing.fathom.example' })).toMatchObject([
    { id: 'public_url', needs: expect.stringContaining('https') },
  ]);
});

test('rules of approval that nobody could satisfy, until two users may approve', async () => {
  const approvals = firstSettings('production').approvals as Settings['approvals'];
  expect(Object.keys(approvals)).toEqual([
    ...['partner.import', 'client.create', 'credit.refund', 'invoice.write_off', 'instructions.adopt'],
  ]);
  const needs = (there: string) => [
    {
      ...{ scope: 'settings', id: 'approvals' },
      needs: `two users who may approve, and there is ${there}: 'reckoner user invite EMAIL --role approver' makes one`,
    },
  ];
  expect(await gaps()).toEqual([]);
  expect(await gaps({ approvals })).toEqual(needs('none'));
  await invite(world, ADMINISTRATOR);
  await invite(world, 'lee@issuer.example', { roles: ['approver'] });
  await invite(world, 'pat@issuer.example', { roles: ['approver'] });
  // An administrator alone could invite or become a third, who approves.
  const alone = (acts: string) => [
    {
      ...{ scope: 'settings', id: 'approvals' },
      needs: `a rule for ${acts} too: without it, one administrator can make the second person`,
    },
  ];
  expect(await gaps()).toEqual([]);
  expect(await gaps({ approvals })).toEqual(alone('user.invite, user.link, user.role'));
  const [invites, roles] = [{ 'user.invite': { always: true } }, { 'user.role': { always: true } }] as const;
  expect(await gaps({ approvals: { ...approvals, ...invites, ...roles } })).toEqual(alone('user.link'));
  const ruled = { ...approvals, ...invites, ...roles, 'user.link': { always: true } } as const;
  expect(await gaps({ approvals: ruled })).toEqual([]);
  await world.database.transaction(async (tx) => {
    const actor = await identify(tx, world.actor, { login: ADMINISTRATOR, unattended: false });
    await deactivateUser(tx, { ...world, actor }, { login: 'pat@issuer.example', reason: null });
  });
  expect(await gaps({ approvals })).toEqual(needs('one'));
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
      [1, 2, 3, 4].map((each) => partner({ partner_id: `a-rather-long-partner-id-${currency}-${each}`, currency })),
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
    { scope: 'account', id: 'acct_2', needs: expect.stringMatching(/processor poll/), partners: ['p-2'] },
  ]);
});

test('production without a key that signs seals is told so', async () => {
  expect(await gaps({}, { ...READY, sealKey: undefined })).toEqual([
    { scope: 'environment', id: 'SEAL_SIGNING_KEY_FILE', needs: expect.stringMatching(/^a key that signs seals/) },
  ]);
});
