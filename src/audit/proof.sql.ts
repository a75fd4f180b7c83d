/** SQL of proofs: which facts are about a subject, and which month's seal covers them. */
import { query, type Transaction } from '../database/transaction.ts';
import type { Month } from '../month.ts';
import { SEALED_TABLES } from '../seals/canonical.ts';

export type Subject =
  | { readonly row: number }
  | { readonly document: string }
  | { readonly payment: number }
  | { readonly event: number };

export interface Fact {
  readonly table: string;
  readonly fact_id: number;
  /** The month whose seal covers it; null if none does yet. */
  readonly month: Month | null;
}

const OF_PAYMENT = SEALED_TABLES.filter(({ columns }) => columns.includes('payment_id')).map(({ name }) => name);

const OF_DOCUMENT = ['documents', 'document_lines', 'document_pdfs', 'document_e_invoices', 'voids'];

const factsIn = (tables: readonly string[], having: string) =>
  `SELECT f."table", f.fact_id, s.month
   FROM (${tables
     .map((name) => `SELECT '${name}' AS "table", fact_id FROM ${name} WHERE ${having}`)
     .join(' UNION ALL ')}) AS f
   LEFT JOIN LATERAL (SELECT month FROM seals WHERE facts_to >= f.fact_id ORDER BY month LIMIT 1) AS s ON true
   ORDER BY f.fact_id`;

/** The facts of a subject in every table, with the month that seals each. */
export function readFacts(tx: Transaction, subject: Exclude<Subject, { row: number }>): Promise<Fact[]> {
  if ('document' in subject) {
    const its = 'document_id = (SELECT document_id FROM documents WHERE number = :number)';
    return query(tx, factsIn(OF_DOCUMENT, its), { number: subject.document });
  }
  if ('payment' in subject) return query(tx, factsIn(OF_PAYMENT, 'payment_id = :id::bigint'), { id: subject.payment });
  return query(tx, factsIn(['audit_events'], 'event_id = :id::bigint'), { id: subject.event });
}

export interface SealedMonth {
  readonly month: Month;
  readonly record: string;
  readonly seal: string;
  readonly facts_after: number;
  readonly facts_to: number;
}

export function readSealedMonths(tx: Transaction, months: readonly Month[]): Promise<SealedMonth[]> {
  return query(
    tx,
    `SELECT s.month, s.record, s.seal, s.facts_to, coalesce(p.facts_to, 0) AS facts_after
     FROM seals s LEFT JOIN seals p ON p.month = s.previous
     WHERE s.month = ANY (:months::text[]) ORDER BY s.month`,
    { months },
  );
}

/** The month that bills a row, and the row's place in it; null while no seal covers it. */
export const readPlaceOfRow = (
  tx: Transaction,
  entryId: number,
): Promise<{ month: Month | null; previous: Month | null; index: number }[]> =>
  query(
    tx,
    `SELECT s.month, m.previous,
            (SELECT count(*) FROM ledger_rows earlier
             WHERE earlier.posted_month > coalesce(m.previous, '') AND earlier.posted_month <= m.month
               AND earlier.entry_id < e.entry_id) AS index
     FROM ledger_rows e
     LEFT JOIN closed_months m ON m.month = greatest(e.posted_month, (SELECT min(month) FROM closed_months))
     LEFT JOIN seals s ON s.month = m.month
     WHERE e.entry_id = :entryId`,
    { entryId },
  );
