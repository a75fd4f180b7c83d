import { DueItems } from '#database/claims';
import { executing, query, Transaction } from '#database/transaction';

export type WebhookRow = Readonly<{
  partner_id: string;
  /** The webhook's address; null if the webhook was removed. */
  url: string | null;
  secret_version: number;
  key_check: string;
  previous_until: string | null;
  acknowledged: number;
  attempted_at: string | null;
  failures: number;
  failing_since: string | null;
  last_failure: string | null;
  next_attempt_at: string | null;
  paused_at: string | null;
  waiting: number;
  last: number;
}>;

/** The webhook of one partner (even if it was removed), or all webhooks that were not removed. */
export const readWebhooks = (tx: Transaction, partnerId: string | null = null): Promise<WebhookRow[]> =>
  query(
    tx,
    `SELECT w.partner_id, w.url, w.secret_version, w.key_check, w.previous_until, w.acknowledged, w.attempted_at,
            w.failures, w.failing_since, w.last_failure, w.next_attempt_at, w.paused_at,
            greatest(e.last - w.acknowledged, 0) AS waiting, e.last
     FROM webhooks w
     CROSS JOIN LATERAL (
       SELECT coalesce(max(position), 0) AS last FROM partner_events e WHERE e.partner_id = w.partner_id) AS e
     WHERE CASE WHEN :partnerId::text IS NULL THEN w.url IS NOT NULL ELSE w.partner_id = :partnerId END
     ORDER BY w.partner_id`,
    { partnerId },
  );

/** Locks a partner's webhook until the transaction ends, so that changes to the webhook are serialized. */
export const lockWebhook = executing<{ partnerId: string }>(
  `SELECT FROM partners WHERE partner_id = :partnerId FOR NO KEY UPDATE`,
);

const CALM = 'failures = 0, failing_since = NULL, last_failure = NULL, next_attempt_at = NULL';

type WebhookChange = Readonly<{
  partnerId: string;
  url: string;
  secretVersion: number;
  keyCheck: string;
  previousUntil: string | null;
  acknowledged: number;
}>;

export const writeWebhook = executing<WebhookChange>(`
  INSERT INTO webhooks (partner_id, url, secret_version, key_check, previous_until, acknowledged)
  VALUES (:partnerId, :url, :secretVersion, :keyCheck, :previousUntil, :acknowledged)
  ON CONFLICT (partner_id) DO UPDATE
  SET url = EXCLUDED.url, secret_version = EXCLUDED.secret_version, key_check = EXCLUDED.key_check,
      previous_until = EXCLUDED.previous_until, acknowledged = EXCLUDED.acknowledged, ${CALM}, paused_at = NULL`);

export const removeUrl = executing<{ partnerId: string }>(`
  UPDATE webhooks SET url = NULL, previous_until = NULL, ${CALM}, paused_at = NULL
  WHERE partner_id = :partnerId`);

// --- Sending ---

/**
 * The partners that have events to send now, and whose secret was derived from one of the given keys. The partner that has
 * waited longest is first.
 */
export const dueWebhooks = (asked: () => Readonly<{ now: string; keyChecks: readonly string[] }>): DueItems => ({
  kind: 'webhook',
  due: (free) => `
    SELECT w.partner_id AS key FROM webhooks w
    WHERE w.url IS NOT NULL AND w.paused_at IS NULL AND w.key_check = ANY (:keyChecks::text[])
      AND (w.next_attempt_at IS NULL OR w.next_attempt_at <= :now::timestamptz)
      AND EXISTS (SELECT FROM partner_events e WHERE e.partner_id = w.partner_id AND e.position > w.acknowledged)
      AND ${free('w.partner_id')}
    ORDER BY w.attempted_at NULLS FIRST, w.partner_id LIMIT :most FOR UPDATE OF w SKIP LOCKED`,
  bindings: asked,
});

/** Records when a partner had its turn, so that other partners come first next time. */
export const beginTurn = executing<{ partnerId: string; now: string }>(
  `UPDATE webhooks SET attempted_at = :now WHERE partner_id = :partnerId`,
);

/**
 * The state that a webhook had when an event was sent. If the webhook was changed in the meantime, the answer is not
 * recorded.
 */
type WebhookState = Readonly<{
  partnerId: string;
  url: string;
  position: number;
}>;

const SINCE_SENT = `WHERE partner_id = :partnerId AND url = :url AND paused_at IS NULL
  AND acknowledged = :position::bigint - 1`;

/** Returns the number of changed webhooks. */
export const acknowledge = executing<WebhookState>(`
  UPDATE webhooks SET acknowledged = :position, ${CALM} ${SINCE_SENT}`);

/** Returns the number of changed webhooks. */
export const recordFailure = executing<WebhookState & { reason: string; now: string; next: string; pause: boolean }>(`
  UPDATE webhooks
  SET failures = failures + 1, failing_since = coalesce(failing_since, :now), last_failure = :reason,
      next_attempt_at = :next, paused_at = CASE WHEN :pause THEN :now::timestamptz END
  ${SINCE_SENT}`);
