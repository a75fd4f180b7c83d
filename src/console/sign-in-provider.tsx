/**
 * Sign-in with OpenID Connect: authorization code flow with state, nonce and PKCE, bound to the browser, so that an
 * unsolicited response cannot sign a user in. Refusals: sign_in_refused, page_unknown.
 */
import { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { DateTime } from 'luxon';
import * as oidc from 'openid-client';
import { OidcSettings } from '#config/console';
import { Environment } from '#config/environment';
import { emailAddress, line } from '#config/validation';
import { reasonOf, refuse } from '#errors/refusals';
import { Shared } from '#http/shared';
import { thisProcess } from '#people/audit-events';
import { keepChallenge, takeChallenge } from '#people/challenges';
import { Identity, userOfIdentity } from '#people/identities';
import { Role } from '#people/roles';
import { SignInGiven } from '#people/sessions';
import { Place, pageToGoTo, placeOf, readCookie, setCookie } from './cookies.ts';
import { outerPage } from './page.tsx';
import { outerOf } from './problem.tsx';
import { settingsNow } from './route.ts';
import { begin, countRefused, openRoute, signIn } from './sign-in.tsx';

const SIGN_IN = '/console/sign-in';
const CALLBACK = `${SIGN_IN}/provider/callback`;
const TIMEOUT_SECONDS = 10;
const UNAVAILABLE = 'the identity provider does not answer. Try again, or sign in with a passkey or a link';

export function addProviderSignIn(app: FastifyInstance, shared: Shared): void {
  const { database, log } = shared;
  const configure = remembered(shared.environment);
  const configured = async (request: FastifyRequest) => {
    const settings = settingsNow(shared).console.oidc;
    if (settings === null) throw refuse('page_unknown', { path: request.url });
    try {
      return { settings, configuration: await configure(settings) };
    } catch (error) {
      log.warn({ reason: reasonOf(error) }, 'identity provider unavailable');
      throw refuse('sign_in_refused', { reason: UNAVAILABLE }, error);
    }
  };

  type Asked = { Querystring: { to?: string; again?: string } };
  app.get<Asked>('/sign-in/provider', openRoute(shared), async (request, reply) => {
    const place = placeOf(shared, request);
    const { settings, configuration } = await configured(request);
    const [state, nonce, verifier] = [oidc.randomState(), oidc.randomNonce(), oidc.randomPKCECodeVerifier()];
    const content = { state, nonce, verifier, to: pageToGoTo(request.query.to) };
    const secret = await database.transaction((tx) => keepChallenge(tx, shared, { kind: 'provider', content }));
    setCookie(reply, place, 'reckoner-sign-in', secret);
    const url = oidc.buildAuthorizationUrl(configuration, {
      ...{ redirect_uri: `${place.origin}${CALLBACK}`, scope: settings.scopes.join(' '), state, nonce },
      ...{ code_challenge: await oidc.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256' },
      ...(request.query.again && { max_age: '0' }),
    });
    return reply.redirect(url.href, 303);
  });

  app.get('/sign-in/provider/callback', openRoute(shared), async (request, reply) => {
    const place = placeOf(shared, request);
    const { settings, configuration } = await configured(request);
    const secret = readCookie(request, place, 'reckoner-sign-in');
    const asked = await database.transaction((tx) => takeChallenge(tx, shared, { secret, kind: 'provider' }));
    if (asked === undefined)
      return refused(shared, request, 'this browser did not request the sign-in, or requested it too long ago');
    const given = { place, asked, settings };
    const claims = await claimsOf(configuration, request, given).catch(async (error: unknown) => {
      log.warn({ reason: reasonOf(error) }, 'sign-in with the identity provider refused');
      return refused(shared, request, reasonFor(error));
    });
    const { auth_time: at } = claims;
    const provedAt = typeof at === 'number' ? (DateTime.fromSeconds(at) as DateTime<true>) : undefined;
    return finish(shared, request, reply, { identity: identityOf(settings, claims), provedAt, to: asked['to'] });
  });

  // The page that users see after they sign out. A redirect to the provider would sign the user in again at once.
  app.get('/sign-in/provider/left', openRoute(shared), async (request, reply) => {
    const place = placeOf(shared, request);
    const { configuration } = await configured(request);
    if (configuration.serverMetadata().end_session_endpoint === undefined) return reply.redirect(SIGN_IN, 303);
    const end = oidc.buildEndSessionUrl(configuration, { post_logout_redirect_uri: `${place.origin}${SIGN_IN}` });
    const html = outerPage({ ...outerOf(shared, request), title: 'Signed out' }, <Left end={end.href} />);
    return reply.type('text/html; charset=utf-8').send(html);
  });
}

const Left = ({ end }: { end: string }) => (
  <>
    <p>You signed out of the console. You may still be signed in to your organization.</p>
    <p>
      <a class="button main" href={end}>
        Sign out of your organization
      </a>
    </p>
    <p>
      <a class="button" href={SIGN_IN}>
        Sign in again
      </a>
    </p>
  </>
);

/** On which the user can act. The log has the original error. */
function reasonFor(error: unknown): string {
  if (error instanceof oidc.AuthorizationResponseError && error.error === 'access_denied')
    return 'the sign-in was canceled at the identity provider, or the provider refused you access';
  return isUnavailable(error) ? UNAVAILABLE : 'the identity provider did not confirm the sign-in';
}

/** Returns whether the provider failed. `fetch` reports a missing response as a TypeError. */
function isUnavailable(error: unknown) {
  const { cause, code } = error as { cause?: unknown; code?: unknown };
  return error instanceof TypeError || code === 'OAUTH_TIMEOUT' || (cause instanceof Response && cause.status >= 500);
}

async function finish(
  shared: Shared,
  request: FastifyRequest,
  reply: FastifyReply,
  { identity, provedAt, to }: { identity: Identity; to: string | undefined } & Pick<SignInGiven, 'provedAt'>,
): Promise<FastifyReply> {
  const actor = thisProcess('http', identity.email ?? identity.subject);
  // Revoked roles are committed even if the sign-in fails.
  const done = await shared.database.transaction(async (tx) => {
    const found = await userOfIdentity(tx, { environment: shared.environment, actor }, identity);
    if ('reason' in found) return found;
    return { session: await begin(tx, shared, request, { user: found.user, method: 'provider', provedAt }) };
  });
  if ('reason' in done) return refused(shared, request, done.reason);
  return signIn(shared, request, reply, done.session, to);
}

async function refused(shared: Shared, request: FastifyRequest, reason: string): Promise<never> {
  await countRefused(shared, request);
  throw refuse('sign_in_refused', { reason });
}

type Claims = Readonly<Record<string, unknown>> & Readonly<{ iss: string; sub: string }>;

async function claimsOf(
  configuration: oidc.Configuration,
  request: FastifyRequest,
  { place, asked, settings }: { place: Place; asked: Readonly<Record<string, string>>; settings: OidcSettings },
) {
  const tokens = await oidc.authorizationCodeGrant(configuration, new URL(request.url, place.origin), {
    expectedState: asked['state'] ?? '',
    expectedNonce: asked['nonce'] ?? '',
    pkceCodeVerifier: asked['verifier'] ?? '',
    idTokenExpected: true,
  });
  const claims = tokens.claims() as unknown as Claims;
  // OpenID Connect Core 2 and 3.1.3.7.
  if (!/^[!-~]{1,255}$/.test(claims.sub)) throw new Error('sub is not 1 to 255 ASCII characters without spaces');
  if (claims['azp'] !== undefined && claims['azp'] !== settings.client_id) throw new Error('azp is another client');
  const lacks = ['email', 'email_verified', settings.roles_claim].some(
    (name) => name !== '' && claims[name] === undefined,
  );
  if (!lacks || configuration.serverMetadata().userinfo_endpoint === undefined) return claims;
  const more = await oidc.fetchUserInfo(configuration, tokens.access_token, claims.sub);
  // `email_verified` applies to the address in the same response.
  const email = claims['email'] ?? more['email'];
  const said = claims['email'] === undefined ? undefined : claims['email_verified'];
  const email_verified = said ?? (more['email'] === email ? more['email_verified'] : undefined);
  return { ...more, ...claims, email, email_verified };
}

const NAME = line().trim().min(1);

/** Drops addresses and names that a user could not enter. */
function identityOf(settings: OidcSettings, claims: Claims): Identity {
  return {
    ...{ issuer: claims.iss, subject: claims.sub },
    ...{ email: emailAddress.safeParse(claims['email']).data, name: NAME.safeParse(claims['name']).data },
    emailVerified: isVerified(settings, claims['email_verified']),
    roles: settings.roles_claim === '' ? null : rolesOf(settings, claims[settings.roles_claim]),
  };
}

/** The setting counts only without the claim, which some providers send as text. */
const isVerified = ({ email_verified: absent }: OidcSettings, claim: unknown) =>
  claim === undefined ? absent === 'assumed' : claim === true || claim === 'true';

function rolesOf({ roles }: OidcSettings, claim: unknown): Role[] {
  const groups = [claim].flat().filter((each): each is string => typeof each === 'string');
  return [...new Set(groups.flatMap((group) => (Object.hasOwn(roles, group) ? (roles[group] ?? []) : [])))];
}

/** In the form if the provider lists that method, and otherwise in the header, OpenID's default. */
function proofBy(secret: string): oidc.ClientAuth {
  const [byForm, byHeader] = [oidc.ClientSecretPost(secret), oidc.ClientSecretBasic(secret)];
  return (server, client, body, headers) => {
    const taken = server.token_endpoint_auth_methods_supported ?? [];
    return (taken.includes('client_secret_post') ? byForm : byHeader)(server, client, body, headers);
  };
}

/** The library reads each response as a whole. Genuine ones are shorter. */
const MOST_BYTES = 1_000_000;

const fetchLimited: oidc.CustomFetch = async (url, options) => {
  const response = await fetch(url, options as RequestInit);
  if (response.body === null) return response;
  let bytes = 0;
  const limit = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      bytes += chunk.byteLength;
      if (bytes > MOST_BYTES) throw new Error(`the answer is longer than ${MOST_BYTES} bytes`);
      controller.enqueue(chunk);
    },
  });
  return new Response(response.body.pipeThrough(limit), response);
};

/** Runs discovery once for the same settings, and again after a failure. */
function remembered(environment: Environment): (settings: OidcSettings) => Promise<oidc.Configuration> {
  let known: { key: string; configuration: Promise<oidc.Configuration> } | undefined;
  return (settings) => {
    const key = `${settings.issuer} ${settings.client_id}`;
    if (known?.key === key) return known.configuration;
    const secret = environment.oidcSecret;
    const configuration = oidc.discovery(
      new URL(settings.issuer),
      settings.client_id,
      undefined,
      secret === undefined ? oidc.None() : proofBy(secret),
      {
        timeout: TIMEOUT_SECONDS,
        [oidc.customFetch]: fetchLimited,
        // In addition to TLS. In tests, the provider uses plain http.
        execute: [
          oidc.enableNonRepudiationChecks,
          ...(environment.name === 'sandbox' ? [oidc.allowInsecureRequests] : []),
        ],
      },
    );
    const mine = { key, configuration };
    known = mine;
    configuration.catch(() => {
      if (known === mine) known = undefined;
    });
    return configuration;
  };
}
