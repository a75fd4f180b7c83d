/** Reads settings.json and checks the whole file. Refusals: settings_missing, settings_invalid. */
import { statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { FieldProblem, Refusal, refuse } from '#errors/refusals';
import { fieldWords } from '#field-names';
import { paymentLinkSchema } from '#processors/links/providers';
import { PROCESSORS } from '#processors/processors';
import { amountProblem, isCurrency, isTimeZone, minorDigits } from '#values';
import { Accounts, accountsSchema } from './accounts.ts';
import { bankCsvSchema, PLAIN_BANK_CSV } from './bank-csv.ts';
import { consoleSchema } from './console.ts';
import { eInvoiceSellerSchema } from './e-invoice.ts';
import { Environment } from './environment.ts';
import { readFieldsFile } from './fields-file.ts';
import { instructionsSchema } from './instructions.ts';
import { Logo, readLogo } from './logo.ts';
import { taxSchema } from './tax.ts';
import { addressSchema, emailAddress, line, optional } from './validation.ts';

const currencyOrAny = z.string().refine((key) => key === '*' || isCurrency(key), "must be an ISO 4217 currency or '*'");

/** Amounts by currency are at least zero, with at most the currency's digits. */
function checkAmounts(amounts: Readonly<Record<string, string>>, context: z.RefinementCtx) {
  for (const [currency, amount] of Object.entries(amounts)) {
    const problem = amountProblem(amount, minorDigits(currency) ?? 0);
    const reason = problem?.reason ?? (amount.startsWith('-') ? 'is below zero' : undefined);
    if (reason !== undefined) context.addIssue({ code: 'custom', path: [currency], message: reason });
  }
}

const amountsByCurrency = z
  .record(z.string().refine(isCurrency, 'must be an ISO 4217 currency'), z.string())
  .superRefine(checkAmounts);

const percentWith = (decimals: number) =>
  z
    .string()
    .refine(
      (text) => amountProblem(text, decimals) === undefined && Number(text) >= 0 && Number(text) <= 100,
      `must be a number from 0 to 100 with at most ${decimals} decimals, such as 2 or 1.5`,
    );

/**
 * When an action needs approval. With `always`, for any amount. So does `{}`, but the settings history does not show
 * empty objects.
 */
const rule = z
  .strictObject({ above: amountsByCurrency.optional(), always: z.literal(true).optional() })
  .transform(({ above: amounts = {}, always }) =>
    always || Object.keys(amounts).length === 0 ? ({ always: true } as const) : { above: amounts },
  );

/** The keys are names of actions, or `adjustments`. actions/rules.ts checks the keys. */
const approvalsSchema = z.record(z.string(), rule);

export type ApprovalRule = z.output<typeof rule>;

/** The largest shortfall that may become bank charges, by currency and as a percentage of the amount owed. */
const smallDifferenceSchema = z
  .record(
    z.string().refine((key) => key === 'percent' || isCurrency(key), "must be an ISO 4217 currency or 'percent'"),
    z.string(),
  )
  .superRefine(({ percent, ...amounts }, context) => {
    const problem = percent === undefined ? undefined : percentWith(2).safeParse(percent).error?.issues[0];
    if (problem !== undefined) context.addIssue({ code: 'custom', path: ['percent'], message: problem.message });
    checkAmounts(amounts, context);
  });

const percent = percentWith(4);
const lossRatesSchema = z.strictObject({
  ...{ not_due: percent, days_1_30: percent, days_31_60: percent, days_61_90: percent, over_90: percent },
});

/**
 * Above an amount in its currency, or a multiple of the partner's largest earlier invoice, a close holds a document.
 */
const holdsSchema = z.strictObject({
  above: amountsByCurrency.default({}),
  times: z
    .string()
    .regex(/^[1-9]\d{0,5}(\.\d{1,4})?$/, 'must be a decimal from 1, such as "3" or "2.5"')
    .nullable()
    .default(null),
});

/**
 * Ceilings of the reversals of a partner and posting month that are recorded without a person: our share of them in a
 * currency, and its part of our share of the month's sales.
 */
const reversalsSchema = z.strictObject({
  above: amountsByCurrency.default({}),
  share: z
    .string()
    .regex(/^0\.\d{1,4}$|^1$/, 'must be a part of the month\'s sales, such as "0.25"')
    .nullable()
    .default(null),
});

/** An IPv4 or IPv6 address or network: `203.0.113.7` or `203.0.113.0/24`. */
const network = z.union(
  [z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()],
  'must be an address or a network such as 10.0.0.0/8',
);

const DOMAIN = /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/i;

const httpSchema = z.strictObject({
  /** Networks that may call /api; empty: all (service.md 5.7). */
  allow: z.array(network).default([]),
  /** Proxies whose X-Forwarded-For is trusted. */
  trust_proxy: z.array(network).default([]),
  /** The limit applies to each API client, and to each address that sends no token. */
  requests_per_minute: z.int().min(1).max(10_000_000).default(6000),
  /** Days for which an invoice's page stays online after it was paid or voided; null: without limit. */
  payment_page_days: z.int().min(0).max(3660).nullable().default(90),
  /** Networks that may read /metrics. */
  metrics_allow: z
    .array(network)
    .default(['127.0.0.0/8', '::1', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7']),
});

const quotesSchema = z.strictObject({
  /** Days for which a quote or requote can be accepted; null: without limit. */
  valid_days: z.int().min(1).max(366).nullable().default(30),
  /** In major units by currency (`*` for any other). */
  largest_price: z
    .record(currencyOrAny, z.string().regex(/^[1-9]\d{0,14}$/, 'must be a whole amount such as "1000000"'))
    .default({ '*': '1000000' }),
});

/** Days; null: without limit. The database refuses to delete data less than 30 days old. */
const retentionSchema = z.strictObject({
  /** The days are counted from the expiry of a quote or requote that was not accepted. */
  quotes_days: z.int().min(30).max(3660).nullable().default(90),
  /** The days are counted from the receipt of the processor event. */
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
      e_invoice: eInvoiceSellerSchema.optional(),
      /** A PNG or JPEG file, relative to RECKONER_HOME. */
      logo: line(1000).default(''),
    }),
    time_zone: z.string().refine(isTimeZone, 'must be an IANA time zone such as America/New_York'),
    /** Confirms that production's ledger is in the embedded server. Otherwise, production requires DATABASE_URL. */
    database: z.enum(['', 'embedded']).default(''),
    payment_terms_days: z.int().min(0).max(365).default(30),
    public_url: optional(z.url({ protocol: /^https?$/ })).default(''),
    mail_from: optional(emailAddress).default(''),
    reply_to: optional(emailAddress).default(''),
    finance_email: optional(emailAddress).default(''),
    auditor_email: optional(emailAddress).default(''),
    operations_email: optional(emailAddress).default(''),
    /** In /.well-known/security.txt: an e-mail address or an https URL; empty: the issuer's address. */
    security_contact: optional(z.union([emailAddress, z.url({ protocol: /^https$/ })])).default(''),
    /** RFC 3161. An authority signs its responses, so plain http is enough. */
    time_stamping_url: optional(z.url({ protocol: /^https?$/ })).default(''),
    /** An empty domain means that of mail_from. */
    dkim: z
      .strictObject({
        domain: optional(z.string().regex(DOMAIN, 'must be a domain such as protection.example')).default(''),
        selector: z.string().regex(DOMAIN, 'must be a name such as reckoner').default('reckoner'),
      })
      .prefault({}),
    sandbox_recipients: z.array(z.string().min(2).max(254)).default(['.example', '.test']),
    instructions: z.record(currencyOrAny, instructionsSchema).check(({ value, issues }) => {
      for (const [currency, { ach }] of Object.entries(value)) {
        if (ach === undefined || currency === 'USD' || currency === '*') continue;
        const message = 'ACH is for US dollars only: omit it here';
        issues.push({ code: 'custom', path: [currency, 'ach'], message, input: currency });
      }
    }),
    /**
     * The day of the following month on which the job month-close closes a month's books; null: only the command does.
     */
    books_close_day: z.int().min(1).max(28).nullable().default(null),
    /** Bank accounts that no longer report, with the reason. The close of the books does not wait for them. */
    ended_bank_accounts: z.record(z.string().min(1).max(60), line().min(1)).default({}),
    payment_link: paymentLinkSchema.default({ provider: 'page' }),
    bank_csv: z.record(z.string().min(1).max(60), bankCsvSchema).prefault({ plain: PLAIN_BANK_CSV }),
    small_difference: smallDifferenceSchema.default({}),
    /** The expected losses of open invoices, in percent by days overdue. Null: `report reserve` has no reserve. */
    loss_rates: lossRatesSchema.nullable().default(null),
    /** What a close holds for review by finance. */
    holds: holdsSchema.prefault({}),
    /** Above which sums a partner's reversals of a month wait for a person. */
    reversals: reversalsSchema.prefault({}),
    /** In bank lines that are payouts of the processor. */
    payout_names: z.array(z.string().min(3).max(60)).default(PROCESSORS.map(({ bankName }) => bankName)),
    /**
     * Codes of the bank's own charges, as BAI2 types or as sub-families of ISO 20022. Debits with such a code are
     * booked to bank charges at import.
     */
    bank_charge_codes: z
      .array(z.string().regex(/^[A-Za-z0-9]{3,10}$/, 'must be a code such as 698 or CHRG'))
      .default(['524', '564', '567', '661', '698', 'CHRG', 'COMM', 'FEES']),
    /** Partners for which a month may close without rows. `true`: all. */
    allow_empty: z.union([z.boolean(), z.array(line(128))]).default(false),
    /**
     * The checkpoints for which the auditor gets a letter: only checkpoints that close a month, or every checkpoint.
     */
    checkpoint_letters: z.enum(['monthly', 'every']).default('monthly'),
    /** Verifier keys, NAME+ID+KEY, of witnesses whose signatures under checkpoints are recorded. */
    witnesses: z.array(line(400)).default([]),
    /** Dunning levels: days after the due date, or before it if negative. */
    reminders: z.array(z.int().min(-90).max(365)).max(20).default([-7, 0, 7, 21, 45]),
    /** The smallest sum of a reminder, by currency (`*` for any other currency). */
    reminder_minimum: z.record(currencyOrAny, z.string()).default({ '*': '1' }).superRefine(checkAmounts),
    /** Whether the payer gets an e-mail receipt for a payment that pays invoices. */
    payment_receipts: z.boolean().default(true),
    refund_notices: z.boolean().default(true),
    /**
     * The open credit that is applied to an invoice at issue: all, only that of net-negative months, or none. `credit
     * apply` or a payment that refers to it applies the rest.
     */
    credit_at_close: z.enum(['all', 'months', 'none']).default('all'),
    /** Whether we are the principal, or supply partners who sell at their own price (docs/settings.md). */
    we_are: z.enum(['supplier_to_partner', 'principal']).default('supplier_to_partner'),
    /** When sales are income: in the month that bills them, or over the days of their cover (docs/revenue.md). */
    recognition: z.enum(['at_sale', 'over_cover']).default('at_sale'),
    /** docs/tax.md; null: documents state no tax. */
    tax: taxSchema.nullable().default(null),
    partner_id_header: z
      .string()
      .regex(/^[A-Za-z0-9-]+$/, 'must be the name of an HTTP header')
      .default('X-Service-Partner-Id'),
    quotes: quotesSchema.prefault({}),
    retention: retentionSchema.prefault({}),
    /**
     * The stores for the rows of old months, by name: `parquet`, a folder, absolute or relative to RECKONER_HOME, or
     * `citus`, a schema in the cluster of CITUS_URL.
     */
    archive: z
      .record(
        z.string().regex(/^[a-z][a-z0-9-]{0,30}$/, 'must be a name such as cold'),
        z
          .strictObject({ parquet: line(1000).min(1).optional(), citus: line(60).min(1).optional() })
          .refine((store) => Object.keys(store).length === 1, 'must have either parquet or citus'),
      )
      .default({}),
    http: httpSchema.prefault({}),
    console: consoleSchema.prefault({}),
    /** The actions that need approval, by name, and the rule for adjustments. */
    approvals: approvalsSchema.default({}),
    approvals_expire_days: z.int().min(1).max(366).default(14),
  })
  .superRefine(({ we_are: weAre, tax, recognition }, context) => {
    if (weAre !== 'principal') return;
    const complain = (path: string, message: string) => context.addIssue({ code: 'custom', path: [path], message });
    if (tax !== null) {
      complain(
        'we_are',
        'cannot be principal where tax is configured: a principal owes tax on the whole price, and tax is calculated on ' +
          'the invoice amount, which is what a supplier_to_partner sells for',
      );
    }
    if (recognition === 'over_cover') {
      complain(
        'recognition',
        "cannot be over_cover where we_are is principal: the partners' cuts would be costs of later months, and only " +
          'the sales of a supplier_to_partner are divided',
      );
    }
  });

export type WrittenSettings = z.output<typeof settingsSchema>;
/** settings.json as users write it, without defaults. */
export type SettingsFile = z.input<typeof settingsSchema>;

/** The issuer with the content of its logo. */
export interface Issuer extends Omit<WrittenSettings['issuer'], 'logo'> {
  readonly logo: Logo | null;
}
export interface Settings extends Omit<WrittenSettings, 'issuer'> {
  readonly issuer: Issuer;
  /** The map of the general ledger, if one was adopted. Until then, accounts.json is in force. */
  readonly accounts?: Accounts;
  readonly sections?: Sections;
}

/** The sections that are in force once adopted (people/settings-in-force.ts), and what they are called. */
export const SECTION_NAMES = [
  ...(['instructions', 'approvals', 'tax', 'holds', 'reminders', 'reminder_minimum', 'small_difference'] as const),
  ...(['reversals', 'accounts'] as const),
] as const;
export type Section = (typeof SECTION_NAMES)[number];
export const SECTIONS = Object.fromEntries(SECTION_NAMES.map((name) => [name, fieldWords(name)])) as Readonly<
  Record<Section, string>
>;

export type Sections = Readonly<{
  adopted: readonly Section[];
  /** What the files stated when another value was adopted. */
  replaced?: Readonly<Partial<Record<Section, unknown>>>;
  /** What settings.json states. A section that it leaves out proposes nothing. */
  file: Partial<Omit<WrittenSettings, 'issuer'>>;
}>;

export const sectionSchema = (section: Section): z.ZodType<object | null> =>
  section === 'accounts' ? accountsSchema : settingsSchema.shape[section];

export const settingsFile = (environment: Environment) => join(environment.home, 'settings.json');

export function readSettings(environment: Environment): Settings {
  const file = settingsFile(environment);
  const invalid = (problems: readonly FieldProblem[]) => refuse('settings_invalid', { file, problems });
  let stated: readonly string[] = [];
  const settings = readFieldsFile(file, {
    schema: settingsSchema,
    parse(text) {
      const json: unknown = JSON.parse(text);
      stated = Object.keys(Object(json));
      return json;
    },
    invalid,
    missing: () => refuse('settings_missing', { file }),
  });
  const { issuer } = settings;
  // Now, so that no document can fail later because of it.
  const logo = issuer.logo === '' ? null : readLogo(resolve(environment.home, issuer.logo));
  if (logo !== null && 'problem' in logo)
    throw invalid([{ path: 'issuer.logo', reason: `cannot be used: ${logo.problem}` }]);
  const sections = Object.fromEntries(Object.entries(settings).filter(([name]) => stated.includes(name)));
  return { ...settings, issuer: { ...issuer, logo }, sections: { adopted: [], file: sections } };
}

/**
 * The settings for a long-running process, read again when settings.json has changed. While it is invalid, the previous
 * settings stay in effect.
 */
export function presentSettings(
  environment: Environment,
  first: Settings,
  read: (environment: Environment) => Settings,
) {
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

/** The public URL without a trailing slash. Without public_url, the address of `serve`, for a sandbox. */
export const publicAddress = ({ public_url: url }: Pick<Settings, 'public_url'>) =>
  url === '' ? 'http://127.0.0.1:8080' : url.replace(/\/+$/, '');
