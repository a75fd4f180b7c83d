import { removePasskeys } from '#people/passkeys';
import { endSession } from '#people/sessions';
import { SESSIONS } from './account.tsx';
import { idSent } from './form.tsx';
import { Access, Routes } from './route.ts';
import { readSessionsView, sessionsScreen } from './screens/sessions.tsx';

const ADMINISTRATOR: Access = { role: 'administrator', scope: 'ledger' };

export function addSessions({ screen, action }: Routes): void {
  screen(
    '/settings/sessions',
    ADMINISTRATOR,
    (tx, { context }) => readSessionsView(tx, context),
    (view, { reader }) => sessionsScreen(view, reader),
  );
  action('/settings/sessions/end', ADMINISTRATOR, async ({ context }, fields, transact) => {
    await transact((tx) => endSession(tx, context, { sessionId: idSent(fields, 'session'), userId: null }));
    return { to: SESSIONS };
  });
  action(
    '/settings/sessions/passkeys/remove',
    { ...ADMINISTRATOR, proof: SESSIONS },
    async ({ context }, fields, transact) => {
      await transact((tx) => removePasskeys(tx, context, { passkeyId: idSent(fields, 'passkey'), userId: null }));
      return { to: SESSIONS };
    },
  );
}
