/**
 * The one list of checks that `verify`, its job and the tests share (design, Invariants). Each is a query or a
 * recomputation over what is stored; it says how many things it looked at, and names every one that is not as it must be.
 */
import { createHash } from 'node:crypto';
import { execute, type Transaction } from '../database/transaction.ts';
import * as delivery from './checks/delivery.ts';
import * as documents from './checks/documents.ts';
import { APPEND_ONLY_GUARDS } from './checks/guards.ts';
import type { JournalFindings } from './checks/journal.ts';
import * as ledger from './checks/ledger.ts';
import * as payments from './checks/payments.ts';
import { findChangedDrawings } from './checks/pdfs.ts';
import { type Asked, listOf, question } from './checks/query.ts';
import type { RowFindings } from './checks/rows.ts';
import { findBrokenSeals } from './checks/seals.ts';
import * as splits from './checks/splits.ts';

export interface Difference {
  /** What is not as it must be: a row, a document, a series. */
  readonly subject: string;
  /** How it is, and how it must be. */
  readonly detail: string;
}

export interface Finding {
  readonly inspected: number;
  readonly differences: readonly Difference[];
}

/** What is looked at. */
export interface Scope extends Asked {
  /** What the checks of rows, and those of the journal, find: asked for by the first of them, and there for the others. */
  readonly rows: () => Promise<RowFindings>;
  readonly journal: () => Promise<JournalFindings>;
}

export interface Check {
  readonly name: string;
  /** The number of the invariant in the design. */
  readonly invariant: number;
  readonly run: (tx: Transaction, scope: Scope) => Promise<Finding>;
}

/** A query that gives the number of what was inspected, and the differences. */
function fromQuery(text: string): Check['run'] {
  const whole = `WITH ${text}
    SELECT (SELECT count(*) FROM inspected) AS inspected, ${listOf('differences')} AS differences`;
  return question<Finding>(`verify_${createHash('sha256').update(whole).digest('hex').slice(0, 16)}`, whole);
}

/**
 * Joined by hashing alone. Of a month just imported the planner knows nothing yet, or nothing but those before it: it took
 * its rows for a handful, and compared each of 100,000 with all, or with all of the same partner.
 */
const joinedByHashing =
  (run: Check['run']): Check['run'] =>
  async (tx, scope) => {
    await execute(tx, `SET LOCAL enable_nestloop TO off; SET LOCAL enable_mergejoin TO off`);
    const found = await run(tx, scope);
    await execute(tx, `SET LOCAL enable_nestloop TO DEFAULT; SET LOCAL enable_mergejoin TO DEFAULT`);
    return found;
  };

/** One way over everything, another for one month. */
const byScope =
  (everything: Check['run'], ofMonth: Check['run']): Check['run'] =>
  (tx, scope) =>
    scope.month === null ? everything(tx, scope) : ofMonth(tx, scope);

const ofRows =
  (name: keyof RowFindings): Check['run'] =>
  async (_, { rows }) =>
    (await rows())[name];

const ofJournal =
  (name: keyof JournalFindings): Check['run'] =>
  async (_, { journal }) =>
    (await journal())[name];

export const CHECKS: readonly Check[] = [
  { name: 'rows_balance', invariant: 1, run: ofRows('rows_balance') },
  {
    name: 'rows_within_their_quotes',
    invariant: 1,
    run: joinedByHashing(
      byScope(fromQuery(ledger.ROWS_WITHIN_THEIR_QUOTES), fromQuery(ledger.ROWS_OF_MONTH_WITHIN_THEIR_QUOTES)),
    ),
  },
  { name: 'acceptances_are_their_rows', invariant: 1, run: fromQuery(ledger.ACCEPTANCES_ARE_THEIR_ROWS) },
  { name: 'append_only_guards', invariant: 2, run: fromQuery(APPEND_ONLY_GUARDS) },
  { name: 'seals_recomputed', invariant: 2, run: findBrokenSeals },
  { name: 'rows_in_their_months', invariant: 3, run: ofRows('rows_in_their_months') },
  { name: 'months_follow', invariant: 3, run: fromQuery(ledger.MONTHS_FOLLOW) },
  { name: 'documents_are_their_rows', invariant: 4, run: ofRows('documents_are_their_rows') },
  { name: 'lines_are_their_rows', invariant: 4, run: ofRows('lines_are_their_rows') },
  { name: 'rows_are_billed_or_open', invariant: 4, run: ofRows('rows_are_billed_or_open') },
  { name: 'one_live_document', invariant: 5, run: fromQuery(documents.ONE_LIVE_DOCUMENT) },
  { name: 'numbers_without_gaps', invariant: 6, run: fromQuery(documents.NUMBERS_WITHOUT_GAPS) },
  { name: 'documents_add_up', invariant: 7, run: fromQuery(documents.DOCUMENTS_ADD_UP) },
  { name: 'voids_and_replacements', invariant: 7, run: fromQuery(documents.VOIDS_AND_REPLACEMENTS) },
  { name: 'balances_within_documents', invariant: 8, run: fromQuery(documents.BALANCES_WITHIN_DOCUMENTS) },
  { name: 'journal_balances', invariant: 8, run: ofJournal('journal_balances') },
  { name: 'accounts_tie', invariant: 8, run: fromQuery(documents.ACCOUNTS_TIE) },
  { name: 'credit_ties', invariant: 8, run: fromQuery(documents.CREDIT_TIES) },
  { name: 'payments_within_their_amounts', invariant: 8, run: fromQuery(payments.PAYMENTS_WITHIN_THEIR_AMOUNTS) },
  { name: 'documents_within_what_is_due', invariant: 8, run: fromQuery(payments.DOCUMENTS_WITHIN_WHAT_IS_DUE) },
  { name: 'payments_known_once', invariant: 8, run: fromQuery(payments.PAYMENTS_KNOWN_ONCE) },
  { name: 'duplicates_are_of_a_payment', invariant: 8, run: fromQuery(payments.DUPLICATES_ARE_OF_A_PAYMENT) },
  { name: 'bank_lines_accounted_for', invariant: 8, run: fromQuery(payments.BANK_LINES_ACCOUNTED_FOR) },
  { name: 'bank_files_add_up', invariant: 8, run: fromQuery(payments.BANK_FILES_ADD_UP) },
  { name: 'payouts_add_up', invariant: 8, run: fromQuery(payments.PAYOUTS_ADD_UP) },
  { name: 'account_payouts_add_up', invariant: 8, run: fromQuery(payments.ACCOUNT_PAYOUTS_ADD_UP) },
  { name: 'payouts_bring_what_was_left', invariant: 8, run: fromQuery(payments.PAYOUTS_BRING_WHAT_WAS_LEFT) },
  { name: 'entries_in_open_months', invariant: 8, run: fromQuery(payments.ENTRIES_IN_OPEN_MONTHS) },
  {
    name: 'nothing_used_before_it_was_there',
    invariant: 8,
    run: fromQuery(payments.NOTHING_USED_BEFORE_IT_WAS_THERE),
  },
  { name: 'processor_events_told', invariant: 8, run: fromQuery(payments.PROCESSOR_EVENTS_TOLD) },
  { name: 'disputes_as_decided', invariant: 8, run: fromQuery(payments.DISPUTES_AS_DECIDED) },
  { name: 'balance_transactions_add_up', invariant: 8, run: fromQuery(splits.BALANCE_TRANSACTIONS_ADD_UP) },
  { name: 'balance_transactions_counted_once', invariant: 8, run: fromQuery(splits.BALANCE_TRANSACTIONS_COUNTED_ONCE) },
  { name: 'shares_are_of_their_quotes', invariant: 8, run: fromQuery(splits.SHARES_ARE_OF_THEIR_QUOTES) },
  { name: 'missing_shares_are_billed', invariant: 4, run: fromQuery(splits.MISSING_SHARES_ARE_BILLED) },
  { name: 'shares_pay_their_invoices', invariant: 8, run: fromQuery(splits.SHARES_PAY_THEIR_INVOICES) },
  { name: 'processor_ties', invariant: 8, run: ofJournal('processor_ties') },
  { name: 'document_pdfs_as_issued', invariant: 9, run: findChangedDrawings },
  { name: 'emails_tell_their_state', invariant: 10, run: fromQuery(delivery.EMAILS_TELL_THEIR_STATE) },
  { name: 'payment_links_tell_their_state', invariant: 10, run: fromQuery(delivery.PAYMENT_LINKS_TELL_THEIR_STATE) },
  { name: 'every_partner_and_document_counted', invariant: 11, run: ofRows('every_partner_and_document_counted') },
];
