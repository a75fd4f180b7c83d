/** A partner is told once of each void of a document that reached it: by a notice, or by the replacement's e-mail. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ParsedMail, simpleParser } from 'mailparser';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { invoiceVoid } from '../../src/actions/invoice/void.ts';
import { previewAction } from '../../src/actions/run.ts';
import { recordPortalDelivery } from '../../src/documents/portal-delivery.ts';
import type { EmailResult } from '../../src/mail/outbox.ts';
import { resendEmail } from '../../src/mail/resend.ts';
import { sendEmails } from '../../src/month-end/month-end.ts';
import { startOver } from '../close/start-over.ts';
import { type Corrections, correctionsOf, story } from '../documents/correcting.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

const [INV_1, INV_2, INV_3] = ['INV-2026-000001', 'INV-2026-000002', 'INV-2026-000003'];

let world: World;
let action: Corrections;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());
beforeEach(async () => {
  await startOver(world);
  action = correctionsOf(world);
  await world.partners([partner({ invoicing_contact: { name: 'AP', email: 'ap@partner.example', cc: [] } })]);
  await world.rows([quote()]);
  await world.close();
  world.at('2026-08-10T15:00:00Z');
});

async function send(): Promise<string[]> {
  const results: EmailResult[] = [];
  await sendEmails(world, { onEmail: (result) => results.push(result) });
  return results.flatMap(({ email, status }) => (email.kind === 'void_notice' ? [status] : []));
}

async function latestNotice(): Promise<ParsedMail> {
  const folder = join(world.home, 'outbox');
  const names = readdirSync(folder).filter((name) => name.startsWith('void'));
  return simpleParser(readFileSync(join(folder, names.sort().at(-1) as string)));
}

test('a void without a replacement is told once, with the void copy and the reason', async () => {
  await world.deliver();
  await action.voided(INV_1, 'billed to the wrong company');
  expect(await send()).toEqual(['sent']);
  const mail = await latestNotice();
  expect(mail.subject).toBe(`[SANDBOX] Void: Invoice ${INV_1} from Sandbox Protection Services, Inc.`);
  expect([mail.to].flat().map((to) => to?.text)).toEqual(['"AP" <ap@partner.example>']);
  for (const said of [
    'This invoice is void. Do not pay it. We voided it on August 10, 2026.',
    'Reason: billed to the wrong company',
  ])
    expect(mail.text).toContain(said);
  expect(mail.attachments.map(({ filename, contentType }) => [filename, contentType])).toEqual([
    [`${INV_1}-void.pdf`, 'application/pdf'],
  ]);
  expect((await story(world, INV_1)).slice(-2)).toEqual([
    ['voided', 'voided: billed to the wrong company'],
    ['void_noticed', 'notice of the void sent to ap@partner.example'],
  ]);
  expect(await send()).toEqual([]);
});

test('the e-mail of a replacement tells the void, so that no notice is sent', async () => {
  await world.deliver();
  await action.voided(INV_1);
  world.settings = { ...world.settings, sandbox_recipients: ['.elsewhere'] };
  expect(await send()).toEqual(['held']);
  world.settings = { ...world.settings, sandbox_recipients: ['.example'] };
  await action.rerun(INV_1);
  expect(await send()).toEqual(['withdrawn']);
  await world.deliver();
  expect(await send()).toEqual([]);
});

test('a notice follows when the replacement is voided before it is sent', async () => {
  await world.deliver();
  await action.voided(INV_1);
  await action.rerun(INV_1);
  expect(await send()).toEqual([]);
  await action.voided(INV_2);
  expect(await send()).toEqual(['sent']);
  expect((await latestNotice()).text).toContain(INV_1);
  // A replacement of the replacement names the invoice that the partner has, and is told of by its own void.
  await action.rerun(INV_2);
  await world.deliver();
  expect(await send()).toEqual([]);
  await action.voided(INV_3);
  expect(await send()).toEqual(['sent']);
  expect((await latestNotice()).text).toContain(INV_3);
});

test('a notice is sent again on request, with current data', async () => {
  await world.deliver();
  await action.voided(INV_1);
  await send();
  const [{ id = '' } = {}] = await world.sql<{ id: string }>(
    `SELECT email_id AS id FROM emails WHERE kind = 'void_notice'`,
  );
  await world.database.transaction((tx) => resendEmail(tx, world, { emailId: Number(id) }));
  expect(await send()).toEqual(['sent']);
  expect(await send()).toEqual([]);
});

test('a document that never reached the partner gets no notice, and one delivered through a portal does', async () => {
  await action.hold(INV_1);
  await action.voided(INV_1);
  expect(await send()).toEqual([]);
  await action.rerun(INV_1);
  await world.database.transaction((tx) =>
    recordPortalDelivery(tx, world, { number: INV_2, on: '2026-08-10', reference: 'UP-1' }),
  );
  await action.voided(INV_2);
  expect(await send()).toEqual(['sent']);
});

test('the void of a credit note says what is due again', async () => {
  await world.deliver();
  const note = await action.credit(INV_1, '5.00');
  await world.deliver();
  await action.unapply(note, INV_1);
  await action.voided(note, 'credited to the wrong invoice');
  expect(await send()).toEqual(['sent']);
  const text = (await latestNotice()).text?.replace(/\s+/g, ' ');
  expect(text).toContain('This credit note is void. It gives no credit.');
  expect(text).toContain(`The amount that it took off ${INV_1} is due again: USD 7.00 of ${INV_1} is open.`);
});

test('the preview of a void shows the notice, and sends nothing', async () => {
  await world.deliver();
  const { emails } = await previewAction(world, invoiceVoid, { number: [INV_1], reason: 'billed twice' });
  expect(emails.map(({ kind, count, first }) => [kind, count, first[0]?.to])).toEqual([
    ['void_notice', 1, ['ap@partner.example']],
  ]);
  expect(await send()).toEqual([]);
});
