/** The state of an e-mail in the outbox, and its composed content. */
import { Database } from '#database/database';
import { Transaction } from '#database/transaction';
import { Month } from '#month';
import { ActorContext, Installation } from '#people/audit-events';
import { EmailKind, OtherEmailKind } from './kinds.ts';
import { Attachment, EmailText, Mailbox } from './message.ts';
import { EmailTemplates } from './templates.ts';

export * from './letter.ts';
export * from './text.ts';

export type EmailStatus = 'queued' | 'sending' | 'sent' | 'held' | 'failed' | 'uncertain' | 'bounced' | 'withdrawn';

/** The table's constraints define which kind has which of these fields. */
export type EmailSubject = Readonly<{
  email_id: number;
  kind: EmailKind;
  document_id: number | null;
  partner_id: string | null;
  month: Month | null;
  day: string | null;
  payment_id: number | null;
  credit_refund_id: number | null;
  /** The size of the checkpoint that the letter is about. */
  checkpoint_size: number | null;
  approval_request_id: number | null;
  user_event_id: number | null;
  /** Whether an account statement was requested while the books of its month were open. */
  preliminary: boolean;
  /** Named by a user, instead of the usual one. */
  addressed_to: string | null;
}>;

export type EmailState = Readonly<{
  email_id: number;
  /** `<unique@domain>`, fixed when the e-mail was queued. */
  message_id: string;
  status: EmailStatus;
  /** Why the e-mail is held, or the mail server's last reply. */
  reason: string | null;
  /** The bytes of the last attempt, kept only while they may have to be sent again unchanged. */
  message: Buffer | null;
  recipients: string[] | null;
  envelope_from: string | null;
  attempts: number;
  unclear_attempts: number;
}>;

export type EmailContent = Readonly<{
  to: Mailbox;
  cc: readonly string[];
  content: EmailText;
  attachments: readonly Attachment[];
  /** ISO instant of the `Date` header; if absent, the time of sending. */
  date?: string;
  /** The sender's name; if absent, the issuer's in the settings. */
  senderName?: string;
}>;

/** Otherwise, why the e-mail waits for missing data or is no longer needed. */
export type Composition = EmailContent | { readonly held: string } | { readonly withdrawn: string };

export type EmailComposer = Readonly<{
  kind: OtherEmailKind;
  /** Queues the due e-mails of this kind. Safe to repeat. */
  queueDue?: (tx: Transaction, context: ActorContext) => Promise<void>;
  /** Composes an e-mail from current data, in a read-only transaction. */
  compose: (
    tx: Transaction,
    email: EmailSubject,
    context: ActorContext,
    templates: EmailTemplates,
  ) => Promise<Composition>;
}>;

export type Mailer = Installation &
  Readonly<{
    database: Database;
  }>;
