/**
 * Replaces or revokes the link of an invoice's payment page. The old link then opens no page. Refusals:
 * document_unknown, link_missing, link_revoked.
 */
import { Environment } from '#config/environment';
import { Transaction } from '#database/transaction';
import { readDocuments } from '#documents/documents.sql';
import { documentUnknown } from '#documents/unknown';
import { refuse } from '#errors/refusals';
import { Actor, recordEvent } from '#people/audit-events';
import { insertLinkChange, readLinkStanding } from './documents.sql.ts';
import { newToken } from './payment-link.ts';

export type LinkChange = Readonly<{
  number: string;
  to: 'rotate' | 'revoke';
  reason: string;
}>;

type Acting = Readonly<{
  environment: Environment;
  actor: Actor;
}>;

/** The audit event contains no token, because events are exported. */
export async function changeLink(tx: Transaction, { environment, actor }: Acting, { number, to, reason }: LinkChange) {
  const document = await find(tx, number);
  const standing = await readLinkStanding(tx, { documentId: document.document_id });
  // This program cannot change a link to another provider's page. Before the first PDF, no one has the link.
  if (standing?.provider !== 'page' || (document.pdf_sha256 === null && document.purpose !== 'opening'))
    throw refuse('link_missing', { number });
  if (to === 'revoke' && standing.token === null) throw refuse('link_revoked', { number });
  const now = environment.now().toISO();
  const action = to === 'rotate' ? 'invoice.link_rotate' : 'invoice.link_revoke';
  const eventId = await recordEvent(tx, actor, { action, subject: number, details: { reason }, now });
  const token = to === 'rotate' ? newToken() : null;
  await insertLinkChange(tx, { documentId: document.document_id, token, reason, now, eventId });
  return find(tx, number);
}

async function find(tx: Transaction, number: string) {
  const [document] = await readDocuments(tx, { number });
  if (document === undefined) throw await documentUnknown(tx, number);
  return document;
}
