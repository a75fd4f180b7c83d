/** The console's routes at /console. Only assets and sign-in pages are reachable without a session. */
import { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { httpStatusOf, refuse } from '#errors/refusals';
import { answerTo } from '#http/problem';
import { Shared } from '#http/shared';
import { addAccount } from './account.tsx';
import { addActions } from './actions.ts';
import { addApprovals } from './approvals.ts';
import { addAssets } from './assets.ts';
import { addAuditTasks } from './audit-tasks.ts';
import { pageToGoTo } from './cookies.ts';
import { PAGE_HEADERS } from './headers.ts';
import { addPasskeySignIn, addPasskeys } from './passkeys.ts';
import { problemPage, signedOutPage } from './problem.tsx';
import { addQueue } from './queue.ts';
import { knowReader, noteOfPeriod, routesOf } from './route.ts';
import { addScreens } from './screens.ts';
import { addSessions } from './sessions.ts';
import { addSignIn } from './sign-in.tsx';
import { addProviderSignIn } from './sign-in-provider.tsx';

export function addConsole(app: FastifyInstance, shared: Shared): void {
  addAssets(app, shared);
  app.register(
    async (console_) => {
      console_.decorateRequest('reader', null);
      console_.addContentTypeParser('multipart/form-data', { parseAs: 'buffer' }, (_request, body, done) =>
        done(null, body),
      );
      console_.addHook('onRequest', async (_request, reply) => void reply.headers(PAGE_HEADERS));
      console_.setErrorHandler((error: FastifyError, request, reply) => showProblem(shared, error, request, reply));
      console_.setNotFoundHandler(
        { preValidation: async (request: FastifyRequest) => void shared.limits.request('console', request.ip) },
        async (request, reply) => {
          await knowReader(shared, request, reply);
          throw refuse('page_unknown', { path: request.url });
        },
      );
      addSignIn(console_, shared);
      addPasskeySignIn(console_, shared);
      addProviderSignIn(console_, shared);
      console_.addHook('onRoute', noteOfPeriod);
      const routes = routesOf(console_, shared);
      addAccount(routes);
      addPasskeys(routes, shared);
      addScreens(routes, shared);
      addActions(routes);
      addApprovals(routes);
      addSessions(routes);
      addQueue(routes);
      addAuditTasks(console_, routes, shared);
    },
    { prefix: '/console' },
  );
}

/** Answers with a problem page. Without a session or a recent proof, leads to the sign-in and back. */
function showProblem(shared: Shared, thrown: unknown, request: FastifyRequest, reply: FastifyReply) {
  const refusal = answerTo(thrown, request, reply);
  const status = httpStatusOf(refusal.code);
  const isPage = request.method === 'GET' || request.method === 'HEAD';
  const again = refusal.code === 'proof_needed';
  const form = again || refusal.code === 'session_missing' ? refusal.facts['to'] : undefined;
  const back = form ?? (refusal.code === 'session_missing' && isPage ? request.url : undefined);
  const page = encodeURIComponent(pageToGoTo(back));
  const why = again ? '&again=1' : form === undefined ? '' : '&ended=1';
  const to = back === undefined ? undefined : `/console/sign-in?to=${page}${why}`;
  if (
    request.headers['x-form-token'] !== undefined ||
    request.headers['content-type']?.startsWith('application/json')
  ) {
    return reply.code(status).send({ code: refusal.code, message: refusal.message, to });
  }
  if (to !== undefined) {
    // HX-Redirect takes the whole page to the sign-in, which can lead to another site.
    if (request.headers['hx-request'] !== undefined) return reply.code(status).header('HX-Redirect', to).send('');
    return reply.redirect(to, 303);
  }
  const html = request.reader === null ? signedOutPage(shared, request, refusal) : problemPage(request.reader, refusal);
  return reply.code(status).type('text/html; charset=utf-8').send(html);
}
