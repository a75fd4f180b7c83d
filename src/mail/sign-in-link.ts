/**
 * The e-mail with a sign-in link. It does not go through the outbox, which keeps what it sends: the link's secret stays out of
 * the database. What cannot be sent at once is not sent; whoever invites sees the link.
 */
import { randomUUID } from 'node:crypto';
import Handlebars from 'handlebars';
import { mailDomain } from '../documents/issue/context.ts';
import { minuteOf } from '../text.ts';
import { messageOf, whyUnsendable } from './attempt.ts';
import type { EmailContext } from './email.ts';
import { transportOf } from './transport.ts';

export interface SentLink {
  readonly outcome: 'sent' | 'refused' | 'deferred' | 'unclear';
  /** The mail server's reply, or why nothing was sent. */
  readonly reply: string;
}

export async function mailSignInLink(
  context: Pick<EmailContext, 'environment' | 'settings'>,
  given: { to: { name: string; address: string }; url: string; expires_at: string },
): Promise<SentLink> {
  const { environment, settings } = context;
  const { to, url } = given;
  const reply = whyUnsendable(context, { to, cc: [] });
  if (reply !== undefined) return { outcome: 'deferred', reply };
  const mark = environment.name === 'sandbox' ? '[SANDBOX] ' : '';
  const text =
    `Hello ${to.name},\n\nhere you sign in to the billing console of ${settings.issuer.legal_name || 'Reckoner'}:\n\n  ${url}\n\n` +
    `The link works once, until ${minuteOf(given.expires_at)}. After that, register a passkey: then you need no link\n` +
    'to sign in from this device. If you did not expect this e-mail, delete it.\n';
  const href = Handlebars.escapeExpression(url);
  const paragraphs = Handlebars.escapeExpression(text).replace(href, `<a href="${href}">${href}</a>`).split('\n\n');
  const html = paragraphs.map((each) => `<p>${each}</p>`).join('\n');
  const messageId = `<sign-in.${randomUUID()}@${mailDomain(settings)}>`;
  const content = { subject: `${mark}Sign in to the billing console`, text, html };
  const { raw, envelope } = await messageOf(context, messageId, { to, cc: [], content, attachments: [] });
  const transport = transportOf(environment);
  return transport.send({ messageId, envelope, raw }).finally(() => transport.close());
}
