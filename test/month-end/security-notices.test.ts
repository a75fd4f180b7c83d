/** What users are told by e-mail of their own account: new passkeys, sign-in links and sign-ins from elsewhere. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { sendEmails } from '../../src/month-end/month-end.ts';
import { addPasskey } from '../../src/people/passkeys.ts';
import type { User } from '../../src/people/roles.ts';
import { beginSession } from '../../src/people/sessions.ts';
import { linkUser } from '../../src/people/users.ts';
import { as, LEE, MARA, openApproving } from '../support/approving.ts';
import { ADMINISTRATOR } from '../support/console.ts';
import { type MailServer, startMailServer } from '../support/mail-server.ts';
import type { World } from '../support/world.ts';

let server: MailServer;
let world: World;
beforeAll(async () => {
  server = await startMailServer();
  world = await openApproving({ smtpUrl: server.url });
  await sendEmails(world, {});
});
afterAll(async () => {
  await world.end();
  await server.close();
});
beforeEach(() => {
  server.behaviour = 'accept';
  server.mails.length = 0;
});

async function signIn(login: string, network: string): Promise<void> {
  const context = await as(world, login);
  const user = context.actor.user as User;
  const given = { user, method: 'passkey', network, browser: 'Firefox' } as const;
  await world.database.transaction((tx) => beginSession(tx, context, given));
}
async function told(): Promise<{ to: readonly string[]; subject: string | undefined; text: string }[]> {
  await sendEmails(world, {});
  await sendEmails(world, {});
  return server.mails.map(({ to, parsed }) => ({ to, subject: parsed.subject, text: parsed.text ?? '' }));
}

test('a sign-in from a network that the user has not used before is mailed once, but not the first sign-in', async () => {
  await signIn(MARA, '192.0.2.7');
  await signIn(MARA, '192.0.2.7');
  expect(await told()).toEqual([]);
  await signIn(MARA, '2001:db8:1:2::/64');
  await signIn(MARA, '2001:db8:1:2::/64');
  await signIn(LEE, '192.0.2.7');
  const [mail, ...others] = await told();
  expect(others).toEqual([]);
  expect(mail).toMatchObject({
    to: [MARA],
    subject: '[SANDBOX] Your account was signed in to from a new network',
    text: expect.stringContaining('(2001:db8:1:2::/64)'),
  });
});

test('a new passkey is mailed with its name, and a link with who made it', async () => {
  const context = await as(world, MARA);
  const given = { user: context.actor.user as User, credentialId: 'c'.repeat(22), publicKey: new Uint8Array([1]) };
  await world.database.transaction((tx) => addPasskey(tx, context, { ...given, counter: 0, name: 'Laptop' }));
  const administrator = await as(world, ADMINISTRATOR);
  await world.database.transaction((tx) => linkUser(tx, administrator, { login: LEE }));
  const mails = await told();
  expect(mails.map(({ to, subject }) => [...to, subject]).sort()).toEqual(
    [
      [LEE, '[SANDBOX] A sign-in link for your account was made'],
      [MARA, '[SANDBOX] A passkey was added to your account'],
    ].sort(),
  );
  expect(mails.find(({ to }) => to[0] === MARA)?.text).toContain('(Laptop)');
  expect(mails.find(({ to }) => to[0] === LEE)?.text).toContain('(Ada)');
});

test('a mail server that does not answer delays no sign-in: the notice waits in the queue', async () => {
  server.behaviour = 'defer_recipients';
  await signIn(MARA, '198.51.100.1');
  expect(await told()).toEqual([]);
  server.behaviour = 'accept';
  expect(await told()).toHaveLength(1);
});
