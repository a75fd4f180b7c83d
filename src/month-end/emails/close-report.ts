/** The e-mail to finance after a close, with the month's documents as in `report close`. */

import { describeDecision } from '#close/feeds';
import { describeOtherCurrency } from '#close/other-currencies';
import { LOCKS, takeLock } from '#database/locks';
import { Transaction } from '#database/transaction';
import { describeDifferingCut } from '#ledger/quoted';
import { EmailComposer, letterView, oneLine } from '#mail/email';
import { queueEmails } from '#mail/outbox.sql';
import { ActorContext, recordEvent } from '#people/audit-events';
import { CloseReport, readCloseReport } from '#reports/close';
import { approvalsOf, beforeTax, describeClose, largestChanges } from '#reports/close-text';
import { EMAIL_TEXT_WIDTH } from '#text-table';
import { groupThousands, Month, moneyText, monthName, plural } from '#values';
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

/** Writes `+1,234.50` or `-2.80`, and "no change" for zero. */
function signed(change: string) {
  if (Number(change) === 0) return 'no change';
  return `${change.startsWith('-') ? '' : '+'}${groupThousands(change)}`;
}

function viewOf(report: CloseReport) {
  const { sent, pending, held, failed, uncertain } = report.deliveries;
  const unsent = pending + held + failed + uncertain;
  return {
    month: monthName(report.month),
    closedOn: report.issued_on,
    report: describeClose(report, EMAIL_TEXT_WIDTH),
    emailsSent: String(sent),
    emailsUnsent: unsent > 0 ? String(unsent) : '',
    documents: {
      invoices: String(report.invoices),
      creditNotes: String(report.credit_notes),
      statements: String(report.statements),
    },
    rows: String(report.entries),
    lateRows: String(report.late_entries),
    program: report.program ?? '',
    schema: report.schema ?? '',
    approvals: approvalsOf(report).join('; '),
    previous: report.previous === null ? '' : monthName(report.previous),
    totals: Object.entries(report.totals).map(([currency, { spotPrice, partnerCut, invoiceAmount }]) => {
      const { shown, rest } = largestChanges(report, currency);
      return {
        currency,
        sales: groupThousands(spotPrice),
        partnerCut: groupThousands(partnerCut),
        invoiced: groupThousands(invoiceAmount),
        changes: shown.map((row) => ({
          partner: oneLine(row.name),
          documents: row.documents.join(', '),
          amount: groupThousands(row.invoice_amount),
          change: report.previous === null ? '' : signed(row.change),
        })),
        more: rest === 0 ? '' : String(rest),
      };
    }),
    beforeTax: beforeTax(report),
    noActivity: report.no_activity.map(({ name }) => oneLine(name)).join(', '),
    late: report.late.map((row) => ({
      partner: oneLine(row.name),
      month: monthName(row.month),
      rows: plural(row.entries, 'row'),
      amount: moneyText(row.invoice_amount, row.currency),
    })),
    otherCurrencies: report.other_currencies.map((row) => oneLine(describeOtherCurrency(row))),
    differingCuts: report.differing_cuts.map((row) => oneLine(describeDifferingCut(row))),
    acceptedDoubts: report.accepted_doubts.map((row) => oneLine(describeDecision(row))),
    held: report.held.map(({ number, name, status, reason }) => ({ number, partner: oneLine(name), status, reason })),
  };
}
