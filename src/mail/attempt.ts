/**
 * One attempt to send an e-mail: claim it, hand it to the mail server, record the outcome. `transport.ts` tells a refusal
 * from a delay; `retry.ts` decides whether an e-mail is tried again, and when.
 */
import { createHash } from 'node:crypto';
import { failpoint } from '../failpoint.ts';
import { signMessage } from './dkim.ts';
import type { EmailContent, EmailContext, EmailState } from './email.ts';
import type { AttemptOutcome } from './log.ts';
import { composeMessage, type Envelope, envelopeOf } from './message.ts';
import type { Claim } from './queries.ts';
import { type RetryOptions, statusAfter } from './retry.ts';
import { whyRefusedInSandbox } from './sandbox.ts';
import type { SendOutcome, Transport } from './transport.ts';

/** How one look at an e-mail ended; `deferred` is tried again later. */
export interface SendResult {
  readonly status: 'sent' | 'held' | 'failed' | 'uncertain' | 'bounced' | 'deferred' | 'elsewhere' | 'withdrawn';
  /** The mail server's reply, or why nothing was sent. */
  readonly detail: string;
}

/** A worker with all that it needs to send an e-mail. */
export interface Sender {
  readonly environment: EmailContext['environment'];
  readonly transport: Pick<Transport, 'send'>;
  readonly worker: number;
  /** Whether the e-mail is this worker's to send. */
  readonly claim: (claim: Claim) => Promise<boolean>;
  /** False where another worker has taken the e-mail over. */
  readonly recordOutcome: (outcome: AttemptOutcome) => Promise<boolean>;
  /** Whether a worker of this process is idle; false for a worker of another process. */
  readonly isIdle?: ((worker: number) => boolean) | undefined;
}

export interface OutgoingEmail {
  readonly raw: Buffer;
  readonly envelope: Envelope;
}

export const ELSEWHERE: SendResult = { status: 'elsewhere', detail: 'another worker is sending it' };
const CLAIMED_ELSEWHERE: SendResult = {
  status: 'elsewhere',
  detail: 'another worker is sending it, or it was voided or put on hold just now',
};

/** The message that an earlier attempt may have sent, to be repeated byte for byte; undefined where there is none. */
export function messageToRepeat(email: EmailState): OutgoingEmail | undefined {
  if (email.unclear_attempts === 0 || email.message === null) return undefined;
  return { raw: email.message, envelope: { from: email.envelope_from ?? '', to: email.recipients ?? [] } };
}

/** What keeps an e-mail to these recipients from being sent under the present settings; undefined where nothing does. */
export function whyUnsendable(
  context: Pick<EmailContext, 'environment' | 'settings'>,
  { to, cc }: Pick<EmailContent, 'to' | 'cc'>,
): string | undefined {
  if (context.settings.mail_from === '') return 'settings.json has no mail_from';
  return whyRefusedInSandbox(context, [to.address, ...cc]);
}

/** The message of an e-mail, signed where there is a key. Refusal: argument_invalid (what is not exactly one address). */
export async function messageOf(
  { environment, settings }: Pick<EmailContext, 'environment' | 'settings'>,
  messageId: string,
  content: EmailContent,
): Promise<OutgoingEmail> {
  const message = {
    ...content,
    messageId,
    date: content.date ?? environment.now().toISO(),
    from: { name: content.senderName ?? settings.issuer.legal_name, address: settings.mail_from },
    replyTo: settings.reply_to,
  };
  const raw = composeMessage(message);
  return { raw: await signMessage(raw, { environment, settings }), envelope: envelopeOf(message) };
}

/** Sends a message for an e-mail that is queued or held. */
export async function attempt(
  sender: Sender,
  email: EmailState,
  { raw, envelope }: OutgoingEmail,
  options: RetryOptions = {},
): Promise<SendResult> {
  failpoint('delivery.composed');
  const claimed = await sender.claim({
    emailId: email.email_id,
    attempts: email.attempts,
    worker: sender.worker,
    recipients: envelope.to,
    envelopeFrom: envelope.from,
    message: raw,
    sha256: createHash('sha256').update(raw).digest('hex'),
    now: sender.environment.now().toISO(),
  });
  if (!claimed) return CLAIMED_ELSEWHERE;
  failpoint('delivery.claimed');
  const outcome = await sender.transport.send({ messageId: email.message_id, envelope, raw });
  failpoint('delivery.sent');
  const result = await end(sender, email, sender.worker, outcome, options);
  failpoint('delivery.recorded');
  return result;
}

/**
 * Ends the attempt of a worker that died. `deferred`: the e-mail is queued again, and its message is repeated at once.
 * An e-mail that a living worker is sending is left to it.
 */
export function takeOver(sender: Sender, email: EmailState, options: RetryOptions = {}): Promise<SendResult> {
  // A worker sends one e-mail at a time. If the worker that claimed this one is idle, or is this worker, its attempt has
  // ended and the outcome could not be recorded.
  const isSending = email.worker !== null && email.worker !== sender.worker && sender.isIdle?.(email.worker) !== true;
  if (email.worker_lives && isSending) return Promise.resolve(ELSEWHERE);
  const reply = 'the program was stopped while this was being sent';
  return end(sender, email, email.worker, { outcome: 'unclear', reply }, options);
}

async function end(
  sender: Sender,
  email: EmailState,
  worker: number | null,
  { outcome, reply }: SendOutcome,
  options: RetryOptions,
): Promise<SendResult> {
  const status = statusAfter(outcome, email.unclear_attempts, options);
  const now = sender.environment.now().toISO();
  const recorded = await sender.recordOutcome({ emailId: email.email_id, worker, outcome, status, reply, now });
  if (!recorded) return { status: 'elsewhere', detail: 'another worker has taken it over' };
  return { status: status === 'queued' ? 'deferred' : status, detail: reply };
}
