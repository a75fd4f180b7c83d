/** The e-mail to finance after a close, with the month's documents as in `report close`. */

import { LOCKS, takeLock } from '#database/locks';
import { Transaction } from '#database/transaction';
import { blocksView } from '#mail/blocks-view';
import { EmailComposer, letterView } from '#mail/email';
import { queueEmails } from '#mail/outbox.sql';
import { ActorContext, recordEvent } from '#people/audit-events';
import { CloseReport, readCloseReport } from '#reports/close';
import { closeBlocks, describeClose, LISTED } from '#reports/close-text';
import { EMAIL_TEXT_WIDTH } from '#text-table';
import { Month, monthName } from '#values';
import { readMonthsWithoutReport } from './due.sql.ts';

/** So that turning reports on does not send old months. */
const NEWS_FOR_DAYS = 7;

export const closeReportEmail: EmailComposer = {
  kind: 'close_report',
  queueDue,
  async compose(tx, { month }, { environment, settings }, templates) {
    if (settings.finance_email === '') return { held: 'settings.json has no finance_email' };
    const report = (await readCloseReport(tx, month as Month)) as CloseReport;
    return {
      to: { name: 'Finance', address: settings.finance_email },
      cc: [],
      content: templates.render('close_report', {
        ...letterView({ environment, settings }),
        ...viewOf(report),
      }),
      attachments: [],
    };
  },
};

async function queueDue(tx: Transaction, { environment, settings, actor }: ActorContext) {
  if (settings.finance_email === '') return;
  const now = environment.now();
  const since = now.minus({ days: NEWS_FOR_DAYS }).toISO();
  // Otherwise two concurrent closes would both find the report missing.
  await takeLock(tx, LOCKS.closeReports);
  const months = await readMonthsWithoutReport(tx, { since });
  if (months.length === 0) return;
  const names = months.map((each) => each.month);
  const eventId = await recordEvent(tx, actor, {
    action: 'report.close',
    subject: names.join(', '),
    details: { to: settings.finance_email },
    now: now.toISO(),
  });
  const emails = names.map((month) => ({ kind: 'close_report', month, name: `close-report.${month}` }) as const);
  await queueEmails(tx, emails, { environment, settings }, eventId);
}

function viewOf(report: CloseReport) {
  const { sent, pending, held, failed, uncertain } = report.deliveries;
  const unsent = pending + held + failed + uncertain;
  return {
    month: monthName(report.month),
    report: describeClose(report, EMAIL_TEXT_WIDTH),
    blocks: blocksView(closeBlocks(report, { most: LISTED })),
    emailsSent: String(sent),
    emailsUnsent: unsent > 0 ? String(unsent) : '',
  };
}
