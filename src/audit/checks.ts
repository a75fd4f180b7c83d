/**
 * The list of checks that `verify`, its job and the tests share. Each check is a query or a recomputation over the
 * stored data. A check counts the items that it inspects, and names every item that is wrong.
 */
import { createHash } from 'node:crypto';
import { execute } from '../database/transaction.ts';
import { ACTIONS_APPROVED, ACTIONS_COMPARED } from './checks/approvals.ts';
import * as books from './checks/books.ts';
import type { Check } from './checks/check.ts';
import * as delivery from './checks/delivery.ts';
import * as documents from './checks/documents.ts';
import { findChangedEInvoices } from './checks/e-invoices.ts';
import { FACTS_HAVE_EVENTS, ROWS_HAVE_EVENTS, ROWS_OF_MONTH_HAVE_EVENTS } from './checks/events.ts';
import { findChangedGlFiles, GL_EXPORTS_TIE } from './checks/general-ledger.ts';
import { APPEND_ONLY_GUARDS } from './checks/guards.ts';
import type { JournalFindings } from './checks/journal.ts';
import * as ledger from './checks/ledger.ts';
import { findBrokenCheckpoints, findBrokenSignatures, findBrokenTimeStamps } from './checks/log.ts';
import { EVENTS_MATCH_FACTS } from './checks/partner-events.ts';
import { findChangedPartners } from './checks/partners.ts';
import * as payments from './checks/payments.ts';
import { findChangedPdfs } from './checks/pdfs.ts';
import { PERSONAL_TEXTS_KEPT_OR_ERASED } from './checks/personal-texts.ts';
import { checkQuery, type Finding, listOf } from './checks/query.ts';
import type { RowFindings } from './checks/rows.ts';
import { findChangedSchema } from './checks/schema.ts';
import * as splits from './checks/splits.ts';
import * as taxes from './checks/taxes.ts';
import { findBrokenRules } from './rules.ts';

const fromWhole = (whole: string): Check['run'] =>
  checkQuery<Finding>(`verify_${createHash('sha256').update(whole).digest('hex').slice(0, 16)}`, whole);

/** A check made by a query. `text` is the body of a WITH (see checks/query.ts). */
const fromQuery = (text: string): Check['run'] =>
  fromWhole(`WITH ${text}
    SELECT (SELECT count(*) FROM inspected) AS inspected, ${listOf('differences')} AS differences`);

/** A check made by a query that itself counts the inspected items, in the column `items` of `counted`. */
const fromCounted = (text: string): Check['run'] =>
  fromWhole(`WITH ${text}
    SELECT (SELECT items FROM counted) AS inspected, ${listOf('differences')} AS differences`);

/**
 * Allows only hash joins. The planner has no statistics on a month that was just imported. The planner expected a
 * handful of rows, so it compared each of 100,000 rows with all others.
 */
const joinedByHashing =
  (run: Check['run']): Check['run'] =>
  async (tx, context) => {
    await execute(tx, `SET LOCAL enable_nestloop TO off; SET LOCAL enable_mergejoin TO off`);
    const found = await run(tx, context);
    await execute(tx, `SET LOCAL enable_nestloop TO DEFAULT; SET LOCAL enable_mergejoin TO DEFAULT`);
    return found;
  };

/** Uses one query to check everything, and a different query to check a single month. */
const byScope =
  (everything: Check['run'], ofMonth: Check['run']): Check['run'] =>
  (tx, context) =>
    context.month === null ? everything(tx, context) : ofMonth(tx, context);

const ofRows =
  (name: keyof RowFindings): Check['run'] =>
  async (_, { rows }) =>
    (await rows())[name];

const ofJournal =
  (name: keyof JournalFindings): Check['run'] =>
  async (_, { journal }) =>
    (await journal())[name];

export const CHECKS: readonly Check[] = [
  { name: 'rows_balance', run: ofRows('rows_balance') },
  {
    name: 'rows_within_their_quotes',
    run: joinedByHashing(
      byScope(fromCounted(ledger.ROWS_WITHIN_THEIR_QUOTES), fromCounted(ledger.ROWS_OF_MONTH_WITHIN_THEIR_QUOTES)),
    ),
  },
  { name: 'acceptances_match_rows', run: fromQuery(ledger.ACCEPTANCES_MATCH_ROWS) },
  { name: 'append_only_guards', run: fromQuery(APPEND_ONLY_GUARDS) },
  { name: 'schema_as_migrated', run: findChangedSchema },
  { name: 'log_derived_again', beside: true, run: findBrokenCheckpoints },
  { name: 'signatures_verify', run: findBrokenSignatures },
  { name: 'time_stamps_hold', run: findBrokenTimeStamps },
  { name: 'facts_have_events', run: fromQuery(FACTS_HAVE_EVENTS) },
  {
    name: 'rows_have_events',
    run: joinedByHashing(byScope(fromQuery(ROWS_HAVE_EVENTS), fromQuery(ROWS_OF_MONTH_HAVE_EVENTS))),
  },
  { name: 'personal_texts_kept_or_erased', run: fromQuery(PERSONAL_TEXTS_KEPT_OR_ERASED) },
  { name: 'partners_as_recorded', run: findChangedPartners },
  { name: 'actions_approved', run: fromQuery(ACTIONS_APPROVED) },
  { name: 'actions_compared', run: fromQuery(ACTIONS_COMPARED) },
  { name: 'rows_in_their_months', run: ofRows('rows_in_their_months') },
  { name: 'months_contiguous', run: fromQuery(ledger.MONTHS_CONTIGUOUS) },
  { name: 'documents_match_rows', run: ofRows('documents_match_rows') },
  { name: 'lines_match_rows', run: ofRows('lines_match_rows') },
  { name: 'rows_billed_or_open', run: ofRows('rows_billed_or_open') },
  { name: 'one_live_document', run: fromQuery(documents.ONE_LIVE_DOCUMENT) },
  { name: 'numbers_without_gaps', run: fromQuery(documents.NUMBERS_WITHOUT_GAPS) },
  { name: 'documents_add_up', run: fromQuery(documents.DOCUMENTS_ADD_UP) },
  { name: 'openings_as_controlled', run: fromQuery(documents.OPENINGS_AS_CONTROLLED) },
  { name: 'voids_and_replacements', run: fromQuery(documents.VOIDS_AND_REPLACEMENTS) },
  { name: 'balances_within_documents', run: fromQuery(documents.BALANCES_WITHIN_DOCUMENTS) },
  { name: 'disputes_within_invoices', run: fromQuery(documents.DISPUTES_WITHIN_INVOICES) },
  { name: 'taxes_tie', run: fromQuery(taxes.TAXES_TIE) },
  { name: 'tax_payable_ties', run: fromQuery(taxes.TAX_PAYABLE_TIES) },
  { name: 'journal_balances', run: ofJournal('journal_balances') },
  { name: 'accounts_tie', run: fromQuery(documents.ACCOUNTS_TIE) },
  { name: 'credit_ties', run: fromQuery(documents.CREDIT_TIES) },
  { name: 'payments_within_their_amounts', run: fromQuery(payments.PAYMENTS_WITHIN_THEIR_AMOUNTS) },
  { name: 'documents_not_overpaid', run: fromQuery(payments.DOCUMENTS_NOT_OVERPAID) },
  { name: 'payments_recorded_once', run: fromQuery(payments.PAYMENTS_RECORDED_ONCE) },
  { name: 'duplicates_match_payments', run: fromQuery(payments.DUPLICATES_MATCH_PAYMENTS) },
  { name: 'bank_lines_accounted_for', run: fromQuery(payments.BANK_LINES_ACCOUNTED_FOR) },
  { name: 'refund_matches', run: fromQuery(payments.REFUND_MATCHES) },
  { name: 'bank_files_add_up', run: fromQuery(payments.BANK_FILES_ADD_UP) },
  { name: 'payouts_add_up', run: fromQuery(payments.PAYOUTS_ADD_UP) },
  { name: 'account_payouts_add_up', run: fromQuery(payments.ACCOUNT_PAYOUTS_ADD_UP) },
  { name: 'payouts_cover_remaining_amounts', run: fromQuery(payments.PAYOUTS_COVER_REMAINING_AMOUNTS) },
  { name: 'entries_in_open_books', run: fromQuery(books.ENTRIES_IN_OPEN_BOOKS) },
  { name: 'balances_of_closed_books', run: fromQuery(books.BALANCES_OF_CLOSED_BOOKS) },
  { name: 'open_items_of_closed_books', run: fromQuery(books.OPEN_ITEMS_OF_CLOSED_BOOKS) },
  { name: 'gl_exports_tie', run: fromQuery(GL_EXPORTS_TIE) },
  { name: 'gl_export_files_as_written', run: findChangedGlFiles },
  {
    name: 'daily_balances_not_negative',
    run: fromQuery(payments.DAILY_BALANCES_NOT_NEGATIVE),
  },
  { name: 'link_payments_proved', run: fromQuery(delivery.LINK_PAYMENTS_PROVED) },
  { name: 'processor_events_recorded', run: fromQuery(payments.PROCESSOR_EVENTS_RECORDED) },
  { name: 'disputes_match_outcomes', run: fromQuery(payments.DISPUTES_MATCH_OUTCOMES) },
  { name: 'balance_transactions_add_up', run: fromQuery(splits.BALANCE_TRANSACTIONS_ADD_UP) },
  { name: 'balance_transactions_counted_once', run: fromQuery(splits.BALANCE_TRANSACTIONS_COUNTED_ONCE) },
  { name: 'shares_kept', run: fromQuery(splits.SHARES_KEPT) },
  { name: 'share_allocations_match_quotes', run: fromQuery(splits.SHARE_ALLOCATIONS_MATCH_QUOTES) },
  { name: 'missing_shares_match_invoices', run: fromQuery(splits.MISSING_SHARES_MATCH_INVOICES) },
  { name: 'share_payments_match_allocations', run: fromQuery(splits.SHARE_PAYMENTS_MATCH_ALLOCATIONS) },
  { name: 'processor_account_ties', run: ofJournal('processor_account_ties') },
  { name: 'document_pdfs_as_issued', run: findChangedPdfs },
  { name: 'instructions_in_force', run: fromQuery(documents.INSTRUCTIONS_IN_FORCE) },
  { name: 'e_invoices_as_issued', run: findChangedEInvoices },
  { name: 'emails_consistent', run: fromQuery(delivery.EMAILS_CONSISTENT) },
  { name: 'payment_links_consistent', run: fromQuery(delivery.PAYMENT_LINKS_CONSISTENT) },
  { name: 'checkouts_consistent', run: fromQuery(delivery.CHECKOUTS_CONSISTENT) },
  { name: 'events_match_facts', run: joinedByHashing(fromQuery(EVENTS_MATCH_FACTS)) },
  { name: 'close_counts_match', run: ofRows('close_counts_match') },
  { name: 'rules_hold', beside: true, run: findBrokenRules },
];
