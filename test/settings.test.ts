/** settings.json: what would send money astray or print what cannot be used is refused when the file is read. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { readCheckedSettings } from '../src/actions/rules.ts';
import { readEnvironment } from '../src/config/environment.ts';
import { firstSettings } from '../src/config/first-settings.ts';
import { instructionsFor, isRoutingNumber } from '../src/config/instructions.ts';
import { missingSettings } from '../src/config/missing-settings.ts';
import { settingsSchema } from '../src/config/settings.ts';
import { Refusal } from '../src/errors/refusals.ts';

const home = mkdtempSync(join(tmpdir(), 'reckoner-settings-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));
const environment = readEnvironment({ RECKONER_HOME: home });

type Json = Record<string, unknown>;

/** The sandbox's settings with that value at that path; undefined takes it out. */
function withValue(path: string, value: unknown): Json {
  const settings = JSON.parse(JSON.stringify(firstSettings('sandbox'))) as Json;
  const keys = path.split('.');
  let parent = settings;
  for (const key of keys.slice(0, -1)) parent = parent[key] as Json;
  const last = keys.at(-1) as string;
  if (value === undefined) delete parent[last];
  else parent[last] = value;
  return settings;
}

function read(settings: Json) {
  writeFileSync(join(home, 'settings.json'), JSON.stringify(settings));
  return readCheckedSettings(environment);
}

/** What is wrong with settings, as `path: reason`; empty where they are read. */
function problems(settings: Json): string[] {
  try {
    read(settings);
    return [];
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'settings_invalid') throw error;
    return (error.facts['problems'] as { path: string; reason: string }[]).map(
      ({ path, reason }) => `${path}: ${reason}`,
    );
  }
}

const ACH = 'instructions.USD.ach';
const WIRE = 'instructions.USD.wire';
const ABROAD = 'instructions.*.wire';

/** The names of all fields of a JSON schema, at every depth. */
function fieldNames(schema: unknown): string[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const properties = 'properties' in schema ? Object.keys(schema.properties as object) : [];
  return [...properties, ...Object.values(schema).flatMap(fieldNames)];
}

test('a rule of approval names an action that persons do', () => {
  expect(problems(withValue('approvals', { 'invoice.void': {}, 'ledger.import': {}, adjustments: {} }))).toEqual([]);
  expect(problems(withValue('approvals', { 'invoice.viod': {}, 'ledger.pause': {} }))).toEqual([
    expect.stringMatching(
      /^approvals\.invoice\.viod: is neither 'adjustments' nor an action that can need approval: .*invoice\.void, /,
    ),
    expect.stringMatching(/^approvals\.ledger\.pause: is neither 'adjustments' nor an action/),
  ]);
});

test('the documentation names every field of the settings', () => {
  const names = new Set(fieldNames(z.toJSONSchema(settingsSchema, { io: 'input', unrepresentable: 'any' })));
  for (const known of ['legal_name', 'return_code', 'routing_number', 'trust_proxy', 'printed_url'])
    expect(names).toContain(known);
  const documentation = readFileSync(new URL('../docs/settings.md', import.meta.url), 'utf8');
  const written = new Set(documentation.match(/[a-z][a-z0-9_]*/g));
  expect([...names].filter((name) => !written.has(name))).toEqual([]);
});

test('the settings that init writes are read', () => {
  expect(problems(firstSettings('sandbox') as unknown as Json)).toEqual([]);
  expect(problems(firstSettings('production') as unknown as Json)).toEqual([]);
});

describe('instructions', () => {
  test.each([
    [
      'a routing number with a wrong checksum',
      `${ACH}.routing_number`,
      '123456789',
      'is not a valid ABA routing number',
    ],
    ['one with a prefix that nobody has', `${ACH}.routing_number`, '500000005', 'is not a valid ABA routing number'],
    ['one of zeros', `${ACH}.routing_number`, '000000000', 'is not a valid ABA routing number'],
    ['one of eight digits', `${WIRE}.routing_number`, '12345678', 'is not a valid ABA routing number'],
    ['an IBAN with a wrong checksum', `${ABROAD}.iban`, 'GB82WEST12345698765433', 'is not a valid IBAN'],
    [
      'an IBAN of another length than its country has',
      `${ABROAD}.iban`,
      'GB82WEST1234569876543',
      'is not a valid IBAN',
    ],
    ['a BIC of nine characters', `${ABROAD}.bic`, 'WESTGB2LX', 'is not a valid BIC'],
    ['a BIC of no country', `${ABROAD}.bic`, 'WESTXX2L', 'is not a valid BIC'],
    ["an intermediary's BIC", `${ABROAD}.intermediary.bic`, 'NOPE', 'is not a valid BIC'],
    ['no account holder', `${ACH}.account_holder`, '', 'must not be empty'],
    ['no account number', `${ACH}.account_number`, undefined, 'is missing'],
    ['an account type that is none', `${ACH}.account_type`, 'current', 'must be one of checking, savings'],
    ['a bank without a town', `${WIRE}.bank_address.city`, '', 'is required'],
    ['a bank without a country', `${WIRE}.bank_address.country`, '', 'is required'],
    ['an account holder without a town', `${ABROAD}.account_holder_address.city`, ' ', 'is required'],
    ['a country in words', `${WIRE}.bank_address.country`, 'USA', 'must be an ISO 3166 code'],
    ['an address in one text', `${WIRE}.bank_address`, '1 Main Street, Springfield', 'must be an object, not a string'],
    ['an unknown field', `${ACH}.sort_code`, '401276', 'is not a known field'],
    ['a line break in a name', `${ACH}.bank_name`, 'Bank\nof England', 'must be one line'],
    ['ACH in euros', 'instructions.EUR', { ach: sandboxAch() }, 'ACH is for US dollars only'],
    ['a currency that is none', 'instructions.USX', {}, 'must be an ISO 4217 currency'],
  ])('%s is refused', (_, path, value, reason) => {
    const found = problems(withValue(path, value));
    expect(found.join('\n')).toContain(reason);
    expect(found[0]).toMatch(new RegExp(`^${path.split('.').slice(0, 3).join('.').replace('*', '[*]')}`));
    expect(found).toHaveLength(1);
  });

  test.each([
    ['nothing to pay into', { iban: undefined }, 'needs an iban or an account_number'],
    ['nothing that names the bank', { bic: undefined }, 'needs a routing_number (domestic) or a bic (international)'],
    ['a routing number beside an IBAN alone', { routing_number: '100000007' }, 'needs an account_number in addition'],
  ])('a wire with %s is refused', (_, change, reason) => {
    const abroad = { ...(firstSettings('sandbox').instructions['*']?.wire as object), ...change };
    expect(problems(withValue('instructions.*', { wire: abroad })).join('\n')).toContain(reason);
  });

  test('an IBAN may be written in groups of four', () => {
    expect(problems(withValue(`${ABROAD}.iban`, 'GB82 WEST 1234 5698 7654 32'))).toEqual([]);
  });

  test('a currency has its own, else those of any currency; ACH is for US dollars alone', () => {
    const settings = read(firstSettings('sandbox') as unknown as Json);
    expect(Object.keys(instructionsFor(settings, 'USD') ?? {}).sort()).toEqual(['ach', 'wire']);
    expect(instructionsFor(settings, 'EUR')?.ach).toBeUndefined();
    expect(instructionsFor(settings, 'EUR')?.wire?.iban).toBe('GB82WEST12345698765432');
    expect(instructionsFor({ ...settings, instructions: {} }, 'USD')).toBeUndefined();
  });
});

function sandboxAch(): unknown {
  return firstSettings('sandbox').instructions['USD']?.ach;
}

test('routing numbers are those of the Federal Reserve', () => {
  for (const real of ['021000021', '011000015', '121000358', '322271627']) expect(isRoutingNumber(real)).toBe(true);
  for (const none of ['021000022', '131000000', '99', '02100002a', '']) expect(isRoutingNumber(none)).toBe(false);
});

describe('the payment link', () => {
  const refused = (payment_link: unknown) => problems(withValue('payment_link', payment_link)).join('\n');

  test('has a provider that is known', () => {
    expect(refused({ provider: 'paypal' })).toContain('payment_link');
    expect(refused({ provider: 'page' })).toBe('');
    expect(refused({ provider: 'none' })).toBe('');
    expect(read(withValue('payment_link', undefined)).payment_link).toEqual({ provider: 'page' });
  });

  test('of Stripe prints our own page and takes ACH debit and cards, unless it says otherwise', () => {
    expect(read(withValue('payment_link', { provider: 'stripe' })).payment_link).toEqual({
      provider: 'stripe',
      printed_url: 'page',
      methods: ['us_bank_account', 'card'],
    });
  });

  test.each([
    ['no methods', { methods: [] }, 'must name at least one payment method'],
    ['a method twice', { methods: ['card', 'card'] }, 'names a method twice'],
    ['a method in words', { methods: ['Bank account'] }, 'must be a Stripe payment method'],
    ['a secret in the file', { secret_key: 'sk_test_1' }, 'is not a known field'],
    ['another URL to print', { printed_url: 'both' }, 'printed_url'],
  ])('of Stripe with %s is refused', (_, more, reason) => {
    expect(refused({ provider: 'stripe', ...more })).toContain(reason);
  });
});

test('production needs a public_url only where documents print our own page', () => {
  const needs = (payment_link: unknown) => {
    const settings = { ...withValue('public_url', ''), payment_link };
    return missingSettings(read(settings)).some(({ path }) => path === 'public_url');
  };
  expect(needs({ provider: 'page' })).toBe(true);
  expect(needs({ provider: 'stripe' })).toBe(true);
  expect(needs({ provider: 'stripe', printed_url: 'provider' })).toBe(false);
  expect(needs({ provider: 'none' })).toBe(false);
});
