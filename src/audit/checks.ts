/**
 * The list of checks that `verify`, its job and the tests share. The rules check what the log says (rules.ts). The other
 * checks compare the facts with what is outside the log: the schema, the signatures, PDFs, e-mails, and tables that the
 * program updates. A check counts the items that it inspects, and names every item that is wrong.
 */
import { execute } from '#database/transaction';
import { ROWS_AT_OFFERED_PRICES } from './checks/acceptances.ts';
import { ACTIONS_APPROVED, ACTIONS_COMPARED } from './checks/approvals.ts';
import { findChangedArchives } from './checks/archives.ts';
import { OPEN_ITEMS_OF_CLOSED_BOOKS } from './checks/books.ts';
import { Check } from './checks/check.ts';
import * as delivery from './checks/delivery.ts';
import { findChangedEInvoices } from './checks/e-invoices.ts';
import { findChangedGlFiles } from './checks/general-ledger.ts';
import { APPEND_ONLY_GUARDS } from './checks/guards.ts';
import { findBrokenCheckpoints, findBrokenSignatures, findBrokenTimeStamps } from './checks/log.ts';
import { EVENTS_MATCH_FACTS } from './checks/partner-events.ts';
import { findChangedPartners } from './checks/partners.ts';
import * as payments from './checks/payments.ts';
import { findChangedPdfs } from './checks/pdfs.ts';
import { PERSONAL_TEXTS_KEPT_OR_ERASED } from './checks/personal-texts.ts';
import { checkQuery } from './checks/query.ts';
import { REVENUE_SCHEDULES_OF_ROWS } from './checks/revenue-schedules.ts';
import { findChangedSchema } from './checks/schema.ts';
import * as splits from './checks/splits.ts';
import { findWrongMonthZones } from './checks/time-zones.ts';
import { findBrokenRules } from './rules.ts';

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

export const CHECKS: readonly Check[] = [
  { name: 'signatures_verify', run: findBrokenSignatures },
  { name: 'time_stamps_hold', run: findBrokenTimeStamps },
  { name: 'append_only_guards', run: checkQuery(APPEND_ONLY_GUARDS) },
  { name: 'schema_as_migrated', run: findChangedSchema },
  { name: 'personal_texts_kept_or_erased', run: checkQuery(PERSONAL_TEXTS_KEPT_OR_ERASED) },
  { name: 'partners_as_recorded', run: findChangedPartners },
  { name: 'months_in_time_zones', run: findWrongMonthZones },
  { name: 'actions_approved', run: checkQuery(ACTIONS_APPROVED) },
  { name: 'actions_compared', run: checkQuery(ACTIONS_COMPARED) },
  { name: 'rows_at_offered_prices', beside: true, run: checkQuery(ROWS_AT_OFFERED_PRICES) },
  { name: 'open_items_of_closed_books', run: checkQuery(OPEN_ITEMS_OF_CLOSED_BOOKS) },
  { name: 'revenue_schedules_of_rows', run: checkQuery(REVENUE_SCHEDULES_OF_ROWS) },
  { name: 'gl_export_files_as_written', run: findChangedGlFiles },
  { name: 'link_payments_recorded_once', run: checkQuery(payments.LINK_PAYMENTS_RECORDED_ONCE) },
  { name: 'link_payments_proved', run: checkQuery(delivery.LINK_PAYMENTS_PROVED) },
  { name: 'equal_debits_pay_once', run: checkQuery(payments.EQUAL_DEBITS_PAY_ONCE) },
  { name: 'processor_events_recorded', run: checkQuery(payments.PROCESSOR_EVENTS_RECORDED) },
  { name: 'balance_transactions_counted_once', run: checkQuery(splits.BALANCE_TRANSACTIONS_COUNTED_ONCE) },
  { name: 'shares_within_amounts_sent', run: checkQuery(splits.SHARES_WITHIN_AMOUNTS_SENT) },
  { name: 'shares_on_own_accounts', run: checkQuery(splits.SHARES_ON_OWN_ACCOUNTS) },
  { name: 'shares_kept', run: checkQuery(splits.SHARES_KEPT) },
  { name: 'document_pdfs_as_issued', run: findChangedPdfs },
  { name: 'e_invoices_as_issued', run: findChangedEInvoices },
  { name: 'emails_consistent', run: checkQuery(delivery.EMAILS_CONSISTENT) },
  { name: 'payment_links_consistent', run: checkQuery(delivery.PAYMENT_LINKS_CONSISTENT) },
  { name: 'checkouts_consistent', run: checkQuery(delivery.CHECKOUTS_CONSISTENT) },
  { name: 'events_match_facts', run: joinedByHashing(checkQuery(EVENTS_MATCH_FACTS)) },
  { name: 'log_derived_again', run: findBrokenCheckpoints },
  { name: 'archives_as_moved', run: findChangedArchives },
  { name: 'rules_hold', beside: true, needsArchives: true, run: (tx, { copied }) => findBrokenRules(tx, copied) },
];
