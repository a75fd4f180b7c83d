/** All users' sessions and passkeys. Administrators can end sessions and remove passkeys. */

import { browserName, METHODS, SESSIONS } from '#console/account';
import { Form, Instant, PageUser, Screen, TableCard } from '#console/parts';
import { Transaction } from '#database/transaction';
import { ActorContext } from '#people/audit-events';
import { Passkey, readPasskeys } from '#people/passkeys.sql';
import { liveAt } from '#people/sessions';
import { ListedSession, readSessions } from '#people/sign-in.sql';

type SessionsView = Readonly<{
  live: readonly ListedSession[];
  passkeys: readonly Passkey[];
}>;

export const readSessionsView = async (tx: Transaction, context: ActorContext): Promise<SessionsView> => ({
  live: await readSessions(tx, { ...liveAt(context), login: null }),
  passkeys: await readPasskeys(tx, {}),
});

export const sessionsScreen = ({ live, passkeys }: SessionsView, { formToken }: PageUser): Screen => ({
  place: 'settings',
  title: 'Sessions',
  lead: 'who is signed in',
  content: (
    <div class="stack">
      <TableCard
        title="Signed in"
        nothing="No one is signed in."
        rows={live}
        columns={[
          { heading: 'User', cell: ({ login }) => login },
          { heading: 'From', cell: ({ network }) => network },
          { heading: 'Browser', cell: ({ browser }) => <span class="soft">{browserName(browser)}</span> },
          { heading: 'By', cell: ({ method }) => METHODS[method] },
          { heading: 'Since', cell: ({ created_at }) => <Instant at={created_at} /> },
          { heading: 'Last seen', cell: ({ last_seen_at }) => <Instant at={last_seen_at} /> },
          {
            heading: '',
            cell: ({ session_id }) => (
              <Form action={`${SESSIONS}/end`} token={formToken}>
                <input type="hidden" name="session" value={session_id} />
                <button type="submit">End</button>
              </Form>
            ),
          },
        ]}
      />
      <TableCard
        title="Passkeys"
        note="Lost a passkey? Sign in with a new link."
        nothing="No one has a passkey."
        rows={passkeys}
        columns={[
          { heading: 'User', cell: ({ login }) => login },
          { heading: 'Name', cell: ({ name }) => name },
          { heading: 'Added', cell: ({ recorded_at }) => <Instant at={recorded_at} /> },
          { heading: 'Last used', cell: ({ used_at }) => used_at !== null && <Instant at={used_at} /> },
          {
            heading: '',
            cell: ({ passkey_id }) => (
              <Form action={`${SESSIONS}/passkeys/remove`} token={formToken}>
                <input type="hidden" name="passkey" value={passkey_id} />
                <button type="submit">Remove</button>
              </Form>
            ),
          },
        ]}
      />
    </div>
  ),
});
