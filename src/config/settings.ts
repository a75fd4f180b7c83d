/** settings.json, read once and checked whole. Refusals: settings_missing, settings_invalid. */
import { statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { type FieldProblem, Refusal, refuse } from '../errors/refusals.ts';
import { amountProblem, isCurrency, minorDigits } from '../money.ts';
import { isTimeZone } from '../month.ts';
import { paymentLinkSchema } from '../processors/links/providers.ts';
import { PROCESSORS } from '../processors/processors.ts';
import { bankCsvSchema, PLAIN_BANK_CSV } from './bank-csv.ts';
import { consoleSchema } from './console.ts';
import { eInvoiceSellerSchema } from './e-invoice.ts';
import type { Environment } from './environment.ts';
import { readFieldsFile } from './fields-file.ts';
import { instructionsSchema } from './instructions.ts';
import { type Logo, readLogo } from './logo.ts';
import { taxSchema } from './tax.ts';
import { addressSchema, emailAddress, line, optional } from './validation.ts';

const above = z.record(z.string().refine(isCurrency, 'must be an ISO 4217 currency'), z.string());

/**
 * With `always`, the rule applies to any amount. `{}` means the same, but the settings history shows no empty objects.
 */
const rule = z
  .strictObject({ above: above.optional(), always: z.literal(true).optional() })
  .superRefine(({ above: amounts = {} }, context) => {
    for (const [currency, amount] of Object.entries(amounts)) {
      const problem = amountProblem(amount, minorDigits(currency) ?? 0);
      const message = problem?.reason ?? (amount.startsWith('-') ? 'is below zero' : undefined);
      if (message !== undefined) context.addIssue({ code: 'custom', path: ['above', currency], message });
    }
  })
  .transform(({ above: amounts = {}, always }) =>
    always || Object.keys(amounts).length === 0 ? ({ always: true } as const) : { above: amounts },
  );

/** Keyed by the action's name, which actions/rules.ts checks. */
const approvalsSchema = z.record(z.string(), rule);

export type ApprovalRule = z.output<typeof rule>;

/**
 * The most that may be posted to bank charges if a payment is short: by currency, and in percent of the amount owed.
 */
const smallDifferenceSchema = z
  .record(
    z.string().refine((key) => key === 'percent' || isCurrency(key), "must be an ISO 4217 currency or 'percent'"),
    z.string(),
  )
  .superRefine(({ percent, ...amounts }, context) => {
    if (
      percent !== undefined &&
      (amountProblem(percent, 2) !== undefined || !(Number(percent) >= 0 && Number(percent) <= 100))
    ) {
      const message = 'must be a number from 0 to 100 with at most 2 decimals, such as 2 or 1.5';
      context.addIssue({ code: 'custom', path: ['percent'], message });
    }
    for (const [currency, amount] of Object.entries(amounts)) {
      const problem = amountProblem(amount, minorDigits(currency) ?? 0);
      const reason = problem?.reason ?? (amount.startsWith('-') ? 'is below zero' : undefined);
      if (reason !== undefined) context.addIssue({ code: 'custom', path: [currency], message: reason });
    }
  });
/** Which invoices a close holds: above an amount in their currency, or above a multiple of the partner's largest. */
const holdsSchema = z
  .strictObject({
    above: z.record(z.string().refine(isCurrency, 'must be an ISO 4217 currency'), z.string()).default({}),
    times: z
      .string()
      .regex(/^[1-9]\d{0,5}(\.\d{1,4})?$/, 'must be a decimal from 1, such as "3" or "2.5"')
      .nullable()
      .default(null),
  })
  .superRefine(({ above }, context) => {
    for (const [currency, amount] of Object.entries(above)) {
      const problem = amountProblem(amount, minorDigits(currency) ?? 0);
      const reason = problem?.reason ?? (amount.startsWith('-') ? 'is below zero' : undefined);
      if (reason !== undefined) context.addIssue({ code: 'custom', path: ['above', currency], message: reason });
    }
  });

/** `203.0.113.7` or `203.0.113.0/24`, of either family. */
const network = z.union(
  [z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()],
  'must be an address or a network such as 10.0.0.0/8',
);

/** A DNS name: labels of letters, digits and hyphens. */
const DOMAIN = /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/i;

const httpSchema = z.strictObject({
  /** Who may call /api; empty: no restriction (service.md 5.7). */
  allow: z.array(network).default([]),
  /** Proxies whose X-Forwarded-For is trusted. */
  trust_proxy: z.array(network).default([]),
  /** The limit for each client, and for each address without a token. */
  requests_per_minute: z.int().min(1).max(10_000_000).default(6000),
  /** Days that an invoice's page remains after it was paid or voided; null: forever. */
  payment_page_days: z.int().min(0).max(3660).nullable().default(90),
  /** Who may read /metrics. */
  metrics_allow: z
    .array(network)
    .default(['127.0.0.0/8', '::1', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7']),
});

const quotesSchema = z.strictObject({
  /** Days that a quote or requote can be accepted; null: forever. */
  valid_days: z.int().min(1).max(366).nullable().default(30),
  /** The largest price quoted, by currency (`*` for any other), in major units. */
  largest_price: z
    .record(
      z.string().refine((key) => key === '*' || isCurrency(key), "must be an ISO 4217 currency or '*'"),
      z.string().regex(/^[1-9]\d{0,14}$/, 'must be a whole amount such as "1000000"'),
    )
    .default({ '*': '1000000' }),
});

/** Retention in days; null: forever. The database allows no deletion within 30 days. */
const retentionSchema = z.strictObject({
  /** How long unaccepted quotes and requotes are kept after expiry. */
  quotes_days: z.int().min(30).max(3660).nullable().default(90),
  /** How long the data of processor events is kept after receipt. */
  processor_events_days: z.int().min(30).max(3660).nullable().default(null),
});

export const settingsSchema = z
  .strictObject({
    issuer: z.strictObject({
      legal_name: line().default(''),
      address: addressSchema.prefault({}),
      email: optional(emailAddress).default(''),
      phone: line(40).default(''),
      tax_id: line(60).default(''),
      /** Additional data for e-invoices; optional. */
      e_invoice: eInvoiceSellerSchema.optional(),
      /** The path of a PNG or JPEG file, relative to RECKONER_HOME. */
      logo: line(1000).default(''),
    }),
    time_zone: z.string().refine(isTimeZone, 'must be an IANA time zone such as America/New_York'),
    /**
     * Confirms that production's ledger is in the server under RECKONER_HOME; otherwise production requires
     * DATABASE_URL.
     */
    database: z.enum(['', 'embedded']).default(''),
    payment_terms_days: z.int().min(0).max(365).default(30),
    public_url: optional(z.url({ protocol: /^https?$/ })).default(''),
    mail_from: optional(emailAddress).default(''),
    reply_to: optional(emailAddress).default(''),
    finance_email: optional(emailAddress).default(''),
    auditor_email: optional(emailAddress).default(''),
    operations_email: optional(emailAddress).default(''),
    /** The contact in /.well-known/security.txt: an address or an https URL; the issuer's address if empty. */
    security_contact: optional(z.union([emailAddress, z.url({ protocol: /^https$/ })])).default(''),
    /** A time-stamping authority (RFC 3161). Its responses are signed, so plain http is enough. */
    time_stamping_url: optional(z.url({ protocol: /^https?$/ })).default(''),
    /** The domain and selector that sign e-mails; an empty domain means that of mail_from. */
    dkim: z
      .strictObject({
        domain: optional(z.string().regex(DOMAIN, 'must be a domain such as protection.example')).default(''),
        selector: z.string().regex(DOMAIN, 'must be a name such as reckoner').default('reckoner'),
      })
      .prefault({}),
    sandbox_recipients: z.array(z.string().min(2).max(254)).default(['.example', '.test']),
    instructions: z
      .record(
        z.string().refine((key) => key === '*' || isCurrency(key), "must be an ISO 4217 currency or '*'"),
        instructionsSchema,
      )
      .check(({ value, issues }) => {
        for (const [currency, { ach }] of Object.entries(value)) {
          if (ach === undefined || currency === 'USD' || currency === '*') continue;
          const message = 'ACH is for US dollars only: omit it here';
          issues.push({ code: 'custom', path: [currency, 'ach'], message, input: currency });
        }
      }),
    /** The day of the following month on which the job closes a month's books; null: only `books close` does. */
    books_close_day: z.int().min(1).max(28).nullable().default(null),
    /** Bank accounts that no longer report, each with the reason. Closing the books does not wait for them. */
    ended_bank_accounts: z.record(z.string().min(1).max(60), line().min(1)).default({}),
    payment_link: paymentLinkSchema.default({ provider: 'page' }),
    bank_csv: z.record(z.string().min(1).max(60), bankCsvSchema).prefault({ plain: PLAIN_BANK_CSV }),
    small_difference: smallDifferenceSchema.default({}),
    /** Which invoices a close holds for review by finance; by default none. */
    holds: holdsSchema.prefault({}),
    /** Names in bank lines that identify processor payouts. */
    payout_names: z.array(z.string().min(3).max(60)).default(PROCESSORS.map(({ bankName }) => bankName)),
    /** Partners for which a month may close without rows; true if no feeds are expected. */
    allow_empty: z.union([z.boolean(), z.array(line(128))]).default(false),
    /** Whether the jobs take a checkpoint of the open month once a day. */
    checkpoints: z.enum(['daily', 'off']).default('daily'),
    /** Dunning levels: days after the due date, or before it if negative. */
    reminders: z.array(z.int().min(-90).max(365)).max(20).default([-7, 0, 7, 21, 45]),
    /** Whether the payer gets an e-mail receipt for a payment that pays invoices. */
    payment_receipts: z.boolean().default(true),
    /** Whether the partner gets an e-mail about a refund of credit. */
    refund_notices: z.boolean().default(true),
    /**
     * Which open credit is applied to an invoice at issue: all, only credit from net-negative months, or none. The rest
     * waits for `credit apply` or a payment that refers to it.
     */
    credit_at_close: z.enum(['all', 'months', 'none']).default('all'),
    /** Whether we supply our partners, who sell at their own price, or are the principal (docs/settings.md). */
    we_are: z.enum(['supplier_to_partner', 'principal']).default('supplier_to_partner'),
    /** The tax that finance configured (docs/tax.md); null: documents carry none. */
    tax: taxSchema.nullable().default(null),
    partner_id_header: z
      .string()
      .regex(/^[A-Za-z0-9-]+$/, 'must be the name of an HTTP header')
      .default('X-Service-Partner-Id'),
    quotes: quotesSchema.prefault({}),
    retention: retentionSchema.prefault({}),
    http: httpSchema.prefault({}),
    console: consoleSchema.prefault({}),
    /** Actions that need a second person, by name. */
    approvals: approvalsSchema.default({}),
    /** How long a request for approval is valid. */
    approvals_expire_days: z.int().min(1).max(366).default(14),
  })
  .superRefine(({ we_are: weAre, tax }, context) => {
    if (weAre !== 'principal' || tax === null) return;
    const message =
      'cannot be principal where tax is configured: a principal owes tax on the whole price, and tax is calculated on the ' +
      'invoice amount, which is what a supplier_to_partner sells for';
    context.addIssue({ code: 'custom', path: ['we_are'], message });
  });

export type WrittenSettings = z.output<typeof settingsSchema>;
/** The shape of settings.json as users write it. */
export type SettingsFile = z.input<typeof settingsSchema>;

/** The issuer of the documents, with the content of the settings' logo. */
export interface Issuer extends Omit<WrittenSettings['issuer'], 'logo'> {
  readonly logo: Logo | null;
}
export interface Settings extends Omit<WrittenSettings, 'issuer'> {
  readonly issuer: Issuer;
  /** The file's instructions, if `instructions` contains those in force (documents/instructions.ts). */
  readonly file_instructions?: WrittenSettings['instructions'];
}

export const settingsFile = (environment: Environment): string => join(environment.home, 'settings.json');

export function readSettings(environment: Environment): Settings {
  const file = settingsFile(environment);
  const invalid = (problems: readonly FieldProblem[]) => refuse('settings_invalid', { file, problems });
  const settings = readFieldsFile(file, {
    schema: settingsSchema,
    parse: JSON.parse,
    invalid,
    missing: () => refuse('settings_missing', { file }),
  });
  const { issuer } = settings;
  // Checked now, so a document cannot fail later because of its logo.
  const logo = issuer.logo === '' ? null : readLogo(resolve(environment.home, issuer.logo));
  if (logo !== null && 'problem' in logo)
    throw invalid([{ path: 'issuer.logo', reason: `cannot be used: ${logo.problem}` }]);
  return { ...settings, issuer: { ...issuer, logo } };
}

/**
 * The settings for a long-running process: read again when settings.json changes. While a changed file is invalid, the
 * previous settings stay in effect.
 */
export function presentSettings(
  environment: Environment,
  first: Settings,
  read: (environment: Environment) => Settings,
): () => Settings {
  const file = settingsFile(environment);
  const changedAt = () => statSync(file, { throwIfNoEntry: false })?.mtimeMs;
  let settings = first;
  let readAt = changedAt();
  return () => {
    const at = changedAt();
    if (at === readAt) return settings;
    readAt = at;
    try {
      settings = read(environment);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
    }
    return settings;
  };
}

/** The public URL of the service, without a trailing slash; in a sandbox without one, that of `serve`. */
export const publicAddress = ({ public_url: url }: Pick<Settings, 'public_url'>): string =>
  url === '' ? 'http://127.0.0.1:8080' : url.replace(/\/+$/, '');
