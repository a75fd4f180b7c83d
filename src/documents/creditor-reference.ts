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

/** In groups of four, as ISO 11649 and ISO 13616 (IBAN) prescribe for print. */
export const inFours = (text: string) => text.replace(/.{4}(?=.)/g, '$& ');

/** The remainder by 97 of the number that the text is, where letters stand for 10 to 35. */
const remainder = (text: string) =>
  [...text].reduce((rest, character) => {
    const value = Number.parseInt(character, 36);
    return (rest * (value > 9 ? 100 : 10) + value) % 97;
  }, 0);
