/** SQL over bank files and their lines. */
import { execute, query, type Transaction } from '../database/transaction.ts';
import type { BankLine, BankStatement } from './bank/statement.ts';
import type { PaymentContext } from './context.ts';
import type { BankFormat } from './enums.ts';
import { leftOn, type TakenBack, type WithProcessor } from './payout.ts';
import { TAKEN_BACK } from './queries.ts';

export async function readKnownFile(
  tx: Transaction,
  sha256: string,
): Promise<{ bank_file_id: number; name: string; recorded_at: string } | undefined> {
  const rows = await query<{ bank_file_id: number; name: string; recorded_at: string }>(
    tx,
    `SELECT bank_file_id, name, recorded_at FROM bank_files WHERE sha256 = :sha256`,
    { sha256 },
  );
  return rows[0];
}

/**
 * Records a file with its statements and all of their lines. Gives the ids of the lines that are new, by account and
 * identity; a line that another file brought is the same line, on one more statement.
 */
export async function insertBankFile(
  context: PaymentContext,
  file: { sha256: string; name: string; format: BankFormat; bytes: number },
  statements: readonly { statement: BankStatement; identities: readonly string[] }[],
): Promise<Map<string, number>> {
  const { tx, now, eventId } = context;
  const recorded = { now, eventId };
  await execute(
    tx,
    `INSERT INTO bank_files (sha256, name, format, bytes, recorded_at, event_id)
     VALUES (:sha256, :name, :format, :bytes, :now::timestamptz, :eventId::bigint)`,
    { ...file, ...recorded },
  );
  const sum = (statement: BankStatement, direction: string) =>
    statement.lines
      .filter((line) => line.direction === direction)
      .reduce((total, line) => total?.plus(line.amount) ?? line.amount, undefined as BankLine['amount'] | undefined)
      ?.toString() ?? '0';
  const heads = statements.map(({ statement }, index) => ({
    position: index + 1,
    account: statement.account,
    currency: statement.currency,
    reference: statement.reference,
    opening: statement.opening?.toString() ?? null,
    closing: statement.closing?.toString() ?? null,
    credits: sum(statement, 'credit'),
    debits: sum(statement, 'debit'),
    lines: statement.lines.length,
  }));
  await execute(
    tx,
    `INSERT INTO bank_statements (bank_file_id, position, account, currency, reference, opening, closing, credits, debits, lines)
     SELECT f.bank_file_id, r.position, r.account, r.currency, r.reference, r.opening, r.closing, r.credits, r.debits, r.lines
     FROM json_to_recordset(:heads::json) AS r (
       position integer, account text, currency text, reference text, opening numeric, closing numeric, credits numeric,
       debits numeric, lines integer)
     JOIN bank_files f ON f.sha256 = :sha256
     ORDER BY r.position`,
    { heads: JSON.stringify(heads), sha256: file.sha256 },
  );
  const rows = statements.flatMap(({ statement, identities }, index) =>
    statement.lines.map((line, place) => ({
      statement: index + 1,
      place: place + 1,
      account: statement.account,
      identity: identities[place],
      currency: line.amount.currency,
      direction: line.direction,
      amount: line.amount.toString(),
      booked_on: line.booked_on,
      value_on: line.value_on ?? null,
      bank_reference: line.bank_reference ?? null,
      references: line.references,
      text: line.text,
      payer_name: line.payer_name ?? null,
      payer_account: line.payer_account ?? null,
      type: line.type,
      is_reversal: line.reversal,
      return_code: line.return_code ?? null,
      raw: line.raw,
    })),
  );
  const inserted = await query<{ bank_line_id: number; account: string; identity: string }>(
    tx,
    `INSERT INTO bank_lines (
       account, identity, currency, direction, amount, bank_booked_on, value_on, bank_reference, "references", text,
       payer_name, payer_account, type, is_reversal, return_code, raw)
     SELECT account, identity, currency, direction, amount, booked_on, value_on, bank_reference, "references", text,
            payer_name, payer_account, type, is_reversal, return_code, raw
     FROM json_to_recordset(:rows::json) AS r (
       statement integer, place integer, account text, identity text, currency text, direction text, amount numeric,
       booked_on date, value_on date, bank_reference text, "references" jsonb, text text, payer_name text,
       payer_account text, type text, is_reversal boolean, return_code text, raw text)
     ORDER BY statement, place
     ON CONFLICT ON CONSTRAINT bank_line_once DO NOTHING
     RETURNING bank_line_id, account, identity`,
    { rows: JSON.stringify(rows) },
  );
  await execute(
    tx,
    `INSERT INTO bank_statement_lines (bank_statement_id, position, bank_line_id, account, currency)
     SELECT s.bank_statement_id, r.place, l.bank_line_id, l.account, l.currency
     FROM json_to_recordset(:rows::json) AS r (statement integer, place integer, account text, identity text)
     JOIN bank_files f ON f.sha256 = :sha256
     JOIN bank_statements s ON s.bank_file_id = f.bank_file_id AND s.position = r.statement
     JOIN bank_lines l ON l.account = r.account AND l.identity = r.identity`,
    { rows: JSON.stringify(rows), sha256: file.sha256 },
  );
  return new Map(inserted.map((row) => [lineKey(row.account, row.identity), row.bank_line_id]));
}

export interface TwinRow {
  readonly bank_line_id: number;
  /** The line that came before it, and its account. */
  readonly twin_id: number;
  readonly account: string;
  /** Null: it came in the same file, and nothing is recorded of it yet. */
  readonly outcome: NewOutcome['outcome'] | null;
  readonly payment_id: number | null;
}

/**
 * Of these lines, those that are equal to an earlier line but for the account: reference (or text), day, direction, amount
 * and currency. What was wholly taken back since is no twin.
 */
export function readTwins(tx: Transaction, lineIds: readonly number[]): Promise<TwinRow[]> {
  return query(
    tx,
    `SELECT l.bank_line_id, t.bank_line_id AS twin_id, t.account, o.outcome, o.payment_id
     FROM bank_lines l
     JOIN bank_lines t ON (t.identity, t.currency) = (l.identity, l.currency)
       AND t.account <> l.account AND t.bank_line_id < l.bank_line_id
     LEFT JOIN bank_line_outcomes o ON o.bank_line_id = t.bank_line_id
     LEFT JOIN payment_balances b ON b.payment_id = o.payment_id
     WHERE l.bank_line_id = ANY (:lineIds::bigint[]) AND b.status IS DISTINCT FROM 'reversed'
     ORDER BY l.bank_line_id, t.bank_line_id`,
    { lineIds },
  );
}

export const lineKey = (account: string, identity: string): string => `${account} ${identity}`;

export interface NewOutcome {
  readonly bank_line_id: number;
  readonly outcome: 'payment' | 'payout' | 'return' | 'ignored';
  readonly payment_id: number | null;
  readonly payout_id: number | null;
  readonly payment_reversal_id: number | null;
  readonly needs_review: boolean;
  readonly reason: string;
}

export async function insertOutcomes(context: PaymentContext, rows: readonly NewOutcome[]): Promise<void> {
  if (rows.length === 0) return;
  await execute(
    context.tx,
    `INSERT INTO bank_line_outcomes (
       bank_line_id, outcome, payment_id, payout_id, payment_reversal_id, needs_review, reason, recorded_at, event_id)
     SELECT bank_line_id, outcome, payment_id, payout_id, payment_reversal_id, needs_review, reason,
            :now::timestamptz, :eventId::bigint
     FROM json_to_recordset(:rows::json) AS r (
       bank_line_id bigint, outcome text, payment_id bigint, payout_id bigint, payment_reversal_id bigint,
       needs_review boolean, reason text)`,
    { rows: JSON.stringify(rows), now: context.now, eventId: context.eventId },
  );
}

// --- Payouts ----------------------------------------------------------------------------------------------------------

/** Gives the ids of the payouts by the ids of their lines. */
export async function insertPayouts(context: PaymentContext, lineIds: readonly number[]): Promise<Map<number, number>> {
  if (lineIds.length === 0) return new Map();
  const rows = await query<{ payout_id: number; bank_line_id: number }>(
    context.tx,
    `INSERT INTO payouts (
       bank_line_id, account, currency, amount, direction, received_on, entry_on, recorded_at, event_id)
     SELECT bank_line_id, account, currency, amount, direction, bank_booked_on,
            greatest(bank_booked_on, :earliest::date), :now::timestamptz, :eventId::bigint
     FROM bank_lines WHERE bank_line_id = ANY (:lineIds::bigint[]) ORDER BY bank_booked_on, bank_line_id
     RETURNING payout_id, bank_line_id`,
    { lineIds, earliest: context.earliest, now: context.now, eventId: context.eventId },
  );
  return new Map(rows.map((row) => [row.bank_line_id, row.payout_id]));
}

export interface NewSettlement {
  readonly payout_id: number;
  readonly gross: string;
  readonly fees: string;
  readonly why: string;
  readonly payments: readonly { readonly payment_id: number; readonly amount: string }[];
}

export async function insertSettlements(context: PaymentContext, settlements: readonly NewSettlement[]): Promise<void> {
  if (settlements.length === 0) return;
  const bindings = {
    rows: JSON.stringify(settlements),
    earliest: context.earliest,
    now: context.now,
    eventId: context.eventId,
  };
  await execute(
    context.tx,
    `INSERT INTO payout_settlements (payout_id, gross, fees, entry_on, evidence, recorded_at, event_id)
     SELECT r.payout_id, r.gross, r.fees, greatest(o.entry_on, :earliest::date), jsonb_build_object('why', r.why),
            :now::timestamptz, :eventId::bigint
     FROM json_to_recordset(:rows::json) AS r (payout_id bigint, gross numeric, fees numeric, why text)
     JOIN payouts o USING (payout_id)`,
    bindings,
  );
  await execute(
    context.tx,
    `INSERT INTO payout_payments (payment_id, payout_id, amount)
     SELECT p.payment_id, r.payout_id, p.amount
     FROM json_to_recordset(:rows::json) AS r (payout_id bigint, payments json)
     CROSS JOIN LATERAL json_to_recordset(r.payments) AS p (payment_id bigint, amount numeric)`,
    bindings,
  );
}

/** A payout of a connected account that a line of the bank may be. */
export interface AccountPayout {
  readonly payout_id: number;
  readonly balance_transaction_id: number;
  readonly account: string;
  /** The processor's id of it: `po_…`. */
  readonly payout: string | null;
  readonly currency: string;
  readonly amount: string;
  /** Of what it pays out, what the processor kept besides; zero where that is not told. */
  readonly fees: string;
  /** It is the one payout that the line may be, and the line the one that it may be; all that it pays out is accounted for. */
  readonly certain: boolean;
}

/** A payout is in the bank after some days; one that waited for a holiday to pass, after more. */
const ARRIVES_WITHIN_DAYS = 10;
/** What a payout pays out is asked for as soon as it is told of; where nobody answers, it is settled without. */
const CONTENTS_WITHIN_DAYS = 3;

/** What the processor kept of what a payout pays out: fees and adjustments, which have no entry of their own. */
export const FEES_OF_CONTENTS = `greatest(0, coalesce(-sum(p.net) FILTER (WHERE p.kind = 'other' AND p.type NOT LIKE 'payout%'), 0))`;

/**
 * The payouts that came to the bank and are of no known payments yet, with those of connected accounts that they may be:
 * of just that currency and amount, and shortly before. One that failed never arrives.
 */
export function readAccountPayouts(tx: Transaction, now: string): Promise<AccountPayout[]> {
  return query(
    tx,
    `WITH waiting AS MATERIALIZED (
       SELECT * FROM payouts o WHERE NOT EXISTS (SELECT FROM payout_settlements s WHERE s.payout_id = o.payout_id)
     ), pairs AS (
       SELECT o.payout_id, m.balance_transaction_id, m.account, m.payment, m.currency, o.amount, c.fees, coalesce(c.strange, false) AS strange,
              c.fees IS NOT NULL OR m.payload->'source'->>'automatic' = 'false'
                OR m.moved_at < :now::timestamptz - ${CONTENTS_WITHIN_DAYS} * interval '1 day' AS told,
              count(*) OVER (PARTITION BY o.payout_id) AS payouts, count(*) OVER (PARTITION BY m.balance_transaction_id) AS lines
       FROM waiting o
       JOIN balance_transactions m ON m.type = 'payout' AND m.net = -o.amount AND m.currency = o.currency
         AND o.received_on - (m.moved_at AT TIME ZONE 'UTC')::date BETWEEN -1 AND ${ARRIVES_WITHIN_DAYS}
       LEFT JOIN LATERAL (
         SELECT ${FEES_OF_CONTENTS} AS fees,
                bool_or(p.kind = 'other' AND p.type NOT LIKE 'payout%' AND p.net > 0) AS strange
         FROM payout_contents c JOIN balance_transactions p USING (balance_transaction_id)
         WHERE c.payout_transaction_id = m.balance_transaction_id HAVING count(*) > 0) AS c ON true
       WHERE NOT EXISTS (SELECT FROM account_payouts a WHERE a.balance_transaction_id = m.balance_transaction_id)
         AND NOT EXISTS (SELECT FROM balance_transactions f
                         WHERE f.account = m.account AND f.payment = m.payment AND f.type IN ('payout_failure', 'payout_cancel'))
     )
     SELECT payout_id, balance_transaction_id, account, payment AS payout, currency, amount::text, coalesce(fees, 0)::text AS fees,
            payouts = 1 AND lines = 1 AND told AND NOT strange AS certain
     FROM pairs ORDER BY payout_id, balance_transaction_id`,
    { now },
  );
}

/** Says of payouts that were settled a moment ago of which account they are, and which of its payouts. */
export async function insertAccountPayouts(
  context: PaymentContext,
  rows: readonly { payout_id: number; account: string; currency: string; balance_transaction_id: number | null }[],
): Promise<void> {
  if (rows.length === 0) return;
  await execute(
    context.tx,
    `INSERT INTO account_payouts (payout_id, account, currency, balance_transaction_id, recorded_at, event_id)
     SELECT payout_id, account, currency, balance_transaction_id, :now::timestamptz, :eventId::bigint
     FROM json_to_recordset(:rows::json) AS r (
       payout_id bigint, account text, currency text, balance_transaction_id bigint)`,
    { rows: JSON.stringify(rows), now: context.now, eventId: context.eventId },
  );
}

/** Whether any partner has or had that connected account. */
export async function isConnectedAccount(tx: Transaction, account: string): Promise<boolean> {
  const found = await query(tx, `SELECT 1 FROM partner_arrangements WHERE connected_account_id = :account LIMIT 1`, {
    account,
  });
  return found.length > 0;
}

export interface PayoutRow {
  readonly payout_id: number;
  readonly account: string;
  readonly currency: string;
  readonly amount: string;
  readonly received_on: string;
  readonly text: string;
  readonly gross: string | null;
  readonly fees: string | null;
  readonly why: string | null;
  readonly payments: readonly number[];
  /** The connected account that it is of; null: link payments. */
  readonly of_account: string | null;
  /** The processor's id of it, where it told of it. */
  readonly of_payout: string | null;
}

export function readPayouts(tx: Transaction, payoutId?: number): Promise<PayoutRow[]> {
  return query(
    tx,
    `SELECT o.payout_id, o.account, o.currency, o.amount, o.received_on, l.text, s.gross, s.fees, s.evidence->>'why' AS why,
            ARRAY(SELECT p.payment_id::int FROM payout_payments p WHERE p.payout_id = o.payout_id ORDER BY 1) AS payments,
            a.account AS of_account, m.payment AS of_payout
     FROM payouts o JOIN bank_lines l USING (bank_line_id) LEFT JOIN payout_settlements s USING (payout_id)
     LEFT JOIN account_payouts a USING (payout_id) LEFT JOIN balance_transactions m ON m.balance_transaction_id = a.balance_transaction_id
     WHERE :payoutId::bigint IS NULL OR o.payout_id = :payoutId
     ORDER BY o.received_on, o.payout_id`,
    { payoutId: payoutId ?? null },
  );
}

/**
 * Link money that no payout has brought yet and that one of this day could bring, the oldest first. What came to a
 * connected account is paid out from there.
 */
export async function readWithProcessor(tx: Transaction, currency: string, day: string): Promise<WithProcessor[]> {
  const rows = await query<{
    payment_id: number;
    currency: string;
    amount: string;
    received_on: string;
    taken_back: TakenBack[];
  }>(
    tx,
    `SELECT p.payment_id, p.currency, p.amount, p.received_on, ${TAKEN_BACK} AS taken_back
     FROM payments p
     WHERE p.method = 'link' AND p.account = '' AND p.currency = :currency
       AND NOT EXISTS (SELECT FROM payout_payments o WHERE o.payment_id = p.payment_id)
     ORDER BY p.received_on, p.payment_id`,
    { currency },
  );
  return rows
    .map((row) => ({ payment_id: row.payment_id, amount: leftOn(row, day) }))
    .filter((each) => each.amount.isPositive());
}
