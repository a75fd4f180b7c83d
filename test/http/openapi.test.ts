/** The description of the API is a valid OpenAPI 3.1 document, and what the API answers is what it describes. */
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { OPERATIONS } from '../../src/http/operations.ts';
import { type Answer, ask, type Caller, PRICED, type Served, serveWorld } from '../support/service.ts';
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
    expect(Object.keys(described.paths[path] ?? {})).toEqual(methods.map((method) => method.toLowerCase()));
  }
});

const ajv = new Ajv2020({ strict: false, validateFormats: false });

function expectDescribed(path: string, method: string, answer: Answer): void {
  const content = described.paths[path]?.[method]?.responses[String(answer.status)]?.content['application/json'];
  const check = ajv.compile(content?.schema ?? { not: {} });
  expect(check(answer.body) || ajv.errorsText(check.errors)).toBe(true);
}

test('every answer of a full run matches its schema, and so does every example', async () => {
  const quote = await caller.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '250' });
  expectDescribed('/api/v1/quote', 'post', quote);
  const quoteId = quote.body['quote_id'] as string;
  expectDescribed('/api/v1/quote/{quote_id}', 'get', await caller.get(`/api/v1/quote/${quoteId}`));
  expectDescribed('/api/v1/quote/{quote_id}/accept', 'get', await caller.get(`/api/v1/quote/${quoteId}/accept`));
  expectDescribed('/api/v1/quote/{quote_id}/accept', 'post', await caller.post(`/api/v1/quote/${quoteId}/accept`));
  const requote = await caller.post(`/api/v1/quote/${quoteId}/requote`, { insured_amount: 300 });
  expectDescribed('/api/v1/quote/{quote_id}/requote', 'post', requote);
  const accepted = await caller.get(`/api/v1/requote/${requote.body['requote_id']}/accept`);
  expectDescribed('/api/v1/requote/{requote_id}/accept', 'get', accepted);
  world.at('2026-09-02T00:00:00Z');
  await world.close();
  await world.deliver();
  const later = await served.caller('p-1');
  const invoices = await later.get('/api/v1/invoices');
  expect(invoices.body).toHaveLength(1);
  expectDescribed('/api/v1/invoices', 'get', invoices);
  for (const { path, methods, status } of OPERATIONS) {
    const content =
      described.paths[path]?.[methods[0]?.toLowerCase() ?? '']?.responses[String(status)]?.content['application/json'];
    expect(ajv.validate(content?.schema ?? {}, content?.example)).toBe(true);
  }
});

test('the reference names every call and every code, and is self-contained', async () => {
  const { text } = await ask(`${served.url}/reference`);
  for (const { path, refusals } of OPERATIONS) {
    expect(text).toContain(path);
    for (const code of refusals) expect(text).toContain(`id="${code}"`);
  }
  expect(text).not.toMatch(/<script|src=|@import|url\(/);
});
