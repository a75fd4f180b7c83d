/** All users' sessions and passkeys. Administrators can end sessions and remove passkeys. */

import { EndSession, passkeyColumns, SESSION_COLUMNS, SESSIONS } from '#console/account';
import { Instant, PageUser, Screen, TableCard } from '#console/parts';
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
          ...SESSION_COLUMNS,
          { heading: 'Last seen', cell: ({ last_seen_at }) => <Instant at={last_seen_at} /> },
          {
            heading: '',
            cell: ({ session_id }) => <EndSession path={SESSIONS} token={formToken} id={session_id} />,
          },
        ]}
      />
      <TableCard
        title="Passkeys"
        note="Lost a passkey? Sign in with a new link."
        nothing="No one has a passkey."
        rows={passkeys}
        columns={[{ heading: 'User', cell: ({ login }) => login }, ...passkeyColumns(SESSIONS, formToken)]}
      />
    </div>
  ),
});
