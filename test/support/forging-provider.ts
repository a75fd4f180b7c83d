/**
 * An identity provider that issues any claim and signature that a test wants, including those that a real one
 * (identity-provider.ts) never issues.
 */
import { createHash, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { CLIENT_SECRET, type Person } from './identity-provider.ts';

export interface ForgingProvider {
  readonly issuer: string;
  /** The person who signs in next. */
  person: Person;
  /** Changes the claims of the next ID token, to see them refused. */
  forge: (claims: Record<string, unknown>) => Record<string, unknown>;
  /** The signing key: none, one that it does not publish, or the client's secret. */
  signer: Signer;
  /** How many unnecessary bytes the answer with the token has. */
  padding: number;
  readonly end: () => Promise<void>;
}

type Signer = 'key' | 'other key' | 'nobody' | 'client secret';

const CLIENT = 'reckoner';

export async function openForgingProvider(): Promise<ForgingProvider> {
  const key = await generateKeyPair('ES256');
  const other = await generateKeyPair('ES256');
  const codes = new Map<string, { nonce: string; challenge: string; redirect: string; person: Person }>();
  const provider = {
    issuer: '',
    person: { sub: 'nobody' } as Person,
    forge: (claims: Record<string, unknown>) => claims,
    signer: 'key' as Signer,
    padding: 0,
  };

  const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const tokenOf = async ({ person, nonce }: { person: Person; nonce: string }) => {
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: provider.issuer, aud: CLIENT, iat: now, exp: now + 60, nonce, ...person };
    const forged = provider.forge(claims);
    if (provider.signer === 'nobody') return `${encoded({ alg: 'none' })}.${encoded(forged)}.`;
    if (provider.signer === 'client secret') {
      return new SignJWT(forged).setProtectedHeader({ alg: 'HS256' }).sign(new TextEncoder().encode(CLIENT_SECRET));
    }
    return new SignJWT(forged)
      .setProtectedHeader({ alg: 'ES256', kid: 'one' })
      .sign((provider.signer === 'other key' ? other : key).privateKey);
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
        token_endpoint_auth_methods_supported: ['client_secret_post'],
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
      else {
        const tokens = {
          access_token: randomUUID(),
          token_type: 'Bearer',
          expires_in: 60,
          id_token: await tokenOf(asked),
        };
        json({ ...tokens, padding: 'x'.repeat(provider.padding) });
      }
    } else response.writeHead(404).end();
  }

  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  provider.issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return Object.assign(provider, {
    end: () => new Promise<void>((resolve) => server.close(() => resolve())),
  });
}
