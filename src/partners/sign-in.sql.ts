import { execute, executing, query, querying, Transaction } from '#database/transaction';
import { hashOf, SECRET } from '#people/secrets';

export type PartnerContact = Readonly<{
  partner_id: string;
  partner_name: string;
  contact_name: string;
  contact_email: string;
}>;

export type PartnerSession = PartnerContact &
  Readonly<{
    last_seen_at: string;
  }>;

const CONTACT = `p.partner_id, p.name AS partner_name, p.contact_name, p.contact_email`;

/** Whether `held`, a link or session, belongs to the partner's current contact. */
const isOfContact = (held: string) =>
  `p.inactive_since IS NULL AND (p.contact_name, p.contact_email) = (${held}.contact_name, ${held}.contact_email)`;

/** Stores a link for the contact on file, if there is one. Deletes links that have expired. */
export const insertPartnerLink = querying<
  PartnerContact,
  { partnerId: string; sha256: string; expiresAt: string; now: string }
>(`
  WITH p AS (
    SELECT partner_id, name, contact_name, contact_email FROM partners
    WHERE partner_id = :partnerId AND contact_email <> '' AND inactive_since IS NULL
  ), expired AS (
    DELETE FROM partner_sign_in_links WHERE expires_at < :now::timestamptz
  ), made AS (
    INSERT INTO partner_sign_in_links (sha256, partner_id, contact_name, contact_email, expires_at)
    SELECT :sha256, partner_id, contact_name, contact_email, :expiresAt::timestamptz FROM p
  )
  SELECT ${CONTACT} FROM p`);

export const insertPartnerSession = executing<
  Omit<PartnerContact, 'partner_name'> & { sha256: string; now: string; endsAt: string; eventId: number }
>(`
  WITH ended AS (DELETE FROM partner_sessions WHERE ends_at < :now::timestamptz)
  INSERT INTO partner_sessions (sha256, partner_id, contact_name, contact_email, last_seen_at, ends_at, event_id)
  VALUES (:sha256, :partner_id, :contact_name, :contact_email, :now::timestamptz, :endsAt::timestamptz, :eventId)`);

/** Uses up a link and returns its contact. If two calls are concurrent, only one of them gets the contact. */
export async function usePartnerLink(
  tx: Transaction,
  given: Readonly<{ secret: string; now: string }>,
): Promise<PartnerContact | undefined> {
  if (!SECRET.test(given.secret)) return undefined;
  const [contact] = await query<PartnerContact>(
    tx,
    `UPDATE partner_sign_in_links l SET used_at = :now::timestamptz FROM partners p
     WHERE p.partner_id = l.partner_id AND l.sha256 = :sha256 AND l.used_at IS NULL
       AND l.expires_at > :now::timestamptz AND ${isOfContact('l')}
     RETURNING ${CONTACT}`,
    { sha256: hashOf(given.secret), now: given.now },
  );
  return contact;
}

export async function readPartnerSession(
  tx: Transaction,
  { secret, ...given }: Readonly<{ secret: string; now: string; idleSince: string }>,
) {
  if (!SECRET.test(secret)) return undefined;
  const [session] = await query<PartnerSession>(
    tx,
    `SELECT ${CONTACT}, s.last_seen_at FROM partner_sessions s JOIN partners p USING (partner_id)
     WHERE s.sha256 = :sha256 AND s.ends_at > :now::timestamptz AND s.last_seen_at > :idleSince::timestamptz
       AND ${isOfContact('s')}`,
    { ...given, sha256: hashOf(secret) },
  );
  return session;
}

export async function touchPartnerSession(tx: Transaction, { secret, now }: Readonly<{ secret: string; now: string }>) {
  await execute(
    tx,
    `UPDATE partner_sessions SET last_seen_at = :now::timestamptz
     WHERE sha256 = :sha256 AND last_seen_at < :now::timestamptz`,
    { sha256: hashOf(secret), now },
  );
}

export async function endPartnerSession(tx: Transaction, secret: string) {
  await execute(tx, `DELETE FROM partner_sessions WHERE sha256 = :sha256`, { sha256: hashOf(secret) });
}

/** Deletes all links and sessions after a restore, so that every contact must request a new link. */
export async function forgetPartnerSignIns(tx: Transaction) {
  await execute(tx, `DELETE FROM partner_sessions`);
  await execute(tx, `DELETE FROM partner_sign_in_links`);
}
