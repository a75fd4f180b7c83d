/**
 * Registration of passkeys, and sign-in with them. A passkey counts as two factors: the device checks a PIN,
 * fingerprint or face. Refusals: passkey_refused, form_refused, rate_limited.
 */
import {
  AuthenticationResponseJSON,
  generateAuthenticationOptions,
  generateRegistrationOptions,
  RegistrationResponseJSON,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
} from '@simplewebauthn/server';
import { FastifyBaseLogger, FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { line } from '#config/validation';
import { Transaction } from '#database/transaction';
import { Refusal, reasonOf, refuse } from '#errors/refusals';
import { Shared } from '#http/shared';
import { keepChallenge, takeChallenge } from '#people/challenges';
import { addPasskey, countUse, removePasskeys } from '#people/passkeys';
import { readCredential, readPasskeys } from '#people/passkeys.sql';
import { User } from '#people/roles';
import { isNamed, Place, pageToGoTo, placeOf, readCookie, refuseOtherOrigin, setCookie } from './cookies.ts';
import { idSent } from './form.tsx';
import { Access, jsonOf, Routes } from './route.ts';
import { begin, countRefused, openRoute } from './sign-in.tsx';

const OWN: Access = { role: 'viewer', scope: 'partners', ofPeriod: true, proof: '/console/account' };

function hostOf(place: Place) {
  if (isNamed(place)) return new URL(place.origin).hostname;
  throw refuse('passkey_refused', { reason: 'passkeys need a name such as localhost, not an address' });
}

/** WebAuthn Level 3 allows ids of 16 to 1023 bytes. */
const credential = z.looseObject({
  id: z.string().regex(/^[\w-]{22,1364}$/),
  response: z.looseObject({ clientDataJSON: z.string(), userHandle: z.string().nullish() }),
});
type Credential = z.output<typeof credential>;

/** Kept by an authenticator beside its passkey. */
const handleOf = ({ user_id }: User) => new TextEncoder().encode(`user-${user_id}`);
const registration = z.strictObject({ name: line(60).min(1), credential });
const assertion = z.strictObject({ to: z.string().max(8000).optional(), credential });

export function addPasskeys({ call, action }: Routes, { environment, log }: Shared): void {
  call('/account/passkeys/options', OWN, async ({ user, place, reader, reply }, _body, transact) => {
    const known = await transact((tx) => readPasskeys(tx, { userId: user.user_id }));
    const options = await generateRegistrationOptions({
      ...{ rpName: reader.issuer || 'Reckoner', rpID: hostOf(place) },
      ...{ userName: user.login, userDisplayName: user.name, userID: handleOf(user) },
      excludeCredentials: known.map(({ credential_id: id }) => ({ id })),
      authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    });
    const content = { challenge: options.challenge, user: String(user.user_id) };
    const secret = await transact((tx) => keepChallenge(tx, { environment }, { kind: 'new_passkey', content }));
    setCookie(reply, place, 'reckoner-sign-in', secret);
    return options;
  });
  call('/account/passkeys', OWN, async ({ user, place, context, request, reply }, body, transact) => {
    const parsed = registration.safeParse(body);
    if (!parsed.success) throw refuse('passkey_refused', { reason: 'its name or a part of it is missing' });
    const secret = readCookie(request, place, 'reckoner-sign-in');
    const asked = await transact((tx) => takeChallenge(tx, { environment }, { secret, kind: 'new_passkey' }));
    if (asked?.['user'] !== String(user.user_id)) throw refuse('passkey_refused', { reason: 'it arrived too late' });
    const verified = await verifying(log, parsed.data.credential, () =>
      verifyRegistrationResponse({
        response: parsed.data.credential as unknown as RegistrationResponseJSON,
        ...{ expectedChallenge: asked['challenge'] ?? '', expectedOrigin: place.origin, expectedRPID: hostOf(place) },
      }),
    );
    if (!verified.verified) throw unverified();
    const { id: credentialId, publicKey, counter } = verified.registrationInfo.credential;
    const { name, credential: given } = parsed.data;
    if (given.id !== credentialId) throw unverified();
    await transact((tx) => addPasskey(tx, context, { user, credentialId, publicKey, counter, name }));
    setCookie(reply, place, 'reckoner-sign-in', null);
    return { to: '/console/account' };
  });
  action('/account/passkeys/remove', OWN, async ({ user, context }, fields, transact) => {
    const passkeyId = idSent(fields, 'passkey');
    await transact((tx) => removePasskeys(tx, context, { passkeyId, userId: user.user_id }));
    return { to: '/console/account' };
  });
}

export function addPasskeySignIn(app: FastifyInstance, shared: Shared): void {
  const { database, environment } = shared;
  app.post('/sign-in/passkey/options', openRoute(shared), async (request, reply) => {
    const place = placeOf(shared, request);
    refuseOtherOrigin(request, place);
    const options = await generateAuthenticationOptions({ rpID: hostOf(place), userVerification: 'required' });
    const kept = { kind: 'passkey' as const, content: { challenge: options.challenge } };
    setCookie(reply, place, 'reckoner-sign-in', await database.transaction((tx) => keepChallenge(tx, shared, kept)));
    return reply.send(options);
  });
  app.post('/sign-in/passkey', openRoute(shared), async (request, reply) => {
    const place = placeOf(shared, request);
    refuseOtherOrigin(request, place);
    const parsed = assertion.safeParse(jsonOf(request));
    const secret = readCookie(request, place, 'reckoner-sign-in');
    // Uses up the challenge first: it is valid once, even if the sign-in fails.
    const asked = await database.transaction((tx) => takeChallenge(tx, { environment }, { secret, kind: 'passkey' }));
    try {
      if (!parsed.success || asked === undefined) throw refuse('passkey_refused', { reason: 'it arrived too late' });
      const given = { challenge: asked['challenge'] ?? '', answer: parsed.data.credential, place };
      const session = await database.transaction((tx) => signInWith(tx, shared, request, given));
      setCookie(reply, place, 'reckoner', session);
      setCookie(reply, place, 'reckoner-sign-in', null);
      return reply.send({ to: pageToGoTo(parsed.data.to) });
    } catch (error) {
      if (error instanceof Refusal && error.code === 'passkey_refused') await countRefused(shared, request);
      throw error;
    }
  });
}

async function signInWith(
  tx: Transaction,
  shared: Shared,
  request: FastifyRequest,
  { challenge, answer, place }: { challenge: string; answer: Credential; place: Place },
) {
  const known = await readCredential(tx, answer.id);
  if (known === undefined)
    throw refuse('passkey_refused', { reason: 'it is not registered here. Sign in with a link' });
  const { public_key: publicKey, counter, passkey_id: passkeyId, user } = known;
  // Level 3, 7.2: without a name, the handle must be present and of the passkey's user.
  if (answer.response.userHandle !== Buffer.from(handleOf(user)).toString('base64url')) throw unverified();
  const verified = await verifying(shared.log, answer, () =>
    verifyAuthenticationResponse({
      response: answer as unknown as AuthenticationResponseJSON,
      ...{ expectedChallenge: challenge, expectedOrigin: place.origin, expectedRPID: hostOf(place) },
      credential: { id: answer.id, publicKey: new Uint8Array(publicKey), counter },
    }),
  );
  if (!verified.verified) throw unverified();
  const now = shared.environment.now().toISO();
  await countUse(tx, { passkeyId, counter: verified.authenticationInfo.newCounter, now });
  return begin(tx, shared, request, { user, method: 'passkey' });
}

const unverified = (cause?: unknown) => refuse('passkey_refused', { reason: 'it could not be verified' }, cause);

/** Refuses an answer from inside a frame of another site, which the library accepts. */
async function verifying<Result>(
  log: FastifyBaseLogger,
  { response: { clientDataJSON: said } }: Credential,
  work: () => Promise<Result>,
) {
  try {
    const { crossOrigin, topOrigin } = JSON.parse(Buffer.from(said, 'base64url').toString()) ?? {};
    if (crossOrigin === true || topOrigin !== undefined) throw new Error('another site framed the page');
    return await work();
  } catch (error) {
    log.warn({ reason: reasonOf(error) }, 'passkey refused');
    throw unverified(error);
  }
}
