/** partners.json: one line for each rule, with the path that the refusal names; and the defaults. */
import { describe, expect, test } from 'vitest';
import { Refusal } from '../../src/errors/refusals.ts';
import { type PartnerRecord, parsePartners } from '../../src/partners/file.ts';
import { partner } from '../support/world.ts';

const policy = (overrides: Record<string, unknown> = {}) => ({
  policy_id: 'ticket-protection',
  name: 'Ticket Protection',
  kind: 'insurance',
  partner_cut_rate: '0.30',
  ...overrides,
});
const connected = (overrides: Record<string, unknown> = {}) => ({
  arrangement: 'connected_account',
  connected_account_id: 'acct_1',
  merchant_of_record: 'platform',
  split: 'real_time',
  ...overrides,
});

/** The problems of a file, as `path: reason`; empty if it is valid. */
function problems(text: string): string[] {
  try {
    parsePartners(text, 'partners.json');
    return [];
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'partners_invalid') throw error;
    expect(error.facts['file']).toBe('partners.json');
    return (error.facts['problems'] as { path: string; reason: string }[]).map(
      ({ path, reason }) => `${path}: ${reason}`,
    );
  }
}
const problemsOf = (...partners: readonly object[]) => problems(JSON.stringify(partners));
const read = (overrides: Record<string, unknown> = {}): PartnerRecord =>
  parsePartners(JSON.stringify([partner(overrides)]), 'partners.json')[0] as PartnerRecord;

const address = (overrides: Record<string, unknown>) => ({ address: overrides });
const contact = (overrides: Record<string, unknown>) => ({ invoicing_contact: overrides });
const policies = (...each: readonly object[]) => ({ policies: each });
const priced = (price: unknown) => policies(policy({ price }));

type Rule = readonly [sentence: string, overrides: Record<string, unknown>, path: string];

const day = (from: string) => ({ from, rate: '0.25' });

const REFUSED: readonly Rule[] = [
  [
    'an e-mail address that Peppol refuses',
    { e_invoice: 'ubl', electronic_address: 'EM:ap@x.example' },
    '0.electronic_address',
  ],
  ['an id is needed', { partner_id: undefined }, '0.partner_id'],
  ['an id of 129 characters', { partner_id: 'p'.repeat(129) }, '0.partner_id'],
  ['an id that starts with a dot', { partner_id: '.p' }, '0.partner_id'],
  ['an id with a space', { partner_id: 'p 1' }, '0.partner_id'],
  ['an empty id', { partner_id: '' }, '0.partner_id'],
  ['a name is needed', { name: undefined }, '0.name'],
  ['an empty name', { name: '' }, '0.name'],
  ['a name of 301 characters', { name: 'x'.repeat(301) }, '0.name'],
  ['a name over two lines', { name: 'Harbour\nLights' }, '0.name'],
  ['a name with a carriage return', { name: 'Harbour\r\nBcc: x@y.example' }, '0.name'],
  ['a name with a NUL', { name: 'Harbour\0' }, '0.name'],
  ['a name with an escape', { name: '\u001b[31mHarbour' }, '0.name'],
  ['a name with a C1 control', { name: 'Harbour\u0085' }, '0.name'],
  ['a name with an unpaired surrogate', { name: 'Harbour \ud83d' }, '0.name'],
  ['a name that is a list', { name: ['Harbour'] }, '0.name'],
  ['a name that is null', { name: null }, '0.name'],
  ['an address that is a text', { address: '1 Quay' }, '0.address'],
  ['an address line over two lines', address({ line1: '1 Quay\n2 Quay' }), '0.address.line1'],
  ['an address line with half a character', address({ line2: '\udc00' }), '0.address.line2'],
  ['an address line of 201 characters', address({ line1: 'x'.repeat(201) }), '0.address.line1'],
  ['a postal code of 21 characters', address({ postal_code: '1'.repeat(21) }), '0.address.postal_code'],
  ['a country in small letters', address({ country: 'us' }), '0.address.country'],
  ['a country of three letters', address({ country: 'USA' }), '0.address.country'],
  ['a country by its name', address({ country: 'United States' }), '0.address.country'],
  ['an address field that nobody knows', address({ street: '1 Quay' }), '0.address.street'],
  [
    'two e-mail addresses in one, by comma',
    contact({ email: 'a@x.example, b@y.example' }),
    '0.invoicing_contact.email',
  ],
  [
    'two e-mail addresses in one, by semicolon',
    contact({ email: 'a@x.example;b@y.example' }),
    '0.invoicing_contact.email',
  ],
  ['two e-mail addresses in one, by space', contact({ email: 'a@x.example b@y.example' }), '0.invoicing_contact.email'],
  ['an e-mail address with a name', contact({ email: 'Ann <a@x.example>' }), '0.invoicing_contact.email'],
  ['an e-mail address in angle brackets', contact({ email: '<a@x.example>' }), '0.invoicing_contact.email'],
  [
    'an e-mail address with a header behind it',
    contact({ email: 'a@x.example\r\nBcc: b@y.example' }),
    '0.invoicing_contact.email',
  ],
  ['an e-mail address with a line break', contact({ email: 'a@x.example\n' }), '0.invoicing_contact.email'],
  ['an e-mail address without a domain', contact({ email: 'ann' }), '0.invoicing_contact.email'],
  ['an e-mail address with spaces around', contact({ email: ' a@x.example ' }), '0.invoicing_contact.email'],
  [
    'an e-mail address of 255 characters',
    contact({ email: `${'a'.repeat(243)}@x.example.` }),
    '0.invoicing_contact.email',
  ],
  ['a list in a copy address', contact({ cc: ['a@x.example,b@y.example'] }), '0.invoicing_contact.cc.0'],
  ['an empty copy address', contact({ cc: ['a@x.example', ''] }), '0.invoicing_contact.cc.1'],
  ['a copy address that is no list', contact({ cc: 'a@x.example' }), '0.invoicing_contact.cc'],
  [
    'twenty-one copy addresses',
    contact({ cc: Array.from({ length: 21 }, () => 'a@x.example') }),
    '0.invoicing_contact.cc',
  ],
  ['a contact name over two lines', contact({ name: 'Accounts\nPayable' }), '0.invoicing_contact.name'],
  ['a contact field that nobody knows', contact({ phone: '1' }), '0.invoicing_contact.phone'],
  ['a currency is needed', { currency: undefined }, '0.currency'],
  ['a currency that nobody has', { currency: 'XYZ' }, '0.currency'],
  ['a currency in small letters', { currency: 'usd' }, '0.currency'],
  ['a time zone is needed', { time_zone: undefined }, '0.time_zone'],
  ['a time zone that nobody has', { time_zone: 'Mars/Olympus' }, '0.time_zone'],
  ['an offset for a time zone', { time_zone: '+02:00' }, '0.time_zone'],
  ['an offset that is named', { time_zone: 'UTC+2' }, '0.time_zone'],
  ['terms of 366 days', { payment_terms_days: 366 }, '0.payment_terms_days'],
  ['a pay day of 32', { payment_terms_day: 32 }, '0.payment_terms_day'],
  ['terms below zero', { payment_terms_days: -1 }, '0.payment_terms_days'],
  ['terms of half a day', { payment_terms_days: 30.5 }, '0.payment_terms_days'],
  ['terms in words', { payment_terms_days: 'net 30' }, '0.payment_terms_days'],
  ['active in words', { active: 'yes' }, '0.active'],
  ['active as a number', { active: 1 }, '0.active'],
  ['a tax id over two lines', { tax_id: '12\n34' }, '0.tax_id'],
  ['a VAT id with a wrong check digit', { tax_id: 'DE123456789', address: { country: 'DE' } }, '0.tax_id'],
  ['an electronic address with a wrong check digit', { electronic_address: '0208:0843766575' }, '0.electronic_address'],
  ['a Belgian VAT id with a wrong check digit', { tax_id: 'BE1001686634', address: { country: 'BE' } }, '0.tax_id'],
  ['a Belgian VAT id that begins with 2', { tax_id: 'BE2001686633', address: { country: 'BE' } }, '0.tax_id'],
  ['a purchase order of 501 characters', { purchase_order: 'x'.repeat(501) }, '0.purchase_order'],
  ['a legal note with a tab', { legal_note: 'a\tb' }, '0.legal_note'],
  ['a legal note with a carriage return', { legal_note: 'a\r\nb' }, '0.legal_note'],
  ['a legal note of 2,001 characters', { legal_note: 'x'.repeat(2_001) }, '0.legal_note'],
  ['a legal note with half a character', { legal_note: 'a\ud800b' }, '0.legal_note'],
  ['an arrangement that nobody knows', { arrangement: 'barter' }, '0.arrangement'],
  ['a month of arrangement that is no month', { arrangement_from: '2026-13' }, '0.arrangement_from'],
  ['a day for the month of arrangement', { arrangement_from: '2026-11-01' }, '0.arrangement_from'],
  ['a connected account without its id', connected({ connected_account_id: undefined }), '0.connected_account_id'],
  ['a connected account without its merchant', connected({ merchant_of_record: undefined }), '0.merchant_of_record'],
  ['a connected account without its split', connected({ split: undefined }), '0.split'],
  ['a connected account of another merchant', connected({ merchant_of_record: 'operator' }), '0.merchant_of_record'],
  ['a connected account of another split', connected({ split: 'parallel' }), '0.split'],
  ['a real-time split with a third party as merchant', connected({ merchant_of_record: 'third_party' }), '0.split'],
  ['an account id of an invoicing partner', { connected_account_id: 'acct_1' }, '0.connected_account_id'],
  ['a merchant of an invoicing partner', { merchant_of_record: 'platform' }, '0.merchant_of_record'],
  ['a split of an invoicing partner', { split: 'sequential' }, '0.split'],
  ['policies that are no list', { policies: policy() }, '0.policies'],
  ['a policy twice', policies(policy(), policy({ name: 'Another' })), '0.policies'],
  ['a policy without an id', policies(policy({ policy_id: undefined })), '0.policies.0.policy_id'],
  ['a policy without a name', policies(policy({ name: '' })), '0.policies.0.name'],
  ['a policy of another kind', policies(policy(), policy({ policy_id: 'b', kind: 'warranty' })), '0.policies.1.kind'],
  ['a policy without a rate', policies(policy({ partner_cut_rate: undefined })), '0.policies.0.partner_cut_rate'],
  ['a rate above 1', policies(policy({ partner_cut_rate: '1.01' })), '0.policies.0.partner_cut_rate'],
  ['a rate below 0', policies(policy({ partner_cut_rate: '-0.1' })), '0.policies.0.partner_cut_rate'],
  ['a rate in per cent', policies(policy({ partner_cut_rate: '30%' })), '0.policies.0.partner_cut_rate'],
  ['a rate with an exponent', policies(policy({ partner_cut_rate: '3e-1' })), '0.policies.0.partner_cut_rate'],
  ['a rate without its zero', policies(policy({ partner_cut_rate: '.3' })), '0.policies.0.partner_cut_rate'],
  ...(
    [
      ['no rates at all', [], ''],
      ['a rate without a day after the first', [{ rate: '0.3' }, { rate: '0.2' }], '.1.from'],
      ['a day twice', [day('2026-08-10'), day('2026-08-10')], '.1.from'],
      ['days out of order', [{ rate: '0.3' }, day('2026-08-10'), day('2026-08-09')], '.2.from'],
      ['a day that does not exist', [day('2026-02-30')], '.0.from'],
      ['an instant instead of a day', [day('2026-08-10T00:00:00Z')], '.0.from'],
      ['a dated rate above 1', [{ from: '2026-08-10', rate: '1.01' }], '.0.rate'],
      ['a day without a rate', [{ from: '2026-08-10' }], '.0.rate'],
      ['a dated rate with an unknown field', [{ ...day('2026-08-10'), until: '2026-09-01' }], '.0.until'],
      ['a rate that is neither', true, ''],
    ] as const
  ).map(
    ([what, rates, place]): Rule => [
      what,
      policies(policy({ partner_cut_rate: rates })),
      `0.policies.0.partner_cut_rate${place}`,
    ],
  ),
  ['a rate with a comma', policies(policy({ partner_cut_rate: '0,3' })), '0.policies.0.partner_cut_rate'],
  ['a price without its minimum', priced({ rate: '0.085' }), '0.policies.0.price.minimum'],
  ['a price without its rate', priced({ minimum: '2.00' }), '0.policies.0.price.rate'],
  ['a price below zero', priced({ rate: '-0.1', minimum: '2.00' }), '0.policies.0.price.rate'],
  ['a minimum below zero', priced({ rate: '0.1', minimum: '-2' }), '0.policies.0.price.minimum'],
  ['a minimum of a tenth of a cent', priced({ rate: '0.1', minimum: '2.001' }), '0.policies.0.price.minimum'],
  [
    'a price field that nobody knows',
    priced({ rate: '0.1', minimum: '2', maximum: '9' }),
    '0.policies.0.price.maximum',
  ],
  ['a policy field that nobody knows', policies(policy({ rate: '0.1' })), '0.policies.0.rate'],
  ['a partner field that nobody knows', { partner_cut_rate: '0.3' }, '0.partner_cut_rate'],
];

describe('partners.json is refused for', () => {
  for (const [sentence, overrides, path] of REFUSED) {
    test(`${sentence}, at ${path}`, () => {
      const told = problemsOf(partner(overrides));
      expect(told).toHaveLength(1);
      expect(told[0]).toMatch(/: \S/);
      expect(told[0]?.split(': ')[0]).toBe(path);
    });
  }

  const files: readonly [sentence: string, text: string, reason: RegExp][] = [
    ['being empty', '', /is not JSON/],
    ['being cut off', JSON.stringify([partner()]).slice(0, -3), /is not JSON/],
    ['being one partner without a list', JSON.stringify(partner()), /must be an array of partners/],
    ['being null', 'null', /must be an array of partners/],
    ['being a list of words', '["p-1"]', /^0: /],
    ['a partner twice', JSON.stringify([partner(), partner({ name: 'Another' })]), /partner p-1 appears twice/],
    [
      'a field that is named twice',
      JSON.stringify([partner()]).replace('"currency"', '"currency":"EUR","currency"'),
      /currency: appears twice in one object/,
    ],
    ['a hundred thousand nested lists', `${'['.repeat(100_000)}${']'.repeat(100_000)}`, /^0: /],
    [
      'a hundred thousand nested objects',
      JSON.stringify([partner({ tax_id: '@' })]).replace('"@"', `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`),
      /0\.tax_id: /,
    ],
    [
      'a field named __proto__',
      JSON.stringify([partner()]).replace('{', '{"__proto__":{"active":false},'),
      /__proto__/,
    ],
    [
      'two million characters where a word belongs',
      JSON.stringify([partner({ legal_note: 'x"1'.repeat(700_000) })]),
      /legal_note/,
    ],
  ];
  for (const [sentence, text, reason] of files) {
    test(sentence, () => {
      expect(problems(text)).toEqual([expect.stringMatching(reason)]);
    });
  }

  test('all its mistakes at once, each with its path', () => {
    const told = problemsOf(
      partner({ currency: 'XYZ', name: '' }),
      partner({ partner_id: 'p-2', time_zone: 'Mars/Olympus' }),
    );
    expect(told.map((each) => each.split(': ')[0]).sort()).toEqual(['0.currency', '0.name', '1.time_zone']);
  });
});

describe('partners.json is read', () => {
  test('with a byte order mark, and as an empty list', () => {
    expect(problems(`\uFEFF${JSON.stringify([partner()])}`)).toEqual([]);
    expect(problems('[]')).toEqual([]);
  });

  test('with every optional field left out', () => {
    const [bare] = parsePartners('[{"partner_id":"p","name":"P","currency":"USD","time_zone":"UTC"}]', 'partners.json');
    expect(bare).toEqual({
      partner_id: 'p',
      name: 'P',
      address: { line1: '', line2: '', city: '', region: '', postal_code: '', country: '' },
      invoicing_contact: { name: '', email: '', cc: [] },
      reminder_email: '',
      statement_email: '',
      dispute_email: '',
      currency: 'USD',
      time_zone: 'UTC',
      payment_terms_days: null,
      payment_terms_end_of_month: null,
      payment_terms_day: null,
      active: true,
      parent: null,
      tax_id: '',
      purchase_order: '',
      legal_note: '',
      account_statement: 'none',
      e_invoice: 'none',
      buyer_reference: '',
      electronic_address: '',
      feed: null,
      arrangement: 'invoicing',
      policies: [],
    });
  });

  test('with decimals exactly as written, numbers or strings', () => {
    const text = JSON.stringify([partner(policies(policy({ price: { rate: '@', minimum: '2.00' } })))]);
    for (const rate of ['0.085', '0.100000000001', '0.3', '123456789012345.123456789012']) {
      for (const written of [rate, `"${rate}"`]) {
        const [parsed] = parsePartners(text.replace('"@"', written), 'partners.json');
        expect(parsed?.policies[0]?.price).toEqual({ rate, minimum: '2.00' });
      }
    }
  });

  test('with a rate of 0 and of 1, to twelve decimals', () => {
    const dated = [{ rate: '0.30' }, day('2026-08-10'), day('2026-09-01')];
    expect(read(policies(policy({ partner_cut_rate: dated }))).policies[0]?.partner_cut_rate).toEqual(dated);
    for (const partner_cut_rate of ['0', '1', '0.0', '1.000', '0.123456789012']) {
      expect(read(policies(policy({ partner_cut_rate }))).policies[0]?.partner_cut_rate).toBe(partner_cut_rate);
    }
  });

  test("with a minimum in the digits of the partner's currency", () => {
    expect(problemsOf(partner({ currency: 'KWD', ...priced({ rate: '0.1', minimum: '2.001' }) }))).toEqual([]);
    expect(problemsOf(partner({ currency: 'JPY', ...priced({ rate: '0.1', minimum: '2.00' }) }))).toEqual([]);
    expect(problemsOf(partner({ currency: 'JPY', ...priced({ rate: '0.1', minimum: '2.5' }) }))).toHaveLength(1);
  });

  test('with a legal note of several lines and names in any script', () => {
    expect(read({ legal_note: 'one\ntwo', name: 'Кассы 東京 😀' })).toMatchObject({
      legal_note: 'one\ntwo',
      name: 'Кассы 東京 😀',
    });
  });

  test("with terms from 0 days to a year, or the issuer's terms", () => {
    for (const days of [0, 30, 365, null]) expect(read({ payment_terms_days: days }).payment_terms_days).toBe(days);
  });

  test('with a connected account in each combination that service.md allows', () => {
    for (const [merchant_of_record, split] of [
      ['platform', 'real_time'],
      ['platform', 'sequential'],
      ['third_party', 'sequential'],
    ]) {
      expect(problemsOf(partner(connected({ merchant_of_record, split })))).toEqual([]);
    }
  });
});
