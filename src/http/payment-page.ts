/**
 * The page of a payment link: what one document asks for and how to pay it. Only its token opens it, until some days after
 * nothing is owed any more. It shows no other partner and no other document, except the number of the one that replaces
 * this one.
 */

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { readCheckedSettings } from '../actions/rules.ts';
import { instructionsFor } from '../config/instructions.ts';
import { presentSettings, type Settings } from '../config/settings.ts';
import { todayOf } from '../config/today.ts';
import { urlBehindPage } from '../delivery/link.ts';
import { readEInvoice, readPdf } from '../documents/documents.sql.ts';
import { settingsInForce } from '../documents/instructions.ts';
import { httpStatusOf } from '../errors/refusals.ts';
import { Amount } from '../money.ts';
import { daysBetween } from '../month.ts';
import { page, sendPage } from './pages.ts';
import { type PaymentPage, readPaymentPage } from './payment-page.sql.ts';
import { type PaymentView, viewOf } from './payment-view.ts';
import { answerTo } from './problem.ts';
import { hasPartnerPlace, type Shared } from './shared.ts';

const paymentPage = page<PaymentView>('payment');
const problemPage = page<Record<string, unknown>>('problem');

const UNKNOWN = {
  title: 'Page not found',
  heading: 'There is no such page',
  text: 'The link may be cut off, or it was for another document. Open it again from the invoice or its e-mail, as a whole.',
};
const NOT_NOW = { title: 'Not now', heading: 'This page cannot be shown now' };

const TOKEN = /^[A-Za-z0-9_-]{32,128}$/;

/** The page of a link's token; undefined for none, and for one that is over. */
export async function findPaymentPage(
  { database, environment }: Pick<Shared, 'database' | 'environment'>,
  settings: Settings,
  token: string,
): Promise<PaymentPage | undefined> {
  if (!TOKEN.test(token)) return undefined;
  const found = await database.reading((tx) => readPaymentPage(tx, token));
  const { payment_page_days: days } = settings.http;
  const today = todayOf({ environment, settings });
  const isOver = days !== null && found?.settled_on != null && daysBetween(found.settled_on, today) > days;
  return isOver ? undefined : found;
}

type Said = Readonly<Record<'title' | 'heading' | 'text', string>>;

function sendProblemPage(reply: FastifyReply, { environment, settings }: Shared, status: number, said: Said) {
  const { legal_name: name, email } = settings.issuer;
  return sendPage(reply, problemPage({ ...said, sandbox: environment.name === 'sandbox', name, email }), status);
}

/** An address below /pay that is none: a link that was cut off, or to which something was added. */
export const isPaymentAddress = (url: string): boolean => /^\/pay([/?]|$)/.test(url);

export const sendUnknownPage = (reply: FastifyReply, shared: Shared): FastifyReply =>
  sendProblemPage(reply, shared, 404, UNKNOWN);

export function addPaymentPages(app: FastifyInstance, shared: Shared): void {
  const { database, environment, settings, limits, rowStreams } = shared;
  const limited = async (request: FastifyRequest) => void limits.request('page', request.ip);
  const present = presentSettings(environment, settings, readCheckedSettings);
  const find = (token: string) => findPaymentPage(shared, present(), token);
  const unknown = (reply: FastifyReply) => sendUnknownPage(reply, shared);
  const pages = { onRequest: limited, config: { bound: 'pages' }, exposeHeadRoute: true } as const;
  const files = { onRequest: limited, config: { bound: 'files' } } as const;
  const rows = { onRequest: limited, config: { bound: 'rows' } } as const;

  // People open these: what cannot be shown is said on a page.
  app.register(async (pay) => {
    pay.setErrorHandler((error, request, reply) => {
      const refusal = answerTo(error, request, reply);
      const said = { ...NOT_NOW, text: `${refusal.message} Nothing was changed.` };
      return sendProblemPage(reply, shared, httpStatusOf(refusal.code), said);
    });

    pay.get<{ Params: { token: string } }>('/pay/:token', pages, async (request, reply) => {
      const found = await find(request.params.token);
      if (found === undefined) return unknown(reply);
      const now = await settingsInForce(database, present());
      const { token } = request.params;
      const { document } = found;
      const today = todayOf({ environment, settings: now });
      // Over what is owed now, and valid from now on, whatever the invoice printed.
      const url = urlBehindPage(now, environment, token, {
        number: document.number,
        partnerId: document.partner_id,
        amount: Amount.of(document.balance, document.currency),
        dueOn: document.due_on ?? '',
        expiresAfter: document.due_on === null || document.due_on < today ? today : document.due_on,
      });
      const view = viewOf(
        { ...found, processor_url: found.processor_url ?? url ?? null },
        { token, instructions: instructionsFor(now, document.currency), today, hasPlace: hasPartnerPlace(shared, now) },
      );
      return sendPage(reply, paymentPage(view));
    });

    pay.get<{ Params: { token: string } }>('/pay/:token/invoice.pdf', files, async (request, reply) => {
      const found = await find(request.params.token);
      // A void document is not served: its reader might pay it.
      if (found === undefined || found.document.status === 'void') return unknown(reply);
      const pdf = await database.reading((tx) => readPdf(tx, found.document.document_id));
      if (pdf === undefined) return unknown(reply);
      return download(reply, `${found.document.number}.pdf`, 'application/pdf', 'inline').send(pdf);
    });

    pay.get<{ Params: { token: string } }>('/pay/:token/e-invoice.xml', files, async (request, reply) => {
      const found = await find(request.params.token);
      if (found === undefined || found.document.status === 'void') return unknown(reply);
      const xml = await database.reading((tx) => readEInvoice(tx, found.document.document_id));
      if (xml === undefined) return unknown(reply);
      return download(reply, `${found.document.number}.xml`, 'application/xml', 'attachment').send(xml);
    });

    pay.get<{ Params: { token: string } }>('/pay/:token/rows.csv', rows, async (request, reply) => {
      const found = await find(request.params.token);
      // An invoice of the system before has no rows here.
      if (found === undefined || found.document.status === 'void' || found.document.purpose === 'opening')
        return unknown(reply);
      return download(reply, `${found.document.number}-rows.csv`, 'text/csv; charset=utf-8', 'attachment').send(
        rowStreams.open(found.document.document_id, 'link'),
      );
    });
  });
}

const download = (reply: FastifyReply, name: string, type: string, how: 'inline' | 'attachment'): FastifyReply =>
  reply
    .headers({ 'X-Robots-Tag': 'noindex, nofollow', 'Content-Disposition': `${how}; filename="${name}"` })
    .type(type);
