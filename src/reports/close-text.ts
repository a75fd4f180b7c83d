/** The report of a close, for the command, the console and the e-mail to finance. */

import { Block, blocksText, Cell } from '#blocks';
import { describeDecision } from '#close/feeds';
import { describeOtherCurrency } from '#close/other-currencies';
import { describeDifferingCut } from '#ledger/quoted';
import { fitLines } from '#text-table';
import { Amount, counted, groupThousands, monthName, plural } from '#values';
import { LateRows, PartnerChange } from './close.sql.ts';
import { CloseReport } from './close.ts';

/** The partners that a text lists for each currency, the largest change first. */
export const LISTED = 20;

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

/**
 * What a close issued, compared with the month before. A text has the `most` largest changes of each currency. A user
 * who is limited to some partners sees no totals.
 */
export function closeBlocks(report: CloseReport, { most, isWhole = true }: { most?: number; isWhole?: boolean }) {
  const tax = isWhole ? beforeTax(report) : report.taxes === undefined ? '' : 'Amounts are before tax.';
  const sentences = (title: string, lines: readonly Cell[]): Block[] =>
    lines.length === 0 ? [] : [{ title, tone: 'warn', lines }];
  return [
    ...(isWhole ? totalsBlocks(report) : []),
    ...(tax === '' ? [] : [{ title: 'Tax', lines: [tax] }]),
    ...changesBlocks(report, most),
    ...sentences(
      `No activity (${report.no_activity.length})`,
      report.no_activity.length === 0 ? [] : [report.no_activity.map(linked)],
    ),
    ...lateBlocks(report.late),
    ...sentences("In a currency that is not the partner's own", report.other_currencies.map(describeOtherCurrency)),
    ...sentences("With a cut other than the policy's", report.differing_cuts.map(describeDifferingCut)),
    ...sentences('In doubt and accepted', report.accepted_doubts.map(describeDecision)),
    ...heldBlocks(report.held),
  ];
}

/** The report as plain text, with the largest changes. --json lists all partners. */
export const describeClose = (report: CloseReport, width?: number) =>
  fitLines(blocksText(closeBlocks(report, { most: LISTED }), width), width);

const linked = ({ partner_id, name }: { readonly partner_id: string; readonly name: string }) => ({
  ...{ text: name, page: `/console/partners/${encodeURIComponent(partner_id)}` },
});

function totalsBlocks(report: CloseReport): Block[] {
  const { sent, pending, held, failed, uncertain } = report.deliveries;
  const documents = [
    plural(report.invoices, 'invoice'),
    ...[plural(report.credit_notes, 'credit note'), plural(report.statements, 'statement')],
  ];
  const approvals = approvalsOf(report).join('; ');
  const totals = Object.entries(report.totals);
  return [
    {
      title: `${monthName(report.month)}, closed on ${report.issued_on}`,
      facts: [
        ['Documents', documents.join(', ')],
        ['Rows', `${report.entries}, ${report.late_entries} of them late`],
        ['E-mails', `${sent} sent, ${pending} pending, ${held} held, ${failed} failed, ${uncertain} uncertain`],
        ...(approvals === '' ? [] : [['Approvals', approvals] as const]),
        ...(report.program === null ? [] : [['Program', `Reckoner ${report.program}`] as const]),
        ...(report.schema === null ? [] : [['Schema', report.schema] as const]),
      ],
    },
    ...(totals.length === 0
      ? []
      : [
          {
            title: 'Totals',
            table: {
              headings: ['currency', '>sales', ">partners' cut", '>invoice amount'],
              rows: totals.map(([currency, { spotPrice, partnerCut, invoiceAmount }]) => [
                ...[currency, ...[spotPrice, partnerCut, invoiceAmount].map(groupThousands)],
              ]),
            },
          },
        ]),
  ];
}

/** What a month bills each partner, compared with the month before; of each currency, the `most` largest changes. */
export const changesBlocks = ({ partners, previous, month }: Compared, most?: number): Block[] =>
  [...new Set(partners.map(({ currency }) => currency))].map((currency) => {
    const own = partners.filter((row) => row.currency === currency);
    const shown = own.slice(0, most);
    const rest = own.length - shown.length;
    const isIssued = shown.some(({ documents }) => documents.length > 0);
    return {
      title: `Partners in ${currency}`,
      ...(rest > 0 && {
        lines: [
          {
            text: `The largest changes; ${counted(rest)} more are smaller.`,
            page: `/console/reports/close?month=${month}`,
          },
        ],
      }),
      table: {
        headings: [
          ...['~partner', ...(isIssued ? ['~document'] : []), '>this month'],
          ...(previous === null ? [] : [`>against ${previous}`]),
        ],
        rows: shown.map((row) => [
          linked(row),
          ...(isIssued ? [row.documents.map((text) => ({ text, page: `/console/invoices/${text}` }))] : []),
          ...[row.invoice_amount, ...(previous === null ? [] : [row.change])].map(groupThousands),
        ]),
        ...(previous !== null && {
          remarks: shown.map((row) => {
            const text = whyChanged(row);
            const page = `/console/rows?partner=${encodeURIComponent(row.partner_id)}&month=${month}`;
            return text && { text, page };
          }),
        }),
      },
    };
  });

type Compared = Pick<CloseReport, 'partners' | 'previous' | 'month'>;

/** The rows of closed months that a close bills. */
export const lateBlocks = (late: readonly LateRows[]): Block[] =>
  late.length === 0
    ? []
    : [
        {
          title: 'Late rows, billed now',
          table: {
            headings: ['~partner', 'of', '>rows', '>amount'],
            rows: late.map((row) => [
              ...[linked(row), monthName(row.month), row.entries, Amount.of(row.invoice_amount, row.currency)],
            ]),
          },
        },
      ];

const heldBlocks = (held: CloseReport['held']): Block[] =>
  held.length === 0
    ? []
    : [
        {
          title: 'Held or not sent',
          table: {
            headings: ['number', '~partner', 'status', '~reason'],
            rows: held.map((row) => [
              { text: row.number, page: `/console/invoices/${row.number}` },
              ...[linked(row), row.status, row.reason],
            ]),
          },
        },
      ];

/**
 * States that the amounts are before tax, and how much tax the documents add. The text is empty if no document is
 * taxed.
 */
function beforeTax({ taxes }: Pick<CloseReport, 'taxes'>) {
  if (taxes === undefined) return '';
  const added = Object.entries(taxes)
    .filter(([currency, tax]) => !Amount.of(tax, currency).isZero())
    .map(([currency, tax]) => `${groupThousands(tax)} ${currency}`);
  if (added.length === 0) return "Amounts are before tax; the month's documents carry no tax.";
  return `Amounts are before tax. The documents of the month add tax: ${added.join(', ')}.`;
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
    `${moved(row.last_entries, row.entries)} ${row.entries === 1 ? 'row' : 'rows'}`,
    ...(row.last_reversals + row.reversals === 0
      ? []
      : [`${moved(row.last_reversals, row.reversals)} ${row.reversals === 1 ? 'reversal' : 'reversals'} among them`]),
    ...(price === null || lastPrice === null
      ? []
      : [`average price ${moved(money(lastPrice), money(price))} ${currency}`]),
    ...(row.last_entries === 0 ? [] : policies(row.new_policies, 'is new')),
    ...(row.entries === 0 ? [] : policies(row.ended_policies, 'has no rows')),
  ].join(', ');
}
