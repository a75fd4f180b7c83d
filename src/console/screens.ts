import { readEInvoice, readPdf } from '../documents/documents.sql.ts';
import { refuse } from '../errors/refusals.ts';
import { readFile } from '../general-ledger/exports.sql.ts';
import { glListSheet } from '../general-ledger/list.ts';
import type { Shared } from '../http/shared.ts';
import { bankLines } from '../lists/bank-lines.ts';
import { cashApplication } from '../lists/cash-application.ts';
import { checkpoints } from '../lists/checkpoints.ts';
import { clients } from '../lists/clients.ts';
import { emails } from '../lists/emails.ts';
import { feeds } from '../lists/feeds.ts';
import { invoices } from '../lists/invoices.ts';
import { partners } from '../lists/partners.ts';
import { payments } from '../lists/payments.ts';
import { rows } from '../lists/rows.ts';
import { users } from '../lists/users.ts';
import { isMonth, type Month } from '../month.ts';
import { scopeOf } from '../people/roles.ts';
import { readSettingsChanges } from '../people/settings-changes.ts';
import { bankReconciliationSheet } from '../reports/bank-reconciliation.ts';
import { positionSheet, readPosition } from '../reports/position.ts';
import { actionHref } from './action-link.tsx';
import { readListSheet } from './list.tsx';
import { addList } from './list-route.tsx';
import { textAsked } from './parameters.ts';
import type { Access, Routes, Visit } from './route.ts';
import { accountsScreen, readAccounts, sheetOfAccounts } from './screens/accounts.tsx';
import { agingScreen, readAging, sheetOfAging } from './screens/aging.tsx';
import { checksScreen, packsScreen, readChecks, readPacks, settingsLogScreen } from './screens/audit.tsx';
import { auditEventsScreen, readAuditEvents } from './screens/audit-events.tsx';
import { AuditMenu } from './screens/audit-menu.tsx';
import { bankReconciliationScreen, readBankReconciliation } from './screens/bank-reconciliation.tsx';
import { checkpointScreen, readCheckpoint, TakeCheckpoint } from './screens/checkpoints.tsx';
import { closeScreen, readClose } from './screens/close.tsx';
import { closePreviewScreen, readClosePreview } from './screens/close-preview.tsx';
import { closeReportScreen, readCloseReport, sheetOfCloseReport } from './screens/close-report.tsx';
import { coverageScreen, readCoverage, readCoverageSheet } from './screens/coverage.tsx';
import { generalLedgerScreen, readGeneralLedger } from './screens/general-ledger.tsx';
import { invoiceScreen, readInScope, readInvoice } from './screens/invoice.tsx';
import { partnerScreen, readPartner, readPartnerInScope } from './screens/partner.tsx';
import { partnerEmailsScreen, readPartnerEmails } from './screens/partner-emails.tsx';
import {
  fileOfStatement,
  partnerStatementScreen,
  readPartnerStatement,
  sheetOfStatement,
} from './screens/partner-statement.tsx';
import { partnerTermsScreen, readPartnerTerms } from './screens/partner-terms.tsx';
import { PartnerActions, StateFeed } from './screens/partners.tsx';
import { AllPaymentsTab, BankLinesTab, PaymentActions, paymentsScreen, readPayments } from './screens/payments.tsx';
import { InviteUser, SettingsMenu } from './screens/people.tsx';
import { readReceipt, receiptScreen } from './screens/receipt.tsx';
import { ReportsMenu } from './screens/reports-menu.tsx';
import { readSearch, searchScreen } from './screens/search.tsx';
import { readSettingsView, settingsScreen } from './screens/settings.tsx';
import { readToday, todayScreen } from './screens/today.tsx';
import { readTrialBalance, sheetOfTrialBalance, trialBalanceScreen } from './screens/trial-balance.tsx';

const LEDGER: Access = { role: 'viewer', scope: 'ledger' };
/** One at a time, because a preview takes the ledger's lock as a close does. */
const CLOSING: Access = { role: 'finance', scope: 'ledger', bound: 'uploads' };
const PARTNERS: Access = { role: 'viewer', scope: 'partners' };

export function addScreens(routes: Routes, { rowStreams }: Pick<Shared, 'rowStreams'>): void {
  const { screen, file } = routes;
  screen('/', PARTNERS, (tx, visit) => readToday(tx, visit.query, visit), todayScreen);
  addClose(routes);
  addList(routes, '/invoices', { list: invoices, place: 'invoices', title: 'Invoices' });
  addList(routes, '/rows', { list: rows, place: 'invoices', title: 'Ledger rows' });
  screen(
    '/invoices/:number',
    PARTNERS,
    (tx, { scope, params, today }) => readInvoice(tx, scope, params['number'] ?? '', today),
    invoiceScreen,
  );
  file('/invoices/:number/document.pdf', PARTNERS, async (tx, { scope, params }) => {
    const { document_id, number } = await readInScope(tx, scope, params['number'] ?? '');
    const content = await readPdf(tx, document_id);
    return content && { type: 'application/pdf', name: `${number}.pdf`, content };
  });
  file('/invoices/:number/void-copy.pdf', PARTNERS, async (tx, { scope, params, context }) => {
    const row = await readInScope(tx, scope, params['number'] ?? '', { withLogos: true });
    // The renderer is loaded only for a void copy, because loading is slow.
    const { renderVoidCopy } = await import('../documents/void-copy.ts');
    const content = await renderVoidCopy(context.environment, row);
    return { type: 'application/pdf', name: `${row.number}-void.pdf`, content };
  });
  file('/invoices/:number/e-invoice.xml', PARTNERS, async (tx, { scope, params }) => {
    const { document_id, number } = await readInScope(tx, scope, params['number'] ?? '');
    const content = await readEInvoice(tx, document_id);
    return content && { type: 'application/xml', name: `${number}.xml`, content, download: true };
  });
  file('/invoices/:number/rows.csv', { ...PARTNERS, bound: 'rows' }, async (tx, { scope, params }) => {
    const { document_id, number } = await readInScope(tx, scope, params['number'] ?? '');
    const content = rowStreams.open(document_id, 'partner');
    return { type: 'text/csv; charset=utf-8', name: `${number}-rows.csv`, content, download: true };
  });
  screen('/search', PARTNERS, (tx, { query, ...seen }) => readSearch(tx, query, seen), searchScreen);
  addPayments(routes);
  addReports(routes);
  addPartners(routes);
  addAudit(routes);
  screen(
    '/accounts',
    PARTNERS,
    (tx, { query, context, ...seen }) => readAccounts(tx, query, { ...context, ...seen }),
    accountsScreen,
    sheetOfAccounts,
  );
  screen('/settings', LEDGER, (tx, { context }) => readSettingsView(tx, context), settingsScreen);
  addList(routes, '/settings/users', {
    ...{ list: users, place: 'settings', title: 'Settings', lead: 'users' },
    ...{ Actions: InviteUser, Above: () => SettingsMenu({ current: 'users' }) },
  });
  addList(routes, '/settings/clients', {
    ...{ list: clients, place: 'settings', title: 'Settings', lead: 'API clients of all partners' },
    Above: () => SettingsMenu({ current: 'clients' }),
  });
}

function addClose({ screen }: Routes) {
  for (const path of ['/close', '/close/:month']) {
    screen(
      path,
      LEDGER,
      async (tx, { context, params: { month }, request }) => {
        const isPage = month === undefined || isMonth(month);
        const found = isPage ? await readClose(tx, context, month as Month | undefined) : undefined;
        if (found === undefined) throw refuse('page_unknown', { path: request.url });
        return found;
      },
      closeScreen,
    );
  }
  screen(
    '/close/:month/preview',
    CLOSING,
    (tx, { context, query, params: { month = '' }, request }) => {
      if (!isMonth(month)) throw refuse('page_unknown', { path: request.url });
      return readClosePreview(tx, context, month, query);
    },
    closePreviewScreen,
  );
}

function addPayments(routes: Routes) {
  const { screen, redirect, form } = routes;
  screen(
    '/payments',
    PARTNERS,
    (tx, { context: { settings }, scope, query }) => readPayments(tx, { ...query, settings, scope }),
    paymentsScreen,
  );
  addList(routes, '/payments/all', {
    ...{ list: payments, place: 'payments', title: 'Payments' },
    ...{ Actions: PaymentActions, Above: AllPaymentsTab },
  });
  addList(routes, '/payments/lines', {
    ...{ list: bankLines, place: 'payments', title: 'Payments', lead: 'every line of the bank' },
    ...{ Actions: PaymentActions, Above: BankLinesTab },
  });
  redirect('/payments/import', PARTNERS, () => actionHref('payment.import'));
  redirect('/payments/record', PARTNERS, () => actionHref('payment.record'));
  screen(
    '/payments/:exception',
    PARTNERS,
    (tx, { context: { settings }, scope, params: { exception = '' }, query: { q } }) =>
      readReceipt(tx, exception, { settings, scope, q }),
    receiptScreen,
  );
  // With the ticked items and the entered values, after a further search.
  form('/payments/:exception', { role: 'finance', scope: 'partners' }, async (visit, sent) => {
    const { context, user, params } = visit;
    const [scope = []] = [scopeOf(user, 'viewer')];
    const kept = {
      chosen: [...sent.getAll('numbers'), ...sent.getAll('creditNotes')].flatMap((each) => textAsked(each) ?? []),
      ...{ fee: sent.get('fee') ?? '', amount: sent.get('amount') ?? '' },
    };
    const q = sent.get('q') ?? undefined;
    const view = await context.database.reading((tx) =>
      readReceipt(tx, params['exception'] ?? '', { settings: context.settings, scope, q, kept }),
    );
    return { screen: receiptScreen(view, visit) };
  });
}

function addReports(routes: Routes) {
  const { screen, sheets, file } = routes;
  sheets('/reports/position', PARTNERS, async (tx, { context, ...seen }) =>
    positionSheet(await readPosition(tx, context, seen)),
  );
  screen('/aging', PARTNERS, (tx, { query, ...seen }) => readAging(tx, query, seen), agingScreen, sheetOfAging);
  screen('/reports/coverage', PARTNERS, (tx, { query, ...seen }) => readCoverage(tx, query, seen), coverageScreen);
  sheets('/reports/coverage', PARTNERS, (tx, { query, ...seen }) => readCoverageSheet(tx, query, seen));
  screen(
    '/reports/close',
    PARTNERS,
    (tx, { query, ...seen }) => readCloseReport(tx, query, seen),
    closeReportScreen,
    sheetOfCloseReport,
  );
  screen(
    '/reports/trial-balance',
    LEDGER,
    (tx, { query, today }) => readTrialBalance(tx, query, { today }),
    trialBalanceScreen,
    sheetOfTrialBalance,
  );
  screen(
    '/reports/bank-reconciliation',
    LEDGER,
    (tx, { query, today }) => readBankReconciliation(tx, query, { today }),
    bankReconciliationScreen,
    bankReconciliationSheet,
  );
  addList(routes, '/reports/cash-application', {
    ...{ list: cashApplication, place: 'aging', title: 'Cash application', lead: 'credits of bank files' },
    Above: () => ReportsMenu({ current: 'cash-application' }),
  });
  screen('/reports/general-ledger', LEDGER, readGeneralLedger, generalLedgerScreen, ({ exports }) =>
    glListSheet(exports),
  );
  file('/reports/general-ledger/:gl/:file', LEDGER, async (tx, { params: { gl = '', file: name = '' } }) => {
    if (!/^[1-9]\d{0,14}$/.test(gl)) return undefined;
    const [found] = await readFile(tx, { id: Number(gl), name });
    const type = name.endsWith('.json') ? 'application/json' : 'text/csv; charset=utf-8';
    return found && { type, name, content: found.content, download: true };
  });
}

function addPartners(routes: Routes) {
  const { screen, file, sheets } = routes;
  const idOf = ({ params }: Visit) => params['id'] ?? '';
  addList(routes, '/feeds', {
    ...{ list: feeds, place: 'partners', title: 'Feeds', lead: 'totals that partners state', Actions: StateFeed },
  });
  addList(routes, '/partners', { list: partners, place: 'partners', title: 'Partners', Actions: PartnerActions });
  screen('/partners/:id', PARTNERS, (tx, visit) => readPartner(tx, idOf(visit), visit), partnerScreen);
  screen(
    '/partners/:id/statement',
    PARTNERS,
    (tx, visit) => readPartnerStatement(tx, idOf(visit), visit.query, visit),
    partnerStatementScreen,
    sheetOfStatement,
  );
  file('/partners/:id/statement.pdf', PARTNERS, async (tx, visit) =>
    fileOfStatement(tx, visit.context, await readPartnerStatement(tx, idOf(visit), visit.query, visit)),
  );
  screen(
    '/partners/:id/terms',
    PARTNERS,
    (tx, visit) => readPartnerTerms(tx, idOf(visit), { ...visit.context, scope: visit.scope }),
    partnerTermsScreen,
  );
  screen(
    '/partners/:id/emails',
    PARTNERS,
    (tx, visit) => readPartnerEmails(tx, idOf(visit), visit),
    partnerEmailsScreen,
  );
  sheets('/partners/:id/emails', PARTNERS, async (tx, visit) => {
    const { partner_id } = await readPartnerInScope(tx, idOf(visit), visit.scope);
    return readListSheet(tx, emails, visit.query, { ...visit, scope: [partner_id] });
  });
}

function addAudit(routes: Routes) {
  const { screen } = routes;
  screen('/audit', PARTNERS, (tx, { query, ...seen }) => readAuditEvents(tx, query, seen), auditEventsScreen);
  addList(routes, '/audit/checkpoints', {
    ...{ list: checkpoints, place: 'audit', title: 'Audit', lead: 'checkpoints of the log' },
    ...{ Actions: TakeCheckpoint, Above: () => AuditMenu({ current: 'checkpoints' }) },
  });
  screen(
    '/audit/checkpoints/:size',
    LEDGER,
    (tx, { params: { size = '' } }) => readCheckpoint(tx, size),
    checkpointScreen,
  );
  screen('/audit/checks', LEDGER, readChecks, checksScreen);
  screen('/audit/settings', LEDGER, (tx) => readSettingsChanges(tx), settingsLogScreen);
  for (const path of ['/audit/packs', '/audit/packs/:month']) {
    screen(
      path,
      LEDGER,
      (tx, { query, params, context: { environment } }) =>
        readPacks(tx, { ...query, ...params }, { now: environment.now().toMillis() }),
      packsScreen,
    );
  }
}
