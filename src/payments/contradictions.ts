/** Reasons not to apply a payment automatically even though a rule matches. Pure. */
import { Amount } from '#money';
import { Match, NamedDocument, Payable, Receipt } from './evidence.ts';
import { OpenItems } from './open-items.ts';
import { FoundReference, PartialReference, ShortReference } from './reference.ts';

export type FoundNumbers = Readonly<{
  /** All named documents, in any currency, including guesses. */
  named: readonly NamedDocument[];
  /** The named documents in the payment's currency, without guesses. */
  certain: readonly NamedDocument[];
  /** The numbers without guesses that no document has. */
  unknown: readonly FoundReference[];
  partial: readonly PartialReference[];
  short: readonly ShortReference[];
}>;

type Contradiction = Readonly<{
  why: string;
  /** Whether only the documents are in doubt, not the payer. */
  payerIsCertain: boolean;
}>;

export function contradictionOf(
  receipt: Receipt,
  { partner_id, applied, credit = [] }: Match,
  found: FoundNumbers,
  items: OpenItems,
): Contradiction | undefined {
  const payer = partner_id as string;
  const byNumber = found.certain.length > 0;
  const documents = [...new Set([...found.certain, ...applied].map(({ document }) => document))];
  const other = anotherNamed(receipt, { payer, byNumber, documents }, items);
  if (other !== undefined) return { why: other, payerIsCertain: false };
  if (!byNumber && isUnderOtherName(receipt, payer, items)) {
    const why = `the payer's name is ${receipt.payer_name?.slice(0, 60)}, not ${items.nameOf(payer)}`;
    return { why, payerIsCertain: false };
  }
  if (applied.length === 0) return undefined;
  const foreign = found.named.find(
    ({ reference, document }) => reference.guess === undefined && !items.paysFor(payer, document.partner_id),
  );
  if (foreign !== undefined) {
    const { number, partner_id: of } = foreign.document;
    return { why: `${number} of ${of} is named, and ${payer} does not pay for ${of}`, payerIsCertain: true };
  }
  const why =
    moreNamed(receipt, { payer, documents }, found, items) ??
    exactlyAnother(receipt, { payer, documents, credit }, items);
  return why === undefined ? undefined : { why, payerIsCertain: true };
}

type Rule = Readonly<{
  payer: string;
  byNumber: boolean;
  documents: readonly Payable[];
}>;

/** The text names a partner that is not related to the documents of the rule. */
function anotherNamed(receipt: Receipt, { payer, byNumber, documents }: Rule, items: OpenItems) {
  if (receipt.payer !== undefined) return undefined;
  const belongs = (id: string) =>
    documents.some((each) => items.paysFor(id, each.partner_id)) || (byNumber && items.paysFor(payer, id));
  // The words of an incomplete name may mean something else, as in NEW YORK.
  const other = items.namesIn(receipt).find(({ ids, fit }) => fit !== 'incomplete' && ![...ids].some(belongs));
  return other && `the text names ${[...other.ids].sort().slice(0, 3).join(' or ')}, not ${payer}`;
}

/** Whether the names in a receipt belong only to partners unrelated to the account's partner. */
export const isOfAnother = (receipt: Receipt, known: string, items: OpenItems) =>
  isUnderOtherName(receipt, known, items) ||
  (receipt.payer === undefined &&
    items.namesIn(receipt).some(({ ids }) => ![...ids].some((id) => items.areRelated(known, id))));

/** Whether the payer name from the bank differs from the names of the known partner, its parents and its children. */
const isUnderOtherName = ({ payer, payer_name }: Receipt, known: string, items: OpenItems) =>
  payer === undefined &&
  payer_name !== undefined &&
  !items
    .namesIn({ payer_name, text: '' })
    .some(({ ids, fit }) => fit !== 'longer' && [...ids].some((id) => items.areRelated(known, id)));

/** The remittance also names open invoices of the payer by an uncertain number: short, misspelled or cut off. */
function moreNamed(
  { amount }: Receipt,
  { payer, documents }: Pick<Rule, 'payer' | 'documents'>,
  { named, certain, partial, short }: FoundNumbers,
  items: OpenItems,
) {
  if (certain.length === 0) return undefined;
  const numbers = new Set(documents.map(({ number }) => number));
  const isAnother = ({ number, status, partner_id }: Payable) =>
    !numbers.has(number) && status === 'open' && items.paysFor(payer, partner_id);
  const shortened = short.find(({ sequence }) => items.withSequence(sequence).some(isAnother));
  if (shortened !== undefined) return `${shortened.sequence} may be the number of another invoice that it pays`;
  if (balanceOf(documents, amount.currency).equals(amount)) return undefined;
  const guessed = named.find(({ reference, document }) => reference.guess !== undefined && isAnother(document));
  const written = guessed?.reference.found ?? partial[0]?.found;
  return written === undefined ? undefined : `${written} may be the number of another invoice that it pays`;
}

/** The amount differs from the balance of the named documents, but equals the balance of another open invoice. */
function exactlyAnother(
  { amount }: Receipt,
  { payer, documents, credit }: Pick<Rule, 'payer' | 'documents'> & { readonly credit: readonly unknown[] },
  items: OpenItems,
) {
  if (credit.length > 0 || balanceOf(documents, amount.currency).equals(amount)) return undefined;
  const open = documents.filter(({ status }) => status === 'open');
  const equal = items.withBalance(amount).filter(({ number }) => !open.some((each) => each.number === number));
  const [first] = [...equal.filter((each) => items.paysFor(payer, each.partner_id)), ...equal];
  if (first === undefined) return undefined;
  const of = items.paysFor(payer, first.partner_id) ? '' : ` of ${first.partner_id}`;
  const numbers = open.map(({ number }) => number).join(' and ');
  return `${numbers} ${open.length > 1 ? 'are' : 'is'} named, but the amount is exactly that of ${first.number}${of}`;
}

export const balanceOf = (documents: readonly Payable[], currency: string) =>
  documents
    .filter(({ status }) => status === 'open')
    .reduce((sum, { balance }) => sum.plus(balance), Amount.zero(currency));
