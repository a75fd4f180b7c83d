/** The report of a close as plain text: what the command prints, and what finance gets by e-mail. */
import { groupThousands } from '../money.ts';
import { monthName } from '../month.ts';
import { printable, short, table, wrapped } from '../text-table.ts';
import type { CloseReport } from './close.ts';

/** Partners are listed by how much they changed; the rest is in --json. */
const LISTED = 20;

export function describeClose(report: CloseReport): string {
  const { sent, pending, held, failed, uncertain } = report.deliveries;
  const counted = (number: number, noun: string) => `${number} ${noun}${number === 1 ? '' : 's'}`;
  const parts = [
    [
      `${monthName(report.month)}, closed on ${report.issued_on}`,
      `  Documents   ${counted(report.invoices, 'invoice')}, ${counted(report.credit_notes, 'credit note')}, ${counted(report.statements, 'statement')}`,
      `  Rows        ${report.entries}, ${report.late_entries} of them late`,
      `  E-mails     ${sent} sent, ${pending} pending, ${held} held, ${failed} failed, ${uncertain} uncertain`,
    ].join('\n'),
  ];
  const currencies = Object.entries(report.totals);
  if (currencies.length > 0) {
    parts.push(
      table(
        ['', '>spotPrice', '>partnerCut', '>invoiceAmount'],
        currencies.map(([currency, { spotPrice, partnerCut, invoiceAmount }]) => [
          currency,
          ...[spotPrice, partnerCut, invoiceAmount].map(groupThousands),
        ]),
      ),
    );
  }
  if (report.partners.length > 0) parts.push(changes(report));
  if (report.no_activity.length > 0)
    parts.push(listed(`No activity (${report.no_activity.length})`, report.no_activity));
  if (report.late.length > 0) {
    parts.push(
      [
        'Late rows, billed this month',
        table(
          ['partner', 'of', '>rows', '>invoiceAmount', ''],
          report.late.map((row) => [
            short(row.partner_id, 30),
            row.month,
            row.entries,
            groupThousands(row.invoice_amount),
            row.currency,
          ]),
        ),
      ].join('\n'),
    );
  }
  if (report.held.length > 0) {
    const lines = report.held.flatMap(({ number, partner_id, status, reason }) =>
      wrapped(printable(`${number} of ${partner_id}, ${status}${reason === '' ? '' : `: ${reason}`}`), 78).map(
        (line, index) => (index === 0 ? `  ${line}` : `    ${line}`),
      ),
    );
    parts.push(['Needs attention', ...lines].join('\n'));
  }
  return parts.join('\n\n');
}

function changes({ partners, previous }: CloseReport): string {
  const size = (change: string) => Math.abs(Number(change));
  const shown = [...partners].sort((a, b) => size(b.change) - size(a.change)).slice(0, LISTED);
  const rows = shown.map((row) => [
    short(row.partner_id, 22),
    row.currency,
    groupThousands(row.invoice_amount),
    ...(previous === null ? [] : [groupThousands(row.last_month), groupThousands(row.change)]),
  ]);
  const headings = ['partner', '', '>this month', ...(previous === null ? [] : [`>${previous}`, '>change'])];
  const rest = partners.length - shown.length;
  return table(headings, rows) + (rest > 0 ? `\n… and ${rest} more with smaller changes.` : '');
}

function listed(title: string, names: readonly string[]): string {
  return [title, ...wrapped(names.map(printable).join(', '), 76).map((line) => `  ${line}`)].join('\n');
}
