/** Decides which payment link a document prints, and syncs the link at the processor. */
import { Environment } from '#config/environment';
import { Transaction } from '#database/transaction';
import { DocumentRow, readDocuments } from '#documents/documents.sql';
import { Amount } from '#money';
import { LinkToKeep, readPaymentLinks } from './documents.sql.ts';
import { HoldReason } from './hold-reason.ts';
import { LinkContext, syncPaymentLink } from './links/sync.ts';
import { hasLinkWork, LinkProvider, newToken } from './payment-link.ts';

export type PrintContext = Readonly<{
  environment: Environment;
  links: LinkProvider;
}>;

export const isPayable = (document: DocumentRow) =>
  document.document === 'invoice' && Amount.of(document.amount_due, document.currency).isPositive();

/** The link to record before rendering; undefined if the document prints none. */
export function linkToPrint({ links, environment }: PrintContext, document: DocumentRow): LinkToKeep | undefined {
  if (links.problem !== undefined) throw new HoldReason(links.problem);
  const token = newToken();
  const url = links.printed(token);
  return url === undefined
    ? undefined
    : { documentId: document.document_id, token, url, now: environment.now().toISO() };
}

/** The documents whose PDF shows a different link from today's. */
export async function findOtherLinks(
  tx: Transaction,
  links: LinkProvider,
  documentIds: readonly number[],
): Promise<ReadonlySet<number>> {
  const kept = new Map((await readPaymentLinks(tx, { documentIds })).map((each) => [each.document_id, each]));
  const rendered = (await readDocuments(tx, { ids: documentIds })).filter(
    (each) => each.pdf_sha256 !== null && isPayable(each),
  );
  const other = rendered.filter(({ document_id: id }) => {
    const link = kept.get(id);
    return links.printed(link?.token ?? '') !== link?.url;
  });
  return new Set(other.map((each) => each.document_id));
}

/** Syncs the links with the documents' balances, without e-mails. Records the links that must wait. */
export async function syncPaymentLinks(context: LinkContext, documentIds: readonly number[]) {
  if (!hasLinkWork(context.links)) return;
  for (const id of documentIds) await syncPaymentLink(context, id);
}
