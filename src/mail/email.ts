/** The state of an e-mail in the outbox, and the composed result. */
import type { Database } from '../database/database.ts';
import type { Transaction } from '../database/transaction.ts';
import type { Month } from '../month.ts';
import type { ActorContext, Installation } from '../people/audit-events.ts';
import type { EmailKind, OtherEmailKind } from './kinds.ts';
import type { Attachment, EmailText, Mailbox } from './message.ts';
import type { EmailTemplates } from './templates.ts';

export type EmailStatus = 'queued' | 'sending' | 'sent' | 'held' | 'failed' | 'uncertain' | 'bounced' | 'withdrawn';

/** What an e-mail is about. The table's constraints define which kind has which of these fields. */
export interface EmailSubject {
  readonly email_id: number;
  readonly kind: EmailKind;
  readonly document_id: number | null;
  readonly partner_id: string | null;
  readonly month: Month | null;
  /** `YYYY-MM-DD`. */
  readonly day: string | null;
  /** Of a payment receipt. */
  readonly payment_id: number | null;
  /** Of a refund notice. */
  readonly credit_refund_id: number | null;
  readonly checkpoint_number: number | null;
  readonly approval_request_id: number | null;
  /** An account statement of a month whose books were open when it was requested. */
  readonly preliminary: boolean;
  /** The address that a user named instead of the usual one. */
  readonly addressed_to: string | null;
}

/** The state of an e-mail. */
export interface EmailState {
  readonly email_id: number;
  /** `<unique@domain>`, fixed when the e-mail was queued. */
  readonly message_id: string;
  readonly status: EmailStatus;
  /** Why it is held, or the mail server's last reply. */
  readonly reason: string | null;
  /** The bytes of the last attempt, kept only as long as they may have to be sent again unchanged. */
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
  /** ISO instant of the `Date` header; absent: when it is sent. */
  readonly date?: string;
  /** The sender's name; if absent, the issuer's in the settings. */
  readonly senderName?: string;
}

/** What to send; or why nothing can be sent until missing data is supplied; or why nothing is to be sent any more. */
export type Composition = EmailContent | { readonly held: string } | { readonly withdrawn: string };

/** One kind of e-mail without a document: when it is due, and its content. */
export interface EmailComposer {
  readonly kind: OtherEmailKind;
  /** Queues the e-mails of this kind that are due and not queued yet. Safe to repeat. */
  readonly queueDue?: (tx: Transaction, context: ActorContext) => Promise<void>;
  /** Composes an e-mail from current data, in a read-only transaction. */
  readonly compose: (
    tx: Transaction,
    email: EmailSubject,
    context: ActorContext,
    templates: EmailTemplates,
  ) => Promise<Composition>;
}

/** What sends e-mails. */
export interface Mailer extends Installation {
  readonly database: Database;
}
