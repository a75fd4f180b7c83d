/**
 * Sends the e-mails with a sign-in link. They bypass the outbox, which would store the link's secret, and are sent at
 * once or not at all. Refusal: an unusable template.
 */
import { randomUUID } from 'node:crypto';
import { mailDomain } from '#documents/issue/context';
import { Installation } from '#people/audit-events';
import { minuteOf } from '#text';
import { messageOf, whyUnsendable } from './attempt.ts';
import { EmailContent } from './email.ts';
import { letterView } from './letter.ts';
import { templatesOf } from './templates.ts';
import { oneLine } from './text.ts';
import { transportOf } from './transport.ts';

export type SentLink = Readonly<{
  outcome: 'sent' | 'refused' | 'deferred' | 'unclear';
  reply: string;
}>;

type LinkToSend = Readonly<{
  to: Readonly<{ name: string; address: string }>;
  url: string;
  expires_at: string;
}>;

/** Whether e-mails can be sent. A sandbox without a mail server keeps them in its folder `outbox`. */
export const canMail = ({ environment, settings: { mail_from: sender } }: Installation) =>
  sender !== '' && (environment.name === 'sandbox' || environment.smtpUrl !== undefined);

/** The inviting user also sees the link. */
export const mailSignInLink = (context: Installation, link: LinkToSend) => mailLink(context, link, 'sign_in', {});

export const mailPartnerLink = (context: Installation, link: LinkToSend & { readonly partner: string }) =>
  mailLink(context, link, 'partner_sign_in', { partner: oneLine(link.partner) });

async function mailLink(
  context: Installation,
  { to, url, expires_at }: LinkToSend,
  name: 'sign_in' | 'partner_sign_in',
  more: object,
): Promise<SentLink> {
  const reply = whyUnsendable(context, { to, cc: [] });
  if (reply !== undefined) return { outcome: 'deferred', reply };
  const content = templatesOf(context.environment).render(name, {
    ...letterView(context),
    ...{ name: oneLine(to.name), url, until: minuteOf(expires_at), ...more },
  });
  const { outcome, reply: answer } = await sendNow(context, 'sign-in', { to, content });
  return { outcome, reply: answer };
}

/** Sends an e-mail at once. `name` begins its Message-ID. */
export async function sendNow(context: Installation, name: string, email: Pick<EmailContent, 'to' | 'content'>) {
  const messageId = `<${name}.${randomUUID()}@${mailDomain(context.settings)}>`;
  const { raw, envelope } = await messageOf(context, messageId, { ...email, cc: [], attachments: [] });
  const transport = transportOf(context.environment);
  const sent = await transport.send({ messageId, envelope, raw }).finally(() => transport.close());
  return { ...sent, messageId, by: transport.name };
}
