/** The list of documents as a sheet: what `invoice list` and the console download. Pure. */
import { Amount } from '../money.ts';
import { daysBetween } from '../month.ts';
import type { Sheet } from '../sheet.ts';
import type { DocumentRow } from './queries.ts';

/** What the sheet needs of a document. */
type Listed = Pick<
  DocumentRow,
  | ('number' | 'document' | 'partner_id' | 'partner_name' | 'month' | 'issued_on' | 'due_on')
  | ('currency' | 'amount_due' | 'balance' | 'status' | 'held_at' | 'email_status')
>;

export const sheetOfDocuments = (documents: readonly Listed[], today: string): Sheet => ({
  name: 'Documents',
  columns: {
    number: 'text',
    document: 'text',
    partner_id: 'text',
    partner_name: 'text',
    month: 'text',
    issued_on: 'date',
    due_on: 'date',
    days_overdue: 'count',
    currency: 'text',
    amount_due: 'amount',
    balance: 'amount',
    status: 'text',
    on_hold_since: 'text',
    email_status: 'text',
  },
  rows: documents.map((row) => ({
    ...row,
    days_overdue: daysOverdue(row, today) || null,
    amount_due: signed(row, row.amount_due).toString(),
    balance: signed(row, row.balance).toString(),
    on_hold_since: row.held_at,
  })),
});

/** A credit note counts against invoices. */
export const signed = (row: Pick<Listed, 'document' | 'currency'>, text: string): Amount => {
  const value = Amount.of(text, row.currency);
  return row.document === 'credit_note' ? value.negated() : value;
};

/** Days since the due date of an open invoice; 0 for anything else. */
export const daysOverdue = (
  { document, status, due_on }: Pick<Listed, 'document' | 'status' | 'due_on'>,
  today: string,
): number =>
  document === 'invoice' && status === 'open' && due_on !== null ? Math.max(0, daysBetween(due_on, today)) : 0;
