import { failpoint } from '#failpoint';
import { bounceFile } from '#mail/bounce-report';
import { recordBounces } from '#mail/bounces';
import { toDo } from '#remedy';
import { plural } from '#text';
import { printable } from '#text-table';
import { defineAction, Facts, FileInput, file, several } from './action.ts';
import { contentsOf } from './contents.ts';

export const emailBounces = defineAction({
  name: 'email.bounces',
  title: 'Record e-mails that mail servers returned',
  command: {
    called: 'mail bounces',
    summary: 'Record e-mails that mail servers returned; safe to repeat',
    arguments: { files: '<files...>' },
  },
  role: 'finance',
  input: { files: several(file('Report', 'Reports of mail servers: mbox files or single messages.')) },
  subject: ({ files }) => namesOf(files),
  read: (_context, { files }) => readReports(files),
  async perform(tx, context, { files }) {
    const read = await readReports(files);
    const reports = read.flatMap((each) => each.reports);
    const recorded = await recordBounces(tx, context, { source: namesOf(files), reports });
    return { messages: read.reduce((sum, { messages }) => sum + messages, 0), ...recorded };
  },
  committed: () => failpoint('bounces.committed'),
  facts: async (_tx, _input, recorded): Promise<Facts> =>
    Object.fromEntries(
      (recorded?.bounces ?? []).map(({ email, about, recipient }) => [
        `e-mail ${email}`,
        { about, status: `returned by ${recipient}` },
      ]),
    ),
  /**
   * The exit status is always 0. With any other status, a mail server that pipes in a message would return the message
   * to its sender.
   */
  async report({ result }) {
    const { messages, bounces, duplicates, unmatched } = result;
    return {
      json: result,
      remedies:
        bounces.length === 0
          ? []
          : [
              toDo('Correct the address, then resend a document', 'invoice.resend'),
              toDo('Or another e-mail', 'email.resend'),
            ],
      text: [
        `${plural(messages, 'message')} read: ${plural(bounces.length, 'e-mail')} returned` +
          `${duplicates > 0 ? `, ${duplicates} known` : ''}${unmatched.length > 0 ? `, ${unmatched.length} not ours` : ''}.`,
        ...unmatched.map((each) => printable(`Not recorded: ${each.message_id} to ${each.recipient}: ${each.reason}.`)),
      ].join('\n'),
      blocks:
        bounces.length === 0
          ? []
          : [
              {
                title: 'Returned',
                table: {
                  headings: ['>e-mail', 'about', '~recipient', 'code', 'reason'],
                  rows: bounces.map((each) => [each.email, each.about, each.recipient, each.status, each.diagnostic]),
                },
              },
            ],
    };
  },
});

const readReports = (files: readonly FileInput[]) => contentsOf(files, bounceFile);

const namesOf = (files: readonly FileInput[]) => files.map(({ name }) => (name === '-' ? 'stdin' : name)).join(', ');
