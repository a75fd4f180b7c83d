import { basename } from 'node:path';
import { fieldName } from '#field-names';
import { SEE, toDo, toRun } from '#remedy';
import { moneyText, plural } from '#values';
import { badInput, bullets, FieldProblem, inFieldWords, refused, says } from './definition.ts';

const PROGRAMS: Readonly<Record<string, string>> = { quickbooks: 'QuickBooks', xero: 'Xero', netsuite: 'NetSuite' };

/** The lines that are named, so that a message can be read. */
const MOST_LINES = 20;

export const GENERAL_LEDGER = {
  accounts_missing: refused<{ file: string }>((f) =>
    says(
      `${basename(f.file)} is missing. It maps our accounts to those of the general ledger. Map them in the console's ` +
        'settings, or write the file as docs/general-ledger.md shows.',
      toDo('Map the accounts', 'settings.adopt', { section: 'accounts' }),
    ),
  ),
  accounts_invalid: badInput<{ file: string; problems: readonly FieldProblem[] }>(
    (f) => `${basename(f.file)} cannot be used:\n${bullets(f.problems.map(inFieldWords))}\nCorrect it, then try again.`,
  ),
  accounts_unmapped: refused<{ month: string; accounts: readonly string[] }>((f) =>
    says(
      `${f.month} was not exported: no account of the general ledger is given for\n` +
        `${f.accounts.map((account) => `  ${account}`).join('\n')}\n` +
        'Add a rule for each to the accounts, as docs/general-ledger.md shows, then export it again.',
      toDo('Map the accounts', 'settings.adopt', { section: 'accounts' }),
    ),
  ),
  books_open: refused<{ month: string }>((f) =>
    says(
      `The books of ${f.month} are open, so its journal can still change. To export it now, add ` +
        `${fieldName('preliminary')}; once the books are closed, another export gives the changes.`,
      toDo('Close them first', 'books.close', { month: f.month }),
    ),
  ),
  gl_lines_unusable: badInput<{
    month: string;
    format: string;
    lines: readonly Readonly<Record<'account' | 'name' | 'amount' | 'currency' | 'reason', string>>[];
  }>(
    (f) =>
      `${f.month} was not exported, because ${PROGRAMS[f.format] ?? f.format} cannot import ${plural(f.lines.length, 'line')}:\n` +
      `${f.lines
        .slice(0, MOST_LINES)
        .map((line) => {
          const of = [line.account, line.name].filter(Boolean).join(', ');
          return `  ${of}, ${moneyText(line.amount, line.currency)}: ${line.reason}\n`;
        })
        .join('')}` +
      `Shorten the texts in the accounts and in "names". For amounts, export the month with ` +
      `${fieldName('format', 'generic')}, which has them exactly, and enter them as your accountant decides.`,
  ),
  gl_name_unusable: refused<{ partners: readonly string[] }>(
    (f) =>
      `Nothing was exported: a spreadsheet could run the name of ${f.partners.join(', ')} as a formula. Give their ` +
      'general-ledger names under "names" in accounts.json.',
  ),
  gl_names_shared: refused<{ shared: readonly { name: string; partners: readonly (string | null)[] }[] }>(
    (f) =>
      'Nothing was exported: partners with the same name would become one customer in the general ledger.\n' +
      `${f.shared.map(({ name, partners }) => `  ${name}: ${partners.map((id) => id ?? 'unknown_payer').join(', ')}`).join('\n')}\n` +
      'Under "names" in accounts.json, give each partner its own name, or the same name if they are one customer.',
  ),
  gl_not_exported: refused<{ month: string; format: string }>(
    (f) =>
      `${f.month} was never exported as ${f.format}, so nothing can move to other accounts. Run the command without ` +
      `${fieldName('reclassify')}.`,
  ),
  gl_part_unknown: badInput<{ month: string; format: string; part: number; parts: number }>((f) =>
    says(
      `${f.month} has no part ${f.part} as ${f.format}: ${f.parts === 0 ? 'it was not exported' : `it has ${f.parts}`}.`,
      { ...toRun('See what was exported', 'gl list', '/console/reports/general-ledger'), ofAll: true },
    ),
  ),
  gl_not_tied: refused<{ month: string; accounts: readonly string[] }>((f) =>
    says(
      `Nothing was exported: the postings of ${f.month} differ from its trial balance in ${f.accounts.join(', ')}.`,
      SEE.differences,
    ),
  ),
} as const;
