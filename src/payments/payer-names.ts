/**
 * Recognizes partners' names in the bank's texts. A text identifies a partner only if no other partner's name matches
 * as well. Pure.
 */

const LEGAL_FORMS = wordSet(
  'INC INCORPORATED LLC LTD LIMITED CORP CORPORATION GMBH AG KG PLC LLP BV NV SARL SRL PTY OY',
);
/** Words too common to distinguish payers. */
const FILLERS = wordSet('CO COMPANY SE SA SAS AB AS SPA LP THE AND OF FOR DE LA RL DES DER DIE UND');
/** Words of the industry, which also occur in texts that name no partner. */
const TRADE = wordSet(
  'TICKET TICKETS TICKETING EVENT EVENTS TRAVEL TOUR TOURS BOOKING BOOKINGS PROTECTION INSURANCE REFUND SERVICE SERVICES',
);
const BESIDE = wordSet(
  'WIRE ACH FED FEDWIRE SWIFT SEPA TRANSFER CREDIT DEPOSIT DEBIT IN FROM BY TO INV INVOICE INVOICES NO NR PAYMENT PAYMENTS PAY REF REFERENCE ORG ORIG NAME ID THANKS',
);

function wordSet(words: string): ReadonlySet<string> {
  return new Set(words.split(' '));
}

const APOSTROPHE = /(?<=\p{L})['’](?=\p{L})/gu;

/** Letters that have no accent to remove, as payment systems write them. */
const LETTERS: Readonly<Record<string, string>> = {
  Ø: 'O',
  Æ: 'AE',
  Œ: 'OE',
  Ł: 'L',
  Đ: 'D',
  Ð: 'D',
  Þ: 'TH',
  ẞ: 'SS',
};

/**
 * Words in capitals and without accents; `S.A.` becomes `SA`, and `D'Angelo's` becomes `DANGELOS`. An umlaut may be
 * written as two letters: Müller, Mueller.
 */
const words = (text: string) =>
  text
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toUpperCase()
    .replace(/[ØÆŒŁĐÐÞẞ]/g, (letter) => LETTERS[letter] as string)
    .replace(APOSTROPHE, '')
    .replace(/(?<![\p{L}\p{N}.])(?:\p{L}\.)+\p{L}(?![\p{L}\p{N}])/gu, (letters) => letters.replaceAll('.', ''))
    .replace(/([AOU])E/g, '$1')
    .split(/[^A-Z0-9\p{L}]+/u)
    .filter((word) => word !== '');

const isTelling = (word: string) => !LEGAL_FORMS.has(word) && !FILLERS.has(word);

/** The words that identify a partner; none if the only such word is short. */
function tellingWords(name: string) {
  const telling = words(name).filter(isTelling);
  const own = telling.length > 0 ? telling : words(name);
  return own.length === 1 && (own[0] as string).length < 4 ? [] : own;
}

const areCommon = (own: readonly string[]) => own.every((word) => TRADE.has(word));

/** A name with its fillers, such as `THE TICKET COMPANY`, but without its legal form. */
const wholeName = (name: string) =>
  words(name)
    .filter((word) => !LEGAL_FORMS.has(word))
    .join(' ');

/** A text for comparison: its significant words, and the positions of the words before a legal form. */
type ComparableName = Readonly<{
  words: readonly string[];
  ends: ReadonlySet<number>;
}>;

type WrittenName = ComparableName &
  Readonly<{
    /** Whether a legal form ends the name. */
    closed: boolean;
    /** Whether the field has no other words. */
    alone: boolean;
  }>;

function readText(text: string): ComparableName {
  const ends = new Set<number>();
  const telling: string[] = [];
  for (const word of words(text)) {
    if (isTelling(word)) telling.push(word);
    else if (LEGAL_FORMS.has(word) && telling.length > 0) ends.add(telling.length - 1);
  }
  return { words: telling, ends };
}

/** ACH limits a company's name to 16 characters. */
const CUT_FROM = 15;
const isLongEnoughToBeCut = (name: string) => name.trim().length >= CUT_FROM;

/**
 * The bank's name field may contain more than the name. The name ends with the first legal form, which may be cut off,
 * or before the first number that no partner's name contains.
 */
function readName(text: string, isOfName: (word: string) => boolean): WrittenName {
  const written = readText(text);
  const [end] = written.ends;
  const isAlone = (length: number) => length === written.words.length;
  const upTo = (length: number, closed = false) => ({
    ...{ words: written.words.slice(0, length), ends: new Set<number>(), closed, alone: isAlone(length) },
  });
  // All words before a legal form belong to the name, numbers too.
  if (end !== undefined) return upTo(end + 1, true);
  const number = written.words.findIndex((word) => /\d/.test(word) && !isOfName(word));
  const length = number > 0 ? number : written.words.length;
  const last = written.words[length - 1];
  if (last !== undefined && length > 1 && isLongEnoughToBeCut(text) && text.trim().toUpperCase().endsWith(` ${last}`)) {
    const isFormCut = [...LEGAL_FORMS].some((form) => form.startsWith(last));
    if (isFormCut) return upTo(length - 1);
  }
  return upTo(length);
}

/**
 * Whether a word is an abbreviation of another: `TKTG` has the first letter of `TICKETING` and further letters in
 * order.
 */
function isShortFor(written: string, word: string) {
  let at = 0;
  for (const letter of word) if (letter === written[at]) at += 1;
  return at === written.length && written[0] === word[0];
}

const CUT_AT_LEAST = 3;

class Words {
  /** `whole`: the partners whose names end here. `all`: the partners whose names begin with these words. */
  readonly whole = new Set<string>();
  readonly all = new Set<string>();
  readonly next = new Map<string, Words>();
  private byBeginning: Map<string, [word: string, next: Words][]> | undefined;

  add([first, ...rest]: readonly string[], id: string) {
    this.all.add(id);
    if (first === undefined) this.whole.add(id);
    else {
      const next = this.next.get(first) ?? new Words();
      this.next.set(first, next);
      next.add(rest, id);
    }
  }

  /** The partners whose next word begins with a truncated word. */
  cut(written: string) {
    if (written.length < CUT_AT_LEAST) return [];
    if (this.byBeginning === undefined) {
      this.byBeginning = new Map();
      for (const [word, next] of this.next) {
        const key = word.slice(0, CUT_AT_LEAST);
        this.byBeginning.set(key, [...(this.byBeginning.get(key) ?? []), [word, next]]);
      }
    }
    const alike = this.byBeginning.get(written.slice(0, CUT_AT_LEAST)) ?? [];
    return alike.filter(([word]) => word !== written && word.startsWith(written));
  }
}

export type NamePlace = Readonly<{
  /** The partners whose names match best. If several partners match, no partner is identified. */
  ids: ReadonlySet<string>;
  /**
   * `longer`: a further word of a name is next to the match. `incomplete`: words of the partners' names are missing
   * from the text.
   */
  fit: 'whole' | 'longer' | 'incomplete';
  /** Whether all words of the names are in the text. In a field for the name, nothing else is there. */
  complete: boolean;
  from: number;
  words: number;
}>;

type NamedPartner = Readonly<{
  partner_id: string;
  name: string;
}>;

export class PayerNames {
  private readonly root = new Words();
  private readonly used = new Map<string, number>();
  /** The whole names of the partners whose names have only words of the industry. */
  private readonly common = new Map<string, string>();

  constructor(payers: Iterable<NamedPartner>) {
    for (const { partner_id, name } of payers) {
      const own = tellingWords(name);
      if (own.length > 0) this.root.add(own, partner_id);
      // Some banks write a space for an apostrophe.
      if (APOSTROPHE.test(name)) this.root.add(tellingWords(name.replace(APOSTROPHE, ' ')), partner_id);
      if (areCommon(own)) this.common.set(partner_id, wholeName(name));
      for (const word of new Set(own.map(stem))) this.used.set(word, (this.used.get(word) ?? 0) + 1);
    }
  }

  namedIn(text: string) {
    return [...new Set(this.placesIn(readText(text)).flatMap(({ ids }) => [...ids]))].sort();
  }

  ofName(name: string): NamePlace[] {
    const written = readName(name, (word) => this.used.has(stem(word)));
    const isCut = isLongEnoughToBeCut(name);
    return this.placesIn(written, isCut)
      .filter(
        (place) =>
          !isOtherName(written, place, this.wordAfter(written, place)) &&
          (place.words > 1 || written.words.length === 1),
      )
      .map((place): NamePlace => {
        const isWhole = place.words === written.words.length;
        const longer = isLonger(written, place) || (written.closed && place.from + place.words < written.words.length);
        const complete = place.complete && isWhole && written.alone;
        return { ...place, fit: longer ? 'longer' : 'whole', complete };
      })
      .flatMap((place) => {
        if (!areCommon(written.words.slice(place.from, place.from + place.words))) return [place];
        const whole = wholeName(name);
        const ids = new Set([...place.ids].filter((id) => this.common.get(id) === whole));
        return ids.size === 0 ? [] : [{ ...place, ids }];
      });
  }

  /**
   * Whether a payment shows that its account belongs to the partner. The payer's name must be the partner's; if the
   * bank gives no name, finance must have named the payer. An account under any other name belongs to a payment
   * provider.
   */
  teaches(
    partnerId: string,
    payment: Readonly<{
      payer_account: string;
      payer_name?: string | null | undefined;
      by_finance?: boolean;
    }>,
  ) {
    const { payer_account, payer_name, by_finance = false } = payment;
    if (!isTellingAccount(payer_account)) return false;
    if (payer_name == null) return by_finance;
    return this.ofName(payer_name).some(({ ids, fit }) => fit !== 'longer' && ids.has(partnerId));
  }

  /**
   * The partners that a text certainly names. `byItself`: a single word counts as a name if the words next to it belong
   * to no name.
   */
  ofText(text: string, { byItself }: { readonly byItself: boolean }): NamePlace[] {
    const written = readText(text);
    return this.placesIn(written).flatMap((place) => {
      const own = written.words.slice(place.from, place.from + place.words);
      if (areCommon(own)) return [];
      if (place.words === 1) {
        const isName = byItself && !isLonger(written, place) && this.used.get(stem(own[0] as string)) === 1;
        return isName ? [place] : [];
      }
      if (!continuesToLegalForm(written, place)) return [place];
      // Another name that begins with a whole name of a partner.
      return place.complete ? [{ ...place, fit: 'longer' }] : this.wordAfter(written, place) ? [place] : [];
    });
  }

  private wordAfter({ words: written }: ComparableName, { from, words: length }: NamePlace) {
    let at: Words | undefined = this.root;
    for (const word of written.slice(from, from + length)) at = at?.next.get(word);
    const after = written[from + length];
    // The next word does not contradict the name: the name is complete or cut off, or the text ends.
    if (at === undefined || at.whole.size > 0 || after === undefined) return true;
    return [...at.next.keys()].some((word) => word.startsWith(after) || isShortFor(after, word));
  }

  private placesIn({ words: written }: ComparableName, isCut = false): NamePlace[] {
    const found = written.flatMap((_, from) => this.placeAt(written, from, isCut) ?? []);
    return found.filter(
      (place) =>
        !found.some(
          (other) =>
            other !== place &&
            other.words > place.words &&
            other.from < place.from + place.words &&
            place.from < other.from + other.words,
        ),
    );
  }

  private placeAt(written: readonly string[], from: number, isCut: boolean): NamePlace | undefined {
    let at = this.root;
    for (let length = 0; ; length += 1) {
      const word = written[from + length];
      const next = word === undefined ? undefined : at.next.get(word);
      const isLast = from + length === written.length - 1;
      const cut = word === undefined || length === 0 ? [] : at.cut(word);
      if (cut.length > 0 && (next === undefined || (isLast && isCut))) {
        const possible = [...(next === undefined ? [] : [next]), ...cut.map(([, each]) => each)];
        const ids = new Set(possible.flatMap((each) => [...each.all]));
        return { ids, fit: 'incomplete', complete: false, from, words: length + 1 };
      }
      if (next !== undefined) {
        at = next;
        continue;
      }
      // A single word is a match only if this word is a whole name. Several words may be the beginning of more than one
      // name. A whole name matches best, unless the text may be cut off.
      if (length === 0 || (length === 1 && at.whole.size === 0)) return undefined;
      const mayBeCut = length > 1 && isCut && word === undefined;
      const complete = at.whole.size > 0;
      const ids = complete && !mayBeCut ? at.whole : at.all;
      return { ids, fit: complete ? 'whole' : 'incomplete', complete, from, words: length };
    }
  }
}

const stem = (word: string) => word.replace(/S$/, '');

/** `HARBOUR TICKETS WEST` is not the name Harbour Tickets East. */
const isOtherName = (written: ComparableName, { from, words: length }: NamePlace, mayGoOn: boolean) =>
  !mayGoOn && from + length < written.words.length;

/** `before` is the index of the first word of the match. */
const isJoined = ({ words: written, ends }: ComparableName, at: number, before: number) => {
  const word = written[at];
  return word !== undefined && !/\d/.test(word) && !BESIDE.has(word) && !ends.has(before);
};

const isLonger = (written: ComparableName, { from, words: length }: NamePlace) =>
  isJoined(written, from - 1, from - 1) || isJoined(written, from + length, from + length - 1);

const LONGEST_REST = 3;

/** A different, longer name in a text is recognized by its legal form. */
function continuesToLegalForm(written: ComparableName, { from, words: length }: NamePlace) {
  const after = from + length;
  for (let at = after; at < after + LONGEST_REST && isJoined(written, at, at - 1); at += 1) {
    if (written.ends.has(at)) return true;
  }
  return false;
}

/** Whether an account may distinguish payers: not a word, and not a part of a number. */
const isTellingAccount = (account: string) => /\d/.test(account) && account.replace(/[^A-Za-z0-9]/g, '').length >= 6;

/**
 * Whether a text contains the first two significant words of a name one after the other. If the name has only one
 * significant word, this word is enough.
 */
export const namePlausible = (name: string, written: string) =>
  new PayerNames([{ partner_id: '', name }]).namedIn(written).length > 0;
