/**
 * Control totals: the number of rows and the sums of invoice amounts that a sender states of a delivery. All rows count
 * that are not rejected, so the same delivery agrees again. Refusals: argument_invalid, totals_invalid.
 */
import { z } from 'zod';
import { fieldProblems } from '#config/validation';
import { Transaction } from '#database/transaction';
import { reasonOf, refuse, refuseField } from '#errors/refusals';
import { parseExactJsonOfOthers, repeatedName } from '#json';
import { Amount, amountProblem, isCurrency, minorDigits } from '#money';
import { counted } from '#text';
import { findSuspects, sumDelivered } from './control.sql.ts';

/** Totals by currency, each with exactly the currency's digits. */
export type Totals = Readonly<Record<string, string>>;

const inOrder = (totals: Totals): Totals =>
  Object.fromEntries(
    Object.entries(totals)
      .sort()
      .map(([currency, amount]) => [currency, Amount.of(amount, currency).toString()]),
  );

export const currenciesOf = (...sums: readonly Totals[]) => [...new Set(sums.flatMap(Object.keys))].sort();

/** The found totals less the stated ones, in each currency that differs. A currency that is left out counts as zero. */
export const totalDifferences = (stated: Totals, found: Totals) =>
  currenciesOf(stated, found)
    .map((currency) => Amount.of(found[currency] ?? '0', currency).minus(Amount.of(stated[currency] ?? '0', currency)))
    .filter((difference) => !difference.isZero());

/** Totals by currency in JSON, such as `{ "USD": "8311.20" }`. */
export const totalsSchema = (amount: z.ZodType<string>) =>
  z
    .record(z.string().refine(isCurrency, 'is not an ISO 4217 currency such as USD'), amount)
    .transform((totals, context) => {
      for (const [currency, text] of Object.entries(totals)) {
        const problem = amountProblem(text, minorDigits(currency) as number);
        if (problem === undefined) continue;
        context.issues.push({ code: 'custom', path: [currency], message: problem.reason, input: text });
      }
      return context.issues.length > 0 ? z.NEVER : inOrder(totals);
    });

/** Reads totals such as `EUR=1234.56`, one for each currency. */
export function readTotals(controls: readonly string[]): Totals {
  const totals: Record<string, string> = {};
  for (const value of controls) {
    const invalid = (reason: string) => refuseField('control', value, reason);
    const [, currency = '', amount = ''] = /^([A-Z]{3})=(-?[\d.]+)$/.exec(value) ?? [];
    if (!isCurrency(currency)) throw invalid('must be a currency and its total, such as EUR=1234.56');
    const problem = amountProblem(amount, minorDigits(currency) as number);
    if (problem !== undefined) throw invalid(problem.reason);
    if (currency in totals) throw invalid(`is the second one for ${currency}`);
    totals[currency] = amount;
  }
  return inOrder(totals);
}

/** What a sender states. What is missing is not compared. */
export type Control = Readonly<{
  count?: number | undefined;
  totals?: Totals | undefined;
}>;

const CONTROL = z
  .strictObject({
    count: z
      .string()
      .regex(/^\d{1,15}$/, 'must be a whole number')
      .transform(Number)
      .optional(),
    totals: totalsSchema(z.string()).optional(),
  })
  .refine(({ count, totals }) => count !== undefined || totals !== undefined, 'must state a count or totals');

/** Reads a value of exact JSON. Returns the problem as text if it states no control totals. */
export function controlOf(value: unknown): Control | string {
  const read = CONTROL.safeParse(value);
  if (read.success) return read.data;
  return fieldProblems(read.error)
    .map(({ path, reason }) => `${path} ${reason}`.trim())
    .join('; ');
}

/** Reads the cells of a CSV trailer: `TRAILER,412,USD=8311.20`. */
export function controlOfCells([, count = '', ...cells]: readonly string[]): Control | string {
  const totals = cells
    .filter((cell) => cell !== '')
    .map((cell) => /^([^=]*)=(.*)$/s.exec(cell)?.slice(1) ?? [cell, '']);
  const currencies = totals.map(([currency]) => currency);
  const twice = currencies.find((each, at) => currencies.indexOf(each) !== at);
  if (twice !== undefined) return `${twice} is stated twice`;
  return controlOf({
    ...(count !== '' && { count }),
    ...(totals.length > 0 && { totals: Object.fromEntries(totals) }),
  });
}

/** A file of totals beside a file of rows: `july.csv.totals.json`. */
export const totalsFileOf = (name: string) => `${name}.totals.json`;

/** Returns the files of rows, each with its file of totals if that is among the files. */
export const withTotals = <File extends { readonly name: string }>(files: readonly File[]) => {
  const named = new Map(files.map((file) => [file.name, file]));
  const beside = new Set(files.map(({ name }) => totalsFileOf(name)));
  return files
    .filter(({ name }) => !beside.has(name))
    .map((file) => ({ file, totals: named.get(totalsFileOf(file.name)) }));
};

export function readTotalsFile(file: string, text: string): Control {
  const control = controlOfText(text);
  if (typeof control === 'string') throw refuse('totals_invalid', { file, reason: control });
  return control;
}

function controlOfText(text: string) {
  try {
    const value = parseExactJsonOfOthers(text);
    const twice = repeatedName(text);
    return twice === undefined ? controlOf(value) : `${twice} is named twice`;
  } catch (error) {
    return `it is not JSON: ${reasonOf(error)}`;
  }
}

/** Where a control was stated: an option, the last record of a file, or a file of totals. */
export type StatedControl = Control &
  Readonly<{
    by: 'option' | 'trailer' | 'totals_file';
    /** The file that it is about; null for all files of the delivery. */
    file: number | null;
    /** The line of a trailer. */
    line?: number;
  }>;

type Found = Readonly<{
  count: number;
  totals: Totals;
}>;

export type ControlResult = Readonly<{
  by: StatedControl['by'];
  file: string | null;
  stated: Control;
  found: Found;
  agrees: boolean;
}>;

export type ControlError = Readonly<{
  file: string;
  line: number;
  field: string;
  code: string;
  reason: string;
}>;

/** The first rows that may explain a difference are reported. */
const MOST_SUSPECTS = 100;

/**
 * Compares the staged rows with what was stated of them. The errors name each difference, and then the rows that may
 * explain it: rows that repeat others, and rows whose amount is exactly the difference.
 */
export async function compareControls(
  tx: Transaction,
  controls: readonly StatedControl[],
  files: readonly { readonly name: string }[],
): Promise<Readonly<{ results: readonly ControlResult[]; errors: readonly ControlError[] }>> {
  if (controls.length === 0) return { results: [], errors: [] };
  const sums = await sumDelivered(tx);
  const compared = controls.map((control) => {
    const own = sums.filter(({ file }) => control.file === null || file === control.file);
    const totals: Record<string, string> = {};
    for (const { currency, invoice_amount } of own) {
      totals[currency] = Amount.of(totals[currency] ?? '0', currency)
        .plus(Amount.of(invoice_amount, currency))
        .toString();
    }
    const found = { count: own.reduce((sum, { entries }) => sum + entries, 0), totals: inOrder(totals) };
    return { control, found, differences: differencesOf(control, found) };
  });
  const nameOf = (file: number | null) => (file === null ? null : (files[file]?.name ?? null));
  const suspects = compared.flatMap(({ control: { file }, differences }) =>
    differences.map(({ currency, difference }) => ({ file, currency, difference })),
  );
  const found = suspects.length === 0 ? [] : await findSuspects(tx, suspects, MOST_SUSPECTS);
  return {
    results: compared.map(({ control: { by, file, count, totals }, found, differences }) => ({
      ...{ by, file: nameOf(file), stated: { count, totals }, found, agrees: differences.length === 0 },
    })),
    errors: [
      ...compared.flatMap(({ control, differences }) =>
        differences.map(({ field, reason }) => ({
          ...{ file: placeOf(control, nameOf(control.file)), line: control.line ?? 0, field },
          ...{ code: 'control_differs', reason },
        })),
      ),
      ...found.map(({ file, line, field, reason }) => ({
        ...{ file: nameOf(file) as string, line, field, code: 'control_differs', reason },
      })),
    ],
  };
}

const placeOf = ({ by }: StatedControl, file: string | null) =>
  file === null ? '' : by === 'totals_file' ? totalsFileOf(file) : file;

type Difference = Readonly<{
  field: string;
  /** Null for the number of rows. */
  currency: string | null;
  difference: string;
  reason: string;
}>;

function differencesOf({ count, totals }: Control, found: Found) {
  const differences: Difference[] = [];
  if (count !== undefined && count !== found.count) {
    const less = found.count < count;
    differences.push({
      ...{ field: 'count', currency: null, difference: String(found.count - count) },
      reason: `states ${counted(count)} rows, but there are ${counted(found.count)}: ${counted(Math.abs(found.count - count))} too ${less ? 'few' : 'many'}`,
    });
  }
  for (const difference of totals === undefined ? [] : totalDifferences(totals, found.totals)) {
    const { currency } = difference;
    const of = (sums: Totals) => Amount.of(sums[currency] ?? '0', currency);
    const [stated, sum] = [of(totals ?? {}), of(found.totals)];
    const size = difference.isNegative() ? difference.negated() : difference;
    differences.push({
      ...{ field: currency, currency, difference: difference.toString() },
      reason:
        `states ${stated.forPeople()}, but the rows amount to ${sum.forPeople()}: ` +
        `${size.forPeople()} too ${difference.isNegative() ? 'little' : 'much'}`,
    });
  }
  return differences;
}
