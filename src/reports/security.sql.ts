/** The security log: refused callers, and audit events that changed access, keys or instructions. */
import { query, type Transaction } from '../database/transaction.ts';

export interface SecurityEvent {
  readonly at: string;
  /** `exchange_refused`, or the action of an audit event, such as `client.create`. */
  readonly event: string;
  /** The subject of the change; null for a refused caller. */
  readonly subject: string | null;
  readonly network: string | null;
  readonly client_id: string | null;
  readonly tries: number;
  readonly by: string | null;
  readonly host: string;
}

export function readSecurityEvents(
  tx: Transaction,
  { since, limit }: { since: string | null; limit: number | null },
): Promise<SecurityEvent[]> {
  return query(
    tx,
    `SELECT * FROM (
       SELECT last_at AS at, kind AS event, NULL AS subject, network, client_id, tries, NULL AS by, host
       FROM security_events
       UNION ALL
       SELECT occurred_at, action, personal(subject), NULL, NULL, 1, coalesce(personal(claimed_by), os_user), host
       FROM audit_events
       WHERE action ~ '^(user|client|webhook|settings|signing_key|database|backup|ledger)[.](?!import$)'
     ) AS every
     WHERE :since::timestamptz IS NULL OR at >= :since::timestamptz
     ORDER BY at DESC, event LIMIT :limit`,
    { since, limit },
  ).then((found) => (found as SecurityEvent[]).reverse());
}
