/**
 * Where invoices and events go and what a quote costs changes only with an event of the same transaction that names the
 * new content, whoever changes it.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { setWebhook } from '../../src/partner-events/webhook.ts';
import { openWorld, partner, type World } from '../support/world.ts';

const CONNECTED = {
  arrangement: 'connected_account',
  connected_account_id: 'acct_1',
  merchant_of_record: 'platform',
  split: 'real_time',
};
const policy = (overrides: Record<string, unknown> = {}) => ({
  policy_id: 'ticket-protection',
  name: 'Ticket Protection',
  kind: 'non_insurance',
  partner_cut_rate: '0.30',
  price: { rate: '0.085', minimum: '2.00' },
  ...overrides,
});
const FULL = partner({
  invoicing_contact: {
    name: 'Accounts Payable',
    email: 'ap@partner.example',
    cc: ['one@partner.example', 'two@partner.example'],
  },
  policies: [
    policy({ policy_id: 'parking', partner_cut_rate: '0.30', price: { rate: '0.085', minimum: '2.00' } }),
    policy({ policy_id: 'dated', partner_cut_rate: [{ rate: '0.30' }, { from: '2026-08-10', rate: '0.25' }] }),
  ],
});

let world: World;
beforeAll(async () => {
  world = await openWorld();
  world.environment = { ...world.environment, webhookKey: 'k'.repeat(40) };
  await world.partners([FULL, partner({ partner_id: 'p-2', ...CONNECTED })]);
  await world.database.transaction((tx) =>
    setWebhook(tx, world, { partnerId: 'p-1', url: 'https://partner.example/in?key=1' }),
  );
});
afterAll(() => world.end());

/** As a command of the program, with the rights of reckoner_app. */
const asProgram = (...statements: string[]) =>
  world.database.transaction(async (tx) => {
    for (const sql of statements) await tx.client.query(sql);
  });

const event = (changes: unknown, { subject = 'p-1', action = 'partner.update' } = {}) =>
  `INSERT INTO audit_events (occurred_at, action, subject, details, os_user, host, via)
   VALUES (now(), '${action}', '${subject}', '${JSON.stringify({ changes })}', 'ada', 'desk', 'command')`;
const named = (field: string, value: unknown) => [{ field, old: null, new: value }];

const OF_P1 = `WHERE partner_id = 'p-1'`;
const CONTACT = `UPDATE partners SET contact_email = 'evil@elsewhere.example' ${OF_P1}`;

describe('without an event the database refuses', () => {
  test.each([
    ['another address of invoices', 'partners', CONTACT],
    ['another address of copies', 'partners', `UPDATE partners SET contact_cc = '{evil@elsewhere.example}' ${OF_P1}`],
    ['no copies', 'partners', `UPDATE partners SET contact_cc = '{}' ${OF_P1}`],
    ['another payer', 'partners', `UPDATE partners SET parent = 'p-2' ${OF_P1}`],
    ['other terms', 'partners', `UPDATE partners SET payment_terms_days = 365 ${OF_P1}`],
    ['an emptied field', 'partners', `UPDATE partners SET address_line1 = '' ${OF_P1}`],
    ['a partner that became inactive', 'partners', `UPDATE partners SET inactive_since = now() ${OF_P1}`],
    ['another cut', 'policies', `UPDATE policies SET partner_cut_rate = 0.99 ${OF_P1}`],
    [
      'another cut from a day on',
      'policies',
      `UPDATE policies SET dated_cut_rates = '[{"from":"2026-08-10","rate":"0.9"}]' ${OF_P1}`,
    ],
    ['another price', 'policies', `UPDATE policies SET price_minimum = 0 ${OF_P1} AND policy_id = 'parking'`],
    ['another limit', 'policies', `UPDATE policies SET largest_price = 1 ${OF_P1}`],
    [
      'another policy',
      'policies',
      `INSERT INTO policies (partner_id, policy_id, name, kind, partner_cut_rate) VALUES ('p-1', 'new', 'New', 'insurance', 0.1)`,
    ],
    [
      'another account',
      'partner_arrangements',
      `UPDATE partner_arrangements SET connected_account_id = 'acct_2' WHERE partner_id = 'p-2'`,
    ],
    [
      'an arrangement from a month on',
      'partner_arrangements',
      `INSERT INTO partner_arrangements (partner_id, from_month, arrangement) VALUES ('p-1', '2026-12', 'invoicing')`,
    ],
    ['another URL', 'webhooks', `UPDATE webhooks SET url = 'https://elsewhere.example/in'`],
    ['another key in the URL', 'webhooks', `UPDATE webhooks SET url = 'https://partner.example/in?key=2'`],
    ['no URL', 'webhooks', 'UPDATE webhooks SET url = NULL'],
    ['another secret', 'webhooks', 'UPDATE webhooks SET secret_version = 9'],
    ['events passed over', 'webhooks', 'UPDATE webhooks SET acknowledged = acknowledged + 2'],
    [
      'a webhook',
      'webhooks',
      `INSERT INTO webhooks (partner_id, url, secret_version, key_check, acknowledged) VALUES ('p-2', 'https://a.example', 1, 'x', 0)`,
    ],
  ])('%s', async (_, table, change) => {
    await expect(asProgram(change)).rejects.toMatchObject({ constraint: `${table}_change_with_event` });
  });

  test.each(['partner_arrangements', 'webhooks'])('the owner deletes no row of %s', async (table) => {
    const deletion = world.sql(`DELETE FROM ${table}`);
    await expect(deletion).rejects.toMatchObject({ constraint: `${table}_change_with_event` });
  });

  test('an old day of an inactive partner', async () => {
    await world.partners([partner({ partner_id: 'p-3', active: false })]);
    const earlier = asProgram(`UPDATE partners SET inactive_since = '2020-01-01' WHERE partner_id = 'p-3'`);
    await expect(earlier).rejects.toMatchObject({ constraint: 'partners_change_with_event' });
  });
});

describe('the event must be of this transaction, of this partner, and name this field with this value', () => {
  const right = named('invoicing_contact.email', 'evil@elsewhere.example');
  test.each([
    ['another field', event(named('invoicing_contact.name', 'evil@elsewhere.example'))],
    ['another value', event(named('invoicing_contact.email', 'ap@partner.example'))],
    ['no value', event(named('invoicing_contact.email', null))],
    ['another partner', event(right, { subject: 'p-2' })],
    ['another action', event(right, { action: 'settings.change' })],
  ])('%s', async (_, other) => {
    await expect(asProgram(other, CONTACT)).rejects.toMatchObject({ constraint: 'partners_change_with_event' });
  });

  test('an event of an earlier transaction', async () => {
    await asProgram(event(right));
    await expect(asProgram(CONTACT)).rejects.toMatchObject({ constraint: 'partners_change_with_event' });
  });

  test('a temporary table does not stand in for the events', async () => {
    const shadow = `CREATE TEMPORARY TABLE audit_events ON COMMIT DROP AS SELECT * FROM audit_events LIMIT 0;
      INSERT INTO pg_temp.audit_events (occurred_at, action, subject, details, os_user, host, via)
      VALUES (now(), 'partner.update', 'p-1', '${JSON.stringify({ changes: right })}', 'ada', 'desk', 'command')`;
    await expect(asProgram(shadow, CONTACT)).rejects.toMatchObject({ constraint: 'partners_change_with_event' });
  });

  test('with that event the change is recorded, and stays as evidence', async () => {
    await asProgram(event(right), CONTACT);
    await world.partners([FULL]);
  });
});

describe('the program changes what it may', () => {
  test.each([
    ['a contact', { invoicing_contact: { name: 'New', email: 'new@partner.example', cc: [] } }],
    ['rates', { policies: [policy({ policy_id: 'parking', partner_cut_rate: '0.1234567', price: undefined })] }],
    [
      'dated rates',
      { policies: [policy({ policy_id: 'dated', partner_cut_rate: [{ from: '2026-08-10', rate: '0.2' }] })] },
    ],
    ['inactive', { active: false }],
    ['active again', { active: true }],
    ['a parent', { parent: 'p-2' }],
    ['no parent', {}],
    ['an arrangement from a month on', { ...CONNECTED, arrangement_from: '2026-10', connected_account_id: 'acct_9' }],
    [
      'another type of account',
      {
        ...CONNECTED,
        arrangement_from: '2026-10',
        connected_account_id: 'acct_9',
        settlement_currencies: ['USD', 'EUR'],
      },
    ],
    ['invoices again', { arrangement: 'invoicing', arrangement_from: '2026-11' }],
  ])('%s', async (_, changes) => {
    expect(await world.partners([{ ...FULL, ...changes }])).toMatchObject({ updated: 1 });
  });

  test('an acknowledged event moves a webhook on by one', async () => {
    await asProgram('UPDATE webhooks SET acknowledged = acknowledged + 1');
  });
});
