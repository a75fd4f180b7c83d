/** Importing partners: new ones are added, known ones updated and counted, none deleted. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parsePartners } from '../../src/partners/file.ts';
import { readPartners } from '../../src/partners/partners.sql.ts';
import { withoutEvent } from '../support/guards.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());

const policy = (overrides: Record<string, unknown> = {}) => ({
  policy_id: 'ticket-protection',
  name: 'Ticket Protection',
  kind: 'insurance',
  partner_cut_rate: '0.30',
  price: { rate: '0.085', minimum: '2.00' },
  ...overrides,
});
const stored = async (partnerId: string) => (await world.database.reading((tx) => readPartners(tx, partnerId)))[0];
const UNCHANGED = { created: 0, updated: 0, unchanged: 1 };
const UPDATED = { created: 0, updated: 1, unchanged: 0 };

test('new, changed and unchanged partners are counted, and partners missing from the file stay', async () => {
  const [a, b, c] = ['count-a', 'count-b', 'count-c'].map((partner_id) => partner({ partner_id }));
  expect(await world.partners([a as object, b as object])).toEqual({ created: 2, updated: 0, unchanged: 0 });
  const renamed = { ...b, name: 'Renamed' };
  expect(await world.partners([a as object, renamed, c as object])).toEqual({ created: 1, updated: 1, unchanged: 1 });
  expect(await world.partners([c as object])).toEqual(UNCHANGED);
  expect(await world.partners([])).toEqual({ created: 0, updated: 0, unchanged: 0 });
  expect((await stored('count-b'))?.name).toBe('Renamed');
});

test('a file with one mistake changes nothing', async () => {
  const attempt = async () =>
    world.partners([partner({ partner_id: 'half-a' }), partner({ partner_id: 'half-b', name: '' })]);
  await expect(attempt()).rejects.toMatchObject({ code: 'partners_invalid' });
  expect(await stored('half-a')).toBeUndefined();
});

describe('a partner is updated', () => {
  const base = partner({ partner_id: 'changing', policies: [policy()] });
  const changes: readonly [what: string, overrides: Record<string, unknown>][] = [
    ['name', { name: 'Another name' }],
    ['address', { address: { line1: '2 Quay', city: 'Boston', country: 'US' } }],
    ['contact', { invoicing_contact: { email: 'new@partner.example' } }],
    ['copies', { invoicing_contact: { email: 'ap@partner.example', cc: ['a@x.example', 'b@x.example'] } }],
    ['order of copies', { invoicing_contact: { email: 'ap@partner.example', cc: ['b@x.example', 'a@x.example'] } }],
    ['currency', { currency: 'EUR' }],
    ['time zone', { time_zone: 'Asia/Tokyo' }],
    ['terms', { payment_terms_days: 45 }],
    ["terms to the issuer's", { payment_terms_days: null }],
    ['end of month', { payment_terms_end_of_month: true }],
    ['pay day', { payment_terms_day: 15 }],
    ['e-mail for reminders', { reminder_email: 'dunning@partner.example' }],
    ['e-mail for statements', { statement_email: 'books@partner.example' }],
    ['e-mail for disputes', { dispute_email: 'claims@partner.example' }],
    ['tax id', { tax_id: '12-3456789' }],
    ['purchase order', { purchase_order: 'PO 7' }],
    ['legal note', { legal_note: 'one\ntwo' }],
    ['account statement', { account_statement: 'monthly' }],
    ['e-invoice', { e_invoice: 'ubl' }],
    ['buyer reference', { buyer_reference: '04011000-12345-34' }],
    ['electronic address', { electronic_address: '0208:0843766574' }],
    ['feed', { feed: 'strict' }],
    ['being active', { active: false }],
    ["a policy's name", { policies: [policy({ name: 'Another' })] }],
    ["a policy's order", { policies: [policy({ purchase_order: 'PO 7' })] }],
    ["a policy's kind", { policies: [policy({ kind: 'non_insurance' })] }],
    ["a policy's rate", { policies: [policy({ partner_cut_rate: '0.31' })] }],
    ["a policy's price", { policies: [policy({ price: { rate: '0.085', minimum: '2.01' } })] }],
    ["a policy's having a price", { policies: [policy({ price: undefined })] }],
    ["a policy's being active", { policies: [policy({ active: false })] }],
    ['a policy more', { policies: [policy(), policy({ policy_id: 'parking' })] }],
  ];
  for (const [what, overrides] of changes) {
    test(`in its ${what}, once`, async () => {
      await world.partners([base]);
      const changed = { ...base, ...overrides };
      expect(await world.partners([changed])).toEqual(UPDATED);
      expect(await world.partners([changed])).toEqual(UNCHANGED);
    });
  }

  test('not by decimals in another notation', async () => {
    const partner_id = 'decimals';
    await world.partners([partner({ partner_id, policies: [policy()] })]);
    const otherwise = policy({ partner_cut_rate: 0.3, price: { rate: 0.085, minimum: '2' } });
    expect(await world.partners([partner({ partner_id, policies: [otherwise] })])).toEqual(UNCHANGED);
  });

  test('without losing policies that are missing from the file', async () => {
    const partner_id = 'policies';
    await world.partners([partner({ partner_id, policies: [policy(), policy({ policy_id: 'parking' })] })]);
    expect(await world.partners([partner({ partner_id, policies: [] })])).toEqual(UNCHANGED);
    expect((await stored(partner_id))?.policies.map(({ policy_id }) => policy_id)).toEqual([
      'parking',
      'ticket-protection',
    ]);
    expect(await world.rows([quote({ partner_id, policy_id: 'parking' })])).toMatchObject({ accepted: 1 });
  });
});

describe('a parent', () => {
  const refusal = (partners: readonly object[]) =>
    world.partners(partners).then(
      () => 'none',
      (error: Error) => error.message,
    );

  test('is another partner, known or of the same file, and may be taken away again', async () => {
    const child = partner({ partner_id: 'child', parent: 'hq' });
    expect(await refusal([child])).toContain('its parent hq is not known');
    expect(await world.partners([child, partner({ partner_id: 'hq' })])).toMatchObject({ created: 2 });
    expect((await stored('child'))?.parent).toBe('hq');
    expect(await world.partners([partner({ partner_id: 'child' })])).toMatchObject({ updated: 1 });
    expect((await stored('child'))?.parent).toBeNull();
  });

  test('never leads back to the partner, in one file or over two', async () => {
    const of = (partner_id: string, parent?: string) => partner({ partner_id, parent });
    expect(await refusal([of('ring-1', 'ring-1')])).toContain('it would be its own parent (ring-1 < ring-1)');
    const ring = [of('ring-1', 'ring-2'), of('ring-2', 'ring-3'), of('ring-3', 'ring-1')];
    expect(await refusal(ring)).toContain('it would be its own parent (ring-1 < ring-2 < ring-3 < ring-1)');
    await world.partners([...ring.slice(0, 2), of('ring-3')]);
    expect(await refusal([of('ring-3', 'ring-1')])).toContain('(ring-3 < ring-1 < ring-2 < ring-3)');
    const forced = world.sql(
      withoutEvent(
        'partners',
        `UPDATE partners SET parent = 'ring-1' WHERE partner_id = 'ring-3'; SET CONSTRAINTS ALL IMMEDIATE`,
      ),
    );
    await expect(forced).rejects.toThrow(/ring-3 would be a parent of itself/);
  });
});

describe('the import stores the content of the file', () => {
  test('with rates and prices to the last decimal', async () => {
    const exact = policy({
      partner_cut_rate: '0.123456789012',
      price: { rate: '0.100000000001', minimum: '999999999999999.99' },
    });
    await world.partners([partner({ partner_id: 'exact', policies: [exact] })]);
    expect((await stored('exact'))?.policies).toMatchObject([
      { partner_cut_rate: '0.123456789012', price: { rate: '0.100000000001', minimum: '999999999999999.99' } },
    ]);
  });

  test('so that the output of `partner show` can be imported again without a change', async () => {
    const partner_id = 'round-trip';
    const whole = partner({
      partner_id,
      address: { line1: '1 "Quay" \\ é', line2: '2', city: '東京', region: 'R', postal_code: '1-2', country: 'JP' },
      invoicing_contact: {
        name: "O'Neill",
        email: 'ap@partner.example',
        cc: ['"b"@x.example', 'c@x.example'].slice(1),
      },
      tax_id: '=cmd|A1',
      legal_note: 'one\ntwo',
      active: false,
      arrangement: 'connected_account',
      connected_account_id: 'acct_1',
      merchant_of_record: 'third_party',
      split: 'sequential',
      policies: [policy(), policy({ policy_id: 'plain', price: undefined, active: false })],
    });
    await world.partners([whole]);
    const shown = await stored(partner_id);
    const text = JSON.stringify([shown], (_, value: unknown) => (value === null ? undefined : value));
    expect(parsePartners(text, 'shown.json')).toEqual(
      parsePartners(
        JSON.stringify([{ ...whole, policies: [...(whole['policies'] as object[])].reverse() }]),
        'whole.json',
      ),
    );
    expect(await world.partners(JSON.parse(text) as object[])).toEqual(UNCHANGED);
  });
});

test('two concurrent imports of the same new partners both succeed, and each partner is stored once', async () => {
  const file = Array.from({ length: 50 }, (_, index) => partner({ partner_id: `raced-${index}` }));
  const reports = await Promise.all([world.partners(file), world.partners([...file].reverse())]);
  expect(reports.map(({ created }) => created).sort()).toEqual([0, 50]);
  const [counted] = await world.sql<{ partners: string }>(
    `SELECT count(*) AS partners FROM partners WHERE partner_id LIKE 'raced-%'`,
  );
  expect(counted?.partners).toBe('50');
});

describe('the database refuses', () => {
  const changes: readonly [constraint: string, change: string][] = [
    ['partner_id_form', `UPDATE partners SET partner_id = '.x'`],
    ['partner_has_name', `UPDATE partners SET name = ''`],
    ['partner_currency_form', `UPDATE partners SET currency = 'usd'`],
    ['partner_terms_range', `UPDATE partners SET payment_terms_days = 366`],
    ['policy_kind_known', `UPDATE policies SET kind = 'warranty'`],
    ['policy_has_name', `UPDATE policies SET name = ''`],
    ['partner_cut_rate_range', `UPDATE policies SET partner_cut_rate = 1.01`],
    ['price_rate_range', `UPDATE policies SET price_rate = -1, price_minimum = 0`],
    ['price_minimum_range', `UPDATE policies SET price_rate = 1, price_minimum = -1`],
    ['policies_stay', 'DELETE FROM policies'],
    ['policies_stay', `UPDATE policies SET policy_id = 'renamed'`],
    ['policies_stay', 'TRUNCATE policies CASCADE'],
    ['price_complete', `UPDATE policies SET price_rate = 1, price_minimum = NULL`],
    ['arrangement_known', `UPDATE partner_arrangements SET arrangement = 'barter'`],
    [
      'real_time_needs_platform_merchant',
      `UPDATE partner_arrangements SET arrangement = 'connected_account', connected_account_id = 'a', split = 'real_time',
       merchant_of_record = 'third_party'`,
    ],
    [
      'connected_account_complete',
      `UPDATE partner_arrangements SET arrangement = 'connected_account', connected_account_id = NULL`,
    ],
    ['billing_month_form', `UPDATE partner_arrangements SET from_month = '2026-13'`],
  ];
  for (const [constraint, change] of changes) {
    test(`${constraint}: ${change.replace(/\s+/g, ' ')}`, async () => {
      await world.partners([partner({ policies: [policy()] })]);
      await expect(world.sql(change)).rejects.toMatchObject({ constraint });
    });
  }

  test('the deletion of a partner by the role of the program', async () => {
    for (const table of ['partners', 'policies', 'partner_arrangements']) {
      await expect(world.database.transaction((tx) => tx.knex.raw(`DELETE FROM ${table}`))).rejects.toMatchObject({
        code: '42501',
      });
    }
  });
});
