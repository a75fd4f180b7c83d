/** The actions by name. Each file is loaded on demand, because loading all files takes half a second. */
import type { Action } from './action.ts';

export const LOADING = {
  'feed.state': () => import('./feed.ts').then((actions) => actions.feedState),
  'month.close': () => import('./close.ts').then((actions) => actions.monthClose),
  'feed.accept': () => import('./feed.ts').then((actions) => actions.feedAccept),
  'books.close': () => import('./books.ts').then((actions) => actions.booksClose),
  'month.archive': () => import('./archive.ts').then((actions) => actions.monthArchive),
  'month.unarchive': () => import('./archive.ts').then((actions) => actions.monthUnarchive),
  'gl.export': () => import('./general-ledger.ts').then((actions) => actions.glExport),
  'checkpoint.take': () => import('./ledger.ts').then((actions) => actions.checkpointTake),
  'ledger.pause': () => import('./ledger.ts').then((actions) => actions.ledgerPause),
  'invoice.void': () => import('./invoice/void.ts').then((actions) => actions.invoiceVoid),
  'invoice.rerun': () => import('./invoice/rerun.ts').then((actions) => actions.invoiceRerun),
  'invoice.credit': () => import('./invoice/credit.ts').then((actions) => actions.invoiceCredit),
  'invoice.write_off': () => import('./invoice/write-off.ts').then((actions) => actions.invoiceWriteOff),
  'invoice.write_off_undone': () => import('./invoice/write-off.ts').then((actions) => actions.invoiceWriteOffUndo),
  'invoice.hold': () => import('./invoice/hold.ts').then((actions) => actions.invoiceHold),
  'invoice.release': () => import('./invoice/hold.ts').then((actions) => actions.invoiceRelease),
  'invoice.resend': () => import('./invoice/resend.ts').then((actions) => actions.invoiceResend),
  'invoice.link_rotate': () => import('./invoice/link.ts').then((actions) => actions.invoiceLinkRotate),
  'invoice.link_revoke': () => import('./invoice/link.ts').then((actions) => actions.invoiceLinkRevoke),
  'payment.record': () => import('./payment/record.ts').then((actions) => actions.paymentRecord),
  'payment.apply': () => import('./payment/apply.ts').then((actions) => actions.paymentApply),
  'payment.unapply': () => import('./payment/apply.ts').then((actions) => actions.paymentUnapply),
  'payment.reverse': () => import('./payment/reverse.ts').then((actions) => actions.paymentReverse),
  'payment.assign': () => import('./payment/payer.ts').then((actions) => actions.paymentAssign),
  'payment.forget_account': () => import('./payment/payer.ts').then((actions) => actions.paymentForgetAccount),
  'payment.settle': () => import('./payment/payout.ts').then((actions) => actions.paymentSettle),
  'payment.close_exception': () => import('./payment/exception.ts').then((actions) => actions.paymentCloseException),
  'bank.book': () => import('./bank.ts').then((actions) => actions.bankBook),
  'bank.unbook': () => import('./bank.ts').then((actions) => actions.bankUnbook),
  'credit.apply': () => import('./credit.ts').then((actions) => actions.creditApply),
  'credit.unapply': () => import('./credit.ts').then((actions) => actions.creditUnapply),
  'credit.refund': () => import('./credit.ts').then((actions) => actions.creditRefund),
  'credit.refund_returned': () => import('./credit.ts').then((actions) => actions.creditRefundReturned),
  'dispute.open': () => import('./dispute.ts').then((actions) => actions.disputeOpen),
  'dispute.close': () => import('./dispute.ts').then((actions) => actions.disputeClose),
  'email.resend': () => import('./email.ts').then((actions) => actions.emailResend),
  'email.dismiss': () => import('./email.ts').then((actions) => actions.emailDismiss),
  'delivery.retry': () => import('./delivery.ts').then((actions) => actions.deliveryRetry),
  'reminder.record': () => import('./remind.ts').then((actions) => actions.reminderRecord),
  'reminder.pause': () => import('./reminder-pause.ts').then((actions) => actions.reminderPause),
  'reminder.resume': () => import('./reminder-pause.ts').then((actions) => actions.reminderResume),
  'statement.send': () => import('./statement.ts').then((actions) => actions.statementSend),
  'work.assign': () => import('./work/assign.ts').then((actions) => actions.workAssign),
  'instructions.adopt': () => import('./instructions.ts').then((actions) => actions.instructionsAdopt),
  'processor.match': () => import('./processor/match.ts').then((actions) => actions.processorMatch),
  'processor.unmatch': () => import('./processor/match.ts').then((actions) => actions.processorUnmatch),
  'processor.close': () => import('./processor/match.ts').then((actions) => actions.processorClose),
  'processor.reverse': () => import('./processor/reverse.ts').then((actions) => actions.processorReverse),
  'processor.reverse_month': () => import('./processor/reverse.ts').then((actions) => actions.reconcileReverse),
  'shares.bill': () => import('./processor/bill.ts').then((actions) => actions.billMissing),
  'client.create': () => import('./client.ts').then((actions) => actions.clientCreate),
  'client.rotate': () => import('./client.ts').then((actions) => actions.clientRotate),
  'client.revoke': () => import('./client.ts').then((actions) => actions.clientRevoke),
  'webhook.set': () => import('./webhook.ts').then((actions) => actions.webhookSet),
  'webhook.rotate': () => import('./webhook.ts').then((actions) => actions.webhookRotate),
  'webhook.resume': () => import('./webhook.ts').then((actions) => actions.webhookResume),
  'webhook.remove': () => import('./webhook.ts').then((actions) => actions.webhookRemove),
  'user.invite': () => import('./user.ts').then((actions) => actions.userInvite),
  'user.link': () => import('./user.ts').then((actions) => actions.userLink),
  'user.role': () => import('./user.ts').then((actions) => actions.userRole),
  'user.deactivate': () => import('./user.ts').then((actions) => actions.userDeactivate),
  'user.sign_out': () => import('./user.ts').then((actions) => actions.userSignOut),
  'person.erase': () => import('./erase.ts').then((actions) => actions.personErase),
  'partner.import': () => import('./partner.ts').then((actions) => actions.partnerImport),
  'ledger.import': () => import('./rows.ts').then((actions) => actions.ledgerImport),
  'rows.release': () => import('./held.ts').then((actions) => actions.rowsRelease),
  'rows.discard': () => import('./held.ts').then((actions) => actions.rowsDiscard),
  'reversal.grant': () => import('./held.ts').then((actions) => actions.reversalGrant),
  'reversal.refuse': () => import('./held.ts').then((actions) => actions.reversalRefuse),
  'rows.separate': () => import('./held.ts').then((actions) => actions.rowsSeparate),
  'opening.import': () => import('./opening.ts').then((actions) => actions.openingImport),
  'opening.reverse': () => import('./opening.ts').then((actions) => actions.openingReverse),
  'payment.import': () => import('./payment/import.ts').then((actions) => actions.paymentImport),
  'payment.events': () => import('./payment/events.ts').then((actions) => actions.paymentEvents),
  'processor.import': () => import('./processor/import.ts').then((actions) => actions.processorImport),
  'email.bounces': () => import('./mail.ts').then((actions) => actions.emailBounces),
} as const satisfies Readonly<Record<string, () => Promise<unknown>>>;

export type ActionName = keyof typeof LOADING;

export const loadAction = (name: ActionName): Promise<Action> => LOADING[name]() as Promise<Action>;

/**
 * Actions that approval rules cannot name, because jobs and servers do them automatically, or because they must not
 * wait.
 */
const NEVER_APPROVED: readonly ActionName[] = [
  ...(['checkpoint.take', 'delivery.retry', 'reminder.record', 'email.bounces'] as const),
  ...(['payment.events', 'processor.import', 'ledger.pause', 'user.sign_out', 'work.assign'] as const),
];

export const APPROVABLE_ACTIONS = (Object.keys(LOADING) as ActionName[]).filter(
  (name) => !NEVER_APPROVED.includes(name),
);
