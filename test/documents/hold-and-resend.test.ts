/** A hold keeps an e-mail back until its release; a resend is a new, logged e-mail. */
import { beforeEach, expect, test } from 'vitest';
import type { Settings } from '../../src/config/settings.ts';
import { Claims } from '../../src/database/claims.ts';
import { readDocumentEmail } from '../../src/delivery/documents.sql.ts';
import { DUE_DOCUMENTS } from '../../src/delivery/due.sql.ts';
import { offerEmail } from '../../src/mail/outbox.sql.ts';
import { refusalOf } from '../close/refusal.ts';
import type { MailServer } from '../support/mail-server.ts';
import { freshMailWorld } from '../support/mail-world.ts';
import { partner, quote, realSettings, type World } from '../support/world.ts';
import { type Corrections, correctionsOf, document, emailsOf, expectVerified, story } from './correcting.ts';

let world: World;
let server: MailServer;
let action: Corrections;
freshMailWorld((opened) => {
  ({ world, server } = opened);
});
const INV_1 = 'INV-2026-000001';

beforeEach(async () => {
  action = correctionsOf(world);
  await world.partners([partner()]);
  await world.rows([quote()]);
  await world.close();
});

const recipients = () => server.mails.flatMap(({ to }) => to);

test('the e-mail of a document on hold waits with its reason, at once and after every delivery run', async () => {
  await action.hold(INV_1, 'the partner disputes it');
  const held = {
    status: 'held',
    reason: expect.stringMatching(/^on hold since 2026-08-01T10:00:00.*: the partner disputes it$/),
  };
  expect(await emailsOf(world, INV_1)).toMatchObject([held]);
  await world.deliver();
  expect(await emailsOf(world, INV_1)).toMatchObject([held]);
  expect(recipients()).toEqual([]);
  await expectVerified(world);
});

test('a released e-mail is sent', async () => {
  await action.hold(INV_1);
  await world.deliver();
  await action.release(INV_1);
  expect(await emailsOf(world, INV_1)).toMatchObject([{ status: 'queued', reason: null }]);
  await world.deliver();
  expect(recipients()).toEqual(['ap@partner.example']);
  expect((await story(world, INV_1)).map(([what]) => what)).toEqual(expect.arrayContaining(['held', 'released']));
  await expectVerified(world);
});

test('a hold without a reason, a second hold after the first, and each in the history', async () => {
  await action.hold(INV_1, '');
  expect(await refusalOf(action.hold(INV_1))).toMatchObject({ code: 'document_on_hold', facts: { reason: '' } });
  await action.release(INV_1);
  expect(await refusalOf(action.release(INV_1))).toMatchObject({ code: 'document_not_on_hold' });
  await action.hold(INV_1, 'again');
  await action.release(INV_1);
  expect((await story(world, INV_1)).filter(([what]) => what === 'held' || what === 'released')).toEqual([
    ['held', 'put on hold'],
    ['released', 'hold released'],
    ['held', 'put on hold: again'],
    ['released', 'hold released'],
  ]);
});

test('a hold does not change the balance', async () => {
  const before = await document(world, INV_1);
  await action.hold(INV_1);
  expect(await document(world, INV_1)).toEqual({ ...before, email: { ...before.email, status: 'held' } });
});

test('a worker that read the document before its hold does not send it after', async () => {
  const claims = await Claims.open(world.database.connection);
  try {
    const [{ id }] = (await world.sql<{ id: string }>('SELECT document_id AS id FROM documents')) as [{ id: string }];
    const email = await world.database.reading((tx) => readDocumentEmail(tx, Number(id)));
    expect((await claims.claim(DUE_DOCUMENTS, 1)).map(({ key }) => key)).toEqual([id]);
    await action.hold(INV_1);
    const offer = {
      emailId: email?.email_id as number,
      attempt: 1,
      holder: claims.holder,
      recipients: ['ap@partner.example'],
      envelopeFrom: 'billing@protection.example',
      message: Buffer.from('late'),
      sha256: 'x',
      startedAt: '2026-08-01T10:00:00Z',
    };
    expect(await world.database.transaction((tx) => offerEmail(tx, offer))).toBe(false);
    await action.release(INV_1);
    expect(await world.database.transaction((tx) => offerEmail(tx, offer))).toBe(true);
  } finally {
    await claims.end();
  }
});

test('a void document can be neither held, released nor sent again', async () => {
  await action.hold(INV_1);
  await action.voided(INV_1);
  for (const late of [() => action.hold(INV_1), () => action.release(INV_1), () => action.resend(INV_1)]) {
    expect(await refusalOf(late())).toMatchObject({ code: 'document_void' });
  }
  await expectVerified(world);
});

test('a resend is a new e-mail with its own Message-ID and the same PDF; both are logged', async () => {
  await world.deliver();
  world.at('2026-08-05T10:00:00Z');
  await action.resend(INV_1);
  expect(await document(world, INV_1)).toMatchObject({ email: { status: 'queued' } });
  await world.deliver();
  expect(recipients()).toEqual(['ap@partner.example', 'ap@partner.example']);
  const [first, second] = server.mails.map(({ parsed }) => parsed);
  expect(second?.messageId).not.toBe(first?.messageId);
  expect(second?.attachments[0]?.content.equals(first?.attachments[0]?.content as Buffer)).toBe(true);
  expect(await emailsOf(world, INV_1)).toMatchObject([
    { asked_for: 'close', status: 'sent', message_id: first?.messageId },
    { asked_for: 'resend', status: 'sent', message_id: second?.messageId },
  ]);
  expect(await document(world, INV_1)).toMatchObject({ email: { message_id: second?.messageId } });
  await expectVerified(world);
});

test('a resend after the bank details changed sends the same PDF and says that its details are out of date', async () => {
  await world.deliver();
  world.settings = JSON.parse(JSON.stringify(world.settings).replaceAll('000123456789', '000987654321')) as Settings;
  await action.resend(INV_1);
  await world.deliver();
  const [first, second] = server.mails.map(({ parsed }) => parsed);
  expect(first?.text).toContain('000123456789');
  expect(second?.text).toContain('Our bank details have changed since this invoice was issued.');
  expect(second?.text).not.toMatch(/000123456789|000987654321/);
  expect(second?.attachments[0]?.content.equals(first?.attachments[0]?.content as Buffer)).toBe(true);
});

test('a resend to another address goes only there, without copies, and does not change the contacts', async () => {
  await world.partners([
    partner({ invoicing_contact: { name: 'AP', email: 'ap@partner.example', cc: ['copy@partner.example'] } }),
  ]);
  await world.deliver();
  await action.resend(INV_1, 'cfo@partner.example');
  await world.deliver();
  expect(recipients()).toEqual(['ap@partner.example', 'copy@partner.example', 'cfo@partner.example']);
  expect(await story(world, INV_1)).toContainEqual([
    'sending_asked',
    expect.stringContaining('by a user to cfo@partner.example'),
  ]);
  await action.resend(INV_1);
  await world.deliver();
  expect(recipients().slice(3)).toEqual(['ap@partner.example', 'copy@partner.example']);
});

test('a resend uses the current contact: a corrected address lets it arrive', async () => {
  server.replies.set('ap@partner.example', 550);
  await world.deliver();
  expect(await document(world, INV_1)).toMatchObject({ email: { status: 'failed' } });
  await world.partners([partner({ invoicing_contact: { name: 'AP', email: 'new@partner.example', cc: [] } })]);
  await action.resend(INV_1);
  await world.deliver();
  expect(recipients()).toEqual(['new@partner.example']);
  expect(await document(world, INV_1)).toMatchObject({ email: { status: 'sent', to: ['new@partner.example'] } });
  await expectVerified(world);
});

test('an e-mail that may have arrived can be resent', async () => {
  server.behaviour = 'drop_after_data';
  await world.deliver();
  await world.sql(`UPDATE emails SET due_at = now() WHERE status = 'queued'`);
  await world.deliver();
  expect(await document(world, INV_1)).toMatchObject({ email: { status: 'uncertain' } });
  server.behaviour = 'accept';
  await action.resend(INV_1);
  await world.deliver();
  expect(await document(world, INV_1)).toMatchObject({ email: { status: 'sent' } });
  expect(new Set(server.mails.map(({ parsed }) => parsed.messageId)).size).toBe(2);
});

test('an e-mail that is queued, held or being sent cannot be resent', async () => {
  expect(await refusalOf(action.resend(INV_1))).toMatchObject({
    code: 'document_email_unfinished',
    facts: { status: 'queued' },
  });
  await world.partners([partner({ invoicing_contact: { name: '', email: '', cc: [] } })]);
  await world.deliver();
  expect(await refusalOf(action.resend(INV_1))).toMatchObject({
    code: 'document_email_unfinished',
    facts: { status: 'held', reason: expect.stringContaining('no invoicing contact') },
  });
  await action.hold(INV_1, 'wait');
  expect(await refusalOf(action.resend(INV_1))).toMatchObject({ code: 'document_on_hold' });
});

test('a resend to anything but one address is refused', async () => {
  await world.deliver();
  for (const to of [
    '',
    'a@partner.example, b@partner.example',
    'Bo <b@partner.example>',
    'b@partner.example\r\nX: 1',
    'b',
  ]) {
    expect({ to, ...(await refusalOf(action.resend(INV_1, to))) }).toMatchObject({ code: 'argument_invalid' });
  }
  expect(await emailsOf(world, INV_1)).toHaveLength(1);
});

test('a sandbox resends only to its recipients, production to any address', async () => {
  await world.deliver();
  expect(await refusalOf(action.resend(INV_1, 'cfo@customer.com'))).toMatchObject({
    code: 'recipient_refused',
    facts: { address: 'cfo@customer.com' },
  });
  const sandbox = world.environment;
  world.environment = { ...sandbox, name: 'production' };
  world.settings = realSettings(world.settings);
  try {
    await action.resend(INV_1, 'cfo@customer.com');
    await world.deliver();
  } finally {
    world.environment = sandbox;
  }
  expect(recipients()).toEqual(['ap@partner.example', 'cfo@customer.com']);
});
