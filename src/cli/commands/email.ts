/** `reckoner email list`: the e-mails of every kind. */
import { emailJson } from '../../acts/email.ts';
import { type ListedEmail, nameOf, readEmails } from '../../mail/log.ts';
import type { Sheet } from '../../sheet.ts';
import { wholeNumberArgument } from '../arguments.ts';
import { type CommandContext, type Definition, reading } from '../define.ts';
import { printable, table } from '../output.ts';
import { FORMAT, OUT, type PresentOptions, present } from '../present.ts';

export const define: Definition = (group, act) => {
  group
    .command('list')
    .description('List e-mails with how each stands, newest first')
    .option('--unfinished', 'only those still to be sent or dealt with, oldest first')
    .option('--limit <count>', 'at most so many (default: 100)', wholeNumberArgument('--limit', 1, 100_000))
    .option(...FORMAT)
    .option(...OUT)
    .action(act(reading(emailList)));
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
