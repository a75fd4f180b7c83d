/** `reckoner email list|resend|dismiss`: the e-mails of every kind, and what to do about one that was not sent. */
import { resendDocument } from '../../delivery/resend.ts';
import { EXIT } from '../../errors/refusals.ts';
import { failpoint } from '../../failpoint.ts';
import { dismissEmail } from '../../mail/dismiss.ts';
import { type ListedEmail, nameOf, readEmail, readEmails, remediesOf } from '../../mail/log.ts';
import { resendEmail } from '../../mail/resend.ts';
import { sendTheseEmails } from '../../month-end/month-end.ts';
import { idArgument, wholeNumberArgument } from '../arguments.ts';
import {
  acting,
  type CommandContext,
  type Definition,
  type DeliverOption,
  NO_DELIVER,
  REASON,
  reading,
} from '../define.ts';
import { deliverWithProgress, withProgress } from '../deliveries.ts';
import { printable, table } from '../output.ts';
import { FORMAT, OUT, type PresentOptions, present } from '../present.ts';
import type { Sheet } from '../sheet.ts';

const NUMBER = ['<email>', "the e-mail's number, from 'email list'", idArgument('<email>')] as const;

export const define: Definition = (group, act) => {
  group
    .command('list')
    .description('List e-mails with how each stands, newest first')
    .option('--unfinished', 'only those still to be sent or dealt with, oldest first')
    .option('--limit <count>', 'at most so many (default: 100)', wholeNumberArgument('--limit', 1, 100_000))
    .option(...FORMAT)
    .option(...OUT)
    .action(act(reading(emailList)));
  group
    .command('resend')
    .argument(...NUMBER)
    .description('Send an e-mail again, as a new one with a Message-ID of its own')
    .option('--to <address>', 'send to this address instead of the usual one')
    .option(...NO_DELIVER)
    .action(act(acting(emailResend)));
  group
    .command('dismiss')
    .argument(...NUMBER)
    .description('Decide not to send an e-mail again: it needs no attention any more')
    .requiredOption(...REASON)
    .action(act(acting(emailDismiss)));
};

async function emailList(
  { database, output }: CommandContext,
  options: PresentOptions & { unfinished?: boolean; limit?: number },
): Promise<void> {
  const { unfinished = false, limit = 100 } = options;
  const emails = await database.reading((tx) => readEmails(tx, { unfinished, limit }));
  const listed = () =>
    emails.length === 0
      ? `There are no ${unfinished ? 'unfinished ' : ''}e-mails.`
      : table(
          ['>e-mail', 'about', '~to', 'state', 'since (UTC)', '~reason'],
          emails.map((email) => [
            email.email_id,
            nameOf(email),
            email.to?.join(', ') ?? '',
            email.dismissal_reason === null ? email.status : `${email.status}, dismissed`,
            (email.sent_at ?? email.attempted_at ?? email.queued_at).slice(0, 16).replace('T', ' '),
            printable(email.dismissal_reason ?? email.reason ?? ''),
          ]),
        );
  await present(output, options, emails.map(emailJson), () => sheetOf(emails), listed);
}

const sheetOf = (emails: readonly ListedEmail[]): Sheet => ({
  name: 'E-mails',
  columns: {
    number: 'count',
    kind: 'text',
    about: 'text',
    partner_id: 'text',
    to: 'text',
    status: 'text',
    attempts: 'count',
    queued_at: 'text',
    attempted_at: 'text',
    sent_at: 'text',
    reason: 'text',
    dismissal_reason: 'text',
    message_id: 'text',
  },
  rows: emails.map((email) => ({
    ...email,
    number: email.email_id,
    about: nameOf(email),
    to: email.to?.join(' ') ?? '',
  })),
});

const emailJson = ({ email_id: number, ...email }: ListedEmail): Record<string, unknown> => ({
  number,
  ...email,
  remedies: email.unfinished ? remediesOf({ email_id: number, ...email }) : [],
});

async function emailResend(
  context: CommandContext,
  emailId: number,
  { to, deliver }: { to?: string } & DeliverOption,
): Promise<number> {
  const { database, output } = context;
  const queued = await database.transaction(async (tx) => {
    const { document: number } = await readEmail(tx, emailId);
    if (number === null) return readEmail(tx, (await resendEmail(tx, context, { emailId, to })).email_id);
    return readEmail(tx, await resendDocument(tx, context, { number, to }));
  });
  failpoint('resend.committed');
  if (deliver && queued.document !== null) await deliverWithProgress(context, output, [queued.document]);
  else if (deliver) await withProgress(output, (reporter) => sendTheseEmails(context, reporter, [queued.email_id]));
  const email = await database.reading((tx) => readEmail(tx, queued.email_id));
  output.print(emailJson(email), () => `E-mail ${email.email_id}, ${nameOf(email)}: ${email.status}`);
  return deliver && email.unfinished ? EXIT.attention : EXIT.done;
}

async function emailDismiss(context: CommandContext, emailId: number, { reason }: { reason: string }): Promise<void> {
  const { database, output } = context;
  await database.transaction((tx) => dismissEmail(tx, context, { emailId, reason }));
  const email = await database.reading((tx) => readEmail(tx, emailId));
  output.print(emailJson(email), () => `E-mail ${emailId}, ${nameOf(email)}, is dismissed: ${reason}`);
}
