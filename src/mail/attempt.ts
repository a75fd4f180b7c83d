/**
 * Makes one attempt to send an e-mail: passes it to the mail server, records the offer right before the first byte is
 * sent, and then the outcome.
 */
import { hash } from 'node:crypto';
import { failpoint } from '#failpoint';
import { ActorContext, Installation } from '#people/audit-events';
import { signMessage } from './dkim.ts';
import { EmailContent, EmailState } from './email.ts';
import { AttemptOutcome } from './log.sql.ts';
import { composeMessage, Envelope, envelopeOf } from './message.ts';
import { Offer } from './outbox.sql.ts';
import { RetryOptions, statusAfter } from './retry.ts';
import { whyRefusedInSandbox } from './sandbox.ts';
import { SendOutcome, Transport } from './transport.ts';

/** The result of one attempt. A `deferred` e-mail is retried later. */
export type SendResult = Readonly<{
  status: 'sent' | 'held' | 'failed' | 'uncertain' | 'bounced' | 'deferred' | 'elsewhere' | 'withdrawn';
  detail: string;
}>;

export type Sender = Readonly<{
  environment: ActorContext['environment'];
  transport: Pick<Transport, 'send'>;
  holder: number;
  /** Whether this worker should still send the e-mail, which is then `sending`. */
  offer: (offer: Offer) => Promise<boolean>;
  /**
   * Returns false if another worker has taken over the e-mail, or if the e-mail was withdrawn or held before it was
   * offered.
   */
  recordOutcome: (outcome: AttemptOutcome) => Promise<boolean>;
}>;

export type OutgoingEmail = Readonly<{
  raw: Buffer;
  envelope: Envelope;
}>;

export const ELSEWHERE: SendResult = { status: 'elsewhere', detail: 'another worker is sending it' };
const CALLED_OFF: SendResult = {
  status: 'elsewhere',
  detail: 'another worker is sending it, or it was voided or put on hold just now',
};

/** The message that an earlier attempt may have sent, to be repeated byte for byte. */
export function messageToRepeat(email: EmailState): OutgoingEmail | undefined {
  if (email.unclear_attempts === 0 || email.message === null) return undefined;
  return { raw: email.message, envelope: { from: email.envelope_from ?? '', to: email.recipients ?? [] } };
}

/** Why the current settings prevent an e-mail to these recipients; undefined if they allow it. */
export function whyUnsendable(context: Installation, { to, cc }: Pick<EmailContent, 'to' | 'cc'>) {
  if (context.settings.mail_from === '') return 'settings.json has no mail_from';
  return whyRefusedInSandbox(context, [to.address, ...cc]);
}

/** Signed if there is a key. Refusal: argument_invalid (the text is not exactly one address). */
export async function messageOf(
  { environment, settings }: Installation,
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

export async function attempt(
  sender: Sender,
  email: EmailState,
  { raw, envelope }: OutgoingEmail,
  options: RetryOptions = {},
) {
  failpoint('delivery.composed');
  const facts = {
    ...{ emailId: email.email_id, attempt: email.attempts + 1, recipients: envelope.to, envelopeFrom: envelope.from },
    ...{ sha256: hash('sha256', raw), startedAt: sender.environment.now().toISO() },
  };
  let offered: boolean | undefined;
  let failure: { readonly reason: unknown } | undefined;
  const offer = async () => {
    try {
      offered = await sender.offer({ ...facts, holder: sender.holder, message: raw });
    } catch (reason) {
      failure = { reason };
    }
    if (offered) failpoint('delivery.offered');
    return offered === true;
  };
  const outcome = await sender.transport.send({ messageId: email.message_id, envelope, raw, offer });
  if (failure !== undefined) throw failure.reason;
  if (offered === false) return CALLED_OFF;
  failpoint('delivery.sent');
  const result = await end(sender, email, facts, outcome, options);
  failpoint('delivery.recorded');
  return result;
}

/**
 * Ends the attempt of a worker that died. If an e-mail that is `sending` can be claimed, no other worker has it. If the
 * result is `deferred`, its message is sent again at once.
 */
export function takeOver(sender: Sender, email: EmailState, options: RetryOptions = {}) {
  const reply = 'the program was stopped while this was being sent';
  const facts = { emailId: email.email_id, attempt: email.attempts };
  return end(sender, email, facts, { outcome: 'unclear', reply }, options);
}

async function end(
  sender: Sender,
  email: EmailState,
  facts: Pick<AttemptOutcome, 'emailId' | 'attempt'>,
  { outcome, reply }: SendOutcome,
  options: RetryOptions,
): Promise<SendResult> {
  const status = statusAfter(outcome, email.unclear_attempts, options);
  const now = sender.environment.now().toISO();
  const recorded = await sender.recordOutcome({ ...facts, outcome, status, reply, now });
  if (!recorded) return CALLED_OFF;
  return { status: status === 'queued' ? 'deferred' : status, detail: reply };
}
