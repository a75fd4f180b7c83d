/** Every act, by its name. Its file is loaded when it is asked for: to load all takes half a second. */
import type { Act } from './act.ts';

export const LOADING = {
  'month.close': () => import('./close.ts').then((acts) => acts.monthClose),
  'books.close': () => import('./books.ts').then((acts) => acts.booksClose),
  'gl.export': () => import('./general-ledger.ts').then((acts) => acts.glExport),
  'checkpoint.take': () => import('./ledger.ts').then((acts) => acts.checkpointTake),
  'ledger.pause': () => import('./ledger.ts').then((acts) => acts.ledgerPause),
  'invoice.void': () => import('./invoice/void.ts').then((acts) => acts.invoiceVoid),
  'invoice.rerun': () => import('./invoice/rerun.ts').then((acts) => acts.invoiceRerun),
  'invoice.credit': () => import('./invoice/credit.ts').then((acts) => acts.invoiceCredit),
  'invoice.write_off': () => import('./invoice/write-off.ts').then((acts) => acts.invoiceWriteOff),
  'invoice.write_off_undone': () => import('./invoice/write-off.ts').then((acts) => acts.invoiceWriteOffUndo),
  'invoice.hold': () => import('./invoice/hold.ts').then((acts) => acts.invoiceHold),
  'invoice.release': () => import('./invoice/hold.ts').then((acts) => acts.invoiceRelease),
  'invoice.resend': () => import('./invoice/resend.ts').then((acts) => acts.invoiceResend),
  'invoice.link_rotate': () => import('./invoice/link.ts').then((acts) => acts.invoiceLinkRotate),
  'invoice.link_revoke': () => import('./invoice/link.ts').then((acts) => acts.invoiceLinkRevoke),
  'payment.record': () => import('./payment/record.ts').then((acts) => acts.paymentRecord),
  'payment.apply': () => import('./payment/apply.ts').then((acts) => acts.paymentApply),
  'payment.unapply': () => import('./payment/apply.ts').then((acts) => acts.paymentUnapply),
  'payment.reverse': () => import('./payment/reverse.ts').then((acts) => acts.paymentReverse),
  'payment.assign': () => import('./payment/payer.ts').then((acts) => acts.paymentAssign),
  'payment.forget_account': () => import('./payment/payer.ts').then((acts) => acts.paymentForgetAccount),
  'payment.settle': () => import('./payment/payout.ts').then((acts) => acts.paymentSettle),
  'payment.close_exception': () => import('./payment/exception.ts').then((acts) => acts.paymentCloseException),
  'credit.apply': () => import('./credit.ts').then((acts) => acts.creditApply),
  'credit.unapply': () => import('./credit.ts').then((acts) => acts.creditUnapply),
  'credit.refund': () => import('./credit.ts').then((acts) => acts.creditRefund),
  'credit.refund_returned': () => import('./credit.ts').then((acts) => acts.creditRefundReturned),
  'dispute.open': () => import('./dispute.ts').then((acts) => acts.disputeOpen),
  'dispute.close': () => import('./dispute.ts').then((acts) => acts.disputeClose),
  'email.resend': () => import('./email.ts').then((acts) => acts.emailResend),
  'email.dismiss': () => import('./email.ts').then((acts) => acts.emailDismiss),
  'delivery.retry': () => import('./delivery.ts').then((acts) => acts.deliveryRetry),
  'reminder.record': () => import('./remind.ts').then((acts) => acts.reminderRecord),
  'statement.send': () => import('./statement.ts').then((acts) => acts.statementSend),
  'work.assign': () => import('./work/assign.ts').then((acts) => acts.workAssign),
  'instructions.adopt': () => import('./instructions.ts').then((acts) => acts.instructionsAdopt),
  'processor.match': () => import('./processor/match.ts').then((acts) => acts.processorMatch),
  'processor.unmatch': () => import('./processor/match.ts').then((acts) => acts.processorUnmatch),
  'processor.close': () => import('./processor/match.ts').then((acts) => acts.processorClose),
  'processor.reverse': () => import('./processor/reverse.ts').then((acts) => acts.processorReverse),
  'processor.reverse_month': () => import('./processor/reverse.ts').then((acts) => acts.reconcileReverse),
  'shares.bill': () => import('./processor/bill.ts').then((acts) => acts.billMissing),
  'client.create': () => import('./client.ts').then((acts) => acts.clientCreate),
  'client.rotate': () => import('./client.ts').then((acts) => acts.clientRotate),
  'client.revoke': () => import('./client.ts').then((acts) => acts.clientRevoke),
  'webhook.set': () => import('./webhook.ts').then((acts) => acts.webhookSet),
  'webhook.rotate': () => import('./webhook.ts').then((acts) => acts.webhookRotate),
  'webhook.resume': () => import('./webhook.ts').then((acts) => acts.webhookResume),
  'webhook.remove': () => import('./webhook.ts').then((acts) => acts.webhookRemove),
  'user.invite': () => import('./user.ts').then((acts) => acts.userInvite),
  'user.link': () => import('./user.ts').then((acts) => acts.userLink),
  'user.role': () => import('./user.ts').then((acts) => acts.userRole),
  'user.deactivate': () => import('./user.ts').then((acts) => acts.userDeactivate),
  'user.sign_out': () => import('./user.ts').then((acts) => acts.userSignOut),
  'partner.import': () => import('./partner.ts').then((acts) => acts.partnerImport),
  'ledger.import': () => import('./rows.ts').then((acts) => acts.ledgerImport),
  'opening.import': () => import('./opening.ts').then((acts) => acts.openingImport),
  'opening.reverse': () => import('./opening.ts').then((acts) => acts.openingReverse),
  'payment.import': () => import('./payment/import.ts').then((acts) => acts.paymentImport),
  'payment.events': () => import('./payment/events.ts').then((acts) => acts.paymentEvents),
  'processor.import': () => import('./processor/import.ts').then((acts) => acts.processorImport),
  'email.bounces': () => import('./mail.ts').then((acts) => acts.emailBounces),
} as const satisfies Readonly<Record<string, () => Promise<unknown>>>;

export type ActName = keyof typeof LOADING;

export const loadAct = (name: ActName): Promise<Act> => LOADING[name]() as Promise<Act>;

/** What no rule can name: jobs and servers do it by themselves, or it must not wait. */
const NEVER_APPROVED: readonly ActName[] = [
  ...(['checkpoint.take', 'ledger.import', 'delivery.retry', 'reminder.record', 'email.bounces'] as const),
  ...(['payment.events', 'processor.import', 'ledger.pause', 'user.sign_out', 'work.assign'] as const),
];

/** The acts that a rule of approval can name. */
export const APPROVABLE_ACTS = (Object.keys(LOADING) as ActName[]).filter((name) => !NEVER_APPROVED.includes(name));
