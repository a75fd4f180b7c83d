/** Reports of returned e-mails, as Postfix, Exchange and sendmail write them, joined to what was sent. */
import { expect, test } from 'vitest';
import { retryEmails } from '../../src/delivery/retry-emails.ts';
import { bouncesIn, messagesOf } from '../../src/mail/bounce-report.ts';
import { type RecordedBounces, recordBounces } from '../../src/mail/bounces.ts';
import { readEmails } from '../../src/mail/log.sql.ts';
import { pauseLedger } from '../../src/people/pauses.ts';
import type { MailServer } from '../support/mail-server.ts';
import { freshMailWorld } from '../support/mail-world.ts';
import { readStatus } from '../support/status.ts';
import { partner, quote, type World } from '../support/world.ts';
import { report } from './report.ts';

let server: MailServer;
let world: World;
freshMailWorld((opened) => {
  ({ world, server } = opened);
});

async function deliver(contact: object = {}): Promise<string> {
  await world.partners([partner({ invoicing_contact: { name: '', email: 'ap@partner.example', cc: [], ...contact } })]);
  await world.rows([quote()]);
  await world.close();
  await world.deliver();
  return server.mails[0]?.parsed.messageId ?? '';
}

const record = async (...files: Buffer[]): Promise<RecordedBounces> => {
  const messages = files.flatMap(messagesOf);
  const reports = (await Promise.all(messages.map(bouncesIn))).flat();
  return world.database.transaction((tx) => recordBounces(tx, world, { source: 'mbox', reports }));
};
const status = () => world.database.reading((tx) => readStatus(tx, world));
const differences = async () => (await world.verify()).differences;

test('an invoice that came back is bounced where finance looks, until it is sent to an address that works', async () => {
  const messageId = await deliver();
  expect(await record(report({ messageId }))).toEqual({
    bounces: [
      {
        ...{ email: expect.any(Number), about: 'INV-2026-000001', recipient: 'ap@partner.example', status: '5.1.1' },
        diagnostic: '550 5.1.1 <ap@partner.example>: Recipient address rejected: User unknown',
        bounced: true,
      },
    ],
    duplicates: 0,
    unmatched: [],
  });
  const reason = expect.stringContaining('returned from ap@partner.example: 5.1.1 550');
  expect((await world.documents())[0]?.email).toMatchObject({ status: 'bounced' });
  expect(await status()).toMatchObject({
    deliveries: { sent: 0, failed: 1 },
    waiting: [{ number: 'INV-2026-000001', status: 'bounced', reason }],
    attention: [
      expect.stringMatching(
        /^INV-2026-\d+ was returned by a mail server.*\. Correct the partner's contact\. Resend it with 'reckoner invoice resend INV-/,
      ),
    ],
  });
  const [email] = await world.database.reading((tx) => readEmails(tx, { limit: 9, unfinished: true }));
  expect(email).toMatchObject({ document: 'INV-2026-000001', status: 'bounced', reason });
  expect(await differences()).toBe(0);
  expect(await world.deliver()).toEqual([]);

  await world.partners([partner({ invoicing_contact: { name: '', email: 'new@partner.example', cc: [] } })]);
  const retried = await world.database.transaction((tx) => retryEmails(tx, world, { status: 'bounced' }));
  expect(retried).toEqual({ documents: 1, others: 0 });
  await world.deliver();
  expect(server.mails.at(-1)?.to).toEqual(['new@partner.example']);
  expect(await status()).toMatchObject({ deliveries: { sent: 1, failed: 0 }, attention: [] });
  expect(await differences()).toBe(0);
});

test('a report is recorded while the ledger is paused: the mail server that hands it over keeps no copy', async () => {
  const messageId = await deliver();
  await world.database.transaction((tx) => pauseLedger(tx, world, { reason: 'upgrade', stateOf: null }));
  expect((await record(report({ messageId }))).bounces).toHaveLength(1);
  expect((await world.documents())[0]?.email).toMatchObject({ status: 'bounced' });
});

test('a report read twice records nothing the second time', async () => {
  const messageId = await deliver();
  await record(report({ messageId }));
  expect(await record(report({ messageId }), report({ messageId }))).toEqual({
    bounces: [],
    duplicates: 2,
    unmatched: [],
  });
  expect(await world.sql(`SELECT subject FROM audit_events WHERE action = 'email.bounces'`)).toEqual([
    { subject: 'mbox' },
  ]);
});

test('a mailbox holds answers and other mail too: they are passed over', async () => {
  const messageId = await deliver();
  const answer = Buffer.from('From: ap@partner.example\r\nSubject: Re: Invoice\r\n\r\nThank you.\r\n>From us all\r\n');
  const inMailbox = (message: Buffer) =>
    Buffer.concat([Buffer.from('From MAILER-DAEMON Sat Aug  1 10:00:00 2026\n'), message, Buffer.from('\n')]);
  const mailbox = Buffer.concat([
    inMailbox(answer),
    inMailbox(report({ messageId, headersOnly: true })),
    inMailbox(answer),
  ]);
  expect(messagesOf(mailbox)).toHaveLength(3);
  expect(await record(mailbox)).toMatchObject({ bounces: [{ about: 'INV-2026-000001' }], unmatched: [] });
});

test('a report without the message is joined by the id of the envelope', async () => {
  const messageId = await deliver();
  expect((await record(report({ messageId, envelopeId: true }))).bounces).toHaveLength(1);
});

test('what is delayed, relayed or delivered has not come back', async () => {
  const messageId = await deliver();
  for (const action of ['delayed', 'relayed', 'delivered', 'expanded']) {
    expect(await record(report({ messageId, action, status: '4.4.1' }))).toMatchObject({ bounces: [], unmatched: [] });
  }
  expect((await world.documents())[0]?.email?.status).toBe('sent');
});

test('given up after days of trying is given up', async () => {
  const messageId = await deliver();
  expect((await record(report({ messageId, status: '4.4.7' }))).bounces).toMatchObject([{ status: '4.4.7' }]);
});

test('a copy that came back is recorded, and the invoice stays sent', async () => {
  const messageId = await deliver({ cc: ['boss@partner.example'] });
  const { bounces } = await record(report({ messageId, final: 'boss@partner.example' }));
  expect(bounces).toMatchObject([{ recipient: 'boss@partner.example', bounced: false }]);
  expect((await world.documents())[0]?.email?.status).toBe('sent');
  expect(await status()).toMatchObject({ attention: [] });
  expect(await differences()).toBe(0);
});

test('a recipient who forwards mail is found by the address that we used, or as the only one', async () => {
  const messageId = await deliver();
  const forwarded = report({ messageId, final: 'Somebody@Elsewhere.example', original: 'AP@partner.example' });
  expect((await record(forwarded)).bounces).toMatchObject([{ recipient: 'ap@partner.example' }]);
});

test('a report of another installation, or of an address that got nothing, changes nothing and is named', async () => {
  const messageId = await deliver({ cc: ['boss@partner.example'] });
  expect(await record(report({ messageId: '<INV-2026-000001.1.other@protection.example>' }))).toMatchObject({
    bounces: [],
    unmatched: [{ reason: 'no e-mail of this installation has this Message-ID' }],
  });
  expect((await record(report({ messageId, final: 'else@partner.example' }))).unmatched).toMatchObject([
    { recipient: 'else@partner.example', reason: expect.stringContaining('did not go to this address') },
  ]);
  expect((await world.documents())[0]?.email?.status).toBe('sent');
});

test('an e-mail of which it was uncertain whether it arrived is bounced when its report comes', async () => {
  server.behaviour = 'drop_after_data';
  const messageId = await deliver();
  await world.deliver();
  expect((await world.documents())[0]?.email?.status).toBe('uncertain');
  expect((await record(report({ messageId }))).bounces).toHaveLength(1);
  expect((await world.documents())[0]?.email?.status).toBe('bounced');
  expect(await differences()).toBe(0);
});

test('verify names an e-mail that is bounced without a report, and a report that was removed from it', async () => {
  const messageId = await deliver();
  await world.sql(`UPDATE emails SET status = 'bounced' WHERE document_id IS NOT NULL`);
  expect(await differences()).toBe(1);
  await record(report({ messageId }));
  expect(await differences()).toBe(0);
});

test('no report, however deep or broken, stops the reading', async () => {
  const nested = Array.from(
    { length: 200 },
    (_, i) => `Content-Type: multipart/mixed; boundary=b${i}\r\n\r\n--b${i}\r\n`,
  );
  const broken = [
    nested.join(''),
    'Content-Type: multipart/report; boundary=\r\n\r\n--',
    '\0\0\0',
    'From x\n',
    'From ',
  ];
  for (const text of broken) {
    for (const message of messagesOf(Buffer.from(text))) expect(await bouncesIn(message)).toEqual([]);
  }
});
