/**
 * What Stripe's published types say of a request, as JSON Schemas made from the `*.d.ts` of the installed version. They
 * are kept in node_modules/.cache, since making them takes two seconds.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { createGenerator } from 'ts-json-schema-generator';
import { packageRoot } from '../../../src/package.ts';
import type { RequestName } from './requests.ts';

const SOURCE = join(packageRoot, 'test/support/stripe/requests.ts');

/** Of the stripe package whose types these are. */
export const stripeVersion = (
  JSON.parse(readFileSync(join(packageRoot, 'node_modules/stripe/package.json'), 'utf8')) as { version: string }
).version;

function requestSchema(): object {
  const source = createHash('sha256').update(readFileSync(SOURCE)).digest('hex').slice(0, 12);
  const cache = join(packageRoot, 'node_modules/.cache/reckoner', `stripe-${stripeVersion}-${source}.json`);
  try {
    return JSON.parse(readFileSync(cache, 'utf8')) as object;
  } catch {
    // Not made yet.
  }
  const schema = createGenerator({
    path: SOURCE,
    tsconfig: join(packageRoot, 'tsconfig.json'),
    type: 'Requests',
    skipTypeCheck: true,
    additionalProperties: false,
  }).createSchema('Requests');
  mkdirSync(dirname(cache), { recursive: true });
  const draft = `${cache}.${process.pid}`;
  writeFileSync(draft, JSON.stringify(schema));
  renameSync(draft, cache);
  return schema;
}

let ajv: Ajv | undefined;
const validators = new Map<RequestName, ValidateFunction>();

/**
 * Makes the schemas, which takes seconds where there are none yet. Before a server listens: a client would give up waiting
 * for its first answer on a machine that is busy.
 */
export function loadSchemas(): Ajv {
  if (ajv === undefined) {
    // A form knows texts only: "true" and "1250" are read as what the type says.
    ajv = new Ajv({ coerceTypes: true, allowUnionTypes: true, strict: false });
    ajv.addSchema(requestSchema(), 'requests');
  }
  return ajv;
}

function validatorOf(name: RequestName): ValidateFunction {
  const known = validators.get(name);
  if (known !== undefined) return known;
  const made = loadSchemas().compile({ $ref: `requests#/definitions/Requests/properties/${name}` });
  validators.set(name, made);
  return made;
}

export interface RequestProblem {
  readonly param: string;
  readonly code: 'parameter_unknown' | 'parameter_missing' | 'parameter_invalid';
  readonly message: string;
}

/** Why Stripe would refuse the parameters, or undefined. Texts in them become the numbers and booleans they stand for. */
export function requestProblem(name: RequestName, params: Record<string, unknown>): RequestProblem | undefined {
  const validate = validatorOf(name);
  if (validate(params)) return undefined;
  const error = validate.errors?.[0] as ErrorObject;
  const path = error.instancePath.split('/').filter((part) => part !== '');
  const named = (last?: string) => bracketed(last === undefined ? path : [...path, last]);
  if (error.keyword === 'additionalProperties') {
    const param = named(String(error.params['additionalProperty']));
    return { param, code: 'parameter_unknown', message: `Received unknown parameter: ${param}` };
  }
  if (error.keyword === 'required') {
    const param = named(String(error.params['missingProperty']));
    return { param, code: 'parameter_missing', message: `Missing required param: ${param}.` };
  }
  return { param: named(), code: 'parameter_invalid', message: `Invalid ${named()}: ${error.message}` };
}

/** `line_items[0][quantity]`, as a form writes it. */
const bracketed = ([first = '', ...rest]: readonly string[]): string =>
  `${first}${rest.map((part) => `[${part}]`).join('')}`;
