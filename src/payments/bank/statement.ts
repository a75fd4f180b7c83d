/**
 * What every reader of bank files gives: statements of one account each, with their lines, checked against the totals
 * and balances that the file itself states. Refusals of all readers: bank_file_invalid, bank_file_totals.
 */
import { createHash } from 'node:crypto';
import { type FieldProblem, refuse } from '../../errors/refusals.ts';
import type { Amount } from '../../money.ts';

export interface BankStatement {
  /** IBAN or account number as the bank writes it, without spaces. */
  readonly account: string;
  readonly currency: string;
  /** The bank's name for the statement; empty where it has none. */
  readonly reference: string;
  readonly opening: Amount | undefined;
  readonly closing: Amount | undefined;
  readonly lines: readonly BankLine[];
  /** Entries that the bank has announced but not booked: they come again when they are. */
  readonly pending: number;
}

/** A text that may hold a document's number, and where it stood. */
export interface ReferenceField {
  /** In the words of the format: `EndToEndId`, `customer reference`, `text`. */
  readonly field: string;
  readonly text: string;
}

export interface BankLine {
  /** Where it stands in the file: physical line, or the entry's place in its statement. */
  readonly position: number;
  /** `YYYY-MM-DD`: the day on which the bank booked it. */
  readonly booked_on: string;
  readonly value_on: string | undefined;
  readonly direction: 'credit' | 'debit';
  readonly amount: Amount;
  /** The bank's own reference; undefined where it gives none. */
  readonly bank_reference: string | undefined;
  /** The fields in which a reference hides, the most telling first. */
  readonly references: readonly ReferenceField[];
  /** For people. */
  readonly text: string;
  readonly payer_name: string | undefined;
  /** IBAN, account or ACH company id: what makes two payments come from the same payer. */
  readonly payer_account: string | undefined;
  /** The format's own code for what kind of movement it is. */
  readonly type: string;
  /** It takes an earlier movement back. */
  readonly reversal: boolean;
  /** Why a debit was returned, R01 and so on. */
  readonly return_code: string | undefined;
  readonly raw: string;
}

/** The file is not of its format, at these places. */
export const invalidFile = (file: string, problems: readonly FieldProblem[]) =>
  refuse('bank_file_invalid', { file, problems });

/** What the file states, beside what its lines give. */
export class Totals {
  private readonly problems: FieldProblem[] = [];

  /** Compares texts of figures: a difference refuses the whole file. */
  expect(path: string, stated: string | undefined, found: string): void {
    if (stated !== undefined && stated !== found) {
      this.problems.push({ path, reason: `the file states ${stated}, its records give ${found}` });
    }
  }

  refuse(file: string): void {
    if (this.problems.length > 0) throw refuse('bank_file_totals', { file, problems: this.problems });
  }
}

const LETTERS_AND_DIGITS = /[^A-Z0-9]/g;

/** A reference as it is compared: capitals and digits alone. */
export const normalizeReference = (text: string): string => text.toUpperCase().replace(LETTERS_AND_DIGITS, '');

/** References that banks write where there is none. */
const NO_REFERENCE = new Set(['', 'NOTPROVIDED', 'NOTAVAILABLE', 'NONREF', 'NOREF', 'NONE', 'NA', 'UNKNOWN']);

/** The reference, or undefined where what stands there is none: empty, NOTPROVIDED, zeros. */
export function meaningful(text: string | undefined): string | undefined {
  const trimmed = (text ?? '').trim();
  const plain = normalizeReference(trimmed);
  return NO_REFERENCE.has(plain) || /^0*$/.test(plain) ? undefined : trimmed;
}

/**
 * The names by which a statement's lines are known, in their order. A line is known by its bank reference together with
 * its day, direction and amount: banks repeat a reference on what they take back and on the parts of a batch. Without a
 * reference its text takes that place. Lines that are equal in all of it are told apart by counting.
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

const digest = (parts: readonly string[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 24);
