/**
 * Holds the invoices of a close whose totals are unusual by the setting `holds`: each is issued and due as usual, and
 * its e-mail waits until finance releases it (`src/documents/hold.ts`).
 */
import { query, type Transaction } from '../database/transaction.ts';
import { holdDocument } from '../documents/hold.ts';
import type { IssueContext } from '../documents/issue/context.ts';
import type { IssueBatch } from '../documents/issue/issue.sql.ts';
import { Amount } from '../money.ts';

interface OddInvoice {
  readonly number: string;
  readonly currency: string;
  readonly gross: string;
  /** The partner's largest month's invoice in this currency, of the 12 months before; null: none. */
  readonly largest: string | null;
  readonly is_above: boolean;
}

export async function holdOddInvoices(tx: Transaction, context: IssueContext, { month }: IssueBatch): Promise<void> {
  const { above, times } = context.settings.holds;
  if (times === null && Object.keys(above).length === 0) return;
  for (const odd of await readOddInvoices(tx, { month, above, times })) {
    await holdDocument(tx, context, { number: odd.number, reason: reasonOf(odd, context), by: 'close' });
  }
}

function reasonOf(odd: OddInvoice, { settings: { holds } }: IssueContext): string {
  const { currency, largest } = odd;
  const people = (amount: string) => Amount.of(amount, currency).forPeople();
  return odd.is_above
    ? `${people(odd.gross)} is above ${people(holds.above[currency] as string)} (holds.above)`
    : `${people(odd.gross)} is above ${holds.times} times ${people(largest as string)}, the largest invoice of the ` +
        '12 months before (holds.times)';
}

/**
 * Of the documents just issued, in the order of their numbers. A partner without an earlier invoice is only held by
 * amount. Invoices count less credit notes against them; void, held and zero invoices do not count.
 */
function readOddInvoices(
  tx: Transaction,
  rules: { month: string; above: Readonly<Record<string, string>>; times: string | null },
): Promise<OddInvoice[]> {
  return query(
    tx,
    `SELECT d.number, d.currency, d.gross, b.largest, coalesce(d.gross > a.amount, false) AS is_above
     FROM pg_temp.issued_documents JOIN documents d USING (document_id)
     LEFT JOIN json_each_text(:above::json) AS limits (currency, amount) ON limits.currency = d.currency
     CROSS JOIN LATERAL (SELECT limits.amount::numeric AS amount) AS a
     CROSS JOIN LATERAL (
       SELECT nullif(max(o.gross - c.credited), 0) AS largest
       FROM live_documents o CROSS JOIN LATERAL (
         SELECT coalesce(sum(gross), 0) AS credited FROM live_documents WHERE credits = o.document_id) AS c
       WHERE o.partner_id = d.partner_id AND o.currency = d.currency AND o.document = 'invoice' AND o.purpose = 'month'
         AND o.month < :month
         AND o.month >= to_char(to_date(:month, 'YYYY-MM') - interval '12 months', 'YYYY-MM') COLLATE "C"
         AND NOT EXISTS (SELECT FROM current_holds h WHERE h.document_id = o.document_id)) AS b
     WHERE d.document = 'invoice'
       AND (d.gross > a.amount OR d.gross > :times::numeric * b.largest)
     ORDER BY d.document_id`,
    { ...rules, above: JSON.stringify(rules.above) },
  );
}
