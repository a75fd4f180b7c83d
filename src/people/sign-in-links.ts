import { Transaction } from '#database/transaction';
import { Installation, recordEvent, thisProcess } from './audit-events.ts';
import { User } from './roles.ts';
import { hashOf, newSecret } from './secrets.ts';
import { insertLink, readLinkUser, replaceLinks } from './sign-in.sql.ts';
import { loginOf } from './users.sql.ts';

export type MadeLink = Readonly<{
  /** Shown once. Only its hash is stored. */
  secret: string;
  expires_at: string;
}>;

export const linkEnd = ({ environment, settings }: Installation) =>
  environment.now().plus({ hours: settings.console.link_hours }).toUTC().toISO();

/** Creates a sign-in link that works once. The user's earlier links expire. */
export async function insertSignInLink(
  tx: Transaction,
  context: Installation,
  { user: { user_id: userId }, eventId }: { user: User; eventId: number },
): Promise<MadeLink> {
  const secret = newSecret();
  const expires_at = linkEnd(context);
  await replaceLinks(tx, { sha256: hashOf(secret), userId, expiresAt: expires_at, eventId });
  return { secret, expires_at };
}

const ASKED_MINUTES = 15;

/**
 * Creates a link for someone who typed this login on the sign-in page. It is only e-mailed, and earlier links stay
 * valid, so that a stranger cannot end them. Undefined if there is no such user, or if the user has a stronger way to
 * sign in, which a mailbox must not replace.
 */
export async function insertAskedLink(
  tx: Transaction,
  { environment }: Pick<Installation, 'environment'>,
  given: { login: string; network: string },
): Promise<(MadeLink & { readonly user: User }) | undefined> {
  const user = await readLinkUser(tx, { login: loginOf(given.login) });
  if (user === undefined) return undefined;
  const { user_id: userId, login } = user;
  const at = environment.now();
  const expires_at = at.plus({ minutes: ASKED_MINUTES }).toUTC().toISO();
  const event = { action: 'user.ask_link', subject: login, details: { network: given.network, expires_at } };
  const eventId = await recordEvent(tx, thisProcess('http'), { ...event, now: at.toISO() });
  const secret = newSecret();
  await insertLink(tx, { sha256: hashOf(secret), userId, expiresAt: expires_at, eventId });
  return { user, secret, expires_at };
}
