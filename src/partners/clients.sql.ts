import { execute, executing, query, queryingValue, Transaction } from '#database/transaction';

export const partnerExists = queryingValue<boolean, { partnerId: string }>(
  `SELECT EXISTS (SELECT FROM partners WHERE partner_id = :partnerId) AS there`,
);

export const insertClient = executing<{ clientId: string; partnerId: string; eventId: number; now: string }>(`
  INSERT INTO api_clients (client_id, partner_id, created_at, event_id)
  VALUES (:clientId, :partnerId, :now::timestamptz, :eventId)`);

type NewSecret = Readonly<{
  clientId: string;
  sequence: number;
  sha256: string;
  expiresAt: string | null;
  /** When the previous secret ends; null for the first one. */
  previousEndsAt: string | null;
  eventId: number;
  now: string;
}>;

export const insertSecret = executing<NewSecret>(`
  INSERT INTO client_secrets (client_id, sequence, secret_sha256, issued_at, expires_at, previous_ends_at, event_id)
  VALUES (:clientId, :sequence, :sha256, :now::timestamptz, :expiresAt::timestamptz,
          :previousEndsAt::timestamptz, :eventId)`);

export async function insertRevocation(
  tx: Transaction,
  revocation: { clientId: string; eventId: number; now: string },
) {
  const recorded = await execute(
    tx,
    `INSERT INTO client_revocations (client_id, revoked_at, event_id)
     VALUES (:clientId, :now::timestamptz, :eventId) ON CONFLICT (client_id) DO NOTHING`,
    revocation,
  );
  return recorded === 1;
}

export type ClientRow = Readonly<{
  client_id: string;
  partner_id: string;
  created_at: string;
  revoked_at: string | null;
  /** Within minutes; null if the client never called. */
  last_used_at: string | null;
  last_sequence: number;
  /** The live secrets, newest first. `ends_at` is null for a secret without an end. */
  live_secrets: readonly Readonly<{
    sequence: number;
    sha256: string;
    ends_at: string | null;
  }>[];
}>;

/**
 * Clients with the secrets that are live at an instant: the last two, until they expire or the newer one ends the older
 * one. A revoked client has none.
 */
export function readClients(
  tx: Transaction,
  filter: { clientId?: string | undefined; partnerId?: string | undefined; now: string },
): Promise<ClientRow[]> {
  return query(
    tx,
    `SELECT c.client_id, c.partner_id, c.created_at, r.revoked_at, u.used_at AS last_used_at,
            s.last_sequence,
            CASE WHEN r.client_id IS NULL THEN s.live ELSE '[]' END AS live_secrets
     FROM api_clients c
     LEFT JOIN client_revocations r ON r.client_id = c.client_id
     LEFT JOIN client_uses u ON u.client_id = c.client_id
     CROSS JOIN LATERAL (
       SELECT max(sequence) AS last_sequence,
              coalesce(json_agg(json_build_object('sequence', sequence, 'sha256', secret_sha256, 'ends_at',
                to_char(ends_at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) ORDER BY sequence DESC)
                FILTER (WHERE sequence >= last - 1 AND coalesce(ends_at > :now::timestamptz, true)), '[]') AS live
       FROM (
         SELECT sequence, secret_sha256, max(sequence) OVER () AS last,
                least(expires_at, lead(previous_ends_at) OVER (ORDER BY sequence)) AS ends_at
         FROM client_secrets WHERE client_id = c.client_id) AS secrets) AS s
     WHERE (:clientId::text IS NULL OR c.client_id = :clientId)
       AND (:partnerId::text IS NULL OR c.partner_id = :partnerId)
     ORDER BY c.partner_id, c.created_at, c.client_id`,
    { clientId: filter.clientId ?? null, partnerId: filter.partnerId ?? null, now: filter.now },
  );
}

/**
 * Whether the client belongs to the partner and is not revoked. Every request asks, so a revocation takes effect at
 * once.
 */
export const clientLives = (clientId: string, partnerId: string) =>
  `(EXISTS (SELECT FROM api_clients WHERE client_id = ${clientId} AND partner_id = ${partnerId})
    AND NOT EXISTS (SELECT FROM client_revocations WHERE client_id = ${clientId}))`;

export const doesClientLive = queryingValue<boolean, { clientId: string; partnerId: string }>(
  `SELECT ${clientLives(':clientId', ':partnerId')} AS lives`,
);

export const noteClientUse = executing<{ clientId: string; now: string; atMostEverySeconds: number }>(`
  INSERT INTO client_uses AS u (client_id, used_at)
  SELECT client_id, :now::timestamptz FROM api_clients WHERE client_id = :clientId
  ON CONFLICT (client_id) DO UPDATE SET used_at = EXCLUDED.used_at
  WHERE u.used_at < EXCLUDED.used_at - make_interval(secs => :atMostEverySeconds)`);
