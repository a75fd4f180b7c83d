/**
 * Whether two sightings are the same money. The same payment may come by webhook, by bank file and by hand; what they
 * have in common is a reference with a number in it, the amount, and for a document's number as reference the document.
 * Words alone ("wire transfer") come with any payment. What is less than that a person judges. Pure.
 */
import { type BankLine, reference, squeezed } from './bank/statement.ts';
import type { Candidate } from './queries.ts';
import { findReferences } from './reference.ts';

/** Ids of the processor: a payment intent, charge, ACH payment or checkout session. */
const PROCESSOR_ID = /\b(?:pi|ch|py|cs)_(?:test_|live_)?[A-Za-z0-9]{6,}\b/g;

export const processorIds = (texts: readonly string[]): string[] => [
  ...new Set(texts.flatMap((text) => text.match(PROCESSOR_ID) ?? [])),
];

/** Searched for, references shorter than this are found by chance. */
const SHORTEST = 4;
/** Inside a longer text only what is as long as this counts. */
const SHORTEST_INSIDE = 8;
/** A reference may come again with another payment after so many days, and a likeness further apart is no hint. */
export const DAYS = 30;
/** A document's number as reference comes again with every part that is paid of it. */
export const DAYS_OF_A_NUMBER = 7;

export function daysBetween(one: string, other: string): number {
  return Math.abs(Date.parse(one) - Date.parse(other)) / 86_400_000;
}

/** Everything that a line says it is known by. */
export const referencesOf = (line: BankLine): string[] => [
  ...(line.bank_reference === undefined ? [] : [line.bank_reference]),
  ...line.references.map((each) => each.text),
];

/** The reference that a line of the bank shares with a payment of the same amount; undefined: it is another payment. */
export function sharedReference(line: BankLine, candidate: Candidate): string | undefined {
  const texts = referencesOf(line);
  const days = daysBetween(line.booked_on, candidate.received_on);
  return candidate.references.find((known) => {
    if (isDocumentNumber(known)) {
      const numbers = findReferences(line.references).references.filter((each) => each.guess === undefined);
      return (
        days <= DAYS_OF_A_NUMBER &&
        candidate.documents.some((number) => squeezed(number) === squeezed(known)) &&
        numbers.some((each) => squeezed(each.number) === squeezed(known))
      );
    }
    return days <= DAYS && sameReference(known, texts);
  });
}

/** Whether a reference tells its payment from others: one without a digit comes with any. */
export const isTelling = (text: string): boolean => /\d/.test(text) && reference(text) !== undefined;

/** Whether a telling reference stands in one of these texts, whole. */
export function sameReference(known: string, texts: readonly string[]): boolean {
  const wanted = squeezed(known);
  if (wanted.length < SHORTEST || !isTelling(known)) return false;
  return texts.some((text) => {
    const found = squeezed(text);
    return found === wanted || (wanted.length >= SHORTEST_INSIDE && found.includes(wanted));
  });
}

export const isDocumentNumber = (text: string): boolean =>
  findReferences([{ field: 'reference', text }]).references.some((each) => squeezed(each.number) === squeezed(text));
