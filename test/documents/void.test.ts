/** A void is a fact of the day it is made: the document keeps its number and snapshot, and the credit that it used is released. */
import { beforeEach, expect, test } from 'vitest';
import { readCoverage } from '../../src/reports/coverage.ts';
import { readStatus } from '../../src/reports/status.ts';
import { refusalOf } from '../close/refusal.ts';
import type { MailServer } from '../support/mail-server.ts';
import { freshMailWorld } from '../support/mail-world.ts';
import { partner, quote, type World } from '../support/world.ts';
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
let server: MailServer;
let action: Corrections;
freshMailWorld((opened) => {
  ({ world, server } = opened);
});
beforeEach(async () => {
  action = correctionsOf(world);
  await world.partners([partner(), partner({ partner_id: 'p-2' })]);
});

const coverage = () => world.database.reading((tx) => readCoverage(tx, { asOf: undefined }));
const status = () => world.database.reading((tx) => readStatus(tx, world));

/** May's invoice of 100, taken back in June by a credit note of 100, of which July's invoice of 40 uses 40. */
async function withCredit(): Promise<void> {
  const sold = sale('2026-05', '100');
  await world.rows([sold]);
  await world.close('2026-05');
  await world.rows([refund(sold, '2026-06'), sale('2026-07', '40')]);
  await world.close();
}

test('a voided invoice keeps its number and snapshot, gives the reason, and nothing is due', async () => {
  await world.rows([quote()]);
  await world.close();
  await world.deliver();
  const before = await document(world, 'INV-2026-000001');
  world.at('2026-08-03T10:00:00Z');
  await action.voided('INV-2026-000001', 'wrong partner');
  expect(await document(world, 'INV-2026-000001')).toEqual({
    ...before,
    status: 'void',
    balance: '0.00',
    void_reason: 'wrong partner',
  });
  expect(await world.sql('SELECT voided_on::text, reason FROM voids')).toEqual([
    { voided_on: '2026-08-03', reason: 'wrong partner' },
  ]);
  expect((await story(world, 'INV-2026-000001')).at(-1)).toEqual(['voided', 'voided: wrong partner']);
  await expectVerified(world);
});

test('a void is dated in the issuer’s time zone: late in the evening in New York it is still that day', async () => {
  await world.rows([quote()]);
  await world.close();
  world.at('2026-08-03T03:30:00Z');
  await action.voided('INV-2026-000001');
  expect(await world.sql('SELECT voided_on::text FROM voids')).toEqual([{ voided_on: '2026-08-02' }]);
});

test('until it is replaced, coverage shows a gap and status asks for manual review', async () => {
  await world.rows([quote(), quote({ partner_id: 'p-2' })]);
  await world.close();
  await world.deliver();
  await action.voided('INV-2026-000001');
  expect(await coverage()).toMatchObject({
    gaps: 1,
    partners: [
      { partner_id: 'p-1', cells: [{ state: 'gap', documents: [], entries: 1 }] },
      { partner_id: 'p-2', cells: [{ state: 'document', documents: ['INV-2026-000002'] }] },
    ],
  });
  expect(await status()).toMatchObject({
    findings: [
      {
        ...{ item: 'gap:INV-2026-000001', partners: [{ id: 'p-1' }] },
        remedies: [{ action: 'invoice.rerun', input: { number: 'INV-2026-000001' } }],
      },
    ],
  });
  await action.rerunMonth('2026-07');
  await world.deliver();
  expect(await coverage()).toMatchObject({ gaps: 0 });
  expect(await status()).toMatchObject({ findings: [] });
  await expectVerified(world);
});

test('the credit that it used is open again, and its replacement uses it first', async () => {
  await withCredit();
  expect(await creditInUse(world)).toEqual(['40 of CN-2026-000001 for INV-2026-000002']);
  await action.voided('INV-2026-000002');
  expect(await creditInUse(world)).toEqual([]);
  expect(await standing(world)).toMatchObject({
    'CN-2026-000001': '100.00 - 0.00 - 0.00 = 100.00 open',
    'INV-2026-000002': '40.00 - 40.00 - 0.00 = 0.00 void',
  });
  await expectVerified(world);
  await action.rerunMonth('2026-07');
  expect(await creditInUse(world)).toEqual(['40 of CN-2026-000001 for INV-2026-000003']);
  expect(await story(world, 'CN-2026-000001')).toEqual(
    expect.arrayContaining([
      ['credit_given', '40.00 USD applied to INV-2026-000002'],
      ['credit_reopened', '40.00 USD released by the void of INV-2026-000002'],
      ['credit_given', '40.00 USD applied to INV-2026-000003'],
    ]),
  );
  await expectVerified(world);
});

test('a replacement uses the credit of its void invoice before older open credit', async () => {
  const [first, second] = [sale('2026-04', '30'), sale('2026-04', '100')];
  await world.rows([first, second]);
  await world.close('2026-04');
  await world.rows([refund(first, '2026-05'), sale('2026-06', '30'), refund(second, '2026-07')]);
  await world.close(); // CN-1 of May is used by June's invoice; CN-2 of July is open
  world.at('2026-09-01T10:00:00Z');
  await world.rows([sale('2026-08', '50')]);
  await world.close(); // August uses 50 of CN-2
  expect(await creditInUse(world)).toEqual([
    '30 of CN-2026-000001 for INV-2026-000002',
    '50 of CN-2026-000002 for INV-2026-000003',
  ]);
  await action.voided('INV-2026-000002'); // the older CN-1 is open again
  await action.voided('INV-2026-000003');
  await action.rerunMonth('2026-08');
  expect(await creditInUse(world)).toEqual(['50 of CN-2026-000002 for INV-2026-000004']);
  await action.rerunMonth('2026-06');
  expect((await creditInUse(world)).at(-1)).toBe('30 of CN-2026-000001 for INV-2026-000005');
  await expectVerified(world);
});

test('credit against a voided invoice becomes open credit of the partner', async () => {
  await world.rows([sale('2026-07', '50')]);
  await world.close();
  await action.credit('INV-2026-000001', '20');
  await action.voided('INV-2026-000001');
  expect(await standing(world)).toEqual({
    'CN-2026-000001': '20.00 - 0.00 - 0.00 = 20.00 open',
    'INV-2026-000001': '50.00 - 0.00 - 0.00 = 0.00 void',
  });
  await action.rerunMonth('2026-07');
  expect(await standing(world)).toMatchObject({
    'CN-2026-000001': '20.00 - 0.00 - 20.00 = 0.00 paid',
    'INV-2026-000002': '50.00 - 20.00 - 0.00 = 30.00 open',
  });
  await expectVerified(world);
});

test('an unsent e-mail is withdrawn and never sent', async () => {
  await world.rows([quote()]);
  await world.close();
  await action.voided('INV-2026-000001');
  expect(await world.deliver()).toEqual([]);
  expect(server.mails).toEqual([]);
  expect(await emailsOf(world, 'INV-2026-000001')).toMatchObject([{ status: 'withdrawn' }]);
  expect(await document(world, 'INV-2026-000001')).toMatchObject({ email: null });
  await expectVerified(world);
});

test('a held e-mail is withdrawn as well', async () => {
  await world.partners([partner({ invoicing_contact: { name: '', email: '', cc: [] } })]);
  await world.rows([quote()]);
  await world.close();
  await world.deliver();
  expect(await emailsOf(world, 'INV-2026-000001')).toMatchObject([{ status: 'held' }]);
  await action.voided('INV-2026-000001');
  expect(await emailsOf(world, 'INV-2026-000001')).toMatchObject([{ status: 'withdrawn' }]);
  await expectVerified(world);
});

test('an e-mail that may have arrived is not withdrawn but uncertain', async () => {
  await world.rows([quote()]);
  await world.close();
  server.behaviour = 'drop_after_data';
  await world.deliver();
  expect(await emailsOf(world, 'INV-2026-000001')).toMatchObject([{ status: 'queued' }]);
  await action.voided('INV-2026-000001');
  expect(await emailsOf(world, 'INV-2026-000001')).toMatchObject([
    { status: 'uncertain', reason: expect.stringContaining('may have arrived') },
  ]);
  server.behaviour = 'accept';
  await world.deliver();
  expect(server.mails.length).toBe(1);
  await expectVerified(world);
});

test('an unused credit note can be voided, and no later invoice uses it', async () => {
  await withCredit();
  await action.voided('INV-2026-000002');
  await action.voided('CN-2026-000001');
  await action.rerunMonth('2026-07');
  expect(await standing(world)).toMatchObject({
    'CN-2026-000001': '100.00 - 0.00 - 0.00 = 0.00 void',
    'INV-2026-000003': '40.00 - 0.00 - 0.00 = 40.00 open',
  });
  await expectVerified(world);
});

test('a rerun does not replace a void adjustment, and does not claim to', async () => {
  await world.rows([sale('2026-07', '50')]);
  await world.close();
  await action.credit('INV-2026-000001', '20');
  await action.voided('INV-2026-000001');
  await action.voided('CN-2026-000001');
  expect(await refusalOf(action.voided('CN-2026-000001'))).toMatchObject({
    code: 'document_void',
    facts: { purpose: 'adjustment' },
  });
  await action.rerunMonth('2026-07');
  expect(await standing(world)).toMatchObject({ 'INV-2026-000002': '50.00 - 0.00 - 0.00 = 50.00 open' });
  await expectVerified(world);
});

test('a document that is paid, used as credit, written off or void is refused, and nothing changes', async () => {
  await withCredit();
  await action.writeOff('INV-2026-000001');
  const before = [await standing(world), await world.sql('SELECT count(*) FROM audit_events')];
  expect(await refusalOf(action.voided('CN-2026-000001'))).toMatchObject({
    code: 'credit_used',
    facts: { used: '40.00 USD', action: 'voided' },
  });
  expect(await refusalOf(action.voided('INV-2026-000001'))).toMatchObject({
    code: 'document_written_off',
    facts: { written_off: '100.00 USD' },
  });
  expect(await refusalOf(action.voided('INV-2027-000001'))).toMatchObject({ code: 'document_unknown' });
  expect([await standing(world), await world.sql('SELECT count(*) FROM audit_events')]).toEqual(before);
  await action.voided('INV-2026-000002');
  expect(await refusalOf(action.voided('INV-2026-000002'))).toMatchObject({
    code: 'document_void',
    facts: { month: '2026-07', replaced_by: null, purpose: 'month' },
  });
  await expectVerified(world);
});

test('a clock that went back is refused: nothing is dated before an earlier document or void', async () => {
  await world.rows([quote(), quote({ partner_id: 'p-2' })]);
  await world.close();
  world.at('2026-07-30T10:00:00Z');
  expect(await refusalOf(action.voided('INV-2026-000001'))).toMatchObject({
    code: 'clock_behind',
    facts: { today: '2026-07-30', latest: '2026-08-01' },
  });
  world.at('2026-08-20T10:00:00Z');
  await action.voided('INV-2026-000001');
  world.at('2026-08-10T10:00:00Z');
  for (const late of [
    () => action.rerunMonth('2026-07'),
    () => action.voided('INV-2026-000002'),
    () => action.credit('INV-2026-000002', '1'),
    () => action.writeOff('INV-2026-000002'),
  ]) {
    expect(await refusalOf(late())).toMatchObject({
      code: 'clock_behind',
      facts: { today: '2026-08-10', latest: '2026-08-20', number: 'INV-2026-000001' },
    });
  }
  world.at('2026-08-20T11:00:00Z');
  await action.rerunMonth('2026-07');
  await expectVerified(world);
});
