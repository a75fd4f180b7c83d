/** The watch's e-mail: the status, to operations, when it needs a person. */
import { createHash } from 'node:crypto';
import type { Environment } from '../config/environment.ts';
import type { Settings } from '../config/settings.ts';
import { composeMessage, envelopeOf } from '../mail/message.ts';
import { type SendOutcome, sandboxAllows, transportOf } from '../mail/transport.ts';
import type { Status } from './status.ts';

export async function mailStatus(
  environment: Environment,
  settings: Settings,
  status: Status,
  text: string,
): Promise<SendOutcome> {
  const { operations_email: operations, mail_from: sender, issuer } = settings;
  if (operations === '' || sender === '') {
    return { outcome: 'refused', reply: 'settings.json has no operations_email or no mail_from' };
  }
  if (environment.name === 'sandbox' && !sandboxAllows(operations, settings.sandbox_recipients)) {
    return { outcome: 'refused', reply: `${operations} is not among sandbox_recipients` };
  }
  const now = environment.now().toISO();
  const count = status.attention.length;
  const mark = environment.name === 'sandbox' ? '[SANDBOX] ' : '';
  const body = `${text}\n`;
  const message = {
    messageId: `<watch.${createHash('sha256').update(`${now}${body}`).digest('hex').slice(0, 24)}@${sender.split('@').at(-1)}>`,
    date: now,
    from: { name: issuer.legal_name, address: sender },
    to: { name: 'Operations', address: operations },
    cc: [],
    letter: {
      subject: `${mark}Reckoner needs a person: ${count === 1 ? '1 thing' : `${count} things`}`,
      text: body,
      html: `<!doctype html><html lang="en"><body><pre>${escapeHtml(body)}</pre></body></html>`,
    },
    attachments: [],
  };
  const transport = transportOf(environment);
  try {
    return await transport.send({
      messageId: message.messageId,
      envelope: envelopeOf(message),
      raw: await composeMessage(message),
    });
  } finally {
    transport.close();
  }
}

const escapeHtml = (text: string): string => text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
