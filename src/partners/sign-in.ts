/**
 * Signs in a partner's invoicing contact to the partner's place. The sign-in link is sent to the address on file and
 * works once. Links and sessions end when the partner gets a different contact or is deactivated.
 */
import { Transaction } from '#database/transaction';
import { Actor, ActorContext, Installation, recordEvent, thisProcess } from '#people/audit-events';
import { hashOf, newSecret } from '#people/secrets';
import { insertPartnerLink, insertPartnerSession, PartnerContact, usePartnerLink } from './sign-in.sql.ts';

const LINK_MINUTES = 15;

export const contactAsActor = ({ contact_email }: PartnerContact): Actor => thisProcess('http', contact_email);

type MadePartnerLink = Readonly<{
  contact: PartnerContact;
  secret: string;
  expires_at: string;
}>;

/** Makes a link for the contact on file; undefined if the partner has no contact or is not active. */
export async function makePartnerLink(
  tx: Transaction,
  { environment }: Pick<ActorContext, 'environment'>,
  partnerId: string,
): Promise<MadePartnerLink | undefined> {
  const at = environment.now();
  const expires_at = at.plus({ minutes: LINK_MINUTES }).toUTC().toISO();
  const secret = newSecret();
  const [contact] = await insertPartnerLink(tx, {
    ...{ partnerId, sha256: hashOf(secret), expiresAt: expires_at, now: at.toISO() },
  });
  return contact && { contact, secret, expires_at };
}

/**
 * Uses up a link and begins a session. Returns the secret for the session's cookie. If two calls are concurrent, only
 * one begins a session.
 */
export async function takePartnerLink(
  tx: Transaction,
  { environment, settings }: Installation,
  { secret, network }: Readonly<{ secret: string; network: string }>,
) {
  const at = environment.now();
  const now = at.toISO();
  const contact = await usePartnerLink(tx, { secret, now });
  if (contact === undefined) return undefined;
  const { partner_id, contact_name, contact_email } = contact;
  const event = { action: 'partner.sign_in', subject: partner_id, details: { contact_email, network }, now };
  const eventId = await recordEvent(tx, contactAsActor(contact), event);
  const session = newSecret();
  await insertPartnerSession(tx, {
    ...{ sha256: hashOf(session), partner_id, contact_name, contact_email, now, eventId },
    endsAt: at.plus({ hours: settings.console.session_hours }).toISO(),
  });
  return session;
}
