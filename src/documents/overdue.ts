import { Amount, daysBetween } from '#values';
import { DocumentRow } from './documents.sql.ts';

/** The amount with its sign: negative for a credit note. */
export const signed = (row: Pick<DocumentRow, 'document' | 'currency'>, text: string) => {
  const value = Amount.of(text, row.currency);
  return row.document === 'credit_note' ? value.negated() : value;
};

/** Days since the due date of an open invoice; 0 for other documents. */
export const daysOverdue = (
  { document, status, due_on }: Pick<DocumentRow, 'document' | 'status' | 'due_on'>,
  today: string,
) => (document === 'invoice' && status === 'open' && due_on !== null ? Math.max(0, daysBetween(due_on, today)) : 0);
