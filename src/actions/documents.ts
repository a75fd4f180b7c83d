import { Adjustment } from '#approvals/amounts-before';
import { Transaction } from '#database/transaction';
import { DocumentJson, documentJson } from '#documents/document';
import { DocumentFilter, DocumentRow, readDocuments, readIdsOf } from '#documents/documents.sql';
import { documentUnknown } from '#documents/unknown';
import { Amount, sumsOf } from '#money';
import { NOBODY } from '#people/roles';
import { minuteOf } from '#text';
import { ActionContext, AfterContext, Facts, Report } from './action.ts';

export async function documentNumbered(
  tx: Transaction,
  number: string,
  filter: Pick<DocumentFilter, 'withLogos'> = {},
): Promise<DocumentRow> {
  const [row] = await readDocuments(tx, { ...filter, number });
  if (row === undefined) throw await documentUnknown(tx, number);
  return row;
}

export const documentsNumbered = async (tx: Transaction, numbers: readonly string[]): Promise<DocumentRow[]> =>
  numbers.length === 0 ? [] : readDocuments(tx, { ids: await readIdsOf(tx, { numbers }) });

/** Returns no real partner for an unknown document; the action then refuses the document. */
export async function partnersOfDocuments(tx: Transaction, numbers: readonly string[]): Promise<string[]> {
  const found = await documentsNumbered(tx, numbers);
  const known = new Set(found.map(({ number }) => number));
  const partners = found.map(({ partner_id }) => partner_id);
  return [...new Set([...partners, ...numbers.filter((each) => !known.has(each)).map(() => NOBODY)])];
}

export async function documentFacts(tx: Transaction, numbers: readonly string[]): Promise<Facts> {
  return Object.fromEntries((await documentsNumbered(tx, numbers)).map((row) => [row.number, factsOf(row)]));
}

export const OF_DOCUMENT = {
  subject: ({ number }: { readonly number: string }) => number,
  partners: (tx: Transaction, { number }: { readonly number: string }) => partnersOfDocuments(tx, [number]),
  facts: (tx: Transaction, { number }: { readonly number: string }) => documentFacts(tx, [number]),
};

/** Leaves out the replacement's number and the e-mail's reason, which differ in each preview. */
export function factsOf(row: DocumentRow): Facts[string] {
  const of = (text: string) => Amount.of(text, row.currency);
  return {
    status: row.status,
    'due on': row.due_on,
    amount: of(row.gross),
    ...(row.taxes.length === 0 ? {} : { 'before tax': of(row.invoice_amount) }),
    'amount due': of(row.amount_due),
    credited: of(row.credited),
    'written off': of(row.written_off),
    paid: of(row.amount_paid),
    balance: of(row.balance),
    'on hold': row.held_at === null ? 'no' : 'yes',
    'e-mail': row.email_status,
  };
}

/** Returns the sums of fields over several things, one sum for each currency. */
export const amountsIn = (facts: Facts, things: readonly string[], ...fields: readonly string[]) =>
  sizesOf(
    things
      .flatMap((thing) => fields.map((field) => facts[thing]?.[field]))
      .filter((value): value is Amount => value instanceof Amount),
  );

/**
 * Returns one sum for each currency. Absolute values are added, so that outgoing money cannot keep the sum under an
 * approval threshold.
 */
export const sizesOf = (amounts: readonly Amount[]) =>
  sumsOf(amounts.map((amount) => (amount.isNegative() ? amount.negated() : amount)));

/** Returns amounts that are adjusted for the partner of a document. */
export async function adjustmentsOf(
  tx: Transaction,
  number: string,
  amounts: readonly Amount[],
): Promise<Adjustment[]> {
  const [partner = NOBODY] = await partnersOfDocuments(tx, [number]);
  return amounts.map((amount) => ({ partner, amount }));
}

/**
 * Delivers the documents with these numbers. The modules for rendering and mail take 0.25 seconds to load, so they are
 * loaded on demand.
 */
export async function deliver({ reporter, ...context }: AfterContext, numbers: readonly string[]): Promise<void> {
  const { deliverNumbers } = await import('#month-end/month-end');
  await deliverNumbers(context, reporter, numbers);
}

/** Syncs the payment link, which must not collect more than the current balance. */
export async function followBalance({ environment, settings, database }: ActionContext, number: string): Promise<void> {
  const { linkProvider } = await import('#delivery/payment-link');
  const { syncPaymentLinks } = await import('#delivery/printed-link');
  const ids = await database.reading((tx) => readIdsOf(tx, { numbers: [number] }));
  await syncPaymentLinks({ environment, database, links: linkProvider(settings, environment) }, ids);
}

/** Reports the document as it now is, with what `describe` says of it. */
export async function reportDocument(
  tx: Transaction,
  number: string,
  describe: (document: DocumentRow) => Omit<Report, 'json'>,
): Promise<Report<DocumentJson>> {
  const document = await documentNumbered(tx, number);
  return { json: documentJson(document), ...describe(document) };
}

export function isUnsent(document: DocumentRow) {
  const email: DocumentJson['email'] = documentJson(document).email;
  return email !== null && email.status !== 'sent' && email.status !== 'portal';
}

export function emailText(row: DocumentRow) {
  const { email_status: status, email_reason: reason, email_to: to, sent_at: sentAt } = row;
  if (status === null) return 'none';
  if (status === 'portal') return "not needed: the document was delivered by the partner's portal";
  if (status === 'sent') return `sent to ${(to ?? []).join(', ')} at ${minuteOf(sentAt as string)}`;
  return reason === null ? status : `${status}: ${reason}`;
}
