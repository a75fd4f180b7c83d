/**
 * The e-mails with a sign-in link, of a user and of a partner's contact. They do not go through the outbox, which keeps what
 * it sends: the link's secret stays out of the database. What cannot be sent at once is not sent.
 */
import { randomUUID } from 'node:crypto';
import Handlebars from 'handlebars';
import { mailDomain } from '../documents/issue/context.ts';
import { minuteOf } from '../text.ts';
import { messageOf, whyUnsendable } from './attempt.ts';
import type { EmailContext } from './email.ts';
import { oneLine } from './text.ts';
import { transportOf } from './transport.ts';

export interface SentLink {
  readonly outcome: 'sent' | 'refused' | 'deferred' | 'unclear';
  /** The mail server's reply, or why nothing was sent. */
  readonly reply: string;
}

export interface LinkToSend {
  readonly to: { readonly name: string; readonly address: string };
  readonly url: string;
  readonly expires_at: string;
}

type MailContext = Pick<EmailContext, 'environment' | 'settings'>;

/** To the console. Whoever invites also sees the link. */
export const mailSignInLink = (context: MailContext, link: LinkToSend): Promise<SentLink> =>
  mailLink(context, link, {
    subject: 'Sign in to the billing console',
    text:
      `Hello ${link.to.name},\n\nhere you sign in to the billing console of ${context.settings.issuer.legal_name || 'Reckoner'}:\n\n  ${link.url}\n\n` +
      `The link works once, until ${minuteOf(link.expires_at)}. After that, register a passkey: then you need no link\n` +
      'to sign in from this device. If you did not expect this e-mail, delete it.\n',
  });

/** To the place of a partner, for its invoicing contact. */
export const mailPartnerLink = (context: MailContext, link: LinkToSend & { readonly partner: string }) =>
  mailLink(context, link, {
    subject: `Sign in to the invoices of ${oneLine(link.partner)}`,
    text:
      `Hello ${oneLine(link.to.name)},\n\nhere you see all invoices of ${oneLine(link.partner)} ` +
      `from ${context.settings.issuer.legal_name}:\n\n  ${link.url}\n\n` +
      `The link works once, until ${minuteOf(link.expires_at)}. Do not pass it on: whoever opens it is signed in.\n\n` +
      'Somebody asked for it on the payment page of an invoice. If it was not you, delete this e-mail.\n',
  });

async function mailLink(
  context: MailContext,
  { to, url }: LinkToSend,
  { subject, text }: { readonly subject: string; readonly text: string },
): Promise<SentLink> {
  const { environment, settings } = context;
  const reply = whyUnsendable(context, { to, cc: [] });
  if (reply !== undefined) return { outcome: 'deferred', reply };
  const mark = environment.name === 'sandbox' ? '[SANDBOX] ' : '';
  const href = Handlebars.escapeExpression(url);
  const paragraphs = Handlebars.escapeExpression(text).replace(href, `<a href="${href}">${href}</a>`).split('\n\n');
  const html = paragraphs.map((each) => `<p>${each}</p>`).join('\n');
  const messageId = `<sign-in.${randomUUID()}@${mailDomain(settings)}>`;
  const content = { subject: `${mark}${subject}`, text, html };
  const { raw, envelope } = await messageOf(context, messageId, { to, cc: [], content, attachments: [] });
  const transport = transportOf(environment);
  return transport.send({ messageId, envelope, raw }).finally(() => transport.close());
}
