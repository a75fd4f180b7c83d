import { DocumentKind } from '#documents/snapshot';

export const OTHER_EMAIL_KINDS = [
  'reminder',
  'account_statement',
  'close_report',
  'feed_doubts',
  'instructions_changed',
  'checkpoint',
  'status',
  'payment_receipt',
  'refund_notice',
  'approval_request',
  'approval_decision',
  'security_notice',
] as const;
export type OtherEmailKind = (typeof OTHER_EMAIL_KINDS)[number];

export type EmailKind = DocumentKind | OtherEmailKind;
