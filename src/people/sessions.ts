/**
 * Sessions of the console, identified by the hash of the cookie's secret. A session ends after idle_minutes, after
 * session_hours, when the user's roles change, or when a user ends it. Roles are read with the session, so they are
 * current.
 */

import { DateTime } from 'luxon';
import { todayOf } from '#config/today';
import { Transaction } from '#database/transaction';
import { Actor, ActorContext, Installation, recordEvent } from './audit-events.ts';
import { refuseEnded, User } from './roles.ts';
import { hashOf, newSecret } from './secrets.ts';
import { endSessionNumbered, insertSession, isElsewhere, Session, SignInMethod } from './sign-in.sql.ts';

const KEPT_DAYS = 30;

export type SignInGiven = Readonly<{
  user: User;
  method: SignInMethod;
  /** The claim `auth_time` of an identity provider. */
  provedAt?: DateTime<true> | undefined;
}>;

/**
 * Starts a session, which replaces the one with the secret `replaces`. Returns the secret for the cookie. Refusal:
 * access_ended.
 */
export async function beginSession(
  tx: Transaction,
  { actor, environment, settings }: ActorContext,
  given: SignInGiven & { network: string; browser: string; replaces?: string | undefined },
) {
  const at = environment.now();
  const now = at.toISO();
  const { user, method, network, provedAt = at, replaces } = given;
  refuseEnded(user, todayOf({ environment, settings }));
  const own: Actor = { ...actor, claimedBy: user.login, via: 'console', user };
  const elsewhere = await isElsewhere(tx, { userId: user.user_id, network });
  const details = { method, network, ...(elsewhere && { elsewhere }) };
  const eventId = await recordEvent(tx, own, { action: 'user.sign_in', subject: user.login, details, now });
  const secret = newSecret();
  await insertSession(tx, {
    ...{ sha256: hashOf(secret), userId: user.user_id, method, network, browser: given.browser.slice(0, 200), now },
    ...{ provedAt: DateTime.min(provedAt, at).toISO(), replacesSha256: replaces ? hashOf(replaces) : null },
    ...{ endsAt: at.plus({ hours: settings.console.session_hours }).toISO(), eventId },
    forgetBefore: at.minus({ days: KEPT_DAYS }).toISO(),
  });
  return secret;
}

/** Ends one session and records who ended it. If `userId` is null, it may belong to any user. */
export async function endSession(
  tx: Transaction,
  { actor, environment }: Pick<ActorContext, 'actor' | 'environment'>,
  { sessionId, userId }: { sessionId: number; userId: number | null },
) {
  const now = environment.now().toISO();
  const [ended] = await endSessionNumbered(tx, { sessionId, userId, now });
  if (ended === undefined) return;
  await recordEvent(tx, actor, { action: 'user.sign_out', subject: ended.login, details: { sessions: 1 }, now });
}

/** A sign-in proves for this long who the user is, for actions on sign-ins, users or approvals. */
const PROOF_MINUTES = 5;

export const isProved = ({ proved_at }: Session, { environment }: Pick<Installation, 'environment'>) =>
  environment.now().toMillis() - Date.parse(proved_at) <= PROOF_MINUTES * 60_000;

export function liveAt({ environment, settings }: Installation) {
  const now = environment.now();
  return { now: now.toISO(), idleSince: now.minus({ minutes: settings.console.idle_minutes }).toISO() };
}
