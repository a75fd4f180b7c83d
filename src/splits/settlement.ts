/**
 * Reads a partner's settlement file, which names the quote of each transfer and payment (`quote_id, transfer, payment,
 * amount`). The file supplies the quotes of payments without metadata. For an account that we cannot read at the
 * processor, it is the only source. Amounts are in major units; reversed transfers are negative. Pure.
 */
import { z } from 'zod';
import { LineProblem } from '#errors/refusals';
import { timeProblem } from '#ledger/row';
import { IDENTIFIER } from '#partners/file';
import { CsvRecord } from '#reading/csv';
import { amountProblem, isCurrency, minorDigits, names } from '#values';

const REQUIRED = names('quote_id transfer payment amount');
const OPTIONAL = names('requote_id currency occurred_at kind refunded reversal_id');
type Field = (typeof REQUIRED | typeof OPTIONAL)[number];

type SettlementLine = Readonly<z.output<typeof schema> & { line: number }>;

/**
 * The codes of refused lines and files. Codes that have the same meaning as a code of ledger rows have the same name.
 */
export const SETTLEMENT_CODES = names(
  'csv_malformed lines_too_many header_invalid column_count field_missing',
  'identifier_malformed currency_unknown kind_unknown time_malformed time_in_future',
  'amount_malformed amount_too_precise amount_too_large amount_sign transfer_missing refunded_unexpected conflict',
);
type SettlementCode = (typeof SETTLEMENT_CODES)[number];

export type SettlementProblem = LineProblem &
  Readonly<{
    code: SettlementCode;
  }>;

export const lineProblem = (line: number, code: SettlementCode, reason: string, field?: string): SettlementProblem => ({
  ...{ path: `line ${line}`, line },
  ...(field !== undefined && { field }),
  ...{ code, reason },
});

type Settlement = Readonly<{
  lines: readonly SettlementLine[];
  problems: readonly SettlementProblem[];
}>;

/**
 * Reads a settlement file. `records` are its records with their line numbers, the header first. `now` is in
 * milliseconds since 1970.
 */
export function readSettlement(
  records: readonly CsvRecord[],
  { partnerCurrency, now }: { partnerCurrency: string; now: number },
): Settlement {
  const [header, ...rest] = records;
  const names = (header?.cells ?? []).map((name) => name.trim());
  const unknown = names.filter((name) => ![...REQUIRED, ...OPTIONAL].some((each) => each === name));
  const missing = REQUIRED.filter((name) => !names.includes(name));
  if (missing.length > 0 || unknown.length > 0 || new Set(names).size !== names.length) {
    const reason = `must name ${REQUIRED.join(', ')} once each, and may name ${OPTIONAL.join(', ')}`;
    return { lines: [], problems: [lineProblem(header?.line ?? 1, 'header_invalid', reason)] };
  }
  const lines: SettlementLine[] = [];
  const problems: SettlementProblem[] = [];
  for (const { line, cells } of rest) {
    if (cells.length !== names.length) {
      const reason = `has ${cells.length} fields, but the header has ${names.length}`;
      problems.push(lineProblem(line, 'column_count', reason));
      continue;
    }
    // An empty cell is an omitted field.
    const texts = names.map((name, index) => [name, (cells[index] ?? '').trim()]).filter(([, text]) => text !== '');
    const given = Object.fromEntries(texts) as Partial<Record<Field, string>>;
    const read = schema.safeParse({ currency: partnerCurrency, ...given });
    const time = given.occurred_at === undefined ? undefined : timeProblem(given.occurred_at, now);
    if (!read.success) problems.push(problemOf(line, read.error.issues[0] as z.core.$ZodIssue, given));
    else if (time !== undefined) {
      const reason = `occurred_at '${given.occurred_at}' ${time.reason}`;
      problems.push(lineProblem(line, time.code as SettlementCode, reason, 'occurred_at'));
    } else {
      lines.push({ line, ...read.data });
    }
  }
  return { lines, problems };
}

const identifier = z.string('is required').regex(IDENTIFIER, 'is not an identifier');
const processorId = z.string().regex(/^[\x21-\x7e]{1,255}$/, 'is not an id');
const amount = z.string('is required').regex(/[1-9]/, 'is not an amount other than zero');

const schema = z
  .object({
    quote_id: identifier,
    requote_id: identifier.nullable().default(null),
    reversal_id: identifier.nullable().default(null),
    transfer: processorId.nullable().default(null),
    payment: processorId.nullable().default(null),
    currency: z.string().refine(isCurrency, 'is not an ISO 4217 currency'),
    amount,
    kind: z.enum(['share', 'reversal', 'dispute'], 'is not share, reversal or dispute').optional(),
    /** The part of the price refunded to the customer. A reversal without this amount needs manual review. */
    refunded: z.string().nullable().default(null),
    occurred_at: z.string().nullable().default(null),
  })
  .transform((line, context) => {
    const problem = (code: SettlementCode, message: string, ...path: Field[]) => {
      context.issues.push({ code: 'custom', message, path, input: line, params: { code } });
      return z.NEVER;
    };
    const digits = minorDigits(line.currency) as number;
    const below = line.amount.startsWith('-');
    const kind = line.kind ?? (below ? ('reversal' as const) : ('share' as const));
    const wrong = amountProblem(line.amount, digits);
    if (line.transfer === null && line.payment === null)
      return problem('transfer_missing', 'names neither a transfer nor a payment');
    if (wrong !== undefined) return problem(wrong.code, wrong.reason, 'amount');
    if (kind === 'share' && below) return problem('amount_sign', 'is a share below zero');
    if (kind === 'reversal' && !below) return problem('amount_sign', 'is a reversal that is not below zero');
    if (line.refunded !== null) {
      const unusable = amountProblem(line.refunded, digits);
      if (unusable !== undefined) return problem(unusable.code, unusable.reason, 'refunded');
      if (line.refunded.startsWith('-')) return problem('amount_sign', 'is below zero', 'refunded');
      if (!below) return problem('refunded_unexpected', 'has refunded, but its transfer was not reversed');
    }
    return { ...line, kind };
  });

/** The code for a malformed field. A missing field is `field_missing`. */
const MALFORMED: Readonly<Record<Field, SettlementCode>> = {
  quote_id: 'identifier_malformed',
  requote_id: 'identifier_malformed',
  reversal_id: 'identifier_malformed',
  transfer: 'identifier_malformed',
  payment: 'identifier_malformed',
  currency: 'currency_unknown',
  amount: 'amount_malformed',
  refunded: 'amount_malformed',
  kind: 'kind_unknown',
  occurred_at: 'time_malformed',
};

function problemOf(line: number, issue: z.core.$ZodIssue, given: Partial<Record<Field, string>>) {
  const field = issue.path[0] as Field | undefined;
  const code = issue.code === 'custom' ? (issue.params?.['code'] as SettlementCode | undefined) : undefined;
  if (field === undefined) return lineProblem(line, code ?? 'csv_malformed', issue.message);
  const absent = given[field] === undefined;
  const reason = absent ? `${field} ${issue.message}` : `${field} '${given[field]}' ${issue.message}`;
  return lineProblem(line, code ?? (absent ? 'field_missing' : MALFORMED[field]), reason, field);
}
