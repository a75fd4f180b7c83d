/** What people read for the words of a document. The labels of the PDF are in `templates/document.json`. */
import type { Address } from '../config/validation.ts';
import type { DocumentKind, RowKind } from './snapshot.ts';

export const DOCUMENT_TITLES: Readonly<Record<DocumentKind, string>> = {
  invoice: 'Invoice',
  credit_note: 'Credit note',
  statement: 'Statement',
};

const ROW_KINDS: Readonly<Record<RowKind, string>> = {
  quote_accepted: 'enrollment',
  requote_accepted: 'requote',
  reversal: 'reversal',
};

/** A kind of ledger row, in the plural unless there is just one: `enrollments`. */
export const rowKindName = (kind: RowKind, count?: number): string => `${ROW_KINDS[kind]}${count === 1 ? '' : 's'}`;

/** An address in one line: `350 Fifth Avenue, New York, NY 10118, US`. */
export function addressLine({ line1, line2, city, region, postal_code, country }: Address): string {
  return [line1, line2, city, [region, postal_code].filter(Boolean).join(' '), country].filter(Boolean).join(', ');
}
