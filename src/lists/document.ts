/** A document, as the terminal and the console show it. */
import { disputeText } from '#actions/dispute';
import { emailText } from '#actions/documents';
import { Block, Cell } from '#blocks';
import { OpenDispute } from '#documents/disputes.sql';
import { DocumentRow, LineRow } from '#documents/documents.sql';
import { rowKindName } from '#documents/present';
import { lineTaxText, taxSteps } from '#documents/present-tax';
import { settledWithoutCash } from '#documents/settled';
import { Amount, groupThousands } from '#money';

type Fact = readonly [label: string, value: Cell];

/** From the amount of the rows to the balance. */
export function amountFacts(row: DocumentRow): Fact[] {
  const money = (text: string) => Amount.of(text, row.currency);
  const steps = taxSteps(row).map(({ label, amount }): Fact => [label, amount]);
  return [
    ...(steps.length > 0 ? steps : [['amount', money(row.invoice_amount)] as const]),
    ['credit applied', money(row.credit_applied)],
    ['amount due', money(row.amount_due)],
    ...settledWithoutCash(row).map(({ label, amount }): Fact => [label, amount]),
    ['paid', money(row.amount_paid)],
    ['balance', money(row.balance)],
  ];
}

export function documentFacts(row: DocumentRow, dispute: OpenDispute | null): Fact[] {
  const link = (number: string | null) => number && { text: number, page: `/console/invoices/${number}` };
  const facts: Fact[] = [
    [
      'partner',
      {
        text: `${row.partner_name} (${row.partner_id})`,
        page: `/console/partners/${encodeURIComponent(row.partner_id)}`,
      },
    ],
    ...([
      ['month', row.month],
      ['issued on', row.issued_on],
      ['due on', row.due_on ?? 'none'],
    ] as const),
    ['carried over as of', row.carried_over_on],
    ['issued over', row.original_amount && Amount.of(row.original_amount, row.currency)],
    ['purchase order', row.purchase_order],
    ['status', row.voided_on === null ? row.status : `${row.status}, on ${row.voided_on}`],
    ...([
      ['replaces', link(row.replaces)],
      ['replaced by', link(row.replaced_by)],
      ['against', link(row.credits)],
    ] as const),
    ['void', row.void_reason],
    ['on hold', row.held_at && (row.hold_reason || `since ${row.held_at.slice(0, 10)}`)],
    ['in dispute', dispute && disputeText(dispute)],
    ['payment link', row.payment_link],
    ['PDF', pdfText(row)],
    ['e-mail', emailText(row)],
  ];
  return facts.filter(([, value]) => value !== null && value !== '');
}

const pdfText = ({ purpose, pdf_sha256, pdf_bytes }: DocumentRow) =>
  purpose === 'opening'
    ? 'none: the previous system issued it'
    : pdf_sha256 === null
      ? 'not rendered yet'
      : `${pdf_bytes} bytes, sha256 ${pdf_sha256.slice(0, 16)}…`;

export function linesBlocks(row: DocumentRow): Block[] {
  const isTaxed = row.taxes.length > 0;
  const amount = (text: string) => groupThousands(Amount.of(text, row.currency).toString());
  const policy = ({ policy_id, policy_name, kind, month }: LineRow) => {
    const late = month === row.month ? {} : { late: 'yes' };
    const asked = new URLSearchParams({ document: row.number, policy: policy_id, kind, ...late });
    return row.purpose === 'month' ? { text: policy_name, page: `/console/rows?${asked}` } : policy_name;
  };
  const headings = ['~policy', 'rows', 'month', '>count', '>sales', '>partner cut', '>amount'];
  return row.lines.length === 0
    ? []
    : [
        {
          title: `Lines in ${row.currency}`,
          table: {
            headings: [...headings, ...(isTaxed ? ['>tax'] : [])],
            rows: row.lines.map((line) => [
              ...[policy(line), rowKindName(line.kind), line.month, line.count],
              ...[line.spot_price, line.partner_cut, line.invoice_amount].map(amount),
              ...(isTaxed ? [lineTaxText(line, row)] : []),
            ]),
          },
        },
      ];
}
