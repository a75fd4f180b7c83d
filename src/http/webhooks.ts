/**
 * Webhooks of the payment processors. The signature is checked over the raw body, then the event is stored. Nothing else
 * happens here: stored events are processed later, however often and in whatever order they arrived.
 * Refusals: webhook_not_configured, webhook_signature_invalid, request_invalid, processor_events_invalid.
 */
import type { FastifyInstance } from 'fastify';
import type { Environment } from '../config/environment.ts';
import type { Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import { PROCESSORS } from '../processors/processors.ts';
import type { Shared } from './shared.ts';

/** Stores an event once, by account and id. Refuses a malformed event and one of another environment. */
export type StoreEvents = (
  tx: Transaction,
  acting: { environment: Environment },
  file: { name: string; text: string; account?: string | undefined; signedBy?: string },
) => Promise<{ readonly accounts: readonly string[] }>;

const LARGEST_EVENT = 1024 * 1024;

export function addWebhooks(
  app: FastifyInstance,
  { database, environment, storeEvents, onEventsStored }: Shared,
): void {
  for (const { name, webhooks } of PROCESSORS) {
    app.post<{ Querystring: { account?: string } }>(
      `/webhooks/${name}`,
      { bodyLimit: LARGEST_EVENT },
      async (request) => {
        const account = accountOf(request.query.account);
        const secrets = webhooks.secrets(environment, account);
        if (secrets.length === 0 || storeEvents === undefined) {
          throw refuse('webhook_not_configured', { variable: webhooks.secretVariable(account) });
        }
        const body = request.body instanceof Buffer ? request.body : Buffer.alloc(0);
        // The signature is checked over the text, so refuse bytes that are not UTF-8 first.
        const text = oneLine(body);
        const given = request.headers[webhooks.header];
        const signature = typeof given === 'string' ? given : undefined;
        const reason = await webhooks.problem(body, signature, secrets, environment.now().toJSDate());
        if (reason !== undefined) throw refuse('webhook_signature_invalid', { reason });
        const file = { name: 'webhook', text, account, signedBy: account ?? '' };
        const { accounts } = await database.transaction((tx) => storeEvents(tx, { environment }, file));
        onEventsStored?.(accounts);
        return { received: true };
      },
    );
  }
}

/**
 * Events that a connected account sends for itself do not name it, so its webhook address ends in `?account=acct_…`. The
 * signature vouches for it: the secret of one account signs for no other.
 */
function accountOf(given: unknown): string | undefined {
  if (given === undefined) return undefined;
  if (typeof given === 'string' && /^[\x21-\x7e]{1,255}$/.test(given)) return given;
  throw refuse('request_invalid', { problems: [{ path: 'account', reason: 'must be one account, acct_…' }] });
}

/** The event on one line, as the import expects it. Line breaks occur only between JSON tokens. */
function oneLine(body: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body).replace(/[\r\n]+/g, ' ');
  } catch (error) {
    throw refuse('request_invalid', { problems: [{ path: '', reason: 'is not UTF-8' }] }, error);
  }
}
