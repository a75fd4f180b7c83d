/** Recognizing a partner's name in what the bank wrote. Pure. */

/** Legal forms of companies, and words too common to tell two payers apart. */
const COMMON = new Set(
  'INC INCORPORATED LLC LTD LIMITED CORP CORPORATION CO COMPANY GMBH AG KG SE SA SAS SARL BV NV PLC PTY OY AB AS SRL SPA LP LLP THE AND OF FOR DE LA DES DER DIE UND'.split(
    ' ',
  ),
);

/** Words in capitals and without accents. An umlaut may be written with two letters: Müller, Mueller. */
const words = (text: string): string[] =>
  text
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toUpperCase()
    .replace(/([AOU])E/g, '$1')
    .split(/[^A-Z0-9\p{L}]+/u)
    .filter((word) => word !== '');

const distinctiveWords = (name: string): string[] => {
  const own = words(name).filter((word) => !COMMON.has(word));
  return own.length > 0 ? own : words(name);
};

const wordsOfText = (written: string): string[] => words(written).filter((word) => !COMMON.has(word));

/** What a name is found by: its first two distinctive words, or its only one unless that is short. */
function tellingWords(name: string): readonly string[] {
  const own = distinctiveWords(name).slice(0, 2);
  return own.length === 1 && (own[0] as string).length < 4 ? [] : own;
}

/** In a row. The second may be truncated, because ACH has sixteen characters for a company's name. */
const standAt = (telling: readonly string[], text: readonly string[], at: number): boolean =>
  telling.every((word, offset) => {
    const found = text[at + offset];
    if (found === undefined) return false;
    return found === word || (offset > 0 && found.length >= 3 && word.startsWith(found));
  });

/** Whether a partner's name stands in a text. */
export function namePlausible(name: string, written: string): boolean {
  const telling = tellingWords(name);
  const text = wordsOfText(written);
  return telling.length > 0 && text.some((_, at) => standAt(telling, text, at));
}

interface Named {
  readonly partner_id: string;
  readonly name: string;
}

/** Finds partners by their names as `namePlausible` does, without looking at each partner for each text. */
export class PayerNames {
  private readonly partners = new Map<string, { readonly id: string; readonly telling: readonly string[] }[]>();

  constructor(payers: Iterable<Named>) {
    for (const { partner_id: id, name } of payers) {
      const telling = tellingWords(name);
      const [first, second] = telling;
      if (first === undefined) continue;
      const key = beginning(first, second);
      const alike = this.partners.get(key);
      if (alike === undefined) this.partners.set(key, [{ id, telling }]);
      else alike.push({ id, telling });
    }
  }

  /** Their ids, in order. */
  namedIn(written: string): string[] {
    const text = wordsOfText(written);
    const found = text.flatMap((word, at) =>
      [beginning(word), beginning(word, text[at + 1])]
        .flatMap((key) => this.partners.get(key) ?? [])
        .filter(({ telling }) => standAt(telling, text, at)),
    );
    return [...new Set(found.map(({ id }) => id))].sort();
  }
}

/** Two texts that agree in a truncated second word have the same three letters of it. */
const beginning = (first: string, second?: string): string =>
  second === undefined ? first : `${first} ${second.slice(0, 3)}`;
