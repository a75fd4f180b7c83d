/**
 * Records that finance gave a document to its partner through the partner's own portal. An e-mail that was not sent is
 * withdrawn. Refusals: document_unknown, document_void, argument_invalid.
 */
import { todayOf } from '#config/today';
import { Transaction } from '#database/transaction';
import { refuseField } from '#errors/refusals';
import { ActorContext, recordEvent } from '#people/audit-events';
import { documentToCorrect } from './correctable.ts';
import { insertPortalDelivery } from './corrections.sql.ts';

export async function recordPortalDelivery(
  tx: Transaction,
  context: ActorContext,
  { number, on, reference }: Readonly<{ number: string; on: string; reference: string }>,
) {
  const { document_id: documentId, issued_on } = await documentToCorrect(tx, number);
  const today = todayOf(context);
  if (on < issued_on) throw refuseField('on', on, `is before the document was issued, ${issued_on}`);
  if (on > today) throw refuseField('on', on, `is after today, ${today}`);
  const now = context.environment.now().toISO();
  const event = { action: 'invoice.delivered', subject: number, details: { on, reference }, now };
  const eventId = await recordEvent(tx, context.actor, event);
  await insertPortalDelivery(tx, { documentId, on, reference, now, eventId });
}
