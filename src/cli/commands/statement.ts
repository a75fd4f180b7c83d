/** `reckoner statement send`. */
import { EXIT } from '../../errors/refusals.ts';
import { failpoint } from '../../failpoint.ts';
import type { Month } from '../../month.ts';
import { sendStatements } from '../../month-end/emails/account-statement.ts';
import { sendTheseEmails } from '../../month-end/month-end.ts';
import { plural } from '../../text.ts';
import { monthArgument } from '../arguments.ts';
import { acting, type CommandContext, type Definition } from '../define.ts';
import { describeEmail } from '../deliveries.ts';

export const define: Definition = (statement, act) => {
  statement
    .command('send')
    .description(
      'E-mail account statements of a closed month; safe to repeat. Before its books close they are preliminary',
    )
    .option('--month <month>', 'default: the last month whose books are closed', monthArgument('--month'))
    .option('--partner <id>', 'only this partner, whether it asks for statements or not')
    .action(act(acting(statementSend)));
};

async function statementSend(context: CommandContext, options: { month?: Month; partner?: string }): Promise<number> {
  const { database, output } = context;
  const { month, preliminary, emails } = await database.transaction((tx) =>
    sendStatements(tx, context, { month: options.month, partnerId: options.partner }),
  );
  failpoint('statement.committed');
  const results: { partner_id: string | null; status: string; detail: string }[] = [];
  await sendTheseEmails(
    context,
    {
      onEmail: (result) => {
        results.push({ partner_id: result.email.partner_id, status: result.status, detail: result.detail });
        if (result.status !== 'sent') output.note(describeEmail(result));
      },
    },
    emails.map(({ email_id }) => email_id),
  );
  const sent = results.filter(({ status }) => status === 'sent').length;
  output.print({ month, preliminary, emails: results }, () =>
    emails.length === 0
      ? `No ${preliminary ? 'preliminary ' : ''}statement of ${month} is left to send. 'reckoner email list' shows those that were sent.`
      : preliminary
        ? `Sent ${plural(sent, 'preliminary account statement')} of ${month}: its books are open. The final ones follow when they close.`
        : `Sent ${plural(sent, 'account statement')} of ${month}.`,
  );
  return results.some(({ status }) => ['held', 'failed', 'uncertain'].includes(status)) ? EXIT.attention : EXIT.done;
}
