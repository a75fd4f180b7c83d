/** Decides which payment link a document prints, and syncs the link at the processor. */
import { Transaction } from '#database/transaction';
import { DocumentRow, readDocuments } from '#documents/documents.sql';
import { Amount } from '#money';
import { LinkToKeep, readPaymentLinks } from './documents.sql.ts';
import { HoldReason, NotYet } from './hold-reason.ts';
import { LinkContext, syncPaymentLink } from './links/sync.ts';
import { hasLinkWork, LinkProvider, newToken } from './payment-link.ts';

/**
 * How long a document waits at most for the URL of the processor that it prints. After this time, the document is sent
 * with bank instructions alone.
 */
const LONGEST_WAIT_FOR_LINK_SECONDS = 15 * 60;

export type PrintContext = LinkContext &
  Readonly<{
    links: LinkProvider;
  }>;

export const isPayable = (document: DocumentRow) =>
  document.document === 'invoice' && Amount.of(document.amount_due, document.currency).isPositive();

/** The reason why documents cannot have the link that the settings want; undefined if none is known here. */
export function whyNoLink(links: LinkProvider) {
  const printed = links.printed(newToken());
  return printed.kind === 'missing' ? printed.what : undefined;
}

/** The link to record before rendering; undefined if the document prints none. */
export async function linkToPrint(context: PrintContext, document: DocumentRow): Promise<LinkToKeep | undefined> {
  const { links, environment } = context;
  const token = newToken();
  const printed = links.printed(token);
  if (printed.kind === 'nothing') return undefined;
  if (printed.kind === 'missing') throw new HoldReason(printed.what);
  const url = printed.kind === 'url' ? printed.url : await linkAtProcessor(context, document);
  if (url === null) return undefined;
  const now = environment.now().toISO();
  return { documentId: document.document_id, provider: links.printedBy, token, url, now };
}

/** The URL to print; null if the document cannot have a link. Waits briefly if the processor is down. */
async function linkAtProcessor(context: LinkContext, document: DocumentRow) {
  const link = await syncPaymentLink(context, document.document_id);
  if (link.status === 'in_sync') return link.url;
  if (link.kind === 'unavailable' && link.waitedSeconds < LONGEST_WAIT_FOR_LINK_SECONDS) {
    throw new NotYet(`waits for its payment link: ${link.reason}`);
  }
  return null;
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
  const other = rendered.filter((each) => !links.matches(kept.get(each.document_id) ?? null));
  return new Set(other.map((each) => each.document_id));
}

/** Syncs the links with the documents' balances, without e-mails. Records the links that must wait. */
export async function syncPaymentLinks(context: LinkContext, documentIds: readonly number[]) {
  if (!hasLinkWork(context.links)) return;
  for (const id of documentIds) await syncPaymentLink(context, id);
}
