/**
 * The result of every bank format: bank statements of one account each, with their lines, checked against the file's
 * totals and balances. Refusals of all formats: bank_file_invalid, bank_file_totals.
 */
import { createHash } from 'node:crypto';
import { type FieldProblem, refuse } from '../../errors/refusals.ts';
import type { Amount } from '../../money.ts';
import { PROBLEMS_TOLD } from '../../reading/limits.ts';
import type { Method } from '../enums.ts';

export interface BankStatement {
  /** IBAN or account number as the bank writes it, without spaces. */
  readonly account: string;
  readonly currency: string;
  /** The bank's name for the statement; empty if it has none. */
  readonly reference: string;
  readonly opening: Amount | undefined;
  readonly closing: Amount | undefined;
  /** `YYYY-MM-DD`: the last day that the statement covers; undefined if only its lines show it. */
  readonly closed_on: string | undefined;
  readonly lines: readonly BankLine[];
  /** Entries announced but not booked. They are skipped; a later file has them booked. */
  readonly pending: number;
}

/** A remittance text that may contain a document number, and the field it comes from. */
export interface ReferenceField {
  /** The format's name for it: `EndToEndId`, `customer reference`, `text`. */
  readonly field: string;
  readonly text: string;
}

export interface BankLine {
  /** Its place in the file: the line, or the entry's place in its statement. */
  readonly position: number;
  /** `YYYY-MM-DD`: the day on which the bank booked it. */
  readonly booked_on: string;
  readonly value_on: string | undefined;
  readonly direction: 'credit' | 'debit';
  readonly amount: Amount;
  /** The bank's own reference; undefined if it gives none. */
  readonly bank_reference: string | undefined;
  /** The remittance fields, the most reliable first. */
  readonly references: readonly ReferenceField[];
  /** Everything that the bank wrote. */
  readonly text: string;
  readonly payer_name: string | undefined;
  /** IBAN, account or ACH company id: two payments with the same one come from the same payer. */
  readonly payer_account: string | undefined;
  /** The format's transaction code. */
  readonly type: string;
  /** How it was paid, according to the format's codes or else to `methodInWords`. */
  readonly method: Method;
  /** Whether it reverses an earlier transaction. */
  readonly reversal: boolean;
  /** Why a debit was returned, R01 and so on. */
  readonly return_code: string | undefined;
  readonly raw: string;
}

/** The refusal of a file that does not follow its format or column map. Lists the first problems, each once. */
export const invalidFile = (file: string, problems: readonly FieldProblem[], map?: string) =>
  refuse('bank_file_invalid', { file, problems: distinct(problems), ...(map !== undefined && { map }) });

/** If an entry has one transaction, both state the amount. An error in the amount is then one problem, not two. */
const distinct = (problems: readonly FieldProblem[]): FieldProblem[] =>
  [...new Map(problems.map((each) => [`${each.path}\n${each.reason}`, each])).values()].slice(0, PROBLEMS_TOLD);

/** Compares a file's stated totals with the sums of its lines. */
export class Totals {
  private readonly problems: FieldProblem[] = [];

  /** Compares figures as text. If they differ, the whole file is refused. */
  expect(path: string, stated: string | undefined, found: string): void {
    if (stated !== undefined && stated !== found) {
      this.problems.push({ path, reason: `the file states ${stated}, its records give ${found}` });
    }
  }

  refuse(file: string): void {
    if (this.problems.length > 0) {
      throw refuse('bank_file_totals', { file, problems: this.problems.slice(0, PROBLEMS_TOLD) });
    }
  }
}

const NEITHER_LETTER_NOR_DIGIT = /[^A-Z0-9]/g;

/** A reference for comparison: only letters, in capitals, and digits. */
export const normalizeReference = (text: string): string => text.toUpperCase().replace(NEITHER_LETTER_NOR_DIGIT, '');

/** The words that banks write when there is no reference. */
const NO_REFERENCE = new Set(['', 'NOTPROVIDED', 'NOTAVAILABLE', 'NONREF', 'NOREF', 'NONE', 'NA', 'UNKNOWN']);

/** The text; undefined if it means that there is none: empty, NOTPROVIDED, zeros. */
export function meaningful(text: string | undefined): string | undefined {
  const trimmed = (text ?? '').trim();
  const plain = normalizeReference(trimmed);
  return NO_REFERENCE.has(plain) || /^0*$/.test(plain) ? undefined : trimmed;
}

/** Remittance fields as references. Empty ones are dropped, and each is listed once. */
export function references(fields: readonly (readonly [field: string, text: string | undefined])[]): ReferenceField[] {
  const found = new Map<string, ReferenceField>();
  for (const [field, content] of fields) {
    const text = meaningful(content);
    if (text !== undefined) found.set(`${field} ${text}`, { field, text });
  }
  return [...found.values()];
}

/**
 * The identities of an account's lines, in their order: bank reference, day, direction and amount. The reference alone
 * is not enough, because banks repeat it on reversals and on the parts of a batch. Without a reference, the text is
 * used. Completely equal lines are counted.
 */
export function lineIdentities(lines: readonly BankLine[]): string[] {
  const seen = new Map<string, number>();
  return lines.map((line) => {
    const own = line.bank_reference ?? `text ${digest([line.text, line.payer_name ?? '', line.type])}`;
    const name = [own, line.booked_on, line.direction, line.amount.toString()].join('|');
    const count = (seen.get(name) ?? 0) + 1;
    seen.set(name, count);
    return count === 1 ? name : `${name}|${count}`;
  });
}

/** The payment method in a bank's words. */
export function methodInWords(...texts: readonly string[]): Method {
  const words = texts.join(' ').toUpperCase();
  if (/\bACH\b/.test(words)) return 'ach';
  return /\bWIRE\b|FEDWIRE|SWIFT/.test(words) ? 'wire' : 'other';
}

const digest = (parts: readonly string[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 24);
