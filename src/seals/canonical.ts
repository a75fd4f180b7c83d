/**
 * The canonical form of sealed data, and the list of tables that a seal covers (docs/auditors.md).
 *
 * A line has the columns below in this order in the text format of PostgreSQL's COPY: separated by tabs, NULL as \N, and a
 * backslash, tab or line end inside a text escaped. Times are in UTC as PostgreSQL writes them, 2026-07-15 12:00:00.25+00;
 * dates are 2026-07-15; amounts have no trailing zeros.
 */
import { createHash } from 'node:crypto';
import { type PreparedQuery, prepared, query, type Transaction } from '../database/transaction.ts';

/**
 * The version in the first line of a seal record. After the first release it increases when a table or column below is
 * added or changed, and earlier seals keep their version.
 */
export const FORM = 1;

/** A ledger row. Its lines are the leaves of a month's Merkle tree. */
export const ROW_COLUMNS = [
  'entry_id',
  'posted_month',
  'partner_id',
  'kind',
  'quote_id',
  'requote_id',
  'reversal_id',
  'enrollment_id',
  'policy_id',
  'currency',
  'accepted_at',
  'spot_price',
  'partner_cut',
  'invoice_amount',
  'time_zone',
  'month',
  'arrangement',
  'recorded_at',
  'event_id',
] as const;

export interface SealedTable {
  readonly name: string;
  /** All columns except those in `leftOut`. */
  readonly columns: readonly string[];
  /** Unsealed columns, each with the reason. */
  readonly leftOut?: Readonly<Record<string, string>>;
  /** Further columns of its lines, which are not columns of the table, each with its SQL. */
  readonly computed?: Readonly<Record<string, string>>;
}

const AMOUNTS = 'spot_price partner_cut invoice_amount';
const ADDRESS = 'address_line1 address_line2 address_city address_region address_postal_code address_country';

const sealed = (
  name: string,
  columns: string,
  leftOut?: Record<string, string>,
  computed?: Record<string, string>,
): SealedTable => ({
  name,
  columns: ['fact_id', ...columns.split(/\s+/)],
  ...(leftOut && { leftOut }),
  ...(computed && { computed }),
});

const sha256Of = (text: string) => `encode(sha256(convert_to(${text}, 'UTF8')), 'hex')`;

/**
 * The tables of facts. Every fact has a number, `fact_id`, in the order of recording across these tables. A seal covers
 * the facts after the last fact that the previous seal covers.
 */
export const SEALED_TABLES: readonly SealedTable[] = [
  sealed('audit_events', 'event_id occurred_at action subject details claimed_by os_user host via user_id'),
  sealed('users', 'user_id kind login name follows recorded_at event_id'),
  sealed('user_ends', 'user_id reason recorded_at event_id'),
  sealed('user_roles', 'user_role_id user_id action role partner_id source recorded_at event_id'),
  sealed('user_identities', 'user_id issuer subject recorded_at event_id'),
  sealed('passkeys', 'passkey_id user_id credential_id public_key name recorded_at event_id'),
  sealed('passkey_ends', 'passkey_id recorded_at event_id'),
  sealed(
    'approval_requests',
    `request_id action input subject partner_ids preview preview_hash requested_by reason requested_at expires_at event_id`,
  ),
  sealed('approval_decisions', 'request_id requested_by decision decided_by reason recorded_at event_id'),
  sealed('pauses', 'pause_id cause reason state_of paused_at event_id'),
  sealed('resumptions', 'pause_id resumed_at event_id'),
  sealed('issuer_versions', 'issuer_version_id content first_used_at', { logo_sha256: 'computed from the content' }),
  sealed('openings', 'opening_id cut_over_on sha256 name recorded_at event_id'),
  sealed('opening_totals', 'opening_id currency items invoices credits cash control'),
  sealed(
    'documents',
    `document_id number series sequence document purpose partner_id month currency arrangement issued_on due_on
     terms_days enrollments entries ${AMOUNTS} credit_applied partner_name contact_name ${ADDRESS} tax_id purchase_order legal_note
     e_invoice buyer_reference electronic_address issuer_version_id sandbox issued_at replaces credits invoice_lowered_by
     invoice_left reason reopened_on entry_on opening_id opening_number opening_revision opening_follows original_amount`,
    { tax: 'the sum of its document_taxes, which are sealed', gross: 'computed from invoice_amount and tax' },
  ),
  sealed('skipped_numbers', 'series first_sequence last_sequence pause_id recorded_at event_id'),
  sealed('document_lines', `document_id position policy_id policy_name kind month count ${AMOUNTS}`, {
    tax: 'document_taxes are sealed with the positions of their lines',
  }),
  // A document without tax has no row here, so its seal does not mention tax.
  sealed(
    'document_taxes',
    `document_id position currency country registration name category rate reduced reason reason_code taxable tax`,
    undefined,
    { line_positions: 'lines_of_tax(document_id, position)' },
  ),
  sealed(
    'credit_applications',
    'credit_application_id credit_note_id invoice_id amount applied_on recorded_at at_issue event_id reopened_on entry_on',
  ),
  sealed(
    'voids',
    'document_id partner_id month currency arrangement reason voided_on recorded_at event_id reopened_on entry_on',
  ),
  sealed('credit_releases', 'credit_application_id document_id released_on recorded_at event_id reopened_on entry_on'),
  sealed(
    'write_offs',
    'write_off_id document_id amount reason written_off_on recorded_at event_id reopened_on entry_on',
  ),
  sealed('write_off_reversals', 'write_off_id reason reversed_on recorded_at event_id reopened_on entry_on'),
  sealed('holds', 'hold_id document_id follows reason held_at event_id'),
  sealed('hold_releases', 'hold_id document_id released_at event_id'),
  sealed(
    'invoice_disputes',
    'invoice_dispute_id document_id follows amount reason owner promised_on disputed_on recorded_at event_id',
  ),
  sealed('invoice_dispute_closings', 'invoice_dispute_id document_id reason closed_on recorded_at event_id'),
  sealed('instruction_versions', 'instruction_version_id currency content first_used_at'),
  sealed(
    'document_pdfs',
    'document_id renderer_version libraries instruction_version_id instructions_changed sha256 rendered_at',
    { pdf: 'its hash is sealed' },
  ),
  sealed('document_e_invoices', 'document_id writer_version parties sha256 written_at', { xml: 'its hash is sealed' }),
  // Closed books.
  sealed('book_closes', 'month previous facts_to closed_at event_id record seal'),
  sealed('book_balances', 'month control account currency amount'),
  sealed('checkpoints', 'checkpoint_number previous facts_to entries_to taken_at event_id record seal', {
    trees: 'computed from the rows, to spare a close hashing them again',
  }),
  // Signatures and time stamps of seals.
  sealed('seal_signatures', 'kind name seal key_name public_key signature signed_at event_id'),
  sealed(
    'seal_time_stamps',
    'kind name seal authority stamped_at recorded_at event_id',
    { response: 'its hash is sealed' },
    { response_sha256: `encode(sha256(response), 'hex')` },
  ),
  // Payments.
  sealed('bank_files', 'bank_file_id sha256 name format bytes recorded_at event_id'),
  sealed(
    'bank_statements',
    'bank_statement_id bank_file_id position account currency reference opening closing closed_on credits debits lines',
  ),
  sealed(
    'bank_lines',
    `bank_line_id account identity currency direction amount bank_booked_on value_on bank_reference references text
     payer_name payer_account type is_reversal return_code raw`,
  ),
  sealed('bank_statement_lines', 'bank_statement_id position bank_line_id account currency'),
  sealed(
    'bank_line_outcomes',
    'bank_line_id outcome payment_id payout_id payment_reversal_id needs_review reason recorded_at event_id',
  ),
  sealed(
    'payments',
    `payment_id identity source partner_id currency amount method account received_on entry_on reference payer_name
     payer_account recorded_at event_id opening_id opening_number`,
  ),
  sealed('payment_sources', 'identity payment_id source reference bank_line_id recorded_at event_id'),
  sealed(
    'payment_assignments',
    'payment_assignment_id payment_id from_partner_id partner_id kind amount assigned_on entry_on recorded_at event_id',
  ),
  sealed('forgotten_payer_accounts', 'forgotten_payer_account_id payer_account recorded_at event_id'),
  sealed(
    'payment_applications',
    `payment_application_id payment_id document_id partner_id currency amount applied_on entry_on confidence evidence
     recorded_at event_id`,
  ),
  sealed(
    'payment_suggestions',
    'payment_suggestion_id payment_id document_id same_as amount confidence evidence recorded_at event_id',
  ),
  sealed('small_differences', 'payment_application_id document_id currency amount entry_on recorded_at event_id'),
  sealed(
    'payment_reversals',
    `payment_reversal_id identity payment_id partner_id currency amount kind code reason bank_line_id duplicate_of booked_to
     reversed_on entry_on recorded_at event_id`,
  ),
  sealed('payment_reinstatements', 'payment_reversal_id partner_id reinstated_on entry_on recorded_at event_id'),
  sealed(
    'payment_unapplications',
    'payment_application_id payment_reversal_id unapplied_on entry_on recorded_at event_id',
  ),
  sealed(
    'payouts',
    'payout_id bank_line_id account currency amount direction received_on entry_on recorded_at event_id',
  ),
  sealed('payout_payments', 'payment_id payout_id amount'),
  sealed('payout_settlements', 'payout_id gross fees entry_on evidence recorded_at event_id'),
  sealed('disputes', 'dispute_id identity payment_id amount reason opened_on recorded_at event_id'),
  sealed('dispute_outcomes', 'dispute_id outcome decided_on recorded_at event_id'),
  sealed(
    'credit_refunds',
    `credit_refund_id document_id partner_id currency amount method account reference refunded_on entry_on recorded_at
     event_id`,
  ),
  sealed('credit_refund_returns', 'credit_refund_id reason returned_on entry_on recorded_at event_id'),
  sealed(
    'refund_matches',
    `refund_match_id bank_line_id account currency amount direction credit_refund_id payment_reversal_id paid_on entry_on
     evidence recorded_at event_id`,
  ),
  sealed('processor_event_outcomes', 'processor_event_id outcome payment_id reason recorded_at event_id', undefined, {
    event_sha256: 'processor_event_sha256(processor_event_id)',
  }),
  sealed('processor_event_erasures', 'processor_event_id recorded_at event_id'),
  sealed(
    'payment_exception_closings',
    `payment_exception_closing_id processor_event_id bank_line_id bank_statement_id payment_id reason recorded_at
     event_id`,
  ),
  // Connected accounts.
  sealed('settlement_files', 'settlement_file_id partner_id sha256 name lines recorded_at event_id'),
  sealed(
    'settlement_lines',
    `settlement_line_id settlement_file_id line partner_id quote_id requote_id reversal_id transfer payment kind currency
       amount refunded occurred_at`,
  ),
  sealed(
    'balance_transactions',
    `balance_transaction_id account id reported_by type kind currency amount fee net
     source_currency source_amount exchange_rate occurred_at payment of_payment transfer quote_id requote_id enrollment_id
     recorded_at event_id`,
    {
      share_currency: 'computed from the sealed columns',
      share_amount: 'computed from the sealed columns',
      payload:
        'raw data of the processor, which includes personal data; its hash and the values read from it are sealed',
    },
    { payload_sha256: sha256Of('payload::text') },
  ),
  sealed(
    'processor_readings',
    'processor_reading_id account read_from read_to file balance_transactions new_balance_transactions recorded_at event_id',
  ),
  sealed(
    'share_allocations',
    `share_allocation_id balance_transaction_id partner_id posted_month entry_id quote_id requote_id currency amount
     settled_currency settled_amount other_account matched_by settlement_line_id reason occurred_on entry_on recorded_at event_id`,
  ),
  sealed(
    'balance_transaction_closings',
    'balance_transaction_closing_id balance_transaction_id currency amount reason recorded_at event_id',
  ),
  sealed('reversal_evidence', 'share_allocation_id partner_id posted_month entry_id price_from recorded_at event_id'),
  sealed('share_payments', 'share_allocation_id payment_id payment_reversal_id currency amount recorded_at event_id'),
  sealed('missing_shares', 'document_id partner_id month currency arrangement quote_id amount'),
  sealed('payout_contents', 'balance_transaction_id payout_transaction_id account currency recorded_at event_id'),
  sealed('account_payouts', 'payout_id account currency balance_transaction_id recorded_at event_id'),
  // API clients.
  sealed('api_clients', 'client_id partner_id created_at event_id'),
  sealed('client_revocations', 'client_id revoked_at event_id'),
  sealed('client_secrets', 'client_id sequence issued_at expires_at previous_sequence previous_ends_at event_id', {
    secret_sha256: 'a hash of a secret, never exported',
  }),
  sealed('quote_acceptances', 'quote_id partner_id client_id posted_month entry_id'),
  sealed('requote_acceptances', 'quote_id step previous_step requote_id partner_id client_id posted_month entry_id'),
  // The general-ledger hand-off.
  sealed(
    'gl_exports',
    'gl_export_id month format part previous kind seal books_closed accounts writer recorded_at event_id',
  ),
  sealed(
    'gl_export_lines',
    `gl_export_id line control account partner_id policy_id currency amount to_account class location name memo`,
  ),
  sealed('gl_export_files', 'gl_export_id position name sha256', { content: 'its hash is sealed' }),
  // E-mails.
  sealed(
    'email_attempts',
    `email_id attempt started_at ended_at outcome reply kind message_id recipients message_sha256 pdf_sha256`,
  ),
  sealed(
    'email_bounces',
    'email_bounce_id email_id recipient status diagnostic reporting_server report_sha256 recorded_at event_id',
  ),
  sealed('reminders', 'document_id dunning_level email_id partner_id currency counted_from'),
];

/** Tables whose rows are not sealed as facts, each with the reason. */
export const OTHER_TABLES: Readonly<Record<string, string>> = {
  ledger_rows: 'the seal has the Merkle root of its rows',
  closed_months: 'the seal record states each column',
  presentation: 'the record of closed books states it',
  schema_records: 'what `migrate` made; the audit event of each record names its hash',
  installation: 'the seal record states it',
  seals: 'each seal contains the previous one',
  partners: 'updated in place; documents and the audit event of each change are sealed',
  partner_arrangements: 'updated in place; each row is sealed with its arrangement',
  policies: 'updated in place; each document line is sealed with its policy name, each change with its audit event',
  payment_links: 'secret tokens that open a payment page, never exported',
  payment_link_changes: 'secret tokens, never exported; each change has an audit event',
  book_open_documents: 'derived from sealed facts; `verify` derives it again',
  book_unapplied_cash: 'derived from sealed facts; `verify` derives it again',
  unallocated_balance_transactions: 'derived from sealed facts; `verify` derives it again',
  account_months: 'derived from sealed facts; `verify` derives it again',
  logos: 'issuer versions have their hashes',
  emails: 'a changing state; each attempt to send one is sealed',
  processor_events:
    'raw data of the processor, which includes personal data; outcomes are sealed with its hash, erasures as facts',
  payment_link_intents: 'requests to a processor',
  payment_link_attempts: 'requests to a processor',
  payment_link_objects: 'state at a processor',
  link_checks: 'work that waits; each delivery finds it again',
  payment_link_closings: 'state at a processor',
  payment_link_orders: 'state at a processor',
  payment_link_outcomes: 'state at a processor',
  payment_link_waits: 'a changing state',
  checkouts: 'requests to a processor; each has an audit event with its invoices and amounts',
  checkout_invoices: 'requests to a processor',
  checkout_sessions: 'state at a processor',
  checkout_orders: 'state at a processor',
  checkout_endings: 'state at a processor',
  signing_keys: 'short-lived keys for tokens',
  client_uses: 'a changing state',
  failed_exchanges: 'counters of a quarter of an hour',
  request_counts: 'counters of a minute',
  quotes: 'offers; an accepted one is a ledger row',
  requotes: 'offers; an accepted one is a ledger row',
  idempotency_keys: 'responses kept for retries',
  partner_events: 'an index of rows and facts, which are sealed; verify derives it again',
  published_marks: 'a changing state',
  webhooks: 'a changing state; each change has an audit event',
  security_events: 'refused callers with their addresses, which may have to be erased',
  passkey_uses: 'counters of passkeys',
  sign_in_links: 'hashes of secrets that end; each link has an audit event',
  sign_in_challenges: 'random values of sign-ins in progress',
  sessions: 'hashes of secrets that end; each sign-in has an audit event',
  partner_sign_in_links: 'hashes of secrets that end after minutes',
  partner_sessions: 'hashes of secrets that end; each sign-in has an audit event',
  job_runs: 'a log of runs; what they did is in the audit events',
  job_attention: 'a changing state',
  audit_tasks: 'a changing state; the start of each has an audit event',
};

/** Relies on connections with time zone UTC and ISO dates, which the program sets. */
function columnOf(name: string, type: string): string {
  switch (type) {
    case 'numeric':
      return `trim_scale(${name}) AS ${name}`;
    case 'date':
      return `to_char(${name}, 'YYYY-MM-DD') AS ${name}`;
    case 'boolean':
      return `${name}::text AS ${name}`;
    default:
      return `"${name}"`;
  }
}

interface CopyOfFacts {
  readonly name: string;
  /** A COPY, whose first line names the columns. */
  readonly copy: string;
}

const COLUMNS_OF = prepared(
  'columns_of_sealed_tables',
  `SELECT c.relname AS table, a.attname AS name, format_type(a.atttypid, NULL) AS type
         FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
         WHERE c.oid = ANY (SELECT to_regclass(name) FROM unnest(:tables::text[]) AS name)`,
);

/** A query for the tables that have facts in a range. */
function filledOf(names: readonly string[]): PreparedQuery {
  const sql = names
    .map(
      (name) =>
        `SELECT '${name}' AS name
         WHERE EXISTS (SELECT FROM ${name} WHERE fact_id > :after::bigint AND fact_id <= :to::bigint)`,
    )
    .join(' UNION ALL ');
  return prepared(`filled_${createHash('sha256').update(sql).digest('hex').slice(0, 16)}`, sql);
}

/**
 * COPY statements for the facts of a range, one for each table that has any. Throws if a table or column is missing,
 * which a seal would otherwise silently omit. Two queries cover all tables, because one query per table took half of
 * the time of a small close.
 */
export async function copiesOfFacts(
  tx: Transaction,
  { after, to }: { after: number; to: number },
  tables = SEALED_TABLES,
): Promise<CopyOfFacts[]> {
  // Prepared, because planning took longer than running them.
  const columns = await query<{ table: string; name: string; type: string }>(tx, COLUMNS_OF, {
    tables: tables.map(({ name }) => name),
  });
  const typesOf = new Map<string, Map<string, string>>();
  for (const { table, name, type } of columns) {
    const types = typesOf.get(table) ?? new Map<string, string>();
    typesOf.set(table, types.set(name, type));
  }
  const missing = tables.flatMap(({ name, columns: all }) =>
    ['fact_id', ...all].filter((column) => !typesOf.get(name)?.has(column)).map((column) => `${name}.${column}`),
  );
  if (missing.length > 0) throw new Error(`missing in the database, but covered by seals: ${missing.join(', ')}`);
  if (tables.length === 0) return [];
  const these = `WHERE fact_id > ${after} AND fact_id <= ${to}`;
  const names = tables.map(({ name }) => name);
  const filled = await query<{ name: string }>(tx, filledOf(names), { after, to });
  const having = new Set(filled.map(({ name }) => name));
  return tables
    .filter(({ name }) => having.has(name))
    .map(({ name, columns: all, computed = {} }) => {
      const list = [
        ...all.map((column) => columnOf(column, typesOf.get(name)?.get(column) ?? '')),
        ...Object.entries(computed).map(([column, expression]) => `${expression} AS ${column}`),
      ];
      return {
        name,
        copy: `COPY (SELECT ${list.join(', ')} FROM ${name} ${these} ORDER BY fact_id) TO STDOUT (FORMAT text, HEADER)`,
      };
    });
}

/** A range of posting months: after `after`, which is empty for the first closed month, up to `to`, if given. */
export interface PostedMonths {
  readonly after: string;
  readonly to?: string;
}

export const postedIn = ({ after, to }: PostedMonths): string =>
  `posted_month > '${after}'${to === undefined ? '' : ` AND posted_month <= '${to}'`}`;

/** The numbers after `after`, up to `to`. */
export interface Range {
  readonly after: number;
  readonly to: number;
}

export const recordedIn = ({ after, to }: Pick<Range, 'after'> & Partial<Range>): string =>
  `entry_id > ${after}${to === undefined ? '' : ` AND entry_id <= ${to}`}`;

const NULLABLE: readonly string[] = ['requote_id', 'reversal_id', 'enrollment_id'];
const NUMERICS: readonly string[] = ['spot_price', 'partner_cut', 'invoice_amount'];

/** The COPY of a month's ledger rows in ledger order. */
export function copyRows(months: PostedMonths): string {
  const list = ROW_COLUMNS.map((name) => columnOf(name, NUMERICS.includes(name) ? 'numeric' : '')).join(', ');
  return `COPY (SELECT ${list} FROM ledger_rows WHERE ${postedIn(months)} ORDER BY entry_id)
          TO STDOUT (FORMAT text, HEADER)`;
}

/**
 * The line of a row as a SQL expression, so that the database can hash a million rows. It does not escape tabs, line
 * ends and backslashes, which imported identifiers never contain. If a row contains one anyway, its line differs from
 * COPY's and from the line of any other row.
 */
function rowLine(): string {
  const columns = ROW_COLUMNS.map((name) => {
    if (NULLABLE.includes(name)) return `coalesce(replace(${name}, '\\', '\\\\'), '\\N')`;
    return NUMERICS.includes(name) ? `trim_scale(${name})` : name;
  });
  return `concat_ws(E'\\t', ${columns.join(', ')})`;
}

/**
 * A COPY in binary format of the rows that a condition selects, in ledger order: entry_id, posting month and RFC 9162
 * leaf hash.
 */
export const copyLeafHashes = (rows: string): string =>
  `COPY (SELECT entry_id, posted_month, sha256('\\x00'::bytea || convert_to(${rowLine()}, 'UTF8')) FROM ledger_rows
         WHERE ${rows} ORDER BY entry_id) TO STDOUT (FORMAT binary)`;

/** The line of one row. */
export async function readRowLine(tx: Transaction, entryId: number): Promise<string | undefined> {
  const rows = await query<{ line: string }>(
    tx,
    `SELECT ${rowLine()} AS line FROM ledger_rows WHERE entry_id = :entryId`,
    { entryId },
  );
  return rows[0]?.line;
}
