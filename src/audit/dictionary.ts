/**
 * The columns of every data file of a pack. This is the only list of their names, order, types and meanings. Exports
 * follow it, `dictionary.csv` is generated from it, and docs/pack-format.md lists the same columns (a test compares
 * them).
 */
import { csvLine } from './csv.ts';

/** `json`: in CSV, a text is written as is, and any other value as JSON. JSON Lines contain the value. */
export type ColumnType =
  | 'text'
  | 'integer'
  | 'decimal'
  | 'amount'
  | 'date'
  | 'month'
  | 'instant'
  | 'boolean'
  | 'list'
  | 'object'
  | 'json';

type Columns = Readonly<Record<string, readonly [type: ColumnType, meaning: string]>>;

// --- Columns that several files have ----------------------------------------------------------------------------------

const PARTNER = ['text', 'Id of the partner'] as const;
const CURRENCY = ['text', 'ISO 4217 code; amounts of the row have its number of decimals'] as const;
const RECORDED_AT = ['instant', 'When it was recorded (UTC)'] as const;
const ENTRY_ON = ['date', 'Entry date: day of its journal entry, the first that was open'] as const;
const EVENT = [
  'integer',
  'Audit event that recorded it: who, when and from where (events.csv, audit_events.tsv)',
] as const;
const POLICY = ['text', 'Id of the policy'] as const;
const ARRANGEMENT = ['text', 'invoicing, or connected_account if the processor splits the money'] as const;
const BILLED_MONTH = ['month', 'Billing month of the document'] as const;
const VOID_REASON = ['text', 'Why it was voided'] as const;
const WHO = {
  claimed_by: ['text', "Name given with --by, or the login of the console's user"],
  os_user: ['text', 'User of the operating system'],
  host: ['text', 'Name of the computer'],
  via: ['text', 'command, job, http or console'],
} as const;
const AMOUNTS = {
  spotPrice: ['amount', 'Price that the customer paid'],
  partnerCut: ['amount', 'What the partner keeps of the price'],
  invoiceAmount: ['amount', 'What the partner owes: spotPrice less partnerCut'],
} as const;

const LEDGER = {
  kind: ['text', 'quote_accepted, requote_accepted or reversal'],
  partner_id: PARTNER,
  quote_id: ['text', 'Id of the quote'],
  requote_id: ['text', 'Id of the requote, if the row records one'],
  reversal_id: ['text', 'Id of the reversal, if the row is a reversal'],
  enrollment_id: ['text', 'Id of the enrollment'],
  policy_id: POLICY,
  currency: CURRENCY,
  accepted_at: ['instant', 'When it took effect (UTC)'],
  ...AMOUNTS,
  entry_id: ['integer', 'Number of the ledger row'],
  posted_month: ['month', 'Month that bills the row'],
  recorded_at: RECORDED_AT,
  document: ['text', 'Number of the document that bills it; empty while the month is open'],
} satisfies Columns;

// --- Documents --------------------------------------------------------------------------------------------------------

const INVOICES = {
  number: ['text', 'Number of the document'],
  series: ['text', 'Series of numbers: kind and year'],
  sequence: ['integer', 'Place in the series, without gaps'],
  document: ['text', 'invoice, credit_note or statement'],
  purpose: ['text', 'month, adjustment or missing_shares'],
  status: ['text', 'open, paid or void, at the time of the export'],
  partner_id: PARTNER,
  partner_name: ['text', 'Name of the partner as printed'],
  month: BILLED_MONTH,
  currency: CURRENCY,
  arrangement: ARRANGEMENT,
  issued_on: ['date', 'Date of the document'],
  due_on: ['date', 'Due date of an invoice'],
  enrollments: ['integer', 'Number of enrollments billed'],
  ...AMOUNTS,
  credit_applied: ['amount', 'Open credit applied when it was issued'],
  amount_due: ['amount', 'invoiceAmount less credit_applied; 0 for a statement'],
  credited: ['amount', 'Settled without cash since it was issued, at the time of the export'],
  amount_paid: ['amount', 'Paid, at the time of the export'],
  balance: ['amount', 'Still open, at the time of the export'],
  pdf_sha256: ['text', 'SHA-256 of the PDF'],
  email_status: ['text', 'Status of its e-mail, at the time of the export'],
  sent_at: ['instant', 'When its e-mail was sent (UTC)'],
  replaces: ['text', 'Number of the void document that it replaces'],
  replaced_by: ['text', 'Number of the document that replaces it'],
  credits: ['text', 'Number of the invoice that this credit note credits'],
  reason: ['text', 'Why an adjustment was issued'],
  voided_on: ['date', 'Date of the void'],
  void_reason: VOID_REASON,
} satisfies Columns;

const LINES = {
  policy_id: POLICY,
  kind: ['text', 'Kind of its ledger rows: quote_accepted, requote_accepted or reversal'],
  month: ['month', 'Own month of its ledger rows; earlier than that of the document if they were late'],
  count: ['integer', 'Number of its ledger rows'],
  ...AMOUNTS,
} satisfies Columns;

const INVOICE_LINES = {
  number: INVOICES.number,
  position: ['integer', 'Place of the line on the document, from 1'],
  policy_id: POLICY,
  policy_name: ['text', 'Name of the policy as printed'],
  kind: LINES.kind,
  month: LINES.month,
  count: LINES.count,
  currency: CURRENCY,
  ...AMOUNTS,
} satisfies Columns;

const within = (path: string, columns: Columns): Columns =>
  Object.fromEntries(Object.entries(columns).map(([name, column]) => [`${path}.${name}`, column]));

/**
 * The keys of `documentJson` (contract, Documents) except `payment_link`, because anyone who has the link can open the
 * document.
 */
const INVOICES_JSON: Columns = (() => {
  const {
    partner_name: _,
    arrangement: __,
    pdf_sha256,
    email_status,
    sent_at,
    reason: ___,
    voided_on: ____,
    ...flat
  } = INVOICES;
  const { replaces, replaced_by, credits, void_reason, ...first } = flat;
  return {
    ...first,
    lines: ['list', 'Its lines'],
    ...within('lines', LINES),
    pdf: ['object', 'Its PDF; null if it has none yet'],
    ...within('pdf', { sha256: pdf_sha256, bytes: ['integer', 'Size of the PDF in bytes'] }),
    email: ['object', 'Its e-mail at the time of the export; null if it has none'],
    ...within('email', {
      status: email_status,
      to: ['list', 'Recipients'],
      message_id: ['text', 'Message-ID of the e-mail'],
      sent_at,
    }),
    ...{ replaces, replaced_by, credits, void_reason },
  };
})();

const VOIDS = {
  number: ['text', 'Number of the void document'],
  document_id: ['integer', 'Its id in documents.tsv'],
  partner_id: PARTNER,
  month: BILLED_MONTH,
  currency: CURRENCY,
  arrangement: ARRANGEMENT,
  reason: VOID_REASON,
  voided_on: ['date', 'Date of the void'],
  entry_on: ENTRY_ON,
  recorded_at: RECORDED_AT,
  event_id: EVENT,
} satisfies Columns;

const WRITE_OFFS = {
  fact_id: ['integer', 'Number of the fact in write_offs.tsv or write_off_reversals.tsv'],
  write_off_id: ['integer', 'Id of the write-off'],
  move: ['text', 'written_off, or reversed if the write-off was undone'],
  document: ['text', 'Number of the invoice'],
  partner_id: PARTNER,
  currency: CURRENCY,
  amount: ['amount', 'Written off; below zero if it was undone'],
  reason: ['text', 'Reason given'],
  dated_on: ['date', 'Date of the action'],
  entry_on: ENTRY_ON,
  recorded_at: RECORDED_AT,
  event_id: EVENT,
} satisfies Columns;

// --- Payments ---------------------------------------------------------------------------------------------------------

const PAYMENTS = {
  payment_id: ['integer', 'Id of the payment'],
  received_on: ['date', 'Date of receipt'],
  entry_on: ENTRY_ON,
  partner_id: ['text', 'Id of the partner that paid, at the time of the export; empty if unknown'],
  currency: CURRENCY,
  amount: ['amount', 'Amount received'],
  method: ['text', 'ach, wire, link or other'],
  account: ['text', 'Our account that received it'],
  reference: ['text', 'Reference of the payment'],
  payer_name: ['text', 'Name of the payer as reported'],
  payer_account: ['text', 'Account of the payer as reported'],
  source: ['text', 'Where it was reported first: hand, bank or processor'],
  identity: ['text', 'What identifies it at its source'],
  recorded_at: RECORDED_AT,
  applied: ['amount', 'Applied to documents, at the time of the export'],
  reversed: ['amount', 'Returned, refunded or charged back, at the time of the export'],
  unapplied: ['amount', 'Unapplied cash, at the time of the export'],
  status: ['text', 'Status at the time of the export'],
} satisfies Columns;

const MOVE = {
  currency: CURRENCY,
  amount: ['amount', 'Amount moved'],
  dated_on: ['date', 'Date of the action'],
  entry_on: ENTRY_ON,
  why: ['text', 'Reason: the rule, the reason given or the command'],
  recorded_at: RECORDED_AT,
} satisfies Columns;

const PAYMENT_MOVES = {
  payment_id: PAYMENTS.payment_id,
  move: ['text', 'applied, unapplied, bank_charges, bank_charges_reversed, assigned, or the kind of a reversal'],
  document: ['text', 'Number of the document that it is applied to'],
  ...MOVE,
} satisfies Columns;

const CREDIT_MOVES = {
  credit_note: ['text', 'Number of the credit note'],
  move: ['text', 'applied, released, refunded or refund_returned'],
  document: ['text', 'Number of the invoice that the credit is applied to'],
  ...MOVE,
} satisfies Columns;

const BANK_LINES = {
  bank_statement_id: ['integer', 'Id of the bank statement; a line in two statements has two rows'],
  position: ['integer', 'Place of the line in the statement'],
  bank_line_id: ['integer', 'Id of the line'],
  account: ['text', 'Our account'],
  currency: CURRENCY,
  direction: ['text', 'credit: received; debit: paid out'],
  amount: ['amount', 'Amount, above zero in both directions'],
  bank_booked_on: ['date', 'Date of the booking by the bank'],
  value_on: ['date', 'Value date'],
  bank_reference: ['text', 'Reference of the bank'],
  text: ['text', 'Text of the line'],
  payer_name: ['text', 'Name of the other party'],
  payer_account: ['text', 'Account of the other party'],
  type: ['text', 'Type of the line by the bank'],
  is_reversal: ['boolean', 'Whether the bank marks it as a reversal'],
  return_code: ['text', 'Code of a return'],
  outcome: ['text', 'Its outcome: payment, payout, return, refund or ignored; empty if none yet'],
  payment_id: ['integer', 'Payment that it is'],
  payout_id: ['integer', 'Payout of the processor that it is'],
  payment_reversal_id: ['integer', 'Reversal of a payment that it is'],
  needs_review: ['boolean', 'Whether it waited for manual review'],
  reason: ['text', 'Why it had this outcome'],
  statement: ['text', 'Reference of the bank statement'],
  file: ['text', 'Name of the imported file'],
  file_sha256: ['text', 'SHA-256 of the imported file'],
  recorded_at: RECORDED_AT,
} satisfies Columns;

// --- Openings ---------------------------------------------------------------------------------------------------------

const OPENINGS = {
  fact_id: ['integer', 'Number of the fact'],
  opening_id: ['integer', 'Id of the opening that carried it over'],
  cut_over_on: ['date', 'Day of the cut-over: its entry date'],
  kind: ['text', 'invoice, credit or cash (unapplied)'],
  number: ['text', 'Number in the previous system'],
  partner_id: PARTNER,
  date: ['date', 'Date of the document there, or day on which the cash was received'],
  due_on: ['date', 'Due date of an invoice'],
  currency: CURRENCY,
  original_amount: ['amount', 'Amount that it was issued for'],
  amount: ['amount', 'Open at the cut-over, above zero for each kind'],
  status: ['text', 'open, settled or reversed, at the time of the export'],
  balance: ['amount', 'Still open, at the time of the export'],
} satisfies Columns;

// --- Partners ---------------------------------------------------------------------------------------------------------

const RATE = ['decimal', 'Share of the price that the partner keeps, from 0 to 1'] as const;

const PARTNERS = {
  partner_id: PARTNER,
  name: ['text', 'Name'],
  'address.line1': ['text', 'Address, first line'],
  'address.line2': ['text', 'Address, second line'],
  'address.city': ['text', 'City'],
  'address.region': ['text', 'State or region'],
  'address.postal_code': ['text', 'Postal code'],
  'address.country': ['text', 'Country'],
  'invoicing_contact.name': ['text', 'Name of the contact for invoices'],
  'invoicing_contact.email': ['text', 'Address that invoices are sent to'],
  'invoicing_contact.cc': ['list', 'Addresses that get a copy'],
  currency: ['text', 'Currency of its prices, ISO 4217'],
  time_zone: ['text', 'Time zone of its months'],
  payment_terms_days: ['integer', "Days to pay; empty: the issuer's"],
  active: ['boolean', 'Whether it sells'],
  tax_id: ['text', 'Tax id'],
  purchase_order: ['text', 'Purchase order that its invoices name'],
  legal_note: ['text', 'Note on its invoices'],
  parent: ['text', 'Id of the partner that pays for it'],
  account_statement: ['text', 'none or monthly'],
  e_invoice: ['text', 'E-invoice that goes with its documents: none, facturx, ubl or xrechnung'],
  buyer_reference: ['text', 'Buyer reference of its e-invoices, such as a Leitweg-ID'],
  electronic_address: ['text', 'Its electronic address: scheme, colon, address'],
  arrangement: ARRANGEMENT,
  arrangement_from: ['month', 'First month of the current arrangement; empty: always'],
  connected_account_id: ['text', 'Connected account at the processor'],
  merchant_of_record: ['text', 'platform or third_party'],
  split: ['text', 'real_time or sequential'],
  settlement_currencies: ['list', 'Currencies in which its platform is paid out; empty: not stated'],
  connected_account_type: ['text', 'standard, express or custom'],
  connected_account_state: ['text', 'State of its onboarding'],
  balance_transactions_from: ['text', 'processor or settlement_file'],
} satisfies Columns;

const POLICIES = {
  partner_id: PARTNER,
  policy_id: POLICY,
  name: ['text', 'Name'],
  kind: ['text', 'insurance or non_insurance'],
  active: ['boolean', 'Whether it is sold'],
  partner_cut_rate: RATE,
  'price.rate': ['decimal', 'Price as a share of the insured amount'],
  'price.minimum': ['decimal', 'Lowest price'],
  largest_price: ['decimal', 'Highest total of a quote; empty: no limit'],
} satisfies Columns;

const PARTNER_CHANGES = {
  event_id: EVENT,
  occurred_at: ['instant', 'When it was changed (UTC)'],
  partner_id: PARTNER,
  action: ['text', 'partner.create or partner.update'],
  field: ['text', 'Column of partners.csv, or policies.POLICY_ID. and a column of policies.csv'],
  old: ['json', 'Value before; empty if there was none'],
  new: ['json', 'Value after; empty if there is none'],
  import_event_id: ['integer', 'Audit event of the import, which has the SHA-256 of the file'],
  ...WHO,
} satisfies Columns;

// --- Events and journal -----------------------------------------------------------------------------------------------

const EVENTS = {
  event_id: ['integer', 'Id of the event; ids have gaps'],
  occurred_at: ['instant', 'When it happened (UTC)'],
  action: ['text', 'Noun and verb, such as invoice.void'],
  subject: ['text', 'Its object: a document, a partner, a month, a file'],
  details: ['json', 'Details, by action'],
  ...WHO,
  user_id: ['integer', 'User who did it (users.tsv); empty if no user did'],
} satisfies Columns;

const OPENING_BALANCES = {
  account: ['text', 'Account'],
  currency: CURRENCY,
  amount: ['amount', 'Balance before the first month: debits above zero, credits below'],
} satisfies Columns;

const JOURNAL = {
  entry_on: ENTRY_ON,
  dated_on: ['date', 'Date of the action'],
  fact: ['text', 'What was recorded'],
  fact_id: ['integer', 'Id of it'],
  account: ['text', 'Account'],
  partner_id: PARTNER,
  policy_id: POLICY,
  currency: CURRENCY,
  amount: ['amount', 'Debits above zero, credits below'],
  document: ['text', 'Number of the document'],
  reference: ['text', 'Reference'],
} satisfies Columns;

const GL_EXPORTS = {
  gl_export_id: ['integer', 'Id of the exported journal; one with several files has several rows'],
  month: ['month', 'Month whose journal it is'],
  format: ['text', 'Program that it is for: generic, quickbooks, xero or netsuite'],
  part: ['integer', 'Place among the parts of the month for this program; together they are its journal'],
  kind: [
    'text',
    'journal, difference (posted since the parts before) or reclassification (moved between their accounts)',
  ],
  seal: ['text', "Seal of the month's books; if they were open, of the month"],
  books_closed: ['boolean', "Whether the month's books were closed when it was exported"],
  position: ['integer', 'Place of the file among those of the journal, from 1'],
  file: ['text', 'Name of the file'],
  sha256: ['text', 'SHA-256 of the file'],
  recorded_at: RECORDED_AT,
  event_id: EVENT,
} satisfies Columns;

const GL_LINES = {
  gl_export_id: ['integer', 'Id of the exported journal (gl-exports)'],
  line: ['integer', 'Place of the line in the journal, from 1'],
  month: GL_EXPORTS.month,
  format: GL_EXPORTS.format,
  part: GL_EXPORTS.part,
  external_id: ['text', 'Id of the journal in the program: month, part, currency, beginning of the seal'],
  control: ['text', 'Control account'],
  account: ['text', 'Our account'],
  partner_id: PARTNER,
  policy_id: POLICY,
  currency: CURRENCY,
  amount: ['amount', 'Debits above zero, credits below. Files sum the lines that agree in the following columns'],
  to_account: ['text', 'Account of the general ledger'],
  class: ['text', 'Class there'],
  location: ['text', 'Location there'],
  name: ['text', 'Name of the partner there, on lines by partner'],
  memo: ['text', 'Text of the line in the file'],
} satisfies Columns;

// --- Files ------------------------------------------------------------------------------------------------------------

const FILES = {
  ledger: LEDGER,
  invoices: INVOICES,
  'invoice-lines': INVOICE_LINES,
  voids: VOIDS,
  'write-offs': WRITE_OFFS,
  openings: OPENINGS,
  payments: PAYMENTS,
  'payment-moves': PAYMENT_MOVES,
  'credit-moves': CREDIT_MOVES,
  'bank-lines': BANK_LINES,
  partners: PARTNERS,
  policies: POLICIES,
  'partner-changes': PARTNER_CHANGES,
  events: EVENTS,
  'opening-balances': OPENING_BALANCES,
  journal: JOURNAL,
  'gl-exports': GL_EXPORTS,
  'gl-lines': GL_LINES,
} satisfies Record<string, Columns>;

export type DataFile = keyof typeof FILES;
export type TableFormat = 'csv' | 'jsonl';

export interface Column {
  readonly name: string;
  readonly type: ColumnType;
  readonly meaning: string;
}

/** The columns of a data file in order. For `invoices.jsonl`, includes the keys inside its lists and objects. */
export function columnsOf(file: DataFile, format: TableFormat = 'csv'): readonly Column[] {
  const columns: Columns = file === 'invoices' && format === 'jsonl' ? INVOICES_JSON : FILES[file];
  return Object.entries(columns).map(([name, [type, meaning]]) => ({ name, type, meaning }));
}

export const columnNames = (file: DataFile): readonly string[] => Object.keys(FILES[file]);

export const headerOf = (file: DataFile): string => csvLine(columnNames(file));

/** `dictionary.csv` for the data files of a pack, under their names there. */
export function dictionaryOf(files: readonly string[]): { text: string; rows: number } {
  const order = Object.keys(FILES) as DataFile[];
  const rows = order.flatMap((file) =>
    (['csv', 'jsonl'] as const)
      .filter((format) => files.includes(`${file}.${format}`))
      .flatMap((format) =>
        columnsOf(file, format).map(({ name, type, meaning }) => [`${file}.${format}`, name, type, meaning]),
      ),
  );
  return { text: [['file', 'column', 'type', 'meaning'], ...rows].map(csvLine).join(''), rows: rows.length };
}
