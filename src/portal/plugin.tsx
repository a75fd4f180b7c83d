/**
 * The partners' pages: payment pages at /pay, and the partner's place at /place, where an invoicing contact signs in
 * with a link that is sent only to the address on file, and reads only documents of its partner. Refusals:
 * page_unknown, session_missing, sign_in_link_invalid, form_refused, rate_limited. With an override of a page, the
 * server does not start (settings_invalid).
 */
import { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { refusePageOverrides } from '#config/overrides';
import { PAGE_HEADERS } from '#console/headers';
import { titleOf } from '#console/problem';
import { settingsNow } from '#console/route';
import { httpStatusOf, refuse } from '#errors/refusals';
import { answerTo } from '#http/problem';
import { Shared } from '#http/shared';
import { sendOuterPage } from './outer.tsx';
import { addPaymentPages } from './payment-page.tsx';
import { hasPartnerPlace, partnerRoutes } from './route.ts';
import { addPartnerScreens } from './screens.ts';
import { addPartnerSignIn } from './sign-in.tsx';

export function addPortal(app: FastifyInstance, shared: Shared) {
  refusePageOverrides(shared.environment);
  addPaymentPages(app, shared);
  app.register(
    async (place) => {
      place.addHook('onRequest', async (request, reply) => {
        reply.headers(PAGE_HEADERS);
        if (!hasPartnerPlace(shared, settingsNow(shared))) throw refuse('page_unknown', { path: request.url });
      });
      place.setErrorHandler((error: FastifyError, request, reply) => showProblem(shared, error, request, reply));
      place.setNotFoundHandler(
        { preValidation: async (request: FastifyRequest) => void shared.limits.request('console', request.ip) },
        async (request) => {
          throw refuse('page_unknown', { path: request.url });
        },
      );
      addPartnerSignIn(place, shared);
      addPartnerScreens(partnerRoutes(place, shared), shared);
    },
    { prefix: '/place' },
  );
}

const COME_IN =
  'Open the payment page of one of your invoices, from the invoice or its e-mail, and request a sign-in link there.';

function showProblem(shared: Shared, thrown: unknown, request: FastifyRequest, reply: FastifyReply) {
  const refusal = answerTo(thrown, request, reply);
  const isOutside = refusal.code === 'session_missing' || refusal.code === 'sign_in_link_invalid';
  return sendOuterPage(
    { shared, request, reply: reply.code(httpStatusOf(refusal.code)) },
    titleOf(refusal),
    <>
      <p role="alert">
        {refusal.code === 'session_missing'
          ? 'You are not signed in, or your session has ended. Nothing was changed.'
          : refusal.code === 'sign_in_link_invalid'
            ? 'This sign-in link was used or has expired, or the contact on file has changed.'
            : refusal.message}
      </p>
      {isOutside ? (
        <p>{COME_IN}</p>
      ) : (
        <p>
          <a class="button" href="/place">
            Your invoices
          </a>
        </p>
      )}
    </>,
  );
}
