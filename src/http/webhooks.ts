/**
 * The processor's webhooks: the signature is checked over the bytes that came, then the event is stored and nothing else
 * is done: what it means is worked out from there, however often and in whatever order it came.
 * Refusals: webhook_not_configured, webhook_signature_invalid, request_invalid.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import type { Environment } from '../config/environment.ts';
import type { Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import type { Shared } from './shared.ts';

/** Stores an event once, by account and id, and refuses one that is none or of another environment. */
export type StoreEvents = (
  tx: Transaction,
  acting: { environment: Environment },
  file: { name: string; text: string; account?: string | undefined },
) => Promise<{ readonly accounts: readonly string[] }>;

const LARGEST_EVENT = 1024 * 1024;
/** How old, or how far ahead, a signature may be. */
const TOLERANCE_SECONDS = 300;

export function addWebhooks(
  app: FastifyInstance,
  { database, environment, storeEvents, onEventsStored }: Shared,
): void {
  app.post<{ Querystring: { account?: string } }>('/webhooks/stripe', { bodyLimit: LARGEST_EVENT }, async (request) => {
    const secrets = environment.webhookSecrets;
    if (secrets.length === 0 || storeEvents === undefined) throw refuse('webhook_not_configured', {});
    const body = request.body instanceof Buffer ? request.body : Buffer.alloc(0);
    const now = environment.now();
    checkSignature(body, request.headers['stripe-signature'], secrets, now.toSeconds());
    const file = { name: 'webhook', text: oneLine(body), account: accountOf(request.query.account) };
    const { accounts } = await database.transaction((tx) => storeEvents(tx, { environment }, file));
    onEventsStored?.(accounts);
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

/**
 * `?account=acct_…` stands behind the address that a connected account of ours tells its own events to, which don't name
 * it. Signed for us, they are believed.
 */
function accountOf(given: unknown): string | undefined {
  if (given === undefined) return undefined;
  if (typeof given === 'string' && /^[\x21-\x7e]{1,255}$/.test(given)) return given;
  throw refuse('request_invalid', { problems: [{ path: 'account', reason: 'must be one account, acct_…' }] });
}

/** The event as one line, as the inbox takes it: line breaks stand only between the tokens of JSON. */
function oneLine(body: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body).replace(/[\r\n]+/g, ' ');
  } catch (error) {
    throw refuse('request_invalid', { problems: [{ path: '', reason: 'is not UTF-8' }] }, error);
  }
}
