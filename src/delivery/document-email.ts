/** The e-mail of a document: its recipients, text and attachments. */
import { DocumentRow } from '#documents/documents.sql';
import { renderDocumentEmail } from '#mail/document-text';
import { EmailContent } from '#mail/email';
import { EmailTemplates } from '#mail/templates';
import { DocumentEmail } from './documents.sql.ts';
import { PreparedDocument } from './prepare.ts';
import { rowsCsv } from './rows.ts';

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

/** Refusals: settings_invalid, file_unreadable (an unusable template). */
export function composeDocumentEmail(
  document: DocumentRow,
  email: DocumentEmail,
  { snapshot, rows, pdf, eInvoice, instructionsOutdated }: PreparedDocument,
  templates: EmailTemplates,
): EmailContent {
  const { number } = document;
  const attachments = [
    {
      filename: `${number}.pdf`,
      contentType: 'application/pdf',
      content: pdf,
      note: NOTES[document.document],
    },
    ...(eInvoice === undefined
      ? []
      : [
          {
            filename: `${number}.xml`,
            contentType: 'application/xml',
            content: eInvoice,
            note: 'the same for your accounting system, as an e-invoice (EN 16931)',
          },
        ]),
    ...(rows.length === 0
      ? []
      : [
          {
            filename: `${number}-rows.csv`,
            contentType: 'text/csv; charset=utf-8',
            content: rowsCsv(rows),
            note: rowsNote(document, rows.length),
          },
        ]),
  ];
  const facts = {
    contactName: email.contact_name,
    attachments: attachments.map(({ filename, note }) => ({ filename, note })),
    rowsOmitted: email.entries > MOST_ATTACHED_ROWS,
    instructionsOutdated,
    replaces: email.replaces_sent,
  };
  return {
    ...recipientsOf(email),
    content: renderDocumentEmail(snapshot, facts, templates),
    attachments,
    senderName: document.issuer.legal_name,
  };
}
