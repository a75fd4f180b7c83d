import { defineAction, Facts, flag, month, onLatestDate, partner, Report, text } from '#actions/action';
import { amountsIn, deliver, emailText, factsOf, isUnsent, partnersOfDocuments } from '#actions/documents';
import { Transaction } from '#database/transaction';
import { linkProvider } from '#delivery/payment-link';
import { findOtherLinks } from '#delivery/printed-link';
import { readContents } from '#documents/content.sql';
import { documentJson } from '#documents/document';
import { DocumentRow, readDocuments } from '#documents/documents.sql';
import { Rerun, RerunOptions, rerunDocument, rerunMonth } from '#documents/rerun';
import { refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { fieldName } from '#field-names';
import { table } from '#text-table';
import { Month, moneyText } from '#values';

export const invoiceRerun = defineAction({
  name: 'invoice.rerun',
  command: {
    summary: 'Recompute a document and replace it if it would differ, or reissue a void document',
    arguments: { number: '[number]' },
    dryRun: 'show the outcome, write nothing',
    deliver: true,
    help: `With a number: replaces the document if it would differ now, or issues a
replacement if it is void and has none. No other document is touched.
With --month: issues a replacement for each document that is void and has none,
and lists the documents that would differ. --changed replaces those too.
A replacement keeps the due date of the document that it replaces, unless
--new-terms is given.`,
  },
  title: 'Recompute documents and replace those that would differ',
  role: 'finance',
  input: {
    number: text('Document', 'Replace this document if it would differ now, or reissue it if it is void.').optional(),
    month: month(
      'Month',
      'Give no document number. Each document of this month that is void and has no replacement is reissued.',
    ).optional(),
    partnerId: partner('With a month: only documents of this partner.').optional(),
    changed: flag('Replace what differs', 'With a month: also replace documents that would differ.').optional(),
    newTerms: flag(
      'New terms',
      'Use the current payment terms, counted from today, instead of the old due date.',
    ).optional(),
    onLatestDate: onLatestDate(),
  },
  check({ number, month, changed = false, partnerId }) {
    if ((number === undefined) === (month === undefined)) {
      throw refuse('usage', { reason: `give either a document number or ${fieldName('month')}` });
    }
    if (number !== undefined && (changed || partnerId !== undefined)) {
      throw refuse('usage', {
        reason:
          `${fieldName('changed')} and ${fieldName('partnerId')} require ${fieldName('month')}, not a document ` +
          'number',
      });
    }
  },
  subject: ({ number, month }) => number ?? (month as Month),
  async partners(tx, { number, partnerId }) {
    if (number !== undefined) return partnersOfDocuments(tx, [number]);
    return partnerId === undefined ? 'all' : [partnerId];
  },
  perform(tx, context, { number, month, changed = false, newTerms = false, partnerId, onLatestDate }) {
    const links = linkProvider(context.settings, context.environment);
    const issuing = { ...context, onLatestDate };
    const options: RerunOptions = { newTerms, otherLinks: (tx, ids) => findOtherLinks(tx, links, ids) };
    return month === undefined
      ? rerunDocument(tx, issuing, number as string, options)
      : rerunMonth(tx, issuing, month, { ...options, changed, partnerId });
  },
  committed: () => failpoint('rerun.committed'),
  after: (context, { result }) => deliver(context, touchedBy(result)),
  async facts(tx, { number, month, partnerId }, rerun): Promise<Facts> {
    const rows =
      month === undefined && rerun === undefined
        ? await readDocuments(tx, { number: number as string })
        : await readDocuments(tx, { months: [month ?? (rerun as Rerun).month], partnerId });
    const made = new Set(rerun === undefined ? [] : issuedBy(rerun));
    const touched = rows.filter((row) => month !== undefined || row.number === number || made.has(row.number));
    const contents = new Map(
      (await readContents(tx, { numbers: [...made] })).map((each) => [each.number, each.sha256]),
    );
    return Object.fromEntries(
      touched.map((row) => {
        const content = contents.get(row.number);
        if (content === undefined) return [row.number, factsOf(row)];
        // Limits an approval to the names and addresses that were shown.
        return [replacementOf(row.replaces as string), { ...factsOf(row), content: `sha256 ${content.slice(0, 16)}` }];
      }),
    );
  },
  amounts: ({ before, after }, _input, { replaced, issued }) =>
    amountsIn(
      { ...before, ...after },
      [...replaced.map((each) => each.number), ...issued.map((each) => replacementOf(each.replaces))],
      'amount',
    ),
  async report({ input: { number }, result: rerun, delivered, preview }, _context, tx) {
    const outcome = await readOutcome(tx, rerun);
    if (number !== undefined && !preview) return reportOne(number, outcome, delivered);
    const unsent = delivered && issuedBy(rerun).some((each) => isUnsent(documentOf(outcome, each)));
    return {
      json: outcomeJson(outcome, preview),
      text: describeRerun(outcome, preview),
      remedies: rerun.refused.flatMap(({ remedies }) => remedies),
      attention: rerun.refused.length > 0 || unsent,
    };
  },
});

/** A placeholder for the number, which is assigned at issue. */
const replacementOf = (number: string) => `the replacement of ${number}`;

type Outcome = Readonly<{
  rerun: Rerun;
  documents: ReadonlyMap<string, DocumentRow>;
}>;

const issuedBy = ({ replaced, issued }: Rerun) => [
  ...replaced.map((each) => each.replaced_by),
  ...issued.map((each) => each.number),
];
const touchedBy = (rerun: Rerun) => [
  ...rerun.replaced.map((each) => each.number),
  ...rerun.issued.map((each) => each.replaces),
  ...issuedBy(rerun),
];

async function readOutcome(tx: Transaction, rerun: Rerun): Promise<Outcome> {
  const documents = await readDocuments(tx, { months: [rerun.month] });
  return { rerun, documents: new Map(documents.map((each) => [each.number, each])) };
}

const documentOf = ({ documents }: Outcome, number: string) => documents.get(number) as DocumentRow;

function outcomeJson(outcome: Outcome, dryRun: boolean): unknown {
  const { rerun } = outcome;
  const amounts = (number: string, before?: string) => {
    const { partner_id, currency, amount_due, due_on } = documentJson(documentOf(outcome, number));
    const was = before === undefined ? {} : { amount_due_before: documentJson(documentOf(outcome, before)).amount_due };
    return { partner_id, currency, amount_due, ...was, due_on };
  };
  return {
    month: rerun.month,
    dry_run: dryRun,
    unchanged: rerun.unchanged,
    replaced: rerun.replaced.map((each) => ({ ...each, ...amounts(each.replaced_by, each.number) })),
    issued: rerun.issued.map((each) => ({ ...each, ...amounts(each.number, each.replaces) })),
    differing: rerun.differing.map((each) => ({ ...each, ...amounts(each.number) })),
    refused: rerun.refused.map((each) => ({ ...each, ...amounts(each.number) })),
    ...(dryRun && { documents: issuedBy(rerun).map((number) => documentJson(documentOf(outcome, number))) }),
  };
}

function reportOne(number: string, outcome: Outcome, delivered: boolean): Report {
  const [replaced] = outcome.rerun.replaced;
  const [issued] = outcome.rerun.issued;
  const document = documentOf(outcome, replaced?.replaced_by ?? issued?.number ?? number);
  const status = replaced ? 'replaced' : issued ? 'issued' : 'unchanged';
  const due = `${moneyText(document.amount_due, document.currency)}${document.due_on === null ? '' : `, due on ${document.due_on}`}`;
  const email = `E-mail: ${emailText(document)}`;
  return {
    json: { status, document: documentJson(document) },
    text: replaced
      ? `${number} is void and replaced by ${replaced.replaced_by} (changed: ${replaced.why.join(', ')}).\n${due}\n${email}`
      : issued
        ? `${issued.number} replaces the void ${issued.replaces}. No other document was touched.\n${due}\n${email}`
        : `${number} is unchanged: a new document would be identical.`,
    attention: status !== 'unchanged' && delivered && isUnsent(document),
  };
}

function describeRerun(outcome: Outcome, dryRun: boolean) {
  const { month, unchanged, replaced, issued, differing, refused } = outcome.rerun;
  const row = (what: string, number: string, remark: string) => {
    const document = documentOf(outcome, number);
    return [what, number, document.partner_name, moneyText(document.amount_due, document.currency), remark];
  };
  const rows = [
    ...issued.map((each) => row('issue', each.number, `replaces the void ${each.replaces}`)),
    ...replaced.map((each) => row('void', each.number, `${each.why.join(', ')} changed`)),
    ...replaced.map((each) => row('issue', each.replaced_by, `replaces ${each.number}`)),
    ...differing.map((each) =>
      row(
        'differs',
        each.number,
        `${each.why.join(', ')} changed${each.refused === null ? '' : '; cannot be replaced'}`,
      ),
    ),
    ...refused.map((each) => row('refused', each.number, each.code)),
    ...(dryRun ? unchanged.map((number) => row('unchanged', number, '')) : []),
  ];
  const left = differing.some((each) => each.refused === null)
    ? [`Documents that differ were not changed. ${fieldName('changed')} replaces them.`]
    : [];
  return [
    `${month} recomputed: ${unchanged.length} unchanged, ${replaced.length} replaced, ${issued.length} issued for void ` +
      `documents, ${differing.length} differing, ${refused.length} refused.${dryRun ? ' Dry run: nothing was written.' : ''}`,
    ...(rows.length === 0 ? [] : ['', table(['', 'document', 'partner', '>amount due', ''], rows)]),
    ...(refused.length + left.length > 0 ? [''] : []),
    ...refused.map((each) => each.message),
    ...differing.flatMap((each) => each.refused ?? []),
    ...left,
  ].join('\n');
}
