/**
 * An incoming ledger row, and the rules for a single row (contract, Ledger rows). rows.sql.ts has the rules that need
 * partners, the ledger or other rows. All functions are pure: the caller passes the time.
 */
import { amountProblem, minorDigits } from '#money';
import { IDENTIFIER } from '#partners/file';

export const ROW_FIELDS = [
  'kind',
  'partner_id',
  'quote_id',
  'requote_id',
  'reversal_id',
  'enrollment_id',
  'policy_id',
  'currency',
  'accepted_at',
  'spotPrice',
  'partnerCut',
  'invoiceAmount',
  'order_reference',
  'cover_from',
  'cover_to',
] as const;
export type RowField = (typeof ROW_FIELDS)[number];

/** What the database has of a row, besides its kind and partner. */
export type RowFacts = Readonly<{
  quote_id: string;
  requote_id: string | null;
  reversal_id: string | null;
  enrollment_id: string | null;
  policy_id: string;
  currency: string;
  accepted_at: string;
  spot_price: string;
  partner_cut: string;
  invoice_amount: string;
  order_reference: string | null;
  cover_from: string | null;
  cover_to: string | null;
}>;

export const ROW_FACTS = `quote_id, requote_id, reversal_id, enrollment_id, policy_id, currency, accepted_at, spot_price,
  partner_cut, invoice_amount, order_reference, cover_from, cover_to`;

/**
 * Additional columns of a file of rejected rows. An import ignores these columns, so the corrected file can be imported
 * again.
 */
export const REJECT_FIELDS = [
  'reject_file',
  'reject_line',
  'reject_field',
  'reject_code',
  'reject_reason',
  'reject_row',
] as const;

/** Additional columns of an export. An import ignores these columns, so an exported ledger can be imported again. */
export const RECORDED_FIELDS = ['entry_id', 'posted_month', 'recorded_at', 'document', 'allowed_by'] as const;

export type RowTexts = Record<RowField, string>;

const OPTIONAL_FIELDS: readonly string[] = [
  ...['requote_id', 'reversal_id', 'enrollment_id'],
  ...['order_reference', 'cover_from', 'cover_to'],
];
export const REQUIRED_FIELDS = ROW_FIELDS.filter((field) => !OPTIONAL_FIELDS.includes(field));

/** A duplicate has no code here, because it is not a bad row. */
export const ROW_CODES = [
  // Rules for the file and for its lines (read.ts)
  'header_missing',
  'field_repeated',
  'field_unknown',
  'column_count',
  'trailer_invalid',
  'after_trailer',
  'csv_malformed',
  'json_malformed',
  'line_too_long',
  'not_utf8',
  'field_malformed',
  // Rules for the row alone
  'field_missing',
  'field_unexpected',
  'kind_unknown',
  'identifier_malformed',
  'currency_unknown',
  'time_malformed',
  'time_in_future',
  'amount_malformed',
  'amount_too_precise',
  'amount_too_large',
  'amount_sign',
  'amounts_unbalanced',
  'reference_malformed',
  'date_malformed',
  'cover_ends_before_start',
  // Rules that need partners, the ledger or other rows (rows.sql.ts)
  'partner_unknown',
  'partner_inactive',
  'policy_unknown',
  'policy_inactive',
  'conflict',
  'quote_unknown',
  'quote_mismatch',
  'requote_unknown',
  'quote_exceeded',
] as const;
export type RowCode = (typeof ROW_CODES)[number];

export type RowProblem = Readonly<{
  /** The field's name in the file; empty if the row as a whole is wrong. */
  field: string;
  code: RowCode;
  reason: string;
}>;

const IDENTIFIERS = ['partner_id', 'quote_id', 'requote_id', 'reversal_id', 'enrollment_id', 'policy_id'] as const;
const AMOUNTS = ['spotPrice', 'partnerCut', 'invoiceAmount'] as const;

/** A partner's clock may be at most this far ahead of ours: five minutes. */
const FUTURE_MILLISECONDS = 5 * 60 * 1000;

/** The first rule that a row breaks by itself; undefined if the row breaks none. */
export function rowProblem(row: RowTexts, now: number): RowProblem | undefined {
  return fieldsProblem(row) ?? timeProblem(row.accepted_at, now) ?? amountsProblem(row) ?? orderProblem(row);
}

function fieldsProblem(row: RowTexts): RowProblem | undefined {
  for (const field of REQUIRED_FIELDS) {
    if (row[field] === '') return { field, code: 'field_missing', reason: 'is missing' };
  }
  const { kind } = row;
  if (kind !== 'quote_accepted' && kind !== 'requote_accepted' && kind !== 'reversal') {
    return { field: 'kind', code: 'kind_unknown', reason: 'is not quote_accepted, requote_accepted or reversal' };
  }
  if (kind === 'requote_accepted' && row.requote_id === '') {
    return { field: 'requote_id', code: 'field_missing', reason: 'is missing, and a requote_accepted needs it' };
  }
  if (kind === 'reversal' && row.reversal_id === '') {
    return { field: 'reversal_id', code: 'field_missing', reason: 'is missing, and a reversal needs it' };
  }
  if (kind === 'quote_accepted' && row.requote_id !== '') {
    return { field: 'requote_id', code: 'field_unexpected', reason: 'does not belong to a quote_accepted' };
  }
  if (kind !== 'reversal' && row.reversal_id !== '') {
    return { field: 'reversal_id', code: 'field_unexpected', reason: `does not belong to a ${kind}` };
  }
  for (const field of IDENTIFIERS) {
    if (row[field] !== '' && !IDENTIFIER.test(row[field])) {
      return {
        field,
        code: 'identifier_malformed',
        reason: 'is not 1 to 128 of A-Z a-z 0-9 . _ : - starting with a letter or digit',
      };
    }
  }
  if (minorDigits(row.currency) === undefined) {
    return { field: 'currency', code: 'currency_unknown', reason: 'is not an ISO 4217 currency code' };
  }
  return undefined;
}

/** Checks the amounts by the currency's digits, their signs and their balance. The currency is known. */
export function amountsProblem(
  row: Pick<RowTexts, 'kind' | 'currency' | (typeof AMOUNTS)[number]>,
): RowProblem | undefined {
  const digits = minorDigits(row.currency) as number;
  for (const field of AMOUNTS) {
    const problem = amountProblem(row[field], digits);
    if (problem) return { field, ...problem };
  }
  const spotPrice = inMinorUnits(row.spotPrice, digits);
  const partnerCut = inMinorUnits(row.partnerCut, digits);
  const invoiceAmount = inMinorUnits(row.invoiceAmount, digits);
  const amounts = { spotPrice, partnerCut, invoiceAmount };
  const reversal = row.kind === 'reversal';
  for (const field of AMOUNTS) {
    if (reversal ? amounts[field] > 0n : amounts[field] < 0n) {
      const reason = reversal ? 'is above zero in a reversal' : `is below zero in a ${row.kind}`;
      return { field, code: 'amount_sign', reason };
    }
  }
  if (spotPrice !== partnerCut + invoiceAmount) {
    return {
      field: 'spotPrice',
      code: 'amounts_unbalanced',
      reason: `${row.spotPrice} is not partnerCut ${row.partnerCut} + invoiceAmount ${row.invoiceAmount}`,
    };
  }
  return undefined;
}

/**
 * The partner's own reference of an order. Spaces inside are allowed. Invisible characters are refused, because
 * two references could then look alike. U+FFFD stands for bytes that are not UTF-8.
 */
export const ORDER_REFERENCE = /^(?!\s)[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\u2065\uFFFD]{1,128}(?<!\s)$/u;

/** Returns whether a text is an existing day from 1970-01-01 to 2099-12-31, `YYYY-MM-DD`. (isDate takes ten times as long.) */
export function isCoverDay(text: string) {
  const [, year, month, day] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text) ?? [];
  return (
    Number(year) >= 1970 &&
    Number(year) <= 2099 &&
    Number(day) >= 1 &&
    Number(day) <= daysIn(Number(year), Number(month))
  );
}

function orderProblem({ order_reference, cover_from, cover_to }: RowTexts): RowProblem | undefined {
  if (order_reference === '' && cover_from === '' && cover_to === '') return undefined;
  if (order_reference !== '' && !ORDER_REFERENCE.test(order_reference)) {
    const reason = 'is not 1 to 128 printable characters without spaces at either end';
    return { field: 'order_reference', code: 'reference_malformed', reason };
  }
  for (const [field, day] of Object.entries({ cover_from, cover_to })) {
    if (day !== '' && !isCoverDay(day)) {
      return {
        field,
        code: 'date_malformed',
        reason: 'is not a date such as 2026-10-31, from 1970-01-01 to 2099-12-31',
      };
    }
  }
  if (cover_to !== '' && cover_from === '') {
    return { field: 'cover_from', code: 'field_missing', reason: 'is missing, and cover_to needs it' };
  }
  if (cover_to !== '' && cover_to < cover_from) {
    return { field: 'cover_to', code: 'cover_ends_before_start', reason: `is before cover_from ${cover_from}` };
  }
  return undefined;
}

/** Converts a plain decimal to an integer of minor units. `digits` is the currency's number of minor digits. */
export function inMinorUnits(text: string, digits: number) {
  const point = text.indexOf('.');
  if (point === -1) return BigInt(text + '0'.repeat(digits));
  return BigInt(text.slice(0, point) + text.slice(point + 1, point + 1 + digits).padEnd(digits, '0'));
}

/** A decimal as an integer of ten-thousandths, because no currency has more than four minor digits. */
export const inTenThousandths = (text: string) => inMinorUnits(text, 4);

const TIME = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?(Z|[+-]\d\d(?::?\d\d)?)?$/;
const DAYS_IN_MONTH = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** The number of days of a month, counted from 1; 0 if there is no such month. */
function daysIn(year: number, month: number) {
  const leap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  return month === 2 && !leap ? 28 : (DAYS_IN_MONTH[month - 1] ?? 0);
}

/** Checks an acceptance time (contract, Amounts, times, identifiers); `now` in milliseconds since 1970. */
export function timeProblem(text: string, now: number): RowProblem | undefined {
  const field = 'accepted_at';
  const malformed = (reason: string): RowProblem => ({ field, code: 'time_malformed', reason });
  const match = TIME.exec(text);
  if (match === null) return malformed('is not an ISO 8601 time such as 2026-10-31T23:59:59.25-04:00');
  const [, yearText, monthText, dayText, hourText, minuteText, secondText = '0', fraction = '', zone] = match;
  if (zone === undefined) return malformed('has no offset: end it with Z or an offset such as -04:00');
  if (fraction.length > 6) return malformed(`has ${fraction.length} fractional digits where at most 6 are kept`);
  const year = Number(yearText);
  const month = Number(monthText);
  const day = Number(dayText);
  const hour = Number(hourText);
  const minute = Number(minuteText);
  const second = Number(secondText);
  if (year < 1970) return malformed('is before 1970');
  if (day < 1 || day > daysIn(year, month)) return malformed('names a day that does not exist');
  if (hour > 23 || minute > 59 || second > 59) return malformed('names a time of day that does not exist');
  const offset = offsetMinutes(zone);
  if (offset === undefined) return malformed('has an offset that does not exist');

  const milliseconds = Number(fraction.padEnd(6, '0').slice(0, 3));
  const microseconds = Number(fraction.padEnd(6, '0').slice(3));
  const at = Date.UTC(year, month - 1, day, hour, minute, second, milliseconds) - offset * 60_000;
  if (at > now + FUTURE_MILLISECONDS || (at === now + FUTURE_MILLISECONDS && microseconds > 0)) {
    return { field, code: 'time_in_future', reason: 'is more than 5 minutes in the future' };
  }
  return undefined;
}

/** Converts `-04:00` to -240. Offsets in use lie between -12:00 and +14:00. PostgreSQL accepts offsets up to 15:59. */
function offsetMinutes(zone: string) {
  if (zone === 'Z') return 0;
  const hours = Number(zone.slice(1, 3));
  const minutes = zone.length > 3 ? Number(zone.slice(-2)) : 0;
  if (hours > 15 || minutes > 59) return undefined;
  return (zone.startsWith('-') ? -1 : 1) * (hours * 60 + minutes);
}
