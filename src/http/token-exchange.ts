/** The token exchange, `POST /api/oauth/token`, with its public keys and discovery documents (RFC 8414). */
import { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { httpStatusOf } from '#errors/refusals';
import { refuseDeep, repeatedName } from '#json';
import { authenticate } from '#partners/clients';
import { TOKEN_SECONDS } from './keys.ts';
import { countOther, rateHeaders } from './limits.ts';
import { answerTo } from './problem.ts';
import { Shared } from './shared.ts';

/** The error codes of RFC 6749, 5.2. */
type OAuthError = 'invalid_request' | 'invalid_client' | 'unsupported_grant_type' | 'temporarily_unavailable';

class ExchangeError extends Error {
  readonly code: OAuthError;
  /** Whether the client used HTTP Basic. The response then has WWW-Authenticate. */
  readonly basic: boolean;
  constructor(code: OAuthError, description: string, basic = false) {
    super(description);
    this.code = code;
    this.basic = basic;
  }
}

/** Anyone may send a body. Ids and secrets are short. */
const LARGEST_EXCHANGE = 8 * 1024;

type Exchange = Readonly<{
  clientId: string;
  secret: string;
  basic: boolean;
}>;

export function addTokenExchange(
  app: FastifyInstance,
  { database, environment, tokens, limits, metrics, security }: Shared,
) {
  const onRequest = async (request: FastifyRequest, reply: FastifyReply) =>
    void reply.headers(rateHeaders(limits.request('exchange', request.ip)));
  const config = { bound: 'exchanges' } as const;
  app.post(
    '/api/oauth/token',
    { errorHandler: answerError, onRequest, bodyLimit: LARGEST_EXCHANGE, config },
    async (request, reply) => {
      const given = readExchange(request);
      const now = environment.now();
      const caller = await database.reading((tx) => authenticate(tx, { ...given, now }));
      if (caller === undefined) {
        metrics.exchanges.inc({ result: 'refused' });
        request.log.warn({ client: given.clientId.slice(0, 128), remote: request.ip }, 'token refused: wrong secret');
        security.record('exchange_refused', request.ip, given.clientId);
        await limits.failedExchange(given.clientId, request.ip);
        throw new ExchangeError('invalid_client', 'The client is unknown, or its secret is wrong.', given.basic);
      }
      metrics.exchanges.inc({ result: 'issued' });
      request.caller = caller;
      const answer = { access_token: await tokens.issue(caller), expires_in: TOKEN_SECONDS, token_type: 'Bearer' };
      return reply.header('Pragma', 'no-cache').send(answer);
    },
  );
}

export function addDiscovery(app: FastifyInstance, { tokens, keys, limits }: Shared) {
  const { issuer } = tokens;
  const metadata = {
    issuer,
    token_endpoint: `${issuer}/api/oauth/token`,
    jwks_uri: `${issuer}/.well-known/jwks.json`,
    grant_types_supported: ['client_credentials'],
    response_types_supported: [],
    token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
    service_documentation: `${issuer}/reference`,
  };
  const forAnHour = 'public, max-age=3600';
  const options = { onRequest: countOther(limits), config: { bound: 'fixed' } } as const;
  app.get('/.well-known/oauth-authorization-server', options, async (_request, reply) =>
    reply.header('Cache-Control', forAnHour).send(metadata),
  );
  app.get('/.well-known/openid-configuration', options, async (_request, reply) =>
    reply.header('Cache-Control', forAnHour).send({
      ...metadata,
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['ES256'],
    }),
  );
  // Caches keep the keys for less time than a new key is published before it signs.
  app.get('/.well-known/jwks.json', options, async (_request, reply) =>
    reply
      .header('Cache-Control', 'public, max-age=300')
      .type('application/jwk-set+json')
      .send(Buffer.from(JSON.stringify({ keys: await keys.published() }))),
  );
}

const parameters = z.record(z.string(), z.unknown());

/** Reads the credentials from a JSON body (service.md 4.1), a form or HTTP Basic. */
function readExchange(request: FastifyRequest): Exchange {
  const body = readParameters(request);
  const grant = body['grant_type'] ?? 'client_credentials';
  if (grant !== 'client_credentials') {
    throw new ExchangeError('unsupported_grant_type', 'The only supported grant type is client_credentials.');
  }
  const basic = readBasic(request.headers.authorization);
  const { client_id: clientId, client_secret: secret } = body;
  if (basic !== undefined) {
    if (secret !== undefined || (clientId !== undefined && clientId !== basic.clientId)) {
      throw new ExchangeError('invalid_request', 'Send the credentials once: in the header or in the body.');
    }
    return basic;
  }
  if (typeof clientId !== 'string' || clientId === '' || typeof secret !== 'string' || secret === '') {
    throw new ExchangeError('invalid_request', 'client_id and client_secret are required, each a string.');
  }
  return { clientId, secret, basic: false };
}

function readParameters(request: FastifyRequest) {
  const bytes = request.body instanceof Buffer ? request.body : Buffer.alloc(0);
  const text = new TextDecoder().decode(bytes);
  if (text.trim() === '') return {};
  if (request.headers['content-type']?.startsWith('application/x-www-form-urlencoded')) {
    const form = new URLSearchParams(text);
    if (new Set(form.keys()).size !== form.size) throw twice();
    return Object.fromEntries(form);
  }
  const parsed = parameters.safeParse(readJson(text));
  if (!parsed.success) throw new ExchangeError('invalid_request', 'The body is not a JSON object.');
  if (repeatedName(text) !== undefined) throw twice();
  return parsed.data;
}

function readJson(text: string): unknown {
  try {
    refuseDeep(text);
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const twice = () => new ExchangeError('invalid_request', 'A parameter occurs twice.');

/** Both percent-encoded (RFC 6749, 2.3.1). */
function readBasic(header: string | undefined): Exchange | undefined {
  if (header === undefined) return undefined;
  const encoded = /^Basic +([A-Za-z0-9+/]+=*) *$/i.exec(header)?.[1];
  const [id, ...rest] = encoded === undefined ? [] : Buffer.from(encoded, 'base64').toString('utf8').split(':');
  try {
    const plain = (part: string) => decodeURIComponent(part.replace(/\+/g, ' '));
    if (id && rest.length > 0) return { clientId: plain(id), secret: plain(rest.join(':')), basic: true };
  } catch {
    // The code below refuses malformed credentials.
  }
  throw new ExchangeError('invalid_client', 'The Authorization header is not HTTP Basic.', true);
}

function answerError(thrown: unknown, request: FastifyRequest, reply: FastifyReply) {
  const { status, code, description } = describe(thrown, request, reply);
  request.refusal = code;
  return reply.code(status).header('Pragma', 'no-cache').send({ error: code, error_description: description });
}

function describe(
  thrown: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): { status: number; code: OAuthError; description: string } {
  if (thrown instanceof ExchangeError) {
    const status = thrown.code === 'invalid_client' ? 401 : 400;
    if (status === 401) reply.header('WWW-Authenticate', 'Basic realm="token"');
    return { status, code: thrown.code, description: thrown.message };
  }
  const refusal = answerTo(thrown, request, reply);
  const own = httpStatusOf(refusal.code);
  // RFC 6749 does not define status 415.
  const status = own === 415 ? 400 : own;
  const code = status >= 500 || status === 429 ? 'temporarily_unavailable' : 'invalid_request';
  return { status, code, description: refusal.message };
}
