/**
 * Voids a document by a new fact dated today. The document keeps its number and its content. The document's rows are
 * unbilled until a replacement bills them. Refusals: document_unknown, document_void, payment_applied, credit_used,
 * document_written_off, carried_over, clock_behind.
 */

import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { recordEvent } from '#people/audit-events';
import { toDo } from '#remedy';
import { documentToCorrect, refuseSettled } from './correctable.ts';
import { voidDocuments } from './corrections.sql.ts';
import { dateOfAction, IssueContext } from './issue/context.ts';

export async function voidDocument(
  tx: Transaction,
  context: IssueContext,
  { number, reason, note }: { number: string; reason: string; note?: string | undefined },
) {
  const document = await documentToCorrect(tx, number);
  if (document.purpose === 'opening') {
    const remedies = [toDo('Reverse it', 'opening.reverse', { numbers: [number] })];
    throw refuse('carried_over', { number, action: 'voided', instead: '', remedies });
  }
  refuseSettled(document, 'voided');
  const today = await dateOfAction(tx, context);
  const now = context.environment.now().toISO();
  const event = { action: 'invoice.void', subject: number, details: { reason, note }, now };
  const eventId = await recordEvent(tx, context.actor, event);
  await voidDocuments(tx, { documents: [{ document_id: document.document_id, reason }], today, now, eventId });
  failpoint('void.recorded');
}
