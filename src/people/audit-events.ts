/**
 * Audit events: who did what, when and from where. Every action that changes something records its event in the same
 * transaction, and the facts it makes refer to the event.
 */
import { hostname, userInfo } from 'node:os';
import type { Environment } from '../config/environment.ts';
import type { Settings } from '../config/settings.ts';
import { execute, queryOne, type Transaction } from '../database/transaction.ts';
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
  /** Its subject: a document's number, a partner, a month, a file. */
  readonly subject: string;
  readonly details: Readonly<Record<string, unknown>>;
  /** ISO instant. */
  readonly now: string;
}

/** Records the event and returns its id, for the facts that belong to it. */
export async function recordEvent(tx: Transaction, actor: Actor, event: AuditEvent): Promise<number> {
  const { event_id } = await queryOne<{ event_id: number }>(
    tx,
    `INSERT INTO audit_events (occurred_at, action, subject, details, claimed_by, os_user, host, via, user_id)
     VALUES (:now::timestamptz, :action, :subject, :details::jsonb || approval_details(), :claimedBy, :osUser, :host,
             :via, coalesce(:userId::bigint, acting_user()))
     RETURNING event_id`,
    { ...actor, ...event, userId: actor.user?.user_id ?? null, details: JSON.stringify(event.details) },
  );
  return event_id;
}

/** Records many events of one action in one statement, in order. */
export async function recordEvents(tx: Transaction, actor: Actor, events: readonly AuditEvent[]): Promise<void> {
  if (events.length === 0) return;
  await execute(
    tx,
    `INSERT INTO audit_events (occurred_at, action, subject, details, claimed_by, os_user, host, via, user_id)
     SELECT now, action, subject, details || approval_details(), :claimedBy, :osUser, :host, :via,
            coalesce(:userId::bigint, acting_user())
     FROM ROWS FROM (json_to_recordset(:events::json) AS (now timestamptz, action text, subject text, details jsonb))
       WITH ORDINALITY AS event (now, action, subject, details, position)
     ORDER BY position`,
    { ...actor, userId: actor.user?.user_id ?? null, events: JSON.stringify(events) },
  );
}
