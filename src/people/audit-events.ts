/**
 * Audit events: who did what, when and from where. Every action that changes something records its event in the same
 * transaction, and the facts it makes name the event.
 */
import { hostname, userInfo } from 'node:os';
import type { Environment } from '../config/environment.ts';
import type { Settings } from '../config/settings.ts';
import { execute, queryOne, type Transaction } from '../database/transaction.ts';
import type { User } from './roles.ts';

export interface Actor {
  /** What `--by` says; of the console's user its login, and of a job its name. */
  readonly claimedBy: string | null;
  readonly osUser: string;
  readonly host: string;
  readonly via: 'command' | 'job' | 'http' | 'console';
  /** The user who acts; absent where no user does, and before an installation has users. */
  readonly user?: User | undefined;
}

/** In which environment, and with which settings. */
export interface Installation {
  readonly environment: Environment;
  readonly settings: Settings;
}

/** And who acts. */
export interface ActorContext extends Installation {
  readonly actor: Actor;
}

/** Whoever runs this process. */
export function thisProcess(via: Actor['via'], claimedBy: string | null = null): Actor {
  return { claimedBy, osUser: osUser(), host: hostname(), via };
}

/** A container may run under a number that has no name. */
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
  /** What it was done to: a document's number, a partner, a month, a file. */
  readonly subject: string;
  readonly details: Readonly<Record<string, unknown>>;
  /** ISO instant. */
  readonly now: string;
}

/** Records the event and gives its id, for the facts that belong to it. */
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

/** Records many events of one action in one statement, in their order. */
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
