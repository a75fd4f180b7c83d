/**
 * The statement of account of one partner: what it owed at the beginning, everything that moved it, and what is open at
 * the end. Its balance is what is billed less credit and unapplied cash. Refusals: partner_unknown, argument_invalid.
 */
import type { Address } from '../config/validation.ts';
import { query, type Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import { Amount } from '../money.ts';
import { daysBetween } from '../month.ts';
import type { ReversalKind } from '../payments/enums.ts';
import { BUCKETS, type Bucket, bucketOf } from './aging.ts';
import { readPresentDay, TIED_ACCOUNTS } from './journal.ts';
import { type OpenItem, readOpenItems, readUnappliedCash } from './open-items.ts';

/** What can move a partner's account. What only moves within it (a payment applied, credit used) does not show. */
export type Movement =
  | 'document_issued'
  | 'document_voided'
  | 'written_off'
  | 'payment_received'
  | 'payment_assigned'
  | 'small_difference'
  | 'small_difference_undone'
  | 'payment_reversed'
  | 'payment_reinstated'
  | 'credit_refunded'
  | 'credit_refund_returned';

export interface StatementLine {
  /** The date of its entry in the journal. */
  readonly date: string;
  /** When it happened; earlier than its entry where that month was closed already. */
  readonly dated_on: string;
  readonly fact: Movement;
  /** Why a payment was taken back; null of anything else. */
  readonly kind: ReversalKind | null;
  readonly document: string | null;
  readonly reference: string | null;
  readonly amount: string;
  /** After this line. */
  readonly balance: string;
}

export interface AccountStatement {
  readonly currency: string;
  readonly opening: string;
  readonly lines: readonly StatementLine[];
  readonly closing: string;
  readonly open_items: readonly (OpenItem & { readonly days_due: number | null })[];
  readonly unapplied: string;
  readonly aging: Readonly<Record<Bucket, string>>;
  /** The closing balance is what the open items add up to. */
  readonly ties: boolean;
}

export interface Statement {
  readonly partner_id: string;
  readonly name: string;
  readonly address: Address;
  readonly from: string;
  readonly as_of: string;
  readonly accounts: readonly AccountStatement[];
  readonly ties: boolean;
}

export interface StatementRequest {
  readonly partnerId: string;
  /** Left out, the first day of the month of `asOf`. */
  readonly from?: string | undefined;
  readonly asOf?: string | undefined;
  /** In the issuer's zone. */
  readonly today: string;
}

/** The name of a movement for whoever words it: of a payment taken back, by why. */
export type MovementName = Exclude<Movement, 'payment_reversed'> | `payment_${ReversalKind}`;

export const movementName = ({ fact, kind }: Pick<StatementLine, 'fact' | 'kind'>): MovementName =>
  fact === 'payment_reversed' ? `payment_${kind ?? 'returned'}` : fact;

interface MovementRow extends Omit<StatementLine, 'balance'> {
  readonly currency: string;
}

export async function readStatement(tx: Transaction, request: StatementRequest): Promise<Statement> {
  const { partnerId } = request;
  const [partner] = await query<{ name: string; address: Address }>(
    tx,
    `SELECT name, json_build_object('line1', address_line1, 'line2', address_line2, 'city', address_city,
              'region', address_region, 'postal_code', address_postal_code, 'country', address_country) AS address
     FROM partners WHERE partner_id = :partnerId`,
    { partnerId },
  );
  if (partner === undefined) throw refuse('partner_unknown', { partner_id: partnerId });
  const asOf = request.asOf ?? (await readPresentDay(tx, request.today));
  const from = request.from ?? `${asOf.slice(0, 7)}-01`;
  if (from > asOf) {
    throw refuse('argument_invalid', { argument: '--from', value: from, reason: `is after ${asOf}` });
  }
  const moved = await readMovements(tx, partnerId, asOf);
  const items = await readOpenItems(tx, asOf, partnerId);
  const cash = await readUnappliedCash(tx, asOf, partnerId);
  const currencies = [...new Set([...moved, ...items, ...cash].map((each) => each.currency))].sort();
  const accounts = currencies.map((currency) => {
    const own = <Row extends { currency: string }>(rows: readonly Row[]) =>
      rows.filter((row) => row.currency === currency);
    return accountOf(currency, { from, asOf }, own(moved), own(items), own(cash)[0]?.amount ?? '0');
  });
  return {
    partner_id: partnerId,
    name: partner.name,
    address: partner.address,
    from,
    as_of: asOf,
    accounts,
    ties: accounts.every((each) => each.ties),
  };
}

/** The tables of what moves an account, with the column that the journal's entries know their rows by. */
const TABLES: Readonly<Record<Movement, readonly [table: string, id: string]>> = {
  document_issued: ['documents', 'document_id'],
  document_voided: ['voids', 'document_id'],
  written_off: ['write_offs', 'write_off_id'],
  payment_received: ['payments', 'payment_id'],
  payment_assigned: ['payment_assignments', 'payment_assignment_id'],
  small_difference: ['small_differences', 'payment_application_id'],
  small_difference_undone: ['payment_unapplications', 'payment_application_id'],
  payment_reversed: ['payment_reversals', 'payment_reversal_id'],
  payment_reinstated: ['payment_reinstatements', 'payment_reversal_id'],
  credit_refunded: ['credit_refunds', 'credit_refund_id'],
  credit_refund_returned: ['credit_refund_returns', 'credit_refund_id'],
};

/** The number that a fact was recorded under, of all facts. */
const RECORDED_AS = `CASE m.fact ${Object.entries(TABLES)
  .map(([fact, [table, id]]) => `WHEN '${fact}' THEN (SELECT t.fact_id FROM ${table} t WHERE t.${id} = m.fact_id)`)
  .join(' ')} END`;

/** Each fact that changed what the partner owes in all, in order of date; within a day, as they were recorded. */
function readMovements(tx: Transaction, partnerId: string, asOf: string): Promise<MovementRow[]> {
  return query(
    tx,
    `SELECT m.date, m.dated_on, m.fact, m.document, m.reference, m.currency, m.amount,
            CASE m.fact WHEN 'payment_reversed' THEN (
              SELECT r.kind FROM payment_reversals r WHERE r.payment_reversal_id = m.fact_id) END AS kind
     FROM (
       SELECT entry_on AS date, dated_on, fact, fact_id, document, reference, currency, sum(amount) AS amount
       FROM journal_of_facts
       WHERE partner_id = :partnerId AND entry_on <= :asOf::date
         AND control IN (:receivable, :credit, :unapplied)
       GROUP BY entry_on, dated_on, fact, fact_id, document, reference, currency HAVING sum(amount) <> 0) AS m
     ORDER BY m.date, ${RECORDED_AS}`,
    { partnerId, asOf, ...TIED_ACCOUNTS },
  );
}

/** Pure: one currency's account. */
export function accountOf(
  currency: string,
  { from, asOf }: { from: string; asOf: string },
  moved: readonly MovementRow[],
  items: readonly OpenItem[],
  unapplied: string,
): AccountStatement {
  const amount = (text: string) => Amount.of(text, currency);
  let balance = Amount.zero(currency);
  let opening = balance;
  const lines: StatementLine[] = [];
  for (const { currency: _, ...row } of moved) {
    balance = balance.plus(amount(row.amount));
    if (row.date < from) opening = balance;
    else lines.push({ ...row, amount: amount(row.amount).toString(), balance: balance.toString() });
  }
  const invoices = items.filter((item) => item.document === 'invoice');
  const sum = (rows: readonly OpenItem[]) =>
    rows.reduce((total, item) => total.plus(amount(item.balance)), Amount.zero(currency));
  const open = sum(invoices)
    .minus(sum(items.filter((item) => item.document === 'credit_note')))
    .minus(amount(unapplied));
  return {
    currency,
    opening: opening.toString(),
    lines,
    closing: balance.toString(),
    open_items: items.map((item) => ({
      ...item,
      balance: amount(item.balance).toString(),
      days_due: item.due_on === null ? null : daysBetween(item.due_on, asOf),
    })),
    unapplied: amount(unapplied).toString(),
    aging: Object.fromEntries(
      BUCKETS.map((bucket) => [
        bucket,
        sum(invoices.filter((item) => bucketOf(item.due_on as string, asOf) === bucket)).toString(),
      ]),
    ) as Record<Bucket, string>,
    ties: open.equals(balance),
  };
}
