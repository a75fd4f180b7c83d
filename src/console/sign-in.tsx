/**
 * The sign-in page and one-time sign-in links. A person must press a button on the page that a link opens, because
 * programs that scan e-mails would use it up. Refusals: sign_in_link_invalid, form_refused, rate_limited.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ComponentChildren } from 'preact';
import type { Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import { networkOf } from '../http/limits.ts';
import type { Shared } from '../http/shared.ts';
import { thisProcess } from '../people/audit-events.ts';
import { beginSession, type SignInGiven } from '../people/sessions.ts';
import { takeSignInLink } from '../people/sign-in.sql.ts';
import { isNamed, pageToGoTo, placeOf, readCookie, refuseOtherOrigin, setCookie } from './cookies.ts';
import { fieldsOfForm, formOf } from './form.tsx';
import { outerPage } from './page.tsx';
import { outerOf } from './problem.tsx';
import { settingsNow } from './route.ts';

const LARGEST_FORM = 16 * 1024;

export const openRoute = ({ limits }: Shared) => ({
  onRequest: async (request: FastifyRequest) => void limits.request('console', request.ip),
  config: { bound: 'console' as const },
  bodyLimit: LARGEST_FORM,
});

export function addSignIn(app: FastifyInstance, shared: Shared): void {
  const { database, environment } = shared;
  app.get<{ Querystring: { to?: string; again?: string } }>('/sign-in', openRoute(shared), async (request, reply) => {
    const place = placeOf(shared, request);
    const { to, again } = request.query;
    const html = outerPage(
      { ...outerOf(shared, request), title: again ? 'Sign in again' : 'Sign in', scripts: ['passkeys.js', 'link.js'] },
      <>
        {again && <p>This needs a sign-in of the last five minutes. You then return to the page.</p>}
        <Ways
          to={pageToGoTo(to)}
          again={again !== undefined}
          passkeys={isNamed(place)}
          provider={settingsNow(shared).console.oidc !== null}
        />
      </>,
    );
    return reply.type('text/html; charset=utf-8').send(html);
  });
  app.post('/sign-in', openRoute(shared), async (request, reply) => {
    refuseOtherOrigin(request, placeOf(shared, request));
    const { secret, to } = linkSent(request);
    const session = await database.transaction(async (tx) => {
      const user = await takeSignInLink(tx, { secret, now: environment.now().toISO() });
      return user && begin(tx, shared, request, { user, method: 'link' });
    });
    if (session === undefined) return refuseLink(shared, request);
    return signIn(shared, request, reply, session, to);
  });
}

/** A user without JavaScript may paste the whole link. */
export function linkSent({ body, headers }: FastifyRequest): { secret: string; to: string | undefined } {
  const fields = fieldsOfForm(formOf(body, headers['content-type']));
  return { secret: (fields?.get('code') ?? '').replace(/^.*#/s, '').trim(), to: fields?.get('to') };
}

/** The code of a sign-in link is its fragment, which no server and no log receives. The script link.js fills it in. */
export const CodeForm = ({ to }: { to?: string }) => (
  // Otherwise the browser would take the fragment along to the next page.
  <form method="post" action="sign-in" class="stack" data-link>
    {to !== undefined && <input type="hidden" name="to" value={to} />}
    <label class="field">
      Code, or the whole sign-in link
      <input name="code" required autocomplete="off" />
    </label>
    <p>
      <button class="main" type="submit">
        Sign in
      </button>
    </p>
  </form>
);

export const OneButton = ({ name, children }: { name: string; children: ComponentChildren }) => (
  <form method="post">
    <p>{children}</p>
    <p>
      <button class="main" type="submit">
        {name}
      </button>
    </p>
  </form>
);

const Ways = ({
  to,
  again,
  passkeys,
  provider,
}: Readonly<Record<'again' | 'passkeys' | 'provider', boolean>> & { to: string }) => (
  <>
    {provider && (
      <p>
        <a
          class="button main"
          href={`/console/sign-in/provider?to=${encodeURIComponent(to)}${again ? '&again=1' : ''}`}
        >
          Sign in with your organization
        </a>
      </p>
    )}
    {passkeys && (
      <p>
        <button class={provider ? undefined : 'main'} type="button" data-passkey="sign-in" data-to={to} hidden>
          Sign in with a passkey
        </button>
      </p>
    )}
    <p role="alert" data-passkey-says />
    <p class="soft">
      {provider || passkeys ? 'Or open' : 'Open'} the sign-in link that an administrator sent you. It works once.
    </p>
    <CodeForm to={to} />
  </>
);

/** Refuses a sign-in link, and counts a failed sign-in. */
export async function refuseLink(shared: Shared, request: FastifyRequest): Promise<never> {
  await countRefused(shared, request);
  throw refuse('sign_in_link_invalid', {});
}

/** Refuses a network with too many failures, but never a valid sign-in. */
export async function countRefused({ limits, security }: Shared, { ip }: FastifyRequest): Promise<void> {
  security.record('sign_in_refused', ip);
  await limits.failedSignIn(ip);
}

/** Returns the secret for the session's cookie. */
export const begin = (tx: Transaction, shared: Shared, request: FastifyRequest, given: SignInGiven): Promise<string> =>
  beginSession(
    tx,
    { environment: shared.environment, settings: settingsNow(shared), actor: thisProcess('http') },
    {
      ...{ ...given, network: networkOf(request.ip), browser: request.headers['user-agent'] ?? '' },
      replaces: readCookie(request, placeOf(shared, request), 'reckoner'),
    },
  );

export function signIn(
  shared: Shared,
  request: FastifyRequest,
  reply: FastifyReply,
  session: string,
  to: unknown,
): FastifyReply {
  const place = placeOf(shared, request);
  setCookie(reply, place, 'reckoner', session);
  setCookie(reply, place, 'reckoner-sign-in', null);
  return reply.redirect(pageToGoTo(to), 303);
}
