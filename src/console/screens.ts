import { readEInvoice, readPdf } from '#documents/documents.sql';
import { zipPdfs } from '#documents/zip-pdfs';
import { refuse } from '#errors/refusals';
import { readFile } from '#general-ledger/exports.sql';
import { Shared } from '#http/shared';
import { access } from '#lists/access';
import { bankLines } from '#lists/bank-lines';
import { cashApplication } from '#lists/cash-application';
import { checkpoints } from '#lists/checkpoints';
import { clients } from '#lists/clients';
import { emails } from '#lists/emails';
import { entries } from '#lists/entries';
import { auditEvents } from '#lists/events';
import { feeds } from '#lists/feeds';
import { glExports } from '#lists/gl-exports';
import { invoices } from '#lists/invoices';
import { movements } from '#lists/movements';
import { partners } from '#lists/partners';
import { payments } from '#lists/payments';
import { aging, bankReconciliation, closeReport, coverage, tax, trialBalance, unearned } from '#lists/reports';
import { reserve } from '#lists/reserve';
import { rollForward } from '#lists/roll-forward';
import { rows } from '#lists/rows';
import { users } from '#lists/users';
import { isMonth, Month } from '#month';
import { scopeOf } from '#people/roles';
import { isInPeriod } from '#people/scope';
import { readSettingsChanges } from '#people/settings-changes';
import { positionSheet, readPosition } from '#reports/position';
import { actionHref } from './action-link.tsx';
import { readListSheet } from './list.tsx';
import { addList } from './list-route.tsx';
import { textAsked } from './parameters.ts';
import { addReport } from './report-route.tsx';
import { Access, Routes, Visit } from './route.ts';
import { accountsScreen, readAccounts, sheetOfAccounts } from './screens/accounts.tsx';
import { checksScreen, packsScreen, readChecks, readPacks, settingsLogScreen } from './screens/audit.tsx';
import { checkpointScreen, readCheckpoint, TakeCheckpoint } from './screens/checkpoints.tsx';
import { closeScreen, readClose } from './screens/close.tsx';
import { ExportMonth } from './screens/general-ledger.tsx';
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
import { PaymentActions, paymentsScreen, readPayments } from './screens/payments.tsx';
import { InviteUser } from './screens/people.tsx';
import { readReceipt, receiptScreen } from './screens/receipt.tsx';
import { readSearch, searchScreen } from './screens/search.tsx';
import { readSettingsView, settingsScreen } from './screens/settings.tsx';
import { readToday, todayScreen } from './screens/today.tsx';

const LEDGER: Access = { role: 'viewer', scope: 'ledger' };
const PARTNERS: Access = { role: 'viewer', scope: 'partners' };
const OF_PERIOD = { ofPeriod: true } as const;
const DOCUMENT: Access = { ...PARTNERS, ...OF_PERIOD };

export function addScreens(routes: Routes, { rowStreams }: Pick<Shared, 'rowStreams'>): void {
  const { screen, file } = routes;
  screen(
    '/',
    { ...PARTNERS, ...OF_PERIOD },
    async (tx, visit) => (visit.period === null ? readToday(tx, visit.query, visit) : undefined),
    (view, visit) => (view === undefined ? { to: '/console/audit/packs' } : todayScreen(view, visit)),
  );
  addClose(routes);
  addList(routes, '/invoices', { list: invoices, place: 'invoices', title: 'Invoices' });
  addList(routes, '/rows', { list: rows, place: 'invoices', title: 'Ledger rows' });
  file('/invoices/pdfs.zip', { ...DOCUMENT, repeats: true, bound: 'files' }, async (tx, { scope, period, asked }) => {
    const content = await zipPdfs(tx, { numbers: asked.getAll('number'), scope, period });
    return content && { type: 'application/zip', name: 'documents.zip', content, download: true };
  });
  screen('/invoices/:number', DOCUMENT, readInvoice, invoiceScreen);
  file('/invoices/:number/document.pdf', DOCUMENT, async (tx, visit) => {
    const { document_id, number } = await readInScope(tx, visit);
    const content = await readPdf(tx, document_id);
    return content && { type: 'application/pdf', name: `${number}.pdf`, content };
  });
  file('/invoices/:number/void-copy.pdf', DOCUMENT, async (tx, visit) => {
    const row = await readInScope(tx, visit, { withLogos: true });
    // The renderer is loaded only for a void copy, because loading is slow.
    const { renderVoidCopy } = await import('#documents/void-copy');
    const content = await renderVoidCopy(visit.context.environment, row);
    return { type: 'application/pdf', name: `${row.number}-void.pdf`, content };
  });
  file('/invoices/:number/e-invoice.xml', DOCUMENT, async (tx, visit) => {
    const { document_id, number } = await readInScope(tx, visit);
    const content = await readEInvoice(tx, document_id);
    return content && { type: 'application/xml', name: `${number}.xml`, content, download: true };
  });
  file('/invoices/:number/rows.csv', { ...DOCUMENT, bound: 'rows' }, async (tx, visit) => {
    const { document_id, number } = await readInScope(tx, visit);
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
    Actions: InviteUser,
  });
  addList(routes, '/settings/clients', {
    ...{ list: clients, place: 'settings', title: 'Settings', lead: 'API clients of all partners' },
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
    Actions: PaymentActions,
  });
  addList(routes, '/payments/lines', {
    ...{ list: bankLines, place: 'payments', title: 'Payments', lead: 'every line of the bank' },
    Actions: PaymentActions,
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
  const { sheets, file } = routes;
  sheets('/reports/position', PARTNERS, async (tx, { context, ...seen }) =>
    positionSheet(await readPosition(tx, context, seen)),
  );
  addList(routes, '/reports/roll-forward', {
    ...{ list: rollForward, place: 'aging', title: 'Roll-forward', lead: 'what partners owe, month by month' },
  });
  addList(routes, '/reports/movements', {
    ...{ list: movements, place: 'aging', title: 'Movements', lead: 'facts that changed the balances of partners' },
    tab: '/console/reports/roll-forward',
  });
  addList(routes, '/reports/reserve', {
    ...{ list: reserve, place: 'aging', title: 'Reserve' },
    lead: ({ as_of }) =>
      `open invoices by days overdue as of ${as_of}; post the total of one grouping, always the same`,
  });
  addReport(routes, aging, '/aging');
  for (const report of [coverage, trialBalance, tax, unearned, bankReconciliation, closeReport])
    addReport(routes, report);
  addList(routes, '/reports/cash-application', {
    ...{ list: cashApplication, place: 'aging', title: 'Cash application', lead: 'credits of bank files' },
  });
  const journals: Access = { ...LEDGER, ...OF_PERIOD };
  addList(routes, '/reports/general-ledger', {
    ...{ list: glExports, place: 'aging', title: 'General ledger', lead: 'exports by month' },
    Actions: ExportMonth,
  });
  addList(routes, '/reports/general-ledger/entries', {
    ...{ list: entries, place: 'aging', title: 'Journal entries', lead: 'a month, with document numbers' },
    tab: '/console/reports/general-ledger',
  });
  file('/reports/general-ledger/:gl/:file', journals, async (tx, { params: { gl = '', file: name = '' }, period }) => {
    if (!/^[1-9]\d{0,14}$/.test(gl)) return undefined;
    const [found] = await readFile(tx, { id: Number(gl), name });
    if (found !== undefined && !isInPeriod(period, found.month)) return undefined;
    return found && { type: 'text/csv; charset=utf-8', name, content: found.content, download: true };
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
    (tx, visit) => readPartnerTerms(tx, idOf(visit), { ...visit.context, scope: visit.scope, today: visit.today }),
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
  addList(routes, '/audit', { list: auditEvents, place: 'audit', title: 'Audit', lead: 'events' });
  addList(routes, '/audit/checkpoints', {
    ...{ list: checkpoints, place: 'audit', title: 'Audit', lead: 'checkpoints of the log' },
    Actions: TakeCheckpoint,
  });
  addList(routes, '/audit/access', {
    ...{ list: access, place: 'audit', title: 'Audit', lead: 'who has access, and since when' },
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
      { ...LEDGER, ...OF_PERIOD },
      (tx, visit) => readPacks(tx, { ...visit.query, ...visit.params }, visit),
      packsScreen,
    );
  }
}
