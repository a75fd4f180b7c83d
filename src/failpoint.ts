/**
 * Failpoints: the named places at which crash tests end the program as kill -9 would, in sandbox only.
 * RECKONER_FAILPOINT=close.committed dies there; close.committed:2 at the second passing.
 */

/** A place before or after each transaction's end and each call to the outside. */
export const FAILPOINTS = [
  'partners.written',
  'import.staged',
  'import.judged',
  'import.recorded',
  'import.committed',
  'accept.judged',
  'accept.sent',
  'accept.committed',
  'close.planned',
  'close.locked',
  'close.issued',
  'close.recorded',
  'close.sealed',
  'close.committed',
  'checkpoint.locked',
  'checkpoint.recorded',
  'checkpoint.committed',
  'books.locked',
  'books.recorded',
  'books.committed',
  'rerun.compared',
  'rerun.issued',
  'rerun.committed',
  'credit.issued',
  'credit.committed',
  'placement.recorded',
  'placement.committed',
  'release.recorded',
  'release.committed',
  'write_off_undo.recorded',
  'write_off_undo.committed',
  'purge.recorded',
  'purge.committed',
  'pause.recorded',
  'pause.committed',
  'resume.recorded',
  'resume.skipped',
  'resume.committed',
  'void.recorded',
  'void.committed',
  'dispute.recorded',
  'dispute.committed',
  'dispute_closing.recorded',
  'dispute_closing.committed',
  'statement.queued',
  'statement.committed',
  'resend.queued',
  'resend.committed',
  'bounces.recorded',
  'bounces.committed',
  'payments.read',
  'payments.locked',
  'payments.recorded',
  'payments.committed',
  'assignment.recorded',
  'assignment.committed',
  'receipt.queued',
  'inbox.stored',
  'inbox.processed',
  'processor.recorded',
  'processor.read',
  'processor.paid_out',
  'processor.reversed',
  'processor.matched',
  'processor.closed',
  'shares.billed',
  'shares.paid',
  'delivery.linked',
  'delivery.link_intended',
  'delivery.link_made',
  'delivery.link_stored',
  'delivery.link_switched_off',
  'delivery.link_closed',
  'delivery.rendered',
  'delivery.kept',
  'delivery.composed',
  'delivery.claimed',
  'delivery.sent',
  'delivery.recorded',
  'events.indexed',
  'events.published',
  'webhook.claimed',
  'webhook.sent',
  'webhook.acknowledged',
] as const;
export type Failpoint = (typeof FAILPOINTS)[number];

const [armed, count = '1'] =
  process.env['RECKONER_ENVIRONMENT'] === 'production' ? [] : (process.env['RECKONER_FAILPOINT'] ?? '').split(':');
let passings = 0;

/** Ends the process here and now if this is the armed failpoint. */
export function failpoint(name: Failpoint): void {
  if (name !== armed) return;
  passings += 1;
  if (passings === Number(count)) process.kill(process.pid, 'SIGKILL');
}
