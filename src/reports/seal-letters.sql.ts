/** Lists every seal with its letter to the auditor. */
import { query, queryOne, type Transaction } from '../database/transaction.ts';
import type { EmailStatus } from '../mail/email.ts';
import type { SealName } from '../seals/signatures.sql.ts';

export interface SealLetter extends SealName {
  readonly seal: string;
  readonly made_at: string;
  /** The letter's status; null if the seal is much older than the setting auditor_email and has no letter. */
  readonly letter: EmailStatus | null;
  readonly sent_at: string | null;
  readonly to: string[] | null;
  readonly message_id: string | null;
  readonly signed_by: string | null;
  readonly stamped_at: string | null;
  readonly stamped_by: string | null;
}

/** Seals in order of creation. If a seal has several letters, the last sent one is listed. */
export function readSealLetters(tx: Transaction): Promise<SealLetter[]> {
  return query(
    tx,
    `WITH letters AS (
       SELECT DISTINCT ON (kind, month, checkpoint_number)
              CASE kind WHEN 'seal' THEN 'month' WHEN 'books_seal' THEN 'books' ELSE 'checkpoint' END AS kind,
              coalesce(month, checkpoint_number::text) AS name, status, sent_at, recipients, message_id
       FROM emails WHERE kind IN ('seal', 'books_seal', 'checkpoint')
       ORDER BY kind, month, checkpoint_number, sent_at DESC NULLS LAST, email_id DESC)
     SELECT s.kind, s.name, s.seal, s.sealed_at AS made_at, l.status AS letter, l.sent_at, l.recipients AS "to",
            l.message_id, g.key_name AS signed_by, t.stamped_at, t.authority AS stamped_by
     FROM every_seal s
     LEFT JOIN letters l ON l.kind = s.kind AND l.name = s.name
     LEFT JOIN seal_signatures g ON g.kind = s.kind AND g.name = s.name
     LEFT JOIN seal_time_stamps t ON t.kind = s.kind AND t.name = s.name
     ORDER BY s.facts_to`,
  );
}

/** The text whose SHA-256 is the seal. */
export async function readSealRecord(tx: Transaction, { kind, name }: SealName): Promise<string> {
  const { record } = await queryOne<{ record: string }>(
    tx,
    `SELECT record FROM every_seal WHERE kind = :kind AND name = :name`,
    { kind, name },
  );
  return record;
}
