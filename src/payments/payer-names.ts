/** Recognizing a partner's name in what the bank wrote. Pure. */

/** Legal forms of companies, and words too common to tell two payers apart. */
const COMMON = new Set(
  'INC INCORPORATED LLC LTD LIMITED CORP CORPORATION CO COMPANY GMBH AG KG SE SA SAS SARL BV NV PLC PTY OY AB AS SRL SPA LP LLP THE AND OF FOR DE LA DES DER DIE UND'.split(
    ' ',
  ),
);

/** Words in capitals and without accents. An umlaut may be written with two letters: Müller, Mueller. */
export const words = (text: string): string[] =>
  text
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toUpperCase()
    .replace(/([AOU])E/g, '$1')
    .split(/[^A-Z0-9\p{L}]+/u)
    .filter((word) => word !== '');

export const distinctiveWords = (name: string): string[] => {
  const own = words(name).filter((word) => !COMMON.has(word));
  return own.length > 0 ? own : words(name);
};

/**
 * Whether a partner's name stands in a text: its first two distinctive words in a row, or its only one. The second may be
 * truncated, because ACH has sixteen characters for a company's name.
 */
export function namePlausible(name: string, written: string): boolean {
  const own = distinctiveWords(name);
  const text = words(written).filter((word) => !COMMON.has(word));
  const first = own[0];
  if (first === undefined) return false;
  const needed = own.slice(0, 2);
  if (needed.length === 1 && first.length < 4) return false;
  return text.some((_, at) =>
    needed.every((word, offset) => {
      const found = text[at + offset];
      if (found === undefined) return false;
      const isLast = offset === needed.length - 1 && offset > 0;
      return found === word || (isLast && found.length >= 3 && word.startsWith(found));
    }),
  );
}
