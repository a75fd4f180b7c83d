/** `reckoner invoice rerun|resend|void|credit|write-off|hold|release`: each act, then delivery of what it touched alone. */
import { findOtherLinks, settleLinks } from '../../delivery/document.ts';
import { linkProvider } from '../../delivery/link.ts';
import { readIdsOf } from '../../delivery/queries.ts';
import { resendDocument } from '../../delivery/resend.ts';
import { creditInvoice, writeOffInvoice } from '../../documents/credit.ts';
import { type DocumentJson, documentJson } from '../../documents/document.ts';
import { holdDocument, releaseDocument } from '../../documents/hold.ts';
import { type DocumentRow, readDocuments } from '../../documents/queries.ts';
import { type Rerun, type RerunOptions, rerunDocument, rerunMonth } from '../../documents/rerun.ts';
import { voidDocument } from '../../documents/void.ts';
import { EXIT, refuse } from '../../errors/refusals.ts';
import { failpoint } from '../../failpoint.ts';
import type { Month } from '../../month.ts';
import { acting, type Context } from '../context.ts';
import { deliverWithProgress } from '../deliveries.ts';
import { type Output, wrapped } from '../output.ts';
import { documentNumbered, emailStory, money } from './invoice.ts';

export interface DeliverOption {
  readonly deliver: boolean;
}

export interface RerunArguments extends DeliverOption {
  readonly month?: Month;
  readonly newTerms?: boolean;
}

export async function invoiceRerun(
  output: Output,
  number: string | undefined,
  { month, newTerms = false, deliver }: RerunArguments,
): Promise<number> {
  if ((number === undefined) === (month === undefined)) {
    throw refuse('usage', { reason: "'invoice rerun' takes either a number or --month" });
  }
  return acting(output, async (context) => {
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
        ? `${one} is unchanged: issued today it would say the same.`
        : `${one} is void, and ${replacement.replaced_by} replaces it (changed: ${replacement.why.join(', ')}).\n` +
          `E-mail: ${emailStory(document)}`,
    );
    return replacement && deliver ? exitOf(document) : EXIT.done;
  });
}

function describeRerun({ month, unchanged, replaced, issued, refused }: Rerun): string {
  return [
    `${month} run again: ${unchanged} unchanged, ${replaced.length} replaced, ${issued.length} issued for void ones, ` +
      `${refused.length} refused.`,
    ...replaced.map((each) => `  ${each.number} -> ${each.replaced_by}: changed ${each.why.join(', ')}`),
    ...issued.map((each) => `  ${each.number} for the void ${each.replaces}`),
    ...refused.map((each) => `  ${each.message}`),
  ].join('\n');
}

async function countUndelivered({ database }: Context, month: Month, numbers: readonly string[]): Promise<number> {
  const documents = await database.reading((tx) => readDocuments(tx, { months: [month] }));
  return documents.filter((each) => numbers.includes(each.number) && exitOf(each) !== EXIT.done).length;
}

export async function invoiceResend(
  output: Output,
  number: string,
  options: { to?: string } & DeliverOption,
): Promise<number> {
  return acting(output, async (context) => {
    await context.database.transaction((tx) => resendDocument(tx, context, { number, to: options.to }));
    if (options.deliver) await deliverWithProgress(context, output, [number]);
    const document = await read(context, number);
    output.print(documentJson(document), () => `${number}: ${emailStory(document)}`);
    return options.deliver ? exitOf(document) : EXIT.done;
  });
}

export async function invoiceVoid(output: Output, number: string, { reason }: { reason: string }): Promise<number> {
  return acting(output, async (context) => {
    await context.database.transaction((tx) => voidDocument(tx, context, { number, reason }));
    failpoint('void.committed');
    await deliverWithProgress(context, output, [number]);
    const document = await read(context, number);
    output.print(documentJson(document), () =>
      document.purpose === 'month'
        ? `${number} is void. Its rows are unbilled until 'reckoner invoice rerun --month ${document.month}' issues ` +
          'their document again.'
        : `${number} is void.`,
    );
    return EXIT.done;
  });
}

export async function invoiceCredit(
  output: Output,
  number: string,
  { amount, reason, again, deliver }: { amount: string; reason: string; again?: boolean } & DeliverOption,
): Promise<number> {
  return acting(output, async (context) => {
    const request = { number, amount, reason, again };
    const note = await context.database.transaction((tx) => creditInvoice(tx, context, request));
    failpoint('credit.committed');
    await followBalance(context, number);
    if (deliver) await deliverWithProgress(context, output, [note]);
    const issued = await read(context, note);
    const invoice = await read(context, number);
    output.print(documentJson(issued), () =>
      [
        `${note} credits ${number} with ${money(issued.invoice_amount, issued.currency)}.`,
        ...wrapped(
          `Of it ${money(issued.credited, issued.currency)} is used for ${number}, which leaves ` +
            `${money(invoice.balance, invoice.currency)} to pay; ${money(issued.balance, issued.currency)} is open credit.`,
          80,
          '  ',
        ),
        ...wrapped(`E-mail: ${emailStory(issued)}`, 80, '  '),
      ].join('\n'),
    );
    return deliver ? exitOf(issued) : EXIT.done;
  });
}

export async function invoiceWriteOff(output: Output, number: string, { reason }: { reason: string }): Promise<number> {
  return acting(output, async (context) => {
    await context.database.transaction((tx) => writeOffInvoice(tx, context, { number, reason }));
    await followBalance(context, number);
    const document = await read(context, number);
    output.print(
      documentJson(document),
      () => `Wrote off ${money(document.written_off, document.currency)} of ${number}. Nothing is open on it now.`,
    );
    return EXIT.done;
  });
}

export async function invoiceHold(
  output: Output,
  number: string,
  { reason = '' }: { reason?: string },
): Promise<number> {
  return acting(output, async (context) => {
    await context.database.transaction((tx) => holdDocument(tx, context, { number, reason }));
    const document = await read(context, number);
    output.print(
      documentJson(document),
      () =>
        `${number} is on hold: nothing more of it goes out until 'reckoner invoice release ${number}'.\n` +
        `E-mail: ${emailStory(document)}`,
    );
    return EXIT.done;
  });
}

export async function invoiceRelease(output: Output, number: string, { deliver }: DeliverOption): Promise<number> {
  return acting(output, async (context) => {
    await context.database.transaction((tx) => releaseDocument(tx, context, number));
    if (deliver) await deliverWithProgress(context, output, [number]);
    const document = await read(context, number);
    output.print(documentJson(document), () => `${number} is no longer on hold.\nE-mail: ${emailStory(document)}`);
    return deliver ? exitOf(document) : EXIT.done;
  });
}

/** The link behind the page must not take more than is owed by now. */
async function followBalance({ environment, settings, database }: Context, number: string): Promise<void> {
  const ids = await database.reading((tx) => readIdsOf(tx, [number]));
  await settleLinks({ environment, database, links: linkProvider(settings, environment) }, ids);
}

const read = ({ database }: Context, number: string): Promise<DocumentRow> =>
  database.reading((tx) => documentNumbered(tx, number));

/** Whether the document that an act leaves behind reached its partner. */
function exitOf(document: DocumentRow): number {
  const email: DocumentJson['email'] = documentJson(document).email;
  return email === null || email.status === 'sent' ? EXIT.done : EXIT.attention;
}
