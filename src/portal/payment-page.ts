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
import { sendFile } from '../console/route.ts';
import { urlBehindPage } from '../delivery/link.ts';
import { settingsInForce } from '../documents/instructions.ts';
import { httpStatusOf, refuse } from '../errors/refusals.ts';
import type { BoundName } from '../http/gates.ts';
import { page, sendPage } from '../http/pages.ts';
import { answerTo } from '../http/problem.ts';
import type { Shared } from '../http/shared.ts';
import { Amount } from '../money.ts';
import { daysBetween } from '../month.ts';
import { FILES, type FileKind, openFile } from './files.ts';
import { type PaymentPage, readPaymentPage } from './invoice.sql.ts';
import { type PaymentView, viewOf } from './payment-view.ts';
import { hasPartnerPlace } from './route.ts';

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

export function addPaymentPages(app: FastifyInstance, shared: Shared): void {
  const { database, environment, settings, limits } = shared;
  const limited = async (request: FastifyRequest) => void limits.request('page', request.ip);
  const present = presentSettings(environment, settings, readCheckedSettings);
  const find = (token: string) => findPaymentPage(shared, present(), token);
  const unknown = (reply: FastifyReply) => sendProblemPage(reply, shared, 404, UNKNOWN);
  const pages = { onRequest: limited, config: { bound: 'pages' }, exposeHeadRoute: true } as const;

  // People open these: what cannot be shown is said on a page.
  app.register(
    async (pay) => {
      pay.setErrorHandler((error, request, reply) => {
        const refusal = answerTo(error, request, reply);
        const said = { ...NOT_NOW, text: `${refusal.message} Nothing was changed.` };
        return sendProblemPage(reply, shared, httpStatusOf(refusal.code), said);
      });

      // A link that was cut off, or to which something was added.
      pay.setNotFoundHandler({ preValidation: limited }, async ({ method, url }, reply) => {
        if (method === 'GET' || method === 'HEAD') return unknown(reply);
        throw refuse('method_not_allowed', { method, path: url, allowed: ['GET', 'HEAD'] });
      });

      pay.get<{ Params: { token: string } }>('/:token', pages, async (request, reply) => {
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
          {
            token,
            instructions: instructionsFor(now, document.currency),
            today,
            hasPlace: hasPartnerPlace(shared, now),
          },
        );
        return sendPage(reply, paymentPage(view));
      });

      for (const [kind, bound] of Object.entries(FILES) as [FileKind, BoundName][]) {
        const path = `/:token/${kind === 'pdf' ? 'invoice.pdf' : kind}`;
        pay.get<{ Params: { token: string } }>(
          path,
          { onRequest: limited, config: { bound } },
          async (request, reply) => {
            const found = await find(request.params.token);
            const file = found && (await database.reading((tx) => openFile(tx, shared, found.document, kind)));
            return file === undefined
              ? unknown(reply)
              : sendFile(reply.header('X-Robots-Tag', 'noindex, nofollow'), file);
          },
        );
      }
    },
    { prefix: '/pay' },
  );
}
