/** The state of an e-mail in the outbox, and its composed content. */
import type { Database } from '../database/database.ts';
import type { Transaction } from '../database/transaction.ts';
import type { Month } from '../month.ts';
import type { ActorContext, Installation } from '../people/audit-events.ts';
import type { EmailKind, OtherEmailKind } from './kinds.ts';
import type { Attachment, EmailText, Mailbox } from './message.ts';
import type { EmailTemplates } from './templates.ts';

export type EmailStatus = 'queued' | 'sending' | 'sent' | 'held' | 'failed' | 'uncertain' | 'bounced' | 'withdrawn';

/** The table's constraints define which kind has which of these fields. */
export interface EmailSubject {
  readonly email_id: number;
  readonly kind: EmailKind;
  readonly document_id: number | null;
  readonly partner_id: string | null;
  readonly month: Month | null;
  readonly day: string | null;
  readonly payment_id: number | null;
  readonly credit_refund_id: number | null;
  /** The size of the checkpoint that the letter is about. */
  readonly checkpoint_size: number | null;
  readonly approval_request_id: number | null;
  readonly user_event_id: number | null;
  /** Whether an account statement was requested while the books of its month were open. */
  readonly preliminary: boolean;
  /** Named by a user, instead of the usual one. */
  readonly addressed_to: string | null;
}

export interface EmailState {
  readonly email_id: number;
  /** `<unique@domain>`, fixed when the e-mail was queued. */
  readonly message_id: string;
  readonly status: EmailStatus;
  /** Why the e-mail is held, or the mail server's last reply. */
  readonly reason: string | null;
  /** The bytes of the last attempt, kept only while they may have to be sent again unchanged. */
  readonly message: Buffer | null;
  readonly recipients: string[] | null;
  readonly envelope_from: string | null;
  readonly attempts: number;
  readonly unclear_attempts: number;
}

export interface EmailContent {
  readonly to: Mailbox;
  readonly cc: readonly string[];
  readonly content: EmailText;
  readonly attachments: readonly Attachment[];
  /** ISO instant of the `Date` header; if absent, the time of sending. */
  readonly date?: string;
  /** The sender's name; if absent, the issuer's in the settings. */
  readonly senderName?: string;
}

/** Otherwise, why the e-mail waits for missing data or is no longer needed. */
export type Composition = EmailContent | { readonly held: string } | { readonly withdrawn: string };

export interface EmailComposer {
  readonly kind: OtherEmailKind;
  /** Queues the due e-mails of this kind. Safe to repeat. */
  readonly queueDue?: (tx: Transaction, context: ActorContext) => Promise<void>;
  /** Composes an e-mail from current data, in a read-only transaction. */
  readonly compose: (
    tx: Transaction,
    email: EmailSubject,
    context: ActorContext,
    templates: EmailTemplates,
  ) => Promise<Composition>;
}

export interface Mailer extends Installation {
  readonly database: Database;
}
