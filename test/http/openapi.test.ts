/** The description of the API is a valid OpenAPI 3.1 document, and what the API answers is what it describes. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { OPERATIONS } from '../../src/http/operations.ts';
import { ask, type Caller, PRICED, type Served, serveWorld } from '../support/service.ts';
import { openWorld, partner, type World } from '../support/world.ts';

interface Described {
  readonly paths: Record<
    string,
    Record<
      string,
      {
        operationId: string;
        requestBody?: unknown;
        responses: Record<string, { content: Record<string, { schema: object; example?: unknown }> }>;
      }
    >
  >;
}

let world: World;
let served: Served;
let caller: Caller;
let described: Described;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner(PRICED)]);
  served = await serveWorld(world);
  caller = await served.caller('p-1');
  described = (await ask(`${served.url}/openapi.json`)).body as unknown as Described;
});
afterAll(async () => {
  await served.end();
  await world.end();
});

test('it is valid OpenAPI 3.1 with every operation once', async () => {
  const validator = new Validator();
  expect(await validator.validate(structuredClone(described) as unknown as Record<string, unknown>)).toMatchObject({
    valid: true,
  });
  const ids = Object.values(described.paths).flatMap((path) =>
    Object.values(path).map(({ operationId }) => operationId),
  );
  expect(new Set(ids).size).toBe(ids.length);
  for (const { path, methods } of OPERATIONS) {
    expect(Object.keys(described.paths[path] ?? {})).toEqual(
      expect.arrayContaining(methods.map((method) => method.toLowerCase())),
    );
  }
});

test('every example is an answer by its own schema, and every operation but the files has one', async () => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema(described, 'api');
  const inJson = OPERATIONS.filter(({ answer }) => typeof answer !== 'string');
  expect(inJson.length).toBeGreaterThan(10);
  for (const { path, methods, status } of inJson) {
    for (const method of methods) {
      const content =
        described.paths[path]?.[method.toLowerCase()]?.responses[String(status)]?.content['application/json'];
      const check = ajv.compile(withReferences(content?.schema ?? { not: {} }));
      expect({ path, errors: check(content?.example) ? null : check.errors }).toEqual({ path, errors: null });
    }
  }
});

/** Its references as seen from outside the description. */
const withReferences = (schema: object): object =>
  JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"api#/components')) as object;

test('an answer may gain fields, and a request may not', () => {
  const { schemas } = (described as unknown as { components: { schemas: Record<string, Record<string, unknown>> } })
    .components;
  expect(Object.keys(schemas).sort()).toEqual([
    ...['Acceptance', 'AcceptedQuote', 'AcceptedRequote', 'AppliedCredit', 'AppliedPayment', 'DisputedInvoice'],
    ...[
      'Document',
      'DocumentLine',
      'Event',
      'Feed',
      'FieldProblem',
      'IssuedDocument',
      'LateRequest',
      'Policy',
      'Problem',
      'ProcessorRequest',
    ],
    ...[
      'Quote',
      'RecordedReversal',
      'RefundedCredit',
      'RejectedReversal',
      'Requote',
      'RequoteAcceptance',
      'Reversal',
      'ReversalPreview',
      'SentDocument',
      'SettlementFile',
      'Split',
    ],
    ...['Token', 'TokenError', 'UnmatchedLine', 'VoidedDocument'],
  ]);
  for (const [name, schema] of Object.entries(schemas)) {
    expect({ name, closed: JSON.stringify(schema).includes('"additionalProperties":false') }).toEqual({
      name,
      closed: false,
    });
  }
  expect(described.paths['/api/v1/quote']?.['post']).toMatchObject({
    requestBody: { content: { 'application/json': { schema: { additionalProperties: false } } } },
  });
});

test('the codes of lines, e-mails and split problems are those of the program', async () => {
  const { schemas } = (
    described as unknown as {
      components: { schemas: Record<string, { properties: Record<string, Enumerated> }> };
    }
  ).components;
  interface Enumerated {
    readonly enum?: string[];
    readonly properties?: Record<string, Enumerated>;
    readonly anyOf?: Enumerated[];
  }
  const codes = (of: Enumerated | undefined, name: string) =>
    [of, ...(of?.anyOf ?? [])].find((each) => each?.properties !== undefined)?.properties?.[name]?.enum?.toSorted();
  const known = async (constraint: string) => {
    const [found] = await world.sql<{ text: string }>(
      'SELECT pg_get_constraintdef(oid) AS text FROM pg_constraint WHERE conname = $1',
      [constraint],
    );
    return [...(found?.text ?? '').matchAll(/'(\w+)'/g)].map(([, code]) => code).toSorted();
  };
  const withdrawn = (code: string | undefined) => code === 'withdrawn';
  expect(codes(schemas['DocumentLine'], 'kind')).toEqual(await known('line_kind_known'));
  expect(codes(schemas['Document']?.properties['email'], 'status')).toEqual(
    // A document is `portal`, which no e-mail is, if it was uploaded instead.
    [...(await known('email_status_known')).filter((code) => !withdrawn(code)), 'portal'].toSorted(),
  );
  const folder = fileURLToPath(new URL('../../src/processors/stripe/splits/', import.meta.url));
  const thrown = readdirSync(folder)
    .filter((name) => name.endsWith('.ts'))
    .flatMap((name) => [...readFileSync(folder + name, 'utf8').matchAll(/SplitImpossible\(\s*'(\w+)'/g)])
    .map(([, code]) => code);
  expect(codes(schemas['Split']?.properties['problem'], 'code')).toEqual([...new Set(thrown)].toSorted());
});

test('a whole run from quote to invoice answers as described', async () => {
  // Every call of these tests compares its answer with the description, see support/described.ts.
  const quote = await caller.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '250' });
  const quoteId = quote.body['quote_id'] as string;
  await caller.get(`/api/v1/quote/${quoteId}/accept`);
  await caller.post(`/api/v1/quote/${quoteId}/accept`);
  const requote = await caller.post(`/api/v1/quote/${quoteId}/requote`, { insured_amount: 300 });
  await caller.get(`/api/v1/requote/${requote.body['requote_id']}/accept`);
  world.at('2026-09-02T00:00:00Z');
  await world.close();
  await world.deliver();
  const later = await served.caller('p-1');
  const { body } = await later.get('/api/v1/invoices');
  expect(body).toHaveLength(1);
});

test('the reference names every call and every code, and is self-contained', async () => {
  const { text } = await ask(`${served.url}/reference`);
  for (const { path, refusals } of OPERATIONS) {
    expect(text).toContain(path);
    for (const code of refusals) expect(text).toContain(`id="${code}"`);
  }
  expect(text).not.toMatch(/<script|src=|@import|url\(/);
});
