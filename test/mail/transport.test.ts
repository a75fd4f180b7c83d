import { createSocket } from 'node:dgram';
import { getServers, setServers } from 'node:dns';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { composeMessage, envelopeOf, type MessageParts } from '../../src/mail/message.ts';
import { sandboxAllows } from '../../src/mail/sandbox.ts';
import {
  type OutgoingMessage,
  openTransport,
  type Patience,
  serverOf,
  type Transport,
  type TransportOptions,
} from '../../src/mail/transport.ts';
import { type Behaviour, type MailServer, type MailServerOptions, startMailServer } from '../support/mail-server.ts';

const parts: MessageParts = {
  messageId: '<INV-2026-000042.1@billing.example>',
  date: '2026-11-01T06:00:00Z',
  from: { name: 'Fairweather Protection, Inc.', address: 'billing@fairweather.example' },
  to: { name: '"a@x, b@y"', address: 'ap@partner.example' },
  cc: [],
  content: { subject: 'Invoice', text: 'Dear all,\n.\n..two dots\n', html: '<p>Dear all</p>\n' },
  attachments: [],
};

const message = async (more: Partial<MessageParts> = {}): Promise<OutgoingMessage> => {
  const whole = { ...parts, ...more };
  return { messageId: whole.messageId, envelope: envelopeOf(whole), raw: composeMessage(whole) };
};

/** Several times what the sockets between here and the server hold. */
const large = () =>
  message({
    attachments: [{ filename: 'a.pdf', contentType: 'application/pdf', content: Buffer.alloc(20_000_000, 7) }],
  });

const hasty: Partial<Patience> = { connection: 600, greeting: 400, socket: 500, answer: 500 };

describe('an SMTP server', () => {
  let server: MailServer;
  let transport: Transport;
  const opened: { close(): unknown }[] = [];

  const start = async (options: MailServerOptions = {}, more: Partial<TransportOptions> = {}) => {
    server = await startMailServer(options);
    transport = openTransport({ smtpUrl: server.url, outbox: '/nowhere', patience: hasty, ...more });
    opened.push(transport, server);
  };
  afterEach(async () => {
    for (const each of opened.splice(0)) await each.close();
  });

  it('receives the exact bytes of a message, for exactly its recipients', async () => {
    await start();
    const sent = await message({ cc: ['boss@partner.example'] });
    expect(await transport.send(sent)).toEqual({ outcome: 'sent', reply: '250 2.0.0 queued as 1' });
    expect(server.mails).toHaveLength(1);
    const [mail] = server.mails;
    expect(mail?.from).toBe('billing@fairweather.example');
    expect(mail?.to).toEqual(['ap@partner.example', 'boss@partner.example']);
    expect(mail?.raw.equals(sent.raw)).toBe(true);
    expect(mail?.parsed.text).toBe(parts.content.text);
    expect(transport.name).toBe('smtp');
  });

  it('receives a large message completely', async () => {
    await start({}, { patience: {} });
    const sent = await large();
    expect((await transport.send(sent)).outcome).toBe('sent');
    expect(server.mails[0]?.raw.equals(sent.raw)).toBe(true);
  });

  it('is not asked by each of many messages while no connection to it comes about', async () => {
    await start({}, { connections: 2 });
    server.behaviour = 'never_greet';
    const began = Date.now();
    const outcomes = await Promise.all(Array.from({ length: 40 }, async () => transport.send(await message())));
    expect(new Set(outcomes.map(({ outcome }) => outcome))).toEqual(new Set(['deferred']));
    // Two wait for their greeting, and those that begin while the second still waits; without the limit it would be forty.
    expect(server.connections).toBeLessThanOrEqual(4);
    expect(Date.now() - began).toBeLessThan(5000);
  });

  it('is found by a name that this machine knows, whatever the DNS does', async () => {
    await start();
    const silent = createSocket('udp4');
    await new Promise<void>((bound) => silent.bind(0, '127.0.0.1', bound));
    const servers = getServers();
    setServers([`127.0.0.1:${silent.address().port}`]);
    try {
      const named = openTransport({
        smtpUrl: server.url.replace('127.0.0.1', 'localhost'),
        outbox: '/nowhere',
        patience: hasty,
      });
      opened.push(named);
      expect((await named.send(await message())).outcome).toBe('sent');
    } finally {
      setServers(servers);
      silent.close();
    }
  });

  it('is left in a bounded time when the program is to end, and what may have arrived is said to', async () => {
    for (const [behaviour, outcome] of [
      ['never_greet', 'deferred'],
      ['hang_before_data', 'deferred'],
      ['hang_after_data', 'unclear'],
    ] as const) {
      await start({}, { patience: { connection: 60_000, greeting: 60_000 } });
      server.behaviour = behaviour;
      const sending = transport.send(await message());
      await new Promise((go) => setTimeout(go, 300));
      const began = Date.now();
      transport.close(200);
      expect(await sending).toEqual({ outcome, reply: 'the program is ending' });
      expect(Date.now() - began).toBeLessThan(3000);
      expect((await transport.send(await message())).outcome).toBe('deferred');
    }
  });

  it('receives messages in sequence over one connection, and parallel ones over few', async () => {
    await start({}, { connections: 2 });
    await transport.send(await message());
    await transport.send(await message());
    expect(server.connections).toBe(1);
    const outcomes = await Promise.all(Array.from({ length: 20 }, async () => transport.send(await message())));
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(Array.from({ length: 20 }, () => 'sent'));
    expect(server.connections).toBe(2);
    expect(server.mails).toHaveLength(22);
  });

  it('receives a message over a new connection if it closed the idle one', async () => {
    await start();
    await transport.send(await message());
    server.dropConnections();
    expect((await transport.send(await message())).outcome).toBe('sent');
    await new Promise((later) => setTimeout(later, 50));
    server.dropConnections();
    await new Promise((later) => setTimeout(later, 50));
    expect((await transport.send(await message())).outcome).toBe('sent');
    expect(server.mails).toHaveLength(3);
  });

  const outcomes: readonly [does: string, Behaviour, outcome: string, reply: RegExp][] = [
    ['turns us away', 'refuse_greeting', 'deferred', /554 no mail from your network/],
    ['never greets', 'never_greet', 'deferred', /Greeting never received/],
    ['refuses the sender, which is our setting', 'refuse_sender', 'deferred', /550 5\.1\.8 sender not allowed/],
    [
      'asks to try the recipient later',
      'defer_recipients',
      'deferred',
      /ap@partner\.example was rejected: 451 4\.7\.1/,
    ],
    ['does not know the recipient', 'refuse_recipients', 'refused', /ap@partner\.example was rejected: 550 5\.1\.1/],
    ['falls silent before the message', 'hang_before_data', 'deferred', /Timeout/],
    ['is lost before the message', 'drop_before_data', 'deferred', /Connection closed unexpectedly/],
    ['refuses the message', 'refuse_message', 'refused', /554 5\.6\.0 message refused/],
    ['asks to try the message later', 'defer_message', 'deferred', /452 4\.3\.1 no space left/],
    ['closes instead of taking the message', 'close_after_data', 'deferred', /421 4\.3\.2 shutting down/],
    [
      'is lost when it has the whole message',
      'drop_after_data',
      'unclear',
      /Connection closed unexpectedly|ECONNRESET/,
    ],
    ['never answers the whole message', 'hang_after_data', 'unclear', /Timeout/],
  ];

  it.each(outcomes)('that %s (%s): the message is %s', async (_, behaviour, outcome, reply) => {
    await start();
    server.behaviour = behaviour;
    const told = await transport.send(await message());
    expect(told.outcome).toBe(outcome);
    expect(told.reply).toMatch(reply);
    // Nothing is repeated behind the caller's back, and the next message is none the worse for it.
    expect(server.connections).toBe(1);
    server.behaviour = 'accept';
    expect((await transport.send(await message())).outcome).toBe('sent');
  });

  it('that disconnects in the middle of a message cannot have accepted it', async () => {
    await start();
    server.behaviour = 'drop_during_data';
    expect((await transport.send(await large())).outcome).toBe('deferred');
    expect(server.mails).toHaveLength(0);
  });

  it('that stops reading in the middle of a message cannot have accepted it', async () => {
    await start();
    server.behaviour = 'hang_during_data';
    const { outcome, reply } = await transport.send(await large());
    expect([outcome, reply]).toEqual(['deferred', 'Timeout']);
  });

  it('that disconnects after the end of the message was sent may have accepted it', async () => {
    await start();
    server.behaviour = 'drop_during_data';
    expect((await transport.send(await message())).outcome).toBe('unclear');
  });

  it('that drops a reused connection leaves the outcome as uncertain as on a new one', async () => {
    await start();
    await transport.send(await message());
    server.behaviour = 'drop_after_data';
    expect((await transport.send(await message())).outcome).toBe('unclear');
    expect(server.connections).toBe(1);
    expect(server.mails).toHaveLength(2);
  });

  it('has more time to answer after a message than after any other command', async () => {
    await start({}, { patience: { ...hasty, socket: 250, answer: 1200 } });
    server.behaviour = 'hang_after_data';
    const began = performance.now();
    expect((await transport.send(await message())).outcome).toBe('unclear');
    expect(performance.now() - began).toBeGreaterThan(1100);
  });

  it('that keeps the connection busy forever is abandoned', async () => {
    const trickling = createServer((socket) => {
      socket.write('220 mail.test\r\n');
      let data = false;
      socket.on('error', () => {});
      socket.on('data', (bytes) => {
        if (data) return;
        if (/^DATA/m.test(bytes.toString())) {
          data = true;
          socket.write('354 go ahead\r\n');
          const timer = setInterval(() => socket.write('250-still thinking\r\n'), 20);
          socket.on('close', () => clearInterval(timer));
        } else socket.write('250 ok\r\n');
      });
    });
    await new Promise<void>((listening) => trickling.listen(0, '127.0.0.1', listening));
    const { port } = trickling.address() as { port: number };
    transport = openTransport({
      smtpUrl: `smtp://127.0.0.1:${port}`,
      outbox: '/nowhere',
      patience: { ...hasty, message: 700 },
    });
    opened.push(transport, { close: () => trickling.close() });
    const { outcome, reply } = await transport.send(await message());
    expect([outcome, reply]).toEqual(['unclear', 'the mail server did not accept the message within 0.7 s']);
  });

  it('that disconnects in the middle of its refusal may have accepted the message', async () => {
    const cutting = createServer((socket) => {
      socket.write('220 mail.test\r\n');
      socket.on('error', () => {});
      socket.on('data', (bytes) => {
        const text = bytes.toString('latin1');
        if (text.endsWith('\r\n.\r\n')) socket.end('554 5.6');
        else socket.write(/^DATA/.test(text) ? '354 go ahead\r\n' : '250 ok\r\n');
      });
    });
    await new Promise<void>((listening) => cutting.listen(0, '127.0.0.1', listening));
    const { port } = cutting.address() as { port: number };
    transport = openTransport({ smtpUrl: `smtp://127.0.0.1:${port}`, outbox: '/nowhere', patience: hasty });
    opened.push(transport, { close: () => cutting.close() });
    expect((await transport.send(await message())).outcome).toBe('unclear');
  });

  it('that falls silent costs a process one wait: later messages are deferred at once, also by another transport', async () => {
    await start({}, { patience: { ...hasty, socket: 700 } });
    server.behaviour = 'hang_before_data';
    const began = performance.now();
    const first = await Promise.all(Array.from({ length: 4 }, async () => transport.send(await message())));
    for (let more = 0; more < 30; more += 1) first.push(await transport.send(await message()));
    const other = openTransport({ smtpUrl: server.url, outbox: '/nowhere', patience: { ...hasty, socket: 700 } });
    opened.push(other);
    first.push(await other.send(await message()));
    expect(performance.now() - began).toBeLessThan(2000);
    expect(new Set(first.map(({ outcome, reply }) => `${outcome}: ${reply}`))).toEqual(new Set(['deferred: Timeout']));
    expect(server.connections).toBe(4);
  });

  it('that does not answer: the message is deferred', async () => {
    const port = await freePort();
    transport = openTransport({ smtpUrl: `smtp://127.0.0.1:${port}`, outbox: '/nowhere', patience: hasty });
    const { outcome, reply } = await transport.send(await message());
    expect(outcome).toBe('deferred');
    expect(reply).toContain('ECONNREFUSED');
  });

  it('whose name does not resolve: the message is deferred', async () => {
    transport = openTransport({ smtpUrl: 'smtp://no-such-host.invalid', outbox: '/nowhere', patience: hasty });
    expect((await transport.send(await message())).outcome).toBe('deferred');
  });

  it('that announces a size limit below the message refuses it before it is sent', async () => {
    await start({ size: 1000 });
    const { outcome, reply } = await transport.send(await large());
    expect([outcome, reply]).toEqual(['refused', 'Message size larger than allowed 1000']);
  });

  describe('that rejects some of the recipients', () => {
    const toBoth = () => message({ cc: ['boss@partner.example'] });

    it('sends the message to the others, and reports who was rejected', async () => {
      await start();
      server.replies.set('boss@partner.example', 550);
      expect(await transport.send(await toBoth())).toEqual({
        outcome: 'sent',
        reply: 'boss@partner.example was rejected: 550 no thanks, boss@partner.example; 250 2.0.0 queued as 1',
      });
      expect(server.mails.map(({ to }) => to)).toEqual([['ap@partner.example']]);
    });

    it('and all of them permanently: the message is refused', async () => {
      await start();
      server.replies.set('ap@partner.example', 550).set('boss@partner.example', 553);
      expect(await transport.send(await toBoth())).toEqual({
        outcome: 'refused',
        reply:
          'ap@partner.example was rejected: 550 no thanks, ap@partner.example; boss@partner.example was rejected: 553 no thanks, boss@partner.example',
      });
    });

    it('and one of them temporarily: the message is deferred', async () => {
      await start();
      server.replies.set('ap@partner.example', 550).set('boss@partner.example', 451);
      expect((await transport.send(await toBoth())).outcome).toBe('deferred');
      expect(server.mails).toHaveLength(0);
    });
  });

  describe('that requires a password', () => {
    const secret = 'h/u:n@ter 2';
    const withPassword = async (password: string | undefined, options: MailServerOptions = {}) => {
      await start({ auth: { user: 'billing', password: secret }, ...options });
      const login = password === undefined ? '' : `billing:${encodeURIComponent(password)}@`;
      transport = openTransport({
        smtpUrl: `smtp://${login}127.0.0.1:${server.port}`,
        outbox: '/nowhere',
        patience: hasty,
      });
      opened.push(transport);
      return transport.send(await message());
    };

    it('accepts the message with the right one', async () => {
      expect((await withPassword(secret)).outcome).toBe('sent');
    });

    it('defers it with a wrong one, which is not the fault of the recipient', async () => {
      const { outcome, reply } = await withPassword('wrong-password');
      expect(outcome).toBe('deferred');
      expect(reply).toMatch(/Invalid login: 535 5\.7\.8 authentication failed/);
      expect(reply).not.toContain('wrong-password');
    });

    it('defers it without one', async () => {
      const { outcome, reply } = await withPassword(undefined);
      expect(outcome).toBe('deferred');
      expect(reply).toMatch(/530/);
    });

    it('defers it if the certificate cannot be trusted', async () => {
      const { outcome, reply } = await withPassword(secret, { selfSignedTls: true });
      expect(outcome).toBe('deferred');
      expect(reply).toMatch(/certificate/);
    });
  });

  it('loses its connections when the transport closes, and waiting messages are deferred', async () => {
    await start({}, { connections: 1 });
    await transport.send(await message());
    const [first, second] = [transport.send(await message()), transport.send(await message())];
    transport.close();
    expect((await first).outcome).toBe('sent');
    expect(await second).toEqual({ outcome: 'deferred', reply: 'the program is ending' });
    expect(await transport.send(await message())).toEqual({ outcome: 'deferred', reply: 'the program is ending' });
    expect(server.mails).toHaveLength(2);
  });
});

describe('SMTP_URL', () => {
  it('is smtp:// with STARTTLS, or smtps:// with TLS from the start', () => {
    expect(serverOf('smtp://mail.example').connection).toMatchObject({ host: 'mail.example', secure: false });
    expect(serverOf('smtps://mail.example:465').connection).toMatchObject({ port: 465, secure: true });
  });

  it('sends mail to another machine over TLS only, unless it allows otherwise', () => {
    const required = (url: string) => serverOf(url).connection.requireTLS;
    expect(required('smtp://user:secret@mail.example')).toBe(true);
    expect(required('smtp://user:secret@mail.example?ignoreTLS=true')).toBe(true);
    expect(required('smtp://user:secret@mail.example?requireTLS=false')).toBe(false);
    expect(required('smtp://mail.example')).toBe(true);
    expect(required('smtp://mail.example?requireTLS=false')).toBe(false);
    expect(required('smtp://user:secret@127.0.0.1:1025')).toBe(false);
    expect(required('smtp://user:secret@localhost')).toBe(false);
    expect(required('smtp://user:secret@[::1]')).toBe(false);
    expect(required('smtp://user:secret@127.evil.example')).toBe(true);
  });

  it('cannot enable a log that would contain messages', () => {
    const { connection } = serverOf('smtp://mail.example?logger=true&debug=true&transactionLog=true');
    expect(connection).toMatchObject({ logger: false, debug: false, transactionLog: false });
  });

  it.each(['smtp://user:secret@', 'smtp://', 'smtp://user:sec ret@a b', 'smtp://user:secret@mail.example:port'])(
    'that cannot be read (%s) is refused without repeating it',
    (smtpUrl) => {
      let refused: unknown;
      try {
        openTransport({ smtpUrl, outbox: '/nowhere' });
      } catch (error) {
        refused = error;
      }
      expect(refused).toMatchObject({ code: 'environment_invalid', facts: { variable: 'SMTP_URL' } });
      const { message: sentence, cause } = refused as Error;
      expect(`${sentence} ${JSON.stringify(refused)} ${JSON.stringify(cause)}`).not.toMatch(/sec ?ret/);
    },
  );
});

describe('the outbox', () => {
  let home: string;
  let outbox: string;
  let transport: Transport;
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'outbox-'));
    outbox = join(home, 'deep', 'outbox');
    transport = openTransport({ outbox });
  });
  afterEach(() => rmSync(home, { recursive: true }));

  it('keeps each message as a file named by its Message-ID, and makes its folder', async () => {
    const sent = await message();
    const path = join(outbox, 'INV-2026-000042.1@billing.example.eml');
    expect(await transport.send(sent)).toEqual({
      outcome: 'sent',
      reply: 'outbox/INV-2026-000042.1@billing.example.eml',
    });
    expect(readFileSync(path).equals(sent.raw)).toBe(true);
    expect(transport.name).toBe('outbox');
  });

  it('holds a message once, however often it is sent', async () => {
    const sent = await message();
    await Promise.all(Array.from({ length: 8 }, () => transport.send(sent)));
    expect(readdirSync(outbox)).toEqual(['INV-2026-000042.1@billing.example.eml']);
    expect(readFileSync(join(outbox, readdirSync(outbox)[0] ?? '')).equals(sent.raw)).toBe(true);
  });

  it('never contains a partial message', async () => {
    const raw = Buffer.alloc(3_000_000, 'x');
    const sent = { ...(await message()), raw };
    let sending = true;
    const all = Promise.all(Array.from({ length: 20 }, () => transport.send(sent))).finally(() => {
      sending = false;
    });
    let looks = 0;
    while (sending) {
      await new Promise((later) => setTimeout(later, 1));
      for (const name of eml(outbox)) {
        expect(statSync(join(outbox, name)).size).toBe(raw.length);
        looks += 1;
      }
    }
    await all;
    expect(looks).toBeGreaterThan(0);
    expect(readdirSync(outbox)).toHaveLength(1);
  });

  it('stores unusual Message-IDs under distinct safe names inside its folder', async () => {
    const base = await message();
    const ids = [
      'a/../../b@x.example',
      'a_.._.._b@x.example',
      '../c@x.example',
      '.hidden@x.example',
      `${'l'.repeat(300)}@x`,
    ];
    for (const messageId of ids) expect((await transport.send({ ...base, messageId })).outcome).toBe('sent');
    const names = readdirSync(outbox);
    expect(names).toHaveLength(ids.length);
    for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_][A-Za-z0-9@._+-]{1,220}\.eml$/);
    expect(readdirSync(home)).toEqual(['deep']);
  });

  it('that cannot be created: the message is deferred', async () => {
    writeFileSync(join(home, 'deep'), 'a file where a folder should be');
    const { outcome, reply } = await transport.send(await message());
    expect(outcome).toBe('deferred');
    expect(reply).toMatch(/EEXIST|ENOTDIR/);
  });

  it('that cannot hold the file: the message is deferred and nothing half-written stays', async () => {
    mkdirSync(join(outbox, 'INV-2026-000042.1@billing.example.eml', 'in the way'), { recursive: true });
    const { outcome, reply } = await transport.send(await message());
    expect(outcome).toBe('deferred');
    expect(reply).toMatch(/EISDIR|ENOTEMPTY|EEXIST/);
    expect(readdirSync(outbox)).toEqual(['INV-2026-000042.1@billing.example.eml']);
  });
});

describe('sandbox mail', () => {
  const patterns = ['.example', '.mail.test', 'partner.co', 'Jo@house.org', '@shop.net'];

  it.each([
    ['ap@partner.example', 'a domain below .example'],
    ['ap@a.b.example', 'a domain further below it'],
    ['AP@Partner.EXAMPLE', 'whatever its case'],
    ['x@mail.test', 'the domain that an entry with a dot names'],
    ['x@in.mail.test', 'and those below it'],
    ['x@partner.co', 'an exact domain'],
    ['jo@HOUSE.org', 'an exact address'],
    ['x@shop.net', 'a domain written with its @'],
  ])('may go to %s: %s', (address) => {
    expect(sandboxAllows(address, patterns)).toBe(true);
  });

  it.each([
    ['x@not.anexample', 'a name that only ends alike'],
    ['x@my-example.com', 'a look-alike'],
    ['x@example.com', 'another top level'],
    ['x@partner.example.com', 'the entry is not at its end'],
    ['x@othermail.test', 'ends alike, but is another domain'],
    ['x@elsewhere.test', 'beside the entry'],
    ['x@sub.partner.co', 'below an exact domain'],
    ['joe@house.org', 'another person'],
    ['x@house.org', 'another person'],
    ['x@in.shop.net', 'below an exact domain'],
    ['a@real.com, b@partner.example', 'two addresses'],
    ['a@real.com b@partner.example', 'two addresses'],
    ['Ann <a@partner.example>', 'more than an address'],
    ['a@partner.example\n', 'more than an address'],
    ['', 'none'],
  ])('may not go to %j: %s', (address) => {
    expect(sandboxAllows(address, patterns)).toBe(false);
  });

  it('goes nowhere without entries, and an empty entry is none', () => {
    for (const none of [[], [''], ['.'], ['@'], [' ']]) expect(sandboxAllows('ap@partner.example', none)).toBe(false);
  });
});

const eml = (folder: string): string[] => {
  try {
    return readdirSync(folder).filter((name) => name.endsWith('.eml'));
  } catch {
    return [];
  }
};

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as { port: number };
  await new Promise<void>((closed) => server.close(() => closed()));
  return port;
}
