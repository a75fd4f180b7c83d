/**
 * Webhooks of the payment processors. A handler checks the signature over the raw body and stores the event. Stored
 * events are processed later, regardless of their order and of repeated deliveries.
 *
 * An unsigned request costs the server little. The header is checked before the body is read. Few large bodies are read
 * at once, and none from a network that sends invalid signatures. A small event with a valid signature is never
 * refused, because all customers of a processor receive events from the same addresses.
 *
 * Refusals: webhook_not_configured, webhook_signature_invalid, request_invalid, processor_events_invalid, rate_limited,
 * busy.
 */
import { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { refuse } from '#errors/refusals';
import { PaymentProcessor } from '#processors/processor';
import { PROCESSORS } from '#processors/processors';
import { busy } from './gates.ts';
import { networkOf } from './limits.ts';
import { StoreEvents } from './service.ts';
import { hasProxyHeader, Shared } from './shared.ts';

const LARGEST_EVENT = 1024 * 1024;

interface WebhookRoute {
  Querystring: { account?: string };
}

export function addWebhooks(app: FastifyInstance, shared: Shared) {
  const { database, environment, storeEvents, onEventsStored } = shared;
  const bodies = new LargeBodies();
  for (const { name, webhooks } of PROCESSORS) {
    const signatureOf = ({ headers }: FastifyRequest) => {
      const given = headers[webhooks.header];
      return typeof given === 'string' ? given : undefined;
    };
    const onRequest = async (request: FastifyRequest<WebhookRoute>, reply: FastifyReply) => {
      secretsOf(webhooks, shared, accountOf(request.query.account));
      if (isLarge(request)) limitNetwork(request, shared);
      const reason = webhooks.headerProblem(signatureOf(request), environment.now().toJSDate());
      if (reason !== undefined) throw badSignature(request, shared, reason);
      bodies.enter(request, reply);
    };
    app.post<WebhookRoute>(
      `/webhooks/${name}`,
      { bodyLimit: LARGEST_EVENT, onRequest, config: { bound: 'webhooks' } },
      async (request) => {
        const account = accountOf(request.query.account);
        const secrets = secretsOf(webhooks, shared, account);
        const body = request.body instanceof Buffer ? request.body : Buffer.alloc(0);
        if (!webhooks.isSigned(body, signatureOf(request), secrets)) {
          throw badSignature(request, shared, 'no signature is valid');
        }
        const file = { name: 'webhook', text: oneLine(body), account, signedBy: account ?? '' };
        const { accounts } = await database.transaction((tx) =>
          (storeEvents as StoreEvents)(tx, { environment }, file),
        );
        onEventsStored?.(accounts);
        return { received: true };
      },
    );
  }
}

function secretsOf(
  webhooks: PaymentProcessor['webhooks'],
  { environment, storeEvents }: Shared,
  account: string | undefined,
) {
  const secrets = webhooks.secrets(environment, account);
  if (secrets.length > 0 && storeEvents !== undefined) return secrets;
  throw refuse('webhook_not_configured', { variable: webhooks.secretVariable(account) });
}

/**
 * Does not limit networks behind a proxy that the settings do not name: the processor would share its address with all
 * other callers.
 */
function limitNetwork(request: FastifyRequest, { limits, settings }: Shared) {
  if (settings.http.trust_proxy.length > 0 || !hasProxyHeader(request.raw)) limits.webhook(request.ip);
}

function badSignature(request: FastifyRequest, shared: Shared, reason: string) {
  limitNetwork(request, shared);
  const { limits, metrics, security } = shared;
  security.record('webhook_refused', request.ip);
  limits.badSignature(request.ip);
  metrics.badSignatures.inc();
  request.log.warn({ remote: request.ip, reason }, 'webhook refused: bad signature');
  return refuse('webhook_signature_invalid', { reason });
}

/** Nearly all events are smaller than this. */
const LARGE = 64 * 1024;
/** For a megabyte, a signature takes 1 ms. */
const MOST_LARGE = 4;
const MOST_LARGE_OF_ONE = 2;
/** Events can have any size. */
const ARRIVES_WITHIN_MS = 10_000;

const isLarge = ({ headers }: FastifyRequest) => Number(headers['content-length'] ?? LARGE) >= LARGE;

/** Anyone may send a large body, because the signature is checked after it is read. */
class LargeBodies {
  readonly #from: string[] = [];

  enter(request: FastifyRequest, reply: FastifyReply) {
    if (!isLarge(request)) return;
    const { raw, ip } = request;
    const network = networkOf(ip);
    const ofOne = this.#from.filter((each) => each === network).length;
    if (this.#from.length >= MOST_LARGE || ofOne >= MOST_LARGE_OF_ONE) throw busy();
    this.#from.push(network);
    const late = setTimeout(() => raw.destroy(), ARRIVES_WITHIN_MS);
    raw.once('end', () => clearTimeout(late));
    reply.raw.once('close', () => {
      clearTimeout(late);
      this.#from.splice(this.#from.indexOf(network), 1);
    });
  }
}

/**
 * The account in a webhook address such as `?account=acct_…`, because an event that a connected account sends for
 * itself does not name it. Each account has its own secret, so the signature proves it.
 */
function accountOf(given: unknown) {
  if (given === undefined) return undefined;
  if (typeof given === 'string' && /^[\x21-\x7e]{1,255}$/.test(given)) return given;
  throw refuse('request_invalid', { problems: [{ path: 'account', reason: 'must be one account, acct_…' }] });
}

/** On one line, as the import expects. Line breaks occur only between JSON tokens. */
function oneLine(body: Buffer) {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body).replace(/[\r\n]+/g, ' ');
  } catch (error) {
    throw refuse('request_invalid', { problems: [{ path: '', reason: 'is not UTF-8' }] }, error);
  }
}
