import Handlebars from 'handlebars';
import { CommandContext, Definition, EXIT, printable, reading, refuse } from '#cli/command';
import { DkimRecord, dkimRecord } from '#mail/dkim';
import { refuseRecipient } from '#mail/sandbox';
import { sendNow } from '#mail/sign-in-link';

export const define: Definition = (group, action) => {
  group
    .command('test')
    .argument('<address>', 'who gets the message')
    .description("Send a test message and show the mail server's answer")
    .action(action(reading(mailTest)));
};

/** The DNS record to publish, in zone-file syntax. */
export const describeDkim = ({ name, value }: DkimRecord) =>
  `E-mails are signed. Publish this in the DNS:\n${name}. TXT (\n${(value.match(/.{1,70}/g) ?? [])
    .map((part) => `  "${part}"`)
    .join('\n')} )`;

/** Through the transport that all e-mails use. */
async function mailTest(context: CommandContext, address: string) {
  const { environment, settings, output } = context;
  refuseRecipient(context, address);
  if (settings.mail_from === '') throw refuse('argument_invalid', NO_SENDER);
  const at = environment.now().toISO();
  const text = `This is a test of ${settings.issuer.legal_name}'s billing system, sent at ${at}. No action is needed.\n`;
  const content = { subject: 'Test e-mail', text, html: `<p>${Handlebars.escapeExpression(text)}</p>` };
  const { messageId, by, outcome, reply } = await sendNow(context, 'test', { to: { name: '', address }, content });
  const dkim = dkimRecord({ environment, settings });
  const sent = { to: address, from: settings.mail_from, by, outcome, reply, message_id: messageId };
  output.print({ ...sent, dkim: dkim && { ...dkim } }, () =>
    [
      `${outcome === 'sent' ? 'Sent' : `Not sent (${outcome})`} to ${address} by ${by}: ${printable(reply)}`,
      dkim === null ? 'E-mails are not signed: DKIM_PRIVATE_KEY_FILE is not set.' : describeDkim(dkim),
    ].join('\n'),
  );
  return outcome === 'sent' ? EXIT.done : EXIT.failed;
}

const NO_SENDER = { argument: 'mail_from', value: '', reason: 'is not set in settings.json: e-mails have no sender' };
