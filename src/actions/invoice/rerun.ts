import {
  defineAction,
  documentNumber,
  Facts,
  flag,
  month,
  oneOrMore,
  onLatestDate,
  partner,
  Report,
} from '#actions/action';
import {
  amountsIn,
  deliver,
  documentsNumbered,
  emailText,
  factsOf,
  isUnsent,
  partnersOfDocuments,
} from '#actions/documents';
import { Block, versionsOf } from '#blocks';
import { Transaction } from '#database/transaction';
import { linkProvider } from '#delivery/payment-link';
import { findOtherLinks } from '#delivery/printed-link';
import { readContents } from '#documents/content.sql';
import { documentJson } from '#documents/document';
import { DocumentRow, readDocuments } from '#documents/documents.sql';
import { faceOf } from '#documents/face';
import { Rerun, RerunOptions, rerunDocument, rerunDocuments, rerunMonth } from '#documents/rerun';
import { refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { fieldName } from '#field-names';
import { Amount, inShort, moneyText, plural } from '#values';

export const invoiceRerun = defineAction({
  name: 'invoice.rerun',
  command: {
    summary: 'Recompute a document and replace it if it would differ, or reissue a void document',
    arguments: { number: '[number...]' },
    dryRun: 'show the outcome, write nothing',
    deliver: true,
    help: `With numbers: replaces each document that would differ now, and issues a
replacement of each that is void and has none. No other document is touched.
With --month: issues a replacement for each document that is void and has none,
and lists the documents that would differ. --changed replaces those too.
A replacement keeps the due date of the document that it replaces, unless
--new-terms is given.`,
  },
  title: 'Reissue documents',
  role: 'finance',
  voids: true,
  input: {
    number: oneOrMore(
      documentNumber('Replace this document if it would differ now, or reissue it if it is void.'),
    ).optional(),
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
  subject: ({ number, month }) => month ?? inShort(numbersOf(number)),
  async partners(tx, { number, month, partnerId }) {
    if (month === undefined) return partnersOfDocuments(tx, numbersOf(number));
    return partnerId === undefined ? 'all' : [partnerId];
  },
  perform(tx, context, { number, month, changed = false, newTerms = false, partnerId, onLatestDate }) {
    const links = linkProvider(context.settings, context.environment);
    const issuing = { ...context, onLatestDate };
    const options: RerunOptions = { newTerms, otherLinks: (tx, ids) => findOtherLinks(tx, links, ids) };
    if (month !== undefined) return rerunMonth(tx, issuing, month, { ...options, changed, partnerId });
    return typeof number === 'string'
      ? rerunDocument(tx, issuing, number, options)
      : rerunDocuments(tx, issuing, numbersOf(number), options);
  },
  committed: () => failpoint('rerun.committed'),
  after: (context, { result }) => deliver(context, touchedBy(result)),
  async facts(tx, { number, month, partnerId }, rerun): Promise<Facts> {
    const made = new Set(rerun === undefined ? [] : issuedBy(rerun));
    const touched =
      month === undefined
        ? await documentsNumbered(tx, [...numbersOf(number), ...made])
        : await readDocuments(tx, { months: [month], partnerId });
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
    if (typeof number === 'string' && !preview) return reportOne(number, outcome, delivered);
    const unsent = delivered && issuedBy(rerun).some((each) => isUnsent(documentOf(outcome, each)));
    return {
      json: outcomeJson(outcome, preview),
      text: describeRerun(outcome),
      blocks: blocksOf(outcome, preview),
      button: buttonOf(rerun),
      remedies: rerun.refused.flatMap(({ remedies }) => remedies),
      attention: rerun.refused.length > 0 || unsent,
    };
  },
});

const numbersOf = (number: string | readonly string[] = []) => [...new Set([number].flat())];

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
  const { unchanged, differing, refused } = rerun;
  const others = [...differing, ...refused].map(({ number }) => number);
  const documents = await documentsNumbered(tx, [...touchedBy(rerun), ...unchanged, ...others]);
  return { rerun, documents: new Map(documents.map((each) => [each.number, each])) };
}

const documentOf = ({ documents }: Outcome, number: string) => documents.get(number) as DocumentRow;

function outcomeJson(outcome: Outcome, dryRun: boolean): unknown {
  const { rerun, documents } = outcome;
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
    refused: rerun.refused.map((each) => ({ ...each, ...(documents.has(each.number) && amounts(each.number)) })),
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

function buttonOf({ issued, replaced }: Rerun) {
  const [one] = [...replaced, ...issued];
  const count = issued.length + replaced.length;
  if (one === undefined) return 'Replace nothing';
  if (count > 1) return `Replace ${plural(count, 'document')}`;
  return 'replaces' in one ? `Issue the replacement of ${one.replaces}` : `Void and replace ${one.number}`;
}

/** Replacements whose versions are drawn side by side. */
const DRAWN = 5;

function blocksOf(outcome: Outcome, dryRun: boolean): Block[] {
  const { unchanged, replaced, issued, differing, refused } = outcome.rerun;
  const row = (what: string, number: string, remark: string) => {
    const document = outcome.documents.get(number);
    const due = document && Amount.of(document.amount_due, document.currency);
    return [what, number, document?.partner_name ?? '', due ?? null, remark];
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
    ...refused.map((each) => row('left out', each.number, each.message)),
    ...(dryRun ? unchanged.map((number) => row('unchanged', number, '')) : []),
  ];
  const pairs = [
    ...replaced.map((each) => [each.number, each.replaced_by] as const),
    ...issued.map((each) => [each.replaces, each.number] as const),
  ];
  return [
    ...pairs.slice(0, dryRun ? DRAWN : 0).map(([before, after]) => ({
      title: `${before} and its replacement`,
      lines: replaced.flatMap((each) => (each.number === before ? [`${each.why.join(', ')} changed`] : [])),
      versions: versionsOf([before, after], faceOf(documentOf(outcome, before)), faceOf(documentOf(outcome, after))),
    })),
    ...(rows.length === 0
      ? []
      : [{ title: 'Documents', table: { headings: ['', 'document', '~partner', '>amount due', '~why'], rows } }]),
  ];
}

function describeRerun({ rerun: { month, unchanged, replaced, issued, differing, refused } }: Outcome) {
  const counts = (
    [
      [replaced, 'replaced'],
      [issued, 'issued for void documents'],
      [unchanged, 'unchanged'],
      [differing, 'would differ'],
      [refused, 'left out'],
    ] as const
  ).flatMap(([documents, what]) => (documents.length === 0 ? [] : [`${documents.length} ${what}`]));
  const left = differing.some((each) => each.refused === null)
    ? [`Documents that differ were not changed. ${fieldName('changed')} replaces them.`]
    : [];
  return [
    `${month === null ? '' : `${month}: `}${counts.length === 0 ? 'no documents' : counts.join(', ')}.`,
    ...refused.map((each) => each.message),
    ...differing.flatMap((each) => each.refused ?? []),
    ...left,
  ].join('\n');
}
