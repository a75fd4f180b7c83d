/** A provider of OpenID Connect for the tests: discovery, keys, an authorization endpoint that asks nobody, and tokens. */
import { createHash, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';

export interface Person {
  readonly sub: string;
  readonly email?: string;
  readonly email_verified?: boolean;
  readonly name?: string;
  readonly groups?: readonly string[] | string;
}

export interface IdentityProvider {
  readonly issuer: string;
  /** Who signs in next. */
  person: Person;
  /** Changes the claims of the next ID token, to see them refused. */
  forge: (claims: Record<string, unknown>) => Record<string, unknown>;
  /** Signs with a key that it does not publish. */
  forgeKey: boolean;
  readonly end: () => Promise<void>;
}

const CLIENT = 'reckoner';
export const CLIENT_SECRET = 'a-secret-of-the-tests';

export async function openIdentityProvider(): Promise<IdentityProvider> {
  const key = await generateKeyPair('ES256');
  const other = await generateKeyPair('ES256');
  const codes = new Map<string, { nonce: string; challenge: string; redirect: string; person: Person }>();
  const provider = {
    issuer: '',
    person: { sub: 'nobody' } as Person,
    forge: (claims: Record<string, unknown>) => claims,
    forgeKey: false,
  };

  const tokenOf = async ({ person, nonce }: { person: Person; nonce: string }) => {
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: provider.issuer, aud: CLIENT, iat: now, exp: now + 60, nonce, ...person };
    return new SignJWT(provider.forge(claims))
      .setProtectedHeader({ alg: 'ES256', kid: 'one' })
      .sign((provider.forgeKey ? other : key).privateKey);
  };

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', provider.issuer);
    const json = (value: unknown, status = 200) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    if (url.pathname === '/.well-known/openid-configuration') {
      const { issuer } = provider;
      json({
        ...{ issuer, authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token` },
        ...{ jwks_uri: `${issuer}/keys`, response_types_supported: ['code'], subject_types_supported: ['public'] },
        ...{ id_token_signing_alg_values_supported: ['ES256'], code_challenge_methods_supported: ['S256'] },
      });
    } else if (url.pathname === '/keys') {
      json({ keys: [{ ...(await exportJWK(key.publicKey)), kid: 'one', alg: 'ES256', use: 'sig' }] });
    } else if (url.pathname === '/authorize') {
      const {
        state = '',
        nonce = '',
        code_challenge: challenge = '',
        redirect_uri: redirect = '',
      } = Object.fromEntries(url.searchParams);
      const code = randomUUID();
      codes.set(code, { nonce, challenge, redirect, person: provider.person });
      const to = new URL(redirect);
      to.searchParams.set('code', code);
      to.searchParams.set('state', state);
      response.writeHead(302, { location: to.href }).end();
    } else if (url.pathname === '/token') {
      let body = '';
      for await (const chunk of request) body += String(chunk);
      const form = new URLSearchParams(body);
      const asked = codes.get(form.get('code') ?? '');
      codes.delete(form.get('code') ?? '');
      const proved = createHash('sha256')
        .update(form.get('code_verifier') ?? '')
        .digest('base64url');
      const right =
        form.get('client_secret') === CLIENT_SECRET &&
        proved === asked?.challenge &&
        form.get('redirect_uri') === asked.redirect;
      if (!right || asked === undefined) json({ error: 'invalid_grant' }, 400);
      else json({ access_token: randomUUID(), token_type: 'Bearer', expires_in: 60, id_token: await tokenOf(asked) });
    } else response.writeHead(404).end();
  }

  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  provider.issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return Object.assign(provider, {
    end: () => new Promise<void>((resolve) => server.close(() => resolve())),
  });
}
