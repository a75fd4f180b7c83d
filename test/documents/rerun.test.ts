/** Running a document again: only where its snapshot would differ is it voided and replaced, and every document of the chain names the next. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { refusalOf } from '../close/refusal.ts';
import { startOver } from '../close/start-over.ts';
import { openWorld, partner, quote, realSettings, type World } from '../support/world.ts';
import {
  type Corrections,
  correctionsOf,
  creditInUse,
  document,
  emailsOf,
  expectVerified,
  refund,
  sale,
  standing,
  story,
} from './correcting.ts';

let world: World;
let action: Corrections;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());
beforeEach(async () => {
  await startOver(world);
  action = correctionsOf(world);
  await world.partners([partner()]);
});

const INV_1 = 'INV-2026-000001';
const change = (settings: object) => {
  world.settings = { ...world.settings, ...settings };
};

async function closeJuly(): Promise<void> {
  await world.rows([quote(), quote({ policy_id: 'parking' }), quote({ accepted_at: '2026-06-10T12:00:00Z' })]);
  await world.close('2026-07', { firstMonth: '2026-07' });
  await world.deliver();
}

test('if nothing in the snapshot differs, nothing happens, on any day', async () => {
  await closeJuly();
  const [before] = await world.documents();
  world.at('2026-10-05T10:00:00Z');
  expect(await action.rerun(INV_1)).toEqual({ month: '2026-07', unchanged: 1, replaced: [], issued: [], refused: [] });
  expect(await action.rerun(INV_1, { newTerms: true })).toMatchObject({ unchanged: 1, replaced: [] });
  expect(await world.documents()).toEqual([before]);
  expect(await world.sql(`SELECT FROM audit_events WHERE action = 'invoice.rerun'`)).toEqual([]);
});

const policies = (partner()['policies'] as { policy_id: string }[]).map((policy) =>
  policy.policy_id === 'parking' ? { ...policy, name: 'Parking Protection' } : policy,
);
const address = partner()['address'] as Record<string, string>;

/** Each detail of the partner that an invoice shows, changed alone. */
const DETAILS: readonly [what: string, why: string, changed: Record<string, unknown>][] = [
  ['name', "the partner's name", { name: 'Harbour Lights Inc.' }],
  ...Object.entries({
    line1: '2 Quay',
    line2: 'Floor 3',
    city: 'Albany',
    region: 'NJ',
    postal_code: '1',
    country: 'CA',
  }).map(([field, value]): [string, string, Record<string, unknown>] => [
    `address ${field}`,
    "the partner's address",
    { address: { ...address, [field]: value } },
  ]),
  ['tax id', 'the tax id', { tax_id: 'US-1' }],
  ['purchase order', 'the purchase order', { purchase_order: 'PO 7' }],
  ['legal note', 'the legal note', { legal_note: 'Reverse charge.' }],
  ["policy's name", "the policies' names", { policies }],
];

for (const [what, why, changed] of DETAILS) {
  test(`a change of the partner’s ${what} alone gives a replacement`, async () => {
    await closeJuly();
    await world.partners([partner(changed)]);
    expect(await action.rerun(INV_1)).toEqual({
      month: '2026-07',
      unchanged: 0,
      replaced: [{ number: INV_1, replaced_by: 'INV-2026-000002', why: [why] }],
      issued: [],
      refused: [],
    });
    expect(await action.rerun('INV-2026-000002')).toMatchObject({ unchanged: 1 });
    await expectVerified(world);
  });
}

/** What an invoice does not show. */
const ASIDE: readonly [what: string, changed: Record<string, unknown>][] = [
  ['contact', { invoicing_contact: { name: 'Bo', email: 'bo@partner.example', cc: ['cy@partner.example'] } }],
  ['time zone', { time_zone: 'Europe/Berlin' }],
  ['terms, unless new terms are asked for', { payment_terms_days: 10 }],
  ['being active', { active: false }],
];

for (const [what, changed] of ASIDE) {
  test(`the partner’s ${what} changes nothing on the snapshot`, async () => {
    await closeJuly();
    await world.partners([partner(changed)]);
    expect(await action.rerun(INV_1)).toMatchObject({ unchanged: 1, replaced: [] });
  });
}

/** Each part of the settings that an invoice shows. */
const SETTINGS: readonly [what: string, why: string, changed: () => object][] = [
  ['the issuer’s telephone', "the issuer's details", () => ({ issuer: { ...world.settings.issuer, phone: '+1 2' } })],
  ['the issuer’s name', "the issuer's details", () => ({ issuer: { ...world.settings.issuer, legal_name: 'Other' } })],
  [
    'an account number',
    'the payment instructions',
    () => {
      const { instructions } = world.settings;
      const wire = { ...instructions['USD']?.wire, account_number: '1' };
      return { instructions: { ...instructions, USD: { ...instructions['USD'], wire } } };
    },
  ],
];

for (const [what, why, changed] of SETTINGS) {
  test(`a change of ${what} alone gives a replacement`, async () => {
    await closeJuly();
    change(changed());
    expect((await action.rerun(INV_1)).replaced.map((each) => each.why)).toEqual([[why]]);
    await expectVerified(world);
  });
}

test('instructions of another currency are not on this invoice', async () => {
  await closeJuly();
  const { instructions } = world.settings;
  const { '*': other } = instructions;
  change({ instructions: { ...instructions, '*': { wire: { ...other?.wire, bank_name: 'Another' } } } });
  expect(await action.rerun(INV_1)).toMatchObject({ unchanged: 1 });
});

test('all differences are named', async () => {
  await closeJuly();
  await world.partners([partner({ name: 'New', tax_id: 'US-2', policies })]);
  expect((await action.rerun(INV_1)).replaced[0]?.why).toEqual([
    "the policies' names",
    "the partner's name",
    'the tax id',
  ]);
});

test('a replacement has a new number, today’s date and the old due date; both name each other, and the history says so', async () => {
  await closeJuly();
  await world.partners([partner({ name: 'Harbour Lights Inc.', payment_terms_days: 10 })]);
  world.at('2026-10-05T10:00:00Z');
  await action.rerun(INV_1);
  const [voided, replacement] = await world.documents();
  expect(voided).toMatchObject({
    number: INV_1,
    status: 'void',
    balance: '0.00',
    replaced_by: 'INV-2026-000002',
    void_reason: 'Replaced: your name changed.',
  });
  expect(replacement).toMatchObject({
    number: 'INV-2026-000002',
    sequence: 2,
    status: 'open',
    issued_on: '2026-10-05',
    due_on: '2026-08-31',
    replaces: INV_1,
    replaced_by: null,
    lines: voided?.lines,
    balance: '21.00',
    pdf: null,
    email: { status: 'queued' },
  });
  expect((await story(world, INV_1)).slice(-2)).toEqual([
    ['voided', 'voided: Replaced: your name changed.'],
    ['replaced', 'replaced by INV-2026-000002'],
  ]);
  expect((await story(world, 'INV-2026-000002'))[0]).toEqual(['issued', `issued to replace ${INV_1}`]);
  await world.deliver();
  const after = await document(world, 'INV-2026-000002');
  expect(after.email?.message_id).not.toBe(voided?.email?.message_id);
  expect(after.payment_link).not.toBe(voided?.payment_link);
  expect(await emailsOf(world, 'INV-2026-000002')).toMatchObject([{ asked_for: 'rerun', status: 'sent' }]);
  await expectVerified(world);
});

test('with new terms it is due by today’s terms from today, even if only the terms changed', async () => {
  await closeJuly();
  await world.partners([partner({ payment_terms_days: 10 })]);
  world.at('2026-10-05T10:00:00Z');
  expect((await action.rerun(INV_1, { newTerms: true })).replaced[0]?.why).toEqual(['the payment terms']);
  expect(await document(world, 'INV-2026-000002')).toMatchObject({ issued_on: '2026-10-05', due_on: '2026-10-15' });
  await expectVerified(world);
});

test('a replacement of next year has a number of next year, and its old due date', async () => {
  await closeJuly();
  await world.partners([partner({ name: 'New' })]);
  world.at('2027-01-02T10:00:00Z');
  expect((await action.rerun(INV_1)).replaced).toMatchObject([{ replaced_by: 'INV-2027-000001' }]);
  expect(await document(world, 'INV-2027-000001')).toMatchObject({ due_on: '2026-08-31', month: '2026-07' });
  await expectVerified(world);
});

test('in a chain of three, each replaces the previous one, and only the last can be rerun', async () => {
  await closeJuly();
  for (const name of ['One', 'Two', 'Three']) {
    await world.partners([partner({ name })]);
    const last = (await world.documents()).at(-1)?.number ?? '';
    await action.rerun(last);
  }
  expect(
    (await world.documents()).map((each) => [each.number.slice(-1), each.status, each.replaces?.slice(-1)]),
  ).toEqual([
    ['1', 'void', undefined],
    ['2', 'void', '1'],
    ['3', 'void', '2'],
    ['4', 'open', '3'],
  ]);
  expect(await refusalOf(action.rerun('INV-2026-000002'))).toMatchObject({
    code: 'document_void',
    facts: { replaced_by: 'INV-2026-000004' },
  });
  await world.partners([partner()]);
  expect((await action.rerun('INV-2026-000004')).replaced).toMatchObject([{ why: ["the partner's name"] }]);
  expect((await document(world, 'INV-2026-000005')).due_on).toBe('2026-08-31');
  await expectVerified(world);
});

test('a void document is issued again by its number, and no other document of its month is touched', async () => {
  await world.partners([partner({ partner_id: 'p-2' }), partner({ partner_id: 'p-3' })]);
  await world.rows(['p-1', 'p-2', 'p-3'].map((partner_id) => quote({ partner_id })));
  await world.close();
  await action.voided(INV_1);
  await action.voided('INV-2026-000003');
  // The issuer's details have changed since: the other documents would differ.
  change({ issuer: { ...world.settings.issuer, phone: '+1 2' } });
  world.at('2026-10-14T10:00:00Z');
  expect(await action.rerun(INV_1)).toEqual({
    month: '2026-07',
    unchanged: 0,
    replaced: [],
    issued: [{ number: 'INV-2026-000004', replaces: INV_1 }],
    refused: [],
  });
  expect((await world.documents()).map((each) => [each.number, each.status, each.replaced_by])).toEqual([
    [INV_1, 'void', 'INV-2026-000004'],
    ['INV-2026-000002', 'open', null],
    ['INV-2026-000003', 'void', null],
    ['INV-2026-000004', 'open', null],
  ]);
  await expectVerified(world);
});

test('a void document whose replacement is void too gets the replacement of that', async () => {
  await closeJuly();
  await action.voided(INV_1);
  await action.rerun(INV_1);
  await action.voided('INV-2026-000002');
  expect((await action.rerun(INV_1)).issued).toEqual([{ number: 'INV-2026-000003', replaces: 'INV-2026-000002' }]);
  expect(await refusalOf(action.rerun(INV_1))).toMatchObject({ facts: { replaced_by: 'INV-2026-000003' } });
  await expectVerified(world);
});

test('a statement and a credit note of a month can be rerun, in their own series', async () => {
  const connected = { connected_account_id: 'acct_1', merchant_of_record: 'third_party', split: 'sequential' };
  const p2 = { partner_id: 'p-2', arrangement: 'connected_account', ...connected };
  await world.partners([partner(p2)]);
  const sold = sale('2026-06', '100');
  await world.rows([sold]);
  await world.close('2026-06');
  await world.rows([refund(sold, '2026-07'), quote({ partner_id: 'p-2' })]);
  await world.close('2026-07');
  await world.partners([partner({ name: 'One' }), partner({ ...p2, name: 'Two' })]);
  expect((await action.rerun('CN-2026-000001')).replaced).toMatchObject([{ replaced_by: 'CN-2026-000002' }]);
  expect((await action.rerun('ST-2026-000001')).replaced).toMatchObject([{ replaced_by: 'ST-2026-000002' }]);
  expect(await standing(world)).toMatchObject({
    'CN-2026-000001': '100.00 - 0.00 - 0.00 = 0.00 void',
    'CN-2026-000002': '100.00 - 0.00 - 0.00 = 100.00 open',
    'ST-2026-000001': '7.00 - 0.00 - 0.00 = 0.00 void',
    'ST-2026-000002': '7.00 - 0.00 - 0.00 = 0.00 paid',
  });
  await expectVerified(world);
});

test('an invoice of zero can be rerun', async () => {
  const sold = sale('2026-07', '9');
  await world.rows([sold, refund(sold, '2026-07')]);
  await world.close();
  await world.partners([partner({ name: 'New' })]);
  await action.rerun(INV_1);
  expect(await standing(world)).toEqual({
    [INV_1]: '0.00 - 0.00 - 0.00 = 0.00 void',
    'INV-2026-000002': '0.00 - 0.00 - 0.00 = 0.00 paid',
  });
  await expectVerified(world);
});

test('credit applied at issue and credit against it both move to the replacement', async () => {
  const sold = sale('2026-06', '30');
  await world.rows([sold]);
  await world.close('2026-06');
  await world.rows([refund(sold, '2026-07')]);
  await world.close('2026-07');
  world.at('2026-09-02T10:00:00Z');
  await world.rows([sale('2026-08', '100')]);
  await world.close();
  await action.credit('INV-2026-000002', '25');
  expect(await standing(world)).toMatchObject({ 'INV-2026-000002': '100.00 - 30.00 - 25.00 = 45.00 open' });
  await world.partners([partner({ name: 'New' })]);
  await action.rerun('INV-2026-000002');
  expect(await standing(world)).toMatchObject({ 'INV-2026-000003': '100.00 - 55.00 - 0.00 = 45.00 open' });
  expect(await creditInUse(world)).toEqual([
    '30 of CN-2026-000001 for INV-2026-000003',
    '25.00 of CN-2026-000002 for INV-2026-000003',
  ]);
  await expectVerified(world);
});

test('a differing document that is settled, on hold or not of a month is refused, and nothing changes', async () => {
  await closeJuly();
  const note = await action.credit(INV_1, '1');
  await action.hold(INV_1, 'disputed');
  expect(await action.rerun(INV_1)).toMatchObject({ unchanged: 1 });
  await world.partners([partner({ name: 'New' })]);
  const before = await standing(world);
  expect(await refusalOf(action.rerun(INV_1))).toMatchObject({
    code: 'document_on_hold',
    facts: { reason: 'disputed', number: INV_1 },
  });
  expect(await refusalOf(action.rerun(note))).toMatchObject({
    code: 'not_of_the_ledger',
    facts: { purpose: 'adjustment' },
  });
  expect(await refusalOf(action.rerun('INV-2026-000009'))).toMatchObject({ code: 'document_unknown' });
  await action.release(INV_1);
  await action.writeOff(INV_1);
  expect(await refusalOf(action.rerun(INV_1))).toMatchObject({
    code: 'document_written_off',
    facts: { action: 'run again' },
  });
  expect(Object.keys(await standing(world))).toEqual(Object.keys(before));
  await expectVerified(world);
});

test('a late row does not belong to the month, whatever is rerun', async () => {
  await closeJuly();
  await world.rows([quote()]);
  await world.partners([partner({ name: 'New' })]);
  await action.rerun(INV_1);
  expect(await document(world, 'INV-2026-000002')).toMatchObject({ enrollments: 3, invoiceAmount: '21.00' });
  await expectVerified(world);
});

test('policies compare equal whatever their order: upper case, signs, both kinds', async () => {
  const ids = ['b', 'A', 'a-b', 'a.b', 'aB', 'Z'];
  const named = ids.map((policy_id) => ({
    policy_id,
    name: `Policy ${policy_id}`,
    kind: 'insurance',
    partner_cut_rate: '0.1',
  }));
  await world.partners([partner({ policies: named })]);
  const sold = ids.map((policy_id) => sale('2026-07', '10', { policy_id }));
  await world.rows([...sold, ...sold.slice(0, 3).map((each) => refund(each, '2026-07'))]);
  await world.close();
  expect(await action.rerun(INV_1)).toMatchObject({ unchanged: 1 });
});

test('with incomplete settings production issues neither a replacement nor a credit note', async () => {
  await closeJuly();
  await world.partners([partner({ name: 'New' })]);
  const sandbox = world.environment;
  world.environment = { ...sandbox, name: 'production' };
  try {
    change({ ...realSettings(world.settings), issuer: { ...realSettings(world.settings).issuer, legal_name: '' } });
    for (const issuing of [
      () => action.rerun(INV_1),
      () => action.rerunMonth('2026-07'),
      () => action.credit(INV_1, '1'),
    ]) {
      expect(await refusalOf(issuing())).toMatchObject({
        code: 'settings_incomplete',
        facts: { missing: ['issuer.legal_name'] },
      });
    }
  } finally {
    world.environment = sandbox;
  }
});
