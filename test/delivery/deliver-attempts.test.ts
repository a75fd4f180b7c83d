/** The mail server's answer decides whether an e-mail is retried, failed, or repeated once with the same bytes. */
import { beforeEach, expect, test } from 'vitest';
import type { MailServer } from '../support/mail-server.ts';
import { freshMailWorld } from '../support/mail-world.ts';
import { partner, quote, type World } from '../support/world.ts';

let server: MailServer;
let world: World;
freshMailWorld((opened) => {
  ({ world, server } = opened);
});
beforeEach(async () => {
  await world.partners([partner()]);
  await world.rows([quote()]);
  await world.close();
});

/** Delivers while the server behaves like this, and gives how the document's e-mail stands then. */
async function deliver(behaviour: MailServer['behaviour'] = 'accept'): Promise<string | undefined> {
  server.behaviour = behaviour;
  await world.deliver();
  return (await world.documents())[0]?.email?.status;
}

interface Sending {
  attempts: number;
  unclear_attempts: number;
  reason: string;
  message_id: string;
  kept: boolean;
}

async function sending(): Promise<Sending> {
  const [row] = await world.sql<Sending>(
    `SELECT attempts, unclear_attempts, reason, message_id, message IS NOT NULL AS kept FROM emails`,
  );
  if (row === undefined) throw new Error('nothing is queued');
  return row;
}

const contact = (email: string) => partner({ invoicing_contact: { name: 'New', email, cc: [] } });

test('deferred by the server: still queued, and sent later under the same Message-ID', async () => {
  expect(await deliver('defer_recipients')).toBe('queued');
  expect(server.mails).toEqual([]);
  const first = await sending();
  expect(first).toMatchObject({ attempts: 1, unclear_attempts: 0, kept: false });
  expect(first.reason).toContain('451');
  expect(await deliver('defer_recipients')).toBe('queued');
  expect(await deliver()).toBe('sent');
  expect(server.mails.map(({ parsed }) => parsed.messageId)).toEqual([first.message_id]);
  expect(await sending()).toMatchObject({ attempts: 3, message_id: first.message_id });
});

test('deferred after the whole message is certainly not accepted: composed anew, with the date of the day it goes', async () => {
  expect(await deliver('defer_message')).toBe('queued');
  world.at('2026-08-03T10:00:00Z');
  expect(await deliver()).toBe('sent');
  expect(server.mails.map(({ parsed }) => parsed.date?.toISOString())).toEqual([
    '2026-08-01T10:00:00.000Z',
    '2026-08-03T10:00:00.000Z',
  ]);
  expect(new Set(server.mails.map(({ parsed }) => parsed.messageId)).size).toBe(1);
});

test('a server that is away, unfriendly or does not like the sender is no fault of the document', async () => {
  for (const behaviour of ['refuse_greeting', 'refuse_sender', 'drop_before_data', 'close_after_data'] as const) {
    expect(await deliver(behaviour), behaviour).toBe('queued');
  }
  expect(await sending()).toMatchObject({ attempts: 4, unclear_attempts: 0 });
  const { environment } = world;
  world.environment = { ...environment, smtpUrl: 'smtp://127.0.0.1:1' };
  expect(await deliver()).toBe('queued');
  world.environment = environment;
  expect(await deliver()).toBe('sent');
});

test('refused for good: failed with what the server said, and not tried again', async () => {
  expect(await deliver('refuse_recipients')).toBe('failed');
  expect((await sending()).reason).toContain('550');
  expect(await world.months('2026-07')).toMatchObject([{ deliveries: { sent: 0, pending: 0, failed: 1 } }]);
  const connections = server.connections;
  expect(await world.deliver()).toEqual([]);
  expect(server.connections).toBe(connections);
});

test('a message that is refused whole is failed too', async () => {
  expect(await deliver('refuse_message')).toBe('failed');
  expect(await sending()).toMatchObject({ attempts: 1, kept: false });
});

test('a refused copy is reported and does not keep the invoice from its contact', async () => {
  const invoicing_contact = { name: '', email: 'ap@partner.example', cc: ['gone@partner.example'] };
  await world.partners([partner({ invoicing_contact })]);
  server.replies.set('gone@partner.example', 550);
  expect(await deliver()).toBe('sent');
  expect(server.mails.map(({ to }) => to)).toEqual([['ap@partner.example']]);
  expect((await sending()).reason).toContain('gone@partner.example was rejected');
});

test('a contact that is repaired between two attempts gets the next one', async () => {
  expect(await deliver('defer_recipients')).toBe('queued');
  await world.partners([contact('right@partner.example')]);
  expect(await deliver()).toBe('sent');
  expect(server.mails.map(({ to }) => to)).toEqual([['right@partner.example']]);
  expect((await world.documents())[0]?.email?.to).toEqual(['right@partner.example']);
});

test('a connection that is cut after the message: queued, repeated once with the same bytes, and sent', async () => {
  expect(await deliver('drop_after_data')).toBe('queued');
  expect(await sending()).toMatchObject({ attempts: 1, unclear_attempts: 1, kept: true });
  // Whatever changes in between, the second copy must be the first one again: the partner can tell that it is.
  world.at('2026-08-04T10:00:00Z');
  await world.partners([contact('right@partner.example')]);
  expect(await deliver()).toBe('sent');
  expect(server.mails).toHaveLength(2);
  expect(server.mails[1]?.raw.equals(server.mails[0]?.raw ?? Buffer.alloc(0))).toBe(true);
  expect(server.mails[1]?.to).toEqual(['ap@partner.example']);
  expect(await sending()).toMatchObject({ attempts: 2, unclear_attempts: 1, kept: false });
});

test('what is kept for a repetition is the whole message, and verify compares it with its hash', async () => {
  expect(await deliver('drop_after_data')).toBe('queued');
  const [{ message }] = (await world.sql<{ message: Buffer }>('SELECT message FROM emails')) as [{ message: Buffer }];
  expect(server.mails[0]?.raw).toEqual(message);
  const differences = async () => (await world.verify()).differences;
  expect(await differences()).toBe(0);
  await world.sql(`UPDATE emails SET message = message || '.'`);
  expect(await differences()).toBe(1);
});

test('the log has each attempt with what the server said', async () => {
  expect(await deliver('defer_recipients')).toBe('queued');
  expect(await deliver('drop_after_data')).toBe('queued');
  expect(await deliver()).toBe('sent');
  const log = await world.sql<{ attempt: number; outcome: string; reply: string }>(
    'SELECT attempt, outcome, personal(reply) AS reply FROM email_attempts ORDER BY attempt',
  );
  expect(log.map(({ attempt, outcome }) => [attempt, outcome])).toEqual([
    [1, 'deferred'],
    [2, 'unclear'],
    [3, 'sent'],
  ]);
  expect(log[0]?.reply).toContain('451');
});

test('cut twice: uncertain, and never sent again by itself', async () => {
  expect(await deliver('drop_after_data')).toBe('queued');
  expect(await deliver('drop_after_data')).toBe('uncertain');
  expect(await world.deliver()).toEqual([]);
  expect(server.mails).toHaveLength(2);
  expect(server.mails[1]?.raw.equals(server.mails[0]?.raw ?? Buffer.alloc(0))).toBe(true);
  expect(await world.months('2026-07')).toMatchObject([{ deliveries: { sent: 0, pending: 0, uncertain: 1 } }]);
  expect((await world.documents())[0]?.email).toMatchObject({ to: ['ap@partner.example'], sent_at: null });
});

test('cut, then deferred, then cut: the same bytes each time, and uncertain in the end', async () => {
  // An hour passes between them, so that an e-mail written anew would have another date.
  expect(await deliver('drop_after_data')).toBe('queued');
  world.at('2026-08-01T11:00:00Z');
  expect(await deliver('defer_message')).toBe('queued');
  world.at('2026-08-01T12:00:00Z');
  expect(await deliver('defer_recipients')).toBe('queued');
  world.at('2026-08-01T13:00:00Z');
  expect(await deliver('drop_after_data')).toBe('uncertain');
  expect(server.mails).toHaveLength(3);
  expect(new Set(server.mails.map(({ raw }) => raw.toString('base64'))).size).toBe(1);
});

test('one document that cannot go out stops no other', async () => {
  const bad = { name: '', email: 'bad@partner.example', cc: [] };
  await world.partners([partner({ partner_id: 'p-2', invoicing_contact: bad }), partner({ partner_id: 'p-3' })]);
  world.at('2026-09-01T10:00:00Z');
  await world.rows(
    ['p-1', 'p-2', 'p-3'].map((partner_id) => quote({ partner_id, accepted_at: '2026-08-10T12:00:00Z' })),
  );
  await world.close();
  server.replies.set('bad@partner.example', 550);
  await world.deliver();
  expect((await world.documents()).map(({ partner_id, email }) => `${partner_id} ${email?.status}`)).toEqual([
    'p-1 sent',
    'p-1 sent',
    'p-2 failed',
    'p-3 sent',
  ]);
});
