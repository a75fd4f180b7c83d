/** `reckoner invoice rerun`. */
import { linkProvider } from '../../../delivery/link.ts';
import { findOtherLinks } from '../../../delivery/printed-link.ts';
import { documentJson } from '../../../documents/document.ts';
import { readDocuments } from '../../../documents/queries.ts';
import { type Rerun, type RerunOptions, rerunDocument, rerunMonth } from '../../../documents/rerun.ts';
import { EXIT, refuse } from '../../../errors/refusals.ts';
import { failpoint } from '../../../failpoint.ts';
import type { Month } from '../../../month.ts';
import { monthArgument } from '../../arguments.ts';
import type { Context } from '../../context.ts';
import { acting, type Definition, type DeliverOption, type Done, NO_DELIVER } from '../../define.ts';
import { deliverWithProgress } from '../../deliveries.ts';
import type { Output } from '../../output.ts';
import { exitOf, read } from './after.ts';
import { emailText } from './show.ts';

export const define: Definition = (invoice, act) => {
  invoice
    .command('rerun [number]')
    .description('Recompute a document; if it would differ, void it and issue a replacement')
    .option(
      '--month <month>',
      'recompute all documents of the month and replace void ones that have no replacement',
      monthArgument('--month'),
    )
    .option('--new-terms', "use today's payment terms, counted from today, instead of the old due date")
    .option(...NO_DELIVER)
    .action(act(invoiceRerun));
};

export interface RerunArguments extends DeliverOption {
  readonly month?: Month;
  readonly newTerms?: boolean;
}

function invoiceRerun(
  output: Output,
  number: string | undefined,
  { month, newTerms = false, deliver }: RerunArguments,
): Done {
  if ((number === undefined) === (month === undefined)) {
    throw refuse('usage', { reason: "'invoice rerun' takes either a document number or --month" });
  }
  return acting(async (context) => {
    const { database, environment, settings } = context;
    const links = linkProvider(settings, environment);
    const options: RerunOptions = { newTerms, otherLinks: (tx, ids) => findOtherLinks(tx, links, ids) };
    if (month !== undefined) {
      const rerun = await database.transaction((tx) => rerunMonth(tx, context, month, options));
      failpoint('rerun.committed');
      const issued = [...rerun.replaced.map((each) => each.replaced_by), ...rerun.issued.map((each) => each.number)];
      const voided = [...rerun.replaced.map((each) => each.number), ...rerun.issued.map((each) => each.replaces)];
      if (deliver) await deliverWithProgress(context, output, [...voided, ...issued]);
      output.print(rerun, () => describeRerun(rerun));
      const undelivered = deliver ? await countUndelivered(context, month, issued) : 0;
      return rerun.refused.length + undelivered > 0 ? EXIT.attention : EXIT.done;
    }
    const one = number as string;
    const { replaced } = await database.transaction((tx) => rerunDocument(tx, context, one, options));
    failpoint('rerun.committed');
    const [replacement] = replaced;
    if (deliver && replacement) await deliverWithProgress(context, output, [one, replacement.replaced_by]);
    const document = await read(context, replacement?.replaced_by ?? one);
    output.print({ status: replacement ? 'replaced' : 'unchanged', document: documentJson(document) }, () =>
      replacement === undefined
        ? `${one} is unchanged: a new document would be the same.`
        : `${one} is void and replaced by ${replacement.replaced_by} (changed: ${replacement.why.join(', ')}).\n` +
          `E-mail: ${emailText(document)}`,
    );
    return replacement && deliver ? exitOf(document) : EXIT.done;
  })(output);
}

function describeRerun({ month, unchanged, replaced, issued, refused }: Rerun): string {
  return [
    `${month} recomputed: ${unchanged} unchanged, ${replaced.length} replaced, ${issued.length} issued for void documents, ` +
      `${refused.length} refused.`,
    ...replaced.map((each) => `  ${each.number} -> ${each.replaced_by}: ${each.why.join(', ')} changed`),
    ...issued.map((each) => `  ${each.number} replaces the void ${each.replaces}`),
    ...refused.map((each) => `  ${each.message}`),
  ].join('\n');
}

async function countUndelivered({ database }: Context, month: Month, numbers: readonly string[]): Promise<number> {
  const documents = await database.reading((tx) => readDocuments(tx, { months: [month] }));
  return documents.filter((each) => numbers.includes(each.number) && exitOf(each) !== EXIT.done).length;
}
