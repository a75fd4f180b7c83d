/** Every act, by its name. */
import type { Act } from './act.ts';
import { booksClose } from './books.ts';
import { clientCreate, clientRevoke, clientRotate } from './client.ts';
import { monthClose } from './close.ts';
import { creditApply, creditRefund, creditRefundReturned, creditUnapply } from './credit.ts';
import { deliveryRetry } from './delivery.ts';
import { disputeClose, disputeOpen } from './dispute.ts';
import { emailDismiss, emailResend } from './email.ts';
import { glExport } from './general-ledger.ts';
import { instructionsAdopt } from './instructions.ts';
import { invoiceCredit } from './invoice/credit.ts';
import { invoiceHold, invoiceRelease } from './invoice/hold.ts';
import { invoiceLinkRevoke, invoiceLinkRotate } from './invoice/link.ts';
import { invoiceRerun } from './invoice/rerun.ts';
import { invoiceResend } from './invoice/resend.ts';
import { invoiceVoid } from './invoice/void.ts';
import { invoiceWriteOff, invoiceWriteOffUndo } from './invoice/write-off.ts';
import { checkpointTake, ledgerPause } from './ledger.ts';
import { emailBounces } from './mail.ts';
import { openingImport, openingReverse } from './opening.ts';
import { partnerImport } from './partner.ts';
import { paymentApply, paymentUnapply } from './payment/apply.ts';
import { paymentEvents } from './payment/events.ts';
import { paymentCloseException } from './payment/exception.ts';
import { paymentImport } from './payment/import.ts';
import { paymentAssign, paymentForgetAccount } from './payment/payer.ts';
import { paymentSettle } from './payment/payout.ts';
import { paymentRecord } from './payment/record.ts';
import { paymentReverse } from './payment/reverse.ts';
import { billMissing } from './processor/bill.ts';
import { processorImport } from './processor/import.ts';
import { processorClose, processorMatch, processorUnmatch } from './processor/match.ts';
import { processorReverse, reconcileReverse } from './processor/reverse.ts';
import { reminderRecord } from './remind.ts';
import { ledgerImport } from './rows.ts';
import { statementSend } from './statement.ts';
import { userDeactivate, userInvite, userLink, userRole, userSignOut } from './user.ts';
import { webhookRemove, webhookResume, webhookRotate, webhookSet } from './webhook.ts';
import { workAssign } from './work/assign.ts';

const ALL: readonly Act[] = [
  ...[monthClose, booksClose, glExport, checkpointTake, ledgerPause],
  ...[invoiceVoid, invoiceRerun, invoiceCredit, invoiceWriteOff, invoiceWriteOffUndo, invoiceHold, invoiceRelease],
  ...[invoiceResend, invoiceLinkRotate, invoiceLinkRevoke],
  ...[paymentRecord, paymentApply, paymentUnapply, paymentReverse, paymentAssign, paymentForgetAccount],
  ...[paymentSettle, paymentCloseException],
  ...[creditApply, creditUnapply, creditRefund, creditRefundReturned],
  ...[disputeOpen, disputeClose, emailResend, emailDismiss, deliveryRetry, reminderRecord, statementSend],
  ...[workAssign, instructionsAdopt],
  ...[processorMatch, processorUnmatch, processorClose, processorReverse, reconcileReverse, billMissing],
  ...[clientCreate, clientRotate, clientRevoke, webhookSet, webhookRotate, webhookResume, webhookRemove],
  ...[userInvite, userLink, userRole, userDeactivate, userSignOut],
  ...[
    partnerImport,
    ledgerImport,
    openingImport,
    openingReverse,
    paymentImport,
    paymentEvents,
    processorImport,
    emailBounces,
  ],
];

export const ACTS: ReadonlyMap<string, Act> = new Map(ALL.map((act) => [act.name, act]));
