/**
 * How a partner's invoicing contact signs in to the partner's place: by a link that is sent to the address on file and
 * works once. Links and sessions end when the partner gets another contact or is deactivated.
 */
import { execute, query, type Transaction } from '../database/transaction.ts';
import { type Actor, type ActorContext, type Installation, recordEvent, thisProcess } from '../people/audit-events.ts';
import { hashOf, newSecret, SECRET } from '../people/secrets.ts';

interface PartnerContact {
  readonly partner_id: string;
  readonly partner_name: string;
  readonly contact_name: string;
  readonly contact_email: string;
}

export interface PartnerSession extends PartnerContact {
  readonly last_seen_at: string;
}

const LINK_MINUTES = 15;

/** Actions of a contact are recorded with its address. */
export const contactAsActor = ({ contact_email }: PartnerContact): Actor => thisProcess('http', contact_email);

const CONTACT = `p.partner_id, p.name AS partner_name, p.contact_name, p.contact_email`;
/** Whether `held`, a link or session, is the current contact's. */
const isOfContact = (held: string) =>
  `p.inactive_since IS NULL AND (p.contact_name, p.contact_email) = (${held}.contact_name, ${held}.contact_email)`;

interface MadePartnerLink {
  readonly contact: PartnerContact;
  /** Sent once; its hash is stored. */
  readonly secret: string;
  readonly expires_at: string;
}

/** Makes a link for the contact on file; undefined if the partner has none or is not active. */
export async function makePartnerLink(
  tx: Transaction,
  { environment }: Pick<ActorContext, 'environment'>,
  partnerId: string,
): Promise<MadePartnerLink | undefined> {
  const at = environment.now();
  const expires_at = at.plus({ minutes: LINK_MINUTES }).toUTC().toISO();
  const secret = newSecret();
  await execute(tx, `DELETE FROM partner_sign_in_links WHERE expires_at < :now::timestamptz`, { now: at.toISO() });
  const [contact] = await query<PartnerContact>(
    tx,
    `WITH p AS (
       SELECT partner_id, name, contact_name, contact_email FROM partners
       WHERE partner_id = :partnerId AND contact_email <> '' AND inactive_since IS NULL
     ), made AS (
       INSERT INTO partner_sign_in_links (sha256, partner_id, contact_name, contact_email, expires_at)
       SELECT :sha256, partner_id, contact_name, contact_email, :expiresAt::timestamptz FROM p
     )
     SELECT ${CONTACT} FROM p`,
    { partnerId, sha256: hashOf(secret), expiresAt: expires_at },
  );
  return contact && { contact, secret, expires_at };
}

/** The contact that a link would sign in; undefined if it cannot be used. */
export async function readPartnerLink(
  tx: Transaction,
  given: { readonly secret: string; readonly now: string },
): Promise<PartnerContact | undefined> {
  if (!SECRET.test(given.secret)) return undefined;
  const [contact] = await query<PartnerContact>(
    tx,
    `SELECT ${CONTACT} FROM partner_sign_in_links l JOIN partners p USING (partner_id)
     WHERE l.sha256 = :sha256 AND l.used_at IS NULL AND l.expires_at > :now::timestamptz AND ${isOfContact('l')}`,
    { sha256: hashOf(given.secret), now: given.now },
  );
  return contact;
}

/**
 * Uses up a link and begins a session. Returns the secret for its cookie; of two concurrent calls, only one gets it.
 */
export async function takePartnerLink(
  tx: Transaction,
  { environment, settings }: Installation,
  { secret, network }: { readonly secret: string; readonly network: string },
): Promise<string | undefined> {
  const at = environment.now();
  const now = at.toISO();
  const contact = await readPartnerLink(tx, { secret, now });
  if (contact === undefined) return undefined;
  const used = await execute(
    tx,
    `UPDATE partner_sign_in_links SET used_at = :now::timestamptz WHERE sha256 = :sha256 AND used_at IS NULL`,
    { sha256: hashOf(secret), now },
  );
  if (used !== 1) return undefined;
  const { partner_id, contact_name, contact_email } = contact;
  const event = { action: 'partner.sign_in', subject: partner_id, details: { contact_email, network }, now };
  const eventId = await recordEvent(tx, contactAsActor(contact), event);
  await execute(tx, `DELETE FROM partner_sessions WHERE ends_at < :now::timestamptz`, { now });
  const session = newSecret();
  await execute(
    tx,
    `INSERT INTO partner_sessions (sha256, partner_id, contact_name, contact_email, last_seen_at, ends_at, event_id)
     VALUES (:sha256, :partner_id, :contact_name, :contact_email, :now::timestamptz, :endsAt::timestamptz, :eventId)`,
    {
      ...{ sha256: hashOf(session), partner_id, contact_name, contact_email, now, eventId },
      endsAt: at.plus({ hours: settings.console.session_hours }).toISO(),
    },
  );
  return session;
}

/** The session of a cookie's secret; undefined if it has ended. */
export async function readPartnerSession(
  tx: Transaction,
  { secret, ...given }: { readonly secret: string; readonly now: string; readonly idleSince: string },
): Promise<PartnerSession | undefined> {
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

export async function touchPartnerSession(
  tx: Transaction,
  { secret, now }: { readonly secret: string; readonly now: string },
): Promise<void> {
  await execute(
    tx,
    `UPDATE partner_sessions SET last_seen_at = :now::timestamptz
     WHERE sha256 = :sha256 AND last_seen_at < :now::timestamptz`,
    { sha256: hashOf(secret), now },
  );
}

export async function endPartnerSession(tx: Transaction, secret: string): Promise<void> {
  await execute(tx, `DELETE FROM partner_sessions WHERE sha256 = :sha256`, { sha256: hashOf(secret) });
}

/** After a restore: every contact must request a new link. */
export async function forgetPartnerSignIns(tx: Transaction): Promise<void> {
  await execute(tx, `DELETE FROM partner_sessions`);
  await execute(tx, `DELETE FROM partner_sign_in_links`);
}
