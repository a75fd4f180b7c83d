/**
 * Matching what arrived to what is owed, with evidence. Pure arithmetic: what is known is given, what follows is
 * answered. A payment posts by itself only on a certain reference together with a plausible payer, or on an exact amount
 * that one document alone has, from an account that this payer has paid from before. All else is a suggestion.
 */

import { Amount } from '../money.ts';
import type { ReferenceField } from './bank/statement.ts';
import { type CutReference, type FoundReference, findReferences } from './reference.ts';

/** A live or void invoice that a payment may be for. */
export interface Payable {
  readonly document_id: number;
  readonly number: string;
  readonly partner_id: string;
  readonly currency: string;
  readonly status: 'open' | 'paid' | 'void';
  readonly balance: Amount;
  readonly due_on: string;
  /** The number of the document that replaces a void one. */
  readonly replaced_by: string | null;
}

export interface KnownPayer {
  readonly partner_id: string;
  readonly name: string;
}

/** What arrived. */
export interface Incoming {
  readonly amount: Amount;
  readonly references: readonly ReferenceField[];
  readonly payer_name: string | undefined;
  readonly payer_account: string | undefined;
  /** Everything that the bank wrote: payers' names hide in it. */
  readonly text: string;
}

export type Rule = 'reference_and_payer' | 'amount_and_account';

/** Why: what was found where, who paid and how that is known, how the amounts compare. */
export interface Evidence {
  readonly rule: Rule | 'person' | 'processor' | 'suggestion' | 'given_back';
  readonly reference?: {
    readonly number: string;
    readonly field: string;
    readonly found: string;
    readonly guess?: string;
  };
  readonly payer?: { readonly partner_id: string; readonly by: 'account' | 'name'; readonly found: string };
  readonly amount?: 'exact' | 'under' | 'over' | 'one of several';
  /** For people, one sentence. */
  readonly why: string;
}

export interface Applied {
  readonly document: Payable;
  readonly amount: Amount;
  /** What is left of the document and small enough to be written to bank charges. */
  readonly small_difference: Amount | undefined;
  readonly confidence: string;
  readonly evidence: Evidence;
}

export interface Suggested {
  readonly document: Payable;
  readonly amount: Amount;
  readonly confidence: string;
  readonly evidence: Evidence;
}

export interface Match {
  /** Whose money it is, as far as that is certain. */
  readonly partner_id: string | undefined;
  readonly applied: readonly Applied[];
  readonly suggested: readonly Suggested[];
  /** One sentence on what became of it. */
  readonly why: string;
}

/** How sure each kind of match is, from 0 to 1. A person confirms what is below the first three. */
export const CONFIDENCE = {
  reference_and_account: '0.99',
  reference_and_name: '0.95',
  amount_and_account: '0.90',
  reference_alone: '0.80',
  reference_of_another: '0.40',
  guessed_reference: '0.60',
  cut_reference: '0.60',
  amounts_add_up: '0.60',
  amount_and_name: '0.60',
  amount_alone: '0.20',
  /** That it is no new payment at all. */
  same_payment: '0.50',
} as const;

/** Of a sum of several documents, so many documents are tried, and so many at once: 60,459 sums at most. */
const SUMMED_DOCUMENTS = 20;
const SUMMED_AT_ONCE = 6;
const SUGGESTED_AT_MOST = 5;

/** What a payment is judged against; kept up to date while the lines of a file are matched one after the other. */
export class Book {
  private readonly byNumber = new Map<string, Payable>();
  private readonly byPartner = new Map<string, Set<string>>();
  private readonly payers: ReadonlyMap<string, KnownPayer>;
  private readonly accounts: ReadonlyMap<string, string>;
  private readonly smallDifference: Readonly<Record<string, string>>;
  private readonly nameWords = new Map<string, Set<string>>();

  /** `accounts` leads from an account that payments have come from to its partner; one shared by two is left out. */
  constructor(
    payables: readonly Payable[],
    payers: readonly KnownPayer[],
    accounts: ReadonlyMap<string, string>,
    smallDifference: Readonly<Record<string, string>>,
  ) {
    this.payers = new Map(payers.map((payer) => [payer.partner_id, payer]));
    this.accounts = accounts;
    this.smallDifference = smallDifference;
    for (const payable of payables) this.put(payable);
    for (const payer of payers) {
      for (const word of distinctiveWords(payer.name)) {
        this.nameWords.set(word, (this.nameWords.get(word) ?? new Set()).add(payer.partner_id));
      }
    }
  }

  put(payable: Payable): void {
    this.byNumber.set(payable.number, payable);
    this.byPartner.set(payable.partner_id, (this.byPartner.get(payable.partner_id) ?? new Set()).add(payable.number));
  }

  numbered(number: string): Payable | undefined {
    return this.byNumber.get(number);
  }

  /** The document that stands for this one now: itself, or what replaced it. */
  standingFor(payable: Payable): Payable | undefined {
    let at: Payable | undefined = payable;
    while (at?.status === 'void') at = at.replaced_by === null ? undefined : this.byNumber.get(at.replaced_by);
    return at;
  }

  /** A partner's open documents in a currency, the one that is due first before the others. */
  open(partnerId: string, currency: string): Payable[] {
    return [...(this.byPartner.get(partnerId) ?? [])]
      .map((number) => this.byNumber.get(number) as Payable)
      .filter((each) => each.status === 'open' && each.currency === currency)
      .sort(byDueDate);
  }

  withBalance(amount: Amount): Payable[] {
    return [...this.byNumber.values()].filter(
      (each) => each.status === 'open' && each.currency === amount.currency && each.balance.equals(amount),
    );
  }

  beginningWith(cut: string): Payable[] {
    return [...this.byNumber.values()].filter((each) => each.number.replaceAll('-', '').startsWith(cut));
  }

  partnerOfAccount(account: string | undefined): string | undefined {
    return account === undefined ? undefined : this.accounts.get(account);
  }

  nameOf(partnerId: string): string {
    return this.payers.get(partnerId)?.name ?? '';
  }

  /** Partners whose names may stand in a text: those that share a word with it. */
  namedIn(text: string): string[] {
    const found = new Set(words(text).flatMap((word) => [...(this.nameWords.get(word) ?? [])]));
    return [...found].filter((partnerId) => namePlausible(this.nameOf(partnerId), text)).sort();
  }

  tolerance(currency: string): Amount {
    return Amount.of(this.smallDifference[currency] ?? '0', currency);
  }

  /** Takes what was applied off the documents' balances, for the lines that follow. */
  apply(applied: readonly Applied[]): void {
    for (const { document, amount, small_difference } of applied) {
      const left = document.balance.minus(amount).minus(small_difference ?? Amount.zero(amount.currency));
      this.put({ ...document, balance: left, status: left.isZero() ? 'paid' : 'open' });
    }
  }
}

const byDueDate = (one: Payable, other: Payable): number =>
  one.due_on < other.due_on || (one.due_on === other.due_on && one.number < other.number) ? -1 : 1;

// --- Names ------------------------------------------------------------------------------------------------------------

/** Forms of companies, and words too common to tell two payers apart. */
const COMMON = new Set(
  'INC INCORPORATED LLC LTD LIMITED CORP CORPORATION CO COMPANY GMBH AG KG SE SA SAS SARL BV NV PLC PTY OY AB AS SRL SPA LP LLP THE AND OF FOR DE LA DES DER DIE UND'.split(
    ' ',
  ),
);

/** Words in capitals and without accents; an umlaut is the same with two letters as with dots: Müller, Mueller. */
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

/**
 * Whether a partner's name stands in what the bank wrote. Two of its words must, one behind the other, or its only one;
 * the last may be cut, because ACH has sixteen characters for a company's name.
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

// --- Matching ---------------------------------------------------------------------------------------------------------

interface Payer {
  readonly partner_id: string;
  readonly by: 'account' | 'name';
  readonly found: string;
}

export function match(incoming: Incoming, book: Book): Match {
  const { references, cut } = findReferences(incoming.references);
  const { currency } = incoming.amount;
  const named = references.flatMap((reference): Seen[] => {
    const document = book.numbered(reference.number);
    return document === undefined ? [] : [{ reference, document }];
  });
  const seen = named.filter(({ document }) => document.currency === currency);
  const certain = seen.filter(({ reference }) => reference.guess === undefined);
  const partners = new Set(certain.map(({ document }) => document.partner_id));
  const partnerId = partners.size === 1 ? ([...partners][0] as string) : undefined;
  const known = book.partnerOfAccount(incoming.payer_account);
  const payer = partnerId === undefined ? undefined : plausiblePayer(incoming, partnerId, book);

  if (partnerId !== undefined && payer !== undefined) return byReference(incoming, certain, payer, book);
  // A reference that is not certain may still speak against the only document of that amount.
  if (known !== undefined && certain.length === 0) {
    const exact = book.open(known, currency).filter((each) => each.balance.equals(incoming.amount));
    const only = exact[0];
    const doubted = seen.some(({ document }) => document.number !== only?.number) || cut.length > 0;
    if (only !== undefined && exact.length === 1 && !doubted) return byAmount(incoming, only, known);
  }
  const suggested = suggestions(incoming, seen, cut, book);
  return {
    partner_id: known,
    applied: [],
    suggested,
    why: whyNot(incoming, { named, certain, partners, known, suggested }, book),
  };
}

/** An account known to be another's speaks against the reference; the partner's own, or its name, for it. */
function plausiblePayer(incoming: Incoming, partnerId: string, book: Book): Payer | undefined {
  const known = book.partnerOfAccount(incoming.payer_account);
  if (known === partnerId) return { partner_id: partnerId, by: 'account', found: incoming.payer_account as string };
  if (known !== undefined) return undefined;
  const name = book.nameOf(partnerId);
  const found = [incoming.payer_name, incoming.text].find((text) => text !== undefined && namePlausible(name, text));
  return found === undefined ? undefined : { partner_id: partnerId, by: 'name', found: found.slice(0, 140) };
}

interface Seen {
  readonly reference: FoundReference;
  readonly document: Payable;
}

function byReference(incoming: Incoming, certain: readonly Seen[], payer: Payer, book: Book): Match {
  const { amount } = incoming;
  const zero = Amount.zero(amount.currency);
  const confidence = payer.by === 'account' ? CONFIDENCE.reference_and_account : CONFIDENCE.reference_and_name;
  const open = certain
    .filter(({ document }) => document.status === 'open')
    .sort((a, b) => byDueDate(a.document, b.document));
  const total = open.reduce((sum, { document }) => sum.plus(document.balance), zero);
  const short = total.minus(amount);
  const small = !short.isNegative() && !short.minus(book.tolerance(amount.currency)).isPositive();
  const apply = ({ reference, document }: Seen, part: Amount, difference?: Amount): Applied => ({
    document,
    amount: part,
    small_difference: difference,
    confidence,
    evidence: {
      rule: 'reference_and_payer',
      reference: { number: reference.number, field: reference.field, found: reference.found },
      payer,
      amount: comparison(amount, document.balance, open.length),
      why: `${reference.found} stands in ${reference.field}, and the payer is known by ${payer.by === 'account' ? 'its account' : 'its name'}`,
    },
  });

  if (open.length === 0) {
    const named = certain.map(({ document }) => document);
    const suggested = suggestions(incoming, certain, [], book);
    const state = named.map((each) => `${each.number} is ${each.status}`).join(', ');
    return { partner_id: payer.partner_id, applied: [], suggested, why: `${state}: kept as unapplied cash` };
  }
  if (!short.isPositive()) {
    const applied = open.map((each) => apply(each, each.document.balance));
    const why = `pays ${applied.map((each) => each.document.number).join(', ')}${short.isNegative() ? `; ${short.negated().forPeople()} more than owed is unapplied cash` : ''}`;
    return { partner_id: payer.partner_id, applied, suggested: [], why };
  }
  const last = open.at(-1) as Seen;
  const lastPart = last.document.balance.minus(short);
  if (small && lastPart.isPositive()) {
    const applied = [
      ...open.slice(0, -1).map((each) => apply(each, each.document.balance)),
      apply(last, lastPart, short),
    ];
    const numbers = applied.map((each) => each.document.number).join(', ');
    return {
      partner_id: payer.partner_id,
      applied,
      suggested: [],
      why: `pays ${numbers} but for ${short.forPeople()}, written to bank charges`,
    };
  }
  if (open.length === 1) {
    const applied = [apply(last, amount)];
    return {
      partner_id: payer.partner_id,
      applied,
      suggested: [],
      why: `pays a part of ${last.document.number}; ${short.forPeople()} stays open`,
    };
  }
  // Which of them is to stay open only a person knows.
  const suggested = fill(amount, open).map(
    ({ each, part }): Suggested => ({
      document: each.document,
      amount: part,
      confidence: CONFIDENCE.reference_alone,
      evidence: {
        ...apply(each, part).evidence,
        rule: 'suggestion',
        why: `${each.reference.found} stands in ${each.reference.field}, but the documents named there are ${short.forPeople()} more than arrived`,
      },
    }),
  );
  return {
    partner_id: payer.partner_id,
    applied: [],
    suggested,
    why: `${open.length} documents are named, and ${short.forPeople()} is missing to pay them`,
  };
}

function comparison(amount: Amount, balance: Amount, documents: number): NonNullable<Evidence['amount']> {
  if (documents > 1) return 'one of several';
  if (amount.equals(balance)) return 'exact';
  return amount.minus(balance).isNegative() ? 'under' : 'over';
}

/** The amount over the documents in their order, until it is used up. */
function fill<Each extends { document: Payable }>(
  amount: Amount,
  documents: readonly Each[],
): { each: Each; part: Amount }[] {
  let left = amount;
  return documents.flatMap((each) => {
    const part = left.minus(each.document.balance).isNegative() ? left : each.document.balance;
    left = left.minus(part);
    return part.isPositive() ? [{ each, part }] : [];
  });
}

function byAmount(incoming: Incoming, document: Payable, partnerId: string): Match {
  const evidence: Evidence = {
    rule: 'amount_and_account',
    payer: { partner_id: partnerId, by: 'account', found: incoming.payer_account as string },
    amount: 'exact',
    why: `no other open document of ${partnerId} is over ${incoming.amount.forPeople()}, and it has paid from this account before`,
  };
  const applied: Applied = {
    document,
    amount: incoming.amount,
    small_difference: undefined,
    confidence: CONFIDENCE.amount_and_account,
    evidence,
  };
  return {
    partner_id: partnerId,
    applied: [applied],
    suggested: [],
    why: `pays ${document.number}: its exact amount, from a known account`,
  };
}

function suggestions(incoming: Incoming, seen: readonly Seen[], cut: readonly CutReference[], book: Book): Suggested[] {
  const { amount } = incoming;
  const found = new Map<number, Suggested>();
  const suggest = (
    document: Payable | undefined,
    confidence: string,
    evidence: Omit<Evidence, 'rule'>,
    part?: Amount,
  ): void => {
    if (document === undefined || document.status !== 'open' || document.currency !== amount.currency) return;
    const known = found.get(document.document_id);
    if (known !== undefined && known.confidence >= confidence) return;
    const most = amount.minus(document.balance).isNegative() ? amount : document.balance;
    found.set(document.document_id, {
      document,
      amount: part ?? most,
      confidence,
      evidence: { rule: 'suggestion', ...evidence },
    });
  };
  const known = book.partnerOfAccount(incoming.payer_account);
  const named = book.namedIn(`${incoming.payer_name ?? ''} ${incoming.text}`);
  const payers = known === undefined ? named : [known];

  for (const { reference, document } of seen) {
    const standing = book.standingFor(document);
    const { guess, field, number, found: written } = reference;
    const evidence = {
      reference: { number, field, found: written, ...(guess === undefined ? {} : { guess }) },
      ...(standing === undefined ? {} : { amount: comparison(amount, standing.balance, 1) }),
    };
    const replaced = standing !== document ? `; ${number} was replaced by ${standing?.number}` : '';
    if (guess !== undefined) {
      const agreed = standing?.balance.equals(amount) || payers.includes(document.partner_id);
      suggest(standing, agreed ? CONFIDENCE.guessed_reference : CONFIDENCE.reference_of_another, {
        ...evidence,
        why: `${written} stands in ${field}: ${guess}${replaced}`,
      });
    } else if (known !== undefined && known !== document.partner_id) {
      suggest(standing, CONFIDENCE.reference_of_another, {
        ...evidence,
        why: `${written} stands in ${field}, but the account is ${known}'s${replaced}`,
      });
    } else {
      suggest(standing, CONFIDENCE.reference_alone, {
        ...evidence,
        why: `${written} stands in ${field}${replaced || ', but who paid can not be told'}`,
      });
    }
  }
  for (const { beginning, field, found: written } of cut) {
    const possible = book
      .beginningWith(beginning)
      .filter((each) => each.status === 'open' && each.currency === amount.currency && each.balance.equals(amount));
    if (possible.length !== 1) continue;
    const document = possible[0] as Payable;
    suggest(document, CONFIDENCE.cut_reference, {
      reference: { number: document.number, field, found: written, guess: 'the number is cut off' },
      amount: 'exact',
      why: `${written} at the end of ${field} may be the beginning of it, and the amount is exact`,
    });
  }
  for (const partnerId of payers) {
    const open = book.open(partnerId, amount.currency);
    const by = known === undefined ? ('name' as const) : ('account' as const);
    const payer = {
      partner_id: partnerId,
      by,
      found: (by === 'account' ? incoming.payer_account : incoming.payer_name) ?? incoming.text.slice(0, 140),
    };
    for (const document of open.filter((each) => each.balance.equals(amount))) {
      suggest(document, CONFIDENCE.amount_and_name, {
        payer,
        amount: 'exact',
        why: `its exact amount, and the payer looks like ${partnerId}`,
      });
    }
    const several = onlySum(amount, open.slice(0, SUMMED_DOCUMENTS));
    for (const document of several ?? []) {
      const numbers = several?.map((each) => each.number).join(' and ');
      suggest(
        document,
        CONFIDENCE.amounts_add_up,
        { payer, amount: 'one of several', why: `${numbers} add up to exactly what arrived` },
        document.balance,
      );
    }
  }
  if (found.size === 0) {
    const equal = book.withBalance(amount);
    for (const document of equal.length <= SUGGESTED_AT_MOST ? equal : []) {
      suggest(document, CONFIDENCE.amount_alone, { amount: 'exact', why: 'nothing but its amount speaks for it' });
    }
  }
  return [...found.values()]
    .sort((a, b) =>
      a.confidence === b.confidence ? byDueDate(a.document, b.document) : a.confidence > b.confidence ? -1 : 1,
    )
    .slice(0, Math.max(SUGGESTED_AT_MOST, SUMMED_AT_ONCE));
}

/** The documents that add up to an amount, at least two, if there is exactly one such choice. */
export function onlySum(amount: Amount, documents: readonly Payable[]): Payable[] | undefined {
  const found: Payable[][] = [];
  const search = (from: number, left: Amount, chosen: Payable[]): void => {
    if (found.length > 1) return;
    if (left.isZero()) {
      if (chosen.length > 1) found.push(chosen);
      return;
    }
    if (chosen.length === SUMMED_AT_ONCE) return;
    for (let at = from; at < documents.length; at += 1) {
      const document = documents[at] as Payable;
      const rest = left.minus(document.balance);
      if (!rest.isNegative()) search(at + 1, rest, [...chosen, document]);
    }
  };
  search(0, amount, []);
  return found.length === 1 ? found[0] : undefined;
}

function whyNot(
  incoming: Incoming,
  {
    named: all,
    certain,
    partners,
    known,
    suggested,
  }: {
    /** In whatever currency. */
    named: readonly Seen[];
    certain: readonly Seen[];
    partners: ReadonlySet<string>;
    known: string | undefined;
    suggested: readonly Suggested[];
  },
  book: Book,
): string {
  const best = suggested[0];
  const end = best === undefined ? '' : `; ${best.document.number} is suggested`;
  if (partners.size > 1) return `documents of ${[...partners].sort().join(' and ')} are named${end}`;
  const [named] = certain;
  if (named !== undefined && known !== undefined && known !== named.document.partner_id) {
    return `${named.document.number} is named, but the account is ${known}'s${end}`;
  }
  if (named !== undefined)
    return `${named.document.number} is named, but the payer can't be told to be ${book.nameOf(named.document.partner_id)}${end}`;
  const foreign = all.find(
    ({ reference, document }) => reference.guess === undefined && document.currency !== incoming.amount.currency,
  )?.document;
  if (foreign !== undefined)
    return `${foreign.number} is named, but it is in ${foreign.currency}, and this in ${incoming.amount.currency}${end}`;
  if (known !== undefined) return `from ${known}, without a reference that is certain${end}`;
  return `neither a certain reference nor a known payer${incoming.payer_name === undefined ? '' : ` (${incoming.payer_name.slice(0, 60)})`}${end}`;
}
