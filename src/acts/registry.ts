/** Every act, by its name. */
import type { Act } from './act.ts';
import { creditApply, creditRefund, creditRefundReturned, creditUnapply } from './credit.ts';
import { disputeClose, disputeOpen } from './dispute.ts';
import { emailDismiss, emailResend } from './email.ts';
import { invoiceCredit } from './invoice/credit.ts';
import { invoiceHold, invoiceRelease } from './invoice/hold.ts';
import { invoiceLinkRevoke, invoiceLinkRotate } from './invoice/link.ts';
import { invoiceRerun } from './invoice/rerun.ts';
import { invoiceResend } from './invoice/resend.ts';
import { invoiceVoid } from './invoice/void.ts';
import { invoiceWriteOff, invoiceWriteOffUndo } from './invoice/write-off.ts';
import { paymentApply, paymentUnapply } from './payment/apply.ts';
import { paymentAssign, paymentForgetAccount } from './payment/payer.ts';
import { paymentRecord } from './payment/record.ts';
import { paymentReverse } from './payment/reverse.ts';

const ALL: readonly Act[] = [
  ...[invoiceVoid, invoiceRerun, invoiceCredit, invoiceWriteOff, invoiceWriteOffUndo, invoiceHold, invoiceRelease],
  ...[invoiceResend, invoiceLinkRotate, invoiceLinkRevoke],
  ...[paymentRecord, paymentApply, paymentUnapply, paymentReverse, paymentAssign, paymentForgetAccount],
  ...[creditApply, creditUnapply, creditRefund, creditRefundReturned],
  ...[disputeOpen, disputeClose, emailResend, emailDismiss],
];

export const ACTS: ReadonlyMap<string, Act> = new Map(ALL.map((act) => [act.name, act]));
