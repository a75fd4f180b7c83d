/**
 * The result of every bank format: bank statements, each of one account, with their lines. A format checks the totals
 * and balances in its file. Refusals of all formats: bank_file_invalid, bank_file_totals.
 */
import { createHash } from 'node:crypto';
import { FieldProblem, refuse } from '#errors/refusals';
import { Method } from '#payments/enums';
import { PROBLEMS_TOLD } from '#reading/limits';
import { List } from '#reading/packed-list';
import { Amount, amountProblem, isDate, minorDigits } from '#values';

export type BankLines = List<BankLine>;

export type BankStatement<Lines = readonly BankLine[]> = Readonly<{
  /** The IBAN or account number from the bank, without spaces. */
  account: string;
  currency: string;
  /** The reference is empty if the bank gives none. */
  reference: string;
  opening: Amount | undefined;
  closing: Amount | undefined;
  /**
   * `YYYY-MM-DD`: the last day of the statement. Undefined if the file has no date of the statement, only dates of
   * lines.
   */
  closed_on: string | undefined;
  lines: Lines;
  /**
   * The number of entries that are announced but not booked. Announced entries are skipped, because a later file
   * contains them as booked entries.
   */
  pending: number;
  /** Sentences on what the file says or lacks, and what was not recorded for that reason. */
  remarks?: readonly string[];
  /**
   * `interim`: an intraday report, whose entries a later statement books. `details`: the parts of entries that a
   * statement books. The lines of both are shown and not recorded.
   */
  only?: 'interim' | 'details';
}>;

/**
 * What a format yields, so that a large file is never in memory as a whole: the lines of each statement, and each
 * statement after its lines. `of` is the number of the statement, and `at` the number of bytes that were read.
 */
export type BankPart = Readonly<{ of: number; at?: number }> &
  (Readonly<{ line: BankLine }> | Readonly<{ statement: Omit<BankStatement, 'lines'> }>);

export function statementsOf(parts: Iterable<BankPart>): BankStatement[] {
  const lines = new Map<number, BankLine[]>();
  const statements: BankStatement[] = [];
  for (const part of parts) {
    if ('statement' in part) statements.push({ ...part.statement, lines: lines.get(part.of) ?? [] });
    else {
      const those = lines.get(part.of);
      if (those === undefined) lines.set(part.of, [part.line]);
      else those.push(part.line);
    }
  }
  return statements;
}

/** A remittance text that may contain a document number. */
export type ReferenceField = Readonly<{
  /** The name of the field in the format: `EndToEndId`, `customer reference`, `text`. */
  field: string;
  text: string;
  /** What the payer says that it pays of the document, as a decimal in the line's currency. */
  amount?: string;
}>;

export type BankLine = Readonly<{
  /** The number of the line, or of the entry, in the file. */
  position: number;
  /** If an entry becomes several lines: the number of this one. */
  part?: number;
  booked_on: string;
  value_on: string | undefined;
  direction: 'credit' | 'debit';
  amount: Amount;
  bank_reference: string | undefined;
  /** The bank's reference of the whole entry, if the line is a part of the entry. */
  entry_reference?: string | undefined;
  /** Amounts beside the booked one, such as the instructed amount and the exchange rate. Recorded with the references. */
  particulars?: readonly ReferenceField[];
  /** The remittance fields, the most reliable first. */
  references: readonly ReferenceField[];
  text: string;
  payer_name: string | undefined;
  /** The parties for whom the payer pays, such as the ultimate debtor. */
  behind?: readonly string[];
  /** What banks deducted on the way, by the amount that the payer instructed. The line's own bank states no charges. */
  deducted?: Amount;
  /** The IBAN, account number or ACH company id of the payer. Payments with an equal value come from the same payer. */
  payer_account: string | undefined;
  type: string;
  method: Method;
  reversal: boolean;
  /** The reason code of a returned debit, such as R01. */
  return_code: string | undefined;
  /** Why its payment is not applied, although it is new. */
  held?: string;
  raw: string;
}>;

/** Returns the refusal of a file that does not follow its format or column map, with the first problems, each once. */
export const invalidFile = (file: string, problems: readonly FieldProblem[], map?: string) =>
  refuse('bank_file_invalid', { file, problems: distinct(problems), ...(map !== undefined && { map }) });

/** An entry with one transaction states its amount twice. An error in this amount is reported only once. */
const distinct = (problems: readonly FieldProblem[]) =>
  [...new Map(problems.map((each) => [`${each.path}\n${each.reason}`, each])).values()].slice(0, PROBLEMS_TOLD);

/**
 * Whether a text such as `1.500` or `1,500` may be fifteen hundred as well as one and a half, as no currency with fewer
 * than three decimals needs three of them.
 */
export const isAmbiguousAmount = (written: string, currency: string) =>
  (minorDigits(currency) as number) < 3 && /^[+-]?[1-9]\d{0,2}(?:[.,]\d{3})+$/.test(written);

export const ambiguousAmount = (written: string) => `'${written}' may have thousands or decimals after its separator`;

/** Returns an amount without its sign, which has a comma or a point before its decimals, or why it is none. */
export function amountIn(currency: string, written: string): Amount | string {
  if (isAmbiguousAmount(written, currency)) return ambiguousAmount(written);
  return decimalIn(currency, written, /^[+-]?(\d*)(?:[.,](\d*))?$/);
}

/** Returns an amount of this form, which has its digits before and after the point as groups, or why it is none. */
export function decimalIn(currency: string, written: string, form: RegExp): Amount | string {
  const [, whole = '', fraction = ''] = form.exec(written) ?? [];
  const decimal = `${whole || '0'}${fraction === '' ? '' : `.${fraction}`}`;
  return /\d/.test(whole + fraction) && amountProblem(decimal, minorDigits(currency) as number) === undefined
    ? Amount.of(decimal, currency)
    : `'${written}' is not an amount in ${currency}`;
}

/** Says of a statement that lacks a balance how its sum was checked. */
export function balanceRemarks(
  { account, opening, closing }: Pick<BankStatement, 'account' | 'opening' | 'closing'>,
  proof = '',
): string[] {
  const missing = [opening ?? 'opening', closing ?? 'closing'].filter((each) => typeof each === 'string').join(' or ');
  const checked = proof === '' ? 'its sum was not checked' : `its sum was only checked by ${proof}`;
  return missing === '' ? [] : [`The statement of ${account} has no ${missing} balance, so ${checked}.`];
}

export class Totals {
  private readonly problems: FieldProblem[] = [];

  /** Compares figures as text. If the figures differ, the whole file is refused. */
  expect(path: string, stated: string | undefined, found: string) {
    if (stated !== undefined && stated !== found) {
      this.problems.push({ path, reason: `the file states ${stated}, its records give ${found}` });
    }
  }

  /** Whether no figure differs. */
  get agree() {
    return this.problems.length === 0;
  }

  refuse(file: string) {
    if (this.problems.length > 0) {
      throw refuse('bank_file_totals', { file, problems: this.problems.slice(0, PROBLEMS_TOLD) });
    }
  }
}

const NEITHER_LETTER_NOR_DIGIT = /[^A-Z0-9]/g;

/** Keeps only the letters (as capitals) and the digits of a reference. */
export const normalizeReference = (text: string) => text.toUpperCase().replace(NEITHER_LETTER_NOR_DIGIT, '');

const NO_REFERENCE = new Set(['', 'NOTPROVIDED', 'NOTAVAILABLE', 'NONREF', 'NOREF', 'NONE', 'NA', 'UNKNOWN']);

/** Returns the text, or undefined if the text means "none": empty, NOTPROVIDED, or only zeros. */
export function meaningful(text: string | undefined) {
  const trimmed = (text ?? '').trim();
  const plain = normalizeReference(trimmed);
  return NO_REFERENCE.has(plain) || /^0*$/.test(plain) ? undefined : trimmed;
}

export function references(
  fields: readonly (readonly [field: string, text: string | undefined, amount?: string])[],
): ReferenceField[] {
  const found = new Map<string, ReferenceField>();
  for (const [field, content, amount] of fields) {
    const text = meaningful(content);
    if (text !== undefined) found.set(`${field} ${text}`, { field, text, ...(amount !== undefined && { amount }) });
  }
  return [...found.values()];
}

export const signed = ({ direction, amount }: Pick<BankLine, 'direction' | 'amount'>) =>
  direction === 'credit' ? amount : amount.negated();

/** `3`, or `3.2` for the second part of the entry 3. */
export const placeOf = ({ position, part }: Readonly<{ position: number; part?: number | null | undefined }>) =>
  part == null ? `${position}` : `${position}.${part}`;

/** Without white space. */
export const compact = (text: string) => text.replace(/\s/g, '');

/** The texts that are not empty, with a space between. */
export const joined = (texts: readonly (string | undefined)[]) => texts.filter((each) => each).join(' ');

/** The day, if the calendar has it. */
export const dayOf = (year = '', month = '', day = '') =>
  isDate(`${year}-${month}-${day}`) ? `${year}-${month}-${day}` : undefined;

/** `261031`: a day of this century. */
export const shortDay = (text: string) => dayOf(`20${text.slice(0, 2)}`, text.slice(2, 4), text.slice(4));

/** The return code of an ACH debit, such as R01. */
export const returnCodeIn = (direction: BankLine['direction'], text: string) =>
  direction === 'debit' ? /\bR\d\d\b/.exec(text)?.[0] : undefined;

/** The fields in which a payer or a bank identifies a payment. */
const ID_FIELDS = new Set(['EndToEndId', 'TxId', 'InstrId', 'server id', 'customer reference']);

/** The bank's reference and the ids of a line. */
export const identifiers = ({
  bank_reference,
  references,
}: Readonly<{
  bank_reference?: string | null | undefined;
  references: readonly Partial<ReferenceField>[];
}>): string[] => [
  ...(bank_reference == null ? [] : [bank_reference]),
  ...references.flatMap(({ field = '', text }) => (text !== undefined && ID_FIELDS.has(field) ? [text] : [])),
];

/**
 * Returns the identities of the lines of statements, in their order. An identity has the bank reference, day, direction
 * and amount. The reference alone is not enough, because banks repeat a reference on reversals and on the parts of a batch.
 * A line without a reference is identified by the first id that it has, or by its text. Completely equal lines of an account
 * get a counter in their identities.
 */
export function lineIdentities(statements: readonly Pick<BankStatement<BankLines>, 'account' | 'lines'>[]) {
  const inFile = new Map<string, Map<string, number>>();
  const identities: string[] = [];
  for (const { account, lines } of statements) {
    const inStatement = new Map<string, number>();
    const inAccount = inFile.get(account) ?? new Map<string, number>();
    inFile.set(account, inAccount);
    for (const line of lines) {
      const [id] = line.references.filter(({ field }) => ID_FIELDS.has(field));
      const own =
        line.bank_reference ??
        (id === undefined ? `text ${digest([line.text, line.payer_name ?? '', line.type])}` : `${id.field} ${id.text}`);
      const name = [own, line.booked_on, line.direction, line.amount.toString()].join('|');
      // A line with a bank reference that is in two statements of a file is one line.
      const counts = line.bank_reference === undefined ? inAccount : inStatement;
      const count = (counts.get(name) ?? 0) + 1;
      counts.set(name, count);
      identities.push(count === 1 ? name : `${name}|${count}`);
    }
  }
  return identities;
}

/**
 * Returns the method of a type code: 142 to 169 are ACH, 191 to 213 wires, and 115 (lockbox) and 174 to 176 (check
 * deposits) are checks. Other formats use these codes too.
 */
function methodOfCode(type: string): Method | undefined {
  if (/^(115|174|175|176)\b/.test(type)) return 'check';
  if (/^(142|143|164|165|166|168|169)\b/.test(type)) return 'ach';
  return /^(191|195|196|206|208|212|213)\b/.test(type) ? 'wire' : undefined;
}

/** `transfer`: in type and text, a credit transfer, which is a wire unless the bank calls it ACH. */
export function methodOf(type: string, text: string, transfer?: RegExp): Method {
  const words = joined([type, text]).toUpperCase();
  const named = methodOfCode(type) ?? methodInWords(words);
  return named === 'other' && transfer?.test(words) ? 'wire' : named;
}

function methodInWords(words: string): Method {
  if (/\bACH\b/.test(words)) return 'ach';
  if (/\bWIRE\b|FEDWIRE|SWIFT/.test(words)) return 'wire';
  return /\b(?:CHECK|CHEQUE|LOCKBOX|[A-Z]?CHK)\b(?! ?CARD)/.test(words) ? 'check' : 'other';
}

const digest = (parts: readonly string[]) =>
  createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 24);
