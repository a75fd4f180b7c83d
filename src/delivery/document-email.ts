/** The e-mail of a document: its recipients, text and attachments. */
import { DocumentRow } from '#documents/documents.sql';
import { renderDocumentEmail } from '#mail/document-text';
import { EmailContent } from '#mail/email';
import { EmailTemplates } from '#mail/templates';
import { DocumentEmail } from './documents.sql.ts';
import { PreparedDocument } from './prepare.ts';
import { rowsHeader } from './rows.ts';

/** More rows are not attached, because the e-mail would be larger than many servers accept (about 7 MB). */
export const MOST_ATTACHED_ROWS = 20_000;

/** The partner's current contacts, or the one address that a user named. */
export const recipientsOf = ({
  addressed_to: addressedTo,
  ...email
}: DocumentEmail): Pick<EmailContent, 'to' | 'cc'> =>
  addressedTo === null
    ? { to: { name: email.contact_name, address: email.contact_email }, cc: email.contact_cc }
    : { to: { name: '', address: addressedTo }, cc: [] };

const NOTES = { invoice: 'the invoice', credit_note: 'the credit note', statement: 'the statement' } as const;

function rowsNote({ purpose }: DocumentRow, count: number) {
  if (purpose === 'missing_shares') return count === 1 ? 'the quote billed' : `the ${count} quotes billed`;
  return count === 1 ? 'the ledger row behind it' : `the ${count} ledger rows behind it`;
}

type Attached = Readonly<{ filename: string; contentType: string; note: string; of: 'pdf' | 'eInvoice' | 'rows' }>;

function attachmentsOf(document: DocumentRow, { rows, eInvoice }: Readonly<{ rows: number; eInvoice: boolean }>) {
  const { number } = document;
  const all: Attached[] = [
    { filename: `${number}.pdf`, contentType: 'application/pdf', note: NOTES[document.document], of: 'pdf' },
    {
      filename: `${number}.xml`,
      contentType: 'application/xml',
      note: 'the same for your accounting system, as an e-invoice (EN 16931)',
      of: 'eInvoice',
    },
    {
      filename: `${number}-rows.csv`,
      contentType: 'text/csv; charset=utf-8',
      note: rowsNote(document, rows),
      of: 'rows',
    },
  ];
  return all.filter(({ of }) => of === 'pdf' || (of === 'rows' ? rows > 0 : eInvoice));
}

/** The text of the e-mail. Refusals: settings_invalid, file_unreadable (an unusable template). */
export const documentEmailText = (
  document: DocumentRow,
  email: DocumentEmail,
  { snapshot, instructionsOutdated }: Pick<PreparedDocument, 'snapshot' | 'instructionsOutdated'>,
  templates: EmailTemplates,
  attached: Parameters<typeof attachmentsOf>[1],
) =>
  renderDocumentEmail(
    snapshot,
    {
      contactName: email.contact_name,
      attachments: attachmentsOf(document, attached).map(({ filename, note }) => ({ filename, note })),
      rowsOmitted: email.entries > MOST_ATTACHED_ROWS,
      instructionsOutdated,
      replaces: email.replaces_sent,
    },
    templates,
  );

/** Refusals: settings_invalid, file_unreadable (an unusable template). */
export function composeDocumentEmail(
  document: DocumentRow,
  email: DocumentEmail,
  prepared: PreparedDocument,
  templates: EmailTemplates,
): EmailContent {
  const { rows, pdf, eInvoice } = prepared;
  const csv = Buffer.from(rowsHeader(document.purpose) + rows.lines);
  const contents = { pdf, eInvoice: eInvoice as Buffer, rows: csv };
  const attached = { rows: rows.count, eInvoice: eInvoice !== undefined };
  return {
    ...recipientsOf(email),
    content: documentEmailText(document, email, prepared, templates, attached),
    attachments: attachmentsOf(document, attached).map(({ of, ...each }) => ({
      ...each,
      content: contents[of],
    })),
    senderName: document.issuer.legal_name,
  };
}
