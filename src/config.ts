/**
 * Environment and settings, each read once and checked whole. Refusals: environment_invalid, settings_missing,
 * settings_invalid, settings_incomplete.
 */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { electronicFormatIBAN, isValidBIC, isValidIBAN } from 'ibantools';
import { DateTime } from 'luxon';
import { z } from 'zod';
import { type FieldProblem, reasonOf, refuse } from './errors.ts';
import { repeatedName } from './json.ts';
import { type Logo, readLogo } from './logo.ts';
import { amountProblem, isCurrency, minorDigits } from './money.ts';
import { isTimeZone } from './month.ts';
import { firstSettings } from './sandbox.ts';

export type EnvironmentName = 'sandbox' | 'production';

/** What the process environment says. Secrets come from here only and are never written anywhere. */
export interface Environment {
  readonly name: EnvironmentName;
  /** RECKONER_HOME as an absolute path. */
  readonly home: string;
  /** DATABASE_URL, or undefined for the embedded PostgreSQL server under the home. */
  readonly databaseUrl: string | undefined;
  /** DATABASE_URL_READ: a streaming replica, for the commands that only read; undefined where there is none. */
  readonly databaseReadUrl?: string | undefined;
  /** SMTP_URL, or undefined for the outbox under the home. */
  readonly smtpUrl: string | undefined;
  /** STRIPE_SECRET_KEY, of the mode that fits this environment: a test key in sandbox, a live one in production. */
  readonly stripeKey: string | undefined;
  /** STRIPE_SECRET_KEY_<account>: by connected account, the key to read it with. */
  readonly connectedKeys: ReadonlyMap<string, string>;
  /** STRIPE_API_BASE: a stand-in in Stripe's place, in sandbox only. */
  readonly stripeBase: string | undefined;
  /** PAYMENT_LINK_SECRET, which signs the URLs of a link template. */
  readonly linkSecret: string | undefined;
  /** STRIPE_WEBHOOK_SECRET: one, or while it is being changed two, separated by a comma. */
  readonly webhookSecrets: readonly string[];
  /** The present instant. RECKONER_NOW stops this clock at one instant, in sandbox only. */
  readonly now: () => DateTime<true>;
}

const RECKONER_NOW = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)$/;

export function readEnvironment(variables: NodeJS.ProcessEnv = process.env): Environment {
  const name = variables['RECKONER_ENVIRONMENT'] || 'sandbox';
  if (name !== 'sandbox' && name !== 'production') {
    throw refuse('environment_invalid', {
      variable: 'RECKONER_ENVIRONMENT',
      reason: `is '${name}' but must be sandbox or production`,
    });
  }
  return {
    name,
    home: resolve(variables['RECKONER_HOME'] || 'reckoner'),
    databaseUrl: url(variables, 'DATABASE_URL', ['postgres:', 'postgresql:']),
    databaseReadUrl: url(variables, 'DATABASE_URL_READ', ['postgres:', 'postgresql:']),
    smtpUrl: url(variables, 'SMTP_URL', ['smtp:', 'smtps:']),
    stripeKey: stripeKey(name, 'STRIPE_SECRET_KEY', variables['STRIPE_SECRET_KEY']),
    connectedKeys: connectedKeys(name, variables),
    stripeBase: stripeBase(name, variables),
    linkSecret: linkSecret(variables['PAYMENT_LINK_SECRET']),
    webhookSecrets: (variables['STRIPE_WEBHOOK_SECRET'] ?? '').split(',').filter((secret) => secret.trim() !== ''),
    now: clock(name, variables['RECKONER_NOW']),
  };
}

function url(variables: NodeJS.ProcessEnv, variable: string, protocols: readonly string[]): string | undefined {
  const value = variables[variable];
  if (!value) return undefined;
  // The value may hold a password: it is never repeated.
  const protocol = URL.canParse(value) ? new URL(value).protocol : /^[a-z]+:(?=\/\/)/.exec(value)?.[0];
  if (protocol !== undefined && protocols.includes(protocol)) return value;
  throw refuse('environment_invalid', {
    variable,
    reason: `must be a URL that begins with ${protocols.map((each) => `${each}//`).join(' or ')}`,
  });
}

/** Test money in production and real money in a sandbox are both refused before anything else happens. */
function stripeKey(environment: EnvironmentName, variable: string, key: string | undefined): string | undefined {
  if (!key) return undefined;
  const mode = /^[sr]k_(test|live)_\w+$/.exec(key)?.[1];
  const wanted = environment === 'production' ? 'live' : 'test';
  if (mode === wanted) return key;
  const reason =
    mode === undefined
      ? `must be a secret or restricted key of Stripe, such as sk_${wanted}_…`
      : `is a ${mode} key, and this is ${environment}: it needs a ${wanted} key (sk_${wanted}_… or rk_${wanted}_…)`;
  throw refuse('environment_invalid', { variable, reason });
}

/** STRIPE_SECRET_KEY_acct_1 is the key of the account acct_1. */
function connectedKeys(environment: EnvironmentName, variables: NodeJS.ProcessEnv): ReadonlyMap<string, string> {
  const prefix = 'STRIPE_SECRET_KEY_';
  return new Map(
    Object.entries(variables).flatMap(([variable, value]): [string, string][] => {
      const key = variable.startsWith(prefix) ? stripeKey(environment, variable, value) : undefined;
      return key === undefined ? [] : [[variable.slice(prefix.length), key]];
    }),
  );
}

function stripeBase(environment: EnvironmentName, variables: NodeJS.ProcessEnv): string | undefined {
  const base = url(variables, 'STRIPE_API_BASE', ['http:', 'https:']);
  if (base !== undefined && environment === 'production') {
    const reason = "puts a stand-in in Stripe's place, in sandbox only, and this is production";
    throw refuse('environment_invalid', { variable: 'STRIPE_API_BASE', reason });
  }
  return base;
}

/** HMAC-SHA256 takes any key; a short one can be guessed from one signed URL. */
const SHORTEST_SECRET = 32;

function linkSecret(secret: string | undefined): string | undefined {
  if (!secret || secret.length >= SHORTEST_SECRET) return secret || undefined;
  const reason = `must have at least ${SHORTEST_SECRET} characters: 'openssl rand -hex 32' makes one`;
  throw refuse('environment_invalid', { variable: 'PAYMENT_LINK_SECRET', reason });
}

function clock(environment: EnvironmentName, text: string | undefined): () => DateTime<true> {
  if (!text) return () => DateTime.utc();
  if (environment === 'production') {
    throw refuse('environment_invalid', {
      variable: 'RECKONER_NOW',
      reason: 'sets the clock in sandbox only, and this is production',
    });
  }
  const instant = RECKONER_NOW.test(text) ? DateTime.fromISO(text, { zone: 'utc' }) : undefined;
  if (!instant?.isValid) {
    throw refuse('environment_invalid', {
      variable: 'RECKONER_NOW',
      reason: `is '${text}' but must be a time such as 2026-11-01T06:00:00Z`,
    });
  }
  return () => instant;
}

// --- Settings -------------------------------------------------------------------------------------------------------

/** One line of text: no line breaks, control characters, half characters or turns of the writing direction. */
export const line = (max = 200) =>
  z
    .string()
    .max(max)
    .regex(/^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]*$/u, 'must be one line without control characters');

export const emailAddress = z
  .string()
  .max(254)
  .refine((text) => z.email().safeParse(text).success, 'must be one e-mail address such as ap@partner.example');
const optional = <T extends z.ZodType<string>>(schema: T) => z.union([z.literal(''), schema]);

/** A postal address, town and country apart: unstructured ones are refused on cross-border wires. */
export const addressSchema = z.strictObject({
  line1: line().default(''),
  line2: line().default(''),
  city: line().default(''),
  region: line().default(''),
  postal_code: line(20).default(''),
  country: z.union([z.literal(''), z.string().regex(/^[A-Z]{2}$/, 'must be an ISO 3166 code such as US')]).default(''),
});
export type Address = z.output<typeof addressSchema>;

/** ABA routing number: nine digits, weights 3-7-1 to a multiple of ten, a Federal Reserve prefix, not all zeros. */
export function isRoutingNumber(text: string): boolean {
  if (!/^\d{9}$/.test(text) || text === '000000000') return false;
  const prefix = Number(text.slice(0, 2));
  if (!(prefix <= 12 || (prefix >= 21 && prefix <= 32) || (prefix >= 61 && prefix <= 72) || prefix === 80))
    return false;
  const weights = [3, 7, 1];
  const sum = [...text].reduce((total, digit, index) => total + Number(digit) * (weights[index % 3] as number), 0);
  return sum % 10 === 0;
}

const routingNumber = z.string().refine(isRoutingNumber, 'is not a valid ABA routing number (nine digits, checksum)');
const bic = z.string().refine(isValidBIC, 'is not a valid BIC (ISO 9362)');
const iban = z
  .string()
  .refine((text) => isValidIBAN(electronicFormatIBAN(text) ?? ''), 'is not a valid IBAN (ISO 13616, checksum)');
const accountNumber = line(40).min(1, 'must not be empty');
const named = line().min(1, 'must not be empty');

/** Town and country apart, and both there: since November 2026 a cross-border wire without them is refused. */
const bankAddressSchema = addressSchema.check(({ value, issues }) => {
  for (const field of ['city', 'country'] as const) {
    if (value[field].trim() === '') {
      issues.push({ code: 'custom', path: [field], message: 'is required: banks refuse a wire without it', input: '' });
    }
  }
});

const achSchema = z.strictObject({
  account_holder: named,
  account_holder_address: bankAddressSchema,
  bank_name: named,
  bank_address: bankAddressSchema,
  routing_number: routingNumber,
  account_number: accountNumber,
  account_type: z.enum(['checking', 'savings']),
});
export type AchInstructions = z.output<typeof achSchema>;

const wireSchema = z
  .strictObject({
    account_holder: named,
    account_holder_address: bankAddressSchema,
    bank_name: named,
    bank_address: bankAddressSchema,
    routing_number: routingNumber.optional(),
    account_number: accountNumber.optional(),
    iban: iban.optional(),
    bic: bic.optional(),
    intermediary: z.strictObject({ bank_name: named, bank_address: bankAddressSchema.optional(), bic }).optional(),
  })
  .refine(
    (wire) => wire.iban !== undefined || wire.account_number !== undefined,
    'needs an iban or an account_number to pay into',
  )
  .refine(
    (wire) => wire.routing_number !== undefined || wire.bic !== undefined,
    'needs a routing_number (domestic) or a bic (international)',
  )
  .refine(
    (wire) => wire.routing_number === undefined || wire.account_number !== undefined,
    'needs an account_number beside its routing_number: a domestic wire knows no IBAN',
  );
export type WireInstructions = z.output<typeof wireSchema>;

// An empty object is a section still to be filled in, as `init` leaves it in production. It aborts on anything else, so
// that the complaints about a section are those of the section's own schema.
const isEmptyObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && Object.keys(value).length === 0;
const unfilled = z.custom<Record<string, never>>(isEmptyObject, { abort: true }).transform(() => undefined);
const instructionsSchema = z.strictObject({
  ach: z.union([unfilled, achSchema]).optional(),
  wire: z.union([unfilled, wireSchema]).optional(),
});

/** How to pay in one currency; undefined sections are not offered. */
export interface Instructions {
  readonly ach?: AchInstructions | undefined;
  readonly wire?: WireInstructions | undefined;
}

// --- Payment links ----------------------------------------------------------------------------------------------------

/** What a link template may name, each percent-encoded where it stands. */
export const LINK_FIELDS = ['number', 'partner_id', 'amount', 'currency', 'due_on', 'token'] as const;
export type LinkField = (typeof LINK_FIELDS)[number];

const LINK_FIELD = /\{([^{}]*)\}/g;

/** Why a text is no link template, or undefined where it is one. */
function templateProblem(text: string, signatureParameter: string): string | undefined {
  const fields = [...text.matchAll(LINK_FIELD)].map((match) => match[1] as string);
  const unknown = fields.filter((field) => !(LINK_FIELDS as readonly string[]).includes(field));
  if (unknown.length > 0) {
    return `names {${unknown[0]}}; it may name ${LINK_FIELDS.map((field) => `{${field}}`).join(', ')}`;
  }
  if (!fields.includes('number') && !fields.includes('token')) {
    return 'must name {number} or {token}, so that each document has a URL of its own';
  }
  const filled = text.replace(LINK_FIELD, 'x');
  if (/[{}#]/.test(filled)) return 'may not hold {, } or # outside of its fields: the signature goes at the end';
  if (!URL.canParse(filled) || new URL(filled).protocol !== 'https:') return 'must be a URL that begins with https://';
  const origin = /^https:\/\/[^/?]*/i.exec(text)?.[0] ?? '';
  if (origin.includes('{')) return 'may name fields only after the host';
  if (new URL(filled).searchParams.has(signatureParameter)) {
    return `holds the parameter ${signatureParameter} already, where the signature goes`;
  }
  return undefined;
}

/** Which URL the document prints: our own page's, with the provider behind it, or the provider's own. */
const printedUrl = z.enum(['page', 'provider']).default('page');

const paymentLinkSchema = z.discriminatedUnion('provider', [
  // Our own page, with instructions and without a button that pays.
  z.strictObject({ provider: z.literal('page') }),
  z.strictObject({
    provider: z.literal('stripe'),
    printed_url: printedUrl,
    methods: z
      .array(z.string().regex(/^[a-z0-9_]+$/, 'must be a payment method as Stripe calls it, such as us_bank_account'))
      .min(1, 'must name at least one payment method')
      .refine((methods) => new Set(methods).size === methods.length, 'names a method twice')
      .default(['us_bank_account', 'card']),
  }),
  z
    .strictObject({
      provider: z.literal('template'),
      printed_url: printedUrl,
      template: line(1000),
      signature_parameter: z
        .string()
        .regex(/^[A-Za-z0-9_-]{1,40}$/, 'must be the name of a query parameter')
        .default('signature'),
    })
    .check((context) => {
      const reason = templateProblem(context.value.template, context.value.signature_parameter);
      if (reason !== undefined) {
        context.issues.push({ code: 'custom', path: ['template'], message: reason, input: context.value.template });
      }
    }),
  // Documents with instructions only.
  z.strictObject({ provider: z.literal('none') }),
]);
export type PaymentLinkSettings = z.output<typeof paymentLinkSchema>;

/** Whether documents print the URL of our own page. */
export const printsOwnPage = (link: PaymentLinkSettings): boolean =>
  link.provider === 'page' || (link.provider !== 'none' && link.printed_url === 'page');

// --- Money in ---------------------------------------------------------------------------------------------------------

const column = z.string().min(1).max(200);

/**
 * How a bank's CSV is read: names of its columns, and how it writes dates and amounts. Amounts stand in one column with a
 * sign (`amount`) or in two (`credit`, `debit`).
 */
const bankCsvSchema = z
  .strictObject({
    columns: z.strictObject({
      date: column,
      value_date: column.optional(),
      amount: column.optional(),
      credit: column.optional(),
      debit: column.optional(),
      balance: column.optional(),
      currency: column.optional(),
      account: column.optional(),
      bank_reference: column.optional(),
      customer_reference: column.optional(),
      /** The columns that a document's number may stand in. */
      text: z.array(column).default([]),
      payer: column.optional(),
      payer_account: column.optional(),
      type: column.optional(),
      return_code: column.optional(),
    }),
    /** As luxon writes it: `yyyy-MM-dd`, `MM/dd/yyyy`, `d LLL yyyy`. */
    date_format: z.string().min(2).max(40).default('yyyy-MM-dd'),
    decimal: z.enum(['.', ',']).default('.'),
    delimiter: z.string().length(1).default(','),
    encoding: z.enum(['utf-8', 'windows-1252', 'utf-16le']).default('utf-8'),
    /** Lines before the header. */
    skip_lines: z.int().min(0).max(100).default(0),
    /** The bank writes what comes in with a minus. */
    negate: z.boolean().default(false),
    /** Of rows without a column for it. */
    account: line(40).default(''),
    currency: z.string().refine(isCurrency, 'must be an ISO 4217 currency').default('USD'),
  })
  .refine(
    ({ columns }) => (columns.amount === undefined) !== (columns.credit === undefined && columns.debit === undefined),
    "needs either the column 'amount' or the columns 'credit' and 'debit'",
  )
  .refine(
    ({ columns, account }) => columns.account !== undefined || account !== '',
    "needs an 'account' or the column that holds it",
  );
export type BankCsvMap = z.output<typeof bankCsvSchema>;

/** What `payment import --map` takes where the settings have no map: columns named as here. */
const PLAIN_BANK_CSV: z.input<typeof bankCsvSchema> = {
  columns: {
    date: 'date',
    amount: 'amount',
    currency: 'currency',
    account: 'account',
    bank_reference: 'bank_reference',
    text: ['text'],
    payer: 'payer',
    payer_account: 'payer_account',
  },
};

/** Up to how much of an invoice may be written to bank charges when a payment comes up short, by currency. */
const smallDifferenceSchema = z
  .record(z.string().refine(isCurrency, 'must be an ISO 4217 currency'), z.string())
  .superRefine((amounts, context) => {
    for (const [currency, amount] of Object.entries(amounts)) {
      const problem = amountProblem(amount, minorDigits(currency) ?? 0);
      const reason = problem?.reason ?? (amount.startsWith('-') ? 'is below zero' : undefined);
      if (reason !== undefined) context.addIssue({ code: 'custom', path: [currency], message: reason });
    }
  });
/** `203.0.113.7` or `203.0.113.0/24`, of either family. */
const network = z.union(
  [z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()],
  'must be an address or a network such as 10.0.0.0/8',
);

const httpSchema = z.strictObject({
  /** Who may call /api; empty for everybody (service.md 5.7). */
  allow: z.array(network).default([]),
  /** Proxies whose X-Forwarded-For is believed; empty for none. */
  trust_proxy: z.array(network).default([]),
  /** Of one client's calls, and of one address without a token. */
  requests_per_minute: z.int().min(1).max(10_000_000).default(6000),
  /** Who may read /metrics. */
  metrics_allow: z
    .array(network)
    .default(['127.0.0.0/8', '::1', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7']),
});

const settingsSchema = z.strictObject({
  issuer: z.strictObject({
    legal_name: line().default(''),
    address: addressSchema.prefault({}),
    email: optional(emailAddress).default(''),
    phone: line(40).default(''),
    tax_id: line(60).default(''),
    /** The path of a PNG or JPEG file, from RECKONER_HOME on. */
    logo: line(1000).default(''),
  }),
  time_zone: z.string().refine(isTimeZone, 'must be an IANA time zone such as America/New_York'),
  payment_terms_days: z.int().min(0).max(365).default(30),
  public_url: optional(z.url({ protocol: /^https?$/ })).default(''),
  mail_from: optional(emailAddress).default(''),
  reply_to: optional(emailAddress).default(''),
  finance_email: optional(emailAddress).default(''),
  auditor_email: optional(emailAddress).default(''),
  operations_email: optional(emailAddress).default(''),
  sandbox_recipients: z.array(z.string().min(2).max(254)).default(['.example', '.test']),
  instructions: z
    .record(
      z.string().refine((key) => key === '*' || isCurrency(key), "must be an ISO 4217 currency or '*'"),
      instructionsSchema,
    )
    .check(({ value, issues }) => {
      for (const [currency, { ach }] of Object.entries(value)) {
        if (ach === undefined || currency === 'USD' || currency === '*') continue;
        const message = 'ACH moves US dollars only: leave it out here';
        issues.push({ code: 'custom', path: [currency, 'ach'], message, input: currency });
      }
    }),
  payment_link: paymentLinkSchema.default({ provider: 'page' }),
  bank_csv: z.record(z.string().min(1).max(60), bankCsvSchema).prefault({ plain: PLAIN_BANK_CSV }),
  small_difference: smallDifferenceSchema.default({}),
  /** Words in a bank line by which the processor's payouts are known: they are no payments. */
  payout_names: z.array(z.string().min(3).max(60)).default(['STRIPE']),
  /** Days after the due date (before it, where negative) on which a partner is reminded; none: never. */
  reminders: z.array(z.int().min(-90).max(365)).max(20).default([-7, 0, 7, 21, 45]),
  partner_id_header: z
    .string()
    .regex(/^[A-Za-z0-9-]+$/, 'must be the name of an HTTP header')
    .default('X-Service-Partner-Id'),
  http: httpSchema.prefault({}),
});

type Written = z.output<typeof settingsSchema>;
/** The shape of settings.json as a person writes it. */
export type SettingsFile = z.input<typeof settingsSchema>;

/** Who issues the documents, with the content of the logo that the settings name. */
export interface Issuer extends Omit<Written['issuer'], 'logo'> {
  readonly logo: Logo | null;
}
export interface Settings extends Omit<Written, 'issuer'> {
  readonly issuer: Issuer;
}

export const settingsFile = (environment: Environment): string => join(environment.home, 'settings.json');

export function readSettings(environment: Environment): Settings {
  const file = settingsFile(environment);
  let text: string;
  try {
    text = readFileSync(file, 'utf8').replace(/^\uFEFF/, '');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw refuse('settings_missing', { file });
    throw refuse('file_unreadable', { file, reason: reasonOf(error) }, error);
  }
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw refuse('settings_invalid', { file, problems: [{ path: '', reason: `is not JSON: ${reasonOf(error)}` }] });
  }
  const twice = repeatedName(text);
  if (twice !== undefined) {
    throw refuse('settings_invalid', { file, problems: [{ path: twice, reason: 'is named twice in one object' }] });
  }
  const parsed = settingsSchema.safeParse(json);
  if (!parsed.success) throw refuse('settings_invalid', { file, problems: fieldProblems(parsed.error) });
  return withLogo(parsed.data, environment, file);
}

/** The settings with the logo's content, checked with the rest: a document must not find out that it can't be drawn. */
function withLogo(settings: Written, { home }: Environment, file: string): Settings {
  const { issuer } = settings;
  const logo = issuer.logo === '' ? null : readLogo(resolve(home, issuer.logo));
  if (logo !== null && 'problem' in logo) {
    throw refuse('settings_invalid', {
      file,
      problems: [{ path: 'issuer.logo', reason: `is no logo: ${logo.problem}` }],
    });
  }
  return { ...settings, issuer: { ...issuer, logo } };
}

/**
 * A validator's complaints as «path: reason» pairs; of a union, those of the alternative that came closest, or its own
 * where it has one and no alternative got into the value.
 */
export function fieldProblems(error: z.ZodError): FieldProblem[] {
  const flatten = (issues: readonly z.core.$ZodIssue[], base: readonly PropertyKey[]): FieldProblem[] =>
    issues.flatMap((issue) => {
      const path = [...base, ...issue.path];
      if (issue.code === 'invalid_union' && issue.errors.length > 0) {
        const deepest = issue.errors.at(-1) as readonly z.core.$ZodIssue[];
        const own = issue.message !== 'Invalid input' && deepest.every((each) => each.path.length === 0);
        if (deepest.length > 0 && !own) return flatten(deepest as z.core.$ZodIssue[], path);
      }
      // A key that may not stand in a record: what is wrong with it is told one level below.
      const reason =
        issue.code === 'invalid_key' ? issue.issues.map(({ message }) => message).join(', ') : issue.message;
      // A number that was read by its text is a number to whoever wrote it.

      return [{ path: path.map(String).join('.'), reason: reason.replace('ExactNumber', 'number') }];
    });
  return flatten(error.issues, []);
}

/** How to pay in a currency: its own instructions, else those for any currency, else none. */
export function instructionsFor(settings: Settings, currency: string): Instructions | undefined {
  const found = [settings.instructions[currency], settings.instructions['*']].find((each) => each?.ach || each?.wire);
  if (found === undefined) return undefined;
  // ACH is a United States network and settles in US dollars only.
  const usable = { ach: currency === 'USD' ? found.ach : undefined, wire: found.wire };
  return usable.ach || usable.wire ? usable : undefined;
}

/** A setting that production lacks: empty, or still the sandbox's fictitious one. */
export interface MissingSetting {
  readonly path: string;
  readonly lacks: string;
}

/** What the issuer's own settings lack for a close in production. */
export function missingSettings(settings: Settings): MissingSetting[] {
  const fictitious = settingsSchema.parse(firstSettings('sandbox'));
  const values = (
    of: Pick<Settings, 'issuer' | 'public_url' | 'mail_from' | 'payment_link'> | Written,
  ): ReadonlyArray<readonly [path: string, value: string]> => [
    ['issuer.legal_name', of.issuer.legal_name],
    ['issuer.address.line1', of.issuer.address.line1],
    ['issuer.address.city', of.issuer.address.city],
    ['issuer.address.country', of.issuer.address.country],
    ['issuer.email', of.issuer.email],
    ...(printsOwnPage(of.payment_link) ? ([['public_url', of.public_url]] as const) : []),
    ['mail_from', of.mail_from],
  ];
  const known = new Map(values(fictitious));
  const missing = values(settings).flatMap(([path, value]): MissingSetting[] => {
    if (value === '') return [{ path, lacks: 'a value' }];
    // Real issuers have countries in common with the fictitious one, and streets too, but not their whole identity.
    const identity = !path.startsWith('issuer.address.');
    return identity && value === known.get(path) ? [{ path, lacks: 'a value of its own: it is the sandbox’s' }] : [];
  });
  const invented = JSON.stringify(Object.values(fictitious.instructions));
  for (const [currency, instructions] of Object.entries(settings.instructions)) {
    for (const kind of ['ach', 'wire'] as const) {
      const written = instructions[kind];
      if (written !== undefined && invented.includes(JSON.stringify(written))) {
        const path = `instructions.${currency}.${kind}`;
        missing.push({ path, lacks: 'a real bank account: it is the sandbox’s' });
      }
    }
  }
  return missing;
}
