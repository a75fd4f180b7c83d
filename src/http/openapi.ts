/** The OpenAPI 3.1 description, made from the operations and the schemas that check their requests. */
import { z } from 'zod';
import type { Settings } from '../config/settings.ts';
import { httpStatusOf, type RefusalCode } from '../errors/refusals.ts';
import { writeExactJson } from '../json.ts';
import { packageVersion } from '../package.ts';
import { decimal, OPERATIONS, type Operation, tokenAnswer, tokenRequest } from './operations.ts';

type Json = Record<string, unknown>;

/** The refusals of any call with a token. */
const EVERYWHERE: readonly RefusalCode[] = [
  ...(['token_missing', 'token_invalid', 'partner_header_mismatch', 'rate_limited', 'unavailable'] as const),
  'internal',
];

const problem = z.object({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string().meta({ description: 'What happened and what to do next' }),
  instance: z.string(),
  code: z.string().meta({ description: 'The refusal code, for programs' }),
});

/** JSON Schema 2020-12, the dialect of OpenAPI 3.1. */
function schemaOf(schema: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      if ((zodSchema as unknown) === decimal) {
        for (const key of Object.keys(jsonSchema)) delete jsonSchema[key as keyof typeof jsonSchema];
        Object.assign(jsonSchema, {
          type: ['number', 'string'],
          pattern: '^\\d+(\\.\\d+)?$',
          description: 'A plain decimal with at most the digits of your currency, as a number or a string',
        });
      }
    },
  });
  return rest;
}

export function describeApi(settings: Settings, issuer: string): Json {
  const header = settings.partner_id_header;
  const paths = Object.fromEntries(
    OPERATIONS.map((operation) => [
      operation.path,
      Object.fromEntries(
        operation.methods.map((method) => [method.toLowerCase(), describeOperation(operation, method, header)]),
      ),
    ]),
  );
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
      schemas: { Problem: schemaOf(problem, 'output') },
    },
  };
}

function describeOperation(operation: Operation, method: 'GET' | 'POST', header: string): Json {
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
        name: header,
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
                'Repeating a request under its key returns the first answer; a different request is refused (409)',
              schema: { type: 'string', minLength: 1, maxLength: 255 },
            },
          ]
        : []),
    ],
    ...(body === undefined
      ? {}
      : { requestBody: { required: true, content: { 'application/json': { schema: schemaOf(body, 'input') } } } }),
    responses: {
      [String(status)]: {
        description: summary,
        content: {
          'application/json': {
            schema: schemaOf(answer, 'output'),
            example: JSON.parse(writeExactJson(example)) as unknown,
          },
        },
      },
      ...problems(operation, method),
    },
  };
}

/** The query parameters. */
function queryParameters({ query }: Operation): Json[] {
  const { properties = {}, required = [] } = schemaOf(query, 'input') as {
    properties?: Record<string, Json>;
    required?: readonly string[];
  };
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    ...{ name, in: 'query', required: required.includes(name), schema },
    ...(description === undefined ? {} : { description }),
  }));
}

/** The refusals of an operation by their status, each with its codes. */
function problems(operation: Operation, method: string): Json {
  const codes: RefusalCode[] = [
    ...operation.refusals,
    ...(operation.partnerHeader === 'required' ? (['partner_header_missing'] as const) : []),
    ...(operation.body === undefined ? [] : (['request_invalid', 'media_type_unsupported', 'body_too_large'] as const)),
    ...(method === 'POST' ? (['idempotency_key_reused'] as const) : []),
    ...EVERYWHERE,
  ];
  const byStatus = new Map<string, RefusalCode[]>();
  for (const code of codes) {
    const status = String(httpStatusOf(code));
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return Object.fromEntries(
    [...byStatus].sort().map(([status, of]) => [
      status,
      {
        description: of.join(', '),
        content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
      },
    ]),
  );
}

function describeExchange(): Json {
  const error = {
    'application/json': {
      schema: schemaOf(z.object({ error: z.string(), error_description: z.string() }), 'output'),
    },
  };
  const request = schemaOf(tokenRequest, 'input');
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
        content: {
          'application/json': {
            schema: schemaOf(tokenAnswer, 'output'),
            example: { access_token: 'eyJ…', expires_in: 3600, token_type: 'Bearer' },
          },
        },
      },
      '400': { description: 'invalid_request, unsupported_grant_type', content: error },
      '401': { description: 'invalid_client', content: error },
      '429': { description: 'Too many failures or requests', content: error },
    },
  };
}
