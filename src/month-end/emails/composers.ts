/** Every kind of e-mail without a document. A new kind needs a composer, its templates and a line here. */
import { EmailComposer } from '#mail/email';
import { reminderEmail } from '#payments/reminder-email';
import { accountStatementEmail } from './account-statement.ts';
import { approvalDecisionEmail, approvalRequestEmail } from './approval.ts';
import { checkpointEmail } from './checkpoint.ts';
import { closeReportEmail } from './close-report.ts';
import { feedDoubtsEmail } from './feed-doubts.ts';
import { instructionsChangedEmail } from './instructions-changed.ts';
import { paymentReceiptEmail } from './payment-receipt.ts';
import { refundNoticeEmail } from './refund-notice.ts';
import { securityNoticeEmail } from './security-notice.ts';
import { statusEmail } from './status.ts';

export const COMPOSERS: readonly EmailComposer[] = [
  checkpointEmail,
  accountStatementEmail,
  closeReportEmail,
  feedDoubtsEmail,
  instructionsChangedEmail,
  reminderEmail,
  paymentReceiptEmail,
  refundNoticeEmail,
  approvalRequestEmail,
  approvalDecisionEmail,
  securityNoticeEmail,
  statusEmail,
];
