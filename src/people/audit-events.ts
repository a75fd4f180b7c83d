/**
 * Audit events: who did what, when and from where. Every action that changes something records its event in the same
 * transaction, and the facts that it records refer to the event.
 */

import { hostname, userInfo } from 'node:os';
import type { Environment } from '../config/environment.ts';
import type { Settings } from '../config/settings.ts';
import type { Transaction } from '../database/transaction.ts';
import { insertEvents } from './audit-events.sql.ts';
import type { User } from './roles.ts';

export interface Actor {
  /** The value of `--by`; for the console the user's login, for a job its name. */
  readonly claimedBy: string | null;
  readonly osUser: string;
  readonly host: string;
  readonly via: 'command' | 'job' | 'http' | 'console';
  /** The acting user; absent if there is none, or before an installation has users. */
  readonly user?: User | undefined;
}

/** The environment and settings. */
export interface Installation {
  readonly environment: Environment;
  readonly settings: Settings;
}

/** The context and the actor. */
export interface ActorContext extends Installation {
  readonly actor: Actor;
}

/** The operating-system user and host of this process. */
export function thisProcess(via: Actor['via'], claimedBy: string | null = null): Actor {
  return { claimedBy, osUser: osUser(), host: hostname(), via };
}

/** A container may run under a user id without a name. */
function osUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}

export interface AuditEvent {
  /** Noun and verb: `invoice.void`. */
  readonly action: string;
  /** The subject, such as a document's number, a partner, a month or a file. */
  readonly subject: string;
  readonly details: Readonly<Record<string, unknown>>;
  /** ISO instant. */
  readonly now: string;
}

/** Records the event and returns its id, for the facts that belong to it. */
export const recordEvent = async (tx: Transaction, actor: Actor, event: AuditEvent): Promise<number> =>
  (await recordEvents(tx, actor, [event]))[0] as number;

/** Records many events of one action in one statement. Returns their ids in the same order. */
export async function recordEvents(tx: Transaction, actor: Actor, events: readonly AuditEvent[]): Promise<number[]> {
  if (events.length === 0) return [];
  const { claimedBy, osUser, host, via, user } = actor;
  const userId = user?.user_id ?? null;
  const rows = await insertEvents(tx, { claimedBy, osUser, host, via, userId, events: JSON.stringify(events) });
  return rows.map(({ event_id }) => event_id);
}
