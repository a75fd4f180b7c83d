/**
 * Sends events to partners at least once, one at a time and in order for each partner. The acknowledged position is
 * stored after each answer. If a worker is killed, the next worker therefore starts with the event in transit. A failed
 * event is retried at growing intervals for three days. The webhook is then paused until it is resumed.
 *
 * A worker claims a partner, not an event. Events therefore stay in order, and each partner needs only one stored
 * position.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { Claims, workOn } from '#database/claims';
import { Database } from '#database/database';
import { readInstallation } from '#database/installation.sql';
import { reasonOf } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { writeExactJson } from '#json';
import { packageVersion } from '#package';
import { recordEvent } from '#people/audit-events';
import { PartnerEvent, readPartnerEvents } from './event.ts';
import { Answer, openPoster, Poster } from './post.ts';
import { Publisher } from './publish.ts';
import { keysByCheck, secretOf, signedHeaders } from './signature.ts';
import { isProduction, WebhookContext } from './webhook.ts';
import { acknowledge, beginTurn, dueWebhooks, readWebhooks, recordFailure, WebhookRow } from './webhooks.sql.ts';

export type WebhookReporter = Readonly<{
  onWebhookSent?: ((partnerId: string, events: number) => void) | undefined;
  onWebhookFailed?: ((partnerId: string, reason: string) => void) | undefined;
  /** Called when events could not be published or read. A long-running worker retries at its next check. */
  onEventsFailed?: ((error: unknown) => void) | undefined;
}>;

type SendContext = WebhookContext &
  WebhookReporter &
  Readonly<{
    database: Database;
  }>;

const AT_ONCE = 16;
/** How long one partner is served before other partners get their turn. */
const TURN_MILLISECONDS = 20_000;
const PAGE = 50;
const LOOK_AGAIN_MILLISECONDS = 2000;
/** A short wait loses nothing, because a cut is kept until the next check. */
const PUBLISH_PATIENCE_MILLISECONDS = 2000;

/**
 * The seconds until the next attempt, by the number of failures so far. After the last entry, MOST_SECONDS is the
 * interval.
 */
const RETRY_SECONDS = [5, 30, 120, 600, 1800, 3600, 3 * 3600, 6 * 3600];
const MOST_SECONDS = 6 * 3600;
export const PAUSED_AFTER_HOURS = 72;

export async function sendEvents(context: SendContext) {
  await new Publisher(context.database).publish(PUBLISH_PATIENCE_MILLISECONDS);
  await withSender(context, (sender) => sender.send(false));
}

export async function sendEventsForever(context: SendContext, stop: AbortSignal) {
  const failed = new AbortController();
  const either = AbortSignal.any([stop, failed.signal]);
  const sending = withSender(context, (sender) => sender.send(true), either).catch((error: unknown) => {
    failed.abort();
    throw error;
  });
  await Promise.all([publishForever(context, either), sending]);
}

async function publishForever({ database, onEventsFailed }: SendContext, stop: AbortSignal) {
  const publisher = new Publisher(database);
  while (!stop.aborted) {
    const failure = await publisher.publish(PUBLISH_PATIENCE_MILLISECONDS).then(
      () => undefined,
      (error: unknown) => ({ error }),
    );
    await sleep(LOOK_AGAIN_MILLISECONDS, undefined, { signal: stop }).catch(() => {});
    // If the database is unreachable, all workers have stopped and have reported the reason.
    if (failure !== undefined && !stop.aborted) onEventsFailed?.(failure.error);
  }
}

/** Runs `work` with a sender. Without a key nothing is sent, and `status` reports the missing key. */
async function withSender(
  context: SendContext,
  work: (sender: Sender) => Promise<void>,
  stop: AbortSignal = new AbortController().signal,
) {
  const keys = keysByCheck(context.environment);
  if (keys.size === 0) return;
  const claims = await Claims.open(context.database.connection);
  try {
    await work(new Sender(context, claims, keys, stop));
  } finally {
    await claims.end();
  }
}

class Sender {
  private readonly context: SendContext;
  private readonly claims: Claims;
  private readonly keys: ReadonlyMap<string, string>;
  private readonly stop: AbortSignal;

  constructor(context: SendContext, claims: Claims, keys: ReadonlyMap<string, string>, stop: AbortSignal) {
    this.context = context;
    this.claims = claims;
    this.keys = keys;
    this.stop = stop;
  }

  /** Sends the events that are due. If `stays` is set, sending continues until the signal to stop. */
  send(stays: boolean) {
    const { environment } = this.context;
    const due = dueWebhooks(() => ({ now: environment.now().toISO(), keyChecks: [...this.keys.keys()] }));
    const work = (partnerId: string) => this.turn(partnerId);
    return workOn(this.claims, due, { atOnce: AT_ONCE, work, stop: this.stop, stays });
  }

  /**
   * Sends a partner's events until none are left, one fails, or other partners get their turn. Returns false after an
   * error.
   */
  private async turn(partnerId: string) {
    const { database, environment, onEventsFailed } = this.context;
    const poster = openPoster(isProduction(this.context));
    let events = 0;
    const taken = () => {
      events += 1;
    };
    try {
      await database.transaction((tx) => beginTurn(tx, { partnerId, now: environment.now().toISO() }));
      failpoint('webhook.claimed');
      const until = Date.now() + TURN_MILLISECONDS;
      while ((await this.sendPage(partnerId, poster, until, taken)) && Date.now() < until && !this.stop.aborted);
      return true;
    } catch (error) {
      await this.claims.check();
      if (onEventsFailed === undefined) throw error;
      onEventsFailed(error);
      return false;
    } finally {
      if (events > 0) this.context.onWebhookSent?.(partnerId, events);
      poster.close();
    }
  }

  /** Returns true if more events may be waiting. */
  private async sendPage(partnerId: string, poster: Poster, until: number, taken: () => void) {
    const { database, environment } = this.context;
    const { webhook, installationId, events } = await database.reading(async (tx) => {
      const [row] = await readWebhooks(tx, partnerId);
      const after = row?.acknowledged ?? 0;
      return {
        webhook: row,
        installationId: (await readInstallation(tx)).installation_id,
        events: await readPartnerEvents(tx, { partnerId, after, limit: PAGE }),
      };
    });
    if (webhook === undefined || webhook.url === null || !this.keys.has(webhook.key_check)) return false;
    for (const event of events) {
      if (Date.now() >= until || this.stop.aborted) return false;
      const secrets = secretsOf(this.keys, installationId, webhook, environment.now().toMillis());
      if (!(await this.sendEvent({ ...webhook, url: webhook.url }, poster, event, secrets))) return false;
      taken();
    }
    return events.length === PAGE;
  }

  /** Returns false if the event could not be delivered, or if the webhook was changed in the meantime. */
  private async sendEvent(
    webhook: WebhookRow & { readonly url: string },
    poster: Poster,
    event: PartnerEvent,
    secrets: readonly Buffer[],
  ) {
    const { database, environment } = this.context;
    const body = writeExactJson(event);
    const seconds = Math.floor(environment.now().toSeconds());
    const headers = {
      ...signedHeaders(secrets, { eventId: event.event_id, seconds, body }),
      'user-agent': `Reckoner/${packageVersion}`,
    };
    const answer = await poster.post(webhook.url, headers, body).catch((error: unknown) => reasonOf(error));
    failpoint('webhook.sent');
    const sent = { partnerId: webhook.partner_id, url: webhook.url, position: event.position };
    if (typeof answer !== 'string' && answer.status >= 200 && answer.status < 300) {
      const acknowledged = await database.transaction((tx) => acknowledge(tx, sent));
      failpoint('webhook.acknowledged');
      return acknowledged === 1;
    }
    await this.fail(webhook, sent, answer);
    return false;
  }

  private async fail(webhook: WebhookRow, sent: Parameters<typeof acknowledge>[1], answer: Answer | string) {
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
      if (recorded === 0 || !pause) return;
      const details = { reason, position: sent.position, failing_since: since };
      await recordEvent(tx, actor, { action: 'webhook.pause', subject: sent.partnerId, details, now: now.toISO() });
    });
    onWebhookFailed?.(sent.partnerId, reason);
  }
}

/** The secrets to sign with. The previous secret of an overlap may be of either key. */
function secretsOf(keys: ReadonlyMap<string, string>, installationId: string, webhook: WebhookRow, now: number) {
  const { partner_id: partnerId, secret_version: version, previous_until: until } = webhook;
  const overlaps = until !== null && now < Date.parse(until);
  const secret = (key: string, each: number) => secretOf(key, { installationId, partnerId, version: each });
  return [
    secret(keys.get(webhook.key_check) as string, version),
    ...(overlaps ? [...keys.values()].map((key) => secret(key, version - 1)) : []),
  ];
}
