import { executing, query, Transaction } from '#database/transaction';
import { Scope } from '#people/scope';

export type OpenDispute = Readonly<{
  number: string;
  partner_id: string;
  partner_name: string;
  currency: string;
  due_on: string | null;
  balance: string;
  /** It exceeds the balance if the invoice was paid or credited after the dispute was opened. */
  amount: string;
  reason: string;
  owner: string;
  promised_on: string | null;
  disputed_on: string;
}>;

export const isPaid = ({ balance }: OpenDispute) => Number(balance) === 0;

export const DISPUTE = `d.number, d.partner_id, d.partner_name, d.currency, d.due_on, b.balance, t.amount, t.reason,
            personal(t.owner) AS owner, t.promised_on, t.disputed_on`;
export const OPEN_DISPUTES =
  'open_invoice_disputes t JOIN documents d USING (document_id) JOIN document_balances b USING (document_id)';

/**
 * The open disputes of live invoices, of some invoices, or of some partners, by promised date; those without one come
 * last.
 */
export function readOpenDisputes(
  tx: Transaction,
  {
    number,
    numbers = number === undefined ? null : [number],
    scope = null,
  }: { number?: string; numbers?: readonly string[] | null; scope?: Scope } = {},
): Promise<OpenDispute[]> {
  return query(
    tx,
    `SELECT ${DISPUTE}
     FROM ${OPEN_DISPUTES}
     WHERE (:numbers::text[] IS NULL OR d.number = ANY (:numbers::text[]))
       AND (:scope::text[] IS NULL OR d.partner_id = ANY (:scope::text[]))
     ORDER BY t.promised_on NULLS LAST, d.series, d.sequence`,
    { numbers, scope },
  );
}

export const insertDispute = executing<
  Readonly<{
    documentId: number;
    amount: string;
    reason: string;
    owner: string;
    promisedOn: string | null;
    today: string;
    now: string;
    eventId: number;
  }>
>(`
  INSERT INTO invoice_disputes (
    document_id, follows, amount, reason, owner, promised_on, disputed_on, recorded_at, event_id)
  SELECT :documentId, (SELECT max(invoice_dispute_id) FROM invoice_disputes WHERE document_id = :documentId),
         :amount::numeric, :reason, :owner, :promisedOn::date, :today::date, :now::timestamptz, :eventId::bigint`);

/** Closes the open dispute of a document, on the day on which it was opened if the clock was set back. */
export const insertDisputeClosing = executing<
  Readonly<{
    documentId: number;
    reason: string;
    today: string;
    now: string;
    eventId: number;
  }>
>(`
  INSERT INTO invoice_dispute_closings (invoice_dispute_id, document_id, reason, closed_on, recorded_at, event_id)
  SELECT invoice_dispute_id, document_id, :reason, greatest(:today::date, disputed_on), :now::timestamptz,
         :eventId::bigint
  FROM open_invoice_disputes WHERE document_id = :documentId`);
