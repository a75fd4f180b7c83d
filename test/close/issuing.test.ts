/** What a document keeps from its issue: its date, its terms, the partner and the issuer as they were. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { readDocuments } from '../../src/documents/documents.sql.ts';
import type { Month } from '../../src/month.ts';
import { failing } from '../audit/failing.ts';
import { correctionsOf } from '../documents/correcting.ts';
import { openWorld, partner, quote, realSettings, type World } from '../support/world.ts';
import { refusalOf } from './refusal.ts';
import { startOver } from './start-over.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());
beforeEach(() => startOver(world));

const dates = async () =>
  (await world.documents()).map(({ partner_id, issued_on, due_on }) => [partner_id, issued_on, due_on]);

test('the partner’s terms count where it has some, else the issuer’s, in calendar days', async () => {
  await world.partners([
    partner({ partner_id: 'p-0', payment_terms_days: 0 }),
    partner({ partner_id: 'p-365', payment_terms_days: 365 }),
    partner({ partner_id: 'p-45', payment_terms_days: 45 }),
    partner({ partner_id: 'p-none', payment_terms_days: null }),
  ]);
  world.settings = { ...world.settings, payment_terms_days: 14 };
  await world.rows(['p-0', 'p-365', 'p-45', 'p-none'].map((partner_id) => quote({ partner_id })));
  await world.close();
  expect(await dates()).toEqual([
    ['p-0', '2026-08-01', '2026-08-01'],
    ['p-365', '2026-08-01', '2027-08-01'],
    ['p-45', '2026-08-01', '2026-09-15'],
    ['p-none', '2026-08-01', '2026-08-15'],
  ]);
});

test('terms may run to the end of a month, and then to a day of a month', async () => {
  const terms = { 'p-day': [10, null, 31], 'p-end': [45, true, null], 'p-next': [0, true, 15] } as const;
  await world.partners(
    Object.entries(terms).map(([partner_id, [days, end, day]]) =>
      partner({
        ...{ partner_id, payment_terms_days: days },
        ...{ payment_terms_end_of_month: end, payment_terms_day: day },
      }),
    ),
  );
  await world.rows(Object.keys(terms).map((partner_id) => quote({ partner_id })));
  await world.close();
  expect(await dates()).toEqual([
    ['p-day', '2026-08-01', '2026-08-31'],
    ['p-end', '2026-08-01', '2026-09-30'],
    ['p-next', '2026-08-01', '2026-09-15'],
  ]);
  expect(await world.sql(`SELECT due_date('2026-01-31', 0, NULL, 30)::text AS due`)).toEqual([{ due: '2026-02-28' }]);
  expect(failing(await world.verify('2026-07' as Month))).toEqual([]);
});

test('the order of a policy is printed with its name, and a rerun prints another one', async () => {
  const policies = (purchase_order: string) => [
    {
      policy_id: 'ticket-protection',
      name: 'Ticket Protection',
      kind: 'non_insurance',
      partner_cut_rate: '0.3',
      purchase_order,
    },
  ];
  await world.partners([partner({ policies: policies('4711') })]);
  await world.rows([quote()]);
  await world.close();
  const names = async () =>
    (await world.database.reading((tx) => readDocuments(tx, {}))).map(({ lines }) => lines[0]?.policy_name);
  expect(await names()).toEqual(['Ticket Protection, PO 4711']);
  expect((await correctionsOf(world).rerunMonth('2026-07', { changed: false })).unchanged).toBe(1);
  await world.partners([partner({ policies: policies('4712') })]);
  await correctionsOf(world).rerunMonth('2026-07');
  expect(await names()).toEqual(['Ticket Protection, PO 4711', 'Ticket Protection, PO 4712']);
  expect(failing(await world.verify('2026-07' as Month))).toEqual([]);
});

test('terms over a change of the clocks and a leap day are still whole days', async () => {
  await world.partners([partner()]);
  world.at('2028-02-01T05:30:00Z');
  await world.rows([quote({ accepted_at: '2028-01-10T12:00:00Z' })]);
  await world.close();
  expect(await dates()).toEqual([['p-1', '2028-02-01', '2028-03-02']]);
});

test('a document is dated today where the issuer is, not in UTC', async () => {
  await world.partners([partner()]);
  await world.rows([quote()]);
  world.at('2026-08-06T03:59:59Z');
  await world.close();
  expect(await dates()).toEqual([['p-1', '2026-08-05', '2026-09-04']]);
});

test('name, address, terms, tax fields, policy names and issuer stay as issued when they change later', async () => {
  await world.partners([
    partner({ tax_id: 'TAX-1', purchase_order: 'PO-1', legal_note: 'Reverse charge.\nSecond line.' }),
  ]);
  await world.rows([quote()]);
  await world.close();
  const asIssued = await world.database.reading((tx) => readDocuments(tx, {}));
  expect(asIssued).toMatchObject([
    {
      partner_name: 'Harbour Lights Ticketing',
      address_line1: '1 Quay',
      address_city: 'New York',
      address_region: 'NY',
      address_postal_code: '10004',
      address_country: 'US',
      terms_days: 30,
      tax_id: 'TAX-1',
      purchase_order: 'PO-1',
      legal_note: 'Reverse charge.\nSecond line.',
      sandbox: true,
      issuer: { legal_name: 'Sandbox Protection Services, Inc.' },
      lines: [{ policy_name: 'Ticket Protection' }],
    },
  ]);
  const policies = [{ policy_id: 'ticket-protection', name: 'New', kind: 'non_insurance', partner_cut_rate: '0.5' }];
  const address = { line1: '2 Elsewhere', city: 'Boston', country: 'US' };
  const details = {
    name: 'Other, Inc.',
    tax_id: 'TAX-2',
    purchase_order: 'PO-2',
    legal_note: '',
    payment_terms_days: 7,
  };
  await world.partners([partner({ ...details, address, policies })]);
  world.settings = { ...world.settings, issuer: { ...world.settings.issuer, legal_name: 'Renamed, Inc.' } };
  expect(await world.database.reading((tx) => readDocuments(tx, {}))).toEqual(asIssued);

  await world.rows([quote()]);
  world.at('2026-09-01T10:00:00Z');
  await world.close();
  const [july, august] = await world.database.reading((tx) => readDocuments(tx, {}));
  expect([july]).toEqual(asIssued);
  expect(august).toMatchObject({
    partner_name: 'Other, Inc.',
    address_line1: '2 Elsewhere',
    address_city: 'Boston',
    address_region: '',
    terms_days: 7,
    tax_id: 'TAX-2',
    legal_note: '',
    issuer: { legal_name: 'Renamed, Inc.' },
    lines: [{ policy_name: 'New', month: '2026-07' }],
  });
});

test('one wording of the issuer is kept once, however many documents carry it', async () => {
  await world.partners([partner()]);
  for (const month of ['06', '07']) {
    await world.rows([quote({ accepted_at: `2026-${month}-10T12:00:00Z` })]);
    await world.close(`2026-${month}`);
  }
  expect(await world.sql(`SELECT content->>'legal_name' AS name FROM issuer_versions`)).toHaveLength(1);
});

test('production closes nothing while the issuer’s own settings are incomplete', async () => {
  await world.partners([partner()]);
  await world.rows([quote()]);
  const sandbox = world.environment;
  world.environment = { ...sandbox, name: 'production' };
  const real = realSettings(world.settings);
  world.settings = { ...real, public_url: '', issuer: { ...real.issuer, legal_name: '' } };
  try {
    expect(await refusalOf(world.close())).toEqual({
      code: 'settings_incomplete',
      facts: { file: `${world.home}/settings.json`, missing: ['issuer.legal_name', 'public_url'] },
    });
    world.settings = { ...real, mail_from: 'billing@protection.example' };
    expect(await refusalOf(world.close())).toMatchObject({ facts: { missing: ['mail_from'] } });
    expect(await world.documents()).toEqual([]);
  } finally {
    world.environment = sandbox;
  }
  expect(await world.close()).toEqual(['2026-07']);
});
