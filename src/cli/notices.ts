/** Sending the e-mails that carry no document, with a remark on each that did not go out. */
import { join } from 'node:path';
import { type NoticeOutcome, sendNotices } from '../delivery/notice.ts';
import { loadTemplates } from '../mail/document-email.ts';
import { packageRoot } from '../package.ts';
import { composeReminder } from '../payments/remind.ts';
import { composeCloseReport, recordCloseReports } from '../reports/close.ts';
import { describeClose } from './commands/close-report.ts';
import type { Context } from './context.ts';

/** Sends the reports of closes that have none, and whatever else is recorded and not sent. */
export async function sendAllNotices(context: Context, onNotice: (outcome: NoticeOutcome) => void): Promise<void> {
  const { environment, settings, database } = context;
  await database.transaction((tx) => recordCloseReports(tx, context));
  const templates = loadTemplates([
    join(environment.home, 'templates', 'email'),
    join(packageRoot, 'templates', 'email'),
  ]);
  await sendNotices({
    environment,
    settings,
    database,
    composers: {
      reminder: (tx, notice) => composeReminder(tx, notice, context, templates),
      close_report: (tx, notice) => composeCloseReport(tx, notice, context, describeClose),
    },
    onNotice,
  });
}

export function describeNotice({ notice, status, detail }: NoticeOutcome): string {
  const what = notice.kind === 'reminder' ? `Reminder to ${notice.partner_id}` : `Close report of ${notice.month}`;
  return `${what} ${status === 'deferred' ? 'not sent yet' : status}${detail === '' ? '' : `: ${detail}`}`;
}
