/** Writes a document's e-invoice in the partner's format. */
import { DocumentSnapshot } from '#documents/snapshot';
import { writeCii } from './cii.ts';
import { EInvoice, EInvoiceFacts, eInvoiceOf } from './model.ts';
import { writeUbl } from './ubl.ts';

/**
 * The version of the writers, recorded with each e-invoice. A change of any e-invoice's bytes needs a new version, and
 * a branch on the version.
 */
export const E_INVOICE_WRITER_VERSION = 2;

const writeEInvoice = (invoice: EInvoice) => (invoice.format === 'facturx' ? writeCii(invoice) : writeUbl(invoice));

export const drawEInvoice = (snapshot: DocumentSnapshot, facts: EInvoiceFacts): Buffer =>
  writeEInvoice(eInvoiceOf(snapshot, facts));
