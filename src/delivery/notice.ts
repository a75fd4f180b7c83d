/**
 * E-mails that carry no document: reminders, and the report of a close. Each is recorded before it is sent, is composed
 * when it is sent, and goes through the states of a document's sending: see `settle` for what an unclear end means.
 */

import { createHash } from 'node:crypto';
import type { Environment } from '../config/environment.ts';
import type { Settings } from '../config/settings.ts';
import type { Database } from '../database/database.ts';
import { execute, query, queryOne, type Transaction } from '../database/transaction.ts';
import { Refusal } from '../errors/refusals.ts';
import type { Letter } from '../mail/document-email.ts';
import { type Attachment, composeMessage, envelopeOf, type Mailbox } from '../mail/message.ts';
import { type SendOutcome, sandboxAllows, type Transport, transportOf } from '../mail/transport.ts';
import { EMAIL_COUNTS, type EmailCounts, workerLives } from './queries.ts';
import { hireCrew } from './workers.ts';

/** Letters under way at once: each waits for the mail server most of its time. */
const CREW = 4;

export interface Notice {
  readonly notice_id: number;
  readonly kind: 'reminder' | 'close_report';
  /** Whom a reminder goes to; null on the report of a close. */
  readonly partner_id: string | null;
  readonly day: string | null;
  /** Which month was closed; null on a reminder. */
  readonly month: string | null;
}

/** What to send, or why nothing can be sent yet (a person mends that), or why nothing is to be sent any more. */
export type Composed =
  | {
      readonly to: Mailbox;
      readonly cc: readonly string[];
      readonly letter: Letter;
      readonly attachments: readonly Attachment[];
    }
  | { readonly held: string }
  | { readonly withdrawn: string };

/** Writes the letter from what is true now, in a transaction that reads. */
export type Composer = (tx: Transaction, notice: Notice) => Promise<Composed>;

export interface NoticeOutcome {
  readonly notice: Notice;
  readonly status: 'sent' | 'held' | 'failed' | 'uncertain' | 'deferred' | 'withdrawn' | 'elsewhere';
  readonly detail: string;
}

export interface NoticeOptions {
  readonly environment: Environment;
  readonly settings: Settings;
  readonly database: Database;
  readonly composers: Readonly<Record<Notice['kind'], Composer>>;
  readonly onNotice?: (outcome: NoticeOutcome) => void;
}

/** Sends what is recorded and not sent. Any number may run at once; what a mail server puts off waits for the next run. */
export async function sendNotices(options: NoticeOptions): Promise<void> {
  const { database } = options;
  const waiting = await database.reading((tx) => readUnfinished(tx));
  if (waiting.length === 0) return;
  const transport = transportOf(options.environment);
  let lost: Error | undefined;
  const crew = await hireCrew(database.connection, Math.min(CREW, waiting.length), () => {
    lost = new Error('the connection that shows that these workers live was lost');
  });
  try {
    await Promise.all(
      crew.numbers.map(async (worker) => {
        for (let next = waiting.shift(); next !== undefined && lost === undefined; next = waiting.shift()) {
          options.onNotice?.(await sendNotice(options, transport, next, worker));
        }
      }),
    );
    if (lost !== undefined) throw lost;
  } finally {
    await crew.dismiss();
    transport.close();
  }
}

interface State {
  readonly status: 'queued' | 'sending' | 'sent' | 'held' | 'failed' | 'uncertain' | 'withdrawn';
  readonly reason: string | null;
  readonly message_id: string;
  readonly message: Buffer | null;
  readonly recipients: string[] | null;
  readonly envelope_from: string | null;
  readonly attempts: number;
  readonly unclear_attempts: number;
  readonly worker: number | null;
  readonly worker_lives: boolean;
}

async function sendNotice(
  options: NoticeOptions,
  transport: Transport,
  notice: Notice,
  worker: number,
): Promise<NoticeOutcome> {
  const { database, environment } = options;
  const state = await database.reading((tx) => readState(tx, notice));
  const elsewhere: NoticeOutcome = { notice, status: 'elsewhere', detail: 'another worker is sending it' };
  if (state.status === 'sending') {
    if (state.worker_lives && state.worker !== worker) return elsewhere;
    const reply = 'the program was stopped while this was being sent';
    const settled = await settle(options, notice, state, state.worker, { outcome: 'unclear', reply });
    // After the first time it is repeated at once.
    return settled.status === 'deferred' ? sendNotice(options, transport, notice, worker) : settled;
  }
  // It waited when this run began: whoever ended it since has told so.
  if (state.status !== 'queued' && state.status !== 'held') return elsewhere;
  let mail: { raw: Buffer; envelope: { from: string; to: string[] } };
  if (state.unclear_attempts > 0 && state.message !== null) {
    mail = { raw: state.message, envelope: { from: state.envelope_from ?? '', to: state.recipients ?? [] } };
  } else {
    const composed = await compose(options, notice, state.message_id);
    if ('raw' in composed) mail = composed;
    else {
      const [status, detail] =
        'held' in composed ? (['held', composed.held] as const) : (['withdrawn', composed.withdrawn] as const);
      await database.transaction((tx) => putAside(tx, notice, status, detail));
      return { notice, status, detail };
    }
  }
  const claim = { ...mail, attempts: state.attempts, worker, now: environment.now().toISO() };
  const claimed = await database.transaction((tx) => claimNotice(tx, notice, claim));
  if (!claimed) return elsewhere;
  const outcome = await transport.send({ messageId: state.message_id, envelope: mail.envelope, raw: mail.raw });
  return settle(options, notice, state, worker, outcome);
}

/** Once unclear, it is repeated with the same bytes; twice, only a person can tell whether it arrived. */
async function settle(
  { database, environment }: NoticeOptions,
  notice: Notice,
  state: State,
  worker: number | null,
  { outcome, reply }: SendOutcome,
): Promise<NoticeOutcome> {
  const unclear = outcome === 'unclear';
  const status = (
    {
      sent: 'sent',
      refused: 'failed',
      deferred: 'queued',
      unclear: state.unclear_attempts === 0 ? 'queued' : 'uncertain',
    } as const
  )[outcome];
  const settlement = { worker, status, reason: reply, unclear, now: environment.now().toISO() };
  const settled = await database.transaction((tx) => settleNotice(tx, notice, settlement));
  if (!settled) return { notice, status: 'elsewhere', detail: 'another worker has taken it over' };
  return { notice, status: status === 'queued' ? 'deferred' : status, detail: reply };
}

async function compose(
  { database, environment, settings, composers }: NoticeOptions,
  notice: Notice,
  messageId: string,
): Promise<{ raw: Buffer; envelope: { from: string; to: string[] } } | { held: string } | { withdrawn: string }> {
  try {
    const composed = await database.reading((tx) => composers[notice.kind](tx, notice));
    if (!('letter' in composed)) return composed;
    const { to, cc } = composed;
    if (settings.mail_from === '') return { held: 'settings.json has no mail_from' };
    if (environment.name === 'sandbox') {
      const outside = [to.address, ...cc].filter((address) => !sandboxAllows(address, settings.sandbox_recipients));
      if (outside.length > 0) {
        return { held: `sandbox mail goes only to sandbox_recipients, and ${outside.join(', ')} is not among them` };
      }
    }
    const message = {
      ...composed,
      messageId,
      date: environment.now().toISO(),
      from: { name: settings.issuer.legal_name, address: settings.mail_from },
      ...(settings.reply_to === '' ? {} : { replyTo: settings.reply_to }),
    };
    return { raw: await composeMessage(message), envelope: envelopeOf(message) };
  } catch (error) {
    // A template or an address that cannot be used is for a person to mend.
    if (error instanceof Refusal) return { held: error.message };
    throw error;
  }
}

// --- Queries ------------------------------------------------------------------------------------------------------------

function readUnfinished(tx: Transaction): Promise<Notice[]> {
  return query(
    tx,
    `SELECT notice_id, kind, partner_id, day, month FROM notices
     WHERE status IN ('queued', 'sending', 'held') ORDER BY notice_id`,
  );
}

function readState(tx: Transaction, { notice_id: noticeId }: Notice): Promise<State> {
  return queryOne(
    tx,
    `SELECT status, reason, message_id, message, recipients, envelope_from, attempts, unclear_attempts, worker,
            ${workerLives('worker')} AS worker_lives
     FROM notices WHERE notice_id = :noticeId`,
    { noticeId },
  );
}

/** Says, before the mail server is called, what is about to be sent and by whom. False where another worker did. */
async function claimNotice(
  tx: Transaction,
  { notice_id: noticeId }: Notice,
  claim: { raw: Buffer; envelope: { from: string; to: string[] }; attempts: number; worker: number; now: string },
): Promise<boolean> {
  const { raw, envelope, ...facts } = claim;
  const sha256 = createHash('sha256').update(raw).digest('hex');
  const claimed = await execute(
    tx,
    `UPDATE notices SET status = 'sending', worker = :worker, recipients = :to::text[], envelope_from = :from,
            message = :raw, message_sha256 = :sha256, attempts = attempts + 1, attempted_at = :now::timestamptz,
            reason = NULL
     WHERE notice_id = :noticeId AND status IN ('queued', 'held') AND attempts = :attempts
       AND ${workerLives(':worker::bigint')}`,
    { ...facts, ...envelope, raw, sha256, noticeId },
  );
  return claimed === 1;
}

/** Records how an attempt ended; false where it is another worker's by now. The bytes stay for a repetition only. */
async function settleNotice(
  tx: Transaction,
  { notice_id: noticeId }: Notice,
  settlement: { worker: number | null; status: string; reason: string; unclear: boolean; now: string },
): Promise<boolean> {
  const settled = await execute(
    tx,
    `UPDATE notices SET status = :status, worker = NULL, reason = :reason,
            unclear_attempts = unclear_attempts + CASE WHEN :unclear THEN 1 ELSE 0 END,
            message = CASE WHEN :status = 'queued' AND (:unclear OR unclear_attempts > 0) THEN message END,
            sent_at = CASE WHEN :status = 'sent' THEN :now::timestamptz END
     WHERE notice_id = :noticeId AND status = 'sending' AND worker = :worker`,
    { ...settlement, noticeId },
  );
  return settled === 1;
}

async function putAside(
  tx: Transaction,
  { notice_id: noticeId }: Notice,
  status: 'held' | 'withdrawn',
  reason: string,
): Promise<void> {
  await execute(
    tx,
    `UPDATE notices SET status = :status, reason = :reason, message = NULL
     WHERE notice_id = :noticeId AND status IN ('queued', 'held')`,
    { noticeId, status, reason },
  );
}

/** How the e-mails that carry no document stand. */
export function countNotices(tx: Transaction): Promise<EmailCounts> {
  return queryOne(tx, `SELECT ${EMAIL_COUNTS} FROM notices`);
}
