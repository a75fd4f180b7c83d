/**
 * A partner's settlement file: which transfer and payment belong to which quote (`quote_id, transfer, payment, amount`).
 * It supplies quotes that the metadata of our payments does not name. For an account that we cannot read at the processor
 * it is the only source. Pure. Amounts are in major units; reversed transfers are below zero.
 */
import { z } from 'zod';
import { amountProblem, isCurrency, minorDigits } from '../money.ts';
import { IDENTIFIER } from '../partners/file.ts';

/** The four required fields, then the optional ones. */
const SETTLEMENT_FIELDS = [
  'quote_id',
  'transfer',
  'payment',
  'amount',
  'requote_id',
  'currency',
  'occurred_at',
  'kind',
  'refunded',
  'reversal_id',
] as const;
type Field = (typeof SETTLEMENT_FIELDS)[number];

const REQUIRED: readonly Field[] = ['quote_id', 'transfer', 'payment', 'amount'];

export interface SettlementLine {
  readonly line: number;
  readonly quote_id: string;
  readonly requote_id: string | null;
  readonly reversal_id: string | null;
  readonly transfer: string | null;
  readonly payment: string | null;
  readonly currency: string;
  readonly amount: string;
  readonly kind: 'share' | 'reversal' | 'dispute';
  /** The part of the price that the customer got back, above zero. With it a reversal needs no manual review. */
  readonly refunded: string | null;
  /** ISO instant; null where the file has none. */
  readonly occurred_at: string | null;
}

export interface SettlementProblem {
  readonly path: string;
  readonly reason: string;
}

export interface Settlement {
  readonly lines: readonly SettlementLine[];
  readonly problems: readonly SettlementProblem[];
}

/** `records` are the file's records with their physical lines, the header first. */
export function readSettlement(
  records: readonly { readonly line: number; readonly cells: readonly string[] }[],
  partnerCurrency: string,
): Settlement {
  const [header, ...rest] = records;
  const names = (header?.cells ?? []).map((name) => name.trim());
  const unknown = names.filter((name) => !(SETTLEMENT_FIELDS as readonly string[]).includes(name));
  const missing = REQUIRED.filter((name) => !names.includes(name));
  if (missing.length > 0 || unknown.length > 0 || new Set(names).size !== names.length) {
    const reason = `must name ${REQUIRED.join(', ')} once each, and may name ${SETTLEMENT_FIELDS.slice(4).join(', ')}`;
    return { lines: [], problems: [{ path: 'line 1', reason }] };
  }
  const lines: SettlementLine[] = [];
  const problems: SettlementProblem[] = [];
  for (const { line, cells } of rest) {
    const complain = (reason: string) => problems.push({ path: `line ${line}`, reason });
    if (cells.length !== names.length) {
      complain(`has ${cells.length} fields where the header has ${names.length}`);
      continue;
    }
    // An empty cell is a field that is left out.
    const texts = names.map((name, index) => [name, (cells[index] ?? '').trim()]).filter(([, text]) => text !== '');
    const given = Object.fromEntries(texts) as Partial<Record<Field, string>>;
    const read = schema.safeParse({ currency: partnerCurrency, ...given });
    if (read.success) lines.push({ line, ...read.data });
    else complain(reasonOf(read.error.issues[0], given));
  }
  return { lines, problems };
}

const INSTANT =
  /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)$/;

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
    refunded: z.string().nullable().default(null),
    occurred_at: z
      .string()
      .regex(INSTANT, 'is not a time with an offset')
      .transform((text) => new Date(text).toISOString())
      .nullable()
      .default(null),
  })
  .transform((line, context) => {
    const problem = (message: string, ...path: Field[]) => {
      context.issues.push({ code: 'custom', message, path, input: line });
      return z.NEVER;
    };
    const digits = minorDigits(line.currency) as number;
    const below = line.amount.startsWith('-');
    const kind = line.kind ?? (below ? ('reversal' as const) : ('share' as const));
    const wrong = amountProblem(line.amount, digits);
    if (line.transfer === null && line.payment === null) return problem('names neither a transfer nor a payment');
    if (wrong !== undefined) return problem(wrong.reason, 'amount');
    if (kind === 'share' && below) return problem('is a share below zero');
    if (kind === 'reversal' && !below) return problem('is a reversal that is not below zero');
    if (line.refunded !== null) {
      const unusable = amountProblem(line.refunded, digits)?.reason;
      if (unusable !== undefined) return problem(unusable, 'refunded');
      if (line.refunded.startsWith('-')) return problem('is below zero', 'refunded');
      if (!below) return problem('has refunded, but its transfer was not reversed');
    }
    return { ...line, kind };
  });

/** `amount '7.005' has 3 decimals`, or a reason about the line as a whole. */
function reasonOf(issue: z.core.$ZodIssue | undefined, given: Partial<Record<Field, string>>): string {
  const field = issue?.path[0] as Field | undefined;
  if (issue === undefined || field === undefined) return issue?.message ?? '';
  return `${field} '${given[field] ?? ''}' ${issue.message}`;
}
