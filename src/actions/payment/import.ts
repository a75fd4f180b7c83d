import { ActionContext, choice, defineAction, Facts, FileInput, file, several, text } from '#actions/action';
import { contentBy } from '#actions/contents';
import { amountsIn } from '#actions/documents';
import { Block, Choice } from '#blocks';
import { knownBankMaps, triedBankMap } from '#config/bank-csv';
import { fieldProblems } from '#config/validation';
import { Transaction } from '#database/transaction';
import { refuseField } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { applyPayment } from '#payments/apply';
import { BANK_FORMATS } from '#payments/bank/read';
import { readBankFileAside } from '#payments/bank/read-aside';
import { placeOf } from '#payments/bank/statement';
import { BankImport, bankLineName, importBankFile } from '#payments/bank-import/import';
import { LineReport, LineReports } from '#payments/bank-import/report';
import { List } from '#reading/packed-list';
import { printable, wrapped } from '#text-table';
import { Amount, counted, groupThousands, plural } from '#values';
import { amountOf, smallDifferencesOf } from './describe.ts';

const FORMATS = BANK_FORMATS.map(({ name }) => name);

export const paymentImport = defineAction({
  name: 'payment.import',
  title: 'Import a bank file',
  command: {
    summary: 'Import a bank file, all or nothing, and match its lines',
    arguments: { file: '<file>' },
    dryRun: 'check and match everything, record nothing',
    help: `A file that was already imported changes nothing, and a line from an earlier
file is not recorded again. Certain matches are applied; others become
suggestions, which 'reckoner payment apply ID --invoice NUMBER' accepts.
Exit status 4: a line needs manual review, or a statement does not continue the
account's last one.`,
  },
  role: 'finance',
  input: {
    file: file('File', 'A file from the bank. All or nothing is imported.'),
    format: choice('Format', 'Default: detected.', FORMATS).optional(),
    map: text('Column map', 'For CSV: a map from the settings ("bank_csv"), or of a known bank such as "chase".', {
      value: 'name',
    }).optional(),
    columns: text(
      'Columns',
      'For CSV: a column map to try, or what differs from the map, such as ' +
        '"date=Posted; amount=Amount; date_format=MM/dd/yyyy; account=0012345".',
      { value: 'map' },
    ).optional(),
    open: several(
      text('Leave open', 'A line, such as "0012345 line 3", whose payment is recorded and not applied.', {
        value: 'line',
      }),
    ).optional(),
    accept: several(
      text('Accept', 'A suggestion to accept, such as "0012345 line 3: INV-2026-000012".', { value: 'suggestion' }),
    ).optional(),
  },
  subject: ({ file }) => file.name,
  read: (context, input) => readStatements(context, input),
  // Who accepts suggestions applies payments.
  rule: ({ settings: { approvals } }, { accept }) =>
    approvals['payment.import'] ?? (accept === undefined ? undefined : approvals['payment.apply']),
  async perform(tx, context, input) {
    const { open, accept = [] } = input;
    const report = await importBankFile(tx, context, await readStatements(context, input), open);
    return acceptSuggestions(tx, context, report, accept);
  },
  committed: () => failpoint('payments.committed'),
  async facts(_tx, _input, report) {
    const facts: Record<string, Facts[string]> = {};
    for (const line of report?.new_lines ?? []) {
      if (!isChange(line)) continue;
      facts[`line ${placeOf(line)} of ${line.booked_on}`] = {
        amount: Amount.of(line.amount, line.currency),
        is: line.outcome,
        for: whatFor({ ...line, payment_id: null }),
      };
    }
    return facts;
  },
  amounts: ({ after }) => amountsIn(after, Object.keys(after), 'amount'),
  adjusts: (tx, _seen, _input, { event_id }) => smallDifferencesOf(tx, event_id),
  async report({ input, result: report, preview: dryRun }) {
    const { new_lines, event_id: _, ...rest } = report;
    const lines = dryRun ? withoutNewIds(new_lines) : new_lines;
    const [needsReview, changes] = [hasAny(new_lines, (line) => line.needs_review), hasAny(new_lines, isChange)];
    // A dry run rolls back the exception's id.
    const breaks = dryRun ? rest.breaks.map((each) => ({ ...each, exception: null })) : rest.breaks;
    return {
      json: { ...rest, breaks, dry_run: dryRun, new_lines: lines },
      text: describeImport(report, dryRun),
      blocks: lines.length === 0 ? [] : [linesBlock(lines, input, dryRun)],
      button: changes || new_lines.length === 0 ? `Import ${plural(report.lines.new, 'line')}` : 'Import nothing',
      attention: needsReview || report.breaks.length > 0,
    };
  },
});

function hasAny(lines: LineReports, isSo: (line: LineReport) => boolean) {
  for (const line of lines) if (isSo(line)) return true;
  return false;
}

/** A line that is only shown changes nothing, unless its suggestion is accepted. */
const isChange = ({ outcome, applied }: LineReport) => outcome !== 'shown' || applied.length > 0;

/** `0012345 line 3: INV-2026-000012` */
const suggestionName = (line: LineReport, number: string) => `${bankLineName(line)}: ${number}`;

/** Applies the payments of this file to the invoices that a person accepted, each in the order given. */
async function acceptSuggestions(
  tx: Transaction,
  context: ActionContext,
  report: BankImport<LineReports>,
  accepted: readonly string[],
) {
  if (accepted.length === 0) return report;
  const left = new Set(accepted);
  // The parts of a batch have one payment, which is applied to the invoices of all parts at once.
  const numbers = new Map<number, string[]>();
  const lines = [...report.new_lines].map((line) => {
    const chosen = line.suggested.filter(({ number }) => left.has(suggestionName(line, number)));
    for (const { number } of chosen) left.delete(suggestionName(line, number));
    const { payment_id } = line;
    if (chosen.length === 0 || payment_id === null) return line;
    numbers.set(payment_id, [...(numbers.get(payment_id) ?? []), ...chosen.map(({ number }) => number)]);
    const suggested = line.suggested.filter((each) => !chosen.includes(each));
    const applied = [...line.applied, ...chosen.map((each) => ({ ...each, small_difference: null }))];
    return { ...line, applied, suggested, why: 'applied as accepted', needs_review: false };
  });
  const [unknown] = left;
  if (unknown !== undefined) throw refuseField('accept', unknown, 'suggests nothing for a line of this file');
  for (const [paymentId, each] of numbers) await applyPayment(tx, context, { paymentId, numbers: each });
  return { ...report, new_lines: lines };
}

const readStatements = ({ settings: { bank_csv } }: ActionContext, { file, format, map, columns }: ImportInput) =>
  contentBy(file, () => {
    if (columns === undefined) return readBankFileAside({ ...file, format, map }, bank_csv);
    const tried = triedBankMap(columns, { ...knownBankMaps(), ...bank_csv }[map ?? '']);
    if (!tried.success) {
      const [problem] = fieldProblems(tried.error);
      throw refuseField('columns', columns, `${problem?.path ?? ''} ${problem?.reason ?? ''}`.trim());
    }
    return readBankFileAside({ ...file, format, map: 'columns' }, { columns: tried.data });
  });

type ImportInput = Readonly<{
  file: FileInput;
  format?: string | undefined;
  map?: string | undefined;
  columns?: string | undefined;
  open?: readonly string[] | undefined;
  accept?: readonly string[] | undefined;
}>;

/** Leaves out payment ids that a dry run assigned, because they are rolled back. */
function withoutNewIds(lines: LineReports) {
  const own = new Set<number | null>();
  for (const line of lines) if (line.outcome === 'payment') own.add(line.payment_id);
  return lines.map((line) => ({
    ...line,
    payment_id: own.has(line.payment_id) ? null : line.payment_id,
    same_as: line.same_as.filter((id) => !own.has(id)),
  }));
}

const OUTCOMES: readonly (readonly [LineReport['outcome'], (count: number) => string])[] = [
  ['payment', (count) => plural(count, 'payment')],
  ['duplicate', (count) => `${counted(count)} already recorded`],
  ['payout', (count) => plural(count, 'payout')],
  ['return', (count) => plural(count, 'return')],
  ['refund', (count) => plural(count, 'refund')],
  ['booked', (count) => `${counted(count)} booked to bank charges`],
  ['ignored', (count) => `${counted(count)} ignored`],
  ['shown', (count) => `${counted(count)} shown and not recorded`],
];

const SHOWN_ONLY = {
  interim: 'This is an interim report: its entries are shown and never recorded. Import the statement of the day.',
  details:
    'This file has the details of entries that a statement books. It adds no payment: its suggestions apply the ' +
    'payments of these entries.',
} as const;

function describeImport(report: BankImport<unknown>, dryRun: boolean) {
  if (report.already_imported !== null) {
    return `${report.file} was already imported at ${report.already_imported}. Nothing to do.`;
  }
  const { lines, outcomes } = report;
  const charges = Object.entries(report.bank_charges).map(([currency, sum]) => `${groupThousands(sum)} ${currency}`);
  const pending = report.statements.reduce((sum, each) => sum + each.pending, 0);
  const counts = OUTCOMES.filter(([kind]) => outcomes[kind] > 0).map(([kind, describe]) => describe(outcomes[kind]));
  const only = new Set(report.statements.flatMap((each) => each.only ?? []));
  return [
    `${counted(lines.new)} of ${plural(lines.total, 'line')} ${dryRun ? 'would be ' : ''}recorded${counts.length > 0 ? `: ${counts.join(', ')}` : ''}.`,
    ...[...only].map((kind) => SHOWN_ONLY[kind]),
    ...report.statements.flatMap(({ remarks }) => remarks.flatMap((remark) => wrapped(printable(remark), 80))),
    ...(charges.length > 0 ? [`${charges.join(', ')} posted to bank charges.`] : []),
    ...report.breaks.map(({ reason }) => `${printable(reason)}.`),
    ...(lines.known > 0 ? [`${plural(lines.known, 'line was', 'lines were')} imported from an earlier file.`] : []),
    ...(pending > 0
      ? [
          `${plural(pending, 'entry is', 'entries are')} still pending at the bank and not recorded. ` +
            'A later file will have them as booked; import that file.',
        ]
      : []),
  ].join('\n');
}

/** A longer table could not be read. The lines that need review come first then. */
const MOST_LINES = 1000;

function linesBlock(all: List<LineReport>, { open = [], accept = [] }: ImportInput, dryRun: boolean): Block {
  const few = all.length <= MOST_LINES;
  const lines: LineReport[] = [];
  for (const review of few ? [undefined] : [true, false]) {
    for (const line of all) {
      if (lines.length === MOST_LINES) break;
      if (review === undefined || review === line.needs_review) lines.push(line);
    }
  }
  const choicesOf = (line: LineReport): Choice[] => {
    const name = bankLineName(line);
    const isOpen = open.includes(name);
    const accepted = accept.filter((each) => each.startsWith(`${name}: `));
    return [
      ...(isOpen || line.applied.length > accepted.length
        ? [{ field: 'open', value: name, label: 'Leave open', chosen: isOpen }]
        : []),
      ...(isOpen ? [] : [...accepted, ...line.suggested.map(({ number }) => suggestionName(line, number))])
        .slice(0, SUGGESTIONS)
        .map((value) => ({
          ...{ field: 'accept', value, label: `Apply to ${value.slice(name.length + 2)}` },
          chosen: accept.includes(value),
        })),
    ];
  };
  return {
    title: few ? 'Lines' : `${groupThousands(String(lines.length))} of ${groupThousands(String(all.length))} lines`,
    table: {
      headings: ['booked', '~payer', '>amount', 'is', '~for'],
      rows: lines.map((line) => [
        line.booked_on,
        line.payer ?? '',
        Amount.of(`${line.direction === 'debit' ? '-' : ''}${line.amount}`, line.currency),
        line.outcome === 'duplicate' ? 'known' : line.outcome,
        whatFor(line),
      ]),
      remarks: lines.map(remarkOn),
      ...(dryRun && { choices: lines.map(choicesOf) }),
    },
  };
}

/** The suggestions of a line that can be accepted before it is recorded. */
const SUGGESTIONS = 4;

const remarkOn = (line: LineReport) =>
  [
    ...(line.needs_review || line.remark || line.outcome === 'shown' ? [printable(line.why)] : []),
    ...line.applied.flatMap(({ number, small_difference }) =>
      small_difference === null
        ? []
        : [`${amountOf(line, small_difference)} of ${number} is missing and is posted to bank charges`],
    ),
  ].join('; ');

function whatFor(line: LineReport) {
  if (line.applied.length + line.credit.length > 0) {
    return [...new Set([...line.applied, ...line.credit].map((each) => each.number))].join(' ');
  }
  if (line.same_as.length > 0) return `= ${line.same_as[0]}?`;
  if (line.suggested.length > 0) return `${line.suggested[0]?.number}?`;
  return line.payment_id === null ? '' : `payment ${line.payment_id}`;
}
