/**
 * Sends partners their events: one at a time and in order for each partner, at least once. The position that the partner's
 * server acknowledged is stored after each answer, so whoever goes on after a kill begins with the event that was on its way.
 * A failure is tried again, later and later, for three days; then the webhook is paused until it is resumed.
 *
 * This is no job per event in the queue: a later event may not overtake an earlier one, and all that is to be remembered is
 * one position for each partner.
 */
import type { Database } from '../database/database.ts';
import { reasonOf } from '../errors/refusals.ts';
import { failpoint } from '../failpoint.ts';
import { writeExactJson } from '../json.ts';
import { leaseWorkers } from '../mail/workers.ts';
import { packageVersion } from '../package.ts';
import { recordEvent } from '../people/audit-events.ts';
import { type PartnerEvent, readPartnerEvents } from './event.ts';
import { type Answer, openPoster, type Poster } from './post.ts';
import { Publisher } from './publish.ts';
import { keyCheck, secretOf, signedHeaders } from './signature.ts';
import { isProduction, type WebhookContext } from './webhook.ts';
import {
  acknowledge,
  claimWebhook,
  readDueWebhooks,
  readInstallationId,
  readWebhooks,
  recordFailure,
  releaseWebhook,
  type WebhookRow,
} from './webhook-queries.ts';

/** Told what happens to partners' events. */
export interface WebhookReporter {
  /** A partner's server took this number of events. */
  readonly onWebhookSent?: ((partnerId: string, events: number) => void) | undefined;
  /** A partner's server did not take an event. It is tried again later. */
  readonly onWebhookFailed?: ((partnerId: string, reason: string) => void) | undefined;
  /** Events could not be published or read. A standing worker tries again at its next look. */
  readonly onEventsFailed?: ((error: unknown) => void) | undefined;
}

export interface SendContext extends WebhookContext, WebhookReporter {
  readonly database: Database;
}

/** Partners that are sent to at once. */
const AT_ONCE = 16;
/** How long one partner is sent to before others have their turn. */
const TURN_MILLISECONDS = 20_000;
const PAGE = 50;
const LOOK_AGAIN_MILLISECONDS = 2000;
/** A cut is kept from one look to the next, so nothing is lost by a short patience. */
const PUBLISH_PATIENCE_MILLISECONDS = 2000;

/** Seconds until the next attempt after the first failure, the second, and so on; the last for all further ones. */
const RETRY_SECONDS = [5, 30, 120, 600, 1800, 3600, 3 * 3600, 6 * 3600];
const MOST_SECONDS = 6 * 3600;
export const PAUSED_AFTER_HOURS = 72;

/** Publishes, and sends all that can be sent now. */
export async function sendEvents(context: SendContext): Promise<void> {
  const { database } = context;
  await new Publisher(database).publish(PUBLISH_PATIENCE_MILLISECONDS);
  await withSender(context, async (sender) => {
    for (let due = await sender.due(); due.length > 0; due = await sender.due()) {
      const waiting = due.values();
      const sent: boolean[] = [];
      const work = async () => {
        for (const partnerId of waiting) sent.push(await sender.turn(partnerId));
      };
      await Promise.all(Array.from({ length: AT_ONCE }, work));
      // What another worker is sending is left to it.
      if (!sent.includes(true)) return;
    }
  });
}

/** The same until the signal, looking again every two seconds. */
export async function sendEventsForever(context: SendContext, stop: AbortSignal): Promise<void> {
  const { database, onEventsFailed } = context;
  const failed = (error: unknown) => onEventsFailed?.(error);
  const publisher = new Publisher(database);
  const active = new Map<string, Promise<unknown>>();
  await withSender(
    context,
    async (sender) => {
      while (!stop.aborted) {
        await publisher.publish(PUBLISH_PATIENCE_MILLISECONDS).catch(failed);
        const due = await sender.due().catch((error: unknown) => {
          failed(error);
          return [];
        });
        for (const partnerId of due.filter((each) => !active.has(each)).slice(0, AT_ONCE - active.size)) {
          const turn = sender.turn(partnerId).catch(failed);
          active.set(
            partnerId,
            turn.finally(() => active.delete(partnerId)),
          );
        }
        await pause(LOOK_AGAIN_MILLISECONDS, stop);
      }
      await Promise.all(active.values());
    },
    stop,
  );
}

const pause = (milliseconds: number, stop: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      stop.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    stop.addEventListener('abort', end);
  });

/** Does work with a sender, whose lease begins with its first turn. */
async function withSender(
  context: SendContext,
  work: (sender: Sender) => Promise<void>,
  stop: AbortSignal = new AbortController().signal,
): Promise<void> {
  const sender = new Sender(context, stop);
  try {
    await work(sender);
  } finally {
    await sender.end();
  }
}

class Sender {
  private readonly context: SendContext;
  private readonly stop: AbortSignal;
  private lease: ReturnType<typeof leaseWorkers> | undefined;

  constructor(context: SendContext, stop: AbortSignal) {
    this.context = context;
    this.stop = stop;
  }

  /** The partners with events to send now; none without a key, which `status` reports. */
  due(): Promise<string[]> {
    const { database, environment } = this.context;
    const { webhookKey: key } = environment;
    if (key === undefined) return Promise.resolve([]);
    return database.reading((tx) => readDueWebhooks(tx, { now: environment.now().toISO(), keyCheck: keyCheck(key) }));
  }

  async end(): Promise<void> {
    await (await this.lease?.catch(() => undefined))?.end();
  }

  /** Sends a partner's events until there are no more, one fails, or it is the turn of others. False: nothing was sent. */
  async turn(partnerId: string): Promise<boolean> {
    const { database, environment } = this.context;
    const worker = await this.workerNumber();
    const claim = { partnerId, worker, now: environment.now().toISO() };
    if (!(await database.transaction((tx) => claimWebhook(tx, claim)))) return false;
    failpoint('webhook.claimed');
    const poster = openPoster(isProduction(this.context));
    let events = 0;
    const taken = () => {
      events += 1;
    };
    try {
      const until = Date.now() + TURN_MILLISECONDS;
      while (
        (await this.sendPage(partnerId, worker, poster, until, taken)) &&
        Date.now() < until &&
        !this.stop.aborted
      );
      return true;
    } finally {
      if (events > 0) this.context.onWebhookSent?.(partnerId, events);
      poster.close();
      await database.transaction((tx) => releaseWebhook(tx, { partnerId, worker })).catch(() => {});
    }
  }

  /** A number whose lock lives as long as this process does. Lost, it is another one next time. */
  private async workerNumber(): Promise<number> {
    this.lease ??= leaseWorkers(this.context.database.connection, 1, () => {
      this.lease = undefined;
    });
    try {
      return (await this.lease).numbers[0] as number;
    } catch (error) {
      this.lease = undefined;
      throw error;
    }
  }

  /** True where there may be more. */
  private async sendPage(
    partnerId: string,
    worker: number,
    poster: Poster,
    until: number,
    taken: () => void,
  ): Promise<boolean> {
    const { database, environment } = this.context;
    const { webhook, installationId, events } = await database.reading(async (tx) => {
      const [row] = await readWebhooks(tx, partnerId);
      const after = row?.acknowledged ?? 0;
      return {
        webhook: row,
        installationId: await readInstallationId(tx),
        events: await readPartnerEvents(tx, { partnerId, after, limit: PAGE }),
      };
    });
    const key = environment.webhookKey;
    if (webhook === undefined || webhook.url === null || key === undefined) return false;
    if (webhook.key_check !== keyCheck(key)) return false;
    for (const event of events) {
      if (Date.now() >= until || this.stop.aborted) return false;
      const secrets = secretsOf(key, installationId, webhook, environment.now().toMillis());
      if (!(await this.sendEvent({ ...webhook, url: webhook.url }, worker, poster, event, secrets))) return false;
      taken();
    }
    return events.length === PAGE;
  }

  /** False where it failed, or the webhook was changed meanwhile. */
  private async sendEvent(
    webhook: WebhookRow & { readonly url: string },
    worker: number,
    poster: Poster,
    event: PartnerEvent,
    secrets: readonly Buffer[],
  ): Promise<boolean> {
    const { database, environment } = this.context;
    const body = writeExactJson(event);
    const seconds = Math.floor(environment.now().toSeconds());
    const headers = {
      ...signedHeaders(secrets, { eventId: event.event_id, seconds, body }),
      'user-agent': `Reckoner/${packageVersion}`,
    };
    const answer = await poster.post(webhook.url, headers, body).catch((error: unknown) => reasonOf(error));
    failpoint('webhook.sent');
    const sent = { partnerId: webhook.partner_id, worker, url: webhook.url, position: event.position };
    if (typeof answer !== 'string' && answer.status >= 200 && answer.status < 300) {
      const acknowledged = await database.transaction((tx) => acknowledge(tx, sent));
      failpoint('webhook.acknowledged');
      return acknowledged;
    }
    await this.fail(webhook, sent, answer);
    return false;
  }

  private async fail(
    webhook: WebhookRow,
    sent: Parameters<typeof acknowledge>[1],
    answer: Answer | string,
  ): Promise<void> {
    const { database, environment, actor, onWebhookFailed } = this.context;
    const now = environment.now();
    const reason = typeof answer === 'string' ? answer.slice(0, 300) : `it answered ${answer.status}`;
    const status = typeof answer === 'string' ? 0 : answer.status;
    const asked = typeof answer === 'string' ? 0 : (answer.retryAfter ?? 0);
    const planned = RETRY_SECONDS[Math.min(webhook.failures, RETRY_SECONDS.length - 1)] as number;
    const next = now.plus({ seconds: Math.min(Math.max(planned, asked), MOST_SECONDS) }).toISO();
    const since = webhook.failing_since;
    const hours = since === null ? 0 : (now.toMillis() - Date.parse(since)) / 3_600_000;
    const pause = status === 410 || hours >= PAUSED_AFTER_HOURS;
    await database.transaction(async (tx) => {
      const recorded = await recordFailure(tx, { ...sent, reason, now: now.toISO(), next, pause });
      if (!recorded || !pause) return;
      const details = { reason, position: sent.position, failing_since: since };
      await recordEvent(tx, actor, { action: 'webhook.pause', subject: sent.partnerId, details, now: now.toISO() });
    });
    onWebhookFailed?.(sent.partnerId, reason);
  }
}

function secretsOf(key: string, installationId: string, webhook: WebhookRow, now: number): Buffer[] {
  const { partner_id: partnerId, secret_version: version, previous_until: until } = webhook;
  const overlaps = until !== null && now < Date.parse(until);
  return [version, ...(overlaps ? [version - 1] : [])].map((each) =>
    secretOf(key, { installationId, partnerId, version: each }),
  );
}
