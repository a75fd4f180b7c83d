/** SQL of erasures: which texts are personal texts of a user, a payer or a contact, and erasing them. */
import {
  execute,
  executing,
  queryingColumn,
  queryingFirst,
  queryingOne,
  queryingValue,
  Transaction,
} from '#database/transaction';

const IN_JSON = (column: string) => `(regexp_matches(${column}::text, '"(#[A-Za-z0-9+/]{43}=)"', 'g'))[1]`;

/** Those of these commitments whose texts are kept. */
const kept = (commitments: string) =>
  `SELECT DISTINCT commitment FROM personal_texts WHERE commitment IN (${commitments}) ORDER BY commitment`;

/** A user's login wherever it is, and the names, passkeys and events of the users with this login. */
export const readTextsOfUser = queryingColumn<string, { login: string; pattern: string }>(
  kept(`SELECT t.commitment FROM personal_texts t WHERE t.text ~* :pattern
       UNION SELECT u.name FROM users u WHERE personal(u.login) = :login
       UNION SELECT e.reason FROM users u JOIN user_ends e USING (user_id) WHERE personal(u.login) = :login
       UNION SELECT p.name FROM users u JOIN passkeys p USING (user_id) WHERE personal(u.login) = :login
       UNION SELECT ${IN_JSON('v.details')} FROM audit_events v
       WHERE v.action LIKE 'user.%' AND v.subject = ANY (commitments_to(ARRAY[:login]))`),
);

/** The payments from an account, and the bank lines that name it. */
export const readMoneyOfAccount = queryingOne<{ payments: number[]; lines: number[] }, { account: string }>(`
  SELECT ARRAY(SELECT payment_id FROM payments WHERE payer_account = ANY (a.named)) AS payments,
         ARRAY(SELECT bank_line_id FROM bank_lines WHERE payer_account = ANY (a.named)) AS lines
  FROM (SELECT commitments_to(ARRAY[:account::text]) AS named OFFSET 0) AS a`);

/** Unapplied in part or disputed: someone still needs to know who paid. */
export const readUnsettled = queryingFirst<{ payment_id: number }, { payments: readonly number[] }>(`
  SELECT b.payment_id FROM payment_balances b
  WHERE b.payment_id = ANY (:payments) AND (b.unapplied <> 0 OR EXISTS (
    SELECT FROM disputes d WHERE d.payment_id = b.payment_id
      AND NOT EXISTS (SELECT FROM dispute_outcomes o WHERE o.dispute_id = d.dispute_id)))
  ORDER BY b.payment_id LIMIT 1`);

/** What payments and bank lines say of the payer, also as the reason of a match. `account`: wherever it is. */
export const readTextsOfMoney = queryingColumn<
  string,
  { payments: readonly number[]; lines: readonly number[]; account: string | null }
>(
  kept(`WITH lines AS (
         SELECT l.* FROM bank_lines l
         WHERE l.bank_line_id = ANY (:lines) OR l.bank_line_id IN (
           SELECT s.bank_line_id FROM payment_sources s WHERE s.payment_id = ANY (:payments))
       ), paid AS (SELECT * FROM payments p WHERE p.payment_id = ANY (:payments))
       SELECT unnest(commitments_to(ARRAY[:account::text]))
       UNION SELECT unnest(ARRAY[reference, payer_name, payer_account]) FROM paid
       UNION SELECT s.reference FROM payment_sources s JOIN paid USING (payment_id)
       UNION SELECT unnest(ARRAY[text, payer_name, payer_account, raw]) FROM lines
       UNION SELECT ${IN_JSON('l."references"')} FROM lines l
       UNION SELECT o.reason FROM bank_line_outcomes o JOIN lines USING (bank_line_id)
       UNION SELECT ${IN_JSON('m.evidence')} FROM refund_matches m JOIN lines USING (bank_line_id)
       UNION SELECT ${IN_JSON('a.evidence')} FROM payment_applications a JOIN paid USING (payment_id)
       UNION SELECT ${IN_JSON('s.evidence')} FROM payment_suggestions s JOIN paid USING (payment_id)
       UNION SELECT o.reason FROM processor_event_outcomes o JOIN paid USING (payment_id)
       UNION SELECT ${IN_JSON('v.details')} FROM audit_events v JOIN paid USING (event_id)
       WHERE v.action = 'payment.record'`),
);

/** Whether there is such a payment. */
export const paymentExists = queryingValue<boolean, { paymentId: number }>(
  `SELECT EXISTS (SELECT FROM payments WHERE payment_id = :paymentId)`,
);

/** The former contacts of a partner: names and addresses that are not those of its present contact. */
export const readTextsOfContacts = queryingColumn<string, { partnerId: string }>(
  kept(`WITH mails AS (
         SELECT e.* FROM emails e LEFT JOIN documents d USING (document_id)
         WHERE coalesce(e.partner_id, d.partner_id) = :partnerId
       ), named (commitment) AS (
         SELECT d.contact_name FROM documents d WHERE d.partner_id = :partnerId
         UNION SELECT ${IN_JSON('v.details')} FROM audit_events v
         WHERE v.action LIKE 'partner.%' AND v.subject = :partnerId
         UNION SELECT unnest(a.recipients) FROM email_attempts a JOIN mails USING (email_id)
         UNION SELECT b.recipient FROM email_bounces b JOIN mails USING (email_id)
       ), former AS (
         SELECT t.commitment, t.text FROM named JOIN personal_texts t USING (commitment)
         CROSS JOIN (SELECT * FROM partners p WHERE p.partner_id = :partnerId) AS p
         WHERE lower(t.text) <> ALL (
           ARRAY(SELECT lower(each) FROM unnest(ARRAY[
             p.contact_name, p.contact_email, p.reminder_email, p.statement_email, p.dispute_email]
             || p.contact_cc) AS each))
       )
       SELECT f.commitment FROM former f
       -- A mail server's reply may contain the address.
       UNION SELECT t.commitment FROM (
         SELECT a.reply FROM email_attempts a JOIN mails USING (email_id)
         UNION SELECT b.diagnostic FROM email_bounces b JOIN mails USING (email_id)) AS r (commitment)
       JOIN personal_texts t USING (commitment) JOIN former f ON strpos(lower(t.text), lower(f.text)) > 0`),
);

/** The addresses that e-mails to a partner went to, except those of its present contact. */
export const readFormerAddresses = queryingColumn<string, { partnerId: string }>(`
  SELECT DISTINCT address
  FROM emails e LEFT JOIN documents d USING (document_id)
  JOIN partners p ON p.partner_id = :partnerId
  CROSS JOIN LATERAL unnest(e.recipients || e.addressed_to) AS address
  WHERE coalesce(e.partner_id, d.partner_id) = :partnerId AND address <> '(erased)'
    AND lower(address) <> ALL (
      ARRAY(SELECT lower(each) FROM unnest(ARRAY[
        p.contact_email, p.reminder_email, p.statement_email, p.dispute_email] || p.contact_cc) AS each))`);

/** Erases what the pattern finds in e-mails, which are not facts; with a partner, only in those to it. */
export const eraseInEmails = executing<Readonly<{ pattern: string; partnerId: string | null }>>(`
  UPDATE emails u SET
    addressed_to = CASE WHEN u.addressed_to ~* :pattern THEN '(erased)' ELSE u.addressed_to END,
    reason = CASE WHEN u.reason ~* :pattern THEN '(erased)' ELSE u.reason END,
    recipients = CASE WHEN u.recipients IS NOT NULL THEN ARRAY(
      SELECT CASE WHEN address ~* :pattern THEN '(erased)' ELSE address END
      FROM unnest(u.recipients) WITH ORDINALITY AS r (address, position) ORDER BY position) END
  FROM emails e LEFT JOIN documents d USING (document_id)
  WHERE u.email_id = e.email_id
    AND (:partnerId::text IS NULL OR coalesce(e.partner_id, d.partner_id) = :partnerId::text)
    AND concat_ws(E'\\n', e.addressed_to, e.reason, array_to_string(e.recipients, E'\\n')) ~* :pattern`);

/** The same after a restore: erases in e-mails what an event erased in their last attempts. */
export const eraseInAttemptedEmails = executing<{ eventId: number }>(`
  UPDATE emails e SET
    addressed_to = CASE WHEN e.addressed_to <> ALL (personal(a.recipients)) THEN '(erased)' ELSE e.addressed_to END,
    reason = CASE WHEN is_erased(a.reply) THEN '(erased)' ELSE e.reason END,
    recipients = personal(a.recipients)
  FROM email_attempts a
  WHERE a.email_id = e.email_id AND a.attempt = e.attempts AND e.status <> 'sending'
    AND EXISTS (SELECT FROM erasures x WHERE x.event_id = :eventId
                  AND x.commitment = ANY (a.recipients || a.reply))`);

/** Sign-ins of former contacts have ended already; they are not facts. */
export async function deleteFormerSignIns(tx: Transaction, partnerId: string) {
  const former = `s.partner_id = :partnerId AND p.partner_id = s.partner_id
    AND (s.contact_name, s.contact_email) <> (p.contact_name, p.contact_email)`;
  await execute(tx, `DELETE FROM partner_sign_in_links s USING partners p WHERE ${former}`, { partnerId });
  await execute(tx, `DELETE FROM partner_sessions s USING partners p WHERE ${former}`, { partnerId });
}

/** Records the erasures; the database then deletes the texts. Returns how many there were. */
export const insertErasures = executing<
  Readonly<{
    commitments: readonly string[];
    reason: string;
    now: string;
    eventId: number;
  }>
>(`
  INSERT INTO erasures (commitment, reason, recorded_at, event_id)
  SELECT commitment, :reason, :now, :eventId FROM personal_texts
  WHERE commitment = ANY (:commitments) ORDER BY commitment`);

/** Those of these texts that are kept. */
export const readKept = queryingColumn<string, { commitments: readonly string[] }>(
  kept(`SELECT unnest(:commitments::text[])`),
);

/** The commitments of all erased texts, in the order of their erasure. */
export const readErased = queryingColumn<string>(`SELECT commitment FROM erasures ORDER BY log_no`);
