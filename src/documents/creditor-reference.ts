/**
 * The creditor reference (ISO 11649) of a document: `RF`, two check digits, and the letters and digits of its number.
 * The check digits (ISO 7064, mod 97-10) reveal every wrong digit and every two swapped neighbors. Pure.
 */

/** The creditor reference of a number, without spaces. Undefined if the letters and digits do not fit. */
export function creditorReferenceOf(number: string) {
  const body = number.toUpperCase().replace(/[^A-Z0-9]/g, '');
  // A letter outside A to Z would be lost, so that the reference would not lead back to the number.
  if (body === '' || body.length > 21 || /[^ -~]/.test(number)) return undefined;
  return `RF${String(98 - remainder(`${body}RF00`)).padStart(2, '0')}${body}`;
}

/** `PAY`, the number of the first document in the database, and a bit for each later one. */
const JOINT = /^PAY([0-9A-Z]{5})((?:[0-9A-Z]{4}){0,3}[0-9A-Z])$/;
const BASE = 36;

/** How many later invoices of the partner a joint reference can tell apart: the bits of 13 characters. */
export const JOINT_LATER = 67;

/**
 * The creditor reference of several invoices of a partner in a currency. `first` is the first of them in the database,
 * and `later` has the places of the others after it, from 1. No invoice can come between two issued ones, so that the
 * reference always means the same. Undefined if they do not fit.
 */
export function jointReferenceOf(first: number, later: readonly number[]): string | undefined {
  const bits = later.reduce((sum, place) => sum | (1n << BigInt(place - 1)), 0n).toString(BASE);
  const start = first.toString(BASE).padStart(5, '0');
  if (start.length > 5 || later.some((place) => place > JOINT_LATER)) return undefined;
  // The last printed group is never full, so that no word after it can belong to the reference.
  return creditorReferenceOf(`PAY${start}${bits.padStart(bits.length + ((1 - bits.length) & 3), '0')}`);
}

/** Undefined if the body of a creditor reference is not that of several invoices. */
export function readJointBody(body: string): { first: number; later: number[] } | undefined {
  const [, start, bits] = JOINT.exec(body) ?? [];
  if (start === undefined || bits === undefined) return undefined;
  const mask = [...bits].reduce((sum, digit) => sum * BigInt(BASE) + BigInt(Number.parseInt(digit, BASE)), 0n);
  const later = [...mask.toString(2)].reverse().flatMap((bit, at) => (bit === '1' ? [at + 1] : []));
  return { first: Number.parseInt(start, BASE), later };
}

/** In groups of four, as ISO 11649 and ISO 13616 (IBAN) prescribe for print. */
export const inFours = (text: string) => text.replace(/.{4}(?=.)/g, '$& ');

/** The remainder by 97 of the number that the text is, where letters stand for 10 to 35. */
const remainder = (text: string) =>
  [...text].reduce((rest, character) => {
    const value = Number.parseInt(character, 36);
    return (rest * (value > 9 ? 100 : 10) + value) % 97;
  }, 0);
