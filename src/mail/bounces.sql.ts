import { execute, querying, Transaction } from '#database/transaction';
import { ListedEmail } from './log.sql.ts';

export type Target = Pick<ListedEmail, 'email_id' | 'to' | 'status' | 'dismissal_reason'>;

export const readByMessageIds = querying<Target & { message_id: string }, { messageIds: readonly string[] }>(`
  SELECT email_id, message_id, recipients AS "to", status, dismissal_reason
  FROM emails WHERE message_id = ANY (:messageIds) ORDER BY email_id`);

export const readBounces = querying<{ email_id: number; recipient: string }, { ids: readonly number[] }>(
  `SELECT email_id, personal(recipient) AS recipient FROM email_bounces WHERE email_id = ANY (:ids)`,
);

export async function insertBounces(
  tx: Transaction,
  values: Readonly<{ bounces: string; now: string; eventId: number }>,
) {
  await execute(
    tx,
    `INSERT INTO email_bounces (
       email_id, recipient, status, diagnostic, reporting_server, report_sha256, recorded_at, event_id)
     SELECT b.email_id,
            -- The commitment of the first attempt, so that no second bounce of the same recipient is recorded.
            coalesce((SELECT kept FROM email_attempts a CROSS JOIN LATERAL unnest(a.recipients) AS kept
                      WHERE a.email_id = b.email_id AND personal(kept) = b.recipient ORDER BY a.attempt LIMIT 1),
                     b.recipient),
            b.status, b.diagnostic, b.reporting_server, b.report_sha256, :now, :eventId
     FROM json_populate_recordset(NULL::email_bounces, :bounces::json) AS b
     ORDER BY b.email_id, b.recipient`,
    values,
  );
  await execute(
    tx,
    `UPDATE emails e SET status = 'bounced', message = NULL,
            reason = format('returned from %s: %s', b.recipient, concat_ws(' ', b.status, nullif(b.diagnostic, '')))
     FROM json_to_recordset(:bounces::json) AS b (email_id bigint, recipient text, status text, diagnostic text,
       bounced boolean)
     WHERE e.email_id = b.email_id AND b.bounced AND e.status IN ('sent', 'uncertain') AND e.dismissal_reason IS NULL`,
    { bounces: values.bounces },
  );
}
