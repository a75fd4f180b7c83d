/** The report of a close as plain text, for the command and for the e-mail to finance. Names are cut to the width. */

import { describeDecision } from '#close/feeds';
import { describeOtherCurrency } from '#close/other-currencies';
import { describeDifferingCut } from '#ledger/quoted';
import { printable, table, wrapped } from '#text-table';
import { Amount, groupThousands, monthName, plural } from '#values';
import { PartnerChange } from './close.sql.ts';
import { CloseReport } from './close.ts';

/** The number of partners that are listed for each currency, the largest change first. --json lists all partners. */
const LISTED = 20;

/**
 * The actions that need no approval in production, and the actions that were not approved because no approver existed.
 */
export function approvalsOf({ approvals, done_alone }: Pick<CloseReport, 'approvals' | 'done_alone'>) {
  const alone = Object.entries(done_alone).map(([action, count]) => `${action} (${plural(count, 'event')})`);
  return [
    ...(approvals === null ? [] : standing(approvals)),
    ...(alone.length === 0 ? [] : [`done alone, as no one else could approve: ${alone.join(', ')}`]),
  ];
}

/** The verifiers of packs print the same text for each close. */
function standing({ approvers, approvers_of_some, rules, approvers_before }: NonNullable<CloseReport['approvals']>) {
  const lines: string[] = [];
  if (approvers === 0 && approvers_of_some > 0) {
    lines.push('approvers of some partners only: no one can approve for other partners');
  } else if (approvers < 2) {
    lines.push('one person: actions are not approved by a second person');
  } else if (rules.length === 0) {
    lines.push(`no rules: ${approvers} people could approve, but no action requires it`);
  }
  if (approvers_before !== null && approvers_before > approvers) {
    const people = plural(approvers, 'person', 'people');
    lines.push(`${people} could approve everything, compared with ${approvers_before} at the previous close`);
  }
  return lines;
}

export function describeClose(report: CloseReport, width?: number) {
  const { sent, pending, held, failed, uncertain } = report.deliveries;
  const counted = (number: number, noun: string) => `${number} ${noun}${number === 1 ? '' : 's'}`;
  const parts = [
    [
      `${monthName(report.month)}, closed on ${report.issued_on}`,
      `  Documents   ${counted(report.invoices, 'invoice')}, ${counted(report.credit_notes, 'credit note')}, ${counted(report.statements, 'statement')}`,
      `  Rows        ${report.entries}, ${report.late_entries} of them late`,
      `  E-mails     ${sent} sent, ${pending} pending, ${held} held, ${failed} failed, ${uncertain} uncertain`,
      ...approvalsOf(report).flatMap((each) =>
        wrapped(each, 64).map((line, at) => `  ${at === 0 ? 'Approvals   ' : '            '}${line}`),
      ),
      ...(report.program === null ? [] : [`  Program     Reckoner ${report.program}`]),
      ...(report.schema === null ? [] : [`  Schema      ${report.schema}`]),
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
  const tax = beforeTax(report);
  if (tax !== '') parts.push(wrapped(tax, 78).join('\n'));
  parts.push(...changes(report, width));
  if (report.no_activity.length > 0)
    parts.push(
      listed(
        `No activity (${report.no_activity.length})`,
        report.no_activity.map(({ name }) => name),
      ),
    );
  if (report.late.length > 0) {
    parts.push(
      [
        'Late rows, billed this month',
        table(
          ['~partner', 'of', '>rows', '>invoiceAmount', ''],
          report.late.map((row) => [
            row.name,
            row.month,
            row.entries,
            groupThousands(row.invoice_amount),
            row.currency,
          ]),
          width,
        ),
      ].join('\n'),
    );
  }
  if (report.other_currencies.length > 0) {
    const lines = report.other_currencies.flatMap((row) => wrapped(printable(describeOtherCurrency(row)), 76, '  '));
    parts.push(["In a currency that is not the partner's own", ...lines].join('\n'));
  }
  if (report.differing_cuts.length > 0) {
    const lines = report.differing_cuts.flatMap((row) => wrapped(printable(describeDifferingCut(row)), 76, '  '));
    parts.push(["With a cut other than the policy's", ...lines].join('\n'));
  }
  if (report.accepted_doubts.length > 0) {
    const lines = report.accepted_doubts.flatMap((row) => wrapped(printable(describeDecision(row)), 76, '  '));
    parts.push(['In doubt and accepted', ...lines].join('\n'));
  }
  if (report.held.length > 0) {
    const lines = report.held.flatMap(({ number, name, status, reason }) =>
      wrapped(printable(`${number} of ${name}, ${status}${reason === '' ? '' : `: ${reason}`}`), 78).map(
        (line, index) => (index === 0 ? `  ${line}` : `    ${line}`),
      ),
    );
    parts.push(['Needs attention', ...lines].join('\n'));
  }
  return parts.join('\n\n');
}

/**
 * States that the amounts are before tax, and how much tax the documents add. The text is empty if no document is
 * taxed.
 */
export function beforeTax({ taxes }: Pick<CloseReport, 'taxes'>) {
  if (taxes === undefined) return '';
  const added = Object.entries(taxes)
    .filter(([currency, tax]) => !Amount.of(tax, currency).isZero())
    .map(([currency, tax]) => `${groupThousands(tax)} ${currency}`);
  if (added.length === 0) return "Amounts are before tax; the month's documents carry no tax.";
  return `Amounts are before tax. The documents of the month add tax: ${added.join(', ')}.`;
}

export function largestChanges(
  { partners }: CloseReport,
  currency: string,
): { shown: readonly PartnerChange[]; rest: number } {
  const own = partners.filter((row) => row.currency === currency);
  const shown = own.slice(0, LISTED);
  return { shown, rest: own.length - shown.length };
}

/**
 * Says why a partner's amount changed: `22 → 75 rows, average price 26.87 → 43.39 USD, policy Parking is new`. The text is
 * empty if the amount is the same.
 */
export function whyChanged(row: PartnerChange) {
  const { currency, change, last_average_price: lastPrice, average_price: price } = row;
  if (Amount.of(change, currency).isZero()) return '';
  const money = (amount: string) => groupThousands(Amount.of(amount, currency).toString());
  const moved = (last: string | number, now: string | number) => (last === now ? `${now}` : `${last} → ${now}`);
  const policies = (names: readonly string[], what: string) => names.map((name) => `policy ${name} ${what}`);
  return [
    `${moved(row.last_entries, row.entries)} rows`,
    ...(row.last_reversals + row.reversals === 0
      ? []
      : [`${moved(row.last_reversals, row.reversals)} reversals among them`]),
    ...(price === null || lastPrice === null
      ? []
      : [`average price ${moved(money(lastPrice), money(price))} ${currency}`]),
    ...(row.last_entries === 0 ? [] : policies(row.new_policies, 'is new')),
    ...(row.entries === 0 ? [] : policies(row.ended_policies, 'has no rows')),
  ].join(', ');
}

/** The changes that a text explains. */
const EXPLAINED = 5;

/** Why the first of these partners changed, a paragraph for each. */
export const reasonsOf = (partners: readonly PartnerChange[]) =>
  partners
    .filter((row) => whyChanged(row) !== '')
    .slice(0, EXPLAINED)
    .flatMap((row) => {
      const [first = '', ...more] = wrapped(printable(`${row.name}: ${whyChanged(row)}`), 74);
      return [`  ${first}`, ...more.map((line) => `    ${line}`)];
    });

function changes(report: CloseReport, width?: number) {
  const { partners, previous } = report;
  return [...new Set(partners.map(({ currency }) => currency))].map((currency) => {
    const { shown, rest } = largestChanges(report, currency);
    const rows = shown.map((row) => [
      row.name,
      row.documents.join(', '),
      groupThousands(row.invoice_amount),
      ...(previous === null ? [] : [groupThousands(row.change)]),
    ]);
    const headings = [
      `~${currency}`,
      '~document',
      '>this month',
      ...(previous === null ? [] : [`>against ${previous}`]),
    ];
    return [
      table(headings, rows, width) + (rest > 0 ? `\n… and ${rest} more with smaller changes.` : ''),
      ...(previous === null ? [] : reasonsOf(shown)),
    ].join('\n');
  });
}

function listed(title: string, names: readonly string[]) {
  return [title, ...wrapped(names.map(printable).join(', '), 76).map((line) => `  ${line}`)].join('\n');
}
