/** What no identity provider issues, and somebody who stands between might: it signs nobody in. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { Browser } from '../support/console.ts';
import { type ForgingProvider, openForgingProvider } from '../support/forging-provider.ts';
import { type ProvidedConsole, serveProvided } from '../support/identity-provider.ts';
import type { Served } from '../support/service.ts';

let opened: ProvidedConsole;
let served: Served;
let provider: ForgingProvider;
beforeAll(async () => {
  provider = await openForgingProvider();
  const oidc = { issuer: provider.issuer, client_id: 'reckoner', roles_claim: 'groups', roles: { billing: 'finance' } };
  opened = await serveProvided(oidc);
  served = opened.served;
  provider.person = { sub: 'v-1', email: 'vera@issuer.example', email_verified: true, groups: ['billing'] };
});
afterAll(async () => {
  await opened.end();
  await provider.end();
});
beforeEach(() => {
  opened.nextHour();
  provider.forge = (claims) => claims;
  provider.signer = 'key';
  provider.padding = 0;
});

/** The status of the answer, and whether it signed in. */
async function signIn(): Promise<[status: number, signedIn: boolean]> {
  const browser = new Browser(served.url);
  const asked = await browser.get('/console/sign-in/provider');
  const answered = await fetch(asked.location ?? '', { redirect: 'manual' });
  const { pathname, search } = new URL(answered.headers.get('location') ?? '');
  const { status } = await browser.get(pathname + search);
  return [status, browser.cookies.has('reckoner')];
}
const SIGNED_IN = [303, true];
const REFUSED = [403, false];
const seconds = () => Math.floor(Date.now() / 1000);

type Claims = Record<string, unknown>;
const FORGERIES: readonly (readonly [string, (claims: Claims) => Claims])[] = [
  ['for another sign-in', (claims) => ({ ...claims, nonce: 'other' })],
  ['for no sign-in', ({ nonce: _, ...claims }) => claims],
  ['for another client', (claims) => ({ ...claims, aud: 'another-client' })],
  ['for two clients, used by the other one', (claims) => ({ ...claims, aud: ['reckoner', 'other'], azp: 'other' })],
  ['for this client, made for another one', (claims) => ({ ...claims, azp: 'other' })],
  ['of an empty name', (claims) => ({ ...claims, sub: '', email: 'new@issuer.example' })],
  ['of a name with a space', (claims) => ({ ...claims, sub: 'v 1', email: 'new@issuer.example' })],
  ['of a name with a zero byte', (claims) => ({ ...claims, sub: 'v-1\0', email: 'new@issuer.example' })],
  ['of a name with half a character', (claims) => ({ ...claims, sub: 'v-1\ud800', email: 'new@issuer.example' })],
  ['of a name that is not ASCII', (claims) => ({ ...claims, sub: 'v-\u00b9', email: 'new@issuer.example' })],
  ['of a name of 256 characters', (claims) => ({ ...claims, sub: 'v'.repeat(256), email: 'new@issuer.example' })],
  ['of another issuer', (claims) => ({ ...claims, iss: 'https://evil.example' })],
  ['of no issuer', ({ iss: _, ...claims }) => claims],
  ['of nobody', ({ sub: _, ...claims }) => claims],
  ['that has expired', (claims) => ({ ...claims, exp: seconds() - 60 })],
  ['that never expires', ({ exp: _, ...claims }) => claims],
  ['that is not valid yet', (claims) => ({ ...claims, nbf: seconds() + 60 })],
];

test('what it says in truth signs in', async () => {
  expect(await signIn()).toEqual(SIGNED_IN);
});

test.each(FORGERIES)('an ID token %s signs nobody in', async (_name, forge) => {
  provider.forge = forge;
  expect(await signIn()).toEqual(REFUSED);
});

test.each(['other key', 'nobody', 'client secret'] as const)(
  'an ID token that is signed by: %s, signs nobody in',
  async (signer) => {
    provider.signer = signer;
    expect(await signIn()).toEqual(REFUSED);
  },
);

test('clocks may differ by half a minute', async () => {
  provider.forge = (claims) => ({ ...claims, exp: seconds() - 15 });
  expect(await signIn()).toEqual(SIGNED_IN);
  provider.forge = (claims) => ({ ...claims, nbf: seconds() + 15 });
  expect(await signIn()).toEqual(SIGNED_IN);
});

test('an answer of more than a megabyte signs nobody in', async () => {
  provider.padding = 1_000_000;
  expect(await signIn()).toEqual(REFUSED);
  provider.padding = 500_000;
  expect(await signIn()).toEqual(SIGNED_IN);
});

const ODD = [
  'a@b.example,ada@issuer.example',
  '"ada" <x3@evil.example>',
  'x2@b.example\r\nbcc: z@evil.example',
  '<script>@b.example',
  '@',
  'x4@b.example\0',
  'x5\ud800@b.example',
  '\u212aim@auditor.example',
  'x6@\uff42.example',
  ' x7@b.example',
  `${'x'.repeat(250)}@b.example`,
  ['x8@b.example'],
];
test.each(ODD.map((email, at) => [JSON.stringify(email), email, at] as const))(
  'a person with the address %s is not made a user',
  async (_, email, at) => {
    provider.forge = (claims) => ({ ...claims, sub: `odd-${at}`, email });
    expect(await signIn()).toEqual(REFUSED);
  },
);

test('a person who is known signs in whatever the address says now', async () => {
  provider.forge = (claims) => ({ ...claims, email: '@' });
  expect(await signIn()).toEqual(SIGNED_IN);
});

test.each([['Kim\nbcc: z'], ['Kim\0'], ['Kim\ud800'], ['Kim\u202e'], [' '], ['k'.repeat(500)]])(
  'a name that is not one line is not taken: %j',
  async (name) => {
    const sub = `name-${[...name].map((each) => each.codePointAt(0)).join('-')}`.slice(0, 200);
    const email = `${sub.slice(0, 50)}@issuer.example`;
    provider.forge = (claims) => ({ ...claims, sub, email, name });
    expect(await signIn()).toEqual(SIGNED_IN);
    expect(
      await opened.world.sql('SELECT personal(name) AS name FROM users WHERE personal(login) = $1', [email]),
    ).toEqual([{ name: email }]);
  },
);
