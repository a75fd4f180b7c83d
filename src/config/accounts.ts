/**
 * Reads accounts.json, which maps our accounts to the general ledger's (docs/general-ledger.md). Refusals:
 * accounts_missing, accounts_invalid, file_unreadable.
 */
import { join } from 'node:path';
import { z } from 'zod';
import { refuse } from '#errors/refusals';
import { couldRun, isCurrency } from '#values';
import { Environment } from './environment.ts';
import { readFieldsFile } from './fields-file.ts';
import { line } from './validation.ts';

/**
 * A text for the files of the general-ledger program. Texts that a spreadsheet could run as a formula are refused. Our
 * other CSV files put an apostrophe in front instead, but the program would import the apostrophe as part of the name.
 */
const written = (max: number) =>
  line(max)
    .trim()
    .refine((text) => !couldRun(text), 'could be run by a spreadsheet as a formula: begin it with a letter or digit');
const name = (max = 200) => written(max).min(1, 'must not be empty');

const ruleSchema = z.strictObject({
  /** A control account such as `income:sales`, optionally with its subaccount: `assets:bank:0001`. */
  account: line(300).min(1, 'must not be empty'),
  partner: line(128).min(1).optional(),
  policy: line(128).min(1).optional(),
  currency: z.string().refine(isCurrency, 'must be an ISO 4217 currency').optional(),
  /** The general ledger's account, by name or number. */
  to: name(),
  /** Whether each partner has its own line, with the partner's name. The default is true for receivables. */
  by_partner: z.boolean().optional(),
  class: written(200).default(''),
  location: written(200).default(''),
});
export type AccountRule = z.output<typeof ruleSchema>;

/** A luxon date format. A journal is dated the last day of a month, so no program can mistake its day for the month. */
const dateFormat = z.enum(['yyyy-MM-dd', 'MM/dd/yyyy', 'dd/MM/yyyy', 'dd.MM.yyyy', 'd LLL yyyy']);

/** The control accounts of the journal. Bank lines can be booked to others. */
export const CONTROL_ACCOUNTS: Readonly<Record<string, string>> = {
  ...{ 'assets:receivable:billed': 'Billed receivables', 'assets:receivable:unbilled': 'Unbilled receivables' },
  ...{ 'assets:receivable:processor': 'Due from the processor', 'assets:bank': 'Bank' },
  ...{ 'assets:processor': 'Balance at the processor', 'assets:transfers': 'Transfers between bank accounts' },
  ...{ 'liabilities:unapplied': 'Unapplied cash', 'liabilities:partner-credit': 'Partner credit' },
  ...{
    'liabilities:tax': 'Tax',
    'liabilities:unearned': 'Unearned revenue',
    'income:sales': 'Sales',
    'income:adjustments': 'Adjustments',
  },
  ...{ 'income:interest': 'Interest', 'expenses:partner-cut': "Partners' cut", 'expenses:bad-debts': 'Bad debts' },
  ...{ 'expenses:bank-charges': 'Bank charges', 'expenses:processor-fees': 'Processor fees' },
  ...{ 'equity:conversion': 'Currency conversion', 'equity:opening-balances': 'Opening balances' },
};

export const accountsSchema = z
  .strictObject({
    accounts: z.array(ruleSchema).min(1, 'must name at least one account'),
    /** Partners' names in the general ledger, by partner_id. A partner without an entry keeps its own name. */
    names: z.record(z.string(), name()).default({}),
    unknown_payer: name().default('Unknown payer'),
    generic: z.strictObject({ date_format: dateFormat.default('yyyy-MM-dd') }).prefault({}),
    quickbooks: z.strictObject({ date_format: dateFormat.default('MM/dd/yyyy') }).prefault({}),
    xero: z
      .strictObject({
        date_format: dateFormat.default('d LLL yyyy'),
        /** The name of the tax rate on every line. The journal's amounts must not be taxed again. */
        tax_rate: name().default('Tax Exempt'),
        /** The names of the tracking categories for classes and locations. */
        class: name().default('Class'),
        location: name().default('Location'),
      })
      .prefault({}),
    netsuite: z
      .strictObject({ date_format: dateFormat.default('MM/dd/yyyy'), subsidiary: name().default('Parent Company') })
      .prefault({}),
  })
  .superRefine(({ accounts }, context) => {
    const known = new Set<string>();
    for (const [index, { account, partner, policy, currency }] of accounts.entries()) {
      const key = JSON.stringify([account, partner, policy, currency]);
      const message = 'maps the same postings as an earlier rule';
      if (known.has(key)) context.addIssue({ code: 'custom', path: ['accounts', index], message });
      known.add(key);
    }
  });
export type Accounts = z.output<typeof accountsSchema>;

/** Optional: without it, finance keeps its general ledger in a different way. */
export const accountsFile = ({ home }: Pick<Environment, 'home'>) => join(home, 'accounts.json');

export function readAccounts(environment: Pick<Environment, 'home'>): Accounts {
  const file = accountsFile(environment);
  return readFieldsFile(file, {
    schema: accountsSchema,
    parse: JSON.parse,
    invalid: (problems) => refuse('accounts_invalid', { file, problems }),
    missing: () => refuse('accounts_missing', { file }),
  });
}

export const storedAccounts = (stored: unknown): Accounts => accountsSchema.parse(stored);
