/** Several workers, on one host or many, dead or alive: each document is delivered by one worker that has claimed it. */
import { join } from 'node:path';
import { simpleParser } from 'mailparser';
import pg from 'pg';
import { afterEach, expect, test } from 'vitest';
import { Claims, itemHash, workOn } from '../../src/database/claims.ts';
import type { Database } from '../../src/database/database.ts';
import { CLAIM_LOCKS } from '../../src/database/locks.ts';
import { deliverForever, deliverPending } from '../../src/delivery/deliver.ts';
import { type Delivery, type DeliveryContext, deliverDocument } from '../../src/delivery/document.ts';
import { DUE_DOCUMENTS } from '../../src/delivery/due.sql.ts';
import { linkProvider } from '../../src/delivery/payment-link.ts';
import { PdfRendererPool } from '../../src/delivery/pdf-renderer-pool.ts';
import { DeliverySteps } from '../../src/delivery/steps.ts';
import { composeMessage } from '../../src/mail/message.ts';
import { loadTemplates } from '../../src/mail/templates.ts';
import type { OutgoingMessage, SendOutcome } from '../../src/mail/transport.ts';
import { packageRoot } from '../../src/package.ts';
import { adoptFirstInstructions } from '../../src/people/settings-in-force.ts';
import { adopt } from '../support/adopting.ts';
import type { MailServer } from '../support/mail-server.ts';
import { freshMailWorld } from '../support/mail-world.ts';
import { partner, quote, type World } from '../support/world.ts';

let server: MailServer;
let world: World;
freshMailWorld((opened) => {
  ({ world, server } = opened);
});

/** Closes July with so many invoices, one a partner. */
async function closeJuly(invoices = 1): Promise<void> {
  const ids = Array.from({ length: invoices }, (_, index) => `p-${index + 1}`);
  await world.partners(ids.map((partner_id) => partner({ partner_id })));
  await world.rows(ids.map((partner_id) => quote({ partner_id })));
  await world.close();
  // As each run does before its workers begin.
  await adoptFirstInstructions(world.database, world);
}

const statuses = async () => (await world.documents()).map(({ email }) => email?.status);

const allSent = async (count: number) => (await statuses()).join() === Array(count).fill('sent').join();

// --- Workers that died ----------------------------------------------------------------------------------------------

/** The e-mail of the only document as a worker left it that was stopped in the middle of sending it. */
async function interrupted(unclearAttempts = 0): Promise<Buffer> {
  const [row] = await world.sql<{ message_id: string }>(`SELECT message_id FROM document_emails`);
  const raw = composeMessage({
    messageId: row?.message_id ?? '',
    date: '2026-08-01T09:00:00Z',
    from: { name: 'As it was sent', address: 'billing@protection.example' },
    to: { name: '', address: 'ap@partner.example' },
    cc: [],
    content: { subject: 'An hour ago', text: 'As it was sent', html: '<p>As it was sent</p>' },
    attachments: [],
  });
  await world.sql(
    `UPDATE emails SET status = 'sending', attempts = attempts + 1, message = $1,
            message_sha256 = encode(sha256($1), 'hex'), recipients = '{ap@partner.example}',
            envelope_from = 'billing@protection.example', unclear_attempts = $2, attempted_at = '2026-08-01T09:00:00Z'`,
    [raw, unclearAttempts],
  );
  return raw;
}

test('an e-mail that a worker was sending when it died is repeated at once, with the same bytes', async () => {
  await closeJuly();
  const raw = await interrupted();
  expect(await world.deliver()).toMatchObject([{ status: 'sent' }]);
  expect(server.mails).toHaveLength(1);
  expect(server.mails[0]?.raw.equals(raw)).toBe(true);
});

test('an e-mail whose repetition is interrupted too becomes uncertain and is not sent a third time', async () => {
  await closeJuly();
  await interrupted(1);
  expect(await world.deliver()).toMatchObject([{ status: 'uncertain' }]);
  expect(await world.deliver()).toEqual([]);
  expect(server.mails).toEqual([]);
  expect(await statuses()).toEqual(['uncertain']);
});

/** What it has claimed of so many. */
const claimedBy = async (claims: Claims | undefined, most: number, except: readonly string[] = []): Promise<string[]> =>
  ((await claims?.claim(DUE_DOCUMENTS, most, except)) ?? []).filter(({ got }) => got).map(({ key }) => key);

test('an e-mail that a living worker is sending is left to it', async () => {
  await closeJuly();
  await interrupted();
  const living = await Claims.open(world.database.connection);
  try {
    expect(await claimedBy(living, 1)).toHaveLength(1);
    expect(await world.deliver()).toEqual([]);
    expect(await statuses()).toEqual(['sending']);
  } finally {
    await living.end();
  }
  expect(await world.deliver()).toMatchObject([{ status: 'sent' }]);
});

test('what a dead worker had claimed is free for whoever starts next', async () => {
  await closeJuly(3);
  const dying = await Claims.open(world.database.connection);
  expect(await claimedBy(dying, 3)).toHaveLength(3);
  expect(await world.deliver()).toEqual([]);
  await world.sql('SELECT pg_terminate_backend($1)', [dying.holder]);
  await expect(dying.lost).rejects.toThrow('terminating connection');
  expect((await world.deliver()).map(({ status }) => status)).toEqual(['sent', 'sent', 'sent']);
});

test('a worker claims what nobody else has, oldest first, and what it released again', async () => {
  await closeJuly(5);
  const [one, other] = await Promise.all([1, 2].map(() => Claims.open(world.database.connection)));
  try {
    const first = await claimedBy(one, 2);
    const rest = await claimedBy(other, 5);
    expect([...first, ...rest]).toEqual([...first, ...rest].toSorted((a, b) => Number(a) - Number(b)));
    expect(new Set([...first, ...rest]).size).toBe(5);
    expect(await claimedBy(one, 5)).toEqual([]);
    one?.release(DUE_DOCUMENTS, first[0] as string);
    expect(await claimedBy(one, 5, first)).toEqual([]);
    expect(await claimedBy(other, 5)).toEqual([first[0]]);
  } finally {
    await Promise.all([one?.end(), other?.end()]);
  }
});

test('if the work on one document fails, the others in hand are finished before their claims end', async () => {
  await closeJuly(3);
  const claims = await Claims.open(world.database.connection);
  const other = await Claims.open(world.database.connection);
  const finished: string[] = [];
  let asked = 0;
  const work = async (key: string): Promise<boolean> => {
    asked += 1;
    if (asked === 1) throw new Error('a bug');
    await new Promise((resolve) => setTimeout(resolve, 300));
    // Nobody else may have them while they are under way.
    expect(await claimedBy(other, 3)).toEqual([]);
    finished.push(key);
    return true;
  };
  try {
    await expect(workOn(claims, DUE_DOCUMENTS, { atOnce: 3, work })).rejects.toThrow('a bug');
    expect(finished).toHaveLength(2);
  } finally {
    await Promise.all([claims.end(), other.end()]);
  }
});

// --- Workers at the same time ---------------------------------------------------------------------------------------

test('two runs at once send every e-mail once', async () => {
  await closeJuly(12);
  const [one, other] = await Promise.all([world.deliver(), world.deliver()]);
  // Who comes to a document that the other has sent by then finds it so.
  expect([...one, ...other].filter(({ status, before }) => status === 'sent' && !before)).toHaveLength(12);
  expect(new Set(server.mails.map(({ parsed }) => parsed.messageId)).size).toBe(12);
  expect(server.mails).toHaveLength(12);
  // Both runs may have drawn a document and made it a link; one of each counts, and it is the one that was sent.
  for (const { number, payment_link, pdf } of await world.documents()) {
    const mail = server.mails.find(({ parsed }) => parsed.subject?.includes(number));
    expect(mail?.parsed.text).toContain(payment_link ?? 'no link');
    expect(mail?.parsed.attachments[0]?.content.length).toBe(pdf?.bytes);
  }
});

const locks: pg.Client[] = [];
afterEach(async () => {
  await Promise.all(locks.splice(0).map((lock) => lock.end()));
});

interface Hired {
  deliver(): Promise<Delivery>;
  /** Whether it could claim the document, as it did when it was hired if nobody else had. */
  claim(): Promise<boolean>;
  /** Takes its claim away, as a broken connection does; the worker itself does not notice. */
  loseClaim(): Promise<void>;
}

/** A worker of these tests, at the only document: a claim of its own, and parts of the test's choice. */
async function hire(parts: {
  send: (message: OutgoingMessage) => Promise<SendOutcome>;
  database?: Database;
}): Promise<Hired> {
  const lock = new pg.Client(world.databaseUrl);
  await lock.connect();
  locks.push(lock);
  const { rows } = await lock.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  const database = parts.database ?? world.database;
  const context: DeliveryContext = {
    environment: world.environment,
    settings: world.settings,
    database,
    steps: new DeliverySteps(database),
    renderer: new PdfRendererPool(1),
    transport: {
      name: 'smtp',
      send: async (message) =>
        (await message.offer?.()) === true ? parts.send(message) : { outcome: 'deferred', reply: 'called off' },
      close: () => {},
    },
    templates: loadTemplates([join(packageRoot, 'templates', 'email')]),
    links: linkProvider(world.settings, world.environment),
    holder: rows[0]?.pid as number,
  };
  const [row] = await world.sql<{ id: string }>(`SELECT max(document_id) AS id FROM documents`);
  const claim = async () => {
    const { rows: tried } = await lock.query<{ claimed: boolean }>(
      `SELECT pg_try_advisory_lock(${CLAIM_LOCKS}, ${itemHash('document', '$1::bigint')}) AS claimed`,
      [row?.id],
    );
    return tried[0]?.claimed === true;
  };
  await claim();
  return {
    claim,
    deliver: () => deliverDocument(context, Number(row?.id)),
    async loseClaim() {
      await lock.query(`SELECT pg_advisory_unlock_all()`);
    },
  };
}

/** A promise to be kept from outside. */
function signal<Value = void>(): { given: Promise<Value>; give: (value: Value) => void } {
  let give: (value: Value) => void = () => {};
  const given = new Promise<Value>((resolve) => {
    give = resolve;
  });
  return { given, give };
}

/** The world's database, whose writes wait for this. */
function slowToWrite(until: () => Promise<void>): Database {
  return {
    ...world.database,
    transaction: async (work) => {
      await until();
      return world.database.transaction(work);
    },
    inOneTrip: async (work, options) => {
      if (options?.readOnly !== true) await until();
      return world.database.inOneTrip(work, options);
    },
  };
}

const SENT: SendOutcome = { outcome: 'sent', reply: '250 queued' };

test('of two workers that find the e-mail of a dead one, one repeats it', async () => {
  await closeJuly();
  server.behaviour = 'defer_recipients';
  await world.deliver(); // draws it
  await interrupted();
  const [sending, answer] = [signal(), signal<SendOutcome>()];
  const copies: Buffer[] = [];
  const quick = await hire({
    send: ({ raw }) => {
      copies.push(raw);
      sending.give();
      return answer.given;
    },
  });
  // The other has read the same, and gets round to writing only when the first is at the mail server already.
  const slow = await hire({
    database: slowToWrite(() => sending.given),
    send: async ({ raw }) => {
      copies.push(raw);
      return SENT;
    },
  });
  const [first, second] = [quick.deliver(), slow.deliver()];
  expect(await second).toMatchObject({ status: 'elsewhere' });
  answer.give(SENT);
  expect(await first).toMatchObject({ status: 'sent' });
  expect(copies).toHaveLength(1);
  expect(await statuses()).toEqual(['sent']);
});

test('a worker that read before another’s unclear attempt does not send other bytes after it', async () => {
  await closeJuly();
  const [read, tried] = [signal(), signal()];
  const copies: Buffer[] = [];
  server.behaviour = 'defer_recipients';
  await world.deliver(); // draws it
  // The clock of the slow one is a minute behind, so that its e-mail has other bytes.
  const slow = await hire({
    // The drawing is made by then, so that the first write of the slow one is its offer.
    database: slowToWrite(() => {
      read.give();
      return tried.given;
    }),
    send: async ({ raw }) => {
      copies.push(raw);
      return SENT;
    },
  });
  world.at('2026-08-01T10:01:00Z');
  const late = slow.deliver();
  await read.given;
  // Its connection breaks, and another has the document meanwhile.
  await slow.loseClaim();
  const quick = await hire({
    send: async ({ raw }) => {
      copies.push(raw);
      return { outcome: 'unclear', reply: 'the connection was lost' };
    },
  });
  world.at('2026-08-01T10:02:00Z');
  expect(await quick.deliver()).toMatchObject({ status: 'deferred' });
  await quick.loseClaim();
  expect(await slow.claim()).toBe(true);
  tried.give();
  expect(await late).toMatchObject({ status: 'elsewhere' });
  expect(copies).toHaveLength(1);
  await slow.loseClaim();
  // The next look repeats it as it was.
  server.behaviour = 'accept';
  await world.deliver();
  expect(server.mails.map(({ raw }) => raw.equals(copies[0] ?? Buffer.alloc(0)))).toEqual([true]);
});

test('a worker that lost its lock does not record the outcome of an e-mail that another took over', async () => {
  await closeJuly();
  const [sending, answer] = [signal(), signal<SendOutcome>()];
  const lost = await hire({
    send: () => {
      sending.give();
      return answer.given;
    },
  });
  const first = lost.deliver();
  await sending.given;
  await lost.loseClaim();
  const [takenOver, accepted] = [signal(), signal<SendOutcome>()];
  const other = await hire({
    send: () => {
      takenOver.give();
      return accepted.given;
    },
  });
  const second = other.deliver();
  await takenOver.given;
  answer.give({ outcome: 'deferred', reply: '451 later' });
  await first;
  expect(await statuses()).toEqual(['sending']);
  accepted.give(SENT);
  expect(await second).toMatchObject({ status: 'sent' });
  expect(await statuses()).toEqual(['sent']);
});

test('a worker that claims an e-mail that is being sent repeats it: its outcome could not be recorded', async () => {
  await closeJuly();
  const raw = await interrupted();
  const copies: Buffer[] = [];
  const worker = await hire({
    send: async (message) => {
      copies.push(message.raw);
      return SENT;
    },
  });
  expect(await worker.deliver()).toMatchObject({ status: 'sent' });
  expect(copies.map((copy) => copy.equals(raw))).toEqual([true]);
});

test('an e-mail contradicts its PDF nowhere, even if the worker that lost the race had newer bank details', async () => {
  await closeJuly();
  const { ach } = world.settings.instructions['USD'] ?? {};
  if (ach === undefined) throw new Error('the sandbox has no ACH instructions');
  const USD = { ...world.settings.instructions['USD'], ach: { ...ach, account_number: '999' } };
  const drawn = signal();
  const quick = await hire({
    send: async () => {
      // Meanwhile, the newer ones are adopted.
      await adopt(world, 'instructions', { USD });
      drawn.give();
      return { outcome: 'deferred', reply: '451 later' };
    },
  });
  world.settings = { ...world.settings, instructions: { USD } };
  const messages: Buffer[] = [];
  const slow = await hire({
    database: slowToWrite(() => drawn.given),
    send: async ({ raw }) => {
      messages.push(raw);
      return SENT;
    },
  });
  const later = slow.deliver();
  expect(await quick.deliver()).toMatchObject({ status: 'deferred' });
  // What the slow one had read is out of date by then; it looks again like any document that comes back.
  expect(await later).toMatchObject({ status: 'elsewhere' });
  await quick.loseClaim();
  expect(await slow.claim()).toBe(true);
  expect(await slow.deliver()).toMatchObject({ status: 'sent' });
  const text = (await simpleParser(messages[0] ?? Buffer.alloc(0))).text?.replaceAll(/\s+/g, ' ');
  expect(text).toContain('The bank details in the attached PDF are out of date.');
  expect(text).not.toContain('Account number');
});

test('a worker that has lost its lock starts no e-mail', async () => {
  await closeJuly();
  let sent = 0;
  const lost = await hire({
    send: async () => {
      sent += 1;
      return SENT;
    },
  });
  await lost.loseClaim();
  expect(await lost.deliver()).toMatchObject({ status: 'elsewhere' });
  expect(sent).toBe(0);
  expect(await statuses()).toEqual(['queued']);
});

// --- A worker that stays --------------------------------------------------------------------------------------------

/** Runs a standing worker until the action is over. */
async function whileWatching(action: (deliveries: Delivery[]) => Promise<void>): Promise<void> {
  const stopping = new AbortController();
  const deliveries: Delivery[] = [];
  const watching = deliverForever({ ...world, onDelivery: (each) => deliveries.push(each) }, stopping.signal);
  try {
    await action(deliveries);
  } finally {
    stopping.abort();
    server.dropConnections(); // it would wait for an e-mail that hangs
    await watching;
  }
}

async function until(happened: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 20_000;
  while (!(await happened())) {
    if (Date.now() > deadline) throw new Error('it did not happen within 20 seconds');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test('a standing worker sends what was there before it and what is issued while it stands, and stops when asked', async () => {
  await closeJuly(2);
  await whileWatching(async () => {
    await until(() => allSent(2));
    world.at('2026-09-01T10:00:00Z');
    await world.rows([quote({ accepted_at: '2026-08-10T12:00:00Z' })]);
    await world.close();
    await until(() => allSent(3));
  });
  expect(server.mails).toHaveLength(3);
});

test('an e-mail that a standing worker has to retry is not lost when another run looks at it', async () => {
  await closeJuly();
  server.behaviour = 'hang_before_data';
  const before = server.connections;
  await whileWatching(async (seen) => {
    await until(() => server.connections > before);
    // The run makes the document due again, finds that another has it, and leaves it: that attempt may fail.
    await deliverPending({ ...world, onDelivery: (each) => seen.push(each) });
    expect(seen).toEqual([]);
    server.behaviour = 'accept';
    server.dropConnections();
    await until(
      async () => (await world.sql(`SELECT FROM emails WHERE document_id IS NOT NULL AND attempts = 1`)).length === 1,
    );
    expect(await statuses()).toEqual(['queued']);
    // Nobody waits for the back-off here.
    await world.sql(`UPDATE emails SET due_at = now() WHERE status = 'queued'`);
    await until(() => allSent(1));
  });
  expect(server.mails).toHaveLength(1);
});
