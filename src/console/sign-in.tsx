/**
 * The sign-in page and one-time sign-in links. A person must press a button on the page that a link opens, because
 * programs that scan e-mails would use it up. Refusals: sign_in_link_invalid, form_refused, rate_limited.
 */
import { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ComponentChildren } from 'preact';
import { Transaction } from '#database/transaction';
import { reasonOf, refuse } from '#errors/refusals';
import { networkOf } from '#http/limits';
import { Shared } from '#http/shared';
import { canMail, mailSignInLink, SentLink } from '#mail/sign-in-link';
import { thisProcess } from '#people/audit-events';
import { keepChallenge, takeChallenge } from '#people/challenges';
import { hashOf } from '#people/secrets';
import { beginSession, SignInGiven } from '#people/sessions';
import { takeSignInLink } from '#people/sign-in.sql';
import { insertAskedLink } from '#people/sign-in-links';
import { loginOf } from '#people/users.sql';
import { HOME, isNamed, pageToGoTo, placeOf, readCookie, refuseOtherOrigin, setCookie } from './cookies.ts';
import { fieldsOfForm, formOf } from './form.tsx';
import { outerPage } from './page.tsx';
import { outerOf } from './problem.tsx';
import { settingsNow } from './route.ts';

const LARGEST_FORM = 16 * 1024;
const SIGN_IN = '/console/sign-in';

export const openRoute = ({ limits }: Shared) => ({
  onRequest: async (request: FastifyRequest) => void limits.request('console', request.ip),
  config: { bound: 'console' as const },
  bodyLimit: LARGEST_FORM,
});

export function addSignIn(app: FastifyInstance, shared: Shared): void {
  const { database, environment } = shared;
  type Asked = { Querystring: { to?: string; again?: string; ended?: string } };
  app.get<Asked>('/sign-in', openRoute(shared), async (request, reply) => {
    const place = placeOf(shared, request);
    const { to, again, ended } = request.query;
    const settings = settingsNow(shared);
    const html = outerPage(
      { ...outerOf(shared, request), title: again ? 'Sign in again' : 'Sign in', scripts: ['passkeys.js', 'link.js'] },
      <>
        {again && <p>This needs a sign-in of the last five minutes. You then return to the page.</p>}
        {ended && <p>Your session has ended, and nothing was changed. You then return to the form as you filled it.</p>}
        <Ways
          to={pageToGoTo(to)}
          again={again !== undefined}
          passkeys={isNamed(place)}
          provider={settings.console.oidc !== null}
          mail={canMail({ environment, settings })}
        />
      </>,
    );
    return reply.type('text/html; charset=utf-8').send(html);
  });
  app.post('/sign-in', openRoute(shared), async (request, reply) => {
    refuseOtherOrigin(request, placeOf(shared, request));
    const { secret, to } = linkSent(request);
    const asking = readCookie(request, placeOf(shared, request), 'reckoner-sign-in');
    const signed = await database.transaction(async (tx) => {
      const user = await takeSignInLink(tx, { secret, now: environment.now().toISO() });
      if (user === undefined) return undefined;
      const asked = await takeChallenge(tx, shared, { secret: asking, kind: 'link' });
      return { session: await begin(tx, shared, request, { user, method: 'link' }), asked };
    });
    if (signed === undefined) return refuseLink(shared, request);
    const page = pageToGoTo(to);
    return signIn(shared, request, reply, signed.session, page === HOME ? signed.asked?.['to'] : page);
  });
  addAskedLinks(app, shared);
}

/**
 * A user can have a link e-mailed. The answer does not reveal whether there is such a user. The page to return to stays
 * with the browser, and is not in the e-mail: it may have the fields of a form.
 */
function addAskedLinks(app: FastifyInstance, shared: Shared) {
  const { database, environment } = shared;
  const mailLater = mailingLater(app, shared);
  app.post('/sign-in/ask', openRoute(shared), async (request, reply) => {
    const place = placeOf(shared, request);
    refuseOtherOrigin(request, place);
    const settings = settingsNow(shared);
    if (!canMail({ environment, settings })) throw refuse('page_unknown', { path: request.url });
    const fields = fieldsOfForm(formOf(request.body, request.headers['content-type']));
    const login = (fields?.get('login') ?? '').trim();
    await shared.limits.askedForLink(hashOf(loginOf(login)), request.ip);
    const content = { to: pageToGoTo(fields?.get('to')) };
    const asking = await database.transaction((tx) => keepChallenge(tx, shared, { kind: 'link', content }));
    setCookie(reply, place, 'reckoner-sign-in', asking);
    mailLater({ console: true }, async () => {
      const given = { login, network: networkOf(request.ip) };
      const made = await database.transaction((tx) => insertAskedLink(tx, shared, given));
      if (made === undefined) return undefined;
      const { user, secret, expires_at } = made;
      const to = { name: user.name === user.login ? '' : user.name, address: user.login };
      return mailSignInLink({ environment, settings }, { to, url: `${place.origin}${SIGN_IN}#${secret}`, expires_at });
    });
    const html = outerPage(
      { ...outerOf(shared, request), title: 'Check your e-mail' },
      <>
        <p>
          If a user without a passkey has this address, a link is on its way to it. It works once, for 15 minutes. Open
          it in this browser to return to your page.
        </p>
        {environment.smtpUrl === undefined && (
          <p>This sandbox sends no e-mail: the link is in the newest file of its folder “outbox”.</p>
        )}
        <p class="soft">Nothing arrived? Sign in with your passkey or your organization, or ask an administrator.</p>
      </>,
    );
    return reply.type('text/html; charset=utf-8').send(html);
  });
}

/** In case the mail server does not answer. */
const MOST_UNDER_WAY = 20;

/**
 * Mails sign-in links after the response, because its time would reveal whether an address exists. The server waits for
 * them when it stops.
 */
export function mailingLater(app: FastifyInstance, { log }: Shared) {
  const underWay = new Set<Promise<void>>();
  app.addHook('onClose', async () => void (await Promise.all(underWay)));
  const mail = async (to: object, send: () => Promise<SentLink | undefined>) => {
    try {
      const sent = await send();
      if (sent === undefined) log.info(to, 'sign-in link not sent: no one can sign in with a link');
      else log[sent.outcome === 'sent' ? 'info' : 'warn']({ ...to, ...sent }, 'sign-in link mailed');
    } catch (error) {
      log.error({ ...to, reason: reasonOf(error) }, 'sign-in link not sent');
    }
  };
  return (to: object, send: () => Promise<SentLink | undefined>): void => {
    if (underWay.size < MOST_UNDER_WAY) {
      const sending = mail(to, send).finally(() => underWay.delete(sending));
      underWay.add(sending);
    } else log.warn(to, 'sign-in link not sent: too many are being sent');
  };
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
  mail,
}: Readonly<Record<'again' | 'passkeys' | 'provider' | 'mail', boolean>> & { to: string }) => (
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
    {mail && (
      <form method="post" action="/console/sign-in/ask" class="stack">
        <input type="hidden" name="to" value={to} />
        <label class="field">
          Your e-mail address
          <input type="email" name="login" required autocomplete="username" />
        </label>
        <p>
          <button type="submit">E-mail me a link</button>
        </p>
      </form>
    )}
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
