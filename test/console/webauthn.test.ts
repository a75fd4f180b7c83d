/** Registration of passkeys and sign-in with them by the letter of WebAuthn Level 3, with an authenticator of this test. */
import { createHash, createSign, generateKeyPairSync, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ADMINISTRATOR, Browser, invite, type Page, serveConsole, signedIn } from '../support/console.ts';
import type { Served } from '../support/service.ts';
import { openWorld, type World } from '../support/world.ts';

let world: World;
let served: Served;
let url: string;
beforeAll(async () => {
  world = await openWorld();
  await invite(world, ADMINISTRATOR);
  served = await serveConsole(world);
  url = served.url.replace('127.0.0.1', 'localhost');
});
afterAll(async () => {
  await served.end();
  await world.end();
});

const sha256 = (text: string | Buffer) => createHash('sha256').update(text).digest();
const base64url = (bytes: Buffer | string) => Buffer.from(bytes).toString('base64url');
/** A byte string of CBOR (RFC 8949). */
const cborBytes = (bytes: Buffer) => Buffer.concat([Buffer.from([0x59, bytes.length >> 8, bytes.length & 255]), bytes]);

type ClientData = Readonly<Record<string, unknown>>;

class Authenticator {
  readonly id: Buffer;
  readonly #keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  handle = '';
  #count = 0;

  constructor(id = randomBytes(32)) {
    this.id = id;
  }

  register(options: { challenge: string; user: { id: string } }, more: ClientData = {}) {
    this.handle = options.user.id;
    const { x = '', y = '' } = this.#keys.publicKey.export({ format: 'jwk' });
    const [px, py] = [x, y].map((each) => Buffer.concat([Buffer.from([0x58, 32]), Buffer.from(each, 'base64url')]));
    // The COSE key {1: 2, 3: -7, -1: 1, -2: x, -3: y}.
    const key = Buffer.concat([
      Buffer.from('a5010203262001', 'hex'),
      Buffer.from([0x21]),
      px as Buffer,
      Buffer.from([0x22]),
      py as Buffer,
    ]);
    const length = Buffer.from([0, this.id.length]);
    const authData = Buffer.concat([this.#head(0x45), Buffer.alloc(16), length, this.id, key]);
    // {"fmt": "none", "attStmt": {}, "authData": …}
    const text = (name: string) => Buffer.concat([Buffer.from([0x60 + name.length]), Buffer.from(name)]);
    const attestation = Buffer.concat([
      ...[Buffer.from([0xa3]), text('fmt'), text('none'), text('attStmt'), Buffer.from([0xa0])],
      ...[text('authData'), cborBytes(authData)],
    ]);
    const response = {
      clientDataJSON: base64url(clientData('webauthn.create', options.challenge, more)),
      attestationObject: base64url(attestation),
    };
    return this.#answer(response);
  }

  signIn({ challenge }: { challenge: string }, userHandle: string | undefined, more: ClientData = {}) {
    const data = this.#head(0x05);
    const client = clientData('webauthn.get', challenge, more);
    const signature = createSign('sha256')
      .update(Buffer.concat([data, sha256(client)]))
      .sign(this.#keys.privateKey);
    return this.#answer({
      clientDataJSON: base64url(client),
      ...{ authenticatorData: base64url(data), signature: base64url(signature), userHandle },
    });
  }

  #head(flags: number): Buffer {
    this.#count += 1;
    const count = Buffer.alloc(4);
    count.writeUInt32BE(this.#count);
    return Buffer.concat([sha256('localhost'), Buffer.from([flags]), count]);
  }

  #answer(response: object) {
    const id = base64url(this.id);
    return { id, rawId: id, type: 'public-key', response, clientExtensionResults: {} };
  }
}

const clientData = (type: string, challenge: string, more: ClientData) =>
  JSON.stringify({ type, challenge, origin: url, crossOrigin: false, ...more });

async function browserOf(login: string): Promise<Browser> {
  const browser = new Browser(url);
  await browser.post(await invite(world, login));
  await browser.get('/console/account');
  return browser;
}

async function register(browser: Browser, authenticator: Authenticator, more?: ClientData): Promise<Page> {
  const options = JSON.parse((await browser.json('/console/account/passkeys/options', {})).text);
  const credential = authenticator.register(options, more);
  return browser.json('/console/account/passkeys', { name: 'Key', credential });
}

async function signIn(authenticator: Authenticator, userHandle: string | undefined, more?: ClientData): Promise<Page> {
  const browser = new Browser(url);
  const options = JSON.parse((await browser.json('/console/sign-in/passkey/options', {})).text);
  return browser.json('/console/sign-in/passkey', { credential: authenticator.signIn(options, userHandle, more) });
}

const refused = ({ status, text }: Page) => [status, JSON.parse(text).code];
const PASSKEY_REFUSED = [403, 'passkey_refused'];

test('a registered passkey signs in, and only with the user handle of its user', async () => {
  const authenticator = new Authenticator();
  expect((await register(await browserOf('mara@issuer.example'), authenticator)).status).toBe(200);
  expect((await signIn(authenticator, authenticator.handle)).status).toBe(200);
  for (const handle of [undefined, '', base64url('user-1'), base64url('user-99')])
    expect([handle, ...refused(await signIn(authenticator, handle))]).toEqual([handle, ...PASSKEY_REFUSED]);
});

test('a credential that another user registered is refused, also after it was removed', async () => {
  const authenticator = new Authenticator();
  const first = await browserOf('first@issuer.example');
  await register(first, authenticator);
  const second = await browserOf('second@issuer.example');
  const answer = await register(second, authenticator);
  expect([...refused(answer), answer.text.includes('registered here before')]).toEqual([...PASSKEY_REFUSED, true]);
  const [{ passkey_id } = { passkey_id: 0 }] = await world.sql<{ passkey_id: number }>(
    `SELECT passkey_id::int FROM passkeys ORDER BY passkey_id DESC LIMIT 1`,
  );
  await first.get('/console/account');
  await first.post('/console/account/passkeys/remove', { passkey: `${passkey_id}` });
  expect(refused(await register(second, authenticator))).toEqual(PASSKEY_REFUSED);
  expect(await world.sql(`SELECT FROM audit_events WHERE action = 'user.add_passkey'`)).toHaveLength(2);
});

test('an answer from a frame of another site registers no passkey and signs nobody in', async () => {
  const browser = await browserOf('frame@issuer.example');
  const authenticator = new Authenticator();
  for (const more of [{ crossOrigin: true }, { topOrigin: 'https://evil.example' }])
    expect(refused(await register(browser, authenticator, more))).toEqual(PASSKEY_REFUSED);
  expect((await register(browser, authenticator)).status).toBe(200);
  for (const more of [{ crossOrigin: true }, { crossOrigin: true, topOrigin: 'https://evil.example' }])
    expect(refused(await signIn(authenticator, authenticator.handle, more))).toEqual(PASSKEY_REFUSED);
});

test.each([8, 15, 1024])('a credential id of %i bytes is refused', async (bytes) => {
  const browser = await browserOf('bytes@issuer.example');
  const authenticator = new Authenticator(Buffer.alloc(Math.min(bytes, 255), 7));
  const options = JSON.parse((await browser.json('/console/account/passkeys/options', {})).text);
  const credential = { ...authenticator.register(options), id: base64url(Buffer.alloc(bytes, 7)) };
  expect(refused(await browser.json('/console/account/passkeys', { name: 'Key', credential }))).toEqual(
    PASSKEY_REFUSED,
  );
});

test('signing out tells the browser to clear what it keeps', async () => {
  const browser = await signedIn(served, await invite(world, 'leaves@issuer.example'));
  const { headers } = await browser.post('/console/sign-out');
  expect(headers.get('clear-site-data')).toBe('"cache", "storage"');
});
