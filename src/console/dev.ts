/** Throw-away: the screens without sign-in, to look at them. */
import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify';
import { readEnvironment } from '../config/environment.ts';
import { readSettings } from '../config/settings.ts';
import { todayOf } from '../config/today.ts';
import { openDatabase } from '../database/database.ts';
import type { Transaction } from '../database/transaction.ts';
import { readDocuments, readPdf } from '../documents/queries.ts';
import type { Month } from '../month.ts';
import type { Scope } from '../people/scope.ts';
import { csvOf, type Sheet, xlsxOf } from '../sheet.ts';
import { addAssets } from './assets.ts';
import { page, type Reader, type Screen } from './page.tsx';
import { agingScreen, readAging, sheetOfAging } from './screens/aging.tsx';
import { closeScreen, readClose } from './screens/close.tsx';
import { closeReportScreen, readCloseReport, sheetOfCloseReport } from './screens/close-report.tsx';
import { coverageScreen, readCoverage, sheetOfCoverage } from './screens/coverage.tsx';
import { invoiceScreen, readInvoice } from './screens/invoice.tsx';
import { type InvoiceFilter, invoicesScreen, readInvoices } from './screens/invoices.tsx';
import { partnerScreen, readPartner } from './screens/partner.tsx';
import { partnerEmailsScreen, readPartnerEmails } from './screens/partner-emails.tsx';
import { partnerStatementScreen, readPartnerStatement, sheetOfStatement } from './screens/partner-statement.tsx';
import { partnerTermsScreen, readPartnerTerms } from './screens/partner-terms.tsx';
import { partnersScreen, readPartners } from './screens/partners.tsx';
import { readTrialBalance, sheetOfTrialBalance, trialBalanceScreen } from './screens/trial-balance.tsx';

const environment = readEnvironment();
const settings = readSettings(environment);
const database = await openDatabase(environment, { readOnly: true });
const app = Fastify();
addAssets(app);
const today = todayOf({ environment, settings });

type Query = Readonly<Record<string, string>>;

const reader = (theme: string | undefined): Reader => ({
  name: 'Mara Lindqvist',
  role: 'finance',
  issuer: settings.issuer.legal_name,
  sandbox: true,
  version: '0.1.0',
  theme: theme === 'dark' ? 'dark' : 'light',
});
const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'";

/** `?scope=p-1,p-2` reads as a reader of these partners. */
const scopeOf = (asked: Query): Scope => asked['scope']?.split(',') ?? null;

function screen<View>(
  path: string,
  read: (tx: Transaction, asked: Query, params: Query) => Promise<View>,
  show: (view: View) => Screen,
  sheet?: (view: NonNullable<View>) => Sheet,
): void {
  const view = (request: FastifyRequest) =>
    database.reading((tx) => read(tx, request.query as Query, request.params as Query));
  app.get(path, async (request: FastifyRequest, reply: FastifyReply) =>
    reply
      .type('text/html; charset=utf-8')
      .header('Content-Security-Policy', CSP)
      .send(page(reader((request.query as Query)['theme']), show(await view(request)))),
  );
  if (sheet === undefined) return;
  app.get(`${path}.csv`, async (request, reply) =>
    reply.type('text/csv; charset=utf-8').send(csvOf(sheet((await view(request)) as NonNullable<View>))),
  );
  app.get(`${path}.xlsx`, async (request, reply) =>
    reply
      .type('application/vnd.openxmlformats-officedocument.spreadsheetml.sheet')
      .send(await xlsxOf(sheet((await view(request)) as NonNullable<View>))),
  );
}

const seen = (asked: Query) => ({ today, scope: scopeOf(asked), environment, settings });

screen(
  '/console/close/:month?',
  (tx, _, params) => readClose(tx, { environment, settings }, params['month'] as Month),
  closeScreen,
);
screen('/console/invoices', (tx, asked) => readInvoices(tx, asked as InvoiceFilter, today), invoicesScreen);
screen(
  '/console/invoices/:number',
  (tx, _, params) => readInvoice(tx, params['number'] as string, today),
  invoiceScreen,
);
screen('/console/aging', (tx, asked) => readAging(tx, asked, seen(asked)), agingScreen, sheetOfAging);
screen(
  '/console/reports/trial-balance',
  (tx, asked) => readTrialBalance(tx, asked, seen(asked)),
  trialBalanceScreen,
  sheetOfTrialBalance,
);
screen(
  '/console/reports/coverage',
  (tx, asked) => readCoverage(tx, asked, seen(asked)),
  coverageScreen,
  sheetOfCoverage,
);
screen(
  '/console/reports/close',
  (tx, asked) => readCloseReport(tx, asked, seen(asked)),
  closeReportScreen,
  sheetOfCloseReport,
);
const idOf = (params: Query) => params['id'] as string;
screen('/console/partners', (tx, asked) => readPartners(tx, asked, seen(asked)), partnersScreen);
screen('/console/partners/:id', (tx, asked, params) => readPartner(tx, idOf(params), seen(asked)), partnerScreen);
screen(
  '/console/partners/:id/statement',
  (tx, asked, params) => readPartnerStatement(tx, idOf(params), asked, seen(asked)),
  partnerStatementScreen,
  sheetOfStatement,
);
screen(
  '/console/partners/:id/terms',
  (tx, asked, params) => readPartnerTerms(tx, idOf(params), seen(asked)),
  partnerTermsScreen,
);
screen(
  '/console/partners/:id/emails',
  (tx, asked, params) => readPartnerEmails(tx, idOf(params), asked, seen(asked)),
  partnerEmailsScreen,
);
app.get<{ Params: { number: string } }>('/console/invoices/:number/document.pdf', async (request, reply) => {
  const pdf = await database.reading(async (tx) => {
    const [d] = await readDocuments(tx, { number: request.params.number });
    return d && readPdf(tx, d.document_id);
  });
  return reply.type('application/pdf').send(pdf);
});
await app.listen({ port: Number(process.env['PORT'] ?? 8099) });
