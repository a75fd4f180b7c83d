/** The OpenAPI 3.1 description, generated from the operations and their schemas. */
import { z } from 'zod';
import { Settings } from '#config/settings';
import { httpStatusOf, RefusalCode } from '#errors/refusals';
import { writeExactJson } from '#json';
import { packageVersion } from '#package';
import { AnswerKind, Operation } from './operation.ts';
import { OPERATIONS } from './operations.ts';
import { decimal, pageLimit, problem, SCHEMAS, tokenAnswer, tokenError, tokenRequest, wholeNumber } from './schemas.ts';

type Json = Record<string, unknown>;

const EVERYWHERE: readonly RefusalCode[] = [
  ...(['token_missing', 'token_invalid', 'partner_header_mismatch', 'address_not_allowed', 'request_invalid'] as const),
  ...(['rate_limited', 'busy', 'unavailable', 'internal'] as const),
];

const WRITTEN = new Map<unknown, Json>([
  [
    decimal,
    {
      type: ['number', 'string'],
      pattern: '^-?\\d+(\\.\\d+)?$',
      description: "A plain decimal with at most your currency's decimals, as a number or a string",
    },
  ],
  [wholeNumber, { type: ['integer', 'string'], pattern: '^\\d{1,15}$' }],
  [pageLimit, { type: 'integer', minimum: 1, maximum: 1000, default: 100, description: 'At most this many' }],
]);

/** JSON Schema 2020-12. Responses may have additional fields, and requests may not. */
const options = (io: 'input' | 'output') =>
  ({
    io,
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      const written = WRITTEN.get(zodSchema);
      if (written !== undefined) {
        for (const key of Object.keys(jsonSchema)) delete jsonSchema[key as keyof typeof jsonSchema];
        Object.assign(jsonSchema, written);
      }
      if (io === 'output' && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
    },
  }) satisfies Parameters<typeof z.toJSONSchema>[1];

function requestSchema(schema: z.ZodType): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, options('input'));
  return rest;
}

function answerSchema(schema: z.ZodType): Json {
  const id = SCHEMAS.get(schema)?.id;
  if (id !== undefined) return { $ref: `#/components/schemas/${id}` };
  if (schema instanceof z.ZodArray) return { type: 'array', items: answerSchema(schema.element as z.ZodType) };
  throw new Error('a response has no name in the description');
}

function namedSchemas(): Json {
  const { schemas } = z.toJSONSchema(SCHEMAS, { ...options('output'), uri: (id) => `#/components/schemas/${id}` });
  return Object.fromEntries(Object.entries(schemas).map(([id, { $schema: _, $id: __, ...schema }]) => [id, schema]));
}

const header = (description: string, schema: Json = { type: 'string' }): Json => ({ description, schema });
const whole = { type: 'integer' };
const HEADERS = {
  'X-Request-Id': header('The id of the request. Give it to support.'),
  'RateLimit-Limit': header('Requests allowed per minute', whole),
  'RateLimit-Remaining': header('Requests left', whole),
  'RateLimit-Reset': header('Seconds until the full limit is available again', whole),
  'Retry-After': header('Seconds to wait before the next try', whole),
  'WWW-Authenticate': header('How to authenticate (RFC 6750)'),
  'Idempotent-Replayed': header('true if this response was returned before for the same Idempotency-Key'),
  Location: header('The address of the late request'),
  Link: header('The URL of the next page, rel="next"; absent on the last one (RFC 8288)'),
};
type HeaderName = keyof typeof HEADERS;
const headers = (...names: HeaderName[]): Json => ({
  headers: Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }])),
});
const RATE = ['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'] as const;

export function describeApi(settings: Settings, issuer: string): Json {
  const partnerHeader = settings.partner_id_header;
  const paths: Record<string, Json> = {};
  for (const operation of OPERATIONS) {
    for (const method of operation.methods) {
      const described = describeOperation(operation, method, partnerHeader);
      paths[operation.path] = { ...paths[operation.path], [method.toLowerCase()]: described };
    }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Partner Insurance Enrollment Service',
      version: packageVersion,
      description:
        'Quotes, requotes, their acceptance, and a partner’s invoices. Amounts are decimals in major units. Send an amount ' +
        'as a number or a string; it is read exactly.',
    },
    servers: [{ url: issuer }],
    security: [{ clientCredentials: [] }],
    paths: { '/api/oauth/token': { post: describeExchange() }, ...paths },
    components: {
      securitySchemes: {
        clientCredentials: {
          type: 'oauth2',
          flows: { clientCredentials: { tokenUrl: `${issuer}/api/oauth/token`, scopes: {} } },
        },
      },
      headers: HEADERS,
      schemas: namedSchemas(),
    },
  };
}

function describeOperation(operation: Operation, method: 'GET' | 'POST', partnerHeaderName: string): Json {
  const { id, summary, description, params, body, status, answer, example, partnerHeader } = operation;
  const first = operation.methods[0] === method;
  const names = Object.keys((params as z.ZodObject).shape);
  return {
    operationId: first ? id : `${id}By${method === 'POST' ? 'Post' : 'Get'}`,
    summary,
    description:
      description + (operation.origin === 'documented' && first ? '' : '\n\nThis call is specific to this system.'),
    parameters: [
      ...names.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
      {
        name: partnerHeaderName,
        in: 'header',
        required: partnerHeader === 'required',
        description: 'Your partner id; it must be that of the token',
        schema: { type: 'string' },
      },
      ...queryParameters(operation),
      ...(method === 'POST'
        ? [
            {
              name: 'Idempotency-Key',
              in: 'header',
              required: false,
              description:
                'Repeating the request with its key always returns the first response; a different request is ' +
                'refused (409). Only 2xx responses are kept: a refused request recorded nothing, and its key is ' +
                'unused',
              schema: { type: 'string', minLength: 1, maxLength: 255 },
            },
          ]
        : []),
    ],
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: { [operation.file?.type ?? 'application/json']: { schema: requestSchema(body) } },
          },
        }),
    responses: {
      [String(status)]: {
        description: summary,
        ...headers(...successHeaders(answer, method)),
        content: answerContent(answer, example),
      },
      ...(operation.otherwise !== undefined && {
        [String(operation.otherwise.status)]: {
          description: operation.otherwise.description,
          ...headers(
            ...successHeaders(answer, method),
            ...(operation.otherwise.answers ? (['Location'] as const) : []),
          ),
          content:
            operation.otherwise.answers === undefined
              ? answerContent(answer, example)
              : { 'application/json': { schema: { anyOf: operation.otherwise.answers.map(answerSchema) } } },
        },
      }),
      ...problems(operation, method),
    },
  };
}

function successHeaders(answer: AnswerKind, method: 'GET' | 'POST'): HeaderName[] {
  const list = answer instanceof z.ZodArray ? (['Link'] as const) : [];
  return ['X-Request-Id', ...RATE, ...list, ...(method === 'POST' ? (['Idempotent-Replayed'] as const) : [])];
}

function answerContent(answer: AnswerKind, example: unknown): Json {
  // OpenAPI 3.1 describes files only by media type ("Considerations for File Uploads").
  if (typeof answer === 'string') return { [answer]: answer === 'text/csv' ? { schema: { type: 'string' } } : {} };
  return {
    'application/json': { schema: answerSchema(answer), example: JSON.parse(writeExactJson(example)) as unknown },
  };
}

function queryParameters({ query }: Operation): Json[] {
  const { properties = {}, required = [] } = requestSchema(query) as {
    properties?: Record<string, Json>;
    required?: readonly string[];
  };
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    ...{ name, in: 'query', required: required.includes(name), schema },
    ...(description === undefined ? {} : { description }),
  }));
}

function problems(operation: Operation, method: string): Json {
  const codes: RefusalCode[] = [
    ...operation.refusals,
    ...(operation.partnerHeader === 'required' ? (['partner_header_missing'] as const) : []),
    ...(method === 'POST' ? (['media_type_unsupported', 'body_too_large'] as const) : []),
    ...(method === 'POST' ? (['idempotency_key_reused'] as const) : []),
    ...EVERYWHERE,
  ];
  const byStatus = new Map<string, RefusalCode[]>();
  for (const code of new Set(codes)) {
    const status = String(httpStatusOf(code));
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return Object.fromEntries(
    [...byStatus].sort().map(([status, of]) => [
      status,
      {
        description: of.join(', '),
        ...headers(...refusalHeaders(status)),
        content: { 'application/problem+json': { schema: problemSchema(of) } },
      },
    ]),
  );
}

/** So that a generated client knows the codes. */
const problemSchema = (codes: readonly RefusalCode[]): Json => ({
  allOf: [answerSchema(problem), { type: 'object', required: ['code'], properties: { code: { enum: codes } } }],
});

function refusalHeaders(status: string): HeaderName[] {
  const own = ({ '401': ['WWW-Authenticate'], '429': ['Retry-After'], '503': ['Retry-After'] } as const)[status] ?? [];
  return ['X-Request-Id', ...RATE, ...own];
}

function describeExchange(): Json {
  const error = (description: string, status: string) => ({
    description,
    ...headers(...refusalHeaders(status)),
    content: { 'application/json': { schema: answerSchema(tokenError) } },
  });
  const request = requestSchema(tokenRequest);
  return {
    operationId: 'exchangeToken',
    summary: 'Exchange credentials for an access token',
    description:
      'OAuth 2.0 client credentials, as a JSON body, a form, or HTTP Basic. Reuse the token until it expires, then ' +
      'request another.',
    security: [],
    requestBody: {
      required: true,
      content: { 'application/json': { schema: request }, 'application/x-www-form-urlencoded': { schema: request } },
    },
    responses: {
      '200': {
        description: 'The token',
        ...headers('X-Request-Id', ...RATE),
        content: {
          'application/json': {
            schema: answerSchema(tokenAnswer),
            example: { access_token: 'eyJ…', expires_in: 3600, token_type: 'Bearer' },
          },
        },
      },
      '400': error('invalid_request, unsupported_grant_type', '400'),
      '401': error('invalid_client', '401'),
      '403': error('invalid_request: your address is not allowed', '403'),
      '413': error('invalid_request: the body is too large', '413'),
      '429': error('temporarily_unavailable: too many failures or requests', '429'),
      '500': error('temporarily_unavailable', '500'),
      '503': error('temporarily_unavailable', '503'),
    },
  };
}
