/**
 * Sends the e-mails that carry no document: reminders, close reports, seals, the status. Each is queued before it is
 * sent and composed when it is sent. Any number of processes may run this at once; what a mail server defers waits for the
 * next run. The log of all attempts is in `log.ts`.
 */
import type { Transaction } from '../database/transaction.ts';
import { Refusal } from '../errors/refusals.ts';
import {
  attempt,
  ELSEWHERE,
  messageOf,
  messageToRepeat,
  type OutgoingEmail,
  type Sender,
  type SendResult,
  takeOver,
  whyUnsendable,
} from './attempt.ts';
import type { EmailComposer, EmailContext, EmailState, EmailSubject, Mailer } from './email.ts';
import { recordOutcome } from './log.ts';
import { claimEmail, readEmailState, readUnfinishedEmails, setAside } from './queries.ts';
import { queueForNewAddresses } from './resend.ts';
import { templatesOf } from './templates.ts';
import { transportOf } from './transport.ts';
import { leaseWorkers } from './workers.ts';

/** E-mails under way at once: each waits for the mail server most of its time. */
const WORKERS = 4;

/** How long e-mails under way may still take when the program is to end. */
const STOP_MILLISECONDS = 15_000;

export interface EmailResult extends SendResult {
  readonly email: EmailSubject;
}

export interface OutboxOptions extends Mailer, EmailContext {
  readonly composers: readonly EmailComposer[];
  readonly onEmail?: ((result: EmailResult) => void) | undefined;
  /** Sends these e-mails alone, and queues none. */
  readonly only?: readonly number[] | undefined;
  /** Ends the run: what is under way is cut off after a while, what waits is left for the next run. */
  readonly stop?: AbortSignal | undefined;
}

/** Queues what is due, then sends what is queued or held. */
export async function sendOtherEmails(options: OutboxOptions): Promise<void> {
  const { environment, database, composers, only } = options;
  if (only === undefined) {
    await database.transaction(async (tx) => {
      for (const { queueDue } of composers) await queueDue?.(tx, options);
      await queueForNewAddresses(tx, options);
    });
  }
  const unfinished = await database.reading(readUnfinishedEmails);
  const waiting = unfinished.filter(({ email_id }) => only?.includes(email_id) !== false);
  if (waiting.length === 0) return;
  const transport = transportOf(environment);
  const compose = composing(options);
  const end = () => {
    waiting.length = 0;
    transport.close(STOP_MILLISECONDS);
  };
  if (options.stop?.aborted) return;
  options.stop?.addEventListener('abort', end, { once: true });
  let lost: Error | undefined;
  const lease = await leaseWorkers(database.connection, Math.min(WORKERS, waiting.length), (error) => {
    lost = error;
  });
  try {
    await Promise.all(
      lease.numbers.map(async (worker) => {
        const sender: Sender = {
          ...{ environment, transport, worker },
          claim: (claim) => database.transaction((tx) => claimEmail(tx, claim)),
          recordOutcome: (outcome) => database.transaction((tx) => recordOutcome(tx, outcome)),
        };
        for (let next = waiting.shift(); next !== undefined && lost === undefined; next = waiting.shift()) {
          // Before the optional call: that evaluates its arguments only if there is a listener.
          const result = await sendOne(options, sender, next, compose);
          options.onEmail?.({ email: next, ...result });
        }
      }),
    );
    if (lost !== undefined) throw lost;
  } finally {
    options.stop?.removeEventListener('abort', end);
    await lease.end();
    transport.close();
  }
}

type Compose = (tx: Transaction, email: EmailSubject, messageId: string) => Promise<OutgoingEmail | SetAside>;
interface SetAside {
  readonly status: 'held' | 'withdrawn';
  readonly reason: string;
}

async function sendOne(
  { database }: Mailer,
  sender: Sender,
  email: EmailSubject,
  compose: Compose,
): Promise<SendResult> {
  const read = (): Promise<EmailState> => database.reading((tx) => readEmailState(tx, email.email_id));
  let state = await read();
  if (state.status === 'sending') {
    const ended = await takeOver(sender, state);
    if (ended.status !== 'deferred') return ended;
    state = await read();
  }
  // It waited when this run began: whoever finished it since has reported it.
  if (state.status !== 'queued' && state.status !== 'held') {
    return { status: 'elsewhere', detail: 'another worker has sent it' };
  }
  const { email_id: emailId, message_id: messageId, attempts } = state;
  const message = messageToRepeat(state) ?? (await database.reading((tx) => compose(tx, email, messageId)));
  if ('raw' in message) return attempt(sender, state, message);
  const done = await database.transaction((tx) => setAside(tx, { emailId, attempts, ...message }));
  return done ? { status: message.status, detail: message.reason } : ELSEWHERE;
}

function composing(options: OutboxOptions): Compose {
  const templates = templatesOf(options.environment);
  return async (tx, email, messageId) => {
    const composer = options.composers.find(({ kind }) => kind === email.kind);
    if (composer === undefined)
      return { status: 'held', reason: `this version composes no e-mail of kind ${email.kind}` };
    try {
      const composed = await composer.compose(tx, email, options, templates);
      if ('withdrawn' in composed) return { status: 'withdrawn', reason: composed.withdrawn };
      if ('held' in composed) return { status: 'held', reason: composed.held };
      const { addressed_to: address } = email;
      const content = address === null ? composed : { ...composed, to: { name: '', address }, cc: [] };
      const reason = whyUnsendable(options, content);
      return reason === undefined ? await messageOf(options, messageId, content) : { status: 'held', reason };
    } catch (error) {
      // A template or an address that cannot be used: somebody has to correct it.
      if (error instanceof Refusal) return { status: 'held', reason: error.message };
      throw error;
    }
  };
}
