import Fastify from 'fastify';
import { readEnvironment } from '../config/environment.ts';
import { readSettings } from '../config/settings.ts';
import { todayOf } from '../config/today.ts';
import { openDatabase } from '../database/database.ts';
import { readDocuments, readPdf } from '../documents/queries.ts';
import type { Month } from '../month.ts';
import { addAssets } from './assets.ts';
import { page, type Reader } from './page.tsx';
import { closeScreen, readClose } from './screens/close.tsx';
import { invoiceScreen, readInvoice } from './screens/invoice.tsx';
import { type InvoiceFilter, invoicesScreen, readInvoices } from './screens/invoices.tsx';

const environment = readEnvironment();
const settings = readSettings(environment);
const database = await openDatabase(environment, { readOnly: true });
const app = Fastify();
addAssets(app);
const reader = (theme: string | undefined): Reader => ({
  name: 'Mara Lindqvist',
  role: 'finance',
  issuer: settings.issuer.legal_name,
  sandbox: true,
  version: '0.1.0',
  theme: theme === 'dark' ? 'dark' : 'light',
});
app.get<{ Params: { month?: string }; Querystring: { theme?: string } }>(
  '/console/close/:month?',
  async (request, reply) => {
    const view = await database.reading((tx) =>
      readClose(tx, { environment, settings }, request.params.month as Month | undefined),
    );
    return reply
      .type('text/html; charset=utf-8')
      .header(
        'Content-Security-Policy',
        "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'",
      )
      .send(page(reader(request.query.theme), closeScreen(view)));
  },
);
const html = (reply: { type: (t: string) => { send: (b: string) => unknown } }, body: string) =>
  reply.type('text/html; charset=utf-8').send(body);
const today = todayOf({ environment, settings });
app.get<{ Querystring: InvoiceFilter & { theme?: string } }>('/console/invoices', async (request, reply) =>
  html(
    reply,
    page(
      reader(request.query.theme),
      invoicesScreen(await database.reading((tx) => readInvoices(tx, request.query, today))),
    ),
  ),
);
app.get<{ Params: { number: string }; Querystring: { theme?: string } }>(
  '/console/invoices/:number',
  async (request, reply) =>
    html(
      reply,
      page(
        reader(request.query.theme),
        invoiceScreen(await database.reading((tx) => readInvoice(tx, request.params.number, today))),
      ),
    ),
);
app.get<{ Params: { number: string } }>('/console/invoices/:number/document.pdf', async (request, reply) => {
  const pdf = await database.reading(async (tx) => {
    const [d] = await readDocuments(tx, { number: request.params.number });
    return d && readPdf(tx, d.document_id);
  });
  return reply.type('application/pdf').send(pdf);
});
await app.listen({ port: 8099 });
