/**
 * The canonical form of what is sealed, and the one list of the tables that a seal covers (docs/auditors.md).
 *
 * A line is the columns below in this order, separated by tabs, written as PostgreSQL's COPY writes its text format: NULL
 * is \N, and a backslash, tab or line end inside of a text is escaped. Times are UTC as PostgreSQL writes them,
 * 2026-07-15 12:00:00.25+00; amounts are without trailing zeros; dates are 2026-07-15.
 */
import { createHash } from 'node:crypto';
import { type PreparedQuery, prepared, query, type Transaction } from '../database/transaction.ts';

/**
 * The form of a seal record, in its first line. After the first release it is raised when a table or column below is added
 * or changed, and an earlier seal keeps its own.
 */
export const FORM = 1;

/** A ledger row. These lines are the leaves of a month's tree. */
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
] as const;

export interface SealedTable {
  readonly name: string;
  /** All of its columns, but those that `leftOut` names with a reason. */
  readonly columns: readonly string[];
  readonly leftOut?: Readonly<Record<string, string>>;
}

const AMOUNTS = 'spot_price partner_cut invoice_amount';
const ADDRESS = 'address_line1 address_line2 address_city address_region address_postal_code address_country';

const sealed = (name: string, columns: string, leftOut?: Record<string, string>): SealedTable => ({
  name,
  columns: ['fact_id', ...columns.split(/\s+/)],
  ...(leftOut && { leftOut }),
});

/**
 * The tables of facts. Every row of theirs has a number, `fact_id`, in the order of recording over all of them; a seal
 * covers those after the last one of the seal before.
 */
export const SEALED_TABLES: readonly SealedTable[] = [
  sealed('audit_events', 'event_id occurred_at action subject details claimed_by os_user host via'),
  sealed('issuer_versions', 'issuer_version_id content first_used_at', { logo_sha256: 'computed from the content' }),
  sealed(
    'documents',
    `document_id number series sequence document purpose partner_id month currency arrangement issued_on due_on
     terms_days enrollments entries ${AMOUNTS} credit_applied partner_name ${ADDRESS} tax_id purchase_order legal_note
     issuer_version_id sandbox issued_at replaces credits reason reopened_on entry_on`,
  ),
  sealed('document_lines', `document_id position policy_id policy_name kind month count ${AMOUNTS}`),
  sealed(
    'credit_applications',
    'credit_application_id credit_note_id invoice_id amount applied_on recorded_at at_issue reopened_on entry_on',
  ),
  sealed(
    'voids',
    'document_id partner_id month currency arrangement reason voided_on recorded_at event_id reopened_on entry_on',
  ),
  sealed('credit_releases', 'credit_application_id document_id released_on recorded_at reopened_on entry_on'),
  sealed(
    'write_offs',
    'write_off_id document_id amount reason written_off_on recorded_at event_id reopened_on entry_on',
  ),
  sealed('holds', 'hold_id document_id follows reason held_at event_id'),
  sealed('hold_releases', 'hold_id document_id released_at event_id'),
  sealed('instruction_versions', 'instruction_version_id currency content first_used_at'),
  sealed(
    'document_pdfs',
    'document_id renderer_version libraries instruction_version_id instructions_changed sha256 rendered_at',
    { pdf: 'its hash is sealed' },
  ),
  // Money in.
  sealed('bank_files', 'bank_file_id sha256 name format bytes recorded_at event_id'),
  sealed(
    'bank_statements',
    'bank_statement_id bank_file_id position account currency reference opening closing credits debits lines',
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
     payer_account recorded_at event_id`,
  ),
  sealed('payment_sources', 'identity payment_id source reference bank_line_id recorded_at event_id'),
  sealed(
    'payment_assignments',
    'payment_assignment_id payment_id from_partner_id partner_id amount assigned_on entry_on recorded_at event_id',
  ),
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
    `payment_reversal_id identity payment_id partner_id currency amount kind code reason bank_line_id duplicate_of
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
  sealed('processor_event_outcomes', 'processor_event_id outcome payment_id reason recorded_at event_id'),
  sealed(
    'payment_exception_closings',
    'payment_exception_closing_id processor_event_id bank_line_id reason recorded_at event_id',
  ),
  // What the processor routed.
  sealed('settlement_files', 'settlement_file_id partner_id sha256 name lines recorded_at event_id'),
  sealed(
    'settlement_lines',
    `settlement_line_id settlement_file_id line partner_id quote_id requote_id reversal_id transfer payment kind currency
       amount refunded moved_at`,
  ),
  sealed(
    'balance_transactions',
    `balance_transaction_id account id reported_by type kind currency amount fee net moved_at payment of_payment transfer quote_id
       requote_id enrollment_id recorded_at event_id`,
    { payload: 'as the processor sent it, with what is personal; what was read of it is sealed' },
  ),
  sealed(
    'processor_readings',
    'processor_reading_id account read_from read_to balance_transactions new_balance_transactions recorded_at event_id',
  ),
  sealed(
    'share_allocations',
    `share_allocation_id balance_transaction_id partner_id posted_month entry_id quote_id requote_id currency amount matched_by
       settlement_line_id reason moved_on entry_on recorded_at event_id`,
  ),
  sealed('reversal_evidence', 'share_allocation_id partner_id posted_month entry_id price_from recorded_at event_id'),
  sealed('share_payments', 'share_allocation_id payment_id payment_reversal_id currency amount recorded_at event_id'),
  sealed('missing_shares', 'document_id partner_id month currency arrangement quote_id amount'),
  sealed('payout_contents', 'balance_transaction_id payout_transaction_id account currency recorded_at event_id'),
  sealed('account_payouts', 'payout_id account currency balance_transaction_id recorded_at event_id'),
  // Who may call.
  sealed('api_clients', 'client_id partner_id created_at event_id'),
  sealed('client_revocations', 'client_id revoked_at event_id'),
];

/** The tables that no seal covers as facts, and why. */
export const OTHER_TABLES: Readonly<Record<string, string>> = {
  ledger_rows: 'the rows are the leaves of the tree whose root the seal has',
  closed_months: 'the seal states each of its columns',
  installation: 'the seal states it',
  seals: 'each seal has the one before',
  partners: 'kept up to date; what a document says of a partner is sealed with it, each import with its event',
  partner_arrangements: 'kept up to date; each row is sealed with its own',
  policies: 'kept up to date; a line is sealed with its policy name',
  payment_links: 'a token opens the page of its invoice, so that it goes into no export',
  logos: 'the issuer versions have their hashes',
  emails: 'each moves from state to state',
  email_attempts: 'the log of what moves from state to state',
  processor_events: 'as the processor sent them, with what is personal; what was made of them is sealed',
  payment_link_intents: 'calls to a processor, with their keys',
  payment_link_attempts: 'calls to a processor, with their keys',
  payment_link_objects: 'what a processor keeps for a link',
  payment_link_closings: 'what a processor keeps for a link',
  payment_link_waits: 'moves from state to state',
  reminders: 'say which e-mail asked for what',
  client_secrets: 'hashes of secrets go into no export; each has its event',
  signing_keys: 'keys of an hour, for tokens',
  quotes: 'prices that were offered; what was accepted is a row',
  requotes: 'prices that were offered; what was accepted is a row',
  quote_acceptances: 'say which row recorded an acceptance, and the row is sealed',
  idempotency_keys: 'answers that are kept for a day, for repetitions',
  requote_acceptances: 'say which row recorded an acceptance, and the row is sealed',
  job_runs: 'says what ran, not what was done: that is in the audit events',
};

/** Every connection of the program is in UTC and has ISO dates, so PostgreSQL writes times as the form wants them. */
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

export interface CopyOfFacts {
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

/** Which of these tables have facts of a range. */
function filledOf(names: readonly string[]): PreparedQuery {
  const sql = names
    .map(
      (name) =>
        `SELECT '${name}' AS name WHERE EXISTS (SELECT FROM ${name} WHERE fact_id > :after::bigint AND fact_id <= :to::bigint)`,
    )
    .join(' UNION ALL ');
  return prepared(`filled_${createHash('sha256').update(sql).digest('hex').slice(0, 16)}`, sql);
}

/**
 * The facts as COPY takes them, of all sealed tables or of some, leaving out tables without facts in the
 * range. Throws when the database misses one of the tables or columns: a seal would silently cover less. Two questions
 * for all tables, since most have nothing new under most seals: one after another they were half of a small close.
 */
export async function copiesOfFacts(
  tx: Transaction,
  { after, to }: { after: number; to: number },
  tables = SEALED_TABLES,
): Promise<CopyOfFacts[]> {
  // Prepared: they are asked for each seal that is made or recomputed, and planning them took longer than answering.
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
  if (missing.length > 0) throw new Error(`the database misses what seals cover: ${missing.join(', ')}`);
  if (tables.length === 0) return [];
  const these = `WHERE fact_id > ${after} AND fact_id <= ${to}`;
  const names = tables.map(({ name }) => name);
  const filled = await query<{ name: string }>(tx, filledOf(names), { after, to });
  const having = new Set(filled.map(({ name }) => name));
  return tables
    .filter(({ name }) => having.has(name))
    .map(({ name, columns: all }) => {
      const list = all.map((column) => columnOf(column, typesOf.get(name)?.get(column) ?? ''));
      return {
        name,
        copy: `COPY (SELECT ${list.join(', ')} FROM ${name} ${these} ORDER BY fact_id) TO STDOUT (FORMAT text, HEADER)`,
      };
    });
}

/** Months as they bill rows: those posted after the month before and up to it. Empty for the first closed month. */
export interface PostedMonths {
  readonly after: string;
  readonly to: string;
}

const posted = ({ after, to }: PostedMonths) => `posted_month > '${after}' AND posted_month <= '${to}'`;

const NULLABLE: readonly string[] = ['requote_id', 'reversal_id', 'enrollment_id'];
const NUMERICS: readonly string[] = ['spot_price', 'partner_cut', 'invoice_amount'];

/** The lines of a month's rows, in ledger order, as COPY takes them. */
export function copyRows(months: PostedMonths): string {
  const list = ROW_COLUMNS.map((name) => columnOf(name, NUMERICS.includes(name) ? 'numeric' : '')).join(', ');
  return `COPY (SELECT ${list} FROM ledger_rows WHERE ${posted(months)} ORDER BY entry_id) TO STDOUT (FORMAT text, HEADER)`;
}

/**
 * The line of a row as an expression: a million rows are hashed where they lie. It leaves out the escapes that no
 * imported row needs (identifiers have no tab, line end or backslash). A row that was given some by other means so
 * gets another line than COPY writes, and a line like no other row's: one tab, line end or backslash too many.
 */
function rowLine(): string {
  const columns = ROW_COLUMNS.map((name) => {
    if (NULLABLE.includes(name)) return `coalesce(replace(${name}, '\\', '\\\\'), '\\N')`;
    return NUMERICS.includes(name) ? `trim_scale(${name})` : name;
  });
  return `concat_ws(E'\\t', ${columns.join(', ')})`;
}

/** RFC 9162 leaf hashes of a month's rows, in ledger order, in COPY's binary format. */
export const copyLeafHashes = (months: PostedMonths): string =>
  `COPY (SELECT sha256('\\x00'::bytea || convert_to(${rowLine()}, 'UTF8')) FROM ledger_rows WHERE ${posted(months)}
         ORDER BY entry_id) TO STDOUT (FORMAT binary)`;

/** The line of one row. */
export async function readRowLine(tx: Transaction, entryId: number): Promise<string | undefined> {
  const rows = await query<{ line: string }>(
    tx,
    `SELECT ${rowLine()} AS line FROM ledger_rows WHERE entry_id = :entryId`,
    { entryId },
  );
  return rows[0]?.line;
}
