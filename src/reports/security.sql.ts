/** The security log: refused callers, and audit events that changed access, keys or instructions. */
import { query, Transaction } from '#database/transaction';

export type SecurityEvent = Readonly<{
  at: string;
  /** `exchange_refused`, or the action of an audit event, such as `client.create`. */
  event: string;
  /** The subject of the change; null for a refused caller. */
  subject: string | null;
  network: string | null;
  client_id: string | null;
  tries: number;
  by: string | null;
  host: string;
}>;

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
