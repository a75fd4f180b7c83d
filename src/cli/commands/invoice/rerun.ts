/** `reckoner invoice rerun`. */

import { emailText } from '../../../acts/documents.ts';
import type { Transaction } from '../../../database/transaction.ts';
import { linkProvider } from '../../../delivery/link.ts';
import { findOtherLinks } from '../../../delivery/printed-link.ts';
import { documentJson } from '../../../documents/document.ts';
import { type DocumentRow, readDocuments } from '../../../documents/queries.ts';
import { type Rerun, type RerunOptions, rerunDocument, rerunMonth } from '../../../documents/rerun.ts';
import { EXIT, refuse } from '../../../errors/refusals.ts';
import { failpoint } from '../../../failpoint.ts';
import type { Month } from '../../../month.ts';
import { monthArgument } from '../../arguments.ts';
import { acting, type Definition, type DeliverOption, type Done, NO_DELIVER, ON_LATEST_DATE } from '../../define.ts';
import { deliverWithProgress } from '../../deliveries.ts';
import { money, type Output, table } from '../../output.ts';
import { exitOf } from './after.ts';

const HELP = `
With a number: replaces the document if it would differ now. Of a void document
without a replacement it issues that. No other document is touched.
With --month: issues what is missing after voids, and lists the documents that
would differ; --changed replaces these too. A replacement keeps the due date of
the document that it replaces, unless --new-terms.`;

export const define: Definition = (invoice, act) => {
  invoice
    .command('rerun [number]')
    .description('Recompute a document and replace it if it would differ, or reissue a void one')
    .option('--month <month>', 'issue the missing documents of a month', monthArgument('--month'))
    .option('--partner <id>', 'with --month: only documents of this partner')
    .option('--changed', 'with --month: also replace documents that would differ')
    .option('--new-terms', "use today's payment terms, counted from today, instead of the old due date")
    .option('--dry-run', 'show the outcome, write nothing')
    .option(...ON_LATEST_DATE)
    .option(...NO_DELIVER)
    .addHelpText('after', HELP)
    .action(act(invoiceRerun));
};

export interface RerunArguments extends DeliverOption {
  readonly month?: Month;
  readonly partner?: string;
  readonly changed?: boolean;
  readonly newTerms?: boolean;
  readonly dryRun?: boolean;
}

/** A rerun with the documents of its month, or of its partner in it, as they are afterwards. */
interface Outcome {
  readonly rerun: Rerun;
  readonly documents: ReadonlyMap<string, DocumentRow>;
}

function invoiceRerun(output: Output, number: string | undefined, given: RerunArguments): Done {
  const { month, partner, changed = false, newTerms = false, dryRun = false, deliver } = given;
  if ((number === undefined) === (month === undefined)) {
    throw refuse('usage', { reason: "'invoice rerun' takes either a document number or --month" });
  }
  if (number !== undefined && (changed || partner !== undefined)) {
    throw refuse('usage', { reason: '--changed and --partner go with --month, not with a document number' });
  }
  return acting(async (context) => {
    const { database, environment, settings } = context;
    const links = linkProvider(settings, environment);
    const options: RerunOptions = { newTerms, otherLinks: (tx, ids) => findOtherLinks(tx, links, ids) };
    const run = (tx: Transaction) =>
      month === undefined
        ? rerunDocument(tx, context, number as string, options)
        : rerunMonth(tx, context, month, { ...options, changed, partnerId: partner });
    if (dryRun) {
      const outcome = await database.preview(async (tx) => readOutcome(tx, await run(tx)));
      output.print(outcomeJson(outcome, dryRun), () => describeRerun(outcome, dryRun));
      return outcome.rerun.refused.length > 0 ? EXIT.attention : EXIT.done;
    }
    const rerun = await database.transaction(run);
    failpoint('rerun.committed');
    if (deliver) await deliverWithProgress(context, output, touchedBy(rerun));
    const outcome = await database.reading((tx) => readOutcome(tx, rerun));
    if (number !== undefined) return printOne(output, number, outcome, deliver);
    output.print(outcomeJson(outcome, dryRun), () => describeRerun(outcome, dryRun));
    const undelivered = deliver && issuedBy(rerun).some((each) => exitOf(documentOf(outcome, each)) !== EXIT.done);
    return rerun.refused.length > 0 || undelivered ? EXIT.attention : EXIT.done;
  })(output);
}

const issuedBy = ({ replaced, issued }: Rerun): string[] => [
  ...replaced.map((each) => each.replaced_by),
  ...issued.map((each) => each.number),
];
const touchedBy = (rerun: Rerun): string[] => [
  ...rerun.replaced.map((each) => each.number),
  ...rerun.issued.map((each) => each.replaces),
  ...issuedBy(rerun),
];

async function readOutcome(tx: Transaction, rerun: Rerun): Promise<Outcome> {
  const documents = await readDocuments(tx, { months: [rerun.month] });
  return { rerun, documents: new Map(documents.map((each) => [each.number, each])) };
}

const documentOf = ({ documents }: Outcome, number: string): DocumentRow => documents.get(number) as DocumentRow;

/** Every entry with its partner and amounts; a dry run adds the documents that it would issue. */
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

function printOne(output: Output, number: string, outcome: Outcome, deliver: boolean): number {
  const [replaced] = outcome.rerun.replaced;
  const [issued] = outcome.rerun.issued;
  const document = documentOf(outcome, replaced?.replaced_by ?? issued?.number ?? number);
  const status = replaced ? 'replaced' : issued ? 'issued' : 'unchanged';
  const due = `${money(document.amount_due, document.currency)}${document.due_on === null ? '' : `, due on ${document.due_on}`}`;
  output.print({ status, document: documentJson(document) }, () => {
    const email = `E-mail: ${emailText(document)}`;
    if (replaced) {
      return `${number} is void and replaced by ${replaced.replaced_by} (changed: ${replaced.why.join(', ')}).\n${due}\n${email}`;
    }
    if (issued)
      return `${issued.number} replaces the void ${issued.replaces}. No other document was touched.\n${due}\n${email}`;
    return `${number} is unchanged: a new document would be the same.`;
  });
  return status !== 'unchanged' && deliver ? exitOf(document) : EXIT.done;
}

function describeRerun(outcome: Outcome, dryRun: boolean): string {
  const { month, unchanged, replaced, issued, differing, refused } = outcome.rerun;
  const row = (what: string, number: string, remark: string) => {
    const document = documentOf(outcome, number);
    return [what, number, document.partner_name, money(document.amount_due, document.currency), remark];
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
    ? [`Documents that differ are left as they are. '--changed' replaces them.`]
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
