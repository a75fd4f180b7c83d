/** Signed e-mails, checked by a verifier of their own, written from RFC 6376 and not from the library that signs. */
import { createHash, createPublicKey, generateKeyPairSync, verify as verifySignature } from 'node:crypto';
import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readEnvironment } from '../../src/config/environment.ts';
import { dkimRecord } from '../../src/mail/dkim.ts';
import type { MailServer } from '../support/mail-server.ts';
import { freshMailWorld } from '../support/mail-world.ts';
import { command } from '../support/program.ts';
import { partner, quote, type World } from '../support/world.ts';

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });

let server: MailServer;
let world: World;
freshMailWorld((opened) => {
  ({ world, server } = opened);
  world.environment = { ...world.environment, dkimKey: privateKey };
});

const oneSpace = (text: string) => text.replace(/\r\n(?=[ \t])/g, '').replace(/[ \t]+/g, ' ');

/** Section 3.4.2: relaxed headers. */
function relaxedHeader(header: string): string {
  const colon = header.indexOf(':');
  return `${header.slice(0, colon).trim().toLowerCase()}:${oneSpace(header.slice(colon + 1)).trim()}`;
}

/** Section 3.4.4: relaxed body. */
const relaxedBody = (body: string) =>
  body
    .split('\r\n')
    .map((line) => line.replace(/[ \t]+/g, ' ').replace(/ $/, ''))
    .join('\r\n')
    .replace(/(\r\n)+$/, '') + (body === '' ? '' : '\r\n');

/** Section 6.1.3, over bytes as latin1; says what is wrong, or 'pass'. */
function check(raw: Buffer, record: string | undefined): { result: string; tags: Map<string, string> } {
  const text = raw.toString('latin1');
  const end = text.indexOf('\r\n\r\n');
  const headers = text.slice(0, end).split(/\r\n(?![ \t])/);
  const signature = headers.find((each) => /^dkim-signature:/i.test(each));
  if (signature === undefined) return { result: 'no signature', tags: new Map() };
  const tagsOf = (list: string) =>
    new Map(
      list
        .split(';')
        .map((tag) => tag.trim())
        .filter((tag) => tag !== '')
        .map((tag) => [tag.slice(0, tag.indexOf('=')).trim(), tag.slice(tag.indexOf('=') + 1).replace(/\s+/g, '')]),
    );
  const tags = tagsOf(oneSpace(signature.slice(signature.indexOf(':') + 1)));
  const key = createPublicKey({
    key: Buffer.from(tagsOf(record ?? '').get('p') ?? '', 'base64'),
    ...{ format: 'der', type: 'spki' },
  });
  const bodyHash = createHash('sha256')
    .update(relaxedBody(text.slice(end + 4)), 'latin1')
    .digest('base64');
  if (bodyHash !== tags.get('bh')) return { result: 'the body was changed', tags };
  const used = new Map<string, number>();
  const signed = (tags.get('h') ?? '').split(':').map((name) => {
    const known = headers.filter((each) => each.toLowerCase().startsWith(`${name.toLowerCase()}:`)).reverse();
    const nth = used.get(name) ?? 0;
    used.set(name, nth + 1);
    return known[nth] === undefined ? '' : `${relaxedHeader(known[nth])}\r\n`;
  });
  const unsigned = relaxedHeader(signature.replace(/(;\s*b=)[^;]*/, '$1'));
  const data = Buffer.from(signed.join('') + unsigned, 'latin1');
  const holds = verifySignature('sha256', data, key, Buffer.from(tags.get('b') ?? '', 'base64'));
  return { result: holds ? 'pass' : 'the headers were changed', tags };
}

async function deliver(): Promise<Buffer> {
  const invoicing_contact = { name: 'Zoë Müller, AP', email: 'ap@partner.example', cc: ['boss@partner.example'] };
  await world.partners([partner({ name: 'Kino & Söhne', invoicing_contact })]);
  await world.rows([quote()]);
  await world.close();
  await world.deliver();
  return server.mails.at(-1)?.raw ?? Buffer.alloc(0);
}

test('an invoice is signed for the domain of its sender, and an independent verifier accepts it', async () => {
  const raw = await deliver();
  const record = dkimRecord(world);
  expect(record?.name).toBe(`reckoner._domainkey.${world.settings.mail_from.split('@')[1]}`);
  const { result, tags } = check(raw, record?.value);
  expect(result).toBe('pass');
  expect({ d: tags.get('d'), s: tags.get('s'), a: tags.get('a') }).toEqual({
    ...{ d: world.settings.mail_from.split('@')[1], s: 'reckoner', a: 'rsa-sha256' },
  });
  expect(tags.get('h')?.split(':')).toEqual(
    expect.arrayContaining(['from', 'to', 'cc', 'subject', 'date', 'message-id']),
  );
});

test('whoever changes the text, a header or the attached invoice breaks the signature', async () => {
  const raw = (await deliver()).toString('latin1');
  const value = dkimRecord(world)?.value;
  const changed = (from: RegExp, to: string) => {
    const other = raw.replace(from, to);
    expect(other).not.toBe(raw);
    return check(Buffer.from(other, 'latin1'), value).result;
  };
  expect(changed(/^Subject: .*$/m, 'Subject: Our bank details have changed')).toBe('the headers were changed');
  expect(changed(/^From: .*$/m, 'From: billing@evil.example')).toBe('the headers were changed');
  expect(changed(/invoice/, 'voice')).toBe('the body was changed');
});

test('a signed e-mail that is repeated has the same bytes, signature included', async () => {
  server.behaviour = 'drop_after_data';
  const first = await deliver();
  server.behaviour = 'accept';
  world.at('2026-08-02T10:00:00Z');
  await world.deliver();
  expect(server.mails.at(-1)?.raw.equals(first)).toBe(true);
  expect(check(first, dkimRecord(world)?.value).result).toBe('pass');
});

test('a key that recipients would not accept is refused with what to do', () => {
  const folder = mkdtempSync(join(tmpdir(), 'reckoner-dkim-'));
  const keyOf = (key: string, mode = 0o600) => {
    const file = join(folder, `${Math.random()}.pem`);
    writeFileSync(file, key);
    chmodSync(file, mode);
    return readEnvironment({ DKIM_PRIVATE_KEY_FILE: file }).dkimKey;
  };
  const pem = (pair: { privateKey: typeof privateKey }) =>
    String(pair.privateKey.export({ format: 'pem', type: 'pkcs8' }));
  expect(() => keyOf(pem(generateKeyPairSync('rsa', { modulusLength: 1024 })))).toThrow(
    /1024 bits.*at least 2048 bits/,
  );
  expect(() => keyOf(pem(generateKeyPairSync('ed25519')))).toThrow(/of the type ed25519.*openssl genrsa/);
  expect(() => keyOf(pem({ privateKey }), 0o644)).toThrow(/chmod 600/);
  expect(keyOf(pem({ privateKey }))?.equals(privateKey)).toBe(true);
});

test('mail test sends a signed message by the mail server and says what it answered', async () => {
  const env = {
    ...{ RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, SMTP_URL: server.url },
    DKIM_PRIVATE_KEY: String(privateKey.export({ format: 'pem', type: 'pkcs8' })),
  };
  const ran = await command(['--json', 'mail', 'test', 'you@partner.example'], { env });
  expect({ status: ran.status, report: ran.json() }).toMatchObject({
    status: 0,
    report: { to: 'you@partner.example', by: 'smtp', outcome: 'sent', reply: expect.stringContaining('250') },
  });
  expect(check(server.mails.at(-1)?.raw ?? Buffer.alloc(0), dkimRecord(world)?.value).result).toBe('pass');
  server.behaviour = 'refuse_recipients';
  const refused = await command(['mail', 'test', 'you@partner.example'], { env });
  expect(refused).toMatchObject({ status: 1, stdout: expect.stringContaining('550 5.1.1 no such user') });
  expect(await command(['mail', 'test', 'you@real.org'], { env })).toMatchObject({ status: 3 });
});
