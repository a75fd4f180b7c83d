/** Compares a server's answers with its OpenAPI description, for every call of the HTTP tests. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';

interface Response {
  readonly headers?: Record<string, unknown>;
  readonly content: Record<string, { readonly schema?: object }>;
}

interface Description {
  readonly paths: Record<string, Record<string, { readonly responses: Record<string, Response> }>>;
}

interface Described {
  readonly description: Description;
  readonly validator: (pointer: string) => ValidateFunction;
}

const servers = new Map<string, Promise<Described>>();

function describedBy(origin: string): Promise<Described> {
  const known = servers.get(origin) ?? readDescription(origin);
  servers.set(origin, known);
  return known;
}

async function readDescription(origin: string): Promise<Described> {
  const description = (await (await fetch(`${origin}/openapi.json`)).json()) as Description;
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema(description, 'api');
  return { description, validator: (pointer) => ajv.compile({ $ref: `api#${pointer}` }) };
}

const escaped = (part: string) =>
  part.replaceAll('~', '~0').replaceAll('/', '~1').replaceAll('{', '%7B').replaceAll('}', '%7D');

/** How an answer contradicts the server's description; undefined if it does not. */
export async function contradiction(
  address: string,
  method: string,
  answer: { status: number; headers: Headers; body: unknown; text: string },
): Promise<string | undefined> {
  const { origin, pathname } = new URL(address);
  const { description, validator } = await describedBy(origin);
  const problem = '/components/schemas/Problem';
  const said = `${method} ${pathname} answered ${answer.status} ${answer.text.slice(0, 300)}`;
  const check = (pointer: string) => {
    const validate = validator(pointer);
    return validate(answer.body) ? undefined : `${said}: ${JSON.stringify(validate.errors)}`;
  };
  const path = Object.keys(description.paths).find((each) =>
    new RegExp(`^${each.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}$`).test(pathname),
  );
  const operation = path === undefined ? undefined : description.paths[path]?.[method.toLowerCase()];
  if (path === undefined || operation === undefined) {
    return answer.status < 400 ? `${said}: the call is not described` : check(problem);
  }
  const status = String(answer.status);
  const response = operation.responses[status];
  if (response === undefined) return `${said}: its status is not described`;
  for (const name of Object.keys(response.headers ?? {})) {
    // The last page has no Link, only a repeated call is replayed, and only a late request has a Location.
    const optional = ['Link', 'Idempotent-Replayed', 'Location'].includes(name);
    if (!optional && !answer.headers.has(name)) return `${said}: the header ${name} is missing`;
  }
  const type = (answer.headers.get('content-type') ?? '').split(';')[0] as string;
  const content = response.content[type];
  if (content === undefined) return `${said}: ${type} is not described`;
  if (!type.includes('json')) return undefined;
  return check(`/paths/${escaped(path)}/${method.toLowerCase()}/responses/${status}/content/${escaped(type)}/schema`);
}
