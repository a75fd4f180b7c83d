/**
 * A partner's settlement file: which transfer and payment belong to which quote (`quote_id, transfer, payment, amount`).
 * It tells what the metadata of our payments lacks, and where the processor lets us read nothing it is the only word.
 * Pure. Amounts are in major units; what was pulled back is below zero.
 */
import { amountProblem, isCurrency, minorDigits } from '../money.ts';
import { IDENTIFIER } from '../partners/file.ts';

/** The four of the contract, then what may be added to them. */
export const SETTLEMENT_FIELDS = [
  'quote_id',
  'transfer',
  'payment',
  'amount',
  'requote_id',
  'currency',
  'moved_at',
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
  /** What the customer got back of the price, above zero; with it a reversal can be recorded without a person. */
  readonly refunded: string | null;
  /** ISO instant; null where the file does not say. */
  readonly moved_at: string | null;
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
    const texts = Object.fromEntries(names.map((name, index) => [name, (cells[index] ?? '').trim()]));
    const read = readLine(line, texts as Partial<Record<Field, string>>, partnerCurrency);
    if ('reason' in read) complain(read.reason);
    else lines.push(read);
  }
  return { lines, problems };
}

function readLine(
  line: number,
  texts: Partial<Record<Field, string>>,
  partnerCurrency: string,
): SettlementLine | { readonly reason: string } {
  const { quote_id = '', amount = '' } = texts;
  const currency = texts.currency || partnerCurrency;
  for (const field of ['quote_id', 'requote_id', 'reversal_id'] as const) {
    const text = texts[field] ?? '';
    if ((text !== '' || field === 'quote_id') && !IDENTIFIER.test(text)) {
      return { reason: `${field} '${text}' is no identifier` };
    }
  }
  const ids = [texts.transfer, texts.payment].filter((text) => text !== undefined && text !== '');
  if (ids.length === 0) return { reason: 'names neither a transfer nor a payment' };
  if (ids.some((text) => !/^[\x21-\x7e]{1,255}$/.test(text as string))) {
    return { reason: 'names a transfer or payment that is no id' };
  }
  if (!isCurrency(currency)) return { reason: `currency '${currency}' is no ISO 4217 currency` };
  const digits = minorDigits(currency) as number;
  const problem = amountProblem(amount, digits);
  if (problem !== undefined) return { reason: `amount '${amount}' ${problem.reason}` };
  if (!/[1-9]/.test(amount)) return { reason: 'is of nothing' };
  const below = amount.startsWith('-');
  const kind = texts.kind || (below ? 'reversal' : 'share');
  if (kind !== 'share' && kind !== 'reversal' && kind !== 'dispute') {
    return { reason: `kind '${kind}' is not share, reversal or dispute` };
  }
  if (kind === 'share' && below) return { reason: 'is a share below zero' };
  if (kind === 'reversal' && !below) return { reason: 'is a reversal that is not below zero' };
  const refunded = texts.refunded || null;
  if (refunded !== null) {
    const wrong = amountProblem(refunded, digits)?.reason ?? (refunded.startsWith('-') ? 'is below zero' : undefined);
    if (wrong !== undefined) return { reason: `refunded '${refunded}' ${wrong}` };
    if (!below) return { reason: 'says refunded of what was not pulled back' };
  }
  const movedAt = texts.moved_at || null;
  if (movedAt !== null && !INSTANT.test(movedAt)) return { reason: `moved_at '${movedAt}' is no time with an offset` };
  return {
    line,
    quote_id,
    requote_id: texts.requote_id || null,
    reversal_id: texts.reversal_id || null,
    transfer: texts.transfer || null,
    payment: texts.payment || null,
    currency,
    amount,
    kind,
    refunded,
    moved_at: movedAt === null ? null : new Date(movedAt).toISOString(),
  };
}

const INSTANT =
  /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)$/;
