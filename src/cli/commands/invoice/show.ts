import { disputeJson, disputeText } from '#actions/dispute';
import { documentNumbered, emailText } from '#actions/documents';
import { amount, CommandContext, Definition, EXIT, money, printable, reading, table, wrapped } from '#cli/command';
import { OpenDispute, readOpenDisputes } from '#documents/disputes.sql';
import { documentJson } from '#documents/document';
import { DocumentRow } from '#documents/documents.sql';
import { afterwords, HistoryLine, readHistory } from '#documents/history';
import { documentTitle, rowKindName } from '#documents/present';
import { lineTaxText, taxSteps } from '#documents/present-tax';
import { settledWithoutCash } from '#documents/settled';

export const define: Definition = (invoice, action) => {
  invoice
    .command('show <number>')
    .description('Show a document with its lines and its history')
    .action(action(reading(invoiceShow)));
};

async function invoiceShow({ database, output }: CommandContext, number: string): Promise<number> {
  const [row, history, dispute] = await database.reading(async (tx) => {
    const document = await documentNumbered(tx, number);
    const [disputed = null] = await readOpenDisputes(tx, { number });
    return [document, await readHistory(tx, document.document_id), disputed] as const;
  });
  output.print(
    { ...documentJson(row), ...(dispute === null ? {} : { dispute: disputeJson(dispute) }), story: history },
    () => `${described(row, dispute)}\n\n${historyText(history)}`,
  );
  return EXIT.done;
}

/** The original amount of an item that an opening carried over. */
const carriedOver = ({ carried_over_on: day, original_amount, currency }: DocumentRow): [string, string][] =>
  day === null
    ? []
    : [
        ['carried over as of', day],
        ['issued over', money(original_amount ?? '0', currency)],
      ];

function described(row: DocumentRow, dispute: OpenDispute | null) {
  const steps = taxSteps(row);
  const isTaxed = steps.length > 0;
  const facts: [string, string][] = [
    ['partner', `${row.partner_name} (${row.partner_id})`],
    ['month', row.month],
    ['issued on', row.issued_on],
    ['due on', row.due_on ?? 'none'],
    ...carriedOver(row),
    ['status', statusText(row)],
    ...(isTaxed
      ? steps.map(({ label, amount: step }): [string, string] => [label, money(step.toString(), row.currency)])
      : ([['amount', money(row.invoice_amount, row.currency)]] satisfies [string, string][])),
    ['credit applied', money(row.credit_applied, row.currency)],
    ['amount due', money(row.amount_due, row.currency)],
    ...settledWithoutCash(row).map(({ label, amount: settled }): [string, string] => [
      label,
      money(settled.toString(), row.currency),
    ]),
    ['paid', money(row.amount_paid, row.currency)],
    ['balance', money(row.balance, row.currency)],
    ...(dispute === null ? [] : ([['in dispute', disputeText(dispute)]] as [string, string][])),
    ['payment link', row.payment_link ?? 'none'],
    [
      'PDF',
      row.purpose === 'opening'
        ? 'none: the previous system issued it'
        : row.pdf_sha256 === null
          ? 'not rendered yet'
          : `${row.pdf_bytes} bytes, sha256 ${row.pdf_sha256.slice(0, 16)}…`,
    ],
    ['e-mail', emailText(row)],
  ];
  const width = Math.max(17, ...facts.map(([label]) => label.length + 1));
  const lines = row.lines.map((line) => [
    line.policy_name,
    rowKindName(line.kind),
    line.month,
    line.count,
    amount(line.spot_price, row.currency),
    amount(line.partner_cut, row.currency),
    amount(line.invoice_amount, row.currency),
    ...(isTaxed ? [lineTaxText(line, row)] : []),
  ]);
  return [
    `${documentTitle(row.document)} ${row.number}`,
    ...facts.map(([label, value]) => `  ${printable(label).padEnd(width)} ${printable(value)}`),
    '',
    table(
      ['~policy', 'rows', 'month', '>count', '>sales', '>partner cut', '>amount', ...(isTaxed ? ['>tax'] : [])],
      lines,
    ),
  ].join('\n');
}

function statusText({ status, voided_on, replaced_by, held_at, replaces, credits }: DocumentRow) {
  const remarks = [
    ...(voided_on === null
      ? []
      : [`on ${voided_on}, ${replaced_by === null ? 'not replaced' : `replaced by ${replaced_by}`}`]),
    ...(replaces === null ? [] : [`replaces ${replaces}`]),
    ...(credits === null ? [] : [`against ${credits}`]),
    ...(held_at === null ? [] : ['on hold']),
  ];
  return [status, ...remarks].join(', ');
}

function historyText(history: readonly HistoryLine[]) {
  const lines = history.flatMap(({ at, says, technical, by, ...more }) => {
    const who =
      by === null ? '' : ` (${by.claimed_by === null ? '' : `${by.claimed_by}, as `}${by.os_user} on ${by.host})`;
    return wrapped(printable(says + afterwords(more) + (technical === null ? '' : `; ${technical}`) + who), 57).map(
      (line, index) => `  ${index === 0 ? at.slice(0, 19) : ' '.repeat(19)}  ${line}`,
    );
  });
  return ['History', ...lines].join('\n');
}
