/** Pages where a signed-in user of any role sees their roles, sessions and passkeys. */
import { FastifyReply } from 'fastify';
import { Passkey, readPasskeys } from '#people/passkeys.sql';
import { accessInWords, scopeOf } from '#people/roles';
import { endSession, liveAt } from '#people/sessions';
import { ListedSession, readSessions, Session } from '#people/sign-in.sql';
import { signOutUser } from '#people/users';
import { endCookie, isNamed, Place, setKeys, setTheme, THEMES, Theme } from './cookies.ts';
import { Form, idSent } from './form.tsx';
import { Card, Chip, Column, Instant, TableCard } from './kit.tsx';
import { Screen } from './page.tsx';
import { Access, Routes, Visit } from './route.ts';

export const SESSIONS = '/console/settings/sessions';

const OWN: Access = { role: 'viewer', scope: 'partners', ofPeriod: true };

export function addAccount({ screen, action }: Routes): void {
  screen(
    '/account',
    OWN,
    async (tx, { user, context }) => ({
      live: await readSessions(tx, { ...liveAt(context), login: user.login }),
      passkeys: await readPasskeys(tx, { userId: user.user_id }),
    }),
    accountScreen,
  );
  action('/sign-out', OWN, async ({ user, session, context, place, reply }, _fields, transact) => {
    const own = { sessionId: session.session_id, userId: user.user_id };
    await transact((tx) => endSession(tx, context, own));
    return left(session, place, reply);
  });
  action('/account/sessions/end', OWN, async ({ user, context }, fields, transact) => {
    const sessionId = idSent(fields, 'session');
    await transact((tx) => endSession(tx, context, { sessionId, userId: user.user_id }));
    return { to: '/console/account' };
  });
  action('/account/theme', OWN, async ({ place, reply }, fields) => {
    setTheme(reply, place, THEMES.find((each) => each === fields.get('theme')) ?? null);
    return { to: '/console/account' };
  });
  action('/account/keys', OWN, async ({ place, reply }, fields) => {
    setKeys(reply, place, fields.get('keys') !== 'off');
    return { to: '/console/account' };
  });
  const everywhere = (path: string, access: Access, passkeys: boolean) =>
    action(path, access, async ({ user: { login }, session, context, place, reply }, _fields, transact) => {
      await transact((tx) => signOutUser(tx, context, { login, passkeys }));
      return left(session, place, reply);
    });
  everywhere(EVERYWHERE, OWN, false);
  everywhere(`${EVERYWHERE}/passkeys`, { ...OWN, proof: '/console/account' }, true);
}

const EVERYWHERE = '/account/sign-out-everywhere';

function left({ method }: Session, place: Place, reply: FastifyReply) {
  endCookie(reply, place, 'reckoner');
  return { to: method === 'provider' ? '/console/sign-in/provider/left' : '/console/sign-in' };
}

const METHODS = { link: 'link', passkey: 'passkey', provider: 'identity provider' } as const;

/** Of a session, as its user and administrators see it. */
export const SESSION_COLUMNS: readonly Column<ListedSession>[] = [
  { heading: 'From', cell: ({ network }) => network },
  { heading: 'Browser', cell: ({ browser }) => <span class="soft">{browserName(browser)}</span> },
  { heading: 'By', cell: ({ method }) => METHODS[method] },
  { heading: 'Since', cell: ({ created_at }) => <Instant at={created_at} /> },
];

export const EndSession = ({ path, token, id }: Readonly<{ path: string; token: string; id: number }>) => (
  <Form action={`${path}/end`} token={token} hidden={{ session: String(id) }}>
    <button type="submit">End</button>
  </Form>
);

export const passkeyColumns = (path: string, token: string): readonly Column<Passkey>[] => [
  { heading: 'Name', cell: ({ name }) => name },
  { heading: 'Added', cell: ({ recorded_at }) => <Instant at={recorded_at} /> },
  { heading: 'Last used', cell: ({ used_at }) => used_at !== null && <Instant at={used_at} /> },
  {
    heading: '',
    cell: ({ passkey_id }) => (
      <Form action={`${path}/passkeys/remove`} token={token} hidden={{ passkey: String(passkey_id) }}>
        <button type="submit">Remove</button>
      </Form>
    ),
  },
];

type AccountView = Readonly<{
  live: readonly ListedSession[];
  passkeys: readonly Passkey[];
}>;

function accountScreen({ live, passkeys }: AccountView, visit: Visit): Screen {
  const { user, session, reader } = visit;
  return {
    place: null,
    title: 'Your account',
    lead: `${user.login} · ${accessInWords(user)}`,
    actions: scopeOf(user, 'administrator') === null && (
      <a class="button" href={SESSIONS}>
        All sessions
      </a>
    ),
    content: (
      <div class="stack">
        <TableCard
          title="Signed in"
          note={`Passkeys that stay after signing out everywhere: ${passkeys.length}.`}
          actions={
            <Form action={`/console${EVERYWHERE}`} token={reader.formToken} boost={false}>
              <button type="submit">Sign out everywhere</button>{' '}
              {passkeys.length > 0 && (
                <button type="submit" formaction={`/console${EVERYWHERE}/passkeys`}>
                  And end passkeys
                </button>
              )}
            </Form>
          }
          rows={live}
          columns={[
            ...SESSION_COLUMNS,
            { heading: 'Ends', cell: ({ ends_at }) => <Instant at={ends_at} /> },
            {
              heading: '',
              cell: ({ session_id }) =>
                session_id === session.session_id ? (
                  <Chip tone="good">This one</Chip>
                ) : (
                  <EndSession path="/console/account/sessions" token={reader.formToken} id={session_id} />
                ),
            },
          ]}
        />
        <Passkeys passkeys={passkeys} token={reader.formToken} possible={isNamed(visit.place)} />
        <Appearance chosen={reader.theme} token={reader.formToken} />
        <Keyboard on={reader.keys} token={reader.formToken} />
      </div>
    ),
  };
}

/** A boosted form would not replace the document's root, which has the theme. */
const Appearance = ({ chosen, token }: { chosen: Theme | null; token: string }) => (
  <Card title="Appearance" note="For this browser.">
    <Form action="/console/account/theme" token={token} boost={false} class="choices">
      {(
        [
          ['', 'Same as system'],
          ['light', 'Light'],
          ['dark', 'Dark'],
        ] as const
      ).map(([theme, name]) => (
        <button type="submit" name="theme" value={theme} aria-pressed={theme === (chosen ?? '')}>
          {name}
        </button>
      ))}
    </Form>
  </Card>
);

const Keyboard = ({ on, token }: { on: boolean; token: string }) => (
  <Card
    title="Keyboard"
    note="This choice applies to this browser only. With single keys on, you move through rows with j and k, and search with /."
  >
    <Form action="/console/account/keys" token={token} boost={false} class="choices">
      {(
        [
          ['on', 'Single keys on'],
          ['off', 'Single keys off'],
        ] as const
      ).map(([keys, name]) => (
        <button type="submit" name="keys" value={keys} aria-pressed={(keys === 'on') === on}>
          {name}
        </button>
      ))}
    </Form>
  </Card>
);

const Passkeys = ({
  passkeys,
  token,
  possible,
}: {
  passkeys: readonly Passkey[];
  token: string;
  possible: boolean;
}) => (
  <TableCard
    title="Passkeys"
    note="With a passkey you sign in without a link."
    nothing="You have no passkey yet."
    rows={passkeys}
    columns={passkeyColumns('/console/account', token)}
  >
    <div class="in">
      {possible ? (
        <form class="filters" data-passkey="register" hidden hx-boost="false">
          <input type="hidden" name="form_token" value={token} />
          <label class="field">
            Name of this device
            <input name="name" required maxLength={60} placeholder="Laptop" />
          </label>
          <button type="submit">Add a passkey</button>
        </form>
      ) : (
        <p class="soft">Passkeys need https, or http://localhost.</p>
      )}
      <p role="alert" data-passkey-says />
    </div>
  </TableCard>
);

/** A name such as `Firefox`, by which users recognize their own session. */
const browserName = (agent: string) =>
  /(Edg|OPR|Firefox|Chrome|Safari)\//.exec(agent)?.[1]?.replace('Edg', 'Edge').replace('OPR', 'Opera') ?? 'Unknown';
