/**
 * Puts a document on hold: its unsent e-mail and its reminders wait until it is released. An invoice stays due, and
 * payments and credit may be applied to it. The open credit of a credit note stays owed, but cannot be applied or
 * refunded. Refusals: document_unknown, document_void, document_on_hold, document_not_on_hold.
 */

import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { ActorContext, recordEvent } from '#people/audit-events';
import { documentToCorrect, refuseHeld } from './correctable.ts';
import { insertHold, insertRelease } from './corrections.sql.ts';

export const whyHeld = (since: string, reason: string) => `on hold since ${since}${reason === '' ? '' : `: ${reason}`}`;

export async function holdDocument(
  tx: Transaction,
  { environment, actor }: ActorContext,
  { number, reason, by }: { number: string; reason: string; by?: 'close' | 'rerun' },
) {
  const document = await documentToCorrect(tx, number);
  refuseHeld(document);
  const now = environment.now().toISO();
  const details = { reason, ...(by && { by }) };
  const eventId = await recordEvent(tx, actor, { action: 'invoice.hold', subject: number, details, now });
  await insertHold(tx, { documentId: document.document_id, reason, why: whyHeld(now, reason), now, eventId });
}

export async function releaseDocument(tx: Transaction, { environment, actor }: ActorContext, number: string) {
  const { document_id: documentId, held_at } = await documentToCorrect(tx, number);
  if (held_at === null) throw refuse('document_not_on_hold', { number });
  const now = environment.now().toISO();
  const eventId = await recordEvent(tx, actor, { action: 'invoice.release', subject: number, details: {}, now });
  await insertRelease(tx, { documentId, now, eventId });
}
