/**
 * Every checkpoint with its signatures and its time stamp. If the auditor was sent a letter, the letter is included.
 */
import { querying } from '#database/transaction';
import { Closes } from '#log/checkpoints.sql';
import { CheckpointOf } from '#log/closing.sql';
import { EmailStatus } from '#mail/email';

export type CheckpointLetter = CheckpointOf &
  Readonly<{
    closes: Closes | null;
    taken_at: string;
    signed: boolean;
    cosigned_by: readonly string[];
    stamped_at: string | null;
    stamped_by: string | null;
    /** The status of the letter; null if there is no letter. */
    letter: EmailStatus | null;
    sent_at: string | null;
    to: string[] | null;
    message_id: string | null;
  }>;

/** Checkpoints in order. If a checkpoint has several letters, this is the letter that was sent last. */
export const readCheckpointLetters = querying<CheckpointLetter>(`
  WITH letters AS (
    SELECT DISTINCT ON (checkpoint_size) checkpoint_size AS size, status, sent_at, recipients, message_id
    FROM emails WHERE kind = 'checkpoint'
    ORDER BY checkpoint_size, sent_at DESC NULLS LAST, email_id DESC)
  SELECT c.size, encode(c.root, 'base64') AS root, c.closes, c.taken_at, s.signed, s.cosigned_by, t.stamped_at,
         t.authority AS stamped_by, l.status AS letter, l.sent_at, l.recipients AS "to", l.message_id
  FROM log_checkpoints c
  CROSS JOIN LATERAL (
    SELECT coalesce(bool_or(key_name = c.origin), false) AS signed,
           coalesce(array_agg(DISTINCT key_name ORDER BY key_name) FILTER (WHERE key_name <> c.origin), '{}')
             AS cosigned_by
    FROM log_signatures WHERE size = c.size) AS s
  LEFT JOIN letters l USING (size)
  LEFT JOIN log_stamps t USING (size)
  ORDER BY c.size`);
