/**
 * The processor's webhooks: the signature is checked over the bytes that came, then the event is stored and nothing else
 * is done: what it means is worked out from there, however often and in whatever order it came.
 * Refusals: webhook_not_configured, webhook_signature_invalid, request_invalid.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { DateTime } from 'luxon';
import { z } from 'zod';
import { fieldProblems } from '../config.ts';
import type { Transaction } from '../database/transaction.ts';
import { refuse } from '../errors.ts';
import type { Shared } from './server.ts';

export interface ProcessorEvent {
  /** Empty for our own account, else the connected account that it is of. */
  readonly account: string;
  readonly id: string;
  readonly type: string;
  readonly livemode: boolean;
  /** ISO instant. */
  readonly created: string;
  /** The whole event, as JSON text. */
  readonly payload: string;
  readonly receivedAt: string;
}

/** Stores an event once, by account and id; again does nothing. */
export type StoreEvent = (tx: Transaction, event: ProcessorEvent) => Promise<void>;

const LARGEST_EVENT = 1024 * 1024;
/** How old, or how far ahead, a signature may be. */
const TOLERANCE_SECONDS = 300;

const eventSchema = z.object({
  id: z.string().min(1).max(255),
  type: z.string().min(1).max(255),
  account: z.string().max(255).optional(),
  livemode: z.boolean(),
  created: z.int().min(0).max(32_503_680_000),
});

export function addWebhooks(app: FastifyInstance, { database, environment, storeEvent }: Shared): void {
  app.post('/webhooks/stripe', { bodyLimit: LARGEST_EVENT }, async (request) => {
    const secrets = environment.webhookSecrets;
    if (secrets.length === 0 || storeEvent === undefined) throw refuse('webhook_not_configured', {});
    const body = request.body instanceof Buffer ? request.body : Buffer.alloc(0);
    const now = environment.now();
    checkSignature(body, request.headers['stripe-signature'], secrets, now.toSeconds());
    const event = readEvent(body);
    if (event.livemode !== (environment.name === 'production')) {
      const reason = `it is ${event.livemode ? 'live' : 'a test'}, and this is ${environment.name}`;
      throw refuse('webhook_signature_invalid', { reason });
    }
    await database.transaction((tx) =>
      storeEvent(tx, {
        account: event.account ?? '',
        id: event.id,
        type: event.type,
        livemode: event.livemode,
        created: DateTime.fromSeconds(event.created, { zone: 'utc' }).toISO() ?? '',
        payload: body.toString('utf8'),
        receivedAt: now.toUTC().toISO(),
      }),
    );
    return { received: true };
  });
}

/**
 * `Stripe-Signature: t=…,v1=…[,v1=…]`: HMAC-SHA256 over `t.body`. One of the signatures must be made with one of our
 * secrets, and its time must lie near ours, before or after.
 */
export function checkSignature(
  body: Buffer,
  header: string | string[] | undefined,
  secrets: readonly string[],
  nowSeconds: number,
): void {
  const invalid = (reason: string) => refuse('webhook_signature_invalid', { reason });
  if (typeof header !== 'string') throw invalid('the header Stripe-Signature is missing');
  const parts = header.split(',').map((part) => part.trim().split('='));
  const values = (name: string) => parts.filter(([key]) => key === name).map(([, value = '']) => value);
  const [time = ''] = values('t');
  if (!/^\d{1,12}$/.test(time)) throw invalid('its signature has no time');
  const given = values('v1')
    .filter((value) => /^[0-9a-f]{64}$/.test(value))
    .map((value) => Buffer.from(value, 'hex'));
  const wanted = secrets.map((secret) => createHmac('sha256', secret.trim()).update(`${time}.`).update(body).digest());
  if (!wanted.some((hash) => given.some((each) => timingSafeEqual(hash, each)))) {
    throw invalid('its signature is not made with our secret over this body');
  }
  if (Math.abs(nowSeconds - Number(time)) > TOLERANCE_SECONDS) {
    throw invalid(`its signature is more than ${TOLERANCE_SECONDS} seconds from our clock`);
  }
}

function readEvent(body: Buffer): z.output<typeof eventSchema> {
  const malformed = (reason: string) => refuse('request_invalid', { problems: [{ path: '', reason }] });
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    throw malformed('is not JSON in UTF-8');
  }
  const parsed = eventSchema.safeParse(value);
  if (!parsed.success) throw refuse('request_invalid', { problems: fieldProblems(parsed.error) });
  return parsed.data;
}
