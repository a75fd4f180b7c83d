/**
 * The facts of the ledger, and the form in which each fact is written to the log (docs/log-format.md). The only
 * declaration of the forms is at the head of checks.sql, where verifiers read them too. The lines, their hashes and the
 * log of a pack follow from it.
 *
 * After the first release, a form never changes: the second version of a kind is the new kind `name.2`.
 */
import { readFileSync } from 'node:fs';
import { CHECKS_SQL } from '#package';

export type LogColumn = Readonly<{
  name: string;
  type: string;
  nullable: boolean;
}>;

/** A kind of fact, named as its table. */
export interface LogForm {
  readonly kind: string;
  readonly columns: readonly LogColumn[];
}

const FORM = /^-- FORM (\S+) (.+)$/gm;

const columnOf = (text: string): LogColumn => {
  const [name = '', type = 'text'] = text.split(':');
  return { name: name.replace(/[?!]+$/, ''), type, nullable: name.includes('?') };
};

/**
 * The forms of all facts; ledger rows come first. A line declares one kind: its table, then the columns in the order in
 * which they are written. `?` marks a column that may be NULL, and `!` one whose numbers occur once. The type follows a
 * colon, and a column without a type is a text. The currency of an amount is in the line's column `currency`, or in the
 * column named after `@`. A `personal` text is written as its commitment, so that it can be erased.
 */
export const LOG_FORMS: readonly LogForm[] = [...readFileSync(CHECKS_SQL, 'utf8').matchAll(FORM)].map(
  ([, kind = '', columns = '']) => ({ kind, columns: columns.split(' ').map(columnOf) }),
);

/** Writes out the copies of each line under `EACH pattern`, as the head of checks.sql describes. */
export const withCopies = (checks: string) =>
  checks.replace(/^-- EACH (.+)\n([^;\n]+)/gm, (_, pattern: string, line: string) =>
    [...checks.matchAll(FORM)]
      .flatMap(([, kind = '', columns = '']) =>
        [...columns.matchAll(new RegExp(pattern, 'g'))].map(([, column = '']) =>
          line.replaceAll('KIND', kind).replaceAll('COLUMN', column),
        ),
      )
      .join('\nUNION ALL '),
  );

/** The column that has the log number of a fact in its table. */
export const numberOf = (kind: string): string => (kind === 'ledger_rows' ? 'entry_id' : 'log_no');

const currencyOfDocument = (column: string) => `(SELECT d.currency FROM documents d WHERE d.document_id = f.${column})`;
const currencyOfPayment = `(SELECT p.currency FROM payments p WHERE p.payment_id = f.payment_id)`;

/** Columns of a form that its table does not have, each as SQL over the table `f`. */
export const COMPUTED: Readonly<Record<string, string>> = {
  'document_lines.currency': currencyOfDocument('document_id'),
  'document_taxes.line_positions': `(SELECT coalesce(jsonb_agg(l.position ORDER BY l.position), '[]')
    FROM document_lines l WHERE l.document_id = f.document_id AND l.tax = f.position)`,
  'credit_applications.currency': currencyOfDocument('credit_note_id'),
  'write_offs.currency': currencyOfDocument('document_id'),
  'invoice_disputes.currency': currencyOfDocument('document_id'),
  'payment_assignments.currency': currencyOfPayment,
  'payment_suggestions.currency': currencyOfPayment,
  'payout_payments.currency': currencyOfPayment,
  'payout_settlements.currency': `(SELECT p.currency FROM payouts p WHERE p.payout_id = f.payout_id)`,
  'disputes.currency': currencyOfPayment,
  'processor_event_outcomes.event_sha256': 'processor_event_sha256(f.processor_event_id)',
  'balance_transactions.payload_sha256': `encode(sha256(convert_to(f.payload::text, 'UTF8')), 'hex')`,
};

/** Columns of these tables that no form contains, each with the reason. */
export const NOT_WRITTEN: Readonly<Record<string, string>> = {
  'issuer_versions.logo_sha256': 'computed from the content',
  'approval_requests.preview': 'its hash is written',
  'documents.tax': 'the sum of its document_taxes, which are written',
  'documents.gross': 'computed from invoice_amount and tax',
  'document_lines.tax': 'document_taxes are written with the positions of their lines',
  'document_pdfs.pdf': 'its hash is written',
  'document_e_invoices.xml': 'its hash is written',
  'balance_transactions.share_currency': 'computed from written columns',
  'balance_transactions.share_amount': 'computed from written columns',
  'balance_transactions.payload':
    'raw data of the processor, which includes personal data; its hash and the values read from it are written',
  'client_secrets.secret_sha256': 'a hash of a secret, never exported',
  'gl_export_files.content': 'its hash is written',
};
