/** The token exchange: as the service's documentation has it, as stock OAuth clients use it, and as it is attacked. */
import { decodeJwt, decodeProtectedHeader, exportJWK, generateKeyPair, SignJWT } from 'jose';
import * as oauth from 'oauth4webapi';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { KeyStore } from '../../src/http/keys.ts';
import { revokeClient, rotateSecret } from '../../src/partners/clients.ts';
import { thisProcess } from '../../src/people/audit-events.ts';
import { ask, callerWith, PRICED, type Served, serveWorld } from '../support/service.ts';
import { openWorld, partner, type World } from '../support/world.ts';

let world: World;
let served: Served;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner(PRICED), partner({ ...PRICED, partner_id: 'p-2' })]);
  served = await serveWorld(world);
});
afterEach(() => world.at('2026-08-01T10:00:00Z'));
afterAll(async () => {
  await served.end();
  await world.end();
});

const exchange = (body: unknown, headers: Record<string, string> = {}) =>
  ask(`${served.url}/api/oauth/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
const invoices = (token: string, partnerId = 'p-1', url = served.url) =>
  ask(`${url}/api/v1/invoices`, { headers: { authorization: `Bearer ${token}`, 'x-service-partner-id': partnerId } });
const action = () => ({ actor: thisProcess('command'), environment: 'sandbox' as const, now: world.environment.now() });

describe('the exchange', () => {
  test('gives a bearer token for an hour for client_id and client_secret in JSON, in an uncacheable answer', async () => {
    const { client_id, client_secret } = await served.client('p-1');
    const answer = await exchange({ client_id, client_secret });
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({ access_token: expect.any(String) as string, expires_in: 3600, token_type: 'Bearer' });
    expect(answer.headers.get('cache-control')).toBe('no-store');
    const token = answer.body['access_token'] as string;
    expect(decodeProtectedHeader(token)).toMatchObject({ alg: 'ES256', typ: 'at+jwt' });
    expect(decodeJwt(token)).toMatchObject({
      sub: client_id,
      client_id,
      partner_id: 'p-1',
      aud: 'reckoner:sandbox',
      iss: 'http://127.0.0.1',
    });
    expect((await invoices(token)).status).toBe(200);
  });

  test('works with a standard OAuth client, from discovery to the token, by Basic and by form', async () => {
    const own = await serveWorld(world);
    const issuer = new URL(own.url);
    const withIssuer = await serveWorld(world, { settings: { public_url: own.url } });
    // The world behind one public address: what is asked there is answered by the server that bears its name.
    const http = {
      [oauth.allowInsecureRequests]: true,
      [oauth.customFetch]: (url: string, init: object) =>
        fetch(url.replace(own.url, withIssuer.url), init as RequestInit),
    };
    try {
      const found = await oauth.discoveryRequest(issuer, { ...http, algorithm: 'oauth2' });
      const as = await oauth.processDiscoveryResponse(issuer, found);
      const { client_id, client_secret } = await own.client('p-1');
      for (const authenticate of [oauth.ClientSecretBasic(client_secret), oauth.ClientSecretPost(client_secret)]) {
        const response = await oauth.clientCredentialsGrantRequest(
          as,
          { client_id },
          authenticate,
          new URLSearchParams(),
          http,
        );
        const token = await oauth.processClientCredentialsResponse(as, { client_id }, response);
        expect(token).toMatchObject({ token_type: 'bearer', expires_in: 3600 });
        const request = new Request(`${own.url}/api/v1/invoices`, {
          headers: { authorization: `Bearer ${token.access_token}` },
        });
        const claims = await oauth.validateJwtAccessToken(as, request, 'reckoner:sandbox', {
          ...http,
          [oauth.clockSkew]: Math.round(world.environment.now().toSeconds() - Date.now() / 1000),
        });
        expect(claims).toMatchObject({ client_id, partner_id: 'p-1' });
      }
    } finally {
      await withIssuer.end();
      await own.end();
    }
  });

  test.each([
    ['no body', '', {}, 400, 'invalid_request'],
    ['no JSON', '{', {}, 400, 'invalid_request'],
    ['a list', '[]', {}, 400, 'invalid_request'],
    ['no secret', { client_id: 'c-1' }, {}, 400, 'invalid_request'],
    ['an empty secret', { client_id: 'c-1', client_secret: '' }, {}, 400, 'invalid_request'],
    ['a number', { client_id: 1, client_secret: 2 }, {}, 400, 'invalid_request'],
    [
      'another grant',
      { client_id: 'c', client_secret: 's', grant_type: 'password' },
      {},
      400,
      'unsupported_grant_type',
    ],
    ['an unknown client', { client_id: 'c-nobody', client_secret: 's' }, {}, 401, 'invalid_client'],
    ['a client with NUL', { client_id: 'c\u0000', client_secret: 's' }, {}, 401, 'invalid_client'],
    ['a type of body that nobody reads', 'x', { 'content-type': 'text/plain' }, 400, 'invalid_request'],
    [
      'a form that says it twice',
      'client_id=a&client_id=b&client_secret=c',
      { 'content-type': 'application/x-www-form-urlencoded' },
      400,
      'invalid_request',
    ],
    [
      'JSON that says it twice',
      '{"client_id":"c","client_secret":"a","client_secret":"b"}',
      {},
      400,
      'invalid_request',
    ],
    ['brackets without end', '['.repeat(8000), {}, 400, 'invalid_request'],
    ['more than ids and secrets need', { client_id: 'c'.repeat(9000), client_secret: 's' }, {}, 413, 'invalid_request'],
    ['Basic without a colon', '', { authorization: 'Basic YWJj' }, 401, 'invalid_client'],
    [
      'Basic and a body',
      { client_id: 'x', client_secret: 'y' },
      { authorization: 'Basic YTpi' },
      400,
      'invalid_request',
    ],
  ])('refuses %s by RFC 6749', async (_, body, headers, status, error) => {
    const answer = await exchange(body, headers as Record<string, string>);
    expect([answer.status, answer.body['error']]).toEqual([status, error]);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    if (status === 401) expect(answer.headers.get('www-authenticate')).toContain('Basic');
  });

  test('gives a wrong secret and an unknown client the same answer', async () => {
    const { client_id } = await served.client('p-1');
    const [wrong, unknown] = [
      await exchange({ client_id, client_secret: 'wrong' }),
      await exchange({ client_id: 'c-0123456789', client_secret: 'wrong' }),
    ];
    expect([wrong.status, wrong.text]).toEqual([unknown.status, unknown.text]);
  });

  const ofServer = (url: string) => (body: object, from?: string) =>
    ask(`${url}/api/oauth/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(from && { 'x-forwarded-for': from }) },
      body: JSON.stringify(body),
    });

  test('after ten wrong secrets of a client from a network says to wait, on every server; the right secret always works', async () => {
    const [one, other] = [await serveWorld(world), await serveWorld(world)];
    const credentials = await one.client('p-1');
    const { client_id } = credentials;
    try {
      for (let failure = 1; failure <= 10; failure += 1) {
        const server = ofServer([one, other][failure % 2]?.url ?? '');
        expect((await server({ client_id, client_secret: `wrong-${failure}` })).status).toBe(401);
      }
      for (const { url } of [one, other]) {
        const late = await ofServer(url)({ client_id, client_secret: 'wrong' });
        expect(late.status).toBe(429);
        expect(Number(late.headers.get('retry-after'))).toBeGreaterThan(0);
        expect((await ofServer(url)(credentials)).status).toBe(200);
      }
      world.at('2026-08-01T10:15:00Z');
      expect((await ofServer(one.url)({ client_id, client_secret: 'wrong' })).status).toBe(401);
    } finally {
      await one.end();
      await other.end();
    }
  });

  test('counts the addresses of one IPv6 network as one caller', async () => {
    const own = await serveWorld(world, { settings: { http: { ...world.settings.http, trust_proxy: ['127.0.0.1'] } } });
    const { client_id } = await own.client('p-1');
    const wrong = (from: string) => ofServer(own.url)({ client_id, client_secret: 'wrong' }, from);
    try {
      for (let host = 1; host <= 10; host += 1) expect((await wrong(`2001:db8:1:2::${host}`)).status).toBe(401);
      expect((await wrong('2001:0db8:0001:0002:ffff:ffff:ffff:ffff')).status).toBe(429);
      expect((await wrong('2001:db8:1:3::1')).status).toBe(401);
      expect((await wrong('203.0.113.9')).status).toBe(401);
    } finally {
      await own.end();
    }
  });
});

describe('a token', () => {
  test('works for an hour and not a second longer', async () => {
    const { token } = await served.caller('p-1');
    world.at('2026-08-01T10:59:59Z');
    expect((await invoices(token)).status).toBe(200);
    world.at('2026-08-01T11:00:00Z');
    const late = await invoices(token);
    expect(late).toMatchObject({ status: 401, body: { code: 'token_invalid', reason: 'it has expired' } });
    expect(late.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"');
  });

  test('stops working at once when its client is revoked, and so does the secret', async () => {
    const caller = await served.caller('p-1');
    const { client_id, client_secret } = caller.credentials;
    await world.database.transaction((tx) => revokeClient(tx, client_id, action()));
    expect(await caller.get('/api/v1/invoices')).toMatchObject({
      status: 401,
      body: { reason: 'its client was revoked' },
    });
    const quoted = await caller.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '1' });
    expect(quoted.status).toBe(401);
    expect((await exchange({ client_id, client_secret })).status).toBe(401);
    const events = await world.sql(`SELECT action, via FROM audit_events WHERE subject = $1 ORDER BY event_id`, [
      client_id,
    ]);
    expect(events).toEqual([
      { action: 'client.create', via: 'command' },
      { action: 'client.revoke', via: 'command' },
    ]);
  });

  test('is refused if it is forged, altered, unsigned or signed with a foreign key', async () => {
    const { token, credentials } = await served.caller('p-1');
    const [header = '', claims = '', signature = ''] = token.split('.');
    const base = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const otherPartner = base({ ...decodeJwt(token), partner_id: 'p-2' });
    const { privateKey, publicKey } = await generateKeyPair('ES256');
    const signed = (protectedHeader: object) =>
      new SignJWT({ ...decodeJwt(token) })
        .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', ...protectedHeader })
        .sign(privateKey);
    const { kid } = decodeProtectedHeader(token);
    const forged = [
      `${header}.${otherPartner}.${signature}`,
      `${header}.${claims}.`,
      `${base({ alg: 'none', typ: 'at+jwt', kid })}.${claims}.`,
      `${base({ alg: 'HS256', typ: 'at+jwt', kid })}.${claims}.${signature}`,
      await signed({ kid }),
      await signed({ kid: 'mine' }),
      await signed({ kid, jwk: await exportJWK(publicKey) }),
      await signed({}),
      token.slice(0, -2),
      `${token}.x`,
      'x',
      'a'.repeat(8000),
      credentials.client_secret,
    ];
    for (const each of forged) {
      expect(await invoices(each, 'p-1')).toMatchObject({ status: 401, body: { code: 'token_invalid' } });
      expect((await invoices(each, 'p-2')).status).toBe(401);
    }
  });

  test('of one environment is invalid in the other, by issuer, audience and keys', async () => {
    const real = await openWorld();
    await real.partners([partner(PRICED)]);
    const production = await serveWorld(real, { environment: { ...real.environment, name: 'production' } });
    try {
      const [ours, theirs] = [await served.caller('p-1'), await production.caller('p-1')];
      expect(decodeJwt(theirs.token).aud).toBe('reckoner:production');
      expect(theirs.credentials.client_secret).toMatch(/^rk_production_/);
      expect((await invoices(theirs.token)).status).toBe(401);
      expect((await invoices(ours.token, 'p-1', production.url)).status).toBe(401);
      expect((await invoices(theirs.token, 'p-1', production.url)).status).toBe(200);
      // Even a key that somebody carried over does not make the other's tokens good.
      const [key] = await real.sql(`SELECT * FROM signing_keys`);
      await world.sql(`INSERT INTO signing_keys SELECT * FROM jsonb_populate_record(NULL::signing_keys, $1)`, [
        JSON.stringify(key),
      ]);
      await new Promise((resolve) => setTimeout(resolve, 1100));
      expect((await invoices(theirs.token)).status).toBe(401);
    } finally {
      await production.end();
      await real.end();
    }
  });
});

describe('a client’s secrets', () => {
  test('overlap in a rotation, at most two, and the older one ends when announced', async () => {
    const made = await served.client('p-1');
    const works = async (client_secret: string) =>
      (await exchange({ client_id: made.client_id, client_secret })).status === 200;
    const rotated = await world.database.transaction((tx) =>
      rotateSecret(tx, made.client_id, { overlapDays: 7 }, action()),
    );
    expect(await Promise.all([works(made.client_secret), works(rotated.client_secret)])).toEqual([true, true]);
    const third = world.database.transaction((tx) => rotateSecret(tx, made.client_id, { overlapDays: 7 }, action()));
    await expect(third).rejects.toMatchObject({ code: 'client_secrets_live' });
    world.at('2026-08-08T10:00:00Z');
    expect(await Promise.all([works(made.client_secret), works(rotated.client_secret)])).toEqual([false, true]);
    const last = await world.database.transaction((tx) =>
      rotateSecret(tx, made.client_id, { overlapDays: 0 }, action()),
    );
    expect(await Promise.all([made, rotated, last].map(({ client_secret }) => works(client_secret)))).toEqual([
      false,
      false,
      true,
    ]);
  });

  test('all end at once in a rotation without overlap, even while two are live', async () => {
    const made = await served.client('p-1');
    const second = await world.database.transaction((tx) =>
      rotateSecret(tx, made.client_id, { overlapDays: 7 }, action()),
    );
    const last = await world.database.transaction((tx) =>
      rotateSecret(tx, made.client_id, { overlapDays: 0 }, action()),
    );
    const statuses = await Promise.all(
      [made, second, last].map(
        async ({ client_secret }) => (await exchange({ client_id: made.client_id, client_secret })).status,
      ),
    );
    expect(statuses).toEqual([401, 401, 200]);
  });

  test('are kept as hashes only', async () => {
    const { client_id, client_secret } = await served.client('p-1');
    const [row] = await world.sql(`SELECT to_jsonb(s)::text AS kept FROM client_secrets s WHERE client_id = $1`, [
      client_id,
    ]);
    expect(row?.['kept']).not.toContain(client_secret);
    expect(Buffer.from(client_secret.replace(/^rk_sandbox_/, ''), 'base64url')).toHaveLength(32);
  });
});

describe('the signing keys', () => {
  const later = (hours: number) => world.at(new Date(Date.UTC(2026, 7, 3, 0) + hours * 3_600_000).toISOString());

  test('change daily: the next is published before it signs, the last until its tokens have expired', async () => {
    later(0);
    const keys = new KeyStore(world.database, world.environment.now);
    const first = await keys.signing();
    const kids = async () => (await keys.published()).map(({ kid }) => kid);
    const published = (await kids()).length;
    later(22.5);
    expect((await keys.signing()).kid).toBe(first.kid);
    later(23.5);
    expect((await keys.signing()).kid).toBe(first.kid);
    // The next one is being made.
    await expect.poll(async () => (await kids()).length).toBeGreaterThan(published);
    const before = await kids();
    later(24.5);
    const second = await keys.signing();
    expect(second.kid).not.toBe(first.kid);
    expect(before).toContain(second.kid);
    expect(await kids()).toEqual(expect.arrayContaining([first.kid, second.kid]));
    expect(await keys.verifying(first.kid)).toBeDefined();
    later(25.5);
    expect(await keys.verifying(first.kid)).toBeUndefined();
    expect(await kids()).not.toContain(first.kid);
  });

  test('have no private half in the database, and verify on another machine and after a restart', async () => {
    const caller = await served.caller('p-1');
    const keys = await world.sql(`SELECT public_jwk::text AS jwk FROM signing_keys`);
    expect(keys.length).toBeGreaterThan(0);
    for (const { jwk } of keys) expect(Object.keys(JSON.parse(jwk as string) as object)).not.toContain('d');
    const insert = world.sql(
      `INSERT INTO signing_keys VALUES ('x', '{"d": "secret"}', now(), now() + '1 h', now() + '2 h')`,
    );
    await expect(insert).rejects.toThrow('signing_key_is_public');
    const another = await serveWorld(world);
    try {
      expect((await invoices(caller.token, 'p-1', another.url)).status).toBe(200);
      const theirs = await callerWith(another.url, caller.credentials);
      await new Promise((resolve) => setTimeout(resolve, 1100));
      expect((await invoices(theirs.token)).status).toBe(200);
    } finally {
      await another.end();
    }
  });

  test('many concurrent first tokens create one key', async () => {
    const before = (await world.sql(`SELECT kid FROM signing_keys`)).length;
    const fresh = await serveWorld(world);
    const { client_id, client_secret } = await fresh.client('p-1');
    const answers = await Promise.all(
      Array.from({ length: 20 }, () =>
        ask(`${fresh.url}/api/oauth/token`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ client_id, client_secret }),
        }),
      ),
    );
    await fresh.end();
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(await world.sql(`SELECT kid FROM signing_keys`)).toHaveLength(before + 1);
  });
});

test('no secret and no token is ever logged', async () => {
  const caller = await served.caller('p-1');
  await caller.get('/api/v1/invoices');
  await exchange({ client_id: caller.credentials.client_id, client_secret: 'a-wrong-one' });
  expect(served.log()).toContain('answered');
  for (const secret of [caller.token, caller.credentials.client_secret, 'a-wrong-one', 'Bearer']) {
    expect(served.log()).not.toContain(secret);
  }
});
