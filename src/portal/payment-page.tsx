/**
 * The page of a payment link: one document's balance and how to pay it. The link's token is the only credential. The
 * page expires some days after the document was settled. It reveals no other partner, and no other document except the
 * number of a replacement.
 */

import { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ComponentChildren } from 'preact';
import { todayOf } from '#config/today';
import { sendFile, settingsNow } from '#console/route';
import { httpStatusOf, refuse } from '#errors/refusals';
import { pageOf, sendPage } from '#http/page';
import { answerTo } from '#http/problem';
import { Shared } from '#http/shared';
import { daysBetween } from '#month';
import { settingsInForce } from '#people/settings-in-force';
import { FILE_ROUTES, openFile } from './files.ts';
import { InvoiceView, readInvoice } from './invoice.ts';
import { hasPartnerPlace } from './route.ts';

/** A page below /pay, or a file of it. */
const PAGE = /^\/pay\/[^/?]+(?:\/[^/?]+)?(?:\?|$)/;
const TOKEN = /^[A-Za-z0-9_-]{32,128}$/;

/** Returns the invoice for a token, or undefined if the token is unknown or expired. */
export async function findPaymentPage(shared: Shared, token: string) {
  if (!TOKEN.test(token)) return undefined;
  const { database, environment } = shared;
  const settings = await settingsInForce(database, settingsNow(shared));
  const today = todayOf({ environment, settings });
  const view = await database.reading((tx) => readInvoice(tx, { token }, { environment, settings, today }));
  const { payment_page_days: days } = settings.http;
  const isOver = days !== null && view?.settledOn != null && daysBetween(view.settledOn, today) > days;
  return isOver ? undefined : view;
}

export function addPaymentPages(app: FastifyInstance, shared: Shared) {
  const { database, limits } = shared;
  const onRequest = async (request: FastifyRequest) => void limits.request('page', request.ip);
  const unknown = (reply: FastifyReply) => sendProblem(reply, shared, 404, UNKNOWN);

  // People open these URLs in a browser, so errors are pages.
  app.register(
    async (pay) => {
      pay.setErrorHandler((error, request, reply) => {
        const refusal = answerTo(error, request, reply);
        const said = { ...NOT_NOW, text: `${refusal.message} Nothing was changed.` };
        return sendProblem(reply, shared, httpStatusOf(refusal.code), said);
      });

      // An incomplete link, or one with text added to it.
      pay.setNotFoundHandler({ preValidation: onRequest }, async (request, reply) => {
        const { method, url } = request;
        if (method === 'GET' || method === 'HEAD' || !PAGE.test(url)) return unknown(reply);
        const path = url.split('?')[0] ?? '';
        answerTo(refuse('method_not_allowed', { method, path, allowed: ['GET', 'HEAD'] }), request, reply);
        return sendProblem(reply, shared, 405, ONLY_SHOWN);
      });

      const pages = { onRequest, config: { bound: 'pages' }, exposeHeadRoute: true } as const;
      pay.get<{ Params: { token: string } }>('/:token', pages, async (request, reply) => {
        const { token } = request.params;
        const view = await findPaymentPage(shared, token);
        if (view === undefined) return unknown(reply);
        const place = hasPartnerPlace(shared, settingsNow(shared)) ? `/place/ask/${token}` : null;
        return sendPage(reply, pageOf(view, <PaymentPage view={view} path={`/pay/${token}`} place={place} />));
      });

      for (const { kind, bound } of FILE_ROUTES) {
        const path = `/:token/${nameOf(kind)}`;
        pay.get<{ Params: { token: string } }>(path, { onRequest, config: { bound } }, async (request, reply) => {
          const view = await findPaymentPage(shared, request.params.token);
          const file = view && (await database.reading((tx) => openFile(tx, shared, view, kind)));
          return file === undefined
            ? unknown(reply)
            : sendFile(reply.header('X-Robots-Tag', 'noindex, nofollow'), file, { isFramed: false });
        });
      }
    },
    { prefix: '/pay' },
  );
}

const nameOf = (kind: InvoiceView['files'][number]['kind']) => (kind === 'pdf' ? 'invoice.pdf' : kind);

type Said = Readonly<Record<'title' | 'heading' | 'text', string>>;

const UNKNOWN: Said = {
  title: 'Page not found',
  heading: 'There is no such page',
  text: 'The link may be incomplete, or for another document. Open the full link again from the invoice or its e-mail.',
};
const ONLY_SHOWN = {
  title: 'Not allowed',
  heading: 'This page is read-only',
  text: 'It only shows the invoice. Nothing was changed.',
};
const NOT_NOW = { title: 'Not now', heading: 'This page is temporarily unavailable' };

function sendProblem(reply: FastifyReply, shared: Shared, status: number, { title, heading, text }: Said) {
  const { legal_name: name, email } = shared.settings.issuer;
  const html = pageOf(
    { title, sandbox: shared.environment.name === 'sandbox' },
    <header>
      <h1>{heading}</h1>
      <p>{text}</p>
      {email !== '' && (
        <p>
          If that does not help, please write to {name}: <a href={`mailto:${email}`}>{email}</a>
        </p>
      )}
    </header>,
  );
  return sendPage(reply, html, status);
}

/** `place` is where the contact can request a link to all invoices. Null if sign-in is off. */
const PaymentPage = ({ view, path, place }: { view: InvoiceView; path: string; place: string | null }) => (
  <>
    <Heading view={view} />
    {view.pay !== null && <BankDetails pay={view.pay} reference={view.number} />}
    {view.status !== 'void' && view.lines.length > 0 && <Details view={view} />}
    {view.files.length > 0 && (
      <Section id="files" title="For your records" class="screen">
        <ul class="plain">
          {view.files.map(({ kind, name, note }) => (
            <li>
              <a href={`${path}/${nameOf(kind)}`}>{name}</a>: {note}
            </li>
          ))}
        </ul>
      </Section>
    )}
    {place !== null && (
      <Section id="all" title="All your invoices" class="screen">
        <p>
          <a href={place}>Sign in</a> with a link that we send to your e-mail address on file.
        </p>
      </Section>
    )}
    <Footer issuer={view.issuer} />
  </>
);

const Section = (section: { id: string; title: string; class?: string; children: ComponentChildren }) => (
  <section aria-labelledby={section.id} class={section.class}>
    <h2 id={section.id}>{section.title}</h2>
    {section.children}
  </section>
);

const Soft = ({ children }: { children: string }) => (children === '' ? null : <p class="soft">{children}</p>);
const Notice = ({ children }: { children: string }) => (children === '' ? null : <p class="notice">{children}</p>);

const Heading = ({ view }: { view: InvoiceView }) => {
  const { title, issuer, partner, month, issuedOn, purchaseOrder, pay, balance, standing, status } = view;
  return (
    <header>
      <h1>{title}</h1>
      <p class="soft">
        {`from ${issuer.name} to ${partner}${month && ` for ${month}`}, issued on ${issuedOn}`}
        {purchaseOrder && `, purchase order ${purchaseOrder}`}
      </p>
      <Due view={view} />
      <Notice>{view.ordered}</Notice>
      {pay !== null && pay.url !== '' && (
        <p>
          <a class="pay" rel="noopener noreferrer" href={pay.url}>
            Pay {balance} now
          </a>
        </p>
      )}
      {pay !== null && pay.ask !== '' && <p>{pay.ask}</p>}
      <Notice>{standing}</Notice>
      {status === 'void' && view.replacedBy !== null && (
        <p>It was replaced by {view.replacedBy}, which has its own link.</p>
      )}
    </header>
  );
};

const Due = ({ view: { due, balance, carriedOver } }: { view: InvoiceView }) =>
  due === null ? (
    <Soft>{carriedOver}</Soft>
  ) : (
    <>
      <p class="amount">{balance}</p>
      <p>
        {due.on}
        {due.dateKept && ' (due date of the replaced invoice)'}{' '}
        {due.overdue && <span class="badge">{due.overdue}</span>}
      </p>
      <Soft>{carriedOver}</Soft>
      <Soft>{due.partlyPaid}</Soft>
    </>
  );

type HowToPay = NonNullable<InvoiceView['pay']>;

const BankDetails = ({ pay, reference }: { pay: HowToPay; reference: string }) => {
  const { ach, wire, creditorReference, changed, sameDetails } = pay;
  const quoted = [
    { label: 'Payment reference', value: reference, copy: true },
    ...(creditorReference === '' ? [] : [{ label: 'Creditor reference', value: creditorReference, copy: true }]),
  ];
  return (
    <>
      {changed !== null && (
        <div class="warning" role="note">
          <strong>{changed.title}</strong> {changed.text}
        </div>
      )}
      {ach !== null && (
        <Section id="ach" title="Pay by ACH">
          <Facts facts={[...quoted, ...ach]} />
        </Section>
      )}
      {wire !== null && (
        <Section id="wire" title="Pay by wire transfer">
          <Facts facts={[...quoted, ...wire]} />
          <p class="soft">
            Quote {creditorReference === '' ? 'the payment reference' : 'one of the two references'} in full.{' '}
            {sameDetails}
          </p>
        </Section>
      )}
    </>
  );
};

const Facts = ({ facts }: { facts: NonNullable<HowToPay['ach']> }) => (
  <dl>
    {facts.map(({ label, value, copy }) => (
      <>
        <dt>{label}</dt>
        <dd>{copy ? <span class="copy">{value}</span> : value}</dd>
      </>
    ))}
  </dl>
);

const Details = ({ view: { lines, totals, taxNotes } }: { view: InvoiceView }) => (
  <Section id="for" title="Details">
    <table class="lines">
      <thead>
        <tr>
          <th scope="col">Policy</th>
          <th scope="col">Month</th>
          <th scope="col">Count</th>
          <th scope="col" class="number">
            Net due
          </th>
        </tr>
      </thead>
      <tbody>
        {lines.map(({ policy, month, rows, amount }) => (
          <tr>
            <th scope="row">{policy}</th>
            <td>{month}</td>
            <td>{rows}</td>
            <td class="number">{amount}</td>
          </tr>
        ))}
      </tbody>
      <tfoot>
        {totals.map(({ label, amount }) => (
          <tr>
            <th scope="row" colSpan={3}>
              {label}
            </th>
            <td class="number">{amount}</td>
          </tr>
        ))}
      </tfoot>
    </table>
    {taxNotes.map((note) => (
      <Soft>{note}</Soft>
    ))}
  </Section>
);

const Footer = ({ issuer: { name, email, phone } }: Pick<InvoiceView, 'issuer'>) => (
  <footer>
    <p>
      Questions? {name}
      {email && (
        <>
          , <a href={`mailto:${email}`}>{email}</a>
        </>
      )}
      {phone && `, ${phone}`}
    </p>
  </footer>
);
