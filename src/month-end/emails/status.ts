/** The e-mail that operations gets while something needs attention. */
import { publicAddress } from '#config/settings';
import { Transaction } from '#database/transaction';
import { Finding } from '#findings/finding';
import { EmailComposer, letterView } from '#mail/email';
import { queueEmails } from '#mail/outbox.sql';
import { ActorContext } from '#people/audit-events';
import { actionAddress } from '#remedy';
import { readStatus } from '#reports/status';
import { describeStatus } from '#reports/status-text';
import { EMAIL_TEXT_WIDTH } from '#text-table';

export const statusEmail: EmailComposer = {
  kind: 'status',
  async compose(tx, _, { environment, settings }, templates) {
    if (settings.operations_email === '') return { held: 'settings.json has no operations_email' };
    const status = await readStatus(tx, { environment, settings });
    const attention = status.findings.map((finding) => withLinks(finding, publicAddress(settings)));
    if (attention.length === 0) return { withdrawn: 'nothing needs attention now' };
    return {
      to: { name: 'Operations', address: settings.operations_email },
      cc: [],
      content: templates.render('status', {
        ...letterView({ environment, settings }),
        ...{ count: String(attention.length), single: attention.length === 1, attention },
        report: describeStatus(status, { urgent: attention, width: EMAIL_TEXT_WIDTH }),
      }),
      attachments: [],
    };
  },
};

/** Shows remedies as addresses of console pages, or as commands if they work only on the server. */
const withLinks = ({ urgent, remedies }: Finding, address: string) =>
  [
    urgent,
    ...remedies.map((each) => {
      const page = 'action' in each ? actionAddress(each) : each.page;
      return page === undefined && 'command' in each
        ? `${each.label}: reckoner ${each.command}`
        : `${each.label}: ${address}${page}`;
    }),
  ].join(' ');

/** Unless an earlier status e-mail is waiting. The content is read when it is sent. */
export async function queueStatusEmail(tx: Transaction, { environment, settings }: ActorContext) {
  const name = `status.${environment.now().toUTC().toFormat("yyyyMMdd'T'HHmmssSSS")}`;
  await queueEmails(tx, [{ kind: 'status', name }], { environment, settings });
}
