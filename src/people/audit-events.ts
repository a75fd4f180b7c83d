/**
 * Records audit events: who did what, when and from where. Every action that changes something records its event in the
 * same transaction, and the facts of the action refer to the event.
 */

import { hostname, userInfo } from 'node:os';
import { Environment } from '#config/environment';
import { Settings } from '#config/settings';
import { Transaction } from '#database/transaction';
import { insertEvents } from './audit-events.sql.ts';
import { User } from './roles.ts';

export type Actor = Readonly<{
  /** The value of `--by` in a command, the user's login in the console, or the job's name in a job. */
  claimedBy: string | null;
  osUser: string;
  host: string;
  via: 'command' | 'job' | 'http' | 'console';
  /** The acting user. Absent if no user acts, or if the installation has no users yet. */
  user?: User | undefined;
}>;

export type Installation = Readonly<{
  environment: Environment;
  settings: Settings;
}>;

export type ActorContext = Installation &
  Readonly<{
    actor: Actor;
  }>;

export function thisProcess(via: Actor['via'], claimedBy: string | null = null): Actor {
  return { claimedBy, osUser: osUser(), host: hostname(), via };
}

/** The name of the operating-system user. A container may run under a user id without a name. */
function osUser() {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}

export type AuditEvent = Readonly<{
  action: string;
  /** A document number, a partner, a month, a file or similar. */
  subject: string;
  details: Readonly<Record<string, unknown>>;
  now: string;
}>;

/** Records an event. Returns the id of the event, which the facts of the action refer to. */
export const recordEvent = async (tx: Transaction, actor: Actor, event: AuditEvent) =>
  (await recordEvents(tx, actor, [event]))[0] as number;

/** Records events in one statement. Returns their ids in the same order. */
export async function recordEvents(tx: Transaction, actor: Actor, events: readonly AuditEvent[]) {
  if (events.length === 0) return [];
  const { claimedBy, osUser, host, via, user } = actor;
  const userId = user?.user_id ?? null;
  const rows = await insertEvents(tx, { claimedBy, osUser, host, via, userId, events: JSON.stringify(events) });
  return rows.map(({ event_id }) => event_id);
}

/** Where an event came from. It names one that no user is known of. */
export const sourceOf = ({ via }: { readonly via: string }) =>
  via === 'command' ? 'command line' : via === 'job' ? 'scheduled job' : via === 'http' ? 'server' : via;
