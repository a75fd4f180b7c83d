/** `reckoner mail bounces`. */

import { failpoint } from '../../failpoint.ts';
import { bouncesIn, messagesOf, type ReportedBounce } from '../../mail/bounce-report.ts';
import { recordBounces } from '../../mail/bounces.ts';
import { plural } from '../../text.ts';
import { acting, type CommandContext, type Definition } from '../define.ts';
import { readInput } from '../input.ts';
import { printable, table } from '../output.ts';

export const define: Definition = (group, act) => {
  group
    .command('bounces')
    .argument('<files...>', "reports of mail servers: mbox files or single messages; '-' is stdin")
    .description('Record e-mails that mail servers returned; reading a report again changes nothing')
    .action(act(acting(mailBounces)));
};

/** Always done, whatever the files hold: a mail server that pipes messages in would return them for any other status. */
async function mailBounces(context: CommandContext, files: readonly string[]): Promise<void> {
  const { database, output } = context;
  const reports: ReportedBounce[] = [];
  let messages = 0;
  for (const file of files) {
    for (const message of messagesOf(readInput(file))) {
      messages += 1;
      reports.push(...(await bouncesIn(message)));
    }
  }
  const source = files.map((file) => (file === '-' ? 'stdin' : file)).join(', ');
  const recorded = await database.transaction((tx) => recordBounces(tx, context, { source, reports }));
  failpoint('bounces.committed');
  const { bounces, duplicates, unmatched } = recorded;
  output.print({ messages, ...recorded }, () =>
    [
      `${plural(messages, 'message')} read: ${plural(bounces.length, 'e-mail')} returned` +
        `${duplicates > 0 ? `, ${duplicates} known` : ''}${unmatched.length > 0 ? `, ${unmatched.length} not ours` : ''}.`,
      ...(bounces.length === 0
        ? []
        : [
            table(
              ['>e-mail', 'about', '~recipient', 'code', 'reason'],
              bounces.map((each) => [each.email, each.about, each.recipient, each.status, printable(each.diagnostic)]),
            ),
            "Correct the address, then run 'reckoner invoice resend NUMBER' or 'reckoner email resend NUMBER'.",
          ]),
      ...unmatched.map((each) => printable(`Not recorded: ${each.message_id} to ${each.recipient}: ${each.reason}.`)),
    ].join('\n'),
  );
}
