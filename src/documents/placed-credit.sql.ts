import { execute, querying, Transaction } from '#database/transaction';
import { requestLinkChecks } from './emails.sql.ts';

type NewCreditApplication = Readonly<{
  credit_note_id: number;
  invoice_id: number;
  amount: string;
  /** The date of the application, or of the later document's issue. */
  applied_on: string;
}>;

type CreditAction = Readonly<{
  now: string;
  eventId: number;
}>;

/**
 * Applies credit to issued invoices, and requests that delivery sync their payment links. The entry date is no earlier
 * than the day on which either was last reopened.
 */
export async function insertCreditApplications(
  tx: Transaction,
  { now, eventId }: CreditAction,
  rows: readonly NewCreditApplication[],
) {
  if (rows.length === 0) return;
  await execute(
    tx,
    `INSERT INTO credit_applications (
       credit_note_id, invoice_id, amount, applied_on, recorded_at, at_issue, event_id, reopened_on)
     SELECT n.document_id, d.document_id, r.amount, greatest(r.applied_on, n.issued_on, d.issued_on),
            :now::timestamptz, false, :eventId::bigint,
            greatest(earliest_postable_date(), n.entry_on, d.entry_on, document_reopened_on(n.document_id),
                     document_reopened_on(d.document_id))
     FROM json_populate_recordset(NULL::credit_applications, :rows::json) AS r
     JOIN documents n ON n.document_id = r.credit_note_id JOIN documents d ON d.document_id = r.invoice_id`,
    { rows, now, eventId },
  );
  await requestLinkChecks(tx, { ids: rows.map((each) => each.invoice_id) });
}

type LiveCreditApplication = Readonly<{
  credit_application_id: number;
  amount: string;
}>;

export const readCreditOn = querying<LiveCreditApplication, { creditNoteId: number; invoiceId: number }>(`
  SELECT credit_application_id, amount FROM live_credit_applications
  WHERE credit_note_id = :creditNoteId AND invoice_id = :invoiceId ORDER BY credit_application_id`);

/** Releases credit from an invoice, on a day that is not before the day of the application. */
export async function insertCreditReleases(
  tx: Transaction,
  { now, eventId, today, ids, invoiceId }: CreditAction & { today: string; ids: readonly number[]; invoiceId: number },
) {
  await execute(
    tx,
    `INSERT INTO credit_releases (credit_application_id, released_on, recorded_at, event_id, reopened_on)
     SELECT credit_application_id, greatest(:today::date, applied_on), :now::timestamptz, :eventId::bigint,
            greatest(earliest_postable_date(), entry_on)
     FROM credit_applications WHERE credit_application_id = ANY (:ids::bigint[])`,
    { now, eventId, today, ids },
  );
  await requestLinkChecks(tx, { ids: [invoiceId] });
}
