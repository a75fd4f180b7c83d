/** `/openapi.json`, and the same as a self-contained page: `/reference`. */
import type { FastifyInstance } from 'fastify';
import { CALL_REFUSAL_CODES, httpStatusOf } from '../errors/refusals.ts';
import { writeExactJson } from '../json.ts';
import { countOther } from './limits.ts';
import { describeApi } from './openapi.ts';
import { OPERATIONS } from './operations.ts';
import { page, sendPage } from './pages.ts';
import { issuerOf, type Shared } from './shared.ts';

const referencePage = page<Record<string, unknown>>('reference');

export function addReference(app: FastifyInstance, shared: Shared): void {
  const { settings, environment, limits } = shared;
  const options = { onRequest: countOther(limits), config: { bound: 'fixed' } } as const;
  const description = Buffer.from(JSON.stringify(describeApi(settings, issuerOf(shared)), null, 2));
  app.get('/openapi.json', options, async (_request, reply) =>
    reply.type('application/json; charset=utf-8').header('Cache-Control', 'public, max-age=300').send(description),
  );

  const html = referencePage({
    title: 'API reference',
    sandbox: environment.name === 'sandbox',
    base: issuerOf(shared),
    header: settings.partner_id_header,
    operations: OPERATIONS.map((operation) => ({
      id: operation.id,
      call: `${operation.methods.join(' or ')} ${operation.path}`,
      summary: operation.summary,
      description: operation.description,
      own: operation.origin === 'own',
      required: operation.partnerHeader === 'required',
      fields:
        operation.body === undefined ? '' : Object.keys((operation.body as { shape?: object }).shape ?? {}).join(', '),
      sends: operation.file?.type ?? '',
      status: operation.status,
      again: operation.again ?? '',
      query: Object.keys((operation.query as { shape?: object }).shape ?? {}).join(', '),
      file: typeof operation.answer === 'string' ? operation.answer : '',
      example: operation.example === undefined ? '' : pretty(operation.example),
      refusals: operation.refusals.map((code) => ({ code, status: httpStatusOf(code) })),
    })),
    codes: CALL_REFUSAL_CODES.map((code) => ({ code, status: httpStatusOf(code) })),
  });
  app.get('/reference', options, async (_request, reply) => sendPage(reply, html));
}

/** An answer as indented JSON, with numbers as written. */
function pretty(example: unknown): string {
  let depth = 0;
  const line = (change: number) => {
    depth += change;
    return `\n${'  '.repeat(depth)}`;
  };
  // Strings are matched first, so that their brackets and commas stay.
  return writeExactJson(example).replace(/"(?:[^"\\]|\\.)*"|\[\]|\{\}|[[{]|[\]}]|,|:/g, (token) => {
    if (token === '{' || token === '[') return `${token}${line(1)}`;
    if (token === '}' || token === ']') return `${line(-1)}${token}`;
    if (token === ',') return `,${line(0)}`;
    return token === ':' ? ': ' : token;
  });
}
