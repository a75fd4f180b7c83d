/**
 * Sign-in of a partner's contact. Anyone with the link to a payment page can request a sign-in link, which is sent to
 * the address on file; the response does not reveal whether there is one. The link opens a page with a button
 * (console/sign-in.tsx).
 */
import { FastifyInstance, FastifyRequest } from 'fastify';
import { placeOf, refuseOtherOrigin, setCookie } from '#console/cookies';
import { settingsNow } from '#console/route';
import { CodeForm, linkSent, mailingLater, OneButton, openRoute, refuseLink } from '#console/sign-in';
import { refuse } from '#errors/refusals';
import { networkOf } from '#http/limits';
import { issuerOf, Shared } from '#http/shared';
import { mailPartnerLink } from '#mail/sign-in-link';
import { makePartnerLink, takePartnerLink } from '#partners/sign-in';
import { sendOuterPage } from './outer.tsx';
import { findPaymentPage } from './payment-page.tsx';

export function addPartnerSignIn(app: FastifyInstance, shared: Shared) {
  addAsking(app, shared);
  const { database, environment } = shared;
  app.get('/sign-in', openRoute(shared), async (request, reply) => {
    placeOf(shared, request);
    return sendOuterPage({ shared, request, reply }, 'Sign in', <CodeForm />, ['link.js']);
  });
  app.post('/sign-in', openRoute(shared), async (request, reply) => {
    const place = placeOf(shared, request);
    refuseOtherOrigin(request, place);
    const given = { secret: linkSent(request).secret, network: networkOf(request.ip) };
    const context = { environment, settings: settingsNow(shared) };
    const session = await database.transaction((tx) => takePartnerLink(tx, context, given));
    if (session === undefined) return refuseLink(shared, request);
    setCookie(reply, place, 'reckoner-partner', session);
    return reply.redirect('/place', 303);
  });
}

function addAsking(app: FastifyInstance, shared: Shared) {
  const mailLater = mailingLater(app, shared);
  const find = async (request: FastifyRequest, token: string) => {
    const found = await findPaymentPage(shared, token);
    if (found === undefined) throw refuse('page_unknown', { path: request.url });
    return found;
  };
  app.get<{ Params: { token: string } }>('/ask/:token', openRoute(shared), async (request, reply) => {
    placeOf(shared, request);
    const invoice = await find(request, request.params.token);
    return sendOuterPage(
      { shared, request, reply },
      'All your invoices',
      <>
        <OneButton name="Send the link">
          We will send a sign-in link to the e-mail address on file for invoices to <strong>{invoice.partner}</strong>.
          There you can see statements and all open invoices with their balances.
        </OneButton>
        <p>
          <a href={`/pay/${request.params.token}`}>Back to {invoice.number}</a>
        </p>
      </>,
    );
  });
  app.post<{ Params: { token: string } }>('/ask/:token', openRoute(shared), async (request, reply) => {
    refuseOtherOrigin(request, placeOf(shared, request));
    const { token } = request.params;
    const invoice = await find(request, token);
    await shared.limits.askedForLink(String(invoice.documentId), request.ip);
    mailLater({ partner: invoice.partnerId }, () => sendLink(shared, invoice.partnerId));
    return sendOuterPage(
      { shared, request, reply },
      'Check your e-mail',
      <>
        <p>
          If there is an e-mail address on file for invoices to <strong>{invoice.partner}</strong>, a link is on its way
          to it. It works once, for 15 minutes.
        </p>
        <p class="soft">Nothing arrived? Ask {invoice.issuer.name} which address is on file.</p>
        <p>
          <a href={`/pay/${token}`}>Back to {invoice.number}</a>
        </p>
      </>,
    );
  });
}

/** Undefined if the partner has no contact, or is not active. */
async function sendLink(shared: Shared, partnerId: string) {
  const { database, environment } = shared;
  const made = await database.transaction((tx) => makePartnerLink(tx, shared, partnerId));
  if (made === undefined) return undefined;
  const { contact, secret, expires_at } = made;
  return mailPartnerLink(
    { environment, settings: settingsNow(shared) },
    {
      to: { name: contact.contact_name, address: contact.contact_email },
      ...{ partner: contact.partner_name, url: `${issuerOf(shared)}/place/sign-in#${secret}`, expires_at },
    },
  );
}
