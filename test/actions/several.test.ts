/** Actions on several things: one approval for their sum, what is refused is named, and the checks follow each of them. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { approveRequest } from '../../src/actions/approve.ts';
import { bankBook } from '../../src/actions/bank.ts';
import { disputeClose, disputeOpen } from '../../src/actions/dispute.ts';
import { invoiceCredit } from '../../src/actions/invoice/credit.ts';
import { invoiceHold, invoiceRelease } from '../../src/actions/invoice/hold.ts';
import { invoiceRerun } from '../../src/actions/invoice/rerun.ts';
import { invoiceWriteOff } from '../../src/actions/invoice/write-off.ts';
import { previewAction, runAction } from '../../src/actions/run.ts';
import { workAssign } from '../../src/actions/work/assign.ts';
import type { Settings } from '../../src/config/settings.ts';
import { recordSettingsChanges } from '../../src/people/settings-changes.ts';
import { foundBy } from '../audit/failing.ts';
import { refusalOf } from '../close/refusal.ts';
import { as, LEE, MARA, openApproving } from '../support/approving.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { type KeptWorld, openWorld, partner, quote, type World } from '../support/world.ts';

/** p-1 owes 7.00 of July and 7.00 of August, p-2 owes 14.00 of July. */
const [FIRST, SECOND, THIRD] = ['INV-2026-000001', 'INV-2026-000002', 'INV-2026-000003'] as const;
const ALL = [FIRST, SECOND, THIRD];
const QUIET = { deliver: false } as const;

let kept: KeptWorld;
let world: World;
beforeAll(async () => {
  const first = await openApproving();
  first.settings = { ...first.settings, approvals: {} };
  first.at('2026-09-01T10:00:00Z');
  await first.rows([quote({ accepted_at: '2026-08-10T12:00:00Z' })]);
  await first.close();
  kept = await first.keep();
});
afterAll(() => kept.discard());
beforeEach(async () => {
  world = await openWorld({ from: kept });
  world.at('2026-09-01T12:00:00Z');
});
afterEach(async () => {
  const { checks } = await world.verify();
  const wrong = checks.filter(({ differences }) => differences.length > 0);
  await world.end();
  expect(wrong).toEqual([]);
});

const mara = (rules: Settings['approvals'] = {}) => as(world, MARA, rules);
const rename = () =>
  world.partners([partner({ name: 'New Lights' }), partner({ partner_id: 'p-2', name: 'New Tickets' })]);
/** Puts approval rules in force for more than an hour. */
async function rule(approvals: Settings['approvals']) {
  world.settings = { ...world.settings, approvals };
  await recordSettingsChanges(world.database, world);
  world.at('2026-09-01T16:00:00Z');
}
const approve = async (requestId: unknown, rules: Settings['approvals']) =>
  approveRequest(await as(world, LEE, rules), requestId as number, { ...QUIET, reason: null });
const balances = async () =>
  Object.fromEntries((await world.documents()).map(({ number, balance, status }) => [number, `${balance} ${status}`]));

test('documents of several months are run again together, each month by an event of its own', async () => {
  await rename();
  const shown = await previewAction(await mara(), invoiceRerun, { number: ALL });
  expect(shown.amounts.map(String)).toEqual(['28.00']);
  const report = await runAction(await mara(), invoiceRerun, { number: ALL }, QUIET);
  expect(report.json).toMatchObject({
    month: null,
    replaced: [{ number: FIRST }, { number: SECOND }, { number: THIRD }],
    refused: [],
  });
  const events = await world.sql(`SELECT subject FROM audit_events WHERE action = 'invoice.rerun' ORDER BY event_id`);
  expect(events).toEqual([{ subject: `${FIRST} ${SECOND}` }, { subject: THIRD }]);
});

test('documents that may not be run again are left out and named, and the others are replaced', async () => {
  await rename();
  await runAction(await mara(), invoiceHold, { number: SECOND }, QUIET);
  const { json } = await runAction(await mara(), invoiceRerun, { number: [...ALL, 'INV-2026-000099'] }, QUIET);
  expect(json).toMatchObject({
    replaced: [{ number: FIRST }, { number: THIRD }],
    refused: [
      { number: 'INV-2026-000099', code: 'document_unknown' },
      { number: SECOND, code: 'document_on_hold' },
    ],
  });
  const none = await refusalOf(runAction(await mara(), invoiceRerun, { number: [FIRST, THIRD] }, QUIET));
  expect(none.code).toBe('document_void');
});

test('one approval covers a rerun of several documents, and their sum is compared', async () => {
  const rules = { 'invoice.void': { above: { USD: '20.00' } } };
  await rename();
  const asked = await refusalOf(runAction(await mara(rules), invoiceRerun, { number: ALL }, QUIET));
  expect([asked.code, asked.facts['subject']]).toEqual(['approval_needed', ALL.join(' ')]);
  await approve(asked.facts['request_id'], rules);
  expect((await balances())[THIRD]).toMatch(/void$/);
});

test('an event under an approval of several documents names one of them', async () => {
  const rules = { 'invoice.write_off': { always: true } } as const;
  const { facts } = await refusalOf(
    runAction(await mara(rules), invoiceWriteOff, { number: [FIRST, SECOND], reason: 'small' }, QUIET),
  );
  await approve(facts['request_id'], rules);
  const rename_ = (from: string, to: string) =>
    world.sql(`UPDATE audit_events SET subject = $2 WHERE action = 'invoice.write_off' AND subject = $1`, [from, to]);
  await world.sql(GUARDS_OFF);
  await rename_(SECOND, THIRD);
  expect(foundBy(await world.verify(), 'act_approved')).toHaveLength(1);
  await rename_(THIRD, SECOND);
  await world.sql(GUARDS_ON);
});

test('adjustments of several invoices within the limit count once, at the first event, and the next ones after them', async () => {
  const rules: Settings['approvals'] = {
    ...{ adjustments: { above: { USD: '15.00' } }, 'invoice.write_off': { above: { USD: '30.00' } } },
  };
  await rule(rules);
  const credit = { number: [FIRST, THIRD], amount: '2.00', reason: 'goodwill' };
  await runAction(await mara(rules), invoiceCredit, credit, QUIET);
  await runAction(await mara(rules), invoiceWriteOff, { number: ALL, reason: 'insolvent' }, QUIET);
  expect(await balances()).toMatchObject({ [FIRST]: '0.00 paid', [SECOND]: '0.00 paid', [THIRD]: '0.00 paid' });
});

test('credit in full gives what earlier credits left of each invoice, and nothing a second time', async () => {
  await runAction(await mara(), invoiceCredit, { number: FIRST, amount: '2.00', reason: 'wrong rate' }, QUIET);
  const inFull = { number: ALL, inFull: true, reason: 'wrong rate' };
  const shown = await previewAction(await mara(), invoiceCredit, inFull);
  expect(shown.amounts.map(String)).toEqual(['26.00']);
  const { json } = await runAction(await mara(), invoiceCredit, inFull, QUIET);
  expect(json).toMatchObject(
    ['-5.00', '-14.00', '-7.00'].map((_amount, at) => ({
      number: ALL[at],
      result: { amount_due: expect.any(String) },
    })),
  );
  expect(await balances()).toMatchObject({ [FIRST]: '0.00 paid', [SECOND]: '0.00 paid', [THIRD]: '0.00 paid' });
  const again = await refusalOf(runAction(await mara(), invoiceCredit, inFull, QUIET));
  expect(again.code).toBe('credit_exceeds_invoice');
});

test('what was done to several can be undone together', async () => {
  const held = await runAction(await mara(), invoiceHold, { number: ALL }, QUIET);
  expect(held.remedies).toEqual([{ label: 'Undo', action: 'invoice.release', input: { number: ALL } }]);
  const released = await runAction(await mara(), invoiceRelease, { number: ALL }, QUIET);
  expect(released.sentences).toBe('3 documents are no longer on hold.');
});

test('disputes are ended together, and those without one are named', async () => {
  for (const number of [FIRST, SECOND]) {
    await runAction(await mara(), disputeOpen, { number, reason: 'wrong rate' }, QUIET);
  }
  const shown = await previewAction(await mara(), disputeClose, { number: ALL, reason: 'agreed' });
  expect([shown.amounts.map(String), shown.report.sentences]).toEqual([
    ['21.00'],
    '2 documents are no longer disputed. 1 document is left out.',
  ]);
  await runAction(await mara(), disputeClose, { number: ALL, reason: 'agreed' }, QUIET);
  expect(await world.sql('SELECT FROM open_invoice_disputes')).toEqual([]);
});

test('work items are assigned together', async () => {
  await runAction(await mara(), invoiceHold, { number: ALL }, QUIET);
  const items = ALL.map((number) => `hold:${number}`);
  const { sentences } = await runAction(await mara(), workAssign, { item: items, to: MARA }, QUIET);
  expect(sentences).toBe(`3 items are assigned to ${MARA}.`);
  const unknown = await refusalOf(runAction(await mara(), workAssign, { item: [...items, 'hold:X'] }, QUIET));
  expect(unknown.code).toBe('work_item_unknown');
});

test('of several bank lines, unknown ones are refused', async () => {
  const book = runAction(
    await mara(),
    bankBook,
    { bankLineId: [1, 2], kind: 'charges', reason: 'fees' } as never,
    QUIET,
  );
  expect((await refusalOf(book)).code).toBe('argument_invalid');
});
