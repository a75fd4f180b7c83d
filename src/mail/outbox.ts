/**
 * Sends the e-mails without a document, such as reminders and reports of closes. Each is queued before it is sent and
 * composed when it is sent. Any number of processes may do so at once; what a mail server defers waits for the next
 * run.
 */
import { Claims, workOn } from '#database/claims';
import { Transaction } from '#database/transaction';
import { Refusal } from '#errors/refusals';
import { ActorContext } from '#people/audit-events';
import {
  attempt,
  ELSEWHERE,
  messageOf,
  messageToRepeat,
  OutgoingEmail,
  Sender,
  SendResult,
  takeOver,
  whyUnsendable,
} from './attempt.ts';
import { EmailComposer, EmailContent, EmailState, EmailSubject, Mailer } from './email.ts';
import { recordOutcome } from './log.ts';
import { dueOtherEmails, offerEmail, readOtherEmail, setAside, wakeOtherEmails } from './outbox.sql.ts';
import { queueForNewAddresses } from './resend.ts';
import { EmailTemplates, templatesOf } from './templates.ts';
import { transportOf } from './transport.ts';

/** In progress at once. A worker mostly waits for the mail server. */
const WORKERS = 4;

/** How long e-mails in progress may still take when the program must stop. */
const STOP_MILLISECONDS = 15_000;

export type EmailResult = SendResult &
  Readonly<{
    email: EmailSubject;
  }>;

type OutboxOptions = Mailer &
  ActorContext &
  Readonly<{
    composers: readonly EmailComposer[];
    onEmail?: ((result: EmailResult) => void) | undefined;
    /** Queues none. */
    only?: readonly number[] | undefined;
    /** Cuts off e-mails in progress after a while, and leaves waiting ones for the next run. */
    stop?: AbortSignal | undefined;
  }>;

export async function sendOtherEmails(options: OutboxOptions) {
  const { environment, database, composers, only = null, stop } = options;
  const waiting = await database.transaction(async (tx) => {
    if (only === null) {
      for (const { queueDue } of composers) await queueDue?.(tx, options);
      await queueForNewAddresses(tx, options);
    }
    return wakeOtherEmails(tx, { only });
  });
  if (waiting === 0 || stop?.aborted) return;
  const transport = transportOf(environment);
  const compose = composing(options);
  const end = () => transport.close(STOP_MILLISECONDS);
  stop?.addEventListener('abort', end, { once: true });
  const sender = (holder: number): Sender => ({
    ...{ environment, transport, holder },
    offer: (offer) => database.transaction((tx) => offerEmail(tx, offer)),
    recordOutcome: (outcome) => database.transaction((tx) => recordOutcome(tx, outcome)),
  });
  const work = async (holder: number, key: string) => {
    const email = await database.reading((tx) => readOtherEmail(tx, { emailId: Number(key) }));
    // The e-mail is sent before the optional call, because the call's arguments are evaluated only if there is a
    // listener.
    const result = await sendOne(options, sender(holder), email, compose);
    options.onEmail?.({ email, ...result });
    return false; // Each e-mail is tried once a run, whatever the outcome.
  };
  let claims: Claims | undefined;
  try {
    claims = await Claims.open(database.connection);
    const { holder } = claims;
    await workOn(claims, dueOtherEmails(only), { atOnce: WORKERS, work: (key) => work(holder, key), stop });
  } finally {
    stop?.removeEventListener('abort', end);
    await claims?.end();
    transport.close();
  }
}

type Compose = (tx: Transaction, email: EmailSubject, messageId: string) => Promise<OutgoingEmail | SetAside>;
type SetAside = Readonly<{
  status: 'held' | 'withdrawn';
  reason: string;
}>;

async function sendOne({ database }: Mailer, sender: Sender, email: EmailState & EmailSubject, compose: Compose) {
  let state: EmailState = email;
  if (state.status === 'sending') {
    const ended = await takeOver(sender, state);
    if (ended.status !== 'deferred') return ended;
    state = await database.reading((tx) => readOtherEmail(tx, { emailId: email.email_id }));
  }
  const { email_id: emailId, message_id: messageId, attempts } = state;
  const message = messageToRepeat(state) ?? (await database.reading((tx) => compose(tx, email, messageId)));
  if ('raw' in message) return attempt(sender, state, message);
  const done = await database.transaction((tx) => setAside(tx, { emailId, attempts, ...message }));
  return done ? { status: message.status, detail: message.reason } : ELSEWHERE;
}

/** The e-mail as it would be sent now, or why it is not. */
export async function composeEmail(
  tx: Transaction,
  email: EmailSubject,
  context: ActorContext & Pick<OutboxOptions, 'composers'>,
  templates: EmailTemplates,
): Promise<EmailContent | SetAside> {
  const composer = context.composers.find(({ kind }) => kind === email.kind);
  if (composer === undefined)
    return { status: 'held', reason: `this version cannot compose an e-mail of kind ${email.kind}` };
  try {
    const composed = await composer.compose(tx, email, context, templates);
    if ('withdrawn' in composed) return { status: 'withdrawn', reason: composed.withdrawn };
    if ('held' in composed) return { status: 'held', reason: composed.held };
    const { addressed_to: address } = email;
    const content = address === null ? composed : { ...composed, to: { name: '', address }, cc: [] };
    const reason = whyUnsendable(context, content);
    return reason === undefined ? content : { status: 'held', reason };
  } catch (error) {
    return heldBy(error);
  }
}

/** Because a person must correct a template or an address. */
function heldBy(error: unknown) {
  if (error instanceof Refusal) return { status: 'held', reason: error.message } as const;
  throw error;
}

function composing(options: OutboxOptions): Compose {
  const templates = templatesOf(options.environment);
  return async (tx, email, messageId) => {
    const composed = await composeEmail(tx, email, options, templates);
    return 'status' in composed ? composed : messageOf(options, messageId, composed).catch(heldBy);
  };
}
